"""Rows of the left factor of a product on CPUs, made inside of its kernel: stored, or kept in a private array.

They are the sweeps of `RowSweep` with its orders of reductions, so each number has the bits of a kernel of rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from flowcompute.fuse import Region
from flowcompute.graph import Graph
from flowcompute.ir import Array, For, IndexLike, Var
from flowcompute.lower.emit import Arguments, Scope
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.lower.rows.row_shape import RowShape
from flowcompute.lower.rows.row_sweep import ROW_LANES, ColumnPoint, RowSweep
from flowcompute.lower.rows.rows_form import ROWS

Keep = Callable[[Scope, IndexLike, Var], None]
"""`keep(scope, column, numbers)` adds the statements that keep a vector of the row `r`."""


class ProductRows:
    """The rows that a region makes for a product; the region has one result, which runs along its rows.

    Args:
        graph: the graph.
        region: makes the rows.
        style: of kernels of the device.
        arguments: of the kernel.
        names: of its values.

    Attributes:
        declared: arrays of the rows, complete once they have been emitted.
    """

    def __init__(
        self, graph: Graph, region: Region, style: KernelStyle, arguments: Arguments, names: itertools.count[int]
    ) -> None:
        self._shape = RowShape(graph, region, style, {}, ROWS.knobs)
        self._arguments = arguments
        self._names = names
        self.declared: list[Array] = []
        self._arrays: dict[int, str] = {}

    def stored(self, start: IndexLike, stop: IndexLike, step: IndexLike) -> For:
        """Return a loop over rows that stores them, as a kernel of the region would."""
        return self._loop(_Sweep(self._shape, self._arguments, self._scope(), None), start, stop, step)

    def kept(self, keep: Keep, start: IndexLike, stop: IndexLike) -> For:
        """Return a loop over rows `r` that keeps the vectors of each by a function."""
        sweep = _KeptSweep(self._shape, self._arguments, self._scope(), None)
        sweep.keep = keep
        return self._loop(sweep, start, stop, 1)

    def _scope(self) -> Scope:
        return Scope(self._names, lanes=ROW_LANES)

    def _loop(self, sweep: RowSweep, start: IndexLike, stop: IndexLike, step: IndexLike) -> For:
        sweep.arrays, sweep.declared = self._arrays, self.declared
        sweep.emit()
        return sweep.loop(start, stop, step)


class _Sweep(RowSweep):
    """Sweeps over rows that are not neighbours, so that none is prefetched."""

    def prefetches(self, phase: int) -> bool:
        """See `RowSweep.prefetches`."""
        del phase
        return False


class _KeptSweep(_Sweep):
    """Sweeps whose results are kept in an array.

    Attributes:
        keep: adds the statements that keep a vector.
    """

    keep: Keep

    def store_at(self, point: ColumnPoint) -> None:
        """Keep the numbers that would be stored at these columns; a whole vector is written at the row's end."""
        (output,) = self.shape.region.outputs
        self.keep(point.scope, point.column, point.value_in_memory(output))
