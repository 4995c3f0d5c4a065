"""Makers of element-wise operations, reductions and products; see `maker.py`."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from flowcompute.checkpoint.job.makers.maker import HALF, Kept, require
from flowcompute.elements import Attrs, Compute, Constant, broadcast, common_length, elementwise
from flowcompute.elements.generated import Generator, generated_spec
from flowcompute.elements.math import MATMUL, MATMUL_FOLD, each, fold_stream, matmul, reduce_items, vecdot, where
from flowcompute.elements.nn import ATTENTION, attention
from flowcompute.spec import BOOL, FLOAT32, FLOAT64, INT64, UINT64, Spec, Stream

# -- element by element ------------------------------------------------------------------------------


def made_elementwise(kept: Kept) -> Any:
    """By the table's own rules."""
    return elementwise(kept.op, *kept.operands(kept.op.arity))


def made_where(kept: Kept) -> Any:
    """`fc.where`."""
    return where(*kept.operands(3))


def made_cast(kept: Kept) -> Any:
    """A cast to any dtype, its own included."""
    x, dtype = kept.one(), kept.attrs.take("dtype")
    require(isinstance(dtype, np.dtype), "dtype")
    return kept.compute(dtype, x.spec.shape, x.spec.stream, {"dtype": dtype})


def made_generator(kept: Kept) -> Any:
    """Numbers made of their positions and of constants."""
    assert isinstance(kept.op, Generator)
    for one in kept.operands(kept.op.arity):
        require(isinstance(one, Constant) and one.spec == Spec(UINT64, ()), "a key")
    dtypes = {"range": (INT64,), "integers": (UINT64,)}
    allowed = dtypes.get(kept.op.name, (FLOAT32 if kept.op.bits == 32 else FLOAT64,))
    require(kept.spec.dtype in allowed, "dtype")
    spec = generated_spec(kept.op.name, kept.spec.dtype, kept.spec.shape, kept.spec.length or 0)
    return Compute(kept.op, kept.inputs, spec)


def made_along(kept: Kept) -> Any:
    """A resident value cut along the stream."""
    x = kept.one()
    require(not x.spec.is_stream and x.ndim > 0, "a resident value with rows")
    return kept.compute(x.dtype, x.spec.shape[1:], Stream(x.spec.shape[0]))


# -- reductions --------------------------------------------------------------------------------------


def made_reduction(kept: Kept) -> Any:
    """The primitive over item axes."""
    op, name = kept.op, kept.op.name
    if name == "vecdot":
        left, right = kept.operands(2)
        (axis,) = kept.attrs.wholes("axes", length=1) or (0,)
        require(not kept.attrs.flag("keepdims"), "keepdims")
        return vecdot(left, right, axis + (left.spec.is_stream or right.spec.is_stream))
    x = kept.one()
    shape = x.spec.shape
    axes, keepdims = kept.attrs.wholes("axes"), kept.attrs.flag("keepdims")
    require(all(a < b for a, b in pairwise(axes)) and all(a < len(shape) for a in axes), "axes")
    require(name in ("sum", "prod", "any", "all") or all(shape[axis] for axis in axes), "axes")
    return reduce_items(op, (x,), shape, axes, _reduced(name, x.dtype), keepdims)


def _reduced(name: str, dtype: np.dtype) -> np.dtype:
    """The dtype of the primitive's result."""
    if name in ("argmin", "argmax"):
        return INT64
    if name in ("any", "all"):
        return BOOL
    if name in ("sum", "prod", "vecdot"):
        require(dtype not in (BOOL, *HALF), "dtype")
    if name in ("mean", "var"):
        require(dtype in (FLOAT32, FLOAT64), "dtype")
    return dtype


def made_fold(kept: Kept) -> Any:
    """The primitive over the stream axis."""
    name, attrs = kept.op.name, kept.attrs
    keepdims = attrs.flag("keepdims")
    if name == "vecdot":
        inputs = kept.operands(2)
        aligned, shape, stream = broadcast(name, list(inputs))
        require(stream is not None and all(map(_is, aligned, inputs)), "operands")
        require(inputs[0].dtype == inputs[1].dtype and not keepdims, "operands")
        return fold_stream(kept.op, inputs, shape, _reduced(name, inputs[0].dtype), False)
    several = name in ("argmin", "argmax", "var")
    inputs = kept.streams(*((1, 2) if several else (1,)))
    x, shape = inputs[0], inputs[0].spec.shape
    extra: Attrs = {}
    if several:
        extra["inner"] = attrs.whole("inner", least=1 if name != "var" else 0)
        require(len(inputs) == 2 or extra["inner"] == 1, "inner")
        other = INT64 if name != "var" else x.dtype
        require(len(inputs) == 1 or (inputs[1].spec.shape, inputs[1].dtype) == (shape, other), "operands")
        common_length(name, list(inputs))
    if name == "var":
        extra["correction"] = attrs.real("correction")
    return fold_stream(kept.op, inputs, shape, _reduced(name, x.dtype), keepdims, **extra)


def _is(one: object, other: object) -> bool:
    return one is other


_EACH = ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean", "var", "vecdot")


def made_each(kept: Kept) -> Any:
    """A fold begun anew every so many records."""
    fold = kept.attrs.choice("fold", _EACH)
    inputs = kept.streams(2 if fold == "vecdot" else 1)
    every, correction = kept.attrs.whole("every", least=1), kept.attrs.real("correction")
    x = inputs[0]
    require(all(one.dtype == x.dtype and one.spec.shape == x.spec.shape for one in inputs), "operands")
    common_length(fold, list(inputs))
    return each(fold, inputs, every, _reduced(fold, x.dtype), x.spec.shape, correction)


# -- products ----------------------------------------------------------------------------------------


def made_product(kept: Kept) -> Any:
    """Matrix products, and those whose right factor is windows."""
    left, right = kept.operands(2)
    if "depth" not in kept.attrs:
        dtype = kept.attrs.take("dtype") if "dtype" in kept.attrs else None
        require(dtype is None or isinstance(dtype, np.dtype), "dtype")
        made: Any = matmul(left, right, dtype=dtype)
        return made if made.op is MATMUL else made.inputs[0]  # before it is rounded to a half format
    depth, columns = kept.attrs.whole("depth", least=1, most=63), kept.attrs.whole("columns", least=1, most=63)
    seen, weights = right.spec.shape, left.spec.shape
    own = len(seen) - depth - columns
    require(not left.spec.is_stream and len(weights) > 1 and own >= 0, "operands")
    require(left.dtype == right.dtype and left.dtype not in (BOOL, *HALF), "dtype")
    require(math.prod(seen[own : own + depth]) == weights[-1], "depth")
    try:
        lead = np.broadcast_shapes(weights[:-2], seen[:own])
    except ValueError:
        lead = ()
        require(False, "operands")
    shape = (*lead, weights[-2], *seen[own + depth :])
    return kept.compute(left.dtype, shape, right.spec.stream, {"depth": depth, "columns": columns})


def made_product_fold(kept: Kept) -> Any:
    """`X.T @ Y` of two streams."""
    streams = kept.streams(1, 2)
    left, right = streams[0], streams[-1]
    require(left.ndim <= 2 >= right.ndim, "operands")
    made: Any = matmul(left if left.ndim == 1 else left.T, right)
    # Of one operand it is where a user's formula has the same element twice, of two equal ones where it was made twice.
    return Compute(MATMUL_FOLD, streams, made.spec) if len(streams) == 2 and left is right else made


def made_attention(kept: Kept) -> Any:
    """`fc.nn.attention`, before its result is rounded."""
    q, k, v, *mask = kept.operands(3, 4)
    attrs = kept.attrs
    made: Any = attention(
        q,
        k,
        v,
        causal=attrs.flag("causal"),
        window=attrs.maybe("window", attrs.whole),
        mask=mask[0] if mask else None,
        scale=attrs.real("scale"),
    )
    return made if made.op is ATTENTION else made.inputs[0]
