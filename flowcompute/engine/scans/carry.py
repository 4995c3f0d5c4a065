"""Carries of scans from batch to batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np


class Carry(ABC):
    """State that a scan carries from batch to batch.

    Attributes:
        marks_alone: whether `mark` and what it gives ask no device.
    """

    marks_alone = False

    def alike(self) -> Hashable:
        """Return the key of carries that may place the same records together; None where none may."""
        return None

    def join(self, other: Self) -> None:  # noqa: B027 - most have nothing to share
        """Place records together with another one, which is alike. A mark of that one is one of both."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return the carry as plain data and arrays."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""

    def mark(self) -> Callable[[], None]:
        """Note where it stands; the result puts it back there, once."""
        return partial(self.restore, self.snapshot())


class Scan(Carry):
    """A scan along axis 0 of what it is given, batch after batch, on the host."""

    @abstractmethod
    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Compute the results for the next records, of which `start` is the first, into `out`."""
