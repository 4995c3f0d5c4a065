"""Rows of several blocks on GPUs: a work-group takes a row and reads it once.

A sub-group holds one block in registers. It may hold a second one in local memory. A work-group of half as
many work-items then holds as long a row. Where rows fill the registers of a compute unit, two such
work-groups fit on it: one loads while the other reduces and stores.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from flowcompute.elements import Kind
from flowcompute.fuse import Access, Reason
from flowcompute.ir import (
    BLOCK,
    GID,
    GSIZE,
    LANES,
    LID,
    ROLLED,
    Array,
    ArrayItem,
    AwaitCopies,
    ConditionLike,
    Copy,
    EndCopies,
    For,
    IndexLike,
    Kernel,
    N,
    Name,
    PutItem,
    Stmt,
    Var,
    equal,
    index_min,
    register_dtype,
)
from flowcompute.ir.launches import by_rows
from flowcompute.lower.emit import Arguments, Key, Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.reduction import Parts, Reduction
from flowcompute.lower.rows.row_shape import RowShape
from flowcompute.lower.rows.row_sweep import ColumnPoint, RowSweep
from flowcompute.lower.rows.subgroup_reduce import WARP, Slot, Subgroup
from flowcompute.lower.rows.subgroup_rows import WRITTEN_OUT, SubgroupSweep, subgroup_shape, why_no_subgroups
from flowcompute.lower.rows.work_group_blocks import GroupBlocks
from flowcompute.strategy import KernelKnobs

SHARED_ROW_BYTES = 64 << 10
"""Bytes of the longest rows of which two fit in the registers of a compute unit, beside its other registers."""

UNEVEN_ROW = 8 * BLOCK
"""Longest row whose last block may be partial.

Longer ones take too many registers, since each number has a flag for its validity.
"""

ROOM_BYTES = 8 << 10
"""Bytes of local memory that are left for the merge of sub-groups."""

COLUMNS = BLOCK // WARP
"""Columns of a block per work-item."""

_COPIED_BYTES = (4, 8)
"""Sizes of single numbers for which there are asynchronous copies into local memory."""


def _is_able(shape: RowShape, style: KernelStyle, blocks: int, count: int) -> bool:
    """Check whether sub-groups can hold `count` blocks of a row.

    Local memory holds only values that are read more than once.
    """
    if blocks > count * WARP or COLUMNS * len(shape.region.nodes) > WRITTEN_OUT:
        return False
    again = shape.depth > 1 or any(shape.full_key(output) for output in shape.region.outputs)
    room = style.capabilities.local_bytes - ROOM_BYTES if style.capabilities.tensor_cores and again else 0
    return count == 1 or 0 < _local_bytes(shape, _group(blocks, count)) <= room


def _is_crowded(shape: RowShape, style: KernelStyle, blocks: int) -> bool:
    """Check whether a row takes too many registers, and two rows half in local memory fit on a compute unit."""
    sizes = [shape.graph.nodes[access.value].spec.dtype.itemsize for access in _copied(shape)]
    room = style.capabilities.local_bytes - ROOM_BYTES
    if 2 * _local_bytes(shape, _group(blocks, 2)) > room:
        return False
    uneven = shape.columns % BLOCK != 0 and shape.columns > UNEVEN_ROW
    return uneven or max(sizes, default=0) * shape.columns > SHARED_ROW_BYTES


def _group(blocks: int, count: int) -> int:
    """Return the work-items that hold a row where each sub-group holds `count` of its blocks."""
    return WARP * -(-blocks // count)


def _local_bytes(shape: RowShape, group: int) -> int:
    """Return the bytes of the second blocks of all sub-groups; 0 where an input cannot be copied."""
    return COLUMNS * group * sum(shape.graph.nodes[access.value].spec.dtype.itemsize for access in _copied(shape))


def _copied(shape: RowShape) -> list[Access]:
    """Return the inputs of a second block that local memory holds: all that differ from row to row.

    Return none if any of them cannot be copied.
    """
    sweep = RowSweep(shape, Arguments(), Scope(itertools.count()), None)
    reads = dict.fromkeys(key for node in shape.region.nodes for key in shape.region.reads[node])
    found = []
    for access in (key for key in reads if isinstance(key, Access) and shape.full_key(key)):
        spec = shape.graph.nodes[access.value].spec
        if spec.is_stream:
            _, stride, each = sweep.address(0, shape.place_of(access)[1], 0)
            if stride != 1 or each is not None or spec.dtype.itemsize not in _COPIED_BYTES:
                return []
            found.append(access)
    return found


def _read_by(shape: RowShape, phase: int, kept: set[int]) -> set[Access]:
    """Return the inputs that a sweep reads for each column, where `kept` nodes are not computed again."""
    found: set[Access] = set()
    todo = [key for node in shape.targets(phase) for key in (node, *shape.region.reads[node])]
    seen: set[Key] = set()
    while todo:
        key = todo.pop()
        if isinstance(key, Access):
            found.add(key)
        elif key not in seen | kept and shape.kind(key) is Kind.ELEMENTWISE:
            seen.add(key)
            todo.extend(shape.region.reads[key])
    return found


class WorkGroupSweep(SubgroupSweep):
    """Sweeps over one row of several blocks.

    The block in registers is loaded and computed once. The block in local memory is loaded once and
    processed in loops, so that it takes few additional registers. Values computed from it are computed
    again in each sweep. An exception are costly values that can overwrite an input which no later sweep
    reads. Each work-item copies exactly the numbers that it reads, so the copies need no barrier.

    Args:
        shape: structure of the row.
        arguments: arguments of the kernel.
        before: where statements before the loop over rows go.
        count: blocks of a sub-group.
        early: as for `SubgroupSweep`.
    """

    def __init__(
        self, shape: RowShape, arguments: Arguments, before: Scope, count: int, *, early: bool = False
    ) -> None:
        blocks = -(-shape.columns // BLOCK)
        subgroup = Subgroup(before, BLOCK, group=shape.group, shuffle=True)
        scope = before.inner()
        super().__init__(shape, arguments, scope, subgroup.at(scope), early=early)
        self.blocks = blocks
        self.work_group = group = _group(blocks, count)
        base = before.narrow(LID // WARP * BLOCK)
        whole = group // WARP * BLOCK <= shape.columns
        limit = None if whole else before.narrow(index_min(BLOCK, shape.columns - base))
        self.own = [replace(slot, scope=scope.beside()) for slot in subgroup.slots(base, limit)]
        self.local: dict[Access, str] = {}
        self.places: dict[IndexLike, IndexLike] = {}
        self.awaited = False
        if count > 1:
            self.second = before.integer(base + group // WARP * BLOCK + subgroup.place)
            for access in _copied(shape):
                self.local[access] = name = f"held{len(self.local)}"
                dtype = shape.graph.nodes[access.value].spec.dtype
                before.add(Array(name, dtype, 1, COLUMNS * group, local=True))
        self.phase = 0
        self.cached = self._cached_nodes()

    @staticmethod
    def fills(shape: RowShape, style: KernelStyle, work_group: int) -> bool:
        """Check whether rows fill a work-group, whose sub-groups have a block each in registers."""
        blocks = -(-shape.columns // BLOCK)
        exists = shape.shuffles and shape.depth > 0 and blocks > 1 and _group(blocks, 1) == work_group
        return exists and _is_able(shape, style, blocks, 1)

    def _cached_nodes(self) -> dict[int, tuple[str, int]]:
        """Return the costly nodes that overwrite an input in local memory, with their arrays and sweeps."""
        shape, nodes = self.shape, self.shape.graph.nodes
        found: dict[int, tuple[str, int]] = {}
        for node, first in shape.worth_keeping().items() if self.local else ():
            sweeps = range(first + 1, shape.depth + 1)
            read = {access for phase in sweeps for access in _read_by(shape, phase, {*found, node})}
            free = [
                name
                for access, name in self.local.items()
                if access not in read
                and nodes[access.value].spec.dtype == register_dtype(nodes[node].spec.dtype)
                and name not in {array for array, _ in found.values()}
            ]
            if free:
                found[node] = free[0], first
        return found

    def reduce(self, phase: int) -> None:
        """Emit the reductions of one sweep."""
        self.phase = phase
        super().reduce(phase)

    def emit(self) -> None:
        """Emit all sweeps, after the copies of the second blocks have been started."""
        if self.local:
            self._copy_second_blocks()
        super().emit()
        self.phase = self.shape.depth
        if self.local:
            body, slots, step = self._iteration()
            self.store(self.scope, body, slots)
            self._loop(body, step)

    def _copy_second_blocks(self) -> None:
        body, slots, step = self._iteration()
        for access, name in self.local.items():
            argument, base, _ = self.locate(access)
            body.add(*(Copy(name, self.places[s.column], argument, base + s.column, 1) for s in slots))
        # In a rolled loop the copies wait for each other's addresses: softmax ran at 0.90 of a copy, not 0.94.
        self._loop(body, step, unroll=1)
        self.scope.add(EndCopies())

    def _iteration(self) -> tuple[Scope, list[Slot], Name]:
        """Return the statements, columns and number of an iteration through the second block.

        An iteration has a column of each lane of a work-item.
        """
        body, columns = self.scope.inner(), self.shape.columns
        step, per = self.scope.name("t"), LANES // WARP
        slots = []
        for lane in range(per):
            column = body.integer(self.second + step * LANES + lane * WARP)
            valid: ConditionLike | None = None
            if columns % (2 * self.work_group // WARP * BLOCK):
                valid = body.flag(column < columns, narrow=True)
                column = body.integer(index_min(column, columns - 1))
            self.places[column] = (step * per + lane) * self.work_group + LID
            slots.append(Slot(body.beside(), column, lane, valid))
        for node, (array, first) in self.cached.items():
            for slot in slots if first < self.phase else ():
                dtype = register_dtype(self.shape.graph.nodes[node].spec.dtype)
                slot.scope.known[node] = slot.scope.let(ArrayItem(array, self.places[slot.column]), dtype)
        return body, slots, step

    def _loop(self, body: Scope, step: Name, unroll: int = ROLLED) -> None:
        self.scope.add(For(step, 0, BLOCK // LANES, 1, tuple(body.statements), unroll))

    def rows(self) -> For:
        """Return the loop over rows, one row in each iteration."""
        return self.loop(GID, N, GSIZE)

    def load(self, point: ColumnPoint, access: Access) -> Var:
        """Load columns, from local memory if they were copied there."""
        if access not in self.local or point.column not in self.places:
            return super().load(point, access)
        item = ArrayItem(self.local[access], self.places[point.column])
        return point.scope.let(item, self.shape.graph.nodes[access.value].spec.dtype)

    def columns(self) -> list[Slot]:
        """Return the columns of a work-item that are in registers."""
        return self.own

    def is_first(self) -> ConditionLike:
        """Return the condition for the first work-item of the work-group."""
        return equal(LID, 0)

    def of_own_row(self, storing: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the statements unguarded: every work-group has a row of its own."""
        return storing

    def results(self, reductions: list[Reduction]) -> list[Parts]:
        """Reduce each block by its sub-group, and merge the blocks in every sub-group."""
        subgroup = self.subgroup
        totals = subgroup.start(reductions)
        subgroup.accumulate(reductions, totals, self.own)
        made = [subgroup.finish(reductions, totals, spread=False)]
        if self.local:
            if not self.awaited:
                self.scope.add(AwaitCopies(0))
                self.awaited = True
            totals = subgroup.start(reductions)
            body, slots, step = self._iteration()
            subgroup.at(body).accumulate(reductions, totals, slots)
            for node, (array, first) in self.cached.items():
                for slot in slots if first == self.phase else ():
                    var = slot.scope.find(node)
                    assert var is not None, "this sweep is the first that needs it"
                    body.add(PutItem(array, self.places[slot.column], var))
            self._loop(body, step)
            made.append(subgroup.finish(reductions, totals, spread=False))
        merging = GroupBlocks(self.scope, reductions, group=self.work_group, shuffle=True)
        return merging.merged_of_subgroups(made, self.blocks)


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_subgroups(task)) is not None:
        return reason
    shape = subgroup_shape(task)
    if not shape.rows or not shape.depth or shape.columns <= BLOCK:
        return task.refuse(f"its rows are not reduced, or have at most {BLOCK} numbers")
    if not shape.shuffles:
        return task.refuse(f"{task.style.capabilities.name} has no sub-groups that exchange registers")
    return None if _able(shape, task.style) else task.refuse("its rows are too long for the registers of a work-group")


def _able(shape: RowShape, style: KernelStyle) -> list[int]:
    blocks = -(-shape.columns // BLOCK)
    return [count for count in (1, 2) if _is_able(shape, style, blocks, count)]


def _lower(task: LoweringTask) -> Kernel:
    shape, style = subgroup_shape(task), task.style
    blocks, able, knobs = -(-shape.columns // BLOCK), _able(shape, style), KernelKnobs()
    if len(able) == 2:
        knobs = style.settled(WORK_GROUP_ROWS.knobs, team_blocks=2 if _is_crowded(shape, style, blocks) else 1)
    arguments, before = Arguments(), Scope(itertools.count(), lanes=1)
    walk = WorkGroupSweep(shape, arguments, before, knobs.team_blocks or able[0])
    walk.emit()
    return Kernel(
        task.name,
        task.region.name,
        arguments.ordered(),
        (*before.statements, walk.rows()),
        work="rows",
        work_group=walk.work_group,
        units=shape.rows,
        lanes=1,
        knobs=knobs,
        notes={"depth": shape.depth, "team": WARP, "blocks": blocks},
    )


WORK_GROUP_ROWS = Form(
    name="long rows",
    accepts=_why_not,
    lower=_lower,
    geometry=by_rows,
    knobs=FormKnobs(gpu=(Knob("team_blocks", (1, 2)),)),
)
"""Rows of several blocks on GPUs."""
