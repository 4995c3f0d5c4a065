"""State of a fold over the stream: it takes records in order, and joins with that of the records after."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np


class Accumulator(ABC):
    """The state of a fold over a range of records.

    Attributes:
        start: index of its first record.
        records: how many it has taken.
        joins_exactly: whether states over parts that begin at whole blocks join to the bits of the whole.
    """

    joins_exactly = True

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.records = 0

    @property
    def stop(self) -> int:
        """Index of the record that comes next."""
        return self.start + self.records

    def push_records(self, values: Sequence[np.ndarray]) -> None:
        """Add the records that come next.

        Args:
            values: for each operand an array `(records, *item)`, the whole value where it is
                resident; kept by nobody after the call.

        Raises:
            RunError: if a record has a value that the fold refuses.
        """
        self._push(values)
        self.records += len(values[0])

    def value_of(self, values: Sequence[np.ndarray]) -> np.ndarray | None:
        """Return the value of a fold over these records alone, to the bit; None where that takes a state.

        Args:
            values: as `push_records` takes them; nothing was pushed before, and nothing is pushed by this.

        Raises:
            RunError: as `push_records`.
            ValueError: as `result`.
        """
        del values
        return None

    def takes(self, other: Accumulator) -> bool:
        """Check whether it can take in states of another class."""
        return type(other) is type(self)

    def merge(self, other: Accumulator) -> None:
        """Take in the state of the records that follow; `other` is not used again.

        Raises:
            ValueError: if `other` does another thing or does not begin where this one ends.
        """
        if not self.takes(other) or other.description != self.description:
            raise ValueError("cannot merge states of different folds")
        if other.start != self.stop:
            raise ValueError(
                f"cannot merge: records {other.start} to {other.stop} do not follow "
                f"records {self.start} to {self.stop}; merge states in record order, without gaps"
            )
        self._join(other)
        self.records += other.records

    def close(self) -> None:
        """Let go of all that it holds at once: it is not used again. Its parts refer to each other."""
        self.__dict__.clear()

    @property
    @abstractmethod
    def description(self) -> object:
        """Record of the fold, for comparison."""

    @abstractmethod
    def _push(self, values: Sequence[np.ndarray]) -> None:
        """Add records; `records` is still that before them."""

    @abstractmethod
    def _join(self, other: Any) -> None:
        """Take in the state of the records that follow; `records` is still that before them."""

    @abstractmethod
    def result(self) -> np.ndarray:
        """Return the value of the fold over all records so far. The state goes on.

        Raises:
            ValueError: if there is no such value.
        """

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data and arrays."""

    def hand_over(self) -> dict[str, Any]:
        """Return the state as `snapshot` does, in memory that a later fold of the same step may take."""
        return self.snapshot()

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
