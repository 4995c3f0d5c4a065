"""Rows of one block on GPUs: a sub-group takes a row and keeps it in registers.

Values that one reduction loads or computes stay there for the next one and for the outputs. Softmax thus
reads its rows once.
"""

from __future__ import annotations

import itertools

from flowcompute.fuse import Reason
from flowcompute.ir import (
    BLOCK,
    GID,
    GSIZE,
    LID,
    ConditionLike,
    For,
    If,
    Kernel,
    N,
    Name,
    SetInteger,
    Stmt,
    equal,
    index_min,
    register_dtype,
    row_lanes,
)
from flowcompute.ir.launches import by_rows
from flowcompute.lower.emit import Arguments, Scope, loads_of
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import WORK_GROUP, FormKnobs
from flowcompute.lower.reduction import Parts, Reduction
from flowcompute.lower.rows.row_shape import RowShape
from flowcompute.lower.rows.row_sweep import ROW, ColumnPoint, RowPoint, RowSweep
from flowcompute.lower.rows.subgroup_reduce import WARP, Slot, Subgroup, subgroup_size

WRITTEN_OUT = 1500
"""Most operations of a work-item, over all its columns, for which its columns are unrolled."""

VECTOR = 4
"""Neighbouring columns that a work-item holds together."""

EARLY_BYTES = 512
"""Most bytes that a work-item loads before the first reduction: half of its registers."""

_TURN = Name("turn")
"""First row of a work-group's turn."""


class SubgroupSweep(RowSweep):
    """Sweeps over one row, unrolled over the columns of a work-item.

    Attributes:
        work_group: work-items in a work-group.
        together: rows that a work-group processes at once.
        early: whether all that outputs read is loaded before the first reduction.
    """

    def __init__(
        self, shape: RowShape, arguments: Arguments, scope: Scope, subgroup: Subgroup, *, early: bool = False
    ) -> None:
        super().__init__(shape, arguments, scope, None)
        self.early = early
        self.subgroup = subgroup
        self.work_group, self.together = shape.group, shape.group // subgroup.size
        self.slots: list[Slot] = []

    def emit(self) -> None:
        """Emit all sweeps, then the stores; sub-groups without a row of their own store nothing."""
        shape = self.shape
        self.slots = self.columns()
        if self.early:
            self.load_early()
        for phase in range(shape.depth):
            self.reduce(phase)
        storing = self.scope.inner(1)
        self.store(storing, storing, self.slots)
        storing.add(*self.stores_of_row(storing, self.is_first()))
        self.scope.add(*self.of_own_row(tuple(storing.statements)))

    def load_early(self) -> None:
        """Load what first reductions read, then what outputs do: compilers let no load pass a store, or a division."""
        shape = self.shape
        first = [key for node in shape.targets(0) for key in shape.region.reads[node]]
        for keys in (first, shape.region.outputs):
            for slot in self.slots:
                point = ColumnPoint(self.row, slot.scope, slot.column, None, 0)
                for access in point.accesses(keys, shape.full_key):
                    point.value(access)

    def store(self, row: Scope, scope: Scope, slots: list[Slot]) -> None:
        """Store everything at these columns; their common row values go to a scope of their own."""
        for slot in slots:
            inner = slot.scope.inner()
            self.store_at(ColumnPoint(RowPoint(self, row), inner, slot.column, None, 2 * self.shape.depth))
            scope.add(*inner.statements if slot.valid is None else (If(slot.valid, tuple(inner.statements)),))

    def rows(self) -> For:
        """Return the loop over rows; sub-groups behind the last row repeat it."""
        row = SetInteger(ROW, index_min(_TURN + LID // self.subgroup.size, N - 1))
        return For(_TURN, GID * self.together, N, GSIZE * self.together, (row, *self.one_row()))

    def columns(self) -> list[Slot]:
        """Return the columns of a work-item."""
        return self.subgroup.slots(0)

    def is_first(self) -> ConditionLike:
        """Return the condition for the work-item that stores values of the whole row."""
        return equal(self.subgroup.place, 0)

    def of_own_row(self, storing: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Guard statements so that they run only where no other sub-group has the same row."""
        return (If(_TURN + LID // self.subgroup.size < N, storing),)

    def results(self, reductions: list[Reduction]) -> list[Parts]:
        """Compute the reductions of a sweep, and broadcast the results to every work-item."""
        totals = self.subgroup.start(reductions)
        self.subgroup.accumulate(reductions, totals, self.slots)
        return self.subgroup.finish(reductions, totals, spread=True)


def subgroup_shape(task: LoweringTask) -> RowShape:
    """Return the shape of a region's rows that sub-groups reduce."""
    return RowShape(task.graph, task.region, task.style, {}, SUBGROUP_ROWS.knobs)


def why_no_subgroups(task: LoweringTask) -> Reason | None:
    """Return why no sub-group reduces the rows of a region, whatever their length."""
    if task.region.anchor is not None:
        return task.refuse("it has an anchor")
    if not task.is_gpu:
        return task.refuse("work-items of a CPU form no sub-groups")
    return task.refuse("it folds a stream") if task.region.folds else None


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_subgroups(task)) is not None:
        return reason
    shape = subgroup_shape(task)
    if not shape.rows or not 0 < shape.columns <= BLOCK:
        return task.refuse(f"its rows have no numbers, or more than {BLOCK}")
    size = min(row_lanes(shape.columns) // _vector(shape), subgroup_size(shape.group, shuffle=shape.shuffles))
    if -(-shape.columns // size) * len(task.region.nodes) > WRITTEN_OUT:
        return task.refuse(f"more than {WRITTEN_OUT} operations would be written out for a work-item")
    return None


def _vector(shape: RowShape) -> int:
    """Return the neighbouring columns that a work-item holds together."""
    lanes = row_lanes(shape.columns)
    even = lanes >= WARP and shape.columns % min(lanes, WARP * VECTOR) == 0
    return VECTOR if even and shape.moves_vectors(VECTOR) else 1


def _fits_early(shape: RowShape, subgroup: Subgroup) -> bool:
    """Check whether registers of a work-item take its numbers of all that rows are made of."""
    read = [access.value for access in loads_of(shape.graph, shape.region) if shape.full_key(access)]
    sizes = [register_dtype(shape.graph.nodes[value].spec.dtype).itemsize for value in read]
    return sum(sizes) * -(-shape.columns // subgroup.size) <= EARLY_BYTES


def _lower(task: LoweringTask) -> Kernel:
    shape, arguments = subgroup_shape(task), Arguments()
    scope = Scope(itertools.count(), lanes=1)
    vector = _vector(shape)
    subgroup = Subgroup(scope, shape.columns, group=shape.group, shuffle=shape.shuffles, vector=vector)
    walk = SubgroupSweep(shape, arguments, scope, subgroup, early=_fits_early(shape, subgroup))
    walk.vector = vector
    walk.emit()
    return Kernel(
        task.name,
        task.region.name,
        arguments.ordered(),
        (walk.rows(),),
        work="rows",
        work_group=shape.group,
        units=shape.rows,
        lanes=1,
        tile=(walk.together, 1),
        knobs=shape.knobs,
        notes={"depth": shape.depth, "team": subgroup.size, "blocks": 1},
    )


SUBGROUP_ROWS = Form(
    name="team rows", accepts=_why_not, lower=_lower, geometry=by_rows, knobs=FormKnobs(gpu=(WORK_GROUP,))
)
"""Rows of one block on GPUs."""
