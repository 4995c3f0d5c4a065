"""Scans of wide items along the stream on GPUs: a work-group takes some columns of many tiles at once.

Tiles of wide items have few records, and the prefix of each depends on the tile before. So the work done
for each wait decides the speed. Neighbouring work-items take neighbouring columns. Each row of work-items
takes tiles of its own, whose numbers stay in registers.

One work-item for each column adds the totals of the tiles in order, and publishes one prefix for all of
them. The order of summation is that of `engine.scans.host_scan`. A tile of several runs has one row of
work-items for each run. Short tiles are several to a row, one part after the other.

The register of each result that is stored takes a number of the next task, so that loads and stores are on their way at
once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    BIAS_FACTOR,
    BLOCKS,
    BUSY,
    FIRST,
    LID,
    PHASE,
    RUN,
    Array,
    ArrayItem,
    ArrayNumber,
    Assign,
    ConditionLike,
    ConstantValue,
    For,
    If,
    IndexLike,
    IsFinite,
    IsSet,
    Kernel,
    Load,
    MultiplyAdd,
    N,
    Name,
    PutItem,
    SetInteger,
    ShiftedBits,
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
    REGISTER_BYTES,
    REGISTERS_BYTES,
    columns_of,
    parts_of,
    takes_columns,
    work_group_of,
)
from flowcompute.lower.scan.scan_anchor import (
    put_ticket,
    scan_initial,
    why_no_gpu_look_back,
)
from flowcompute.spec import FLOAT32, FLOAT64, INT64, is_float

BASE, DRAWN, J, PART, START, STRETCH, T, TASK, TASKS = names("base drawn j part start stretch t task tasks")
AHEAD, NEXT, NEXT_T = names("ahead next next_t")
BEGIN, C, COLUMN, HI, LENGTH, LO, STOP, TEAM, WHOLE = names("begin c column hi length lo stop team whole", narrow=True)
NEXT_C, READY = names("next_c ready", narrow=True)
"""Integers of a work-item: its task (a stretch of tiles, and a panel of columns), its first tile `t` and column `c`.

That is number `column` of the panel. `base` is its first number in the batch. Of a run, records `lo` to `hi` are in the
batch. A run of several begins at record `begin` of its tile and has `length` records.

The next task is `next`, with its tile and column. Where `ready`, its numbers are in registers. They are loaded from
index `ahead` on."""


ALONE = 16
"""Results that a work-item stores before it knows the next task, whose numbers are loaded behind them."""

AHEAD_BYTES = 64
"""Fewest bytes of a panel's row for which that pays: others wait for the task meanwhile."""

FETCHED_BYTES = 2 << 20
"""Most bytes of a stretch, of which the next one is fetched into the second-level cache. Longer ones would be gone."""


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
        self.ahead = self.across * max(self.dtype.itemsize, REGISTER_BYTES) >= AHEAD_BYTES
        stretch_bytes = self.tiles * self.records * self.columns * self.dtype.itemsize
        self.far = style.capabilities.warp_groups and not style.capabilities.host_memory
        self.far = self.far and stretch_bytes <= FETCHED_BYTES
        self.meets_twice = not style.capabilities.shuffles
        # Where several work-groups share a unit, one of them converts while others wait for memory.
        fills = self.group * self.run * self.parts * REGISTER_BYTES >= REGISTERS_BYTES
        self.shifts = fills and self.op == "sum" and (self.dtype, self.wide) == (FLOAT32, FLOAT64)
        signed = self.op == "sum" and is_float(self.dtype)
        self.signless = scan_initial(self.node, self.dtype) if self.exclusive and signed else None

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts tiles."""
        scope, begin = Scope(self.names, lanes=1), Scope(self.names, lanes=1)
        kept = [begin.let(ConstantValue(0), self.dtype) for _ in range(self.run * self.parts)]
        scope.add(*self._sizes())
        total = scope.let(self.nothing(self.dtype), self.dtype)
        runs = scope.let(self.nothing(self.wide), self.wide)
        scope.add(*self._begin(total, runs))
        begun = scope.let(Splat(total), self.dtype)
        first = scope.inner()
        self._load_all(first, kept)
        scope.add(If(all_of(IsSet(WHOLE), equal(READY, 0)), tuple(first.statements)))
        scope.add(*self._take(kept, total, runs, begun))
        if self.shifts:
            scope.add(self._only_finite(kept, total))
        scope.add(WorkGroupBarrier())
        if self.meets_twice:
            # PoCL 3.0 loses a barrier after a loop that some work-items turn more often.
            scope.add(WorkGroupBarrier())
        if self.runs > 1:
            scope.add(self.add_runs(), WorkGroupBarrier())
        scope.add(self.chain(), WorkGroupBarrier())
        # Others wait for a task from its ticket on, so none is drawn before this task's wait has ended.
        scope.add(Ticket(DRAWN, self.words, tickets=TASKS, by=BUSY if self.ahead else 0))
        carry = runs
        if self.runs > 1:
            carry = scope.let(ArrayItem("before", TEAM // self.runs * self.across + COLUMN), self.wide)
            scope.add(Assign(runs, ArrayItem("adds", LID)))
        alone = min(ALONE, len(kept) // 2) if self.ahead else 0
        some = self._some_results(carry, runs, begun) if self.runs > 1 else self._some_parts(runs, begun)
        if self.ahead:
            early = Scope(self.names, lanes=1)
            self._whole_results(early, kept, carry, runs, range(alone))
            scope.add(put_ticket(self.names, DRAWN, BUSY), If(IsSet(WHOLE), tuple(early.statements)))
            scope.add(WorkGroupBarrier(), *self._next(), *(self._fetch() if self.far else []))
        late = Scope(self.names, lanes=1)
        self._whole_results(late, kept, carry, runs, range(alone, len(kept)))
        scope.add(If(IsSet(WHOLE), tuple(late.statements), (some,)))
        scope.add(self.store_run_state(scope, carry, runs, total) if self.runs > 1 else self.leave(runs, total))
        if self.ahead:
            scope.add(SetInteger(TASK, NEXT, new=False))
        # Surplus rows of work-items read a prefix, too, and use it for nothing.
        rows = -(-self.group // self.across * self.parts // self.runs)
        arrays = [self._array("adds", self.tiles * self.runs), self._array("before", rows)]
        if self.runs > 1:
            arrays.append(self._array("totals", self.tiles))
        arrays.append(Array("taken", INT64, 1, 1, local=True))
        tasks = SetInteger(TASKS, (BLOCKS + (self.tiles - 1)) // self.tiles * self.panels)
        sizes: dict[str, Any] = {"work_group": self.group, "tile": (self.tiles, self.panels), "knobs": self.knobs}
        before = [*arrays, tasks, *begin.statements, SetInteger(READY, 0)]
        drawn = None if self.ahead else DRAWN
        return self.kernel(name, before, scope.statements, TASK, drawn, TASKS, **sizes)

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
            return [
                *where,
                SetInteger(T, STRETCH * self.tiles + TEAM * self.parts),
                SetInteger(WHOLE, self._whole(T, C)),
                SetInteger(BASE, self._base(T, C)),
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
            SetInteger(WHOLE, self._whole(T, C)),
            SetInteger(BASE, self._base(T, C)),
        ]

    def _next(self) -> list[Stmt]:
        """Declare the next task, and whether its numbers are loaded as those of this one are stored.

        Where they are not, numbers of this task are loaded again, which takes no condition for each.
        """
        team = TEAM * self.parts if self.runs == 1 else TEAM // self.runs
        return [
            SetInteger(NEXT, ArrayNumber("taken", 0)),
            SetInteger(NEXT_T, NEXT // self.panels * self.tiles + team),
            SetInteger(NEXT_C, NEXT % self.panels * self.across + COLUMN),
            SetInteger(READY, all_of(IsSet(WHOLE), self._whole(NEXT_T, NEXT_C)), new=False),
            SetInteger(AHEAD, choose(IsSet(READY), self._base(NEXT_T, NEXT_C), BASE)),
        ]

    def _fetch(self) -> list[Stmt]:
        """Fetch a part of the stretch behind that of the next task, as large as the numbers of a task.

        The tasks of a stretch fetch all of the one behind it, which has a whole stretch between.
        """
        stretch = self.tiles * self.records * self.columns
        size = stretch // self.panels
        behind = NEXT // self.panels + 1
        begin = (behind * (self.tiles * self.records) - PHASE) * self.columns + NEXT % self.panels * size
        return self.fetched(begin, math.gcd(stretch, size), size, (behind + 1) * self.tiles < BLOCKS)

    def _whole(self, t: Name, c: Name) -> ConditionLike:
        """Return whether all records of the work-item with this first tile and column are in the batch."""
        if self.runs == 1:
            begun, stop = equal(PHASE, 0), (t + self.parts) * self.records
        else:
            begun, stop = PHASE <= BEGIN, t * self.records + BEGIN + LENGTH
        exists = [c < self.columns, *([TEAM // self.runs < self.tiles] if self.runs > 1 else [])]
        return all_of(*exists, any_of(t > 0, begun), stop <= PHASE + N)

    def _base(self, t: Name, c: Name) -> IndexLike:
        """Return the index in the batch of the first of them."""
        begin = t * self.records + BEGIN if self.runs > 1 else t * self.records
        return (begin - PHASE) * self.columns + c

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

    def _load_all(self, scope: Scope, kept: list[Var]) -> None:
        """Load all numbers of a work-item, where none were loaded before."""
        rest = scope.inner()
        for j, place in enumerate(kept):
            self._load(rest if j >= self.shortest and self.runs > 1 else scope, place, BASE + j * self.columns)
        if rest.statements:
            scope.add(self._where_longer(rest))

    def _load(self, scope: Scope, place: Var, at: IndexLike) -> None:
        number = self.operand(scope.beside(), at, None)
        scope.add(Assign(place, Splat(number)))

    def _take(self, kept: list[Var], total: Var, runs: Var, begun: Var) -> list[Stmt]:
        """Compute results inside the run in registers."""
        if self.runs > 1:
            taken = self._take_run(kept, total)
            put = Scope(self.names, lanes=1)
            put.add(PutItem("adds", LID, self.widened(put, total)))
            return [*taken, *put.statements]
        whole = Scope(self.names, lanes=1)
        for j, place in enumerate(kept):
            part, record = divmod(j, self.run)
            if record == 0 and part:
                whole.add(Assign(total, self.nothing(self.dtype)))
            whole.add(Assign(place, Splat(self._step(whole, total, place, T + part, record))))
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
        rest = whole.inner()
        for j, place in enumerate(kept):
            scope = whole if j < self.shortest else rest
            scope.add(Assign(place, Splat(self._step(scope, total, place, T + BEGIN, j))))
        if rest.statements:
            whole.add(self._where_longer(rest))
        number = self.operand(some, some.integer(BASE + J * self.columns), None)
        some.add(Assign(total, Splat(self.combined(some, total, number))))
        return [If(IsSet(WHOLE), tuple(whole.statements), (For(J, LO, HI, 1, tuple(some.statements)),))]

    def _only_finite(self, kept: list[Var], total: Var) -> Stmt:
        """Leave runs with numbers that are not finite to those who scan again: sums stay infinite, or NaN, from there.

        The last sum of each run tells.
        """
        ends = [total] if self.runs > 1 else kept[self.run - 1 :: self.run]
        return SetInteger(WHOLE, all_of(IsSet(WHOLE), *(IsFinite(end.name) for end in ends)), new=False)

    def _whole_results(self, scope: Scope, kept: list[Var], carry: Var, runs: Var, stored: range) -> None:
        """Apply the epilogue to these results of whole runs, and store.

        Where they are not the first ones, the register of each that is stored takes a number of the next task.
        """
        if self.runs == 1:
            runs = scope.let(self.nothing(self.wide), self.wide)
        longer = scope.inner()
        for j in range(stored.stop):
            inner = longer if j >= self.shortest and self.runs > 1 else scope
            if j in stored:
                if self.runs == 1 and (j == stored.start or j % self.run == 0):
                    carry = scope.let(ArrayItem("before", self.place(j // self.run)), self.wide)
                finish = self._finish_shifted if self.shifts else self._finish
                finish(inner.beside(), BASE + j * self.columns, kept[j], carry, runs)
            if stored.start:
                self._load(inner, kept[j], AHEAD + j * self.columns)
        if longer.statements:
            scope.add(self._where_longer(longer))

    def _some_results(self, carry: Var, runs: Var, begun: Var) -> Stmt:
        """Do so for a run with missing records, which is scanned again from `begun`."""
        some = Scope(self.names, lanes=1)
        at = some.integer(BASE + J * self.columns)
        self._finish(some, at, self._step(some, begun, self.operand(some, at, None), T + BEGIN, J), carry, runs)
        return For(J, LO, HI, 1, tuple(some.statements))

    def _some_parts(self, runs: Var, begun: Var) -> Stmt:
        """Do so for the parts of a work-item."""

        def again(inner: Scope, total: Var, before: Var) -> None:
            carry = inner.let(ArrayItem("before", self.place(PART)), self.wide)
            loop = inner.inner()
            at = loop.integer(START + J * self.columns)
            result = self._step(loop, total, self.operand(loop, at, None), T + PART, J)
            self._finish(loop, at, result, carry, before)
            inner.add(For(J, LO, HI, 1, tuple(loop.statements)))

        return self._some(again, begun, runs)

    def _where_longer(self, scope: Scope) -> Stmt:
        """Guard statements for runs that are longer than the last run of a tile."""
        return If(equal(LENGTH, RUN), tuple(scope.statements))

    def _finish(self, scope: Scope, at: IndexLike, place: Var, carry: Var, runs: Var) -> None:
        result = self.combined(scope, runs, self.widened(scope, place))
        self.store(scope, at, None, self.combined(scope, carry, result))

    def _finish_shifted(self, scope: Scope, at: IndexLike, place: Var, carry: Var, runs: Var) -> None:
        """Do so for a finite number, with the same bits: what makes it a float64 is exact, and so is the product."""
        shifted, factor = scope.let(ShiftedBits(place), FLOAT64), scope.let(ConstantValue(BIAS_FACTOR), FLOAT64)
        if self.runs == 1:
            # Nothing comes before it in its tile.
            result = scope.let(MultiplyAdd(shifted, factor, carry), FLOAT64)
        else:
            result = self.combined(scope, carry, scope.let(MultiplyAdd(shifted, factor, runs), FLOAT64))
        self.store(scope, at, None, result)


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
