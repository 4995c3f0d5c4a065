"""How long a record takes, and whether that is another time than it was."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flowcompute.strategy.search import spread_of

LEAST_PARTS = 8
"""Measurements that make a pace."""

LEAST_DRIFT = 0.2
"""What counts as drift, however sure it is: machines are warmer or busier by some percent all the time."""


@dataclass(frozen=True)
class Pace:
    """How long a record takes.

    Attributes:
        record_s: seconds, as the median of several measurements.
        noise: how far that may be off, as a share: two standard errors, from their spread.
    """

    record_s: float
    noise: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Pace | None:
        """Of measurements of the seconds of a record; None of too few."""
        if len(seconds) < LEAST_PARTS:
            return None
        middle, error = spread_of(np.log(np.maximum(seconds, 1e-15)))
        return cls(math.exp(middle), 2 * error)

    def drift(self, now: Pace) -> float | None:
        """How many times as long a record takes now, where that is beyond noise; None where it is not."""
        change = math.log(now.record_s / self.record_s)
        if abs(change) <= max(math.log1p(LEAST_DRIFT), math.hypot(self.noise, now.noise)):
            return None
        return math.exp(change)


class DriftWatch:
    """Notices when records begin to take another time than they did at first."""

    def __init__(self) -> None:
        self._first: list[float] = []
        self._last: deque[float] = deque(maxlen=LEAST_PARTS)

    def drift(self, record_s: float) -> float | None:
        """How many times as long a record takes now as at first, where that is beyond noise.

        Args:
            record_s: seconds of a record, measured just now.
        """
        (self._first if len(self._first) < LEAST_PARTS else self._last).append(record_s)
        before, now = Pace.of(self._first), Pace.of(tuple(self._last))
        return None if before is None or now is None else before.drift(now)
