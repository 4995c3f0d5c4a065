"""The live record of what the checkpoints of a run cost."""

from __future__ import annotations

import time

from flowcompute.metrics import Checkpoints


class CheckpointRecord:
    """What the checkpoints of a run cost.

    Attributes:
        count: checkpoints committed.
        number: of the newest one.
        pause_s: seconds that batches stood still for them, altogether.
        longest_pause_s: of one of them.
        write_s: seconds of writing them beside the batches.
        last_s: when the newest one was committed, on the clock of the run.
    """

    def __init__(self) -> None:
        self.count = 0
        self.number: int | None = None
        self.pause_s = 0.0
        self.longest_pause_s = 0.0
        self.write_s = 0.0
        self.last_s: float | None = None

    def paused(self, seconds: float) -> None:
        """A barrier was made."""
        self.pause_s += seconds
        self.longest_pause_s = max(self.longest_pause_s, seconds)

    def written(self, number: int, seconds: float) -> None:
        """One was committed."""
        self.count += 1
        self.number = number
        self.write_s += seconds
        self.last_s = time.perf_counter()

    def row(self, now_s: float) -> Checkpoints:
        """Its numbers at a time of the clock of the run."""
        age_s = None if self.last_s is None else max(now_s - self.last_s, 0.0)
        return Checkpoints(self.count, self.number, self.pause_s, self.longest_pause_s, self.write_s, age_s)
