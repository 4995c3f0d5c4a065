"""What a stage did lately: its last batches and, for a trace, its last states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flowcompute.metrics import BatchMetrics, Span, Track
from flowcompute.ring import Ring
from flowcompute.schedule import LaunchLog

BATCHES = 128
"""Batches of each stage that are kept."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How much is kept of each stage: newest batches, and spans for a trace."""

    batches: int = BATCHES
    spans: int = 0


Totals = tuple[int, int, int, int, float, float, float, float]
"""The fields of `BatchMetrics`, since the beginning; the last is when they were noted, since the start of the run."""

_NOTHING: Totals = (0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0)


def batches_of(totals: Sequence[Totals]) -> tuple[BatchMetrics, ...]:
    """What came between each two notes that follow each other."""
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


class StageHistory:
    """What one stage did lately.

    A batch is what was counted between two changes of state, with the seconds since the batch
    before it. So the wait for taking over a batch's output is found with the next batch. Only
    totals are noted, in the stage's own time; who reads them takes the differences.

    Args:
        keep: how much is kept.
        zero_s: the beginning of the run, on the clock of the stage.
        seconds: gives the seconds since the beginning of the run; they stand still when it has ended.

    Attributes:
        batches: how many were noted.
        zero_s: as given.
    """

    def __init__(self, keep: Keep, zero_s: float, seconds: Callable[[], float]) -> None:
        self.spans: Ring[Span] = Ring(keep.spans)
        self.traces = keep.spans > 0
        self.batches = 0
        self.zero_s = zero_s
        self._totals: Ring[Totals] = Ring(keep.batches + 1)
        self._totals.add(_NOTHING)
        self._now_s = seconds

    def note(self, totals: Totals) -> None:
        """One more batch, or more, have been counted."""
        self.batches = totals[1]
        self._totals.add(totals)

    @property
    def recent(self) -> tuple[BatchMetrics, ...]:
        """The last batches."""
        return batches_of(self._totals.items())

    @property
    def now_s(self) -> float:
        """Now, or when the run ended, on the clock of the stage; in any thread."""
        return self.zero_s + self._now_s()

    def span(self, name: str, began_s: float, ended_s: float, records: tuple[int, int] | None) -> Span:
        """Something that lasted, by times on the clock of the stage."""
        return Span(name, began_s - self.zero_s, max(ended_s, began_s) - self.zero_s, records)


class StepsHistory:
    """What the steps of a pass did lately: totals of all of them after each batch.

    Args:
        keep: how much is kept.
        seconds: gives the seconds since the beginning of the run.
    """

    def __init__(self, keep: Keep, seconds: Callable[[], float]) -> None:
        self._noted: Ring[tuple[float, Mapping[str, tuple[int, float]], Mapping[str, tuple[int, int, int]]]]
        self._noted = Ring(keep.batches + 1)
        self._noted.add((0.0, {}, {}))
        self._seconds = seconds

    def note(self, steps: Mapping[str, tuple[int, float]], passed: Mapping[str, tuple[int, int, int]]) -> None:
        """A batch has been computed.

        Args:
            steps: batches and seconds busy by step.
            passed: records, bytes in and bytes out by step.
        """
        self._noted.add((self._seconds(), steps, passed))

    def recent(self, step: str) -> tuple[BatchMetrics, ...]:
        """The last batches of a step."""
        totals: list[Totals] = []
        for ended_s, steps, passed in self._noted.items():
            (batches, busy_s), (items, in_, out) = steps.get(step, (0, 0.0)), passed.get(step, (0, 0, 0))
            totals.append((items, batches, in_, out, 0.0, busy_s, 0.0, ended_s))
        return batches_of(totals)


def launch_track(name: str, log: LaunchLog, began_s: float) -> Track:
    """The timed launches of a pass.

    Args:
        name: of the track.
        log: where they are.
        began_s: the beginning of the run, on the clock of `time.perf_counter`.
    """
    launches = log.kept.items()
    # The clocks of devices are their own affair: a launch that was waited for ended just before that.
    spans = [Span(one.step, one.ended_s - began_s - one.device_s, one.ended_s - began_s) for one in launches]
    return Track(name, tuple(spans), log.kept.lost)
