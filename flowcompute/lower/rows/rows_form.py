"""Row kernels: item reductions with all their phases, broadcasts between streams, folds of columns."""

from __future__ import annotations

import itertools

from flowcompute.fuse import Region
from flowcompute.graph import Graph
from flowcompute.ir import FoldSpec, Kernel, SetInteger, Stmt
from flowcompute.lower.emit import Arguments, Scope
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.lower.rows.column_folds import ColumnFolds
from flowcompute.lower.rows.row_shape import RowShape
from flowcompute.lower.rows.row_sweep import RowSweep

ROW_LANES = 4
"""Lanes of row values on CPUs. Library functions then have the bits of their vector form, never the scalar's."""


def lower_rows(graph: Graph, region: Region, style: KernelStyle, folds: dict[int, FoldSpec], name: str) -> Kernel:
    """The kernel of a region that is walked row by row."""
    shape = RowShape(graph, region, style, folds, "columns" if region.folds else "rows")
    arguments = Arguments()
    scope = Scope(itertools.count(), lanes=ROW_LANES if shape.cpu else 1)
    columns = ColumnFolds(shape, arguments) if region.folds else None
    walk = RowSweep(shape, arguments, scope, None if columns is None else columns.accumulate)
    walk.emit()
    body = rows_body(walk) if columns is None else columns.body(walk)
    return Kernel(
        name,
        region.name,
        arguments.ordered(),
        (*walk.declared, *body),
        work="rows" if columns is None else "columns",
        work_group=shape.group,
        block=0 if columns is None else folds[region.folds[0]].block,
        columns=shape.tile if shape.tiled else 0,
        units=shape.rows,
        lanes=shape.lanes,
        family=shape.family,
        knobs=shape.knobs,
        notes={"depth": shape.depth, "kept": tuple(graph.nodes[i].name for i in shape.kept)},
    )


def rows_body(walk: RowSweep) -> list[Stmt]:
    """Distribute rows: a work-item (CPU) takes a range of rows; work-groups (GPU) take rows in turn."""
    if walk.shape.cpu:
        start = [SetInteger("start", "gid * chunk"), SetInteger("stop", "min(n, start + chunk)")]
        return [*start, walk.loop("start", "stop", "1")]
    return [walk.loop("gid", "n", "gsize")]
