"""Destinations of a job on a cluster, whose drafts outlive a client."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from flowcompute.distributed.kept import ClusterFolder
from flowcompute.elements import StagingArea, State, Writer
from flowcompute.files import temporary_path
from flowcompute.schedule import SinkStage
from flowcompute.sinks import StoredSink


class KeptResults:
    """Destinations whose drafts outlive a client: see `Writing`."""

    def __init__(self, folder: ClusterFolder) -> None:
        self._folder = folder
        self._committed = folder.committed()

    def open(self, position: int, sink: SinkStage) -> Writer:
        """Begin a draft under a name that follows from the job, or go on with it."""
        element, spec = sink.element, sink.spec
        if not isinstance(element, StoredSink):
            return element.open(spec)
        place = _place(f"{self._folder.token}-{position}")
        state = None if self._committed is None else self._committed.get(str(position))
        if state is not None:
            return _Recovered(element, spec, place, state)
        draft = temporary_path(element.target, place.token)
        if spec.is_stream and os.path.lexists(draft):
            return element.join(spec, draft)
        return element.open_at(spec, place)

    def seal(self, writers: Sequence[tuple[SinkStage, Writer]]) -> None:
        """Complete all files, and keep that they are."""
        if self._committed is not None:
            return
        states = {}
        for position, (sink, writer) in enumerate(writers):
            if isinstance(sink.element, StoredSink):
                states[str(position)] = writer.seal(_place(f"{self._folder.token}-{position}"))
        self._folder.commit(states)


class _Recovered(Writer):
    """A file that an earlier client has completed."""

    def __init__(self, element: StoredSink, spec: Any, place: StagingArea, state: State) -> None:
        self._element, self._spec, self._place, self._state = element, spec, place, state

    def write(self, array: Any, start: int) -> None:
        """Write nothing: it is written."""

    def lend(self) -> str:
        """Return the path that its draft had."""
        return str(self._state["draft"])

    def filled(self, records: int) -> None:
        """Count nothing."""

    def suspend(self) -> None:
        """Leave it."""

    def commit(self) -> Any:
        """Give it its name, unless it has it."""
        return self._element.recover(self._spec, self._place, self._state)

    def abort(self) -> None:
        """Leave it."""


def _place(token: str) -> StagingArea:
    def side() -> Any:
        raise AssertionError("files of shards are drafts beside their targets")

    return StagingArea(token, side, lambda: 0)
