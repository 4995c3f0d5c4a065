"""Numbers and parts at indices of any rank: NumPy's answers on every backend, and never a place outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import RunError, SpecError
from tests.gpu.shapes import resolve_on_gpu

RNG = np.random.default_rng(8)
ARRAY = RNG.standard_normal((5, 4, 3)).astype("f4")
ARRAY[0, 0, 0], ARRAY[1, 2, 0] = np.nan, -0.0
SHAPES: list[tuple[int, ...]] = [(), (0,), (3,), (2, 3), (1, 0, 2), (2, 2, 1)]
POSITIONS = np.stack([RNG.integers(-4, 4, (5, 6)), RNG.integers(-3, 3, (5, 6))], -1)


def same(element: Any, wanted: np.ndarray, device: str = "numpy", **options: Any) -> None:
    assert (element.shape, element.dtype) == (wanted.shape, wanted.dtype)
    got = element.resolve(device=device, progress=False, **options)
    assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(wanted).tobytes()


def parts(array: np.ndarray, positions: np.ndarray, batch: int) -> np.ndarray:
    """The definition, row by row of the axes that go together."""
    if batch == 0:
        return array[tuple(np.moveaxis(positions, -1, 0))]
    return np.stack([parts(array[row], positions[row], batch - 1) for row in range(len(positions))])


@settings(max_examples=6)
@given(data=st.data())
def test_indices_of_any_rank(data: st.DataObject) -> None:
    axis = data.draw(st.sampled_from([1, 2, -1]))
    shape, dtype = data.draw(st.sampled_from(SHAPES)), data.draw(st.sampled_from(["i1", "i4", "i8", "u2"]))
    size = ARRAY.shape[axis]
    indices = np.asarray(RNG.integers(0 if dtype == "u2" else -size, size, shape), dtype)
    wanted = np.take(ARRAY, indices.astype("i8"), axis=axis)
    for x in (fc.source(ARRAY), fc.constant(ARRAY)):
        same(fc.take(x, indices, axis=axis), wanted, strategy=fc.Strategy(batch_bytes=data.draw(st.integers(8, 400))))
        # Computed ones are looked at when it runs.
        same(fc.take(x, fc.constant(indices) + np.zeros((), dtype), axis=axis), wanted)


def test_indices_of_any_rank_beside_kernels() -> None:
    x = fc.source(ARRAY)
    indices = np.array([[0, -1], [2, 2]])
    made, wanted = fc.take(x * 2, indices, axis=1) + 1, np.take(ARRAY * 2, indices, axis=1) + 1
    same(made, wanted, "cpu")
    (got,) = resolve_on_gpu(made)
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.slow)])
def test_parts_at_positions_along_several_axes(device: str) -> None:
    for x in (fc.source(ARRAY), fc.constant(ARRAY)):
        for positions in (fc.source(POSITIONS), fc.constant(POSITIONS), fc.constant(POSITIONS) + 0):
            same(fc.gather_nd(x, positions, 1), parts(ARRAY, POSITIONS, 1), device)
    positions = POSITIONS[..., :1] % 3
    for x in (fc.source(ARRAY), fc.constant(ARRAY)):
        same(fc.gather_nd(x, fc.source(positions[:, :4]), 2), parts(ARRAY, positions[:, :4], 2), device)
    for given_positions in (fc.source(POSITIONS), fc.constant(POSITIONS)):
        same(fc.gather_nd(ARRAY, given_positions), parts(ARRAY, POSITIONS, 0), device)


def test_one_row_of_positions_is_for_each_record() -> None:
    wanted = parts(ARRAY, np.broadcast_to(POSITIONS[:1], (5, 6, 2)), 1)
    same(fc.gather_nd(fc.source(ARRAY), POSITIONS[:1], 1) * 2, wanted * 2, "cpu")


@pytest.mark.parametrize("positions", [[[4, 0]], [[0, 3]], [[-5, 0]], [[0, -4]]], ids=str)
def test_no_part_outside(positions: list[list[int]]) -> None:
    """Also where the place in all numbers would be one inside."""
    given_positions = np.array([positions] * 5)
    with pytest.raises(SpecError, match="cannot find a place outside the axis"):
        fc.gather_nd(fc.source(ARRAY), given_positions, 1)
    for x in (fc.source(ARRAY), fc.constant(ARRAY)):
        with pytest.raises(RunError, match="out of range"):
            fc.gather_nd(x, fc.source(given_positions), 1).resolve(progress=False)
    with pytest.raises(RunError, match="out of range"):
        fc.gather_nd(x, fc.source(np.array([[2**64 - 1, 0]] * 5, "u8")), 0).resolve(progress=False)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: fc.gather_nd(x, POSITIONS), "the stream is the first"),
        (lambda x: fc.gather_nd(x, fc.source(POSITIONS * 1.0), 1), "cannot take parts at these positions"),
        (lambda x: fc.gather_nd(x, POSITIONS[:3], 1), "cannot align a resident operand"),
        (lambda x: fc.gather_nd(x, np.zeros((5, 3), int), 1), "cannot take parts at these positions"),
        (lambda x: fc.gather_nd(x, POSITIONS, 4), "cannot take parts at these positions"),
        (lambda x: fc.take(x, fc.source(POSITIONS), axis=1), "fc.gather_nd"),
    ],
)
def test_refusals(call: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        call(fc.source(ARRAY))
