"""Seconds that trials may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from flowcompute.strategy import Tune

T = TypeVar("T")

SHARE = 0.02
"""Share of a job's seconds that trials may take with `tune=True`."""

FIRST_S = 0.5
"""Expected seconds of a measurement before there was one: compiling is the most of it."""

LIMITS_S: Mapping[str, float] = {"quick": 10.0, "full": 120.0}
"""Seconds that trials may take otherwise."""

Clock = Callable[[], float]


class Budget:
    """Seconds for trials.

    Args:
        tune: as asked for.
        clock: gives seconds.

    Attributes:
        spent_s: what trials have taken so far.
    """

    def __init__(self, tune: Tune, clock: Clock) -> None:
        self.spent_s = 0.0
        self._tune = tune
        self._clock = clock
        self._began = clock()
        self._ended: float | None = None
        self._dearest_s = FIRST_S

    def end(self) -> None:
        """End the job's time: what is left of the budget is for after it."""
        self._ended = self._clock()

    @property
    def limit_s(self) -> float:
        """The seconds that trials may take so far."""
        if isinstance(self._tune, str):
            return LIMITS_S[self._tune]
        return SHARE * ((self._clock() if self._ended is None else self._ended) - self._began)

    def affords(self, seconds: float) -> bool:
        """Check whether so many more seconds may be spent."""
        return self.spent_s + seconds < self.limit_s

    def is_open(self, share: float = 1.0) -> bool:
        """Check whether one more measurement, as long as the longest so far, fits in a share of it."""
        return self.spent_s + self._dearest_s < share * self.limit_s

    def measure(self, work: Callable[[], T]) -> T:
        """Return what `work` gives; its seconds are spent."""
        began = self._clock()
        try:
            return work()
        finally:
            spent = self._clock() - began
            self.spent_s += spent
            self._dearest_s = max(self._dearest_s, spent)
