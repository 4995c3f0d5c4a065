"""A value at the end of a training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from flowcompute.engine.folds import Accumulator
from flowcompute.ir import HostFold


class TrainedValue(Accumulator):
    """A fold over losses that gives one of the values that the steps carry on; these are the state of a scan.

    Attributes:
        value: gives it; set where the scan is known.
    """

    value: Callable[[], np.ndarray]

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        super().__init__(start)
        self.spec = spec

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    def _push(self, values: Sequence[np.ndarray]) -> None:
        """Take losses, of which nothing is kept."""

    def _join(self, other: Self) -> None:
        """Go on with the scan of what follows."""
        self.value = other.value

    def result(self) -> np.ndarray:
        """Return the value."""
        return np.array(self.value())

    def snapshot(self) -> dict[str, Any]:
        """Return where it stands; the value is in the state of the scan."""
        return {"start": self.start, "records": self.records}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        self.start, self.records = state["start"], state["records"]
