"""Launches of a flow that differ from the last ones of their step in the record index alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowcompute.engine import BatchSlice
from flowcompute.ir import Kernel
from flowcompute.schedule import RegionStep


@dataclass(frozen=True, slots=True)
class RepeatedLaunch:
    """A launch with all that stays while its arrays do.

    Attributes:
        kernel: of the plan, or adopted.
        compiled: what is launched.
        items: records.
        arrays: of the values that it reads and writes.
        buffers: its arguments before the numbers: buffers of the arrays, and scalars.
        total, chunk, groups: its division.
    """

    kernel: Kernel
    compiled: Any
    items: int
    arrays: tuple[tuple[int, np.ndarray], ...]
    buffers: Sequence[Any]
    total: int
    chunk: int
    groups: int

    def values(self, start: int) -> list[Any]:
        """Return its arguments over the records from `start` on."""
        return [*self.buffers, self.total, self.chunk, 0, start, 0]


class RepeatedLaunches:
    """The last launch of each step, as far as it may be repeated.

    Args:
        lasting: values whose arrays stay from batch to batch; others are not to be kept alive.
        streamed: all values along the stream.
    """

    def __init__(self, lasting: frozenset[int], streamed: frozenset[int]) -> None:
        self._passing = streamed - lasting
        self._last: dict[str, RepeatedLaunch] = {}

    def find(
        self, step: RegionStep, kernel: Kernel, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray]
    ) -> RepeatedLaunch | None:
        """Return the last launch of a step, if it had the same kernel, as many records and the very same arrays."""
        last = self._last.get(step.name)
        if last is None or last.items != batch_slice.items or last.kernel is not kernel:
            return None
        for value, array in last.arrays:
            if (outputs[value] if value in outputs else batch_slice.array(value)) is not array:
                return None
        return last

    def keep(
        self,
        step: RegionStep,
        kernel: Kernel,
        compiled: Any,
        batch_slice: BatchSlice,
        outputs: Mapping[int, np.ndarray],
        buffers: Sequence[Any],
        division: tuple[int, int, int],
    ) -> None:
        """Keep a launch whose arguments are arrays that stay, and numbers."""
        pointers = [one.value for one in kernel.arguments if one.kind != "scalar"]
        known = all(one.kind in ("scalar", "input", "output") for one in kernel.arguments)
        if kernel.stages > 1 or kernel.block or not known or not self._passing.isdisjoint(pointers):
            return
        arrays = tuple((i, outputs[i] if i in outputs else batch_slice.array(i)) for i in pointers)
        self._last[step.name] = RepeatedLaunch(kernel, compiled, batch_slice.items, arrays, buffers, *division)

    def clear(self) -> None:
        """Forget all launches, and let go of their arrays."""
        self._last.clear()
