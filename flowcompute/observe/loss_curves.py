"""Losses and measures of trainings, as curves of bounded length."""

from __future__ import annotations

import math
from typing import Any

from flowcompute.observe.events import TrainingStepped

MOST_POINTS = 4096
"""Points of a curve. Where there are more, each second one is left out, and of what follows as many."""


class LossCurve:
    """Numbers of the steps of a training: each of them, or each so many-th where there are many."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float | None]] = []
        self._every, self._seen = 1, 0

    def add(self, step: int, number: float) -> None:
        """Add a point."""
        if self._seen % self._every == 0:
            # JSON has neither NaN nor infinities.
            self._points.append((step, number if math.isfinite(number) else None))
            if len(self._points) > MOST_POINTS:
                self._points = self._points[::2]
                self._every *= 2
        self._seen += 1

    def plain(self) -> dict[str, Any]:
        """Return steps and numbers as plain data."""
        return {"steps": [step for step, _ in self._points], "numbers": [number for _, number in self._points]}


class LossCurves:
    """The curves of all trainings of a run, by training and number."""

    def __init__(self) -> None:
        self._curves: dict[str, dict[str, LossCurve]] = {}

    def take(self, event: TrainingStepped) -> None:
        """Take a step."""
        mine = self._curves.setdefault(event.told.training, {})
        for name, number in event.told.numbers.items():
            mine.setdefault(name, LossCurve()).add(event.told.step, number)

    def plain(self) -> dict[str, Any]:
        """Return all curves as plain data."""
        return {name: {one: curve.plain() for one, curve in mine.items()} for name, mine in self._curves.items()}
