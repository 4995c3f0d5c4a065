"""Host folds over zeros of both signs, infinities, NaN and the ends of integers, and over too few records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowcompute.engine.accumulators.ordered import from_ordered, to_ordered
from flowcompute.engine.accumulators.table import make_fold
from flowcompute.ir.fold_spec import host_fold
from flowcompute.spec import BFLOAT16, INT64, SUPPORTED_DTYPES, Spec, Stream, is_float


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES, ids=str)
def test_ordered_integers(dtype: np.dtype) -> None:
    if is_float(dtype):
        numbers = np.array([-np.inf, -3, -1e-3, -0.0, 0.0, 1e-3, 3, np.inf]).astype(dtype)
    elif dtype == np.bool_:
        numbers = np.array([False, True])
    else:
        info = np.iinfo(dtype)
        numbers = np.array([info.min, info.min + 1, info.max - 1, info.max], dtype)
    ordered = to_ordered(numbers)
    assert ordered.dtype.kind in "iu"
    assert (ordered[:-1] < ordered[1:]).all()
    assert from_ordered(ordered, dtype).tobytes() == numbers.tobytes()
    if is_float(dtype):
        nan = np.array([np.nan, -np.nan]).astype(dtype)
        assert (to_ordered(nan) > ordered.max()).all()
        assert (to_ordered(nan, nan_first=True) < ordered.min()).all()
        assert np.isnan(from_ordered(to_ordered(nan), dtype)).all()
        assert np.isnan(from_ordered(to_ordered(nan, nan_first=True), dtype)).all()


@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "f4", "f8"], ids=str)
def test_extremes_of_segments(dtype: Any) -> None:
    x = np.array([0.0, -0.0, -0.0, 0.0, np.nan, 7, np.inf, -np.inf, 1]).astype(dtype)
    keys = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4])
    found = {}
    for op in ("segment_min", "segment_max"):
        operands = [Spec(x.dtype, (), Stream(None)), Spec(keys.dtype, (), Stream(None))]
        accumulator = make_fold(host_fold(op, operands, {}, Spec(x.dtype, (6,))))
        accumulator.push_records([x, keys])
        found[op] = accumulator.result().astype("f8")
    assert np.array_equal(found["segment_min"], [0, 0, np.nan, -np.inf, 1, np.inf], equal_nan=True)
    assert np.array_equal(found["segment_max"], [0, 0, np.nan, np.inf, 1, -np.inf], equal_nan=True)
    assert np.signbit(found["segment_min"][:2]).all()
    assert not np.signbit(found["segment_max"][:2]).any()


@pytest.mark.parametrize("dtype", ["f2", BFLOAT16, "f4", "f8"], ids=str)
def test_top_k_of_special_values(dtype: Any) -> None:
    x = np.array([1, -0.0, 0.0, np.inf, np.nan, 3, -np.nan, np.inf, -np.inf, 0.0]).astype(dtype)
    order = [4, 6, 3, 7, 5, 0, 1, 2, 9, 8]
    for k in (1, 2, 5, 9, 10):
        operands = [Spec(x.dtype, (), Stream(None))]
        values = make_fold(host_fold("top_k_values", operands, {}, Spec(x.dtype, (k,))))
        indices = make_fold(host_fold("top_k_indices", operands, {}, Spec(INT64, (k,))))
        for part in (x[:1], x[1:4], x[4:]):
            values.push_records([part])
            indices.push_records([part])
        assert indices.result().tolist() == order[:k]
        want = x[order[:k]].astype("f8")
        assert np.array_equal(values.result().astype("f8"), want, equal_nan=True)
        assert np.array_equal(np.signbit(values.result())[2:], np.signbit(want)[2:])


def test_too_few_records() -> None:
    operands = [Spec(INT64, (), Stream(None))]
    accumulator = make_fold(host_fold("top_k_values", operands, {}, Spec(INT64, (4,))))
    accumulator.push_records([np.arange(3)])
    with pytest.raises(ValueError, match="4 records were asked for, and the stream has 3"):
        accumulator.result()
    for op in ("first", "last"):
        with pytest.raises(ValueError, match=f"cannot take the {op} record"):
            make_fold(host_fold(op, operands, {}, Spec(INT64, ()))).result()
