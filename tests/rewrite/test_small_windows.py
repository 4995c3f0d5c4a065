"""Extremes of small windows are those of views, with the bits of a reduction."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements import Kind
from flowcompute.elements.math import max as largest
from flowcompute.elements.math import min as smallest
from flowcompute.elements.nn import WINDOWS, slide, windows_of
from flowcompute.graph import build_graph
from flowcompute.rewrite import replace_small_windows
from flowcompute.rewrite.small_windows import MOST_NUMBERS
from tests.support.slow import compiled_but

rng = np.random.default_rng(3)


def given(dtype: str, *shape: int) -> np.ndarray:
    x = rng.integers(-4, 5, shape)
    if dtype == "bool":
        return x > 0
    made = x.astype(dtype)
    if made.dtype.kind == "f":
        made[rng.random(shape) < 0.1] = np.nan
        made[rng.random(shape) < 0.1] = -0.0
        made[rng.random(shape) < 0.1] = -np.inf
    return made


def rewritten(element: Any) -> Any:
    return replace_small_windows(build_graph([fc.to_array().bind(element)]))


WINDOW_SHAPES = [
    ((1, 2, 2, 1), (2, 2, 2, 1)),
    ((1, 3, 1, 1), (2, 3, 2, 2)),
    ((2, 4, 3, 1),),
    ((0, 2, 1, 1), (1, 2, 2, 2), (2, 2, 3, 1)),
]

EVERY = [
    *itertools.product(("numpy", "cpu"), ("float32", "float64", "float16", "uint8", "int64", "bool"), WINDOW_SHAPES)
]
IN_CI = [
    one
    for one in EVERY
    if (one[1] == "float32" and (one[0] == "numpy" or one[2] in WINDOW_SHAPES[1::2]))
    or (one[1] in ("float16", "uint8") and (one[0] == "numpy" or one[2] is WINDOW_SHAPES[0]))
]
"""Kernels of other dtypes differ from those of float32 in their types alone. Those of float32 have windows of two axes that
overlap with gaps, and of three axes; the others are fewer of the same steps."""


@pytest.mark.parametrize(("device", "dtype", "windows"), compiled_but(IN_CI, EVERY))
def test_bits_are_those_of_the_reduction(windows: Any, dtype: str, device: str) -> None:
    x = given(dtype, 5, 3, 11, 9)
    seen = windows_of(x, tuple((axis + 1, *rest) for axis, *rest in windows))
    inside = tuple(range(-len(windows), 0))
    for reduce, name, keepdims in ((largest, "max", False), (smallest, "min", True)):
        made = reduce(slide("pool", fc.source(x), windows), inside, keepdims=keepdims)
        graph = rewritten(made)
        assert not any(node.op is WINDOWS or node.kind is Kind.REDUCE for node in graph.nodes)
        wanted = getattr(np, name)(seen, axis=inside, keepdims=keepdims)
        if wanted.dtype.kind == "f":
            # Zeros of both signs: the largest is +0, the smallest -0. NumPy takes the one that it meets.
            zero = (seen == 0) & (np.signbit(seen) == (name == "min"))
            has = zero.any(axis=inside, keepdims=keepdims) & (wanted == 0)
            wanted = np.where(has, wanted.dtype.type(-0.0 if name == "min" else 0.0), wanted)
        got = made.resolve(device=device, progress=False)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
        if wanted.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted) & ~np.isnan(wanted))


def test_a_node_keeps_its_name_and_large_or_shared_windows_stay() -> None:
    x = fc.source(given("float32", 4, 20, 20))
    small = rewritten(fc.nn.max_pool2d(x, 2))
    assert [node.name for node in small.nodes if node.op is not None and node.op.name == "maximum"][-1] == "max_pool2d"
    side = int(MOST_NUMBERS**0.5) + 1
    assert any(node.op is WINDOWS for node in rewritten(fc.nn.max_pool2d(x, side)).nodes)
    windows = slide("pool", x, ((0, 2, 2, 1), (1, 2, 2, 1)))
    both = largest(windows, (-2, -1)) + fc.sum(windows, (-2, -1))
    assert any(node.op is WINDOWS for node in rewritten(both).nodes)
    part = largest(windows, -1)
    assert any(node.op is WINDOWS for node in rewritten(part).nodes)
