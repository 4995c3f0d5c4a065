"""Sorting inside of items, stable: NaN counts as the largest number, and -0 equals +0."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from flowcompute.elements.arguments import flag, whole
from flowcompute.elements.axes import moveaxis, reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element
from flowcompute.elements.math import normalise_axes
from flowcompute.elements.op import MOST, KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import FLOAT32, INT64, Spec, is_float

_AT_ONCE_BYTES = 1 << 20
"""Sorting needs room for copies: so much is sorted at once, which the room for results in the plan exceeds by far."""


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("sorting states its dtypes itself")


def _rebuild_sort(kept: KeptOp) -> Any:
    x = kept.one()
    kept.require(bool(x.spec.shape), "items that have axes")
    return _ordered(kept.op, x, kept.attrs.flag("descending"))


def sorted_rows(array: np.ndarray, *, descending: bool) -> np.ndarray:
    """Sort an array along its last axis."""
    return _in_slabs(_sorted, array, array.dtype, descending)


def argsorted_rows(array: np.ndarray, *, descending: bool) -> np.ndarray:
    """Return the places of an array's numbers along its last axis in their order, as int64."""
    return _in_slabs(_argsorted, array, INT64, descending)


def _in_slabs(order: Any, array: np.ndarray, dtype: np.dtype, descending: bool) -> np.ndarray:
    """Order an array in slabs of bounded size along its first axis."""
    if array.ndim == 1:
        return np.asarray(order(array, descending))
    made = np.empty(array.shape, dtype)
    step = max(1, _AT_ONCE_BYTES * array.shape[0] // max(1, array.nbytes))
    for start in range(0, array.shape[0] if array.size else 0, step):
        made[start : start + step] = order(array[start : start + step], descending)
    return made


def _sorted(array: np.ndarray, descending: bool) -> np.ndarray:
    # Equal integers cannot be told apart, and NumPy's fastest sort is not stable.
    kind: Literal["stable"] | None = "stable" if is_float(array.dtype) else None
    if not descending:
        return np.sort(_comparable(array), -1, kind).astype(array.dtype, copy=False)
    turned = np.sort(_comparable(array[..., ::-1]), -1, kind)
    return turned[..., ::-1].astype(array.dtype, copy=False)


def _argsorted(array: np.ndarray, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(_comparable(array), -1, "stable")
    # Turned over before and after, equal ones stay in their order.
    turned = np.argsort(_comparable(array[..., ::-1]), -1, "stable")
    return np.asarray(array.shape[-1] - 1 - turned[..., ::-1])


def _comparable(array: np.ndarray) -> np.ndarray:
    """Return half formats as float32: NumPy knows no order of bfloat16 in which NaN is last."""
    return array.astype(FLOAT32) if is_float(array.dtype) and array.dtype.itemsize == 2 else array


SORT = Op("sort", 1, Kind.VIEW, sorted_rows, _declared, arithmetic=False, rebuild=_rebuild_sort)
ARGSORT = Op("argsort", 1, Kind.VIEW, argsorted_rows, _declared, arithmetic=False, rebuild=_rebuild_sort)


@public
def sort(x: Operand, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """Sort the numbers along an axis of items, as `numpy.sort`; NaN counts as the largest.

    GPUs sort rows of up to 2048 numbers in a kernel, with what is computed before and after. Longer ones, and rows on
    CPUs, are sorted by the host, batch by batch.

    Args:
        x: any element.
        axis: of any length, but not the stream. None flattens a resident value first.
        descending: whether the largest come first, NaN before them.
        stable: equal numbers, as -0 and +0, keep their order in either case.

    Raises:
        SpecError: for an axis out of range, or the stream: all of it would have to be in memory.
    """
    return _along(SORT, x, axis, descending, stable)


@public
def argsort(x: Operand, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """Return the places of numbers along an axis of items in their order, as int64; otherwise as `sort`.

    Equal numbers keep their order.
    """
    return _along(ARGSORT, x, axis, descending, stable)


def _along(op: Op, x: Operand, axis: int | None, descending: bool, stable: bool) -> Any:
    element: Any = as_element(x, op.name)
    turned = flag(op.name, "descending", descending)
    flag(op.name, "stable", stable)
    if axis is None and not element.spec.is_stream:
        element, axis = reshape(element, (-1,)), 0
    (along,) = normalise_axes(op.name, element, 0 if axis is None else whole(op.name, "axis", axis, -MOST))
    if element.spec.is_stream and along == 0:
        raise SpecError(
            "cannot sort a stream, all of which would have to be in memory",
            element=op.name,
            site=user_site(),
            expected=f"an axis from 1 to {element.ndim - 1}" if element.ndim > 1 else "items that have axes",
            got="axis=None, all axes" if axis is None else "axis 0, the stream",
            hint="fc.top_k gives the largest numbers, fc.quantile those at given ranks; numpy.sort(x.to_numpy()) all",
        )
    # Rows are sorted, and other axes seen as rows.
    return moveaxis(_ordered(op, moveaxis(element, along, -1), turned), -1, along)


def _ordered(op: Op, rows: Any, descending: bool) -> Compute:
    """Sort along the last axis."""
    dtype = rows.dtype if op is SORT else INT64
    return Compute(op, (rows,), Spec(dtype, rows.spec.shape, rows.spec.stream), {"descending": descending})
