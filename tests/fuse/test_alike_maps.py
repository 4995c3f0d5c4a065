"""Maps of resident values with one formula share a launch, and keep the bits that each has alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.gpu import OpenCLBackend
from tests.gpu.shapes import gpu_shaped

CODE = ["cpu", "gpu", "discrete"]
SHAPES = [(17,), (3, 7), (2, 5000), (20_000, 2), (4,), (33_000,)]
"""Items that are no multiple of a vector, less than one, and more than a tile."""


def numbers(shape: tuple[int, ...], seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Numbers among which there are NaN, infinities and -0."""
    rng = np.random.default_rng([seed, *shape])
    made = rng.standard_normal(shape).astype(dtype)
    made.flat[rng.integers(0, made.size, 4)] = [np.nan, np.inf, -np.inf, -0.0]
    return made


def scaled(array: np.ndarray) -> Element:
    return fc.exp(fc.constant(array)) * 3 - fc.constant(array)


def on(shape: str) -> Any:
    """Let a device of such a kind be selected."""
    return mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped(in_place=shape == "gpu"))


def resolved(made: Sequence[Element], shape: str, **options: int) -> list[bytes]:
    strategy = fc.Strategy(**options)
    if shape == "cpu":
        results = fc.resolve(*made, device="cpu", strategy=strategy, progress=False)
    else:
        with on(shape):
            results = fc.resolve(*made, device="gpu", strategy=strategy, progress=False)
    return [one.tobytes() for one in (results if isinstance(results, (list, tuple)) else [results])]


def kernels(made: Sequence[Element], shape: str = "cpu") -> int:
    if shape == "cpu":
        return len(fc.plan(*made, device="cpu").kernels)
    with on(shape):
        return len(fc.plan(*made, device="gpu").kernels)


@pytest.mark.parametrize("shape", CODE)
def test_maps_of_one_formula_have_the_bits_of_each(shape: str) -> None:
    made = [scaled(numbers(one)) for one in SHAPES]
    assert kernels(made, shape) == 1
    assert resolved(made, shape) == [resolved([one], shape)[0] for one in made]


@pytest.mark.parametrize("shape", CODE)
@pytest.mark.parametrize("items", [1, 100, 1 << 16])
def test_no_number_of_items_for_a_work_item_changes_a_bit(shape: str, items: int) -> None:
    made = [scaled(numbers(one)) for one in SHAPES]
    assert resolved(made, shape, items_per_work_item=items) == resolved(made, shape)


@pytest.mark.parametrize("shape", CODE)
def test_casts_to_halves_share_a_launch(shape: str) -> None:
    made = [fc.constant(numbers(one)).astype("bfloat16") for one in SHAPES]
    assert kernels(made, shape) == 1
    assert resolved(made, shape) == [resolved([one], shape)[0] for one in made]


@pytest.mark.parametrize("shape", CODE)
def test_what_views_show_is_read_where_it_lies(shape: str) -> None:
    given = [fc.constant(numbers((40, 6), seed)) for seed in range(3)]
    made = [fc.exp(fc.reshape(one, (-1, 3))) + fc.flip(one, axis=0).sum() for one in given]
    assert resolved(made, shape) == [resolved([one], shape)[0] for one in made]


def of_several_numbers() -> list[Element]:
    """Several results each, and single numbers that all read."""
    rate = fc.constant(np.arange(8, dtype=np.float32)).mean()
    made = []
    for seed, one in enumerate(SHAPES):
        p, g = fc.constant(numbers(one, seed)), fc.constant(numbers(one, seed + 9))
        m = 0.9 * p + 0.1 * g
        made += [m, p - rate * m]
    return made


@pytest.mark.parametrize("shape", CODE)
def test_maps_of_several_results_read_common_numbers(shape: str) -> None:
    made = of_several_numbers()
    assert resolved(made, shape) == [resolved([one], shape)[0] for one in made]
    stored = [sum(one.kind == "output" for one in kernel.ir.arguments) for kernel in fc.plan(*made).kernels]
    assert max(stored) == len(made)


def dependent() -> list[Element]:
    """The second map reads a view of the first one, which no kernel can read through."""
    first = fc.exp(fc.constant(numbers((30, 5))))
    return [first, fc.exp(fc.repeat(first, 2, axis=0))]


def other_formulas() -> list[Element]:
    a, b = (fc.constant(numbers((30, seed))) for seed in (2, 3))
    return [fc.exp(a) * 2, fc.exp(b) * 3]


def other_dtypes() -> list[Element]:
    return [fc.exp(fc.constant(numbers((30,), 1, dtype))) for dtype in ("float32", "float64")]


def of_other_numbers() -> list[Element]:
    """Numbers that are no literals are arguments of the launch, for all of its maps."""
    a, b = (fc.constant(numbers((30, seed))) for seed in (2, 3))
    return [a * a.max(), b * b.max()]


def repeated_rows() -> list[Element]:
    """A row that is repeated has its length in the kernel's text."""
    return [fc.constant(numbers((4, n))) + fc.constant(numbers((n,))) for n in (5, 6)]


@pytest.mark.parametrize("made", [dependent, other_formulas, other_dtypes, of_other_numbers, repeated_rows])
def test_what_stays_apart(made: Callable[[], list[Element]]) -> None:
    results = made()
    assert kernels(results) >= 2
    assert resolved(results, "cpu") == [resolved([one], "cpu")[0] for one in results]


def test_a_launch_takes_no_more_arguments_than_it_may() -> None:
    made = [fc.exp(fc.constant(numbers((n,)))) for n in range(5, 65)]
    # Two each, of 112.
    assert kernels(made) == 2
    assert resolved(made, "cpu") == [resolved([one], "cpu")[0] for one in made]


def test_what_stays_from_step_to_step_is_not_computed_with_what_changes() -> None:
    x = np.linspace(-1, 1, 60, dtype=np.float32).reshape(10, 6)
    fixed = [fc.constant(np.eye(6, n, dtype=np.float32)).astype("bfloat16") for n in (6, 5)]
    trained = [fc.parameter(np.eye(6, n, dtype=np.float32), name=f"w{n}") for n in (6, 5)]
    loss = fc.mean(sum((fc.source(x) @ w.astype("bfloat16") @ f.T).sum(1) for w, f in zip(trained, fixed, strict=True)))
    plan = fc.train.fit(loss, fc.train.sgd(0.1), batch=5).losses.plan(device="cpu")
    (step,) = (one for plans in plan.inner.values() for one in plans)
    read = [
        {step.graph.nodes[one.value].name for one in kernel.ir.arguments if one.kind == "input"}
        for kernel in step.kernels
        if kernel.ir.form == "map"
    ]
    assert {"w6", "w5"} in read
    assert {"constant", "constant_2"} in read
