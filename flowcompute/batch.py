"""Batches: the unit of data that flows through a running plan."""

from __future__ import annotations

import numpy as np

from flowcompute.imports import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Records `start` to `stop` (half open) of every value that passes one edge.

    Attributes:
        seq: position of the batch in the pass, from 0 and without gaps.
        start, stop: record indices; the only durable coordinates.
        arrays: value id in the graph -> array of shape `(stop - start, *item)`.
        clock: the clock of the records; see `rewrite/clocks.py`.
    """

    seq: int
    start: int
    stop: int
    arrays: dict[int, np.ndarray]
    clock: int = 0

    @property
    def items(self) -> int:
        """Records in the batch."""
        return self.stop - self.start
