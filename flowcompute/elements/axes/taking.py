"""Numbers at given indices along an axis: `fc.take`. A stream of indices asks for rows of a resident table.

Indices of a stream are known only when it runs. `INDICES` checks them on the host and counts from the start, so that
no kernel can read outside of a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.axes.shape import item_axis, make_view, reshape, view_op
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, compute_again
from flowcompute.elements.element import Element
from flowcompute.elements.op import KeptOp
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import INT32, INT64, Spec


def _rebuild_take(kept: KeptOp) -> Any:
    x, indices = kept.operands(2)
    return take(x, indices, kept.public_axis(kept.attrs.whole("axis", most=63)))


def _rebuild_lookup(kept: KeptOp) -> Any:
    table, indices = kept.operands(2)
    kept.require(not table.spec.is_stream and indices.spec.is_stream, "a resident table and a stream of indices")
    return take(table, indices, kept.attrs.whole("axis", most=63))


def _rebuild_indices(kept: KeptOp) -> Compute:
    indices, size = kept.stream(), kept.attrs.whole("size")
    kept.require(indices.dtype.kind in "iu", "integers")
    return compute_again(kept, _dtype_of(size), indices.spec.shape, indices.spec.stream, {"size": size})


TAKE = view_op("take", np.take, _rebuild_take, 2)
LOOKUP = view_op("lookup", np.take, _rebuild_lookup, 2)
"""Rows of a resident table, at the indices of a stream that `INDICES` has checked."""
INDICES = view_op("indices", np.asarray, _rebuild_indices)
"""A stream of indices from 0 on, each below `size`."""


def _dtype_of(size: int) -> np.dtype:
    return INT32 if size <= np.iinfo(INT32).max else INT64


@public
def take(x: Operand, indices: Operand, axis: int | None = None) -> Any:
    """Take the numbers at `indices` along an item axis, as `numpy.take`.

    A *stream* of indices takes rows of a resident table. The result is a stream, with the axes of an item of indices in
    place of `axis`. Only these rows are read. A table that element-wise operations make is computed for these rows
    only. A costly one is computed once where something else needs it whole, or where it has at most 64 KiB.

    Args:
        x: any element; a resident one where the indices are a stream.
        indices: integers of any shape, resident or a stream of such items; of one number the axis is gone. Negative
            ones count from the end.
        axis: may be left out where there is one axis.

    Raises:
        SpecError: if an index that is known is out of range, or `axis` is the stream. An index of a stream that is out
            of range is a RunError naming its record.
    """
    element = as_element(x, "take")
    where = as_element(np.empty(0, np.int64) if isinstance(indices, list | tuple) and not indices else indices, "take")
    if axis is None and element.ndim != 1:
        raise SpecError(
            "cannot choose an axis",
            element="take",
            site=user_site(),
            expected=f"axis= for {element.spec}",
        )
    along = item_axis("take", element, 0 if axis is None else axis)
    if where.spec.is_stream and where.dtype.kind in "iu" and not element.spec.is_stream:
        return _lookup(element, where, along)
    if where.spec.is_stream or where.dtype.kind not in "iu":
        raise SpecError(
            "cannot take by these indices",
            element="take",
            site=user_site(),
            expected="resident integers" + ("" if element.spec.is_stream else ", or a stream of integers"),
            got=str(where.spec),
            hint="fc.take_along_axis and fc.gather_nd take what each record asks for" if where.spec.is_stream else None,
        )
    if where.ndim == 1:
        return _row(element, where, along)
    # Places in a row: the axes that indices have are a shape of the result, and cost nothing.
    shape, lead = element.spec.shape, (-1,) if element.spec.is_stream else ()
    taken = _row(element, reshape(where, (-1,)), along)
    return reshape(taken, (*lead, *shape[:along], *where.spec.shape, *shape[along + 1 :]))


def _row(element: Any, where: Any, along: int) -> Compute:
    """Take numbers along an item axis at a resident vector of indices."""
    size = element.spec.shape[along]
    known = where.value if isinstance(where, Constant) else np.empty(0, where.dtype)
    bad = known[(known < -size) | (known >= size)]
    if len(bad):
        raise SpecError(
            "cannot take a number outside the axis",
            element="take",
            site=user_site(),
            expected=f"{-size} to {size - 1}",
            got=str(bad[0]),
        )
    shape = (*element.spec.shape[:along], *where.spec.shape, *element.spec.shape[along + 1 :])
    return make_view(TAKE, (element, where), shape, axis=along)


def _lookup(table: Element, indices: Element, axis: int) -> Compute:
    """Return the rows of a resident table at the indices of a stream."""
    shape, stream = table.spec.shape, indices.spec.stream
    size, item = shape[axis], indices.spec.shape
    indices = checked_indices(indices, size)
    made = Spec(table.dtype, (*shape[:axis], *item, *shape[axis + 1 :]), stream)
    return Compute(LOOKUP, (table, indices), made, {"axis": axis})


def checked_indices(indices: Element, size: int) -> Element:
    """Return a stream of indices from 0 on, which the host checks: each is below `size`."""
    if isinstance(indices, Compute) and indices.op is INDICES and indices.attrs["size"] == size:
        return indices
    return Compute(INDICES, (indices,), Spec(_dtype_of(size), indices.spec.shape, indices.spec.stream), {"size": size})
