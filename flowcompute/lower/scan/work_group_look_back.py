"""Look-back scans along the stream on GPUs: each work-group takes tiles by ticket.

The order of summation is that of `engine.scans.host_scan`. The prefix of a tile comes from a decoupled
look-back (Merrill and Garland, 2016).

Neighbouring work-items load neighbouring numbers of a tile to local memory, as vectors where items and turns
are whole vectors. The tile is scanned there run by run, and stored as it was loaded. The pitch of runs is one
item more than their length. Work-items that scan neighbouring columns and runs then have no bank conflicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flowcompute.fuse import Region
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import (
    BLOCKS,
    FIRST,
    LID,
    RUN,
    Array,
    ArrayItem,
    Assign,
    Await,
    ConditionLike,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    LookBack,
    Publish,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    Ticket,
    Var,
    WorkGroupBarrier,
    all_of,
    equal,
    index_max,
    index_min,
    names,
    register_dtype,
    scan_tile,
)
from flowcompute.ir.launches import by_tickets
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.scan.scan_anchor import (
    TileScan,
    scan_wide,
    vector_lanes,
    why_no_gpu_look_back,
)
from flowcompute.spec import INT32, INT64

BASE, DRAWN, J, K, Q, S, T = names("base drawn j k q s t")
C, ENDED, HI, LO, P, Q0, Q1 = names("c ended hi lo p q0 q1", narrow=True)
"""Integers of a tile: its number `t`, its records `lo` to `hi` that are in the batch, and its first number, `base`.

Of its runs, `q0` to `q1` are in the batch, and those before `ended` are complete. Loops run over runs `q`, records `j`,
columns `c` and numbers `p`."""

GROUP = 256
"""Work-items in a work-group: one for each run of a tile of numbers, and for each tile of a look-back window."""

LARGE_GROUP = 320
"""Most work-items where the columns of all runs are a few more, so that none of them waits for a second turn."""

STORED = 4
"""Results that a work-item computes at once where turns are not whole: more leave other work-groups few registers."""

BETWEEN = range(17, 49)
"""Columns for which large work-groups and many loads at once leave too few registers to other work-groups."""

BEHIND = 48
"""Tiles that a look-back inspects: about those that have published a total but no prefix yet."""

LOOKS = 16
"""Most earlier tiles that a work-item of so many inspects, where there are many columns."""


def scan_local_bytes(node: Node) -> int:
    """Return the most bytes of local memory that a work-group takes for the tiles of a scan."""
    columns = node.spec.item_numbers
    records = scan_tile(columns)
    numbers = records * columns
    wide = (-(-records // RUN) * columns + 2 * columns + LOOKS * GROUP) * scan_wide(node).itemsize
    return (
        (numbers + numbers // RUN + columns) * register_dtype(node.spec.dtype).itemsize + wide + 8 * (columns + GROUP)
    )


@dataclass(frozen=True)
class TileNumber:
    """Number of a tile, or several neighbours: the index of the first there, in local memory and in the batch.

    Attributes:
        number: index in the tile.
        slot: index in local memory.
        at: index in the batch; that of another number where this one does not exist.
        run: index of the first total of its run.
        exists: whether the tile has it, where that is not known.
    """

    number: IndexLike
    slot: IndexLike
    at: IndexLike
    run: IndexLike
    exists: ConditionLike | None = None

    def guarded(self, statements: list[Stmt]) -> list[Stmt]:
        """Return statements that do nothing where the number does not exist."""
        return statements if self.exists is None else [If(self.exists, tuple(statements))]


class WorkGroupLookBackLowering(TileScan):
    """Lowering of a region around a scan along the stream for a GPU."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        super().__init__(graph, region)
        self.looks_back = style.capabilities.shuffles
        # Tiles of wide numbers fill more than half of the local memory of a unit, so one work-group has it alone.
        self.beside = self.dtype.itemsize <= 4
        self.far = self.beside and style.capabilities.warp_groups and not style.capabilities.host_memory
        # Numbers that a work-item loads at once; longer kernel texts take long to compile.
        runs = -(-self.records // RUN) * self.columns
        few = runs > GROUP and self.columns in BETWEEN
        loads = (8 if few else 16) if self.looks_back else 4
        large = not few and GROUP < runs <= LARGE_GROUP <= style.capabilities.max_work_group
        self.knobs = style.settled(LOOK_BACK_SCAN.knobs, unroll=loads)
        if large and style.wanted.work_group is None:
            # Knobs have powers of two.
            self.knobs = replace(self.knobs, work_group=None)
        self.group, self.loads = self.knobs.work_group or -(-runs // 32) * 32, self.knobs.unroll or loads
        self.together = min(self.columns, GROUP)
        self.window = min(BEHIND, LOOKS * GROUP // self.together)
        self.numbers = self.records * self.columns
        ragged = self.numbers % (self.group * self.loads) != 0
        self.stored = STORED if ragged else self.loads
        # Neighbours that a work-item loads, keeps in local memory and stores at once. Where turns are not whole, they
        # take registers that other work-groups need.
        vector = vector_lanes(self.dtype)
        self.lanes = 1 if ragged or self.columns % vector or self.loads % vector else vector
        self.aligned = not style.capabilities.host_memory

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts tiles."""
        tile: list[Stmt] = [
            *self.sizes(),
            *(self.fetch_ahead() if self.far else []),
            self._each_column(self.begin(C)),
            *self._stage(),
            WorkGroupBarrier(),
            *self._runs(),
            WorkGroupBarrier(),
            # PoCL 3.0 loses the one after a loop that some work-items turn more often.
            *([] if self.looks_back else [WorkGroupBarrier()]),
            *self._chain(),
            self._before(),
            *self._carry(),
            WorkGroupBarrier(),
        ]
        drawn = Ticket(DRAWN, self.words)
        # Others wait for a tile from its ticket on, so none is drawn before loading can begin.
        tile += [*self._results(), drawn] if self.beside else [drawn, *self._results()]
        sizes: dict[str, Any] = {"work_group": self.group, "lanes": self.lanes, "knobs": self.knobs}
        return self.kernel(name, self._arrays(), tile, T, DRAWN, **sizes)

    def _arrays(self) -> list[Array]:
        d, runs, numbers = self.columns, -(-self.records // RUN), self.records * self.columns
        sizes = {
            "stage": (self.dtype, numbers + numbers // RUN),
            "last": (self.dtype, d),
            "totals": (self.wide, runs * d),
            "sums": (self.wide, d),
            "carries": (self.wide, d),
            "taken": (INT64, 1),
        }
        if self.looks_back:
            sizes["ahead"] = (self.wide, -(-self.window * self.together // self.group) * self.group)
            sizes["marks"] = (INT32, self.together)
        return [Array(name, dtype, 1, size, local=True) for name, (dtype, size) in sizes.items()]

    def _scope(self, lanes: int = 1) -> Scope:
        return Scope(self.names, lanes=lanes)

    def _each_column(self, *body: Stmt) -> Stmt:
        """Distribute the columns over work-items, always in the same way."""
        if self.columns <= self.group:
            return If(LID < self.columns, (SetInteger(C, LID), *body))
        return For(C, LID, self.columns, self.group, body)

    # -- numbers of a tile --------------------------------------------------------------------------

    def _slot(self, scope: Scope, number: IndexLike) -> IndexLike:
        """Declare the index of a number of the tile in local memory."""
        return scope.narrow(number + self._run(number))

    def _run(self, number: IndexLike) -> IndexLike:
        """Return the index of the first total of the run that a number of the tile is in.

        Rows of local memory are as many numbers longer than those of a run as an item has: neighbours that scan
        neighbouring columns of runs meet neighbouring banks.
        """
        return number // (RUN * self.columns) * self.columns

    def _each_number(self, body: Callable[[Scope, list[TileNumber]], None], most: int) -> Stmt:
        """Loop over the tile's numbers, neighbouring ones or vectors of these in neighbouring work-items.

        `body` takes those of a work-item in one iteration, `most` numbers at most.
        """
        d, together = self.columns, self.group * most
        some = self._scope()
        body(some, [TileNumber(P, self._slot(some, P), BASE + P, self._run(P))])
        place = SetInteger(P, K * self.group + LID)
        guarded = If(all_of(P >= LO * d, P < HI * d), tuple(some.statements))
        partly = For(K, 0, -(-self.numbers // self.group), 1, (place, guarded))
        many, rest = self.numbers // together * together, self.numbers % together
        whole: list[Stmt] = []
        if many:
            every = self._scope(self.lanes)
            body(every, self._numbers(every, together, together))
            whole.append(For(K, 0, many, together, tuple(every.statements)))
        if rest:
            last = self._scope(self.lanes)
            last.add(SetInteger(K, many))
            body(last, self._numbers(last, rest, together))
            whole += last.statements
        return If(equal(HI - LO, self.records), tuple(whole), (partly,))

    def _numbers(self, scope: Scope, count: int, turn: int) -> list[TileNumber]:
        """Return those of a work-item of `count` neighbours from number `k` of the tile on, a multiple of `turn`."""
        lid, apiece, run = LID * self.lanes, self.group * self.lanes, RUN * self.columns
        number, here = scope.narrow(K + lid), scope.integer(BASE + K + lid)
        # Turns of whole runs, or whole turns of a run: constant offsets cost no instructions.
        apart = apiece % run == 0
        together = run % apiece == 0 and turn % run == 0
        first = scope.narrow(self._run(K if together else number))
        numbers = []
        for step in range(0, count, apiece):
            known = apart or together
            own = first + step // run * self.columns if known else scope.narrow(self._run(number + step))
            one = TileNumber(number + step, number + own + step, here + step, own)
            if step + apiece > count:
                at = scope.integer(BASE + index_min(number + step, self.numbers - self.lanes))
                one = replace(one, at=at, exists=number + step < self.numbers)
            numbers.append(one)
        return numbers

    def _stage(self) -> list[Stmt]:
        """Load the tile to local memory."""

        def stage(scope: Scope, numbers: list[TileNumber]) -> None:
            vector = scope.lanes > 1
            values = [self.operand(scope.beside(), one.at, None, whole=vector) for one in numbers]
            for one, value in zip(numbers, values, strict=True):
                scope.add(*one.guarded([PutItem("stage", one.slot, value, vector)]))

        return [self._each_number(stage, self.loads)]

    # -- runs ---------------------------------------------------------------------------------------

    def _runs(self) -> list[Stmt]:
        """Scan every run by one work-item, in place, and store its total in `totals`."""
        d = self.columns
        scope = self._scope()
        run = scope.narrow(Q0 + S // d if d > 1 else Q0 + S)
        column = scope.narrow(S % d) if d > 1 else 0
        total = scope.let(self.nothing(self.dtype), self.dtype)
        begun = scope.inner()
        begun.add(Assign(total, Splat(begun.let(ArrayItem("last", column), self.dtype))))
        scope.add(If(equal(run, Q0), tuple(begun.statements)))
        start, stop = scope.narrow(index_max(run * RUN, LO)), scope.narrow(index_min(run * RUN + RUN, HI))
        whole, some = scope.inner(), scope.inner()
        self._whole_run(whole, total, run, column)
        inner = some.inner()
        slot = self._slot(inner, inner.narrow(J if d == 1 else J * d + column))
        self.take_in(inner, total, slot, inner.let(ArrayItem("stage", slot), self.dtype))
        some.add(For(J, start, stop, 1, tuple(inner.statements)))
        scope.add(If(equal(stop - start, RUN), tuple(whole.statements), tuple(some.statements)))
        scope.add(PutItem("totals", run * d + column, self.widened(scope, total)))
        return [For(S, LID, (Q1 - Q0) * d, self.group, tuple(scope.statements))]

    def _whole_run(self, scope: Scope, total: Var, run: IndexLike, column: IndexLike) -> None:
        """Scan a whole run; a group of its numbers is read before the first is used."""
        d = self.columns
        base = scope.narrow(run * ((RUN + 1) * d) + column)
        inner = scope.inner()
        numbers = [inner.narrow((J + i) * d) for i in range(self.loads)] if d > 1 else []
        slots = [base + n for n in numbers] or [base + J + i for i in range(self.loads)]
        values = [inner.let(ArrayItem("stage", slot), self.dtype) for slot in slots]
        sums = [total]
        for value in values:
            sums.append(self.combined(inner, sums[-1], value))
        results = sums[:-1] if self.exclusive else sums[1:]
        inner.add(*(PutItem("stage", slot, one) for slot, one in zip(slots, results, strict=True)))
        inner.add(Assign(total, Splat(sums[-1])))
        scope.add(For(J, 0, RUN, self.loads, tuple(inner.statements)))

    # -- what comes before ----------------------------------------------------------------------------

    def _chain(self) -> list[Stmt]:
        """Replace `totals` by the prefix of each run in its tile, and publish the total of the whole runs."""
        d, place = self.columns, Q * self.columns + C
        scope = self._scope()
        total = scope.let(ArrayItem("sums", C), self.wide)
        inner = scope.inner()
        own = inner.let(ArrayItem("totals", place), self.wide)
        inner.add(PutItem("totals", place, total), Assign(total, Splat(self.combined(inner, total, own))))
        scope.add(For(Q, Q0, ENDED, 1, tuple(inner.statements), unroll=8))
        rest = scope.inner()
        open_run = rest.let(ArrayItem("totals", ENDED * d + C), self.wide)
        rest.add(PutItem("last", C, self.narrowed(rest, open_run)), PutItem("totals", ENDED * d + C, total))
        scope.add(If(ENDED < Q1, tuple(rest.statements)), PutItem("sums", C, total))
        if self.looks_back:
            publish = Publish(self.words, T * d + C, total, prefix=False)
            scope.add(If(all_of(T > 0, T + 1 < BLOCKS), (publish,)))
        if before := self.before_all(self._scope(), C):
            scope.add(If(equal(FIRST + T, 0), before))
        return [self._each_column(*scope.statements)]

    def _before(self) -> Stmt:
        """Set `carries` to the prefix of the tile."""
        if self.looks_back:
            return LookBack(
                self.words, self.state, T, self.columns, self.together, self.window, self.op, "carries", self.group
            )
        # Compilers have bugs with barriers in loops whose trip count is known only at run time.
        d = self.columns
        first, later = self._scope(), self._scope()
        first.add(PutItem("carries", C, first.let(Load(self.state, C), self.wide)))
        before = later.fresh(self.wide, 1)
        later.add(Await(before, self.words, (T - 1) * d + C), PutItem("carries", C, before))
        return self._each_column(If(equal(T, 0), tuple(first.statements), tuple(later.statements)))

    def _carry(self) -> list[Stmt]:
        """Publish the prefix of the next tile; after the last tile, store the state."""
        scope = self._scope()
        self.pass_on(scope, C)
        return [self._each_column(*scope.statements)]

    # -- results ----------------------------------------------------------------------------------------

    def _results(self) -> list[Stmt]:
        scope = self._scope()
        only_carry = scope.let(ArrayItem("carries", 0), self.wide) if self.columns == 1 else None

        def finish(inner: Scope, numbers: list[TileNumber]) -> None:
            for one in numbers:
                scope = inner.beside() if one.exists is None else inner.inner()
                self._finish(scope, one, only_carry)
                if one.exists is not None:
                    inner.add(*one.guarded(scope.statements))

        return [*scope.statements, self._each_number(finish, self.stored)]

    def _finish(self, scope: Scope, one: TileNumber, only_carry: Var | None) -> None:
        """Store the result at a number of the tile, or the results at neighbours."""
        d, lanes = self.columns, scope.lanes
        vector = lanes > 1
        value = self.widened(scope, scope.let(ArrayItem("stage", one.slot, vector), self.dtype))
        column = scope.narrow((one.number if self.group * lanes % d else LID * lanes) % d) if d > 1 else 0
        value = self.combined(scope, scope.let(ArrayItem("totals", one.run + column, vector), self.wide), value)
        carry = only_carry or scope.let(ArrayItem("carries", column, vector), self.wide)
        self.store(scope, one.at, None, self.combined(scope, carry, value), whole=vector)


def _lower(task: LoweringTask) -> Kernel:
    return WorkGroupLookBackLowering(task.graph, task.region, task.style).lower(task.name)


LOOK_BACK_SCAN = Form(
    name="look-back scan",
    accepts=why_no_gpu_look_back,
    lower=_lower,
    geometry=by_tickets,
    knobs=FormKnobs(gpu=(Knob("work_group", (64, 128, 256, 512, 1024), 256), Knob("unroll", (4, 8, 16)))),
    family="scan",
)
"""Scans along the stream on GPUs."""
