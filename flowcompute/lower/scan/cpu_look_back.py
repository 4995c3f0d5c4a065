"""Look-back scans along the stream on CPUs: each work-item takes tiles by ticket.

The order of summation is that of `engine.scans.host_scan`. The prefix of a tile comes from a decoupled
look-back (Merrill and Garland, 2016).

The operand of a tile is first computed into a private array. Transcendental functions before and after the
scan then process whole vectors, and the second read of the tile hits the cache. Inside a run each number
depends on the one before it, so several runs are scanned in an interleaved loop.
"""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    BLOCKS,
    ENDS,
    FIRST,
    RUN,
    Array,
    ArrayItem,
    Assign,
    AwaitSlot,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    Publish,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    Ticket,
    Var,
    While,
    all_of,
    equal,
    index_max,
    index_min,
    names,
    unequal,
)
from flowcompute.ir.launches import by_tickets
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import CPU_VECTOR, FormKnobs, KernelStyle, Knob
from flowcompute.lower.scan.scan_anchor import TileScan, why_no_look_back

BACK, BASE, C, ENDED, HI, J, KIND, KNOWN, LEFT, LO, OTHER, P, Q, Q0, Q1, T = names(
    "back base c ended hi j kind known left lo other p q q0 q1 t"
)
"""Integers of a tile: its number `t`, its records `lo` to `hi` that are in the batch, and its first number, `base`.

Of its runs, `q0` to `q1` are in the batch, and those before `ended` are complete. Loops run over runs `q`, records `j`,
columns `c` and numbers `p`."""

BESIDE = 8
"""Runs that are scanned in one interleaved loop; an addition has a latency of about four cycles."""


class CpuLookBackLowering(TileScan):
    """Lowering of a region around a scan along the stream for a CPU."""

    narrow = False

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        super().__init__(graph, region)
        # Of wide items a run is walked for a vector of columns, and by itself.
        wide = self.columns >= style.capabilities.lanes
        self.knobs = style.settled((WIDE_SCAN if wide else CPU_SCAN).knobs)
        self.lanes, self.beside = self.knobs.vector_width or style.capabilities.lanes, self.knobs.tile_rows or BESIDE

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts tiles."""
        scope = self._scope(1)
        self._tile(scope)
        ticket = Ticket(T, self.words)
        again = Ticket(T, self.words, new=False)
        return Kernel(
            name,
            self.region.name,
            self.arguments.ordered(),
            (*self._arrays(), ticket, While(T < BLOCKS, (*scope.statements, again))),
            work="scan",
            block=self.records,
            columns=self.columns,
            lanes=self.lanes,
            knobs=self.knobs,
        )

    def _scope(self, lanes: int) -> Scope:
        return Scope(self.names, lanes=lanes)

    def _arrays(self) -> list[Stmt]:
        d, runs = self.columns, -(-self.records // RUN)
        sizes = {
            "stage": (self.dtype, self.records * d + self.lanes),
            "last": (self.dtype, d),
            "totals": (self.wide, runs * d),
            "sums": (self.wide, d),
            "carries": (self.wide, d),
            **({} if d == 1 else {"before": (self.wide, d + self.lanes), "around": (self.wide, d + self.lanes)}),
        }
        return [Array(name, dtype, 1, size) for name, (dtype, size) in sizes.items()]

    # -- a tile -----------------------------------------------------------------------------------

    def _tile(self, scope: Scope) -> None:
        scope.add(*self.sizes())
        scope.add(self._each_column(self.begin(C)), *self._stage(), *self._runs())
        if before := self.before_all(self._scope(1), C):
            scope.add(If(equal(FIRST + T, 0), (self._each_column(*before),)))
        scope.add(*self._chain(), *self._carry(), *self._results())

    def _each_column(self, *body: Stmt) -> Stmt:
        return For(C, 0, self.columns, 1, body)

    def _vectors(
        self, start: IndexLike, stop: IndexLike, body: Callable[[Scope, IndexLike | None], None]
    ) -> list[Stmt]:
        """Loop over numbers of the tile in vectors, with `body(scope, count)` at number `p`."""
        main, tail = self._scope(self.lanes), self._scope(self.lanes)
        body(main, None)
        body(tail, LEFT)
        return [
            SetInteger(P, start),
            While(P + self.lanes <= stop, (*main.statements, SetInteger(P, P + self.lanes, new=False))),
            If(P < stop, (SetInteger(LEFT, stop - P), *tail.statements)),
        ]

    def _stage(self) -> list[Stmt]:
        def stage(scope: Scope, count: IndexLike | None) -> None:
            scope.add(PutItem("stage", P, self.operand(scope, BASE + P, count), vector=True))

        d = self.columns
        return [If(True, tuple(self._vectors(LO * d, HI * d, stage)))]

    # -- runs -------------------------------------------------------------------------------------

    def _runs(self) -> list[Stmt]:
        """Scan every run by itself, in place, and store its total in `totals`."""
        d, lanes = self.columns, self.lanes
        if d < lanes:
            one, many = self._scope(1), self._scope(1)
            self._run(one, Q, C, partial=True)
            self._interleaved_runs(many)
            whole = all_of(Q * RUN >= LO, (Q + self.beside) * RUN <= HI)
            some = (*many.statements, SetInteger(Q, Q + self.beside, new=False))
            single = (*one.statements, SetInteger(Q, Q + 1, new=False))
            return [self._each_column(SetInteger(Q, Q0), While(Q < Q1, (If(whole, some, single),)))]
        vector, rest = self._scope(lanes), self._scope(1)
        self._run(vector, Q, C, partial=True)
        body: list[Stmt] = [For(C, 0, d - d % lanes, lanes, tuple(vector.statements))]
        if d % lanes:
            self._run(rest, Q, C, partial=True)
            body.append(For(C, d - d % lanes, d, 1, tuple(rest.statements)))
        return [For(Q, Q0, Q1, 1, tuple(body))]

    def _run(self, scope: Scope, run: IndexLike, column: IndexLike, *, partial: bool) -> None:
        """Scan one run, for as many columns as the scope has lanes."""
        d, vector = self.columns, scope.lanes > 1
        total = scope.let(self.nothing(self.dtype), self.dtype)
        begun = scope.inner()
        begun.add(Assign(total, Splat(begun.let(ArrayItem("last", column, vector), self.dtype))))
        scope.add(If(equal(run, Q0), tuple(begun.statements)))
        inner = scope.inner()
        place = inner.integer(J * d + column)
        number = inner.let(ArrayItem("stage", place, vector), self.dtype)
        self.take_in(inner, total, place, number, vector=vector)
        start = index_max(run * RUN, LO) if partial else run * RUN
        scope.add(For(J, start, index_min(run * RUN + RUN, HI), 1, tuple(inner.statements)))
        scope.add(PutItem("totals", run * d + column, self.widened(scope, total), vector))

    def _interleaved_runs(self, scope: Scope) -> None:
        d = self.columns
        totals = [scope.let(self.nothing(self.dtype), self.dtype) for _ in range(self.beside)]
        inner = scope.inner()
        for run, total in enumerate(totals):
            place = inner.integer(((Q + run) * RUN + J) * d + C)
            number = inner.let(ArrayItem("stage", place), self.dtype)
            self.take_in(inner, total, place, number)
        scope.add(For(J, 0, RUN, 1, tuple(inner.statements)))
        for run, total in enumerate(totals):
            scope.add(PutItem("totals", (Q + run) * d + C, self.widened(scope, total)))

    # -- what comes before ------------------------------------------------------------------------

    def _chain(self) -> list[Stmt]:
        """Replace `totals` by the prefix of each run in its tile, and set `sums` to the total of its whole runs."""
        d = self.columns
        scope = self._scope(1)
        total = scope.let(ArrayItem("totals", Q * d + C), self.wide)
        before = scope.let(ArrayItem("sums", C), self.wide)
        after = self.combined(scope, before, total)
        scope.add(PutItem("totals", Q * d + C, before))
        open_run = scope.inner()
        open_run.add(PutItem("last", C, self.narrowed(open_run, total)))
        scope.add(If(Q < ENDED, (PutItem("sums", C, after),), tuple(open_run.statements)))
        return [For(Q, Q0, Q1, 1, (self._each_column(*scope.statements),)), self._publish_total()]

    def _publish_total(self) -> Stmt:
        """Publish the tile's total before its prefix is known.

        Later tiles need not wait for this one then, even if its thread is descheduled while it waits.
        """
        scope = self._scope(1)
        adds = scope.let(ArrayItem("sums", C), self.wide)
        scope.add(Publish(self.words, T * self.columns + C, adds, prefix=False))
        return If(all_of(T > 0, T + 1 < BLOCKS), (self._each_column(*scope.statements),))

    def _before(self, scope: Scope) -> None:
        """Set `carries` to the prefix of the tile by looking back.

        The latest known prefix is taken, and the totals that follow it are added in order.
        """
        slot = BACK * self.columns + C
        first, earlier, later = scope.fresh(self.wide, 1), scope.fresh(self.wide, 1), scope.fresh(self.wide, 1)
        scope.add(SetInteger(BACK, T - 1), AwaitSlot(first, KIND, self.words, slot))
        total = scope.let(Splat(first), self.wide)
        seen = (AwaitSlot(earlier, OTHER, self.words, slot), Assign(total, Splat(earlier)))
        step_back = (SetInteger(BACK, BACK - 1, new=False), *seen, SetInteger(KIND, OTHER, new=False))
        scope.add(While(unequal(KIND, ENDS), step_back))
        added = scope.inner()
        added.add(Assign(total, Splat(self.combined(added, total, later))))
        known = If(equal(KNOWN, ENDS), (Assign(total, Splat(later)),), tuple(added.statements))
        step_on = (SetInteger(BACK, BACK + 1, new=False), AwaitSlot(later, KNOWN, self.words, slot), known)
        scope.add(While(BACK + 1 < T, step_on), PutItem("carries", C, total))

    def _carry(self) -> list[Stmt]:
        """Compute the prefix of the tile; then publish that of the next tile, or store the state after the batch."""
        old, new = self._scope(1), self._scope(1)
        old.add(PutItem("carries", C, old.let(Load(self.state, C), self.wide)))
        self._before(new)
        scope = self._scope(1)
        scope.add(If(equal(T, 0), tuple(old.statements), tuple(new.statements)))
        self.pass_on(scope, C)
        return [self._each_column(*scope.statements)]

    # -- results ----------------------------------------------------------------------------------

    def _results(self) -> list[Stmt]:
        d = self.columns
        scope = self._scope(1)
        known: dict[str, Var] = {}
        if d == 1:
            known = {"before": scope.let(ArrayItem("totals", Q), self.wide)}
            known["around"] = scope.let(ArrayItem("carries", 0), self.wide)
        else:
            scope.add(self._around("before", "totals", Q * d))

        def finish(inner: Scope, count: IndexLike | None) -> None:
            number = self.widened(inner, inner.let(ArrayItem("stage", P, vector=True), self.dtype))
            for name in ("before", "around"):
                one = known.get(name)
                expr = ArrayItem(name, P % d, vector=True) if one is None else Splat(one)
                number = self.combined(inner, inner.let(expr, self.wide), number, count)
            self.store(inner, BASE + P, count, number)

        scope.add(*self._vectors(index_max(Q * RUN, LO) * d, index_min(Q * RUN + RUN, HI) * d, finish))
        outer = [] if d == 1 else [self._around("around", "carries", 0)]
        return [*outer, For(Q, Q0, Q1, 1, tuple(scope.statements))]

    def _around(self, name: str, source: str, base: IndexLike) -> Stmt:
        """Repeat the columns' numbers for one more vector, so that vectors may begin at any column."""
        d = self.columns
        scope = self._scope(1)
        scope.add(PutItem(name, C, scope.let(ArrayItem(source, base + C % d), self.wide)))
        return For(C, 0, d + self.lanes, 1, tuple(scope.statements))


def _why_not(task: LoweringTask) -> Reason | None:
    return task.refuse("work-groups of a GPU scan a tile together") if task.is_gpu else why_no_look_back(task)


def _why_not_narrow(task: LoweringTask) -> Reason | None:
    if (reason := _why_not(task)) is not None:
        return reason
    return task.refuse("its items fill a vector") if _is_wide(task) else None


def _why_not_wide(task: LoweringTask) -> Reason | None:
    if (reason := _why_not(task)) is not None:
        return reason
    return None if _is_wide(task) else task.refuse("its items fill no vector")


def _is_wide(task: LoweringTask) -> bool:
    return task.anchor is not None and task.anchor.spec.item_numbers >= task.style.capabilities.lanes


def _lower(task: LoweringTask) -> Kernel:
    return CpuLookBackLowering(task.graph, task.region, task.style).lower(task.name)


CPU_SCAN = Form(
    name="cpu scan",
    accepts=_why_not_narrow,
    lower=_lower,
    geometry=by_tickets,
    knobs=FormKnobs(cpu=(CPU_VECTOR, Knob("tile_rows", (2, 4, 8, 16), BESIDE))),
    family="scan",
)
"""Scans along the stream of items with fewer numbers than a vector, on CPUs."""

WIDE_SCAN = Form(
    name="wide scan", accepts=_why_not_wide, lower=_lower, geometry=by_tickets, knobs=FormKnobs(cpu=(CPU_VECTOR,))
)
"""Scans along the stream of wider items, on CPUs."""
