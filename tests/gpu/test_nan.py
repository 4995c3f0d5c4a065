"""There is one NaN in what is stored, so that files of equal results hash equally."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from tests.gpu.shapes import resolve_on_gpu
from tests.support.slow import compiled_but

QUIET = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000, "float64": 0x7FF8000000000000}


def made(x: Element) -> list[Element]:
    gap = x - x
    return [
        gap,
        x * x.dtype.type(np.nan),
        gap.sum(axis=1),
        gap.max(axis=0),
        gap.sum(),
        (gap @ fc.constant(np.ones((5, 3), x.dtype))).astype(x.dtype),
        fc.cumulative_sum(gap, axis=0),
    ]


# Half formats are computed in float32, and their kernels take the compiler longest.
@pytest.mark.slow
@pytest.mark.parametrize("dtype", compiled_but(["f4", "f8"], ["f2", ml_dtypes.bfloat16, "f4", "f8"]))
def test_every_backend_stores_the_same_bits(dtype: Any) -> None:
    array = np.full((37, 5), np.inf, dtype)
    roots = made(fc.source(array))
    bits = QUIET[array.dtype.name]
    for results in (fc.resolve(*roots, device="numpy"), fc.resolve(*roots), resolve_on_gpu(*roots)):
        for root, result in zip(roots, results, strict=True):
            found = np.asarray(result).reshape(-1)
            assert (found.view(f"u{found.itemsize}") == bits).all(), root


def test_a_signalling_nan_that_is_only_moved_keeps_its_bits() -> None:
    array = np.full(40, 0x7FA00001, "u4").view("f4")
    x = fc.source(array)
    for device in ("numpy", "cpu"):
        assert fc.where(x == x, x.dtype.type(0), x).resolve(device=device).view("u4").tolist() == [0x7FA00001] * 40


def invalid(x: Element) -> list[Element]:
    """Return numbers that operations make NaN of, one way each."""
    made = [fc.sqrt(x), fc.log(x), fc.remainder(x, 0), fc.floor_divide(x, 0) * 0, (x - x) / 0.0, fc.pow(x, 0.3), -x]
    return [*made, fc.copysign(fc.sqrt(x), x), (x[:, None] * [1.0, np.inf, -np.inf]).sum(axis=1), x]


def moved(x: Element) -> list[Element]:
    """Return numbers of which an operation makes NaN, and others only move these."""
    return [fc.where(x < -2, x, fc.sqrt(x)), fc.positive(fc.log(x)), fc.sqrt(x).astype("f8")]


def put_together(x: Element) -> list[Element]:
    """Return items of several numbers, of which an operation makes NaN."""
    column = fc.sqrt(x)[:, None]
    return [
        fc.concat([column, x[:, None]], axis=1),
        fc.stack([fc.sqrt(x), x], axis=1),
        fc.pad(column, ((0, 0), (1, 2))),
    ]


SIGNED = np.array([-1, -4, 4, np.nan, -np.nan, np.inf, -np.inf, -0.0, 0, -3], np.float32)
ONES = fc.constant(np.ones(10, "f4"))


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_the_sign_of_a_nan_does_not_depend_on_fusion(device: str) -> None:
    """An operation's NaN has no sign of its own; one that comes from a source keeps its sign."""
    values = invalid(fc.source(SIGNED))
    fused = [made for value in values for made in (fc.signbit(value), fc.copysign(ONES, value))]
    stored = [fc.spool(value) for value in values]
    apart = [made for value in stored for made in (fc.signbit(value), fc.copysign(ONES, value))]
    found = fc.resolve(*fused, device=device, progress=False)
    for one, other in zip(found, fc.resolve(*apart, device=device, progress=False), strict=True):
        np.testing.assert_array_equal(one, other)
    with np.errstate(invalid="ignore"):
        assert not found[0][np.isnan(np.sqrt(SIGNED))].any()
    np.testing.assert_array_equal(found[-2], np.signbit(SIGNED))
    np.testing.assert_array_equal(found[-1], np.copysign(np.ones(10, "f4"), SIGNED))


@pytest.mark.parametrize("dtype", compiled_but(["f4"], ["f4", "f8", "f2"]))
def test_the_sign_of_a_nan_does_not_depend_on_the_backend(dtype: Any) -> None:
    x = fc.source(SIGNED.astype(dtype))
    values = invalid(x) + moved(x)
    made = [one for value in values for one in (fc.signbit(value), fc.copysign(ONES, value), fc.copysign(value, x * 1))]
    on_device = fc.resolve(*made, device="cpu", progress=False)
    for one, other in zip(on_device, fc.resolve(*made, device="numpy", progress=False), strict=True):
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))
        nans = np.isnan(one)
        np.testing.assert_array_equal(nans, np.isnan(other))
        assert one[nans].tobytes() == other[nans].tobytes()


@pytest.mark.parametrize("dtype", compiled_but(["f4"], ["f4", "f8", "f2"]))
@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_moved_nans_are_stored_as_if_each_operation_were_a_kernel(device: str, dtype: Any) -> None:
    # Kernels convert half formats, which keeps no sign of a NaN.
    x = fc.source(np.where(np.isnan(SIGNED), np.nan, SIGNED).astype(dtype) if dtype == "f2" else SIGNED.astype(dtype))
    made = fc.spool(fc.sqrt(x)), fc.spool(fc.log(x))
    pair = made[0][:, None], x[:, None]
    apart = [
        fc.where(x < -2, x, made[0]),
        fc.positive(made[1]),
        made[0].astype("f8"),
        fc.concat(pair, axis=1),
        fc.stack([made[0], x], axis=1),
        fc.pad(pair[0], ((0, 0), (1, 2))),
    ]
    for fused, stored in zip(moved(x) + put_together(x), apart, strict=True):
        found, wanted = (np.asarray(one.resolve(device=device, progress=False)) for one in (fused, stored))
        assert found.tobytes() == wanted.tobytes(), fused


@pytest.mark.compiles
def test_moved_nans_on_gpus() -> None:
    x = fc.source(SIGNED)
    roots = moved(x) + put_together(x)
    for root, found in zip(roots, resolve_on_gpu(*roots), strict=True):
        assert found.tobytes() == root.resolve(device="numpy", progress=False).tobytes(), root


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_what_moves_through_many_choices_is_computed_once(device: str) -> None:
    """Each choice has the one before it twice, so that to follow all ways would take for ever."""
    x = fc.source(SIGNED)
    moved = fc.sqrt(x)
    for limit in range(40):
        moved = fc.where(x < limit, moved, fc.positive(moved))
    found = fc.signbit(moved).resolve(device=device, progress=False)
    np.testing.assert_array_equal(found, fc.signbit(fc.sqrt(x)).resolve(device=device, progress=False))
