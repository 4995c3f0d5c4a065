"""Scans of wide items along the stream on GPUs: a work-group takes some columns of many tiles at once.

Tiles of wide items have few records, and the prefix of each depends on the tile before. So the work done
for each wait decides the speed. Neighbouring work-items take neighbouring columns. Each row of work-items
takes tiles of its own, whose numbers stay in registers.

One work-item for each column adds the totals of the tiles in order, and publishes one prefix for all of
them. The order of summation is that of `engine.scans.host_scan`. A tile of several runs has one row of
work-items for each run. Short tiles are several to a row, one part after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    BLOCKS,
    FIRST,
    LID,
    PHASE,
    RUN,
    Array,
    ArrayItem,
    Assign,
    ConstantValue,
    For,
    If,
    IndexLike,
    IsSet,
    Kernel,
    Load,
    N,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    Ticket,
    Var,
    WorkGroupBarrier,
    all_of,
    any_of,
    choose,
    equal,
    index_max,
    index_min,
    names,
)
from flowcompute.ir.launches import by_tickets
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.scan.column_prefixes import ColumnPrefixes
from flowcompute.lower.scan.column_sizes import (
    FEWEST,
    FORM,
    columns_of,
    parts_of,
    takes_columns,
    work_group_of,
)
from flowcompute.lower.scan.scan_anchor import (
    scan_initial,
    why_no_gpu_look_back,
)
from flowcompute.spec import INT64, is_float

BASE, DRAWN, J, PART, START, STRETCH, T, TASK, TASKS = names("base drawn j part start stretch t task tasks")
BEGIN, C, COLUMN, HI, LENGTH, LO, STOP, TEAM, WHOLE = names("begin c column hi length lo stop team whole", narrow=True)
"""Integers of a work-item: its task (a stretch of tiles, and a panel of columns), its first tile `t` and column `c`.

That is number `column` of the panel. `base` is its first number in the batch. Of a run, records `lo` to `hi` are in the
batch. A run of several begins at record `begin` of its tile and has `length` records."""


class ColumnLookBackLowering(ColumnPrefixes):
    """Lowering of a region around a scan of wide items along the stream for a GPU."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        super().__init__(graph, region)
        group = work_group_of(self.node, style.capabilities)
        self.runs = -(-self.records // RUN)
        across = columns_of(self.node)
        self.knobs = style.settled(COLUMN_SCAN.knobs, work_group=group, tile_columns=across)
        self.group, self.across = self.knobs.work_group or group, self.knobs.tile_columns or across
        # Records of a run, and of the last one of a tile.
        self.run, self.shortest = min(self.records, RUN), self.records - (self.runs - 1) * RUN
        self.parts = parts_of(self.node)
        self.tiles, self.panels = self.group // self.across * self.parts // self.runs, -(-self.columns // self.across)
        self.meets_twice = not style.capabilities.shuffles
        signed = self.op == "sum" and is_float(self.dtype)
        self.signless = scan_initial(self.node, self.dtype) if self.exclusive and signed else None

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts tiles."""
        scope = Scope(self.names, lanes=1)
        scope.add(*self._sizes())
        kept = [scope.let(ConstantValue(0), self.dtype) for _ in range(self.run * self.parts)]
        total = scope.let(self.nothing(self.dtype), self.dtype)
        runs = scope.let(self.nothing(self.wide), self.wide)
        scope.add(*self._begin(total, runs))
        begun = scope.let(Splat(total), self.dtype)
        scope.add(*self._take(kept, total, runs, begun), WorkGroupBarrier())
        if self.meets_twice:
            # PoCL 3.0 loses a barrier after a loop that some work-items turn more often.
            scope.add(WorkGroupBarrier())
        if self.runs > 1:
            scope.add(self.add_runs(), WorkGroupBarrier())
        scope.add(self.chain(), WorkGroupBarrier())
        if self.runs > 1:
            carry = scope.let(ArrayItem("before", TEAM // self.runs * self.across + COLUMN), self.wide)
            scope.add(Assign(runs, ArrayItem("adds", LID)), Ticket(DRAWN, self.words, tickets=TASKS))
            scope.add(*self._results(kept, carry, runs, begun), self.store_run_state(scope, carry, runs, total))
        else:
            scope.add(Ticket(DRAWN, self.words, tickets=TASKS), *self._part_results(kept, runs, begun))
            scope.add(self.leave(runs, total))
        # Surplus rows of work-items read a prefix, too, and use it for nothing.
        rows = -(-self.group // self.across * self.parts // self.runs)
        arrays = [self._array("adds", self.tiles * self.runs), self._array("before", rows)]
        if self.runs > 1:
            arrays.append(self._array("totals", self.tiles))
        arrays.append(Array("taken", INT64, 1, 1, local=True))
        tasks = SetInteger(TASKS, (BLOCKS + (self.tiles - 1)) // self.tiles * self.panels)
        sizes: dict[str, Any] = {"work_group": self.group, "tile": (self.tiles, self.panels), "knobs": self.knobs}
        return self.kernel(name, [*arrays, tasks], scope.statements, TASK, DRAWN, TASKS, **sizes)

    def _array(self, name: str, rows: int) -> Array:
        return Array(name, self.wide, 1, max(rows * self.across, self.group if name == "adds" else 0), local=True)

    def _sizes(self) -> list[Stmt]:
        """Declare the work-item's first tile `t` and column `c`.

        Where tiles have several runs, `begin` is the first record of this one and `length` its number of records, of
        which `lo` to `hi` are in the batch. Otherwise `whole` tells whether all parts are in the batch.
        """
        where = [
            SetInteger(STRETCH, TASK // self.panels),
            SetInteger(COLUMN, LID % self.across),
            SetInteger(C, TASK % self.panels * self.across + COLUMN),
            SetInteger(TEAM, LID // self.across),
        ]
        if self.runs == 1:
            first = all_of(C < self.columns, any_of(T > 0, equal(PHASE, 0)))
            return [
                *where,
                SetInteger(T, STRETCH * self.tiles + TEAM * self.parts),
                SetInteger(WHOLE, all_of(first, (T + self.parts) * self.records <= PHASE + N)),
                SetInteger(BASE, (T * self.records - PHASE) * self.columns + C),
            ]
        # Surplus rows of work-items have no tile.
        there = all_of(C < self.columns, TEAM // self.runs < self.tiles)
        stop = choose(there, index_max(0, index_min(self.records, PHASE + N - T * self.records)), 0)
        return [
            *where,
            SetInteger(T, STRETCH * self.tiles + TEAM // self.runs),
            SetInteger(BEGIN, TEAM % self.runs * RUN),
            SetInteger(LENGTH, index_min(RUN, self.records - BEGIN)),
            SetInteger(STOP, stop - BEGIN),
            SetInteger(LO, choose(equal(T, 0), index_max(0, PHASE - BEGIN), 0)),
            SetInteger(HI, index_min(STOP, RUN)),
            SetInteger(WHOLE, equal(HI - LO, LENGTH)),
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
        return [If(all_of(equal(T, 0), d > C), tuple(scope.statements))]

    # -- numbers of a tile --------------------------------------------------------------------------

    def _step(self, scope: Scope, total: Var, number: Var, place: IndexLike, record: IndexLike) -> Var:
        """Accumulate a number into `total`, and return the result at record `place` of the stretch's tile."""
        after = self.combined(scope, total, number)
        if not self.exclusive:
            scope.add(Assign(total, Splat(after)))
            return after
        before = scope.let(Splat(total), self.dtype)
        scope.add(Assign(total, Splat(after)))
        if self.signless is not None and record in (J, 0):
            scope.add(If(equal(FIRST + place + record, 0), (Assign(before, ConstantValue(self.signless)),)))
        return before

    def _some(self, body: Callable[[Scope, Var, Var], None], begun: Var, runs: Var) -> Stmt:
        """Loop over the parts of which some records are missing.

        Args:
            body: takes a scope, what the open run begins with, and what comes before it in its tile.
            begun, runs: these of the first tile of the batch.
        """
        scope, first = Scope(self.names, lanes=1), Scope(self.names, lanes=1)
        rest = PHASE + N - (T + PART) * self.records
        scope.add(
            SetInteger(LO, choose(equal(T + PART, 0), PHASE, 0)),
            SetInteger(HI, choose(C < self.columns, index_max(0, index_min(self.records, rest)), 0)),
            SetInteger(START, BASE + PART * (self.records * self.columns)),
        )
        total = scope.let(self.nothing(self.dtype), self.dtype)
        before = scope.let(self.nothing(self.wide), self.wide)
        first.add(Assign(total, Splat(begun)), Assign(before, Splat(runs)))
        scope.add(If(equal(T + PART, 0), tuple(first.statements)))
        inner = scope.inner()
        body(inner, total, before)
        scope.add(If(HI > 0, tuple(inner.statements)))
        return For(PART, 0, self.parts, 1, tuple(scope.statements))

    def _take(self, kept: list[Var], total: Var, runs: Var, begun: Var) -> list[Stmt]:
        """Compute results inside the run in registers; all numbers are loaded before the first is used."""
        if self.runs > 1:
            taken = self._take_run(kept, total)
            put = Scope(self.names, lanes=1)
            put.add(PutItem("adds", LID, self.widened(put, total)))
            return [*taken, *put.statements]
        whole = Scope(self.names, lanes=1)
        numbers = [self.operand(whole.beside(), BASE + j * self.columns, None) for j in range(len(kept))]
        for j, (place, number) in enumerate(zip(kept, numbers, strict=True)):
            part, record = divmod(j, self.run)
            if record == 0 and part:
                whole.add(Assign(total, self.nothing(self.dtype)))
            whole.add(Assign(place, Splat(self._step(whole, total, number, T + part, record))))
            if record == self.run - 1:
                adds = self.widened(whole, total)
                whole.add(PutItem("adds", self.place(part), adds))

        def add(inner: Scope, own: Var, before: Var) -> None:
            loop = inner.inner()
            number = self.operand(loop, loop.integer(START + J * self.columns), None)
            loop.add(Assign(own, Splat(self.combined(loop, own, number))))
            inner.add(For(J, LO, HI, 1, tuple(loop.statements)))
            inner.add(If(equal(T + PART + 1, BLOCKS), (Assign(total, Splat(own)),)))
            adds = self.combined(inner, before, self.widened(inner, own))
            inner.add(PutItem("adds", self.place(PART), adds))

        return [If(IsSet(WHOLE), tuple(whole.statements), (self._some(add, begun, runs),))]

    def _take_run(self, kept: list[Var], total: Var) -> list[Stmt]:
        """Do so for one of several runs of a tile."""
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
            whole.add(Assign(place, Splat(self._step(whole, total, number, T + BEGIN, j))))
        rest = whole.inner()
        for j, place in enumerate(longer, len(always)):
            rest.add(Assign(place, Splat(self._step(rest, total, place, T + BEGIN, j))))
        if longer:
            whole.add(self._where_longer(rest))
        number = self.operand(some, some.integer(BASE + J * self.columns), None)
        some.add(Assign(total, Splat(self.combined(some, total, number))))
        return [If(IsSet(WHOLE), tuple(whole.statements), (For(J, LO, HI, 1, tuple(some.statements)),))]

    def _results(self, kept: list[Var], carry: Var, runs: Var, begun: Var) -> list[Stmt]:
        """Apply the epilogue to the results of a run, and store.

        A run with missing records is scanned again from `begun`.
        """
        whole, some = Scope(self.names, lanes=1), Scope(self.names, lanes=1)
        rest = whole.inner()
        for j, place in enumerate(kept):
            scope = (whole if j < self.shortest else rest).beside()
            self._finish(scope, BASE + j * self.columns, place, carry, runs)
        if rest.statements:
            whole.add(self._where_longer(rest))
        at = some.integer(BASE + J * self.columns)
        self._finish(some, at, self._step(some, begun, self.operand(some, at, None), T + BEGIN, J), carry, runs)
        return [If(IsSet(WHOLE), tuple(whole.statements), (For(J, LO, HI, 1, tuple(some.statements)),))]

    def _part_results(self, kept: list[Var], runs: Var, begun: Var) -> list[Stmt]:
        """Do so for all parts of a work-item."""
        whole = Scope(self.names, lanes=1)
        nothing = whole.let(self.nothing(self.wide), self.wide)
        for j, place in enumerate(kept):
            if j % self.run == 0:
                carry = whole.let(ArrayItem("before", self.place(j // self.run)), self.wide)
            self._finish(whole.beside(), BASE + j * self.columns, place, carry, nothing)

        def again(inner: Scope, total: Var, before: Var) -> None:
            carry = inner.let(ArrayItem("before", self.place(PART)), self.wide)
            loop = inner.inner()
            at = loop.integer(START + J * self.columns)
            result = self._step(loop, total, self.operand(loop, at, None), T + PART, J)
            self._finish(loop, at, result, carry, before)
            inner.add(For(J, LO, HI, 1, tuple(loop.statements)))

        return [If(IsSet(WHOLE), tuple(whole.statements), (self._some(again, begun, runs),))]

    def _where_longer(self, scope: Scope) -> Stmt:
        """Guard statements for runs that are longer than the last run of a tile."""
        return If(equal(LENGTH, RUN), tuple(scope.statements))

    def _finish(self, scope: Scope, at: IndexLike, place: Var, carry: Var, runs: Var) -> None:
        result = self.combined(scope, runs, self.widened(scope, place))
        self.store(scope, at, None, self.combined(scope, carry, result))


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_gpu_look_back(task)) is not None:
        return reason
    if task.anchor is not None and takes_columns(task.anchor):
        return None
    return task.refuse(f"its items have fewer than {FEWEST} numbers, or its step is a user's")


def _lower(task: LoweringTask) -> Kernel:
    return ColumnLookBackLowering(task.graph, task.region, task.style).lower(task.name)


COLUMN_SCAN = Form(
    name=FORM,
    accepts=_why_not,
    lower=_lower,
    geometry=by_tickets,
    knobs=FormKnobs(gpu=(Knob("work_group", (128, 256, 512, 1024)), Knob("tile_columns", (8, 16, 32)))),
)
"""Scans of wide items along the stream on GPUs."""
