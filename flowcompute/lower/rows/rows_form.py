"""Row kernels: item reductions with all their phases, broadcasts between streams, folds of columns."""

from __future__ import annotations

import itertools

from flowcompute.fuse import Reason
from flowcompute.ir import GID, GSIZE, LID, For, Kernel, N, SetInteger, Stmt, names
from flowcompute.ir.launches import by_blocks, by_rows
from flowcompute.lower.emit import CHUNK_RANGE, START, STOP, Arguments, Scope, loads_of
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import (
    CPU_ITEMS,
    CPU_PARTS,
    CPU_VECTOR,
    GPU_FOLD_PARTS,
    TURNS,
    UNROLL,
    WORK_GROUP,
    FormKnobs,
    Knob,
    vectors_of,
)
from flowcompute.lower.rows.column_folds import ColumnFolds
from flowcompute.lower.rows.row_shape import RowShape
from flowcompute.lower.rows.row_sweep import ROW, ROW_LANES, RowSweep

_TURN, _PART = names("t part")
"""Turn of a work-group, and the part of a row that it takes."""
_TOGETHER = 8
"""Columns that a work-item of a part of a row loads before it stores the first of them."""
_COLUMNS_EACH = 2 * _TOGETHER
"""Columns that a work-item of a part of a row takes."""


def _lower(task: LoweringTask) -> Kernel:
    graph, region, folds = task.graph, task.region, task.folds
    shape = RowShape(graph, region, task.style, folds, (COLUMNS if region.folds else ROWS).knobs)
    arguments = Arguments()
    scope = Scope(itertools.count(), lanes=ROW_LANES if shape.cpu else 1)
    columns = ColumnFolds(shape, arguments) if region.folds else None
    parts = _parts(shape) if columns is None else 1
    vector = _vector(shape) if parts > 1 else 1
    together = max(1, _TOGETHER // vector) if parts > 1 else 1
    walk = RowSweep(shape, arguments, scope, None if columns is None else columns.accumulate, together)
    if parts > 1:
        walk.vector = vector
        walk.first, walk.apart = (_PART * shape.group + LID) * vector, parts * shape.group * vector
    walk.emit()
    body = rows_body(walk, parts) if columns is None else columns.body(walk)
    return Kernel(
        task.name,
        region.name,
        arguments.ordered(),
        (*walk.declared, *body),
        work="rows" if columns is None else "columns",
        work_group=shape.group,
        block=0 if columns is None else folds[region.folds[0]].block,
        columns=shape.tile if shape.tiled else 0,
        units=shape.rows,
        lanes=shape.lanes,
        tile=(1, parts),
        knobs=shape.knobs,
        notes={"depth": shape.depth, "kept": len(shape.kept)},
    )


def _parts(shape: RowShape) -> int:
    """Return the work-groups of a GPU that share a row: several where it is long, and nothing is the same along it."""
    if shape.cpu or shape.depth or not all(map(shape.full_key, shape.region.outputs)):
        return 1
    return -(-shape.columns // (_COLUMNS_EACH * shape.group))


def _vector(shape: RowShape) -> int:
    """Return the columns that a work-item of a part of a row moves together."""
    moved = [access.value for access in loads_of(shape.graph, shape.region)] + list(shape.region.outputs)
    wide = vectors_of(shape.graph.nodes[value].spec.dtype for value in moved)
    return next((vector for vector in wide if shape.moves_vectors(vector, views=True)), 1)


def rows_body(walk: RowSweep, parts: int = 1) -> list[Stmt]:
    """Distribute rows: a work-item (CPU) takes a range of rows; groups (GPU) take rows, or parts of them, in turn."""
    if walk.shape.cpu:
        return [*CHUNK_RANGE, walk.loop(START, STOP, 1)]
    if parts > 1:
        places = SetInteger(ROW, _TURN // parts), SetInteger(_PART, _TURN % parts)
        return [For(_TURN, GID, N * parts, GSIZE, (*places, *walk.one_row()))]
    return [walk.loop(GID, N, GSIZE)]


def _why_no_rows(task: LoweringTask) -> Reason | None:
    if task.region.anchor is not None:
        return task.refuse("it has an anchor")
    return task.refuse("it folds a stream") if task.region.folds else None


def _why_no_columns(task: LoweringTask) -> Reason | None:
    if task.region.anchor is not None:
        return task.refuse("it has an anchor")
    return None if task.region.folds else task.refuse("it folds no stream")


ROWS = Form(
    name="rows",
    accepts=_why_no_rows,
    lower=_lower,
    geometry=by_rows,
    knobs=FormKnobs(cpu=(CPU_VECTOR, UNROLL, CPU_ITEMS), gpu=(WORK_GROUP,)),
)
"""Rows of any length."""

COLUMNS = Form(
    name="columns",
    accepts=_why_no_columns,
    lower=_lower,
    geometry=by_blocks,
    knobs=FormKnobs(
        cpu=(CPU_VECTOR, UNROLL, CPU_PARTS),
        # GPUs load so many records at once.
        gpu=(WORK_GROUP, Knob("unroll", (*TURNS, 16), 8), GPU_FOLD_PARTS),
    ),
)
"""Folds of columns, with the rows that they are made of."""
