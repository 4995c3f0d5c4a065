"""Repetitions of several peers in turns, by the wall and by the processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Slope:
    """Cost of a step, as the slope between trainings of two lengths, and of what does not depend on the length.

    Attributes:
        wall_s, busy_s: of a step, by the wall and by the processor: medians over repetitions.
        least_s, most_s: spread of the first.
        begin_s: of a training without its steps, by the wall.
    """

    wall_s: float
    busy_s: float
    least_s: float
    most_s: float
    begin_s: float

    @classmethod
    def of(cls, short: Seconds, long: Seconds, steps: tuple[int, int]) -> Slope:
        """Compute it from repetitions of both lengths, which were in turns."""
        few, many = steps
        wall, busy = (
            [(after - before) / (many - few) for before, after in zip(*pair, strict=True)]
            for pair in ((short.wall, long.wall), (short.busy, long.busy))
        )
        step_s = median(wall)
        return cls(step_s, median(busy), min(wall), max(wall), median(short.wall) - few * step_s)


@dataclass
class Seconds:
    """Seconds of a peer's repetitions."""

    wall: list[float]
    busy: list[float]

    @property
    def median(self) -> tuple[float, float]:
        """Return the medians by the wall and by the processor."""
        return median(self.wall), median(self.busy)


def measured(
    peers: Mapping[str, Callable[[], Any]], reps: int, told: Callable[[Mapping[str, Seconds]], None] | None = None
) -> tuple[dict[str, Seconds], dict[str, Any]]:
    """Return the seconds of each peer's repetitions, and what it gave last.

    Repetitions alternate. Each comes after one that does not count: threads of the peer before wait busily for a while.
    `told` is called after each repetition of all peers.
    """
    seconds, given = {name: Seconds([], []) for name in peers}, {}
    for _ in range(reps):
        for name, work in peers.items():
            work()
            began_s, busy_s = time.perf_counter(), time.process_time()
            given[name] = work()
            seconds[name].wall.append(time.perf_counter() - began_s)
            seconds[name].busy.append(time.process_time() - busy_s)
        if told is not None:
            told(seconds)
    return seconds, given
