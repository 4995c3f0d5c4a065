"""Folds of columns beside costly values of rows: a tile of records at once, with the bits of one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.schedule import RegionStep
from tests.support.slow import compiled_but

Build = Callable[[Any, Any], list[Any]]

FOLDED: dict[str, Build] = {
    "sum": lambda x, e: [(x * e).sum(axis=0)],
    "var": lambda x, e: [(x * e).var(axis=0)],
    "argmax and min": lambda x, e: [fc.argmax(x * e, axis=0), fc.min(x + e, axis=0)],
    "dot": lambda x, e: [fc.vecdot(x, x * e, axis=0)],
    "any": lambda x, e: [fc.any(x * e > 1.5, axis=0)],
    "and rows": lambda x, e: [x - e, (x * e).sum(axis=0), e],
    "with its records": lambda x, e: [(x * e).sum(axis=0), fc.max(e, axis=0)],
}


def value_of_row(x: Any) -> Any:
    return fc.exp(fc.sin(x.sum(axis=1, keepdims=True)))


def opened(x: Any) -> Any:
    return fc.expand_dims(fc.exp(fc.sin(x.sum(axis=1))), 1)


WIDE = ("var",)
"""The fold of float64 that stands for the others: its pairs are carried, and its records need two sums."""


@pytest.mark.parametrize(
    ("name", "dtype"),
    compiled_but(
        [(name, dtype) for name in FOLDED for dtype in ("f4", "f8") if dtype == "f4" or name in WIDE],
        [(name, dtype) for name in FOLDED for dtype in ("f4", "f8")],
    ),
)
@pytest.mark.parametrize("made", [value_of_row, opened])
def test_tiles_have_the_bits_of_two_kernels(name: str, dtype: str, made: Callable[[Any], Any]) -> None:
    _compare(name, dtype, made, columns=19)


@pytest.mark.parametrize("name", ["sum", "var", "and rows"])
def test_many_columns_are_added_several_vectors_at_a_time(name: str) -> None:
    """Two turns of a loop over four vectors, or more over one, and two vectors behind them, of which one is a part."""
    _compare(name, "f4", value_of_row, columns=150)


def _compare(name: str, dtype: str, made: Callable[[Any], Any], columns: int) -> None:
    rng = np.random.default_rng(7)
    data = rng.standard_normal((4200, columns)).astype(dtype)
    data[17, 3], data[18, 4] = np.nan, np.inf
    x = fc.source(data)
    stored = fc.source(np.asarray(made(x).resolve(device="cpu", progress=False)))
    texts = [kernel.source for kernel in fc.plan(*FOLDED[name](x, made(x)), device="cpu").kernels]
    # Arrays of bools are none of numbers.
    assert any("tiled" in text for text in texts) == (name != "any")
    wanted = fc.resolve(*FOLDED[name](x, stored), device="cpu", progress=False)
    # Batches end inside of tiles and of blocks.
    for items in (4200, 1000, 37):
        strategy = fc.Strategy(batch_bytes=items * columns * data.itemsize)
        found = fc.resolve(*FOLDED[name](x, made(x)), device="cpu", progress=False, strategy=strategy)
        each = zip(_listed(found), _listed(wanted), strict=True)
        assert all(one.tobytes() == other.tobytes() for one, other in each)


def _listed(values: Any) -> list[np.ndarray]:
    return [np.asarray(one) for one in (values if isinstance(values, tuple | list) else [values])]


def test_rows_are_read_once_for_the_gradient_of_a_logistic_loss() -> None:
    data = fc.source(np.random.default_rng(2).standard_normal((3000, 8)).astype("f4"))
    w = fc.parameter(np.ones(7, "f4"), name="w")
    z = data[:, :-1] @ w
    gradient = fc.grad((fc.logaddexp(0.0, z) - data[:, -1] * z).mean(), w)
    steps = gradient.plan(device="cpu").passes[0].steps
    assert len(steps) == 1
    assert isinstance(steps[0], RegionStep)
    assert not steps[0].region.outputs


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_what_a_view_is_of_is_stored_for_others(device: str) -> None:
    """Kernels read through the view; a destination, a product and another stream's kernel read what it is of."""
    data = np.random.default_rng(3).standard_normal((300, 5))
    x = fc.source(data)
    total = fc.exp(x.sum(axis=1))
    column = fc.expand_dims(total, 1)
    roots = [column, (x * column).sum(axis=0), column @ fc.constant(np.ones((1, 2))), fc.flip(column * x, axis=1)]
    found = fc.resolve(*roots, device=device, progress=False)
    e = np.exp(data.sum(axis=1))[:, None]
    for one, other in zip(found, (e, (data * e).sum(axis=0), e @ np.ones((1, 2)), (e * data)[:, ::-1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
