"""Reductions: of item axes (a map) and of the stream axis (a fold).

A reduction over both is built from two primitives, items first. The sum of a stream of rows is the fold of the sums of
rows. Its order is part of its meaning (see `ir.reduction_order`).
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.arguments import array_of, dtype_of, flag, meant, real, wholes
from flowcompute.elements.calls import public
from flowcompute.elements.compute import CAST, Compute, Constant, Operand, as_element, cast, truth
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.math.arithmetic import divide, maximum, minimum, sqrt, square, subtract
from flowcompute.elements.math.each_run import each, open_cut
from flowcompute.elements.math.logic import where
from flowcompute.elements.math.primitives import (
    ALL,
    ALL_FOLD,
    ANY,
    ANY_FOLD,
    ARGMAX,
    ARGMAX_FOLD,
    ARGMIN,
    ARGMIN_FOLD,
    MAX,
    MAX_FOLD,
    MEAN_FOLD,
    MIN,
    MIN_FOLD,
    PROD,
    PROD_FOLD,
    SUM,
    SUM_FOLD,
    VAR_FOLD,
    fold_stream,
    reduce_items,
)
from flowcompute.elements.op import Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecIndexError, short_repr
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64

Axis = int | tuple[int, ...] | None


def normalise_axes(op: str, element: Any, axis: Axis) -> tuple[int, ...]:
    """Return `axis` as sorted non-negative axes of `element`, the stream counting as axis 0."""
    ndim = element.ndim
    axes = range(ndim) if axis is None else wholes(op, "axis", axis, expected="an int, a tuple of ints or None")
    for one in axes:
        if not -ndim <= one < ndim:
            raise SpecIndexError(
                f"cannot find axis {one}",
                element=op,
                site=user_site(),
                expected=f"-{ndim} to {ndim - 1} for shape {element.spec}"
                if ndim
                else "no axis: the operand is a number",
                got=str(one),
            )
    normal = tuple(sorted(one % ndim for one in axes))
    if len(set(normal)) != len(normal):
        raise SpecError(
            "cannot reduce an axis twice", element=op, site=user_site(), expected="each axis once", got=short_repr(axis)
        )
    return normal


def split_axes(element: Any, axes: tuple[int, ...]) -> tuple[bool, tuple[int, ...]]:
    """Return whether the stream axis is among `axes`, and the others as item axes."""
    if not element.spec.is_stream:
        return False, axes
    return 0 in axes, tuple(axis - 1 for axis in axes if axis > 0)


def _both(item_op: Op, fold_op: Op, x: Any, axis: Axis, dtype: np.dtype, keepdims: bool) -> Compute:
    """Reduce over items and then over the stream: sum, prod, min, max, any, all."""
    keepdims = flag(item_op.name, "keepdims", keepdims)
    folded, axes = split_axes(x, normalise_axes(item_op.name, x, axis))
    if not folded and (runs := runs_of(item_op.name, (x,), axes, dtype, keepdims)) is not None:
        return runs
    if axes or not folded:
        x = reduce_items(item_op, (x,), x.spec.shape, axes, dtype, keepdims)
    return fold_stream(fold_op, (x,), x.spec.shape, dtype, keepdims) if folded else x


def runs_of(
    op: str, inputs: tuple[Any, ...], axes: tuple[int, ...], dtype: np.dtype, keepdims: bool, correction: float = 0.0
) -> Compute | None:
    """Reduce runs, the last of which may be shorter; return None where the inputs are no such runs.

    Raises:
        SpecError: where it reduces anything but the runs.
    """
    boundaries = [open_cut(_without_cast(x)) for x in inputs]
    every = {cut[1] for cut in boundaries if cut is not None}
    if not every:
        return None
    if None in boundaries or axes != (0,) or len(every) != 1 or keepdims:
        raise SpecError(
            'cannot reduce runs of unequal length (tail="emit") but along themselves',
            element=op,
            site=user_site(),
            expected="axis=1 and no keepdims",
            hint='use tail="pad" or "drop"',
        )
    streams = tuple(cast(cut[0], x.dtype) for cut, x in zip(boundaries, inputs, strict=True) if cut is not None)
    return each(op, streams, every.pop(), dtype, inputs[0].spec.shape[1:], correction)


def _without_cast(x: Any) -> Any:
    return x.inputs[0] if isinstance(x, Compute) and x.op is CAST else x


def _accumulating(dtype: np.dtype) -> np.dtype:
    """Return NumPy's dtype of sums and products."""
    return INT64 if dtype.kind in "bi" else UINT64 if dtype.kind == "u" else dtype


def _inner(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which means are computed: float64 for integers, float32 for half formats."""
    return FLOAT64 if dtype.kind in "biu" else FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def _outer(dtype: np.dtype) -> np.dtype:
    """Return the dtype of a mean."""
    return FLOAT64 if dtype.kind in "biu" else dtype


def _summing(item_op: Op, fold_op: Op, x: Operand, axis: Axis, dtype: npt.DTypeLike | None, keepdims: bool) -> Compute:
    element = as_element(x, item_op.name)
    result = _accumulating(element.dtype) if dtype is None else dtype_of(item_op.name, dtype)
    if result == BOOL:
        raise SpecError(
            "cannot give a bool result",
            element=item_op.name,
            site=user_site(),
            expected="a dtype of numbers",
            hint="use fc.any or fc.all",
        )
    # Half formats are summed in float32 and rounded once, at the end.
    wide = FLOAT32 if result in (FLOAT16, BFLOAT16) else result
    total = _both(item_op, fold_op, cast(element, wide), axis, wide, keepdims)
    return cast(total, result)  # type: ignore[return-value]


@public
def sum(x: Operand, axis: Axis = None, *, dtype: npt.DTypeLike | None = None, keepdims: bool = False) -> Compute:
    """Sum over `axis` (all axes by default; axis 0 of a stream is the stream).

    Integers and bools sum in int64 or uint64, floats in their own dtype with the error of
    pairwise summation; half formats in float32.

    Args:
        x: any element.
        axis: one axis, several, or None for all; the stream is axis 0.
        dtype: of the result.
        keepdims: whether reduced axes stay, with size 1.

    Raises:
        SpecError: for an axis out of range.
    """
    return _summing(SUM, SUM_FOLD, x, axis, dtype, keepdims)


@public
def prod(x: Operand, axis: Axis = None, *, dtype: npt.DTypeLike | None = None, keepdims: bool = False) -> Compute:
    """Multiply over `axis`; dtypes as for `sum`.

    Arguments and errors are those of `sum`.
    """
    return _summing(PROD, PROD_FOLD, x, axis, dtype, keepdims)


def _extreme(
    item_op: Op, fold_op: Op, either: Function, x: Operand, axis: Axis, keepdims: bool, initial: float | None
) -> Compute:
    element = as_element(x, item_op.name)
    if initial is None:
        _refuse_empty(item_op.name, element, axis)
        return _both(item_op, fold_op, element, axis, element.dtype, keepdims)
    first = _first(item_op.name, initial, element.dtype)
    axes = normalise_axes(item_op.name, element, axis)
    if builtins.any(element.shape[one] == 0 for one in axes):
        nothing = _both(ANY, ANY_FOLD, truth(element), axis, BOOL, keepdims)
        return where(nothing, first, first)
    return either(_both(item_op, fold_op, element, axis, element.dtype, keepdims), first)


def _first(op: str, initial: float, dtype: np.dtype) -> Constant:
    """Return the number that a reduction begins with.

    Raises:
        SpecError: if the dtype cannot hold it; floats may round.
    """
    words = f"a number that {dtype.name} can hold"
    held = array_of(op, "initial", initial, words, dtype, 0)
    if held.ndim or (dtype.kind in "biu" and held != initial):
        raise SpecError("cannot take initial=", element=op, site=user_site(), expected=words, got=short_repr(initial))
    return Constant(held)


@public
def min(x: Operand, axis: Axis = None, *, keepdims: bool = False, initial: float | None = None) -> Compute:
    """Return the smallest number over `axis`; NaN if there is one. See `max`.

    Arguments, dtype and errors are those of `max`; the identity of it is `initial=fc.inf`.
    """
    return _extreme(MIN, MIN_FOLD, minimum, x, axis, keepdims, initial)


@public
def max(x: Operand, axis: Axis = None, *, keepdims: bool = False, initial: float | None = None) -> Compute:
    """Return the largest number over `axis`; NaN if there is one. An empty axis is an error without `initial`.

    The dtype is that of `x`.

    Args:
        x: any element.
        axis: one axis, several, or None for all; the stream is axis 0.
        keepdims: whether reduced axes stay, with size 1.
        initial: a number that counts as one of those that are compared, so that an empty axis has a largest one.
            The identity is `initial=-fc.inf`. A stream of unknown length that turns out empty remains an error.

    Raises:
        SpecError: for an axis out of range, one without numbers, or an `initial` that the dtype cannot hold.
    """
    return _extreme(MAX, MAX_FOLD, maximum, x, axis, keepdims, initial)


@public
def any(x: Operand, axis: Axis = None, *, keepdims: bool = False) -> Compute:
    """Test whether any number over `axis` is non-zero.

    The result is bool; False over no numbers. Arguments and errors are those of `sum`, without `dtype`.
    """
    return _both(ANY, ANY_FOLD, truth(as_element(x, "any")), axis, BOOL, keepdims)


@public
def all(x: Operand, axis: Axis = None, *, keepdims: bool = False) -> Compute:
    """Test whether all numbers over `axis` are non-zero.

    The result is bool; True over no numbers. Arguments and errors are those of `sum`, without `dtype`.
    """
    return _both(ALL, ALL_FOLD, truth(as_element(x, "all")), axis, BOOL, keepdims)


def _refuse_empty(op: str, element: Any, axis: Axis) -> None:
    for one in normalise_axes(op, element, axis):
        if element.shape[one] == 0:
            raise SpecError(
                "cannot reduce an empty axis",
                element=op,
                site=user_site(),
                expected="an axis that holds numbers",
                got=f"axis {one} of {element.spec}",
            )


def _arg(item_op: Op, fold_op: Op, extreme_op: Op, x: Operand, axis: int | None, keepdims: bool) -> Compute:
    element, keepdims = as_element(x, item_op.name), flag(item_op.name, "keepdims", keepdims)
    if isinstance(axis, tuple):
        raise SpecError(
            "cannot search several axes",
            element=item_op.name,
            site=user_site(),
            expected="one axis or None",
            got=short_repr(axis),
        )
    _refuse_empty(item_op.name, element, axis)
    folded, axes = split_axes(element, normalise_axes(item_op.name, element, axis))
    if not folded and (runs := runs_of(item_op.name, (element,), axes, INT64, keepdims)) is not None:
        return runs
    if not folded:
        return reduce_items(item_op, (element,), element.spec.shape, axes, INT64, keepdims)
    if not axes:
        return fold_stream(fold_op, (element,), element.spec.shape, INT64, keepdims, inner=1)
    inner = math.prod(element.spec.shape)
    best = reduce_items(extreme_op, (element,), element.spec.shape, axes, element.dtype, keepdims)
    where = reduce_items(item_op, (element,), element.spec.shape, axes, INT64, keepdims)
    return fold_stream(fold_op, (best, where), best.spec.shape, INT64, keepdims, inner=inner)


@public
def argmin(x: Operand, axis: int | None = None, *, keepdims: bool = False) -> Compute:
    """Find the first smallest number along `axis` (of the flattened value when None): its index; the first NaN wins.

    Args:
        x: any element.
        axis: one axis, or None for all of them together.
        keepdims: whether the axis stays, with size 1.

    Returns:
        An element of int64.

    Raises:
        SpecError: for several axes, one out of range, or one without numbers.
    """
    return _arg(ARGMIN, ARGMIN_FOLD, MIN, x, axis, keepdims)


@public
def argmax(x: Operand, axis: int | None = None, *, keepdims: bool = False) -> Compute:
    """Find the first largest number along `axis` (of the flattened value when None): its index; the first NaN wins.

    The result is int64. Arguments and errors are those of `argmin`.
    """
    return _arg(ARGMAX, ARGMAX_FOLD, MAX, x, axis, keepdims)


def _item_mean(x: Any, axes: tuple[int, ...], keepdims: bool) -> Compute:
    count = math.prod(x.spec.shape[axis] for axis in axes)
    total = reduce_items(SUM, (x,), x.spec.shape, axes, x.dtype, keepdims)
    return divide(total, float(count))


@public
def mean(x: Operand, axis: Axis = None, *, keepdims: bool = False) -> Compute:
    """Return the mean over `axis`; of integers in float64, of half formats computed in float32. NaN when empty.

    Arguments and errors are those of `sum`, without `dtype`.
    """
    element, keepdims = as_element(x, "mean"), flag("mean", "keepdims", keepdims)
    result = _outer(element.dtype)
    wide = cast(element, _inner(element.dtype))
    folded, axes = split_axes(element, normalise_axes("mean", element, axis))
    if not folded and (runs := runs_of("mean", (wide,), axes, wide.dtype, keepdims)) is not None:
        return cast(runs, result)  # type: ignore[return-value]
    if axes or not folded:
        wide = _item_mean(wide, axes, keepdims)
    if folded:
        wide = fold_stream(MEAN_FOLD, (wide,), wide.spec.shape, wide.dtype, keepdims)
    return cast(wide, result)  # type: ignore[return-value]


@public
@meant(ddof="correction")
def var(x: Operand, axis: Axis = None, *, correction: float = 0, keepdims: bool = False) -> Compute:
    """Return the variance over `axis`, divided by count - `correction`; dtypes as for `mean`.

    Over the stream it takes one reading of blocks around a shift. They are merged by Chan, Golub and LeVeque, "Updating
    formulae and a pairwise algorithm for computing sample variances" (1979).

    Args:
        x: any element.
        axis: as of `sum`.
        correction: is subtracted from the count; 0 for a whole population.
        keepdims: whether reduced axes stay, with size 1.

    Raises:
        SpecError: for an axis out of range.
    """
    return _variance(as_element(x, "var"), axis, correction, keepdims)


@public
@meant(ddof="correction")
def std(x: Operand, axis: Axis = None, *, correction: float = 0, keepdims: bool = False) -> Compute:
    """Return the square root of `var`.

    Arguments, dtypes and errors are those of `var`.
    """
    element = as_element(x, "std")
    inner = cast(element, _inner(element.dtype))
    return cast(sqrt(_variance(inner, axis, correction, keepdims)), _outer(element.dtype))  # type: ignore[return-value]


def _variance(element: Any, axis: Axis, correction: float, keepdims: bool) -> Compute:
    result = _outer(element.dtype)
    correction, keepdims = real("var", "correction", correction), flag("var", "keepdims", keepdims)
    wide = cast(element, _inner(element.dtype))
    folded, axes = split_axes(element, normalise_axes("var", element, axis))
    if not folded and (runs := runs_of("var", (wide,), axes, wide.dtype, keepdims, correction)) is not None:
        return cast(runs, result)  # type: ignore[return-value]
    inner = math.prod(wide.spec.shape[item_axis] for item_axis in axes)
    if folded and not axes:
        value = fold_stream(VAR_FOLD, (wide,), wide.spec.shape, wide.dtype, keepdims, inner=1, correction=correction)
        return cast(value, result)  # type: ignore[return-value]
    centred = square(subtract(wide, _item_mean(wide, axes, True)))
    total = reduce_items(SUM, (centred,), wide.spec.shape, axes, wide.dtype, keepdims)
    if not folded:
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.maximum(wide.dtype.type(inner) - wide.dtype.type(correction), 0)
        return cast(divide(total, scale), result)  # type: ignore[return-value]
    # The whole variance is that inside items plus that of their means (law of total variance).
    means = _item_mean(wide, axes, keepdims)
    inside = divide(total, float(inner))
    value = fold_stream(
        VAR_FOLD, (means, inside), means.spec.shape, wide.dtype, keepdims, inner=inner, correction=correction
    )
    return cast(value, result)  # type: ignore[return-value]
