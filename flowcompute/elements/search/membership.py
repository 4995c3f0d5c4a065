"""Where numbers stand in a sorted table, and whether they are in one."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from flowcompute.elements.alignment import common_dtype
from flowcompute.elements.arguments import flag, one_of
from flowcompute.elements.axes import reshape, take
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.math import (
    any,
    equal,
    greater,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    sum,
)
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.elements.search.ordering import sort
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import FLOAT32, INT64, Spec, is_float

MOST_COMPARED = 64
"""Numbers of a table that each number is compared with, in its kernel. A larger one is searched on the host."""


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("searches state their dtypes themselves")


def _rebuild_search(kept: KeptOp) -> Compute:
    x, table = kept.operands(2)
    kept.require(not table.spec.is_stream and table.ndim == 1 and table.dtype == x.dtype, "a table of the dtype of x")
    return _searched(x, table, kept.attrs.choice("side", _SIDES))


def searched(array: np.ndarray, table: np.ndarray, *, side: Literal["left", "right"]) -> np.ndarray:
    """Return where the numbers of an array stand in a sorted table; NaN behind all numbers."""
    return np.searchsorted(table, array, side).astype(INT64, copy=False)


_SIDES = ("left", "right")

SEARCH = Op("searchsorted", 2, Kind.VIEW, searched, _declared, arithmetic=False, rebuild=_rebuild_search)


@public
def searchsorted(
    x1: Operand, x2: Operand, *, side: Literal["left", "right"] = "left", sorter: Operand | None = None
) -> Compute:
    """Return where each number of `x2` would be inserted in a sorted vector `x1`, as int64; as `numpy.searchsorted`.

    A table of at most 64 numbers is compared in a kernel; the host searches a larger one.

    Args:
        x1: a resident vector, ascending, NaN last.
        x2: any element.
        side: "left" for the place before equal numbers, "right" for that behind them.
        sorter: a resident vector of integers that sorts `x1`, as of `fc.argsort`; None where it is sorted.

    Returns:
        An element of the shape of `x2`, with numbers from 0 to the length of `x1`.

    Raises:
        SpecError: if `x1` is no resident vector, or the dtypes have none in common.
    """
    table = _table("searchsorted", x1, vector=True)
    if sorter is not None:
        table = take(table, sorter)
    chosen = one_of("searchsorted", "side", side, _SIDES)
    element: Any = as_element(x2, "searchsorted")
    if table.size <= MOST_COMPARED:
        return sum(_before(element[..., None], table, chosen), -1)
    dtype = common_dtype("searchsorted", [table, element])
    dtype = FLOAT32 if is_float(dtype) and dtype.itemsize == 2 else dtype
    return _searched(cast(element, dtype), cast(table, dtype), chosen)


def _before(x: Any, table: Any, side: str) -> Any:
    """Check which numbers of a table stand before the place of a number; NaN is behind all numbers."""
    before = (less if side == "left" else less_equal)(table, x)
    if not is_float(x.dtype):
        return before
    behind = isnan(x)
    if side == "left" and is_float(table.dtype):
        behind = logical_and(behind, logical_not(isnan(table)))
    return logical_or(before, behind)


def _searched(element: Any, table: Any, side: str) -> Compute:
    return Compute(SEARCH, (element, table), Spec(INT64, element.spec.shape, element.spec.stream), {"side": side})


def _table(op: str, x: Operand, *, vector: bool) -> Any:
    element: Any = as_element(x, op)
    if element.spec.is_stream or (vector and element.ndim != 1):
        raise SpecError(
            "cannot search in this",
            element=op,
            site=user_site(),
            expected="a resident vector" if vector else "a resident value",
            got=str(element.spec),
            hint="fc.constant(array) makes a resident value" if element.spec.is_stream else None,
        )
    return element


@public
def isin(x1: Operand, x2: Operand, *, invert: bool = False) -> Compute:
    """Check for each number of `x1` whether `x2` holds it, as `numpy.isin`; NaN equals nothing.

    At most 64 numbers are compared in a kernel; the host searches among more of them.

    Args:
        x1: any element.
        x2: a resident value of any shape.
        invert: whether to check that it does not.

    Returns:
        An element of bool, of the shape of `x1`.

    Raises:
        SpecError: if `x2` is a stream.
    """
    element: Any = as_element(x1, "isin")
    table = reshape(_table("isin", x2, vector=False), (-1,))
    turned = flag("isin", "invert", invert)
    dtype = common_dtype("isin", [element, table])
    mixed = is_float(dtype) and not (is_float(element.dtype) or is_float(table.dtype))
    if table.size <= MOST_COMPARED or mixed:
        # Integers that no integer dtype holds together are compared one by one: floats would make some equal.
        inside = any(equal(element[..., None], table), -1)
    else:
        ascending = sort(table)
        begin, end = (searchsorted(ascending, element, side=side) for side in ("left", "right"))
        inside = greater(end, begin)
        inside = logical_and(inside, equal(element, element)) if is_float(element.dtype) else inside
    return logical_not(inside) if turned else inside
