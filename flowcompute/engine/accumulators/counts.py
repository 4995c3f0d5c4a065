"""Counts of integer keys, and of numbers between edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from flowcompute.engine.accumulators.keys import checked_keys
from flowcompute.engine.accumulators.record_slices import slices
from flowcompute.engine.folds import Accumulator
from flowcompute.ir import HostFold
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64


class Counts(Accumulator):
    """Counts of the records that have each key."""

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        super().__init__(start)
        self.spec = spec
        self._counts = np.zeros(spec.result.shape, INT64)

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    def _push(self, values: Sequence[np.ndarray]) -> None:
        for part in slices(values[0], 1):
            keys = checked_keys(values[0][part], len(self._counts), self.stop + part.start)
            self._counts += np.bincount(keys, minlength=len(self._counts))

    def _join(self, other: Self) -> None:
        self._counts += other._counts

    def result(self) -> np.ndarray:
        """Return the counts so far."""
        return self._counts.copy()

    def snapshot(self) -> dict[str, Any]:
        """Return the counts as an array."""
        return {"start": self.start, "records": self.records, "counts": self._counts.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        self.start, self.records, self._counts = state["start"], state["records"], np.array(state["counts"])


class Histogram(Counts):
    """Counts of the numbers between each two edges, the last edge included. The edges are the second operand."""

    def _push(self, values: Sequence[np.ndarray]) -> None:
        records, edges = values
        bins = len(self._counts)
        if not bins:
            return
        edges = _comparable(edges)
        for part in slices(records, self.spec.numbers):
            numbers = _comparable(records[part].reshape(-1))
            numbers = numbers[(numbers >= edges[0]) & (numbers <= edges[-1])]
            found = _equal_bins(numbers, edges) if self.spec.attr("equal") else _any_bins(numbers, edges)
            self._counts += np.bincount(found, minlength=bins)


def _comparable(numbers: np.ndarray) -> np.ndarray:
    """Return numbers in a dtype that NumPy compares fast."""
    if numbers.dtype == BOOL:
        return numbers.view(np.uint8)
    return numbers.astype(FLOAT32) if numbers.dtype in (FLOAT16, BFLOAT16) else numbers


def _any_bins(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the bin of each number, which lies between the first and the last edge."""
    found = np.searchsorted(edges, numbers, side="right") - 1
    return np.minimum(found, len(edges) - 2)


def _equal_bins(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Do as `_any_bins`, for bins of equal width: computed, and set right where rounding missed by one."""
    low, high = float(edges[0]), float(edges[-1])
    bins = len(edges) - 1
    found = ((numbers.astype(FLOAT64) - low) / (high - low) * bins).astype(np.intp)
    np.minimum(found, bins - 1, out=found)
    found -= numbers < edges[found]
    found += (numbers >= edges[found + 1]) & (found != bins - 1)
    return found
