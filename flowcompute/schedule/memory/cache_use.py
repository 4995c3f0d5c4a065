"""Files that a pass leaves in the system's cache, and those that are too large for it."""

from __future__ import annotations

from collections.abc import Iterator

from flowcompute.elements import Element
from flowcompute.fuse import Reason
from flowcompute.objects import REQUEST_BYTES
from flowcompute.schedule.plan import Pass, SinkStage, SourceStage
from flowcompute.sinks import NumbersSink, StoredSink
from flowcompute.sources import ChunkedSource, ColumnSource, SeveralSource, SourceView, StoredSource
from flowcompute.strategy import default_memory_bytes


def is_uncached(stage: SourceStage | SinkStage, number: int, passes: tuple[Pass, ...], budget_bytes: int) -> bool:
    """Check whether the file of a stage of pass `number` is not to stay in the system's cache.

    That is so where it is larger than the job's memory. What a later pass reads again stays, as far as half of the
    machine's memory has room for it.
    """
    if not _is_file(stage):
        return False
    size = stage.spec.item_bytes * (stage.spec.length or 0)
    if size <= budget_bytes:
        return False
    later = (source.value for one in passes[number + 1 :] for source in one.sources)
    return size > default_memory_bytes() or stage.value not in later


def cache_reasons(passes: tuple[Pass, ...], budget_bytes: int) -> Iterator[Reason]:
    """Yield a reason for each file that does not stay in the system's cache."""
    for number, one in enumerate(passes):
        stages: tuple[SourceStage | SinkStage, ...] = (*one.sources, *one.sinks)
        for stage in stages:
            if is_uncached(stage, number, passes, budget_bytes):
                yield Reason("cache", stage.name, "larger than memory=: its pages leave the system's cache behind it")


def _is_file(stage: SourceStage | SinkStage) -> bool:
    element = stage.element
    while isinstance(element, (SourceView, NumbersSink)):
        element = element.inner
    return isinstance(element, (StoredSource, SeveralSource, StoredSink)) and not _is_remote(element)


def request_bytes(passes: tuple[Pass, ...]) -> Iterator[tuple[str, int]]:
    """Yield the name of each source of objects, with the bytes that its requests hold besides its buffers."""
    for source in {source.value: source for one in passes for source in one.sources}.values():
        element = source.element
        while isinstance(element, SourceView):
            element = element.inner
        if _is_remote(element):
            yield f"{source.name} (requests)", REQUEST_BYTES


def _is_remote(element: Element) -> bool:
    """Check whether an end is an object, or several of which one is."""
    if isinstance(element, SeveralSource):
        return any(map(_is_remote, element.sources))
    return isinstance(element, StoredSource | ChunkedSource | ColumnSource) and not element.files.local
