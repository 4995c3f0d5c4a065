"""Alignment of operands: which streams advance together, which shapes broadcast, which dtype joined values have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from flowcompute.elements.compute import Compute, Constant, compute_again
from flowcompute.elements.element import Element
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import Spec, Stream, format_shape, parse_dtype


def _along_dtypes(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


def _rebuild_along(kept: KeptOp) -> Compute:
    """Make a resident value that is cut along the stream again."""
    x = kept.one()
    kept.require(not x.spec.is_stream and x.ndim > 0, "a resident value with rows")
    return compute_again(kept, x.dtype, x.spec.shape[1:], Stream(x.spec.shape[0]))


ALONG = Op(
    "along", 1, Kind.ALONG, np.asarray, _along_dtypes, doc="A resident value cut along the stream.",
    rebuild=_rebuild_along,
)  # fmt: skip


def broadcast(op: str, inputs: list[Element]) -> tuple[list[Element], tuple[int, ...], Stream | None]:
    """Align operands as an array library would, the stream axis apart.

    A stream axis aligns only with a stream axis and never broadcasts. A resident value of lower rank broadcasts over
    items, one of equal rank is cut along the stream.

    Returns the (possibly wrapped) inputs, the item shape and the stream of the result.

    Raises:
        SpecError: naming both shapes, when they do not fit.
    """
    streams = [element for element in inputs if element.spec.is_stream]
    if not streams:
        return inputs, _broadcast_shapes(op, inputs), None
    first = streams[0]
    stream, shape = first.spec.stream, first.spec.shape
    if all(_follows(element.spec, shape, stream) for element in inputs):
        return inputs, shape, stream
    for other in streams[1:]:
        if other.ndim != first.ndim:
            numbers = any(_giver(one).base_name == "range" for one in (first, other))
            raise SpecError(
                "cannot align streams of unequal rank",
                element=op,
                site=user_site(),
                expected=f"{first.ndim} axes as in {format_shape(first.shape)}",
                got=format_shape(other.shape),
                hint="fc.range is a stream; np.arange makes an array that each record meets"
                if numbers
                else "reduce with keepdims=True (or index s[:, None]) so that item axes line up",
            )
    length = common_length(op, streams)
    aligned = [element if element.spec.is_stream else align_resident(op, element, first, length) for element in inputs]
    return aligned, _broadcast_shapes(op, aligned), first.spec.stream if length == first.spec.length else Stream(length)


def _follows(spec: Spec, shape: tuple[int, ...], stream: Stream | None) -> bool:
    """Check whether a value is a stream of such items, or one number."""
    if spec.stream is None:
        return not spec.shape
    return (spec.shape is shape or spec.shape == shape) and (spec.stream is stream or spec.stream == stream)


def common_length(op: str, streams: list[Element]) -> int | None:
    """Return the one known length of streams that advance together; None if none is known."""
    known = [(stream, length) for stream in streams if (length := stream.spec.length) is not None]
    for other, length in known[1:]:
        first, wanted = known[0]
        if length != wanted:
            givers = _giver(first), _giver(other)
            short = min(length, wanted)
            hint = f"x[:{short}] is as much of the longer one"
            if any(one.base_name == "window" for one in givers):
                # Cut at its end, each record would meet the window that begins there.
                last = (
                    f"x[{abs(length - wanted)}:] has the records that windows end at, x[:{short}] those they begin at"
                )
                hint = f"{last}; fc.window(..., pad=) gives one for each record"
            raise SpecError(
                "cannot align streams of different length",
                element=op,
                site=user_site(),
                expected=f"{wanted} records as in {_named(givers[0])}",
                got=f"{length} records in {_named(givers[1])}",
                hint=hint,
            )
    return known[0][1] if known else None


def _giver(stream: Element) -> Element:
    """Find what gives a stream as many records as it has: what its user named, a source, or a function."""
    while stream.name is None:
        before = [one for one in stream.inputs if one.spec.is_stream and one.spec.length == stream.spec.length]
        if not before:
            break
        stream = before[0]
    return stream


def _named(stream: Element) -> str:
    """Name a stream: its user's name, a file, or a function with its line."""
    where = "" if stream.site is None else f" ({stream.site.short})"
    return stream.name or stream.origin or f"{stream.base_name}{where}"


def common_dtype(op: str, elements: Iterable[Any]) -> np.dtype:
    """Return the dtype that values which are joined promote to.

    Raises:
        SpecError: if NumPy has none for them, as for bfloat16 and an integer of 16 bits.
    """
    dtypes = [element.dtype for element in elements]
    try:
        return parse_dtype(np.result_type(*dtypes))
    except TypeError as error:
        raise SpecError(
            "cannot find a common dtype",
            element=op,
            site=user_site(),
            expected="dtypes that promote to one",
            got=", ".join(dtype.name for dtype in dtypes),
            hint='cast them to one with .astype("float32")',
        ) from error


def align_resident(op: str, resident: Element, stream: Element, length: int | None) -> Element:
    """Align a resident operand so that it broadcasts with items of the stream."""
    shape = resident.spec.shape
    if len(shape) < stream.ndim:
        return resident
    if len(shape) == stream.ndim and shape[0] == 1:
        # The largest of one number is that number: a way to drop an axis that needs no operation of its own.
        return Constant(resident.value[0]) if isinstance(resident, Constant) else Element.apply("max", resident, axis=0)
    if len(shape) == stream.ndim and shape[0] != 1 and (length is None or shape[0] == length):
        return Compute(ALONG, (resident,), Spec(resident.dtype, shape[1:], Stream(shape[0])))
    raise SpecError(
        "cannot align a resident operand with the stream",
        element=op,
        site=user_site(),
        expected=f"a shape that broadcasts with items {format_shape(stream.spec.shape)}",
        got=format_shape(shape),
    )


def _broadcast_shapes(op: str, inputs: list[Element]) -> tuple[int, ...]:
    shapes = [element.spec.shape for element in inputs]
    try:
        return max(shapes, key=len) if len(set(shapes) - {()}) <= 1 else np.broadcast_shapes(*shapes)
    except ValueError as error:
        streamed = any(element.spec.is_stream for element in inputs)
        raise SpecError(
            f"cannot broadcast {'item shapes' if streamed else 'shapes'}",
            element=op,
            site=user_site(),
            expected="equal sizes, or 1, on each axis counted from the last",
            got=" and ".join(format_shape(shape) for shape in shapes),
            hint=_as_stream(inputs),
        ) from error


def _as_stream(inputs: list[Element]) -> str | None:
    """Return how a vector that is as long as a stream of items goes along with it; None where there is none."""
    lengths = {one.spec.length for one in inputs if one.spec.is_stream} - {None}
    if any(not one.spec.is_stream and one.ndim == 1 and one.shape[0] in lengths for one in inputs):
        return "a number for each record is a stream, too: fc.source(array)[:, None]"
    return None
