"""The bits of numbers as those of another dtype, as `ndarray.view`, on each backend."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowcompute as fc

rng = np.random.default_rng(3)
WIDTHS = [("i1", "u1"), ("i2", "u2"), ("i4", "u4", "f4"), ("i8", "u8", "f8")]
PAIRS = [pair for dtypes in WIDTHS for pair in itertools.permutations(dtypes, 2)]
DEVICES = ["numpy", pytest.param("cpu", marks=pytest.mark.slow)]


def any_bits(dtype: str, count: int = 999) -> np.ndarray:
    """Numbers of any bits: subnormals, infinities, zeros of both signs, and NaNs with a sign and a payload."""
    array = np.frombuffer(rng.bytes(count * np.dtype(dtype).itemsize), dtype).copy()
    if array.dtype.kind == "f":
        array[:9] = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -5e-324, 1.0]
        array[9:11] = array.view(f"u{array.itemsize}").max() - np.arange(2)  # a large number, for the others
        whole = array.view(f"u{array.itemsize}")
        whole[11:13] = (2 << (8 * array.itemsize - 2)) - np.array([1, 5], whole.dtype)  # NaNs with payloads
    return array


@pytest.mark.parametrize("device", DEVICES)
def test_bits_are_those_of_numpy(device: str) -> None:
    """Bits of files and of integers, whatever they are: nothing is rounded, and no NaN becomes another."""
    for source, target in PAIRS:
        array = any_bits(source)
        streamed = fc.view(fc.source(array), target)
        got = streamed.resolve(device=device, progress=False, strategy=fc.Strategy(batch_bytes=256))
        assert got.dtype == target
        assert got.tobytes() == array.view(target).tobytes(), (source, target)


@pytest.mark.parametrize("device", DEVICES)
def test_bits_of_what_is_computed_are_those_that_would_be_stored(device: str) -> None:
    """A NaN that an operation makes in registers is the one in memory."""
    x = np.array([-1.0, 0.25, 4.0, -0.0, np.inf] * 7, "f4")
    root = fc.sqrt(fc.source(x))
    fused, stored = fc.view(root, "u4"), root * 1
    found = fc.resolve(fused, stored, device=device, progress=False)
    assert found[0].tobytes() == found[1].tobytes()
    assert found[0][0] == 0x7FC00000


@pytest.mark.parametrize("device", DEVICES)
def test_there_and_back_in_one_kernel(device: str) -> None:
    """The exponent of floats by shifts, and a float made of its fraction."""
    x = fc.source(np.abs(rng.standard_normal((40, 3))).astype("f4"))
    bits = fc.view(x, "uint32")
    fraction = fc.view((bits & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000), "float32")
    exponent = (bits >> np.uint32(23)).astype("int32") - 127
    made = fraction * 2.0 ** exponent.astype("float32")
    assert len(fc.plan(made, device="cpu").kernels) == 1
    got = made.resolve(device=device, progress=False)
    np.testing.assert_array_equal(got, x.resolve(device="numpy"))


def test_bools_are_bytes() -> None:
    flags = fc.source(np.array([True, False, True]))
    assert fc.view(flags, "uint8").resolve(device="numpy").tolist() == [1, 0, 1]
    assert fc.view(flags, "int8").resolve(device="numpy").dtype == np.int8
    assert fc.view(flags, "bool").resolve(device="numpy").tolist() == [True, False, True]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3, 1)])
def test_shapes_stay(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, "f8")
    np.testing.assert_array_equal(fc.view(fc.constant(x), "i8").resolve(device="numpy"), x.view("i8"), strict=True)


@pytest.mark.parametrize(
    ("array", "dtype"),
    [(np.ones(2, "f4"), "f8"), (np.ones(2, "f2"), "u2"), (np.ones(2, "u2"), "bfloat16"), (np.ones(2, "u1"), "bool")],
)
def test_other_widths_are_refused(array: Any, dtype: str) -> None:
    with pytest.raises(fc.SpecError, match="cannot see these numbers") as caught:
        fc.view(fc.source(array), dtype)
    assert caught.value.hint
    with pytest.raises(fc.SpecError):
        fc.view(fc.source(array), "complex64")
