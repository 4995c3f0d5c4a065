"""Batches: the unit of data that flows through a running plan."""

from __future__ import annotations

import math

import numpy as np

from flowcompute.imports import dataclass

ALIGNMENT = 128
"""Bytes; what OpenCL wants of host memory that it uses in place, and a pair of cache lines."""


def aligned_array(shape: tuple[int, ...], dtype: np.dtype, *, zeroed: bool = False) -> np.ndarray:
    """Return a C-contiguous array whose first byte lies on a multiple of `ALIGNMENT`.

    Launches see each other's results in such memory. Of other memory Intel's runtime makes a copy for each buffer.

    Args:
        shape: its shape.
        dtype: of its numbers.
        zeroed: whether these are zeros, which take no room before they are written; else they are any.
    """
    size = math.prod(shape) * dtype.itemsize
    raw = (np.zeros if zeroed else np.empty)(size + ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % ALIGNMENT
    return raw[skip : skip + size].view(dtype).reshape(shape)


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
