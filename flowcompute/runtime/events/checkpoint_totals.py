"""The cost of a run's checkpoints, summed up from its events."""

from __future__ import annotations

import time
from collections.abc import Mapping

from flowcompute.metrics import Checkpoints
from flowcompute.observe import CheckpointBegun, CheckpointCommitted, Take


class CheckpointTotals:
    """The cost of a run's checkpoints, summed up from its events."""

    def __init__(self) -> None:
        # Each number has one thread that writes it: the run's the pauses, a worker the rest.
        self._pause_s = 0.0
        self._longest_pause_s = 0.0
        self._write_s = 0.0
        self._count = 0
        self._number: int | None = None
        self._last_s: float | None = None

    def takes(self) -> Mapping[type, Take]:
        """Return what takes each kind of event."""
        return {CheckpointBegun: self._begun, CheckpointCommitted: self._committed}

    def _begun(self, event: CheckpointBegun) -> None:
        self._pause_s += event.pause_s
        self._longest_pause_s = max(self._longest_pause_s, event.pause_s)

    def _committed(self, event: CheckpointCommitted) -> None:
        self._count += 1
        self._number = event.number
        self._write_s += event.write_s
        self._last_s = time.perf_counter()

    def row(self, now_s: float) -> Checkpoints:
        """Return its numbers at a time of the clock of the run."""
        age_s = None if self._last_s is None else max(now_s - self._last_s, 0.0)
        return Checkpoints(self._count, self._number, self._pause_s, self._longest_pause_s, self._write_s, age_s)
