"""Rows that follow a product in its launch on GPUs: each is made by a work-group, as large as those of the product.

They are the sweeps of kernels of rows with their orders of reductions, so each number has the bits of such a kernel.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from flowcompute.fuse import Region
from flowcompute.graph import Graph
from flowcompute.ir import GID, GSIZE, Argument, Kernel, N, Stmt
from flowcompute.lower.emit import Arguments, Scope
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.lower.rows import ROWS, RowShape, RowSweep, WorkGroupSweep

TOGETHER = 8
"""Numbers that a work-item loads before it stores any. One by one, 4096 numbers took 20 microseconds on an H100."""


class FollowingRows:
    """The rows that a region makes of what a kernel stores.

    Where the product's work-group has a sub-group for each block of a row, all numbers are read at once.

    Args:
        graph: the graph.
        region: makes the rows.
        style: of kernels of the device.
        leader: what they follow.

    Attributes:
        units: rows of a record.
        arguments: its parameters.
        body: makes rows `gid`, `gid + gsize` and so on.
    """

    def __init__(self, graph: Graph, region: Region, style: KernelStyle, leader: Kernel) -> None:
        wide = replace(style, wanted=replace(style.wanted, work_group=leader.work_group))
        shape = RowShape(graph, region, wide, {}, ROWS.knobs)
        assert shape.group == leader.work_group, "a barrier is of whole work-groups"
        arguments, before = Arguments(place=region.place), Scope(itertools.count(), lanes=1)
        self.units = shape.rows
        if WorkGroupSweep.fills(shape, style, leader.work_group):
            walk: RowSweep = WorkGroupSweep(shape, arguments, before, 1, early=True)
        else:
            # One work-group makes the row of a single record, while all others have ended.
            together = max(1, min(TOGETHER, shape.columns // shape.group))
            walk = RowSweep(shape, arguments, before.inner(), None, together)
        walk.emit()
        self.body: tuple[Stmt, ...] = (*walk.declared, *before.statements, walk.loop(GID, N, GSIZE))
        self.arguments: tuple[Argument, ...] = arguments.ordered()
