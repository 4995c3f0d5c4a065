"""Numbers put into items: number by number in plain Python, on every backend, for any batch size."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import RunError, SpecError
from tests.gpu.shapes import resolve_on_gpu

COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda _, new: new, "add": operator.add, "mul": operator.mul, "max": max, "min": min,
}  # fmt: skip
SHAPE = (5, 3, 4)
PLACES = np.random.default_rng(0).integers(-3, 3, (5, 6, 4))
PARTS = np.random.default_rng(3).integers(-2, 2, (5, 6, 2))


def numbers(shape: tuple[int, ...], dtype: Any = "f4", seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def put(array: np.ndarray, places: np.ndarray, updates: np.ndarray, axis: int, reduction: str) -> np.ndarray:
    made = array.copy()
    for at in np.ndindex(places.shape):
        to = (*at[:axis], places[at], *at[axis + 1 :])
        made[to] = COMBINED[reduction](made[to], updates[at])
    return made


def put_parts(array: np.ndarray, places: np.ndarray, updates: np.ndarray, reduction: str, batch: int) -> np.ndarray:
    if batch:
        rows = zip(array, places, updates, strict=True)
        return np.stack([put_parts(*row, reduction, batch - 1) for row in rows])
    made = array.copy()
    for at in np.ndindex(places.shape[:-1]):
        to = tuple(places[at])
        part = np.broadcast_to(updates[at], np.shape(made[to]))
        made[to] = np.vectorize(COMBINED[reduction], otypes=[array.dtype])(made[to], part)
    return made


@settings(max_examples=20)
@given(data=st.data())
def test_numbers_along_an_axis(data: st.DataObject) -> None:
    reduction, axis = data.draw(st.sampled_from(sorted(COMBINED))), data.draw(st.sampled_from([1, 2]))
    dtype = data.draw(st.sampled_from(["f4", "f8", "i1", "i8", "f2"]))
    size = SHAPE[axis]
    asked = [SHAPE[0], data.draw(st.integers(0, 3)), data.draw(st.integers(0, 4))]
    asked[axis] = data.draw(st.integers(0, 7))
    places = np.random.default_rng(2).integers(-size, size, asked).astype(data.draw(st.sampled_from(["i4", "i8"])))
    array, updates = numbers(SHAPE, dtype), numbers(tuple(asked), dtype, 4)
    wanted = put(array, places, updates, axis, reduction)
    ends = [data.draw(st.sampled_from([fc.source, fc.constant])) for _ in range(3)]
    made = fc.scatter_elements(
        *(end(one) for end, one in zip(ends, (array, places, updates), strict=True)), axis, reduction
    )
    assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
    for batch_bytes in (16, 1 << 20):
        strategy = fc.Strategy(batch_bytes=batch_bytes)
        got = made.resolve(device="numpy", strategy=strategy, progress=False)
        np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("reduction", sorted(COMBINED))
@pytest.mark.parametrize("batch", [0, 1, 2])
def test_parts_at_positions_along_several_axes(batch: int, reduction: str) -> None:
    array, places = numbers((5, 6, 4, 3), "i4"), PARTS[:, :4] if batch < 2 else PARTS
    rest = array.shape[batch + 2 :]
    updates = numbers((*places.shape[:-1], *rest), "i4", 4)
    wanted = put_parts(array, places, updates, reduction, batch)
    ends = (fc.source, fc.constant) if batch else (fc.constant,)
    for first in ends:
        for second in ends:
            made = fc.scatter_nd(first(array), second(places), second(updates), reduction, batch)
            np.testing.assert_array_equal(made.resolve(device="numpy", progress=False), wanted, strict=True)


def test_the_same_for_each_record_and_one_number() -> None:
    array, places = numbers(SHAPE), PLACES[:1, :, :]
    x = fc.source(array)
    every = np.broadcast_to(places, (5, 6, 4))
    updates = numbers((1, 6, 4), seed=5)
    wanted = put(array, every, np.broadcast_to(updates, every.shape), 1, "add")
    made = fc.scatter_elements(x, places, updates, 1, "add")
    np.testing.assert_array_equal(made.resolve(device="numpy", progress=False), wanted)
    cleared = fc.scatter_elements(x, fc.source(PLACES[:, :1]), 0, 1)
    wanted = put(array, PLACES[:, :1], np.zeros((5, 1, 4), "f4"), 1, "set")
    np.testing.assert_array_equal(cleared.resolve(device="numpy", progress=False), wanted, strict=True)
    hot = fc.scatter_elements(np.zeros((1, 3, 4), "f4"), fc.source(PLACES), 1, 1, "add")
    wanted = put(np.zeros(SHAPE, "f4"), PLACES, np.ones(PLACES.shape), 1, "add")
    np.testing.assert_array_equal(hot.resolve(device="numpy", progress=False), wanted, strict=True)


def test_the_last_of_several_stays_however_they_lie_in_memory() -> None:
    updates = np.arange(24.0).reshape(4, 6).T[None]
    places = np.zeros((1, 6, 4), int)
    made = fc.scatter_elements(fc.constant(np.zeros((1, 1, 4))), places, fc.source(updates), 1)
    assert made.resolve(device="numpy", progress=False).tolist() == [[[5, 11, 17, 23]]]


def test_beside_kernels_on_every_device() -> None:
    array, updates = numbers(SHAPE), numbers(PLACES.shape, seed=6)
    made = fc.scatter_elements(fc.source(array) * 2, fc.source(PLACES), fc.source(updates) + 1, 1, "add") * 3
    wanted = put(array * 2, PLACES, updates + 1, 1, "add") * 3
    np.testing.assert_array_equal(made.resolve(device="cpu", progress=False), wanted)
    np.testing.assert_array_equal(resolve_on_gpu(made)[0], wanted)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: fc.scatter_elements(x, PLACES, 1.0, 0), "cannot put records into a stream"),
        (lambda x: fc.scatter_elements(x, PLACES * 1.0, 1.0), "cannot scatter by these indices"),
        (lambda x: fc.scatter_elements(x, PLACES[0], 1.0), "cannot scatter by these indices"),
        (lambda x: fc.scatter_elements(x, PLACES + 3, 1.0, 1), "cannot find a place outside the axis"),
        (lambda x: fc.scatter_elements(x, PLACES, np.ones((5, 2, 4)), 1), "cannot put these numbers"),
        (lambda x: fc.scatter_elements(x, np.zeros((5, 1, 9), int), 1, 1), "cannot put these numbers"),
        (lambda x: fc.scatter_elements(x, PLACES, 1.0, 1, "sum"), "cannot take reduction="),
        (lambda x: fc.scatter_nd(x, PARTS, np.ones((5, 6))), "the stream is the first"),
        (lambda x: fc.scatter_nd(x, PARTS, np.ones((5, 6, 1)), batch_dims=1), "cannot scatter by these indices"),
        (lambda x: fc.scatter_nd(x, PARTS + 9, np.ones((5, 6)), batch_dims=1), "cannot find a place outside"),
        (lambda x: fc.scatter_nd(np.ones((5, 6, 2)), fc.source(PARTS), x), "batch_dims= of 1 or more"),
    ],
)
def test_refusals(call: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        call(fc.source(numbers(SHAPE)))


def test_computed_places_out_of_range() -> None:
    for made in (
        fc.scatter_elements(fc.source(numbers(SHAPE)), fc.source(PLACES + 9), 1.0, 1),
        fc.scatter_nd(fc.source(numbers(SHAPE)), fc.source(PARTS + 9), fc.source(np.ones((5, 6))), batch_dims=1),
    ):
        with pytest.raises(RunError, match="out of range"):
            made.resolve(device="numpy", progress=False)
