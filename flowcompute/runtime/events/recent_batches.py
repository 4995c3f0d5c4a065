"""The last batches of a stage or a step, as differences of totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from flowcompute.metrics import BatchMetrics
from flowcompute.ring import Ring

BATCHES = 128
"""Batches of each stage that are kept."""

Totals = tuple[int, int, int, int, float, float, float, float]
"""The fields of `BatchMetrics`, since the beginning; the last is when they were noted, since the start of the run."""

NOTHING: Totals = (0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0)


def batches_of(totals: Sequence[Totals]) -> tuple[BatchMetrics, ...]:
    """Return what came between each two notes that follow each other."""
    return tuple(
        BatchMetrics(
            new[0] - old[0],
            new[1] - old[1],
            new[2] - old[2],
            new[3] - old[3],
            new[4] - old[4],
            new[5] - old[5],
            new[6] - old[6],
            new[7],
        )
        for old, new in pairwise(totals)
        if new[1] != old[1]
    )


class StepsHistory:
    """The newest totals of the steps of a pass, noted after each batch.

    Args:
        seconds: gives the seconds since the start of the run.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._noted: Ring[tuple[float, Mapping[str, tuple[int, float]], Mapping[str, tuple[int, int, int]]]]
        self._noted = Ring(BATCHES + 1)
        self._noted.add((0.0, {}, {}))
        self._seconds = seconds

    def note(self, steps: Mapping[str, tuple[int, float]], passed: Mapping[str, tuple[int, int, int]]) -> None:
        """Note the totals after a batch.

        Args:
            steps: batches and seconds busy by step.
            passed: records, bytes in and bytes out by step.
        """
        self._noted.add((self._seconds(), steps, passed))

    def recent(self, step: str) -> tuple[BatchMetrics, ...]:
        """Return the last batches of a step."""
        totals: list[Totals] = []
        for ended_s, steps, passed in self._noted.items():
            (batches, busy_s), (items, in_, out) = steps.get(step, (0, 0.0)), passed.get(step, (0, 0, 0))
            totals.append((items, batches, in_, out, 0.0, busy_s, 0.0, ended_s))
        return batches_of(totals)
