"""Numbers of items at positions that each item has for itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.alignment import align_resident, common_length
from flowcompute.elements.arguments import whole
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element
from flowcompute.elements.math import normalise_axes
from flowcompute.elements.op import MOST, KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecIndexError
from flowcompute.spec import Spec, Stream


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("lookups state their dtypes themselves")


def _rebuild_take_along(kept: KeptOp) -> Compute:
    x, indices = kept.operands(2)
    rank = len(x.spec.shape)
    kept.require(rank == len(indices.spec.shape) and indices.dtype.kind in "iu", "integers of the rank of the value")
    kept.require(rank > 0, "items that have axes")
    return taken_along_items(x, indices, kept.attrs.whole("axis", most=rank - 1))


def taken_along(array: np.ndarray, indices: np.ndarray, *, axis: int) -> np.ndarray:
    """Take the numbers of an array at the indices along an axis.

    Raises:
        IndexError: "INDEX of SIZE" where one is out of range.
    """
    # An operand without the other's records is the same for each of them.
    rank = max(array.ndim, indices.ndim)
    array, indices = (one.reshape((1,) * (rank - one.ndim) + one.shape) for one in (array, indices))
    size = array.shape[axis]
    outside = (indices < -size) | (indices >= size)
    if outside.any():
        raise IndexError(f"{indices[outside][0]} of {size}")
    return np.take_along_axis(array, indices.astype(np.int64, copy=False), axis)


TAKE_ALONG = Op("take_along_axis", 2, Kind.VIEW, taken_along, _declared, arithmetic=False, rebuild=_rebuild_take_along)


@public
def take_along_axis(x: Operand, indices: Operand, axis: int = -1) -> Any:
    """Take numbers along an axis of items at places that each row has for itself, as `numpy.take_along_axis`.

    So `fc.take_along_axis(x, fc.argsort(x))` is `fc.sort(x)`. The host looks them up, batch by batch.

    Args:
        x: any element.
        indices: integers, of the rank of `x`; negative ones count from the end. Other axes than `axis` broadcast.
        axis: not the stream.

    Raises:
        SpecError: for an axis out of range or the stream, other ranks, shapes that do not broadcast, or a known
            index out of range. One that is computed and out of range is a RunError.
    """
    element: Any = as_element(x, "take_along_axis")
    where: Any = as_element(indices, "take_along_axis")
    if where.dtype.kind not in "iu" or where.ndim != element.ndim:
        raise SpecError(
            "cannot take by these indices",
            element="take_along_axis",
            site=user_site(),
            expected=f"integers with {element.ndim} axes, as {element.spec}",
            got=str(where.spec),
        )
    (along,) = normalise_axes("take_along_axis", element, whole("take_along_axis", "axis", axis, -MOST))
    streams = [one for one in (element, where) if one.spec.is_stream]
    if streams and along == 0:
        raise SpecError(
            "cannot take records of a stream in any order",
            element="take_along_axis",
            site=user_site(),
            expected=f"an axis from 1 to {element.ndim - 1}" if element.ndim > 1 else "items that have axes",
            got="axis 0, the stream",
            hint="x[mask] selects records, in their order; write the stream to a file and index that",
        )
    if streams:
        length = common_length("take_along_axis", streams)
        element, where = (
            one if one.spec.is_stream else align_resident("take_along_axis", one, streams[0], length)
            for one in (element, where)
        )
    return taken_along_items(element, where, along - bool(streams))


def taken_along_items(element: Any, where: Any, axis: int) -> Compute:
    """Make the lookup of operands whose items have one rank, along an axis of these."""
    streams = [one for one in (element, where) if one.spec.is_stream]
    shapes = [one.spec.shape for one in (element, where)]
    size = shapes[0][axis]
    if isinstance(where, Constant):
        bad = where.value[(where.value < -size) | (where.value >= size)]
        if bad.size:
            raise SpecIndexError(
                "cannot take a number outside the axis",
                element="take_along_axis",
                site=user_site(),
                expected=f"{-size} to {size - 1}",
                got=str(bad[0]),
            )
    others = [(*shape[:axis], 1, *shape[axis + 1 :]) for shape in shapes]
    try:
        made = np.broadcast_shapes(*others)
    except ValueError:
        raise SpecError(
            "cannot broadcast the indices with the value",
            element="take_along_axis",
            site=user_site(),
            expected="equal sizes, or 1, along other axes than that of places",
            got=f"{element.spec} and {where.spec}",
        ) from None
    stream = Stream(common_length("take_along_axis", streams)) if streams else None
    shape = (*made[:axis], shapes[1][axis], *made[axis + 1 :])
    return Compute(TAKE_ALONG, (element, where), Spec(element.dtype, shape, stream), {"axis": axis})
