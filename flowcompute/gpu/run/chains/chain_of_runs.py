"""Several runs of a chain as one launch: the phases of each stand behind those of the run before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from flowcompute.gpu.run.chains.chain_program import COUNTERS
from flowcompute.gpu.worker import Launcher
from flowcompute.ir import Argument

_VALUES = 1
"""Column of a phase that says where its arguments lie."""


Hole = tuple[Argument, np.dtype | None, Sequence[int]]
"""An argument that passes with its dtype, None for an array, and all its places in a table."""


class ChainOfRuns:
    """Runs of a chain of single work-items, whose arguments are noted one run after the other, and launched together.

    The number of runs is how many phases there are, which is an argument of the program.

    Args:
        launcher: of the device.
        compiled: the kernel of the chain's program.
        workers: work-groups.
        rows: the phases of a run.
        table: what they are given.
        holes: what passes.
        staying: values whose arrays are those of the last time in some runs.
        most: runs that there is room for.
    """

    def __init__(
        self,
        launcher: Launcher,
        compiled: Any,
        workers: int,
        rows: np.ndarray,
        table: np.ndarray,
        holes: Sequence[Hole],
        staying: Collection[int],
        most: int,
    ) -> None:
        self._launcher, self._compiled, self._workers, self._phases = launcher, compiled, workers, len(rows)
        self._every = _Holes(holes)
        self._others = _Holes([one for one in holes if one[0].value not in staying])
        each = np.tile(rows, (most, 1))
        each[:, _VALUES] += np.repeat(np.arange(most) * len(table), len(rows))
        self._tables = np.tile(table, (most, 1))
        self._counters = np.zeros((most, len(rows) * COUNTERS), np.uint32)
        # Each is the array itself: kernels of chains of runs work in the host's memory.
        self._arrays = (each, self._tables, self._counters)
        self._buffers = [launcher.memory.output(place, array) for place, array in enumerate(self._arrays)]

    def note(self, run: int, find: Callable[[Argument], Any], *, again: bool) -> None:
        """Note what a run is given.

        Args:
            run: its place among those that are launched together. No launch of these is in progress.
            find: gives the address of an array that passes, or a number.
            again: whether values that stay have the arrays that they had when this run was noted last.
        """
        if not run:
            # What stays of runs whose launch failed is there when they are noted again.
            self._fill()
        (self._others if again else self._every).note(run, find)

    def launch(self, runs: int) -> None:
        """Launch the first runs that were noted, and leave the waiting to others."""
        self._fill()
        self._counters[:runs] = 0
        values = [*self._buffers, runs * self._phases, 0, 0, 0]
        self._launcher.launch(self._compiled, values, self._workers, 1, (), timed=False, deferred=True)

    def _fill(self) -> None:
        """Fill in what was noted. A run that is noted twice for a launch has other arrays that stay the second time."""
        self._others.fill(self._tables)
        self._every.fill(self._tables)


class _Holes:
    """Places of a table that are filled with what is found.

    Args:
        holes: arguments, each with its dtype and its places.
    """

    def __init__(self, holes: Sequence[Hole]) -> None:
        self._runs: list[int] = []
        self._asked = [(argument, dtype) for argument, dtype, _ in holes]
        self._places = np.array([place for _, _, places in holes for place in places], np.int64)
        self._found_at = np.repeat(np.arange(len(holes)), [len(places) for _, _, places in holes])
        self._found: list[int] = []

    def note(self, run: int, find: Callable[[Argument], Any]) -> None:
        """Note what a run fills in."""
        found = [find(one) if dtype is None else bits_of(find(one), dtype) for one, dtype in self._asked]
        self._runs.append(run)
        self._found += found

    def fill(self, tables: np.ndarray) -> None:
        """Fill the holes of all runs that were noted, each the last time that it was."""
        if self._runs:
            found = np.array(self._found, np.uint64).reshape(len(self._runs), -1)
            tables[np.array(self._runs)[:, None], self._places] = found[:, self._found_at]
            self._runs, self._found = [], []


def bits_of(value: Any, dtype: np.dtype | None) -> int:
    """Return what stands in a table for an address, or for a number of a dtype."""
    if dtype is None:
        return int(value)
    room = np.zeros(1, np.uint64)
    room.view(dtype)[0] = value
    return int(room[0])
