"""What a fold computes whose state is kept on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowcompute.planner.accumulator import Accumulator
from flowcompute.spec import Spec

SLICE_NUMBERS = 1 << 16
"""Numbers taken at a time where the work on a batch needs memory for each."""


@dataclass(frozen=True)
class HostFold:
    """A fold over the stream, by its name and the values that it takes and gives.

    Attributes:
        op: name of the fold.
        operands: the values it takes; resident ones come whole with every batch.
        attrs: its attributes, sorted.
        result: the value it gives.
        accumulator: makes the state for the records from some index on.
        needs: the most bytes of that state, for a stream of a length that may be unknown.
    """

    op: str
    operands: tuple[Spec, ...]
    attrs: tuple[tuple[str, Any], ...]
    result: Spec
    accumulator: Callable[[HostFold, int], Accumulator] = field(repr=False)
    needs: Callable[[HostFold, int | None], int] = field(repr=False)

    @property
    def item(self) -> tuple[int, ...]:
        """Shape of an item of the first operand."""
        return self.operands[0].shape

    @property
    def numbers(self) -> int:
        """Numbers in an item of the first operand."""
        return self.operands[0].item_numbers

    def attr(self, name: str) -> Any:
        """An attribute."""
        return dict(self.attrs)[name]

    def make(self, start: int = 0) -> Accumulator:
        """The state of this fold over the records from `start` on."""
        return self.accumulator(self, start)

    def state_bytes(self, length: int | None) -> int:
        """The most bytes that the state takes over a stream of so many records."""
        return self.needs(self, length)


def slices(values: np.ndarray, numbers: int) -> list[slice]:
    """Consecutive records, each time about `SLICE_NUMBERS` numbers."""
    step = max(1, SLICE_NUMBERS // max(numbers, 1))
    return [slice(first, min(first + step, len(values))) for first in range(0, len(values), step)]
