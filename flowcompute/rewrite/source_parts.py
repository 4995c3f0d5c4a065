"""Streams that are parts of sources, as sources."""

from __future__ import annotations

from flowcompute.elements import ALONG, Compute, Constant, Element, Source
from flowcompute.elements.axes import CUT, SECTION
from flowcompute.elements.streams import SHUFFLE, order_of
from flowcompute.sources import MemorySource, ShuffledSource, SourceView


def source_of(element: Element) -> Source | None:
    """Return the source that gives the records of a stream; None where they are computed, or can be read only once.

    Args:
        element: a source that can be read from any record; a section, runs or another order of the records of one; or
            a constant that is cut along the stream.
    """
    if not isinstance(element, Compute):
        if isinstance(element, Source) and element.rereadable and element.seekable:
            return element if element.spec.length is not None else None
        return None
    # Nearly all elements are none of these. Operations that differ are compared field by field, which takes longer.
    op = element.op
    if op is not ALONG and op is not SECTION and op is not CUT and op is not SHUFFLE:
        return None
    attrs, length = element.attrs, element.spec.length
    if length is None:
        return None
    if op is ALONG:
        held = element.inputs[0]
        return MemorySource(held.value) if isinstance(held, Constant) and "period" not in attrs else None
    inner = source_of(element.inputs[0])
    if inner is None:
        return None
    if op is SECTION:
        return SourceView(inner, first=attrs["start"], step=attrs["step"], every=0, length=length)
    if op is SHUFFLE:
        return ShuffledSource(inner, order_of(element), inverse=attrs["inverse"])
    if attrs["tail"] not in ("error", "drop"):
        return None
    return SourceView(inner, first=0, step=attrs["every"], every=attrs["every"], length=length)
