"""Sums, means and extremes of the records of each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from flowcompute.engine.accumulators.keys import checked_keys
from flowcompute.engine.accumulators.ordered import from_ordered, to_ordered
from flowcompute.engine.accumulators.record_slices import slices
from flowcompute.engine.folds import Accumulator
from flowcompute.ir import HostFold, SegmentShape, canonical_nan, identity
from flowcompute.spec import FLOAT64, INT64, is_float


class _Segments(Accumulator):
    """One row of numbers for each key, in flat memory. The keys are the second operand: one of each row of a record."""

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        super().__init__(start)
        self.spec = spec
        self._shape = SegmentShape.of(spec)
        self._segments = self._shape.segments
        self._state: dict[str, np.ndarray] = {}

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    def _slices(self, values: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return keys, numbers, and the place of each number in the state: number after number, row after row."""
        numbers, rows = self._shape.width, self._shape.rows
        for part in slices(values[0], self.spec.numbers):
            keys = checked_keys(values[1][part].reshape(-1), self._segments, self.stop + part.start, rows=rows)
            places = (keys[:, None] * numbers + np.arange(numbers)).reshape(-1)
            yield keys, values[0][part].reshape(-1), places

    def snapshot(self) -> dict[str, Any]:
        """Return the rows as arrays."""
        kept = {name: array.copy() for name, array in self._state.items()}
        return {"start": self.start, "records": self.records, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        self.start, self.records = state["start"], state["records"]
        self._state = {name: np.array(state[name]) for name in self._state}


class SegmentSums(_Segments):
    """Sums record after record, floats in float64; means are sums divided by counts."""

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        super().__init__(spec, start)
        dtype = spec.operands[0].dtype
        # Sums of parts are rounded by themselves.
        self.joins_exactly = not is_float(dtype)
        self._state["sums"] = np.zeros(spec.result.item_numbers, FLOAT64 if is_float(dtype) else dtype)
        self._state["counts"] = np.zeros(self._segments, INT64)

    def _push(self, values: Sequence[np.ndarray]) -> None:
        sums = self._state["sums"]
        for keys, numbers, places in self._slices(values):
            with np.errstate(all="ignore"):
                np.add.at(sums, places, numbers.astype(sums.dtype, copy=False))
            self._state["counts"] += np.bincount(keys, minlength=self._segments)

    def _join(self, other: Self) -> None:
        with np.errstate(all="ignore"):
            for name, array in self._state.items():
                array += other._state[name]

    def result(self) -> np.ndarray:
        """Return the sums or means so far; those of no record are 0 or NaN."""
        result = self.spec.result
        value = self._state["sums"].reshape(result.shape)
        with np.errstate(all="ignore"):
            if self.spec.op == "segment_mean":
                value = value / self._state["counts"].reshape(-1, *(1,) * (len(result.shape) - 1))
            value = value.astype(result.dtype)
        return canonical_nan(value) if is_float(result.dtype) else value


class SegmentExtremes(_Segments):
    """Largest or smallest numbers, as integers of the same order: NaN wins, and of two zeros the larger or smaller."""

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        super().__init__(spec, start)
        self._least = spec.op == "segment_min"
        self._ufunc = np.minimum if self._least else np.maximum
        dtype = spec.operands[0].dtype
        nothing = np.full(spec.result.item_numbers, identity("min" if self._least else "max", dtype), dtype)
        self._state["extremes"] = to_ordered(nothing)

    def _push(self, values: Sequence[np.ndarray]) -> None:
        for _, numbers, places in self._slices(values):
            self._ufunc.at(self._state["extremes"], places, to_ordered(numbers, nan_first=self._least))

    def _join(self, other: Self) -> None:
        extremes = self._state["extremes"]
        self._ufunc(extremes, other._state["extremes"], out=extremes)

    def result(self) -> np.ndarray:
        """Return the extremes so far; that of no record is what every number beats."""
        result = self.spec.result
        return from_ordered(self._state["extremes"].copy(), result.dtype).reshape(result.shape)
