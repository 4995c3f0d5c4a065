"""Records of a stream that are kept: the first, the last, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from flowcompute.engine.folds import Accumulator
from flowcompute.ir import HostFold


class End(Accumulator):
    """One record, kept."""

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        super().__init__(start)
        self.spec = spec
        self._kept: np.ndarray | None = None

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    def _push(self, values: Sequence[np.ndarray]) -> None:
        if len(values[0]):
            self._keep(np.array(values[0][:1] if self.spec.op == "first" else values[0][-1:]))

    def _keep(self, record: np.ndarray | None) -> None:
        if record is not None and (self._kept is None or self.spec.op == "last"):
            self._kept = record

    def _join(self, other: Self) -> None:
        self._keep(other._kept)

    def result(self) -> np.ndarray:
        """Return the record.

        Raises:
            ValueError: without any.
        """
        if self._kept is None:
            if self.records:
                # No stream brings a fold there; a state that was restored may.
                raise LookupError(f"nothing is kept of {self.records} records")
            raise ValueError(f"cannot take the {self.spec.op} record of an empty stream")
        return np.array(self._kept[0])

    def snapshot(self) -> dict[str, Any]:
        """Return the record as an array."""
        kept = None if self._kept is None else np.array(self._kept)
        return {"start": self.start, "records": self.records, "kept": kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        self.start, self.records, self._kept = state["start"], state["records"], state["kept"]


class AllRecords(Accumulator):
    """All records, one behind the other. There are few: those of a step of a training."""

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        super().__init__(start)
        self.spec = spec
        self._parts: list[np.ndarray] = []

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    def _push(self, values: Sequence[np.ndarray]) -> None:
        self._parts.append(np.array(values[0], order="C"))

    def _join(self, other: Self) -> None:
        self._parts += other._parts

    def result(self) -> np.ndarray:
        """Return the records as one array.

        Raises:
            ValueError: without any.
        """
        if not self._parts:
            raise ValueError("cannot take the records of an empty stream")
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    def value_of(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return these records: the very array, where it lies in order; see `Accumulator.value_of`."""
        return np.ascontiguousarray(values[0])

    def snapshot(self) -> dict[str, Any]:
        """Return the records as arrays."""
        return {"start": self.start, "records": self.records, "parts": [np.array(part) for part in self._parts]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        self.start, self.records, self._parts = state["start"], state["records"], [*state["parts"]]
