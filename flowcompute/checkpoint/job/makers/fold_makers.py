"""Makers of folds on the host and of scans; see `maker.py`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowcompute.checkpoint.job.makers.maker import HALF, Kept, require
from flowcompute.elements import Attrs, Constant, broadcast, common_length
from flowcompute.elements.nn import selective_scan
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64, is_float


def made_statistic(kept: Kept) -> Any:
    """Folds of one stream beyond reductions."""
    x, name, attrs, shape = kept.stream(), kept.op.name, kept.attrs, kept.spec.shape
    if name in ("first", "last"):
        require(x.spec.length != 0, "an empty stream")
        return kept.compute(x.dtype, x.spec.shape)
    if name in ("cov", "corrcoef"):
        require(x.ndim <= 2, "operands")
        extra = {"correction": attrs.real("correction")} if name == "cov" else {}
        return kept.compute(FLOAT64, 2 * x.spec.shape, None, extra)
    require(x.ndim == 1, "operands")
    if name == "quantile":
        return _made_quantile(kept, x)
    require(len(shape) == 1 and shape[0] >= 1, "shape")
    if name == "bincount":
        require(x.dtype.kind in "biu", "dtype")
        return kept.compute(INT64, shape)
    require(x.spec.length is None or shape[0] <= x.spec.length, "shape")
    return kept.compute(x.dtype if name == "top_k_values" else INT64, shape)


def _made_quantile(kept: Kept, x: Any) -> Any:
    wanted = kept.attrs.items("q", 1 << 20)
    require(all(type(one) is float and 0 <= one <= 1 for one in wanted), "q")
    require(math.prod(kept.spec.shape) == len(wanted), "q")
    base = FLOAT32 if x.dtype == BFLOAT16 else x.dtype
    floats = [np.result_type(base, other) for other in (FLOAT16, FLOAT32, FLOAT64)]
    require(kept.spec.dtype in (x.dtype if is_float(x.dtype) else FLOAT64, *floats), "dtype")
    return kept.compute(kept.spec.dtype, kept.spec.shape, None, {"q": tuple(wanted)})


def made_histogram(kept: Kept) -> Any:
    """Counts between edges that are known."""
    x, edges = kept.operands(2)
    require(x.spec.is_stream and isinstance(edges, Constant), "operands")
    values = edges.value
    require(values.ndim == 1 and len(values) > 1 and values.dtype.kind in "iuf", "edges")
    require(bool(np.all(values[:-1] <= values[1:])), "edges")
    return kept.compute(INT64, (len(values) - 1,), None, {"equal": kept.attrs.flag("equal")})


def made_segments(kept: Kept) -> Any:
    """Folds by key."""
    values, keys = kept.streams(2)
    name, shape = kept.op.name, kept.spec.shape
    require(keys.dtype.kind in "biu" and keys.spec.shape == (), "keys")
    require(shape[1:] == values.spec.shape and len(shape) == values.ndim and shape[0] >= 1, "shape")
    sums = (INT64, UINT64, FLOAT32, FLOAT64)
    allowed = {"segment_sum": sums, "segment_mean": sums[2:]}.get(name, (values.dtype,))
    require(values.dtype in allowed, "dtype")
    common_length(name, [values, keys])
    return kept.compute(values.dtype, shape)


def made_scan(kept: Kept) -> Any:
    """Scans of the tables."""
    x, name, attrs = kept.one(), kept.op.name, kept.attrs
    axis = attrs.maybe("axis", attrs.whole)
    require(x.spec.is_stream if axis is None else axis < len(x.spec.shape), "axis")
    require(x.dtype not in (BOOL, *HALF), "dtype")
    made: Attrs = {"axis": axis}
    if name in ("cumulative_sum", "cumulative_prod") and "exclusive" in attrs:
        made["exclusive"] = attrs.flag("exclusive")
    if name == "ema":
        alpha = made["alpha"] = attrs.take("alpha")
        require(type(alpha) in (int, float) and 0 < alpha <= 1 and axis is None and is_float(x.dtype), "alpha")
    return kept.compute(x.dtype, x.spec.shape, x.spec.stream, made)


def made_state_space(kept: Kept) -> Any:
    """A selective scan; what it was made of says its dtype and shape."""
    u, *others = kept.operands(5)
    require(kept.attrs.whole("axis") == 0 and u.dtype in (FLOAT32, FLOAT64), "operands")
    require(all(one.dtype == u.dtype for one in others), "dtype")
    return selective_scan(u, *others)


def made_recurrence(kept: Kept) -> Any:
    """A recurrence of factors and of what is added."""
    operands = list(kept.operands(2))
    require(operands[0].dtype == operands[1].dtype in (FLOAT32, FLOAT64), "dtype")
    aligned, shape, stream = broadcast(kept.op.name, operands)
    require(all(one is other for one, other in zip(aligned, operands, strict=True)), "operands")
    axis = kept.attrs.maybe("axis", kept.attrs.whole)
    require(stream is not None if axis is None else axis < len(shape), "axis")
    return kept.compute(operands[0].dtype, shape, stream, {"axis": axis})
