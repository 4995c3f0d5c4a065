"""Covariance of the columns of a stream, in one reading."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowcompute.engine.folds import BlockedAccumulator
from flowcompute.ir import HostFold, Parts, canonical_nan, product_block
from flowcompute.spec import FLOAT64


class Covariance(BlockedAccumulator):
    """Means and co-moments in float64: of a block around its own mean, blocks merged as Chan, Golub and LeVeque do.

    Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    variances" (1979), for pairs of columns.
    """

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        self.spec = spec
        super().__init__(_block(spec), start)

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    @property
    def blocks_at_once(self) -> int:
        """One: a block's result is often larger than the block."""
        return 1

    def arrays(self, values: Sequence[np.ndarray]) -> Parts:
        """Return the records as a matrix."""
        return (np.asarray(values[0]).reshape(len(values[0]), self.spec.numbers),)

    def reduce(self, arrays: Parts, records: int, first: int) -> Parts:
        """Return the means and co-moments of each block."""
        del first
        blocks = len(arrays[0]) // records
        means = np.empty((blocks, self.spec.numbers))
        moments = np.empty((blocks, self.spec.numbers, self.spec.numbers))
        for block in range(blocks):
            part = arrays[0][block * records : (block + 1) * records]
            moved = np.array(part, FLOAT64, order="C").reshape(records, self.spec.numbers)
            means[block] = moved.sum(axis=0) / records
            moved -= means[block]
            moments[block] = moved.T @ moved
        return means, moments

    def merge_nodes(self, a: Parts, a_records: int, b: Parts, b_records: int) -> Parts:
        """Merge the means and co-moments of two neighbours."""
        gap = b[0] - a[0]
        mean = a[0] + gap * (b_records / (a_records + b_records))
        moments = gap[:, :, None] * gap[:, None, :]
        moments *= a_records * (b_records / (a_records + b_records))
        moments += a[1]
        moments += b[1]
        return mean, moments

    def result(self) -> np.ndarray:
        """Compute the covariance, or correlation, of all records so far; NaN without any."""
        total = self.total()
        numbers = self.spec.numbers
        with np.errstate(all="ignore"):
            moments = np.full((numbers, numbers), np.nan) if total is None else total[0][1]
            if self.spec.op == "cov":
                value = moments / max(self.records - self.spec.attr("correction"), 0)
            else:
                deviations = np.sqrt(np.diagonal(moments))
                value = np.clip(moments / deviations[:, None] / deviations[None, :], -1, 1)
        return canonical_nan(value.reshape(self.spec.result.shape))


def _block(spec: HostFold) -> int:
    return product_block(2 * spec.numbers)
