"""Weight tiles: runs of rows or columns of a resident operand that is streamed through a device."""

from __future__ import annotations

import math

import numpy as np

from flowcompute.imports import dataclass
from flowcompute.spec import Spec

STEP = 16
"""Divisor of the rows or columns of a tile. Other kernels with other orders of addition would compute a remainder."""


@dataclass(frozen=True)
class WeightTiles:
    """Division of an operand into tiles of one size, so that one kernel serves all of them.

    The last tile overlaps the one before it. Results of the overlap are computed twice, with the same bits.

    Attributes:
        value: id of the operand, or of the value that it is computed from where it is loaded.
        axis: the divided axis, counted from the end: -1 for columns, -2 for rows.
        size: rows or columns in a tile.
        total: rows or columns of the operand.
        kept: number of leading tiles that stay on the device.
    """

    value: int
    axis: int
    size: int
    total: int
    kept: int = 0

    @classmethod
    def within(cls, value: int, spec: Spec, axis: int, limit_bytes: int) -> WeightTiles | None:
        """Return the fewest tiles of at most `limit_bytes` each, or the smallest tiles possible.

        The result is None if one tile is the whole operand.
        """
        total = spec.shape[axis]
        if spec.item_bytes <= limit_bytes or total <= STEP:
            return None
        most = max(STEP, limit_bytes // (spec.item_bytes // total) // STEP * STEP)
        each = -(-total // -(-total // most))
        return cls(value, axis, -(-each // STEP) * STEP, total)

    @property
    def count(self) -> int:
        """Number of tiles."""
        return -(-self.total // self.size)

    @property
    def what(self) -> str:
        """Kind of the lines of a tile: "columns" or "rows"."""
        return "columns" if self.axis == -1 else "rows"

    def start(self, tile: int) -> int:
        """Return the first row or column of a tile."""
        return min(tile * self.size, self.total - self.size)

    def part(self, spec: Spec) -> Spec:
        """Return the spec of a tile of an operand."""
        shape = list(spec.shape)
        shape[self.axis] = self.size
        return Spec(spec.dtype, tuple(shape), spec.stream)

    def seen(self, array: np.ndarray, tile: int) -> np.ndarray:
        """Return the numbers of a tile, in order, as a view of shape `(lines, numbers)` of the operand's memory."""
        below = math.prod(array.shape[array.ndim + self.axis + 1 :])
        first = self.start(tile) * below
        return array.reshape(-1, self.total * below)[:, first : first + self.size * below]
