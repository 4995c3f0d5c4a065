"""Writes what the stages of a run did as a trace for Perfetto (https://ui.perfetto.dev).

The format is Chrome's Trace Event Format, JSON. It has complete events ("X") with microseconds since the start of the
run, and metadata ("M") that names the tracks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowcompute.errors import DestinationError
from flowcompute.files import FILES, Draft, explain
from flowcompute.metrics import Snapshot, Span, Track
from flowcompute.observe.consumer import Consumer, RunView
from flowcompute.observe.events import (
    AT_REST,
    LaunchTimed,
    PassBegun,
    Stage,
    StageEntered,
    StageState,
    Take,
    TrainingStepped,
    WorkMarked,
)
from flowcompute.observe.json_log import plain
from flowcompute.observe.loss_curves import LossCurves
from flowcompute.ring import Ring
from flowcompute.version import __version__ as version

SPANS = 80_000
"""Spans that are kept altogether, an equal share of them for each track: some 20 MB."""

_PIECE_BYTES = 1 << 16

_PROCESS = 1


class Trace(Consumer):
    """A trace file, begun at once so that a wrong path is told early, and written at the end.

    Args:
        path: of the file.
        view: of the run.
        name: what the trace calls the run.

    Raises:
        DestinationError: if it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], view: RunView, name: str | None = None) -> None:
        self._view = view
        self._name = name or "flowcompute"
        self._spans = SPANS // view.tracks
        self._passes: list[tuple[Stage, ...]] = []
        self._stages: dict[Stage, _StageSpans] = {}
        self._curves = LossCurves()
        try:
            self._draft = Draft(FILES, os.path.abspath(path), durable=False)
        except OSError as error:
            said, hint = explain(error)
            raise DestinationError(f"cannot be written: {said}", element="trace", hint=hint) from error

    def takes(self) -> Mapping[type, Take]:
        """See `Consumer.takes`."""
        return {
            PassBegun: self._begun,
            StageEntered: self._entered,
            TrainingStepped: self._curves.take,
            WorkMarked: lambda event: self._stages[event.stage].marked(event),
            LaunchTimed: lambda event: self._stages[event.stage].launched(event),
        }

    def _entered(self, event: StageEntered) -> None:
        # Feeds and results of a flow are no stages of its pass, and have no track.
        if (spans := self._stages.get(event.stage)) is not None:
            spans.entered(event)

    def _begun(self, event: PassBegun) -> None:
        self._stages.update((stage, _StageSpans(self._spans)) for stage in event.stages)
        self._passes.append(event.stages)

    def tracks(self) -> Iterator[Track]:
        """Return a track for each stage of each pass, and one for the device's queue in it."""
        now_s = self._view.seconds()
        for number, stages in enumerate(self._passes, 1):
            where = f" (pass {number})" if len(self._passes) > 1 else ""
            for stage in stages:
                yield self._stages[stage].track(stage.name + where, now_s)
            for launches in (self._stages[stage].launches for stage in stages):
                if launches.count:
                    yield Track(f"device queue{where}", launches.items(), launches.lost)

    def close(self) -> str | None:
        """Write all and give the file its name."""
        try:
            offset, piece = 0, bytearray()
            about = {**self._view.about(), "trainings": self._curves.plain()}
            for text in _text(self._name, tuple(self.tracks()), self._view.snapshot(), about):
                piece += text.encode()
                if len(piece) > _PIECE_BYTES:
                    self._draft.write(bytes(piece), offset)
                    offset, piece = offset + len(piece), bytearray()
            self._draft.write(bytes(piece), offset)
            self._draft.commit()
        except OSError as error:
            self.discard()
            return f"the trace could not be written: {explain(error)[0]}"
        return None

    def discard(self) -> None:
        """See `Consumer.discard`: leave no file."""
        self._draft.discard()


class _StageSpans:
    """The spans of one stage: those that have ended, the one that it is in, and the launches of its pass."""

    def __init__(self, spans: int) -> None:
        self.launches: Ring[Span] = Ring(spans)
        self._spans: Ring[Span] = Ring(spans)
        self._in: StageEntered | None = None

    def entered(self, event: StageEntered) -> None:
        if self._in is not None:
            self._spans.add(_span(self._in, event.at_s))
        self._in = None if event.state in AT_REST else event

    def marked(self, event: WorkMarked) -> None:
        self._spans.add(Span(event.name, event.began_s, max(event.ended_s, event.began_s)))

    def launched(self, event: LaunchTimed) -> None:
        # The clocks of devices are their own affair: a launch that was waited for ended just before that.
        self.launches.add(Span(event.step, event.ended_s - event.device_s, event.ended_s))

    def track(self, name: str, now_s: float) -> Track:
        """Return its spans, with the one that a failed run ended in."""
        open_end = () if self._in is None else (_span(self._in, now_s),)
        return Track(name, (*self._spans.items(), *open_end), self._spans.lost)


def _span(event: StageEntered, ended_s: float) -> Span:
    """Return the state that a stage was in."""
    name = event.detail if event.state is StageState.BUSY else f"{event.state.value} {event.detail}".rstrip()
    return Span(name, event.at_s, max(ended_s, event.at_s), event.records)


def _text(name: str, tracks: Sequence[Track], end: Snapshot, about: Mapping[str, Any]) -> Iterator[str]:
    lost = {track.name: track.lost for track in tracks if track.lost}
    other = {"flowcompute": version, "run": plain(end), "lost_spans": lost, **about}
    yield f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(other)},\n"traceEvents": [\n'
    yield json.dumps({"name": "process_name", "ph": "M", "pid": _PROCESS, "args": {"name": name}})
    for number, track in enumerate(tracks, 1):
        for event in _events(number, track):
            yield f",\n{json.dumps(event)}"
    yield "\n]}\n"


def _events(number: int, track: Track) -> Iterator[dict[str, Any]]:
    where = {"pid": _PROCESS, "tid": number}
    yield {"name": "thread_name", "ph": "M", **where, "args": {"name": track.name}}
    yield {"name": "thread_sort_index", "ph": "M", **where, "args": {"sort_index": number}}
    for span in track.spans:
        yield _event(where, span)


def _event(where: dict[str, int], span: Span) -> dict[str, Any]:
    event = {"name": span.name, "ph": "X", **where}
    event |= {"ts": round(span.began_s * 1e6, 3), "dur": round((span.ended_s - span.began_s) * 1e6, 3)}
    if span.records is not None:
        event["args"] = {"first_record": span.records[0], "records": span.records[1] - span.records[0]}
    return event
