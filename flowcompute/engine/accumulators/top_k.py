"""The largest numbers of a stream and where they were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from flowcompute.engine.accumulators.ordered import to_ordered
from flowcompute.engine.accumulators.record_slices import slices
from flowcompute.engine.folds import Accumulator
from flowcompute.ir import HostFold, canonical_nan
from flowcompute.spec import INT64, is_float


class TopK(Accumulator):
    """The k largest numbers so far, descending: NaN first, of equal ones the earlier."""

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        super().__init__(start)
        self.spec = spec
        self._values = np.empty(0, spec.operands[0].dtype)
        self._indices = np.empty(0, INT64)

    @property
    def k(self) -> int:
        """Number of those that are asked for."""
        return self.spec.result.shape[0]

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    def _push(self, values: Sequence[np.ndarray]) -> None:
        for part in slices(values[0], 1):
            self._take(values[0][part], np.arange(part.start, part.stop, dtype=INT64) + self.stop)

    def _take(self, values: np.ndarray, indices: np.ndarray) -> None:
        """Keep the largest of these and those from before."""
        known, ranks = _ranks(self._values), _ranks(values)
        if len(known) == self.k:
            better = ranks > known[-1]
            values, indices, ranks = values[better], indices[better], ranks[better]
        if not len(values):
            return
        # Turned over, a stable ascending sort leaves equal ones in record order.
        order = np.argsort(~np.concatenate([known, ranks]), kind="stable")[: self.k]
        self._values = np.concatenate([self._values, values])[order]
        self._indices = np.concatenate([self._indices, indices])[order]

    def _join(self, other: Self) -> None:
        self._take(other._values, other._indices)

    def result(self) -> np.ndarray:
        """Return the numbers, or their record indices.

        Raises:
            ValueError: if there were fewer records than asked for.
        """
        if len(self._values) < self.k:
            raise ValueError(
                f"cannot find that many: {self.k} records were asked for, and the stream has {self.records}"
            )
        if self.spec.op == "top_k_indices":
            return self._indices.copy()
        return canonical_nan(self._values.copy()) if is_float(self._values.dtype) else self._values.copy()

    def snapshot(self) -> dict[str, Any]:
        """Return what is kept, as arrays."""
        kept = {"values": self._values.copy(), "indices": self._indices.copy()}
        return {"start": self.start, "records": self.records, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        self.start, self.records = state["start"], state["records"]
        self._values, self._indices = np.array(state["values"]), np.array(state["indices"])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return integers that compare as the numbers do, the two zeros being equal."""
    if is_float(values.dtype):
        values = np.where(values == 0, np.zeros((), values.dtype), values)
    return to_ordered(values)
