"""Scans of wide items along the stream on GPUs: a work-group takes some columns of many tiles at once.

Tiles of wide items have few records, and the prefix of each depends on the tile before. So the work done
for each wait decides the speed. Neighbouring work-items take neighbouring columns. Each row of work-items
takes a tile of its own, whose numbers stay in registers.

One work-item for each column adds the totals of the tiles in order, and publishes one prefix for all of
them. The order of summation is that of `engine.scans.host_scan`. A tile of several runs has one row of
work-items for each run.
"""

from __future__ import annotations

from typing import Any

from flowcompute.elements.streams import KernelScan
from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph, Node
from flowcompute.ir import (
    BLOCKS,
    FIRST,
    LID,
    PHASE,
    RUN,
    Array,
    ArrayItem,
    Assign,
    Await,
    ConstantValue,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    N,
    Publish,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    Store,
    Ticket,
    Var,
    WorkGroupBarrier,
    all_of,
    choose,
    equal,
    index_max,
    index_min,
    names,
    register_dtype,
    scan_tile,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.geometry import by_tickets
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.scan.scan_anchor import (
    TileScan,
    scan_initial,
    scan_wide,
    why_no_gpu_look_back,
)
from flowcompute.spec import INT64, is_float

BASE, DRAWN, J, STRETCH, T, TASK, TASKS, W = names("base drawn j stretch t task tasks w")
BEGIN, C, HI, LENGTH, LO, STOP, TEAM = names("begin c hi length lo stop team", narrow=True)
"""Integers of a work-item: its task (a stretch of tiles, and columns), its tile `t`, column `c` and run.

The run begins at record `begin` and has `length` records, of which `lo` to `hi` are in the batch; `base` is its first
number."""

GROUP_BYTES = 2048
"""Bytes that the work-items of a work-group store at a time: 512 of float32, so that two work-groups fit on a unit.

Every dtype then has as many bytes for each published prefix.
"""

COLUMNS = 16
"""Columns of a row of work-items: 64 bytes of float32, which memory transfers without loss."""

FEW_COLUMNS = 8
"""The same where tiles have several runs; there, more tiles for each wait gain more."""

FEWEST = 64
"""Fewest numbers of an item for which this form pays."""

REGISTERS_BYTES = 128 << 10
"""Most bytes for the numbers of all work-items of a work-group: half of the registers of a compute unit."""


def takes_columns(node: Node) -> bool:
    """Check whether a scan along the stream is one by columns: tiles are a few runs, whose steps are unrolled."""
    return node.spec.item_numbers >= FEWEST and not isinstance(node.element, KernelScan)


def column_scan_bytes(node: Node) -> int:
    """Return the local memory of a work-group in bytes: totals and prefixes of its tiles, and a ticket."""
    return 2 * _group(node) * scan_wide(node).itemsize + INT64.itemsize


def _group(node: Node) -> int:
    """Return the work-items of a work-group, a power of two."""
    kept = min(scan_tile(node.spec.item_numbers), RUN) * register_dtype(node.spec.dtype).itemsize
    most = min(1024, GROUP_BYTES // node.spec.dtype.itemsize, REGISTERS_BYTES // kept)
    return 1 << most.bit_length() - 1


class ColumnLookBackLowering(TileScan):
    """Lowering of a region around a scan of wide items along the stream for a GPU."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        super().__init__(graph, region)
        group = min(_group(self.node), style.capabilities.max_work_group)
        self.runs = -(-self.records // RUN)
        across = COLUMNS if self.runs == 1 else FEW_COLUMNS
        self.knobs = style.settled(COLUMN_SCAN.knobs, work_group=group, tile_columns=across)
        self.group, self.across = self.knobs.work_group or group, self.knobs.tile_columns or across
        self.tiles, self.weight_tiles = self.group // self.across // self.runs, -(-self.columns // self.across)
        # Records of a run, and of the last one of a tile.
        self.run, self.shortest = min(self.records, RUN), self.records - (self.runs - 1) * RUN
        self.meets_twice = not style.capabilities.shuffles
        signed = self.op == "sum" and is_float(self.dtype)
        self.signless = scan_initial(self.node, self.dtype) if self.exclusive and signed else None

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts tiles."""
        scope = Scope(self.names, lanes=1)
        scope.add(*self._sizes())
        kept = [scope.let(ConstantValue(0), self.dtype) for _ in range(self.run)]
        total = scope.let(self.nothing(self.dtype), self.dtype)
        runs = scope.let(self.nothing(self.wide), self.wide)
        scope.add(*self._begin(total, runs))
        begun = scope.let(Splat(total), self.dtype)
        scope.add(*self._take(kept, total))
        adds = self.widened(scope, total)
        adds = self.combined(scope, runs, adds) if self.runs == 1 else adds
        scope.add(PutItem("adds", LID, adds), WorkGroupBarrier())
        if self.meets_twice:
            # PoCL 3.0 loses a barrier after a loop that some work-items turn more often.
            scope.add(WorkGroupBarrier())
        scope.add(self._chain(), WorkGroupBarrier())
        carry = scope.let(ArrayItem("before", LID), self.wide)
        if self.runs > 1:
            scope.add(Assign(runs, ArrayItem("adds", LID)))
        scope.add(Ticket(DRAWN, self.words, tickets=TASKS), *self._results(kept, carry, runs, begun))
        scope.add(self._leave(carry, runs, total, adds))
        arrays: list[Stmt] = [Array(array, self.wide, 1, self.group, local=True) for array in ("adds", "before")]
        arrays.append(Array("taken", INT64, 1, 1, local=True))
        arrays.append(SetInteger(TASKS, (BLOCKS + (self.tiles - 1)) // self.tiles * self.weight_tiles))
        sizes: dict[str, Any] = {"work_group": self.group, "tile": (self.tiles, self.weight_tiles), "knobs": self.knobs}
        return self.kernel(name, arrays, scope.statements, TASK, DRAWN, TASKS, **sizes)

    def _sizes(self) -> list[Stmt]:
        """Declare the work-item's tile `t` and column `c`; records `lo` to `hi` of its run are in the batch.

        Where tiles have several runs, `begin` is the first record of this one and `length` its number of
        records.
        """
        # Surplus rows of work-items have no tile.
        there = all_of(C < self.columns, self.runs == 1 or TEAM // self.runs < self.tiles)
        stop = choose(there, index_max(0, index_min(self.records, PHASE + N - T * self.records)), 0)
        where = [
            SetInteger(STRETCH, TASK // self.weight_tiles),
            SetInteger(C, TASK % self.weight_tiles * self.across + LID % self.across),
        ]
        if self.runs == 1:
            return [
                *where,
                SetInteger(T, STRETCH * self.tiles + LID // self.across),
                SetInteger(LO, choose(equal(T, 0), PHASE, 0)),
                SetInteger(HI, stop),
                SetInteger(BASE, (T * self.records - PHASE) * self.columns + C),
            ]
        return [
            *where,
            SetInteger(TEAM, LID // self.across),
            SetInteger(T, STRETCH * self.tiles + TEAM // self.runs),
            SetInteger(BEGIN, TEAM % self.runs * RUN),
            SetInteger(LENGTH, index_min(RUN, self.records - BEGIN)),
            SetInteger(STOP, stop - BEGIN),
            SetInteger(LO, choose(equal(T, 0), index_max(0, PHASE - BEGIN), 0)),
            SetInteger(HI, index_min(STOP, RUN)),
            SetInteger(BASE, (T * self.records + BEGIN - PHASE) * self.columns + C),
        ]

    def _begin(self, total: Var, runs: Var) -> list[Stmt]:
        """Load what the previous batch left of an open tile."""
        d, scope = self.columns, Scope(self.names, lanes=1)
        left = scope.let(Load(self.state, 2 * d + C), self.wide)
        scope.add(Assign(total, Splat(self.narrowed(scope, left))))
        if self.runs > 1:
            return [If(all_of(equal(T, 0), HI > 0, PHASE >= BEGIN, PHASE - BEGIN < RUN), tuple(scope.statements))]
        scope.add(Assign(runs, Load(self.state, d + C)))
        return [If(all_of(equal(T, 0), HI > 0), tuple(scope.statements))]

    # -- numbers of a tile --------------------------------------------------------------------------

    def _each(self, whole: Scope, some: Scope) -> list[Stmt]:
        """Branch on whether the run is whole: `whole` if it is, else `some` for each record `j`."""
        partly = For(J, LO, HI, 1, tuple(some.statements))
        length = self.records if self.runs == 1 else LENGTH
        return [If(equal(HI - LO, length), tuple(whole.statements), (partly,))]

    def _step(self, scope: Scope, total: Var, number: Var, record: IndexLike) -> Var:
        """Accumulate a number into `total`, and return the result at its place in the run."""
        after = self.combined(scope, total, number)
        if not self.exclusive:
            scope.add(Assign(total, Splat(after)))
            return after
        before = scope.let(Splat(total), self.dtype)
        scope.add(Assign(total, Splat(after)))
        if self.signless is not None and record in (J, 0):
            place = T if self.runs == 1 else T + BEGIN
            scope.add(If(equal(FIRST + place + record, 0), (Assign(before, ConstantValue(self.signless)),)))
        return before

    def _take(self, kept: list[Var], total: Var) -> list[Stmt]:
        """Compute results inside the run in registers; all numbers are loaded before the first is used."""
        whole, some = Scope(self.names, lanes=1), Scope(self.names, lanes=1)
        always, longer = kept[: self.shortest], kept[self.shortest :]
        rest = whole.inner()
        for j, place in enumerate(longer, len(always)):
            number = self.operand(rest.beside(), BASE + j * self.columns, None)
            rest.add(Assign(place, Splat(number)))
        if longer:
            whole.add(self._where_longer(rest))
        numbers = [self.operand(whole.beside(), BASE + j * self.columns, None) for j in range(len(always))]
        for j, (place, number) in enumerate(zip(always, numbers, strict=True)):
            whole.add(Assign(place, Splat(self._step(whole, total, number, j))))
        rest = whole.inner()
        for j, place in enumerate(longer, len(always)):
            rest.add(Assign(place, Splat(self._step(rest, total, place, j))))
        if longer:
            whole.add(self._where_longer(rest))
        number = self.operand(some, some.integer(BASE + J * self.columns), None)
        some.add(Assign(total, Splat(self.combined(some, total, number))))
        return self._each(whole, some)

    def _results(self, kept: list[Var], carry: Var, runs: Var, begun: Var) -> list[Stmt]:
        """Apply the epilogue to the tile's results, and store.

        A run with missing records is scanned again from `begun`.
        """
        whole, some = Scope(self.names, lanes=1), Scope(self.names, lanes=1)
        before = whole.let(self.nothing(self.wide), self.wide) if self.runs == 1 else runs
        rest = whole.inner()
        for j, place in enumerate(kept):
            scope = (whole if j < self.shortest else rest).beside()
            self._finish(scope, BASE + j * self.columns, place, carry, before)
        if rest.statements:
            whole.add(self._where_longer(rest))
        at = some.integer(BASE + J * self.columns)
        self._finish(some, at, self._step(some, begun, self.operand(some, at, None), J), carry, runs)
        return self._each(whole, some)

    def _where_longer(self, scope: Scope) -> Stmt:
        """Guard statements for runs that are longer than the last run of a tile."""
        return If(equal(LENGTH, RUN), tuple(scope.statements))

    def _finish(self, scope: Scope, at: IndexLike, place: Var, carry: Var, runs: Var) -> None:
        result = self.combined(scope, runs, self.widened(scope, place))
        self.store(scope, at, None, self.combined(scope, carry, result))

    # -- what comes before --------------------------------------------------------------------------

    def _chain(self) -> Stmt:
        """Set `before` to the prefix of each tile, and publish the prefix behind all of them."""
        d, scope = self.columns, Scope(self.names, lanes=1)
        first, later = scope.inner(), scope.inner()
        carry, end = scope.let(self.nothing(self.wide), self.wide), later.fresh(self.wide, 1)
        first.add(Assign(carry, Load(self.state, C)))
        later.add(Await(end, self.words, (STRETCH - 1) * d + C), Assign(carry, Splat(end)))
        scope.add(If(equal(STRETCH, 0), tuple(first.statements), tuple(later.statements)))
        inner, place = scope.inner(), W * self.across + LID
        if self.runs == 1:
            own = inner.let(ArrayItem("adds", place), self.wide)
            inner.add(PutItem("before", place, carry), Assign(carry, Splat(self.combined(inner, carry, own))))
        else:
            self._chain_runs(scope, inner, carry)
        scope.add(For(W, 0, index_min(self.tiles, BLOCKS - T), 1, tuple(inner.statements), unroll=8))
        publish = Publish(self.words, STRETCH * d + C, carry, prefix=True)
        scope.add(If(T + self.tiles < BLOCKS, (publish,)))
        return If(all_of(self.across > LID, d > C), tuple(scope.statements))

    def _chain_runs(self, scope: Scope, inner: Scope, carry: Var) -> None:
        """Combine a tile of several runs, and set `adds` to the prefix of each run in its tile."""
        runs = scope.let(self.nothing(self.wide), self.wide)
        scope.add(If(equal(STRETCH, 0), (Assign(runs, Load(self.state, self.columns + C)),)))
        total = inner.let(Splat(runs), self.wide)
        for run in range(self.runs):
            place = (W * self.runs + run) * self.across + LID
            own = inner.let(ArrayItem("adds", place), self.wide)
            inner.add(PutItem("before", place, carry), PutItem("adds", place, total))
            total = self.combined(inner, total, own)
        inner.add(Assign(carry, Splat(self.combined(inner, carry, total))))
        inner.add(Assign(runs, self.nothing(self.wide)))

    def _leave(self, carry: Var, runs: Var, total: Var, adds: Var) -> Stmt:
        """Store the state after the batch: the carries between tiles, between runs, and inside the run."""
        d, scope = self.columns, Scope(self.names, lanes=1)
        if self.runs > 1:
            return self._store_run_state(scope, carry, runs, total)
        ended, still = scope.inner(), scope.inner()
        nothing = ended.let(self.nothing(self.wide), self.wide)
        after = self.combined(ended, carry, adds)
        ended.add(*(Store(self.state, part * d + C, var) for part, var in enumerate((after, nothing, nothing))))
        parts = (carry, runs, self.widened(still, total))
        still.add(*(Store(self.state, part * d + C, var) for part, var in enumerate(parts)))
        scope.add(If(equal(HI, self.records), tuple(ended.statements), tuple(still.statements)))
        return If(all_of(equal(T + 1, BLOCKS), HI > 0), tuple(scope.statements))

    def _store_run_state(self, scope: Scope, carry: Var, runs: Var, total: Var) -> Stmt:
        """Store the state after the batch in the work-items that have its last record."""
        nothing = scope.let(self.nothing(self.wide), self.wide)
        last = self.widened(scope, total)
        adds = self.combined(scope, runs, last)
        parts = {
            equal(BEGIN + STOP, self.records): (self.combined(scope, carry, adds), nothing, nothing),
            equal(STOP, RUN): (carry, adds, nothing),
        }
        otherwise = self._store_parts(carry, runs, last)
        for condition, left in reversed(parts.items()):
            otherwise = (If(condition, self._store_parts(*left), otherwise),)
        scope.add(*otherwise)
        return If(all_of(equal(T + 1, BLOCKS), STOP > 0, STOP <= RUN), tuple(scope.statements))

    def _store_parts(self, *parts: Var) -> tuple[Stmt, ...]:
        return tuple(Store(self.state, part * self.columns + C, var) for part, var in enumerate(parts))


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_gpu_look_back(task)) is not None:
        return reason
    if task.anchor is not None and takes_columns(task.anchor):
        return None
    return task.refuse(f"its items have fewer than {FEWEST} numbers, or its step is a user's")


def _lower(task: LoweringTask) -> Kernel:
    return ColumnLookBackLowering(task.graph, task.region, task.style).lower(task.name)


COLUMN_SCAN = Form(
    name="column scan",
    accepts=_why_not,
    lower=_lower,
    geometry=by_tickets,
    knobs=FormKnobs(gpu=(Knob("work_group", (128, 256, 512, 1024)), Knob("tile_columns", (8, 16, 32)))),
)
"""Scans of wide items along the stream on GPUs."""
