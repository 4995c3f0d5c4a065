"""What a stage did lately: its last batches and, for a trace, its last states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flowcompute.metrics import BatchMetrics, Span, Track
from flowcompute.planner.launch_log import LaunchLog
from flowcompute.ring import Ring

BATCHES = 128
"""Batches of each stage that are kept."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How much is kept of each stage: newest batches, and spans for a trace."""

    batches: int = BATCHES
    spans: int = 0


class StageHistory:
    """What one stage did lately.

    A batch is what was counted between two changes of state, with the seconds since the batch
    before it. So the wait for taking over a batch's output is found with the next batch.

    Args:
        keep: how much is kept.
        zero_s: the beginning of the run, on the clock of the stage.
        seconds: gives the seconds since the beginning of the run; they stand still when it has ended.
    """

    def __init__(self, keep: Keep, zero_s: float, seconds: Callable[[], float]) -> None:
        self.batches: Ring[BatchMetrics] = Ring(keep.batches)
        self.spans: Ring[Span] = Ring(keep.spans)
        self.traces = keep.spans > 0
        self._zero_s = zero_s
        self._now_s = seconds
        self._told = (0, 0, 0, 0)
        self._seconds = (0.0, 0.0, 0.0)

    @property
    def now_s(self) -> float:
        """Now, or when the run ended, on the clock of the stage; in any thread."""
        return self._zero_s + self._now_s()

    def span(self, name: str, began_s: float, ended_s: float, records: tuple[int, int] | None) -> Span:
        """Something that lasted, by times on the clock of the stage."""
        return Span(name, began_s - self._zero_s, max(ended_s, began_s) - self._zero_s, records)

    def settle(self, counts: tuple[int, int, int, int], seconds: tuple[float, float, float], ended_s: float) -> None:
        """Note what has come since the last time.

        Args:
            counts: batches, items, bytes in and bytes out so far.
            seconds: waiting for input, busy and waiting for output so far.
            ended_s: now, on the clock of the stage.
        """
        if counts[0] == self._told[0]:
            return
        batches, items, bytes_in, bytes_out = (new - old for new, old in zip(counts, self._told, strict=True))
        wait_in_s, busy_s, wait_out_s = (new - old for new, old in zip(seconds, self._seconds, strict=True))
        self._told, self._seconds = counts, seconds
        ended = ended_s - self._zero_s
        self.batches.add(BatchMetrics(items, batches, bytes_in, bytes_out, wait_in_s, busy_s, wait_out_s, ended))


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
