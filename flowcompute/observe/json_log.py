"""Writes the numbers of a run as JSON lines, one a second and a last one at the end."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from flowcompute.errors import DestinationError
from flowcompute.files import explain
from flowcompute.metrics import NodeMetrics, Snapshot
from flowcompute.observe.consumer import Consumer

EVERY_S = 1.0

_STAGE = (
    "kind",
    "items",
    "batches",
    "bytes_in",
    "bytes_out",
    "launches",
    "wait_in_s",
    "busy_s",
    "wait_out_s",
    "device_s",
    "compile_s",
    "queued",
    "credits",
    "peak_bytes",
    "passes",
    "place",
)


def plain(now: Snapshot) -> dict[str, Any]:
    """Return the numbers as plain data for JSON."""
    progress = now.progress
    return {
        "seconds": progress.seconds,
        "items": progress.items,
        "total_items": progress.total_items,
        "bytes_read": progress.bytes_read,
        "bytes_written": now.bytes_written,
        "bytes_per_s": progress.throughput,
        "remaining_s": progress.remaining_s,
        "pass": None if progress.current is None else progress.current._asdict(),
        "done": progress.done,
        "skipped": progress.skipped,
        "launches": now.launches,
        "peak_bytes": now.peak_bytes,
        "bottleneck": now.bottleneck,
        "checkpoints": now.checkpoints.count,
        "checkpoint_age_s": now.checkpoints.age_s,
        "stages": {name: _row(row) for name, row in now.metrics.items()},
    }


def _row(row: NodeMetrics) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _STAGE}


class MetricsLog(Consumer):
    """Writes from its making until `close`.

    Args:
        target: a path, to whose end the lines are added, or an open text file, which stays open.
        snapshot: gives the numbers.
        name: what lines call the run, if anything.

    Raises:
        DestinationError: if the file cannot be written.
    """

    def __init__(
        self, target: str | os.PathLike[str] | TextIO, snapshot: Callable[[], Snapshot], name: str | None = None
    ) -> None:
        self._snapshot = snapshot
        self._named = {} if name is None else {"name": name}
        self._problem: str | None = None
        self._over = threading.Event()
        self._owned = isinstance(target, str | os.PathLike)
        try:
            # Closed by the thread, which writes to it as long as the run lasts.
            self._file = open(target, "a", encoding="utf-8") if isinstance(target, str | os.PathLike) else target  # noqa: SIM115
        except OSError as error:
            said, hint = explain(error)
            raise DestinationError(f"cannot be written: {said}", element="metrics_log", hint=hint) from error
        self._thread = threading.Thread(target=self._run, name="flowcompute-log", daemon=True)
        self._thread.start()

    def close(self) -> str | None:
        """Write the last line and let the file go."""
        self._over.set()
        self._thread.join()
        return self._problem

    def _run(self) -> None:
        # A full disk must not stop the job: the log ends, and that is told at the end.
        try:
            try:
                while not self._over.wait(EVERY_S):
                    self._line()
                self._line()
            finally:
                if self._owned:
                    self._file.close()
        except Exception as error:  # noqa: BLE001 - whatever the user's file says
            self._problem = f"the log of metrics could not be written: {type(error).__name__}: {error}"

    def _line(self) -> None:
        line = {"time": round(time.time(), 3), **self._named, **plain(self._snapshot())}
        self._file.write(f"{json.dumps(line)}\n")
        self._file.flush()
