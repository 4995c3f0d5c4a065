"""Quantiles of a stream from sketches: sorted blocks, halved as they are merged in the aligned tree.

Items of several numbers have a sketch for each of them, side by side in the same arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from flowcompute.engine.folds import BlockedAccumulator
from flowcompute.ir import SKETCH_RECORDS, HostFold, Parts, canonical_nan
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, is_float


def rank_error(records: int) -> int:
    """Return the largest error of a rank in a sketch of so many records.

    In a node of weight w each number stands for w records. Two such nodes become one of weight 2w
    by keeping every other number of both in order: ranks are off by 0 to w. There are at most
    `records / (2 * w * SKETCH_RECORDS)` such steps on a level, so a level adds at most
    `records / (2 * SKETCH_RECORDS)`. Even levels keep the first of each two, so ranks come out
    too large. Odd levels keep the second, so they come out too small. So half of the levels count.
    """
    levels = max(0, (records // SKETCH_RECORDS).bit_length() - 1)
    return math.ceil(-(-levels // 2) * records / (2 * SKETCH_RECORDS))


class Sketch(BlockedAccumulator):
    """The deterministic compactors of Manku, Rajagopalan and Lindsay with one buffer size on all levels.

    "Approximate medians and other quantiles in one pass and with limited memory" (1998); KLL sketches (Karnin, Lang,
    Liberty, 2016) add random choices. We avoid these, so that equal records give equal bits. Nothing is lost up to
    `SKETCH_RECORDS` records; beyond, see `rank_error`.
    """

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        self.spec = spec
        super().__init__(SKETCH_RECORDS, start)
        self._nan = np.zeros(spec.item, BOOL)

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    @property
    def blocks_at_once(self) -> int:
        """A few: sorting takes a copy."""
        return 8 if self.spec.item == () else 1

    def arrays(self, values: Sequence[np.ndarray]) -> Parts:
        """Return the numbers, half formats as float32."""
        numbers = np.asarray(values[0])
        if numbers.dtype in (FLOAT16, BFLOAT16):
            numbers = numbers.astype(FLOAT32)
        if is_float(numbers.dtype):
            self._nan = self._nan | np.isnan(numbers).any(axis=0)
        return (numbers,)

    def reduce(self, arrays: Parts, records: int, first: int) -> Parts:
        """Return each block sorted."""
        del first
        return (np.sort(arrays[0].reshape(-1, records, *self.spec.item), axis=1),)

    def merge_nodes(self, a: Parts, a_records: int, b: Parts, b_records: int) -> Parts:
        """Return every other number of both."""
        assert a_records == b_records
        level = (a_records // SKETCH_RECORDS).bit_length() - 1
        return (np.sort(np.concatenate([a[0], b[0]], axis=1), axis=1)[:, level % 2 :: 2],)

    def _join(self, other: Self) -> None:
        super()._join(other)
        self._nan = self._nan | other._nan

    def result(self) -> np.ndarray:
        """Return the quantiles of all records so far; NaN without any, or if one is NaN."""
        result, nodes = self.spec.result, self.nodes()
        wanted = np.array(self.spec.attr("q"), FLOAT64)
        made = np.full((wanted.size, *self.spec.item), np.nan)
        for place in np.ndindex(self.spec.item) if nodes else ():
            if not self._nan[place]:
                made[(slice(None), *place)] = _quantiles(
                    [(parts[0][(slice(None), *place)], n) for parts, n in nodes], wanted
                )
        with np.errstate(all="ignore"):
            return canonical_nan(made.astype(result.dtype).reshape(result.shape))

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data and arrays."""
        return {**super().snapshot(), "nan": self._nan.copy() if self.spec.item else bool(self._nan)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        super().restore(state)
        self._nan = np.array(state["nan"], BOOL)


def _quantiles(nodes: Sequence[tuple[np.ndarray, int]], wanted: np.ndarray) -> np.ndarray:
    """Return quantiles of numbers in sorted blocks, each with the number of records that it stands for."""
    numbers = np.concatenate([block for block, _ in nodes])
    weights = np.concatenate([np.full(len(block), records // len(block)) for block, records in nodes])
    order = np.argsort(numbers, kind="stable")
    return _interpolated(numbers[order].astype(FLOAT64), np.cumsum(weights[order]), wanted)


def _interpolated(numbers: np.ndarray, ends: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Compute NumPy's linear quantiles of sorted numbers, each repeated: number i stands up to position `ends[i]`."""
    position = q * (ends[-1] - 1)
    below = np.floor(position)
    low, high = (numbers[np.searchsorted(ends, at, side="right")] for at in (below, np.ceil(position)))
    t = position - below
    with np.errstate(all="ignore"):
        gap = high - low
        between = np.where(t < 0.5, low + gap * t, high - gap * (1 - t))
    return np.asarray(np.where(low == high, low, between))
