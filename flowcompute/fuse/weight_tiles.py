"""Panels: runs of rows or columns of a resident operand that passes through a device part by part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from flowcompute.spec import Spec

STEP = 16
"""Rows or columns of a panel are a multiple: fewer would be left to other kernels, with other orders of addition."""


@dataclass(frozen=True)
class WeightTiles:
    """How an operand is cut: all panels are of one size, so one kernel serves them; the last one begins early enough.

    What two panels share is made twice, with the same bits.

    Attributes:
        value: id of the operand, or of what it is computed from where it is loaded.
        axis: along which it is cut, counted from the end: -1 for columns, -2 for rows.
        size: rows or columns in a panel.
        total: rows or columns of the operand.
        kept: panels that stay on the device, the first ones.
    """

    value: int
    axis: int
    size: int
    total: int
    kept: int = 0

    @classmethod
    def within(cls, value: int, spec: Spec, axis: int, limit_bytes: int) -> WeightTiles | None:
        """As few panels as there can be of at most so many bytes, or the smallest; None where one is all of it."""
        total = spec.shape[axis]
        if spec.item_bytes <= limit_bytes or total <= STEP:
            return None
        most = max(STEP, limit_bytes // (spec.item_bytes // total) // STEP * STEP)
        each = -(-total // -(-total // most))
        return cls(value, axis, -(-each // STEP) * STEP, total)

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-self.total // self.size)

    @property
    def what(self) -> str:
        """What a panel is a run of."""
        return "columns" if self.axis == -1 else "rows"

    def start(self, panel: int) -> int:
        """The first row or column of a panel."""
        return min(panel * self.size, self.total - self.size)

    def part(self, spec: Spec) -> Spec:
        """What a panel is by itself, of an operand of this kind."""
        shape = list(spec.shape)
        shape[self.axis] = self.size
        return Spec(spec.dtype, tuple(shape), spec.stream)

    def seen(self, array: np.ndarray, panel: int) -> np.ndarray:
        """The numbers of a panel, in order, as lines `(lines, numbers)` of the operand's own memory."""
        below = math.prod(array.shape[array.ndim + self.axis + 1 :])
        first = self.start(panel) * below
        return array.reshape(-1, self.total * below)[:, first : first + self.size * below]
