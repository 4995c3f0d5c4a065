"""Parts of items at positions along several axes at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowcompute.elements.alignment import common_length
from flowcompute.elements.arguments import whole
from flowcompute.elements.axes import reshape, take
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Constant, Operand, as_element, cast
from flowcompute.elements.math import cut_along, greater_equal, less, logical_and, minimum, where
from flowcompute.elements.op import MOST
from flowcompute.elements.search.lookup import taken_along_items
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecIndexError
from flowcompute.spec import INT64, UINT64


@public
def gather_nd(x: Operand, indices: Operand, batch_dims: int = 0) -> Any:
    """Take parts of a value, each at a position along several axes: TensorFlow's and ONNX's `gather_nd`.

    The last axis of `indices` holds positions along as many axes of `x`, so `gather_nd(x, indices)` is
    `x[tuple(moveaxis(indices, -1, 0))]` in NumPy. Each record of a stream is asked for by its own indices.

    Args:
        x: any element.
        indices: integers (*batch, ..., k), resident or a stream; negative ones count from the end.
        batch_dims: axes that both have in front and that go together. The stream is the first of them where `x` is one.

    Returns:
        An element (*batch, ..., *rest), where rest are the axes of `x` behind the k that positions are of.

    Raises:
        SpecError: for other dtypes, axes that do not fit, or a known position out of range. One that is computed and
            out of range is a RunError.
    """
    element, asking = as_element(x, "gather_nd"), as_element(indices, "gather_nd")
    batch = whole("gather_nd", "batch_dims", batch_dims, 0)
    element, places = together("gather_nd", element, asking, batch)
    stream = element.spec.is_stream or places.spec.is_stream
    apart = max(0, batch - stream)
    shape, asked = element.spec.shape, places.spec.shape
    count = asked[-1] if asked else 0
    if not 0 < count <= len(shape) - apart or places.dtype.kind not in "iu" or shape[:apart] != asked[:apart]:
        raise SpecError(
            "cannot take parts at these positions",
            element="gather_nd",
            site=user_site(),
            expected=f"integers (*batch, ..., k) for {element.spec} with batch_dims={batch}",
            got=str(places.spec),
        )
    sizes, rest = shape[apart : apart + count], shape[apart + count :]
    check_places("gather_nd", asking, sizes)
    flat = flat_places(places, sizes)
    lead = (-1,) if stream else ()
    rows, numbers = math.prod(shape[:apart]), math.prod(sizes)
    own = (*lead, *shape[:apart], *asked[apart:-1], *rest)
    if not apart and not (element.spec.is_stream and flat.spec.is_stream):
        first = (-1,) if element.spec.is_stream else ()
        made = take(reshape(element, (*first, numbers, *rest)), flat, axis=len(first))
        return made if made.spec.shape == own[len(lead) :] else reshape(made, own)
    table = reshape(element, (*((-1,) if element.spec.is_stream else ()), rows, numbers, math.prod(rest)))
    first = (-1,) if flat.spec.is_stream else ()
    made = taken_along_items(table, reshape(flat, (*first, rows, math.prod(asked[apart:-1]), 1)), 1)
    return reshape(made, own)


def together(op: str, element: Any, places: Any, batch: int) -> tuple[Any, Any]:
    """Return a value and positions in it, aligned so that their items go together.

    Raises:
        SpecError: if positions would be along the stream.
    """
    streams = [one for one in (element, places) if one.spec.is_stream]
    if element.spec.is_stream and not batch:
        raise SpecError(
            "cannot take records of a stream in any order",
            element=op,
            site=user_site(),
            expected="batch_dims= of 1 or more, of which the stream is the first",
            got="batch_dims=0",
            hint="x[mask] selects records, in their order; write the stream to a file and index that",
        )
    if not streams or not batch:
        return element, places
    common_length(op, streams)
    first, second = (one if one.spec.is_stream else _beside(op, one, streams[0]) for one in (element, places))
    return first, second


def _beside(op: str, resident: Any, stream: Any) -> Any:
    """Return a resident value whose first axis goes with the stream: the same for each record, or cut along it."""
    return resident[0] if resident.ndim and resident.shape[0] == 1 else cut_along(op, resident, stream)


def check_places(op: str, places: Any, sizes: tuple[int, ...]) -> None:
    """Refuse known positions that are out of range.

    Args:
        op: for errors.
        places: integers whose last axis has a position for each axis.
        sizes: of the axes.

    Raises:
        SpecIndexError: if one is.
    """
    for axis, size in enumerate(sizes if isinstance(places, Constant) else ()):
        check_known(op, places.value[..., axis], size)


def check_known(op: str, places: np.ndarray, size: int) -> None:
    """Raise SpecIndexError if one of these positions is outside of an axis."""
    bad = places[(places < -size) | (places >= size)]
    if bad.size:
        raise SpecIndexError(
            "cannot find a place outside the axis",
            element=op,
            site=user_site(),
            expected=f"{-size} to {size - 1}",
            got=str(bad[0]),
        )


def flat_places(places: Any, sizes: tuple[int, ...]) -> Any:
    """Return positions along several axes as positions in all of their numbers, in C order.

    Args:
        places: integers whose last axis has a position for each axis.
        sizes: of the axes.

    Returns:
        Integers without the last axis. Where one is computed and out of range, so is what it becomes.
    """
    if len(sizes) == 1:
        return places[..., 0]
    total: Any = np.int64(0)
    inside: Any = np.True_
    for axis, size in enumerate(sizes):
        # Of uint64 what int64 does not hold stays out of range.
        given = places[..., axis]
        along: Any = cast(minimum(given, np.uint64(MOST - 1)) if given.dtype == UINT64 else given, INT64)
        along = where(less(along, 0), along + size, along)
        total = along * math.prod(sizes[axis + 1 :]) + total
        inside = logical_and(logical_and(greater_equal(along, 0), less(along, size)), inside)
    return where(inside, total, np.int64(math.prod(sizes)))
