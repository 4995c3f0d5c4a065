"""The different numbers of a stream, and how often each comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from flowcompute.engine.accumulators.ordered import from_ordered, to_ordered
from flowcompute.engine.accumulators.record_slices import slices
from flowcompute.engine.folds import Accumulator
from flowcompute.errors import RunError
from flowcompute.ir import HostFold
from flowcompute.spec import INT64, is_float


class Different(Accumulator):
    """The different numbers so far, ascending, and their counts: all NaN are one, and -0 is 0.

    They are kept as integers of the same order, so that equal numbers have equal bits.
    """

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        super().__init__(start)
        self.spec = spec
        self._values = to_ordered(np.empty(0, spec.operands[0].dtype))
        self._counts = np.empty(0, INT64)

    @property
    def most(self) -> int:
        """Number of those that have room."""
        return self.spec.result.shape[0]

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    def _push(self, values: Sequence[np.ndarray]) -> None:
        for part in slices(values[0], self.spec.numbers):
            numbers = np.ascontiguousarray(values[0][part]).reshape(-1)
            if is_float(numbers.dtype):
                numbers = np.where(numbers == 0, np.zeros((), numbers.dtype), numbers)
            self._take(*np.unique(to_ordered(numbers), return_counts=True), self.stop + part.stop)

    def _take(self, values: np.ndarray, counts: np.ndarray, stop: int) -> None:
        """Add numbers that are different from each other, of records before `stop`.

        Raises:
            RunError: if there are more than have room.
        """
        merged, places = np.unique(np.concatenate([self._values, values]), return_inverse=True)
        if len(merged) > self.most:
            raise RunError(
                "cannot keep so many different numbers",
                records=(self.start, stop),
                expected=f"at most {self.most}",
                got=f"{len(merged)} in the records before {stop}",
                hint="raise max_values=, or round or bin the numbers first",
            )
        total = np.zeros(len(merged), INT64)
        np.add.at(total, places, np.concatenate([self._counts, counts]))
        self._values, self._counts = merged, total

    def _join(self, other: Self) -> None:
        self._take(other._values, other._counts, other.stop)

    def result(self) -> np.ndarray:
        """Return the numbers, or their counts, with zeros behind where there are fewer than have room."""
        counting = self.spec.op == "unique_counts"
        found = self._counts if counting else from_ordered(self._values.copy(), self.spec.operands[0].dtype)
        made = np.zeros(self.most, found.dtype)
        made[: len(found)] = found
        return made

    def snapshot(self) -> dict[str, Any]:
        """Return what is kept, as arrays."""
        kept = {"values": self._values.copy(), "counts": self._counts.copy()}
        return {"start": self.start, "records": self.records, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        self.start, self.records = state["start"], state["records"]
        self._values, self._counts = np.array(state["values"]), np.array(state["counts"])
