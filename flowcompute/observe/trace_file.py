"""Writes what the stages of a run did as a trace for Perfetto (https://ui.perfetto.dev).

The format is Chrome's Trace Event Format, JSON: complete events ("X") with microseconds since the
start of the run, and metadata ("M") that names the tracks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowcompute.errors import DestinationError
from flowcompute.files import FILES, Draft, explain
from flowcompute.metrics import Snapshot, Span, Track
from flowcompute.observe.json_log import plain
from flowcompute.version import __version__ as version

SPANS = 80_000
"""Spans that are kept altogether, an equal share of them for each track: some 20 MB."""

_PIECE_BYTES = 1 << 16

_PROCESS = 1


class Trace:
    """A trace file, begun at once so that a wrong path is told early, and written at the end.

    Args:
        path: of the file.

    Raises:
        DestinationError: if it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self._draft = Draft(FILES, os.path.abspath(path), durable=False)
        except OSError as error:
            said, hint = explain(error)
            raise DestinationError(f"cannot be written: {said}", element="trace", hint=hint) from error

    def close(self, tracks: Sequence[Track], end: Snapshot, about: Mapping[str, Any]) -> str | None:
        """Write all and give the file its name; says what went wrong, if anything did.

        Args:
            tracks: what the stages did.
            end: the numbers at the end.
            about: what else a report needs, as plain data.
        """
        try:
            offset, piece = 0, bytearray()
            for text in _text(tracks, end, about):
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
        """Leave no file."""
        self._draft.discard()


def _text(tracks: Sequence[Track], end: Snapshot, about: Mapping[str, Any]) -> Iterator[str]:
    lost = {track.name: track.lost for track in tracks if track.lost}
    other = {"flowcompute": version, "run": plain(end), "lost_spans": lost, **about}
    yield f'{{"displayTimeUnit": "ms", "otherData": {json.dumps(other)},\n"traceEvents": [\n'
    yield json.dumps({"name": "process_name", "ph": "M", "pid": _PROCESS, "args": {"name": "flowcompute"}})
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
