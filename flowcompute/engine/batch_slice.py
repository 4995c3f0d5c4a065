"""The records of a clock that are computed together: a whole batch, or a slice that a device has room for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np

from flowcompute.elements import Kind
from flowcompute.imports import dataclass
from flowcompute.schedule import Clock
from flowcompute.schedule.memory import span

Arrays = dict[int, np.ndarray]

Pushes = list[tuple[str, Callable[[], None]]]
"""Blocks for folds, each with the step that made them."""


@dataclass
class BatchSlice:
    """Records of a clock in hand, with what its steps have made of them so far.

    Attributes:
        clock: of the records; None for resident values.
        start: the first record.
        items: records; 1 for resident values.
        offset: the first record's place in its batch.
        values: arrays of the records, by value.
        resident: whole values, by value.
        bases: of windows the records that they overlap in.
        pushes: what folds are to be given once all steps have succeeded.
        launches: kernels launched (calls of NumPy regions).
    """

    clock: Clock | None
    start: int
    items: int
    offset: int
    values: Arrays
    resident: Mapping[int, np.ndarray]
    bases: Arrays = field(default_factory=dict)
    pushes: Pushes = field(default_factory=list)
    launches: int = 0

    def array(self, value: int) -> np.ndarray:
        """Return the array of a value: of these records, or whole where it is resident."""
        return self.values[value] if value in self.values else self.resident[value]

    def push_later(self, step: str, push: Callable[[], None]) -> None:
        """Note something for a fold, which gets it once all steps have succeeded."""
        self.pushes.append((step, push))


def even(items: int, most: int, granule: int) -> int:
    """Return the records of the first slice where all are about equal: a small rest would cost as much as a slice."""
    if items <= most:
        return items
    each = -(-items // -(-items // most))
    return -(-each // granule) * granule


def sliced(clock: Clock, arrays: Arrays, begin: int, stop: int) -> Arrays:
    """Cut the same records out of all values; of a window those that its records overlap in."""
    part = {value: array[begin:stop] for value, array in arrays.items()}
    for entry in clock.entries:
        if entry.node is not None and entry.node.kind is Kind.WINDOW:
            size, step = span(entry.node)
            part[entry.value] = arrays[entry.value][begin * step : (stop - 1) * step + size]
    return part
