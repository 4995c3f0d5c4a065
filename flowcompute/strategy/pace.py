"""Pace of a run: the time per record, and its drift between runs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from flowcompute.imports import dataclass
from flowcompute.strategy.search import spread_of

LEAST_PARTS = 8
"""Number of measurements that a pace needs."""

LEAST_DRIFT = 0.2
"""Smallest relative change that counts as drift, since temperature and load vary machines by some percent."""


@dataclass(frozen=True)
class Pace:
    """The time per record.

    Attributes:
        record_s: seconds per record, as the median of several measurements.
        noise: relative uncertainty: two standard errors, from the spread of the measurements.
    """

    record_s: float
    noise: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Pace | None:
        """Compute the pace from measurements of the seconds per record; None if they are too few."""
        if len(seconds) < LEAST_PARTS:
            return None
        middle, error = spread_of(np.log(np.maximum(seconds, 1e-15)))
        return cls(math.exp(middle), 2 * error)

    def drift(self, now: Pace) -> float | None:
        """Return the ratio of the time per record now to this one, or None if it is within the noise."""
        change = math.log(now.record_s / self.record_s)
        if abs(change) <= max(math.log1p(LEAST_DRIFT), math.hypot(self.noise, now.noise)):
            return None
        return math.exp(change)


class DriftWatch:
    """Detector of a change in the time per record during a run."""

    def __init__(self) -> None:
        self._first: list[float] = []
        self._last: deque[float] = deque(maxlen=LEAST_PARTS)

    def drift(self, record_s: float) -> float | None:
        """Return the ratio of the current time per record to the initial one, or None if it is within the noise.

        Args:
            record_s: seconds per record, measured just now.
        """
        (self._first if len(self._first) < LEAST_PARTS else self._last).append(record_s)
        before, now = Pace.of(self._first), Pace.of(tuple(self._last))
        return None if before is None or now is None else before.drift(now)
