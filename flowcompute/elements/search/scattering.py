"""Numbers put into items at positions that each item has for itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.elements.alignment import align_resident, common_dtype, common_length
from flowcompute.elements.arguments import one_of, whole
from flowcompute.elements.axes import reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, cast
from flowcompute.elements.elementwise_functions import is_weak, scalar_constant
from flowcompute.elements.math import normalise_axes
from flowcompute.elements.op import MOST, KeptOp, Kind, Op
from flowcompute.elements.search.gathering import check_known, check_places, flat_places, together
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, Spec, Stream

REDUCTIONS: dict[str, Callable[..., None] | None] = {
    "set": None,
    "add": np.add.at,
    "mul": np.multiply.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
}
"""The way in which a number and one that is put there combine; updates go one after the other, in C order."""


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("scattering states its dtypes itself")


def _rebuild_scatter(kept: KeptOp) -> Compute:
    x, indices, updates = kept.operands(3)
    rank = len(x.spec.shape)
    ranks = len(indices.spec.shape) == rank and len(updates.spec.shape) in (0, rank)
    kept.require(ranks and rank > 0 and indices.dtype.kind in "iu", "integers and numbers of the rank of the value")
    kept.require(updates.dtype == x.dtype and x.dtype not in (FLOAT16, BFLOAT16), "one dtype, which is computed in")
    reduction = kept.attrs.choice("reduction", tuple(REDUCTIONS))
    return _scattered("scatter", x, indices, updates, kept.attrs.whole("axis", most=rank - 1), reduction)


def scattered(array: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, axis: int, reduction: str) -> np.ndarray:
    """Return a copy of an array with numbers put in at the indices along an axis.

    Raises:
        IndexError: "INDEX of SIZE" where one is out of range.
    """
    # An operand without the others' records is the same for each of them.
    rank = max(array.ndim, indices.ndim, updates.ndim)
    operands = [one.reshape((1,) * (rank - one.ndim) + one.shape) for one in (array, indices, updates)]
    if len({array.ndim, indices.ndim, updates.ndim or rank}) > 1:
        records = max(
            len(one) for one, given in zip(operands, (array, indices, updates), strict=True) if given.ndim == rank
        )
        operands = [
            one if given.ndim == rank else np.broadcast_to(one, (records, *one.shape[1:]))
            for one, given in zip(operands, (array, indices, updates), strict=True)
        ]
    made = np.array(operands[0], order="C")
    size = made.shape[axis]
    places, numbers = np.broadcast_arrays(*operands[1:])
    outside = (places < -size) | (places >= size)
    if outside.any():
        raise IndexError(f"{places[outside][0]} of {size}")
    if not places.size:
        return made
    # One index counted over all axes: numbers then go in the order of the updates, whatever their memory is like.
    flat = np.zeros(places.shape, np.int64)
    for at, count in enumerate(places.shape):
        along = places.astype(np.int64) if at == axis else np.arange(count).reshape(-1, *(1,) * (rank - at - 1))
        flat += np.where(along < 0, along + size, along) * math.prod(made.shape[at + 1 :])
    put, target = REDUCTIONS[reduction], made.reshape(-1)
    with np.errstate(all="ignore"):
        if put is None:
            target[flat.reshape(-1)] = numbers.reshape(-1)
        else:
            put(target, flat.reshape(-1), numbers.reshape(-1))
    return made


SCATTER = Op("scatter", 3, Kind.VIEW, scattered, _declared, arithmetic=False, rebuild=_rebuild_scatter)


@public
def scatter_elements(x: Operand, indices: Operand, updates: Operand, axis: int = -1, reduction: str = "set") -> Any:
    """Put numbers into items along an axis, at places that each row has for itself: ONNX's `ScatterElements`.

    For three axes and axis 1 number (i, j, k) of `updates` goes to (i, indices[i, j, k], k); the opposite of
    `fc.take_along_axis`. The host puts them in, batch by batch.

    Args:
        x: any element, which stays as it is.
        indices: integers, of the rank of `x`; negative ones count from the end. Along other axes than `axis` there may
            be fewer of them, which are for the first places.
        updates: a number, or as many as there are indices; both broadcast, and the dtype promotes with that of `x`.
        axis: not the stream.
        reduction: "set" puts a number in place of what is there, the last one where several go to one place. "add",
            "mul", "max" and "min" combine them with what is there, in C order; half formats in float32.

    Raises:
        SpecError: for an axis out of range or the stream, other ranks, shapes that do not fit, or a known index out of
            range. One that is computed and out of range is a RunError.
    """
    name = "scatter_elements"
    element, places, numbers = _operands(name, x, indices, updates)
    how = one_of(name, "reduction", reduction, tuple(REDUCTIONS))
    if places.dtype.kind not in "iu" or places.ndim != element.ndim or numbers.ndim not in (0, element.ndim):
        raise SpecError(
            "cannot scatter by these indices",
            element=name,
            site=user_site(),
            expected=f"integers and numbers with {element.ndim} axes, as {element.spec}",
            got=f"{places.spec} and {numbers.spec}",
        )
    (along,) = normalise_axes(name, element, whole(name, "axis", axis, -MOST))
    streams = [one for one in (element, places, numbers) if one.spec.is_stream]
    if streams and along == 0:
        raise SpecError(
            "cannot put records into a stream in any order",
            element=name,
            site=user_site(),
            expected=f"an axis from 1 to {element.ndim - 1}" if element.ndim > 1 else "items that have axes",
            got="axis 0, the stream",
        )
    if isinstance(places, Constant):
        check_known(name, places.value, element.shape[along])
    if streams:
        length = common_length(name, streams)
        element, places, numbers = (
            one if one.spec.is_stream or one.ndim == 0 else align_resident(name, one, streams[0], length)
            for one in (element, places, numbers)
        )
    return _halves(name, element, places, numbers, along - bool(streams), how)


@public
def scatter_nd(x: Operand, indices: Operand, updates: Operand, reduction: str = "set", batch_dims: int = 0) -> Any:
    """Put parts into a value, each at a position along several axes: ONNX's `ScatterND`; the opposite of `gather_nd`.

    Args:
        x: any element, which stays as it is.
        indices: integers (*batch, ..., k), as of `gather_nd`.
        updates: numbers (*batch, ..., *rest), as `gather_nd` takes them out; the dtype promotes with that of `x`.
        reduction: as of `scatter_elements`.
        batch_dims: axes that all have in front and that go together; the stream is the first of them.

    Raises:
        SpecError: for other dtypes, axes that do not fit, or a known position out of range. One that is computed and
            out of range is a RunError.
    """
    name = "scatter_nd"
    element, asking, numbers = _operands(name, x, indices, updates)
    how = one_of(name, "reduction", reduction, tuple(REDUCTIONS))
    batch = whole(name, "batch_dims", batch_dims, 0)
    if batch == 0 and any(one.spec.is_stream for one in (asking, numbers)):
        raise SpecError(
            "cannot put records into a resident value one by one",
            element=name,
            site=user_site(),
            expected="batch_dims= of 1 or more, of which the stream is the first",
            got="batch_dims=0",
        )
    element, places = together(name, element, asking, batch)
    element, numbers = together(name, element, numbers, batch)
    element, places = together(name, element, places, batch) if numbers.spec.is_stream else (element, places)
    streams = [one for one in (element, places, numbers) if one.spec.is_stream]
    apart = max(0, batch - bool(streams))
    shape, asked = element.spec.shape, places.spec.shape
    count = asked[-1] if asked else 0
    fits = 0 < count <= len(shape) - apart and places.dtype.kind in "iu" and shape[:apart] == asked[:apart]
    rest = shape[apart + count :]
    if not fits or numbers.spec.shape != (*asked[:-1], *rest):
        raise SpecError(
            "cannot scatter by these indices",
            element=name,
            site=user_site(),
            expected=f"integers (*batch, ..., k) and numbers (*batch, ..., *rest) for {element.spec}",
            got=f"{places.spec} and {numbers.spec} with batch_dims={batch}",
        )
    sizes = shape[apart : apart + count]
    check_places(name, asking, sizes)
    rows, parts, inner = math.prod(shape[:apart]), math.prod(asked[apart:-1]), math.prod(rest)

    def seen(one: Any, *wanted: int) -> Any:
        return reshape(one, (*((-1,) if one.spec.is_stream else ()), *wanted))

    table, at = seen(element, rows, math.prod(sizes), inner), seen(flat_places(places, sizes), rows, parts, 1)
    made = _halves(name, table, at, seen(numbers, rows, parts, inner), 1, how)
    return seen(made, *shape)


def _operands(name: str, x: Operand, indices: Operand, updates: Operand) -> tuple[Any, Any, Any]:
    """Return the operands, numbers in the dtype that they promote to."""
    element, places = as_element(x, name), as_element(indices, name)
    if is_weak(updates):
        return element, places, scalar_constant(SCATTER, updates, element.dtype)
    numbers = as_element(updates, name)
    dtype = common_dtype(name, [element, numbers])
    return cast(element, dtype), places, cast(numbers, dtype)


def _halves(name: str, element: Any, places: Any, numbers: Any, axis: int, reduction: str) -> Any:
    """Scatter half formats in float32, rounded once."""
    dtype = element.dtype
    if dtype in (FLOAT16, BFLOAT16):
        element, numbers = cast(element, FLOAT32), cast(numbers, FLOAT32)
    return cast(_scattered(name, element, places, numbers, axis, reduction), dtype)


def _scattered(name: str, element: Any, places: Any, numbers: Any, axis: int, reduction: str) -> Compute:
    """Make the operation of operands whose items have one rank, along an axis of these."""
    shape = element.spec.shape
    try:
        made = np.broadcast_shapes(places.spec.shape, numbers.spec.shape)
        fits = all(at == axis or count <= size for at, (count, size) in enumerate(zip(made, shape, strict=True)))
    except ValueError:
        fits = False
    if not fits:
        raise SpecError(
            "cannot put these numbers at these indices",
            element=name,
            site=user_site(),
            expected=f"as many of both, and no more than {element.spec} along other axes",
            got=f"{places.spec} and {numbers.spec}",
        )
    streams = [one for one in (element, places, numbers) if one.spec.is_stream]
    stream = Stream(common_length(name, streams)) if streams else None
    attrs = {"axis": axis, "reduction": reduction}
    return Compute(SCATTER, (element, places, numbers), Spec(element.dtype, shape, stream), attrs)
