"""The primitives of reductions: of item axes (a map), and of the stream axis (a fold).

The order in which a primitive takes its numbers is part of its meaning; see `ir.reduction_order`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from flowcompute.elements.alignment import common_length
from flowcompute.elements.compute import Compute
from flowcompute.elements.op import Attrs, KeptOp, Kind, Op
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, Spec


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("reductions state their dtypes themselves")


def reduce_items(
    op: Op, inputs: tuple[Any, ...], shape: tuple[int, ...], axes: tuple[int, ...], dtype: np.dtype, keepdims: bool
) -> Compute:
    """Make the primitive over item axes (over axes of the whole value when resident)."""
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape) if keepdims or axis not in axes)
    attrs: Attrs = {"axes": axes, "keepdims": keepdims}
    return Compute(op, inputs, Spec(dtype, kept, inputs[0].spec.stream), attrs)


def fold_stream(
    op: Op, inputs: tuple[Any, ...], shape: tuple[int, ...], dtype: np.dtype, keepdims: bool, **attrs: Any
) -> Compute:
    """Make the primitive over the stream axis."""
    return Compute(op, inputs, Spec(dtype, (1, *shape) if keepdims else shape), {**attrs, "keepdims": keepdims})


def reduced_dtype(kept: KeptOp, reduction: str, dtype: np.dtype) -> np.dtype:
    """Return the dtype of the primitive of a kept reduction.

    Args:
        kept: the operation.
        reduction: the name of the reduction.
        dtype: the dtype of its operands.

    Raises:
        CheckpointError: if the primitive is not computed in that dtype.
    """
    if reduction in ("argmin", "argmax"):
        return INT64
    if reduction in ("any", "all"):
        return BOOL
    if reduction in ("sum", "prod", "vecdot"):
        kept.require(dtype not in (BOOL, FLOAT16, BFLOAT16), f"a dtype that {reduction} is computed in")
    if reduction in ("mean", "var"):
        kept.require(dtype in (FLOAT32, FLOAT64), f"a dtype that {reduction} is computed in")
    return dtype


def _rebuild_items(kept: KeptOp) -> Compute:
    """Make the primitive over item axes again: the default of reductions."""
    op, x = kept.op, kept.one()
    shape, axes, keepdims = x.spec.shape, kept.attrs.wholes("axes"), kept.attrs.flag("keepdims")
    ascend = all(a < b for a, b in pairwise(axes))
    kept.require(ascend and all(axis < len(shape) for axis in axes), "item axes in ascending order")
    kept.require(op.name in _OF_NOTHING or all(shape[axis] for axis in axes), "axes that hold numbers")
    return reduce_items(op, (x,), shape, axes, reduced_dtype(kept, op.name, x.dtype), keepdims)


def _rebuild_fold(kept: KeptOp) -> Compute:
    """Make the primitive over the stream axis again: the default of reductions."""
    x = kept.stream()
    dtype = reduced_dtype(kept, kept.op.name, x.dtype)
    return fold_stream(kept.op, (x,), x.spec.shape, dtype, kept.attrs.flag("keepdims"))


def _rebuild_paired_fold(kept: KeptOp) -> Compute:
    """Make a fold again whose second operand, if any, belongs to the items that the first one was reduced from."""
    name, attrs = kept.op.name, kept.attrs
    x, *others = kept.streams(1, 2)
    least, other = (0, x.dtype) if name == "var" else (1, INT64)
    extra: Attrs = {"inner": attrs.whole("inner", least=least)}
    kept.require(bool(others) or extra["inner"] == 1, "a second operand for items of several numbers")
    same = all((one.spec.shape, one.dtype) == (x.spec.shape, other) for one in others)
    kept.require(same, f"a second operand of the shape of the first, in {other.name}")
    common_length(name, [x, *others])
    if name == "var":
        extra["correction"] = attrs.real("correction")
    dtype = reduced_dtype(kept, name, x.dtype)
    return fold_stream(kept.op, kept.inputs, x.spec.shape, dtype, attrs.flag("keepdims"), **extra)


_OF_NOTHING = ("sum", "prod", "any", "all")
"""Reductions that have a value over no numbers."""


def _items(name: str, numpy: Callable[..., Any]) -> Op:
    """Return the primitive of a reduction over item axes."""
    return Op(name, 1, Kind.REDUCE, numpy, _declared, cost=100, rebuild=_rebuild_items)


def _fold(name: str, numpy: Callable[..., Any], *, paired: bool = False) -> Op:
    """Return the primitive of a reduction over the stream axis; `paired` where a second operand may stand beside."""
    rebuild = _rebuild_paired_fold if paired else _rebuild_fold
    return Op(name, 2 if name == "var" else 1, Kind.FOLD, numpy, _declared, cost=100, rebuild=rebuild)


SUM, SUM_FOLD = _items("sum", np.sum), _fold("sum", np.sum)
PROD, PROD_FOLD = _items("prod", np.prod), _fold("prod", np.prod)
MIN, MIN_FOLD = _items("min", np.min), _fold("min", np.min)
MAX, MAX_FOLD = _items("max", np.max), _fold("max", np.max)
ANY, ANY_FOLD = _items("any", np.any), _fold("any", np.any)
ALL, ALL_FOLD = _items("all", np.all), _fold("all", np.all)
# Second input of these, when there is one: the place of the number inside its item.
ARGMIN, ARGMIN_FOLD = _items("argmin", np.argmin), _fold("argmin", np.argmin, paired=True)
ARGMAX, ARGMAX_FOLD = _items("argmax", np.argmax), _fold("argmax", np.argmax, paired=True)
MEAN_FOLD = _fold("mean", np.mean)
# Second input, when there is one: the variance inside items whose mean is the first input.
VAR_FOLD = _fold("var", np.var, paired=True)
