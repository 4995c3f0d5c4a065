"""Folds by key: how often each key comes, and sums, means and extremes of the records of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.alignment import common_length
from flowcompute.elements.arguments import meant, whole
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.math import cut_along
from flowcompute.elements.op import KeptOp, Op
from flowcompute.elements.site import user_site
from flowcompute.elements.streams.statistics import fold_op, folded_stream, kept_size, make_fold
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64, is_float


def _rebuild_bincount(kept: KeptOp) -> Compute:
    return bincount(kept.one(), kept_size(kept))


def _rebuild_segments(kept: KeptOp) -> Compute:
    values, keys = kept.streams(2)
    fold = {"sum": sum_rows_by_key, "mean": segment_mean, "min": segment_min, "max": segment_max}
    kept.require(len(kept.spec.shape) > 0, "a result with an axis of keys")
    return fold[kept.op.name.removeprefix("segment_")](values, keys, kept.spec.shape[0])


BINCOUNT = fold_op("bincount", np.bincount, _rebuild_bincount)
SEGMENT_SUM = fold_op("segment_sum", np.add.at, _rebuild_segments, 2)
SEGMENT_MEAN = fold_op("segment_mean", np.add.at, _rebuild_segments, 2)
SEGMENT_MIN = fold_op("segment_min", np.minimum.at, _rebuild_segments, 2)
SEGMENT_MAX = fold_op("segment_max", np.maximum.at, _rebuild_segments, 2)


def _keys(op: str, keys: Any) -> Any:
    if keys.dtype.kind not in "biu":
        raise SpecError(
            "cannot fold by keys that are no integers",
            element=op,
            site=user_site(),
            expected="keys of an integer dtype",
            got=keys.dtype.name,
            hint='cast them with .astype("int64")',
        )
    return keys


@public
@meant(minlength="length")
def bincount(x: Operand, length: int) -> Compute:
    """Count how often each integer from 0 to `length - 1` comes, as int64 `(length,)`.

    Args:
        x: a stream of integers.
        length: how many there may be; unlike NumPy's `minlength` the result never has more.

    Raises:
        SpecError: if `x` is no stream of integers. One that is out of range is a RunError naming its record.
    """
    keys = _keys("bincount", folded_stream("bincount", x, (1,)))
    return make_fold(BINCOUNT, (keys,), (whole("bincount", "length", length, 1, expected="a positive int"),), INT64)


def _segments(
    op: Op, x: Operand, keys: Operand, num_segments: int, wide: np.dtype, result: np.dtype, *, of_rows: bool = False
) -> Compute:
    values, named = as_element(x, op.name), as_element(keys, op.name)
    stream = values if values.spec.is_stream else folded_stream(op.name, named)
    values, named = cut_along(op.name, cast(values, wide), stream), cut_along(op.name, _keys(op.name, named), stream)
    row = values.spec.shape[len(named.spec.shape) :]
    if named.ndim != 1 and not (of_rows and values.spec.shape == (*named.spec.shape, *row)):
        raise SpecError(
            "cannot fold by keys of several numbers",
            element=op.name,
            site=user_site(),
            expected="a stream of single numbers",
            got=str(named.spec),
        )
    common_length(op.name, [values, named])
    shape = (whole(op.name, "num_segments", num_segments, 1, expected="a positive int"), *row)
    return cast(make_fold(op, (values, named), shape, wide), result)  # type: ignore[return-value]


@public
def segment_sum(x: Operand, keys: Operand, num_segments: int) -> Compute:
    """Sum the records of each key, `(num_segments, *item)`; 0 for a key without records.

    Integers and bools sum in int64 or uint64. Floats are added record after record in float64, and rounded once to
    their dtype. The error is at most n * 2^-53 of the sum of n magnitudes.

    Args:
        x: a stream of items.
        keys: a stream of integers beside it, or a resident vector with one for each record.
        num_segments: how many keys there are.

    Raises:
        SpecError: if these do not fit. A key from outside 0 to `num_segments - 1` is a RunError naming its record.
    """
    return _summed(x, keys, num_segments, of_rows=False)


def sum_rows_by_key(x: Operand, keys: Operand, num_segments: int) -> Compute:
    """Sum rows of items by key, as `segment_sum` does: one key for each, `(num_segments, *row)`.

    Args:
        x: a stream of items `(*rows, *row)`.
        keys: a stream of integers `(*rows)` beside it.
        num_segments: how many keys there are.
    """
    return _summed(x, keys, num_segments, of_rows=True)


def _summed(x: Operand, keys: Operand, num_segments: int, *, of_rows: bool) -> Compute:
    dtype = as_element(x, "segment_sum").dtype
    result = INT64 if dtype.kind in "bi" else UINT64 if dtype.kind == "u" else dtype
    return _segments(SEGMENT_SUM, x, keys, num_segments, _wide(result), result, of_rows=of_rows)


@public
def segment_mean(x: Operand, keys: Operand, num_segments: int) -> Compute:
    """Return the mean of the records of each key, NaN without records; integers in float64. See `segment_sum`."""
    dtype = as_element(x, "segment_mean").dtype
    result = dtype if is_float(dtype) else FLOAT64
    return _segments(SEGMENT_MEAN, x, keys, num_segments, _wide(result), result)


@public
def segment_min(x: Operand, keys: Operand, num_segments: int) -> Compute:
    """Return the smallest numbers of the records of each key, NaN if there is one.

    For a key without records it is what is no smaller than any number: infinity, the largest
    integer, True. Arguments as for `segment_sum`.
    """
    dtype = as_element(x, "segment_min").dtype
    return _segments(SEGMENT_MIN, x, keys, num_segments, dtype, dtype)


@public
def segment_max(x: Operand, keys: Operand, num_segments: int) -> Compute:
    """Return the largest numbers of the records of each key, -infinity (the smallest integer, False) without any.

    NaN if there is one. Arguments as for `segment_sum`.
    """
    dtype = as_element(x, "segment_max").dtype
    return _segments(SEGMENT_MAX, x, keys, num_segments, dtype, dtype)


def _wide(dtype: np.dtype) -> np.dtype:
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype
