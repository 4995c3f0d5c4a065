"""Repetitions of several peers in turns, by the wall and by the processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass
class Seconds:
    """Seconds of a peer's repetitions."""

    wall: list[float]
    busy: list[float]

    @property
    def median(self) -> tuple[float, float]:
        """Return the medians by the wall and by the processor."""
        return median(self.wall), median(self.busy)


def measured(peers: Mapping[str, Callable[[], Any]], reps: int) -> tuple[dict[str, Seconds], dict[str, Any]]:
    """Return the seconds of each peer's repetitions, and what it gave last.

    Repetitions alternate. Each comes after one that does not count: threads of the peer before wait busily for a while.
    """
    seconds, given = {name: Seconds([], []) for name in peers}, {}
    for _ in range(reps):
        for name, work in peers.items():
            work()
            began_s, busy_s = time.perf_counter(), time.process_time()
            given[name] = work()
            seconds[name].wall.append(time.perf_counter() - began_s)
            seconds[name].busy.append(time.process_time() - busy_s)
    return seconds, given
