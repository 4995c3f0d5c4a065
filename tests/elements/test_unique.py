"""Different numbers and their counts: NumPy's, whatever the batches, within the bound that was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowcompute as fc
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES, is_float

SMALL = fc.Strategy(batch_bytes=64)
EDGES = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.5, -2.5, 1e-45]


def values_of(*elements: Any, device: str = "numpy", **options: Any) -> tuple[Any, ...]:
    return fc.run(*elements, device=device, progress=False, **options).values


@given(
    array=hnp.arrays("f4", st.integers(0, 60), elements=st.sampled_from(EDGES) | st.integers(-4, 4).map(float)),
    device=st.sampled_from(["numpy", "cpu"]),
    small=st.booleans(),
)
def test_numpys_values_of_floats(array: np.ndarray, device: str, small: bool) -> None:
    want, counts = np.unique(np.where(array == 0, 0, array), return_counts=True)
    # NumPy keeps the sign of one of the NaNs.
    want = np.where(np.isnan(want), np.float32(np.nan), want)
    x = fc.source(array)
    made = fc.unique_counts(x, max_values=30)
    alone = fc.unique_values(x * 1, max_values=30)
    values, times, again = values_of(*made, alone, device=device, strategy=SMALL if small else None)
    assert values.tobytes() == again.tobytes() == want.tobytes()
    assert times.tolist() == counts.tolist()
    assert times.dtype == np.int64
    assert not np.signbit(values[values == 0]).any()


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES, ids=str)
def test_every_dtype(dtype: np.dtype, device: str) -> None:
    numbers = np.random.default_rng(3).integers(0, 9, (700, 3)) - (4 if dtype.kind == "i" or is_float(dtype) else 0)
    array = numbers.astype(dtype)
    want = np.unique(array.astype("f8") if dtype == BFLOAT16 else array, return_counts=True)
    for x in (fc.source(array), fc.constant(array)):
        values, counts = values_of(*fc.unique_counts(x, max_values=9), device=device)
        assert values.dtype == dtype
        assert np.array_equal(values.astype("f8"), want[0].astype("f8"))
        assert counts.tolist() == want[1].tolist()
    assert np.array_equal(values_of(fc.unique_values(fc.constant(array)))[0].astype("f8"), want[0].astype("f8"))
    if dtype.itemsize <= 2:
        assert len(values_of(fc.unique_values(fc.source(array)))[0]) == len(want[0])


def test_streams_of_unknown_length_and_what_follows() -> None:
    x = fc.iterate([np.arange(5.0), np.arange(3.0)], shape=(), dtype="f8")
    values, counts = fc.unique_counts(x, max_values=8)
    assert values.shape == (None,)
    assert (values * counts).sum().resolve(device="numpy", progress=False) == 13
    assert values_of(fc.unique_values(np.ones((0, 3))), fc.unique_values(4)) == (pytest.approx([]), pytest.approx([4]))


def test_more_than_have_room() -> None:
    x = fc.source(np.arange(1000))
    with pytest.raises(fc.RunError, match="cannot keep so many different numbers") as caught:
        fc.unique_values(x, max_values=999).resolve(device="numpy", progress=False)
    assert "max_values=" in str(caught.value)
    assert "test_unique.py" in str(caught.value)
    assert "at most 999" in str(caught.value)
    assert len(values_of(fc.unique_values(x, max_values=1000))[0]) == 1000


def test_from_a_checkpoint(tmp_path: Path) -> None:
    array = np.random.default_rng(5).integers(0, 50, 20_000)
    np.save(tmp_path / "x.npy", array)
    made = fc.unique_counts(fc.open(tmp_path / "x.npy"), max_values=64)
    kept, seen = tmp_path / "kept", []

    def watch(run: fc.Run) -> None:
        seen.append(run)
        if len(seen) == 3:
            run.freeze()

    small = fc.Strategy(batch_bytes=1 << 12)
    run = fc.start(*made, device="numpy", progress=False, strategy=small, on_batch=watch, checkpoint=kept)
    with pytest.raises(fc.RunError, match="was frozen"):
        run.wait()
    for values in (fc.thaw(kept).run(device="numpy", progress=False).values, values_of(*made, checkpoint=kept)):
        for value, want in zip(values, np.unique(array, return_counts=True), strict=True):
            assert np.array_equal(value, want)


def test_a_bound_is_needed() -> None:
    x = fc.source(np.arange(10))
    with pytest.raises(fc.SpecError, match="without a bound"):
        fc.unique_values(x)
    with pytest.raises(ValueError, match="max_values="):
        fc.unique_counts(x, max_values=0)
    with pytest.raises(TypeError, match="max_values="):
        fc.unique_counts(x, max_values=1.5)
    with pytest.raises(AttributeError, match=r"fc\.unique_values\(x, max_values=n\): positions"):
        _ = fc.unique_inverse
    with pytest.raises(fc.SpecTypeError, match=r"fc\.unique_values\(x, max_values=n\)"):
        np.unique(x)
