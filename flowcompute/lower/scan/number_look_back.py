"""Look-back scans of a stream of numbers on GPUs, in the canonical order of `engine.scans.host_scan`.

The prefix of a tile comes from a decoupled look-back (Merrill and Garland, 2016). A tile fills a third of a
compute unit's local memory, so few tiles are in flight. The latency of a tile therefore limits the speed.
All loads and stores are vectors. One work-item adds the totals of the tile's runs. Meanwhile others poll
what earlier tiles have published, each a tile of its own.

No tile is done before all earlier ones have a total. What counts is therefore the longest time from a ticket to
a total. Tickets are drawn late and tiles are fetched into the second-level cache to make it short.

Rows of local memory hold one run each. Their pitch is one vector more than their length. Neighbours that
read vectors of neighbouring rows then have no bank conflicts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
    DeviceCapabilities,
    For,
    If,
    IndexLike,
    Integer,
    IsSet,
    Kernel,
    Load,
    LookBehind,
    Picked,
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
    equal,
    index_max,
    index_min,
    names,
    register_dtype,
    scan_tile,
    to_int,
)
from flowcompute.ir.launches import by_tickets
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.scan.scan_anchor import (
    Numbers,
    ScanPoint,
    TileScan,
    scan_wide,
    vector_lanes,
    why_no_gpu_look_back,
)
from flowcompute.spec import INT32, INT64

BASE, DRAWN, J, K, Q, T = names("base drawn j k q t")
ENDED, HI, LO, P, Q0, Q1, WHOLE = names("ended hi lo p q0 q1 whole", narrow=True)
"""Integers of a tile: its number `t`, its records `lo` to `hi` that are in the batch, and its first number, `base`.

Of its runs, `q0` to `q1` are in the batch, and those before `ended` are complete. Loops run over runs `q`, records `j`,
columns `c` and numbers `p`."""

RUNS = scan_tile(1) // RUN
"""Runs of a tile; each is scanned by a work-item."""

LOADS = 4
"""Vectors that a work-item loads before it uses the first; more of them leave too few registers to other
work-groups.
"""

ADDED = 16
"""Runs whose totals are read before the first is added."""

BEHIND = 48
"""Tiles that a look-back inspects at once: about those that have published a total but no prefix yet."""


def takes_numbers(node: Node, capabilities: DeviceCapabilities) -> bool:
    """Check whether a scan along the stream is a look-back scan of numbers."""
    return capabilities.shuffles and node.spec.item_numbers == 1


def number_scan_bytes(node: Node) -> int:
    """Return the bytes of local memory of a work-group."""
    own, wide = register_dtype(node.spec.dtype), scan_wide(node)
    return (
        RUNS * (RUN + vector_lanes(own)) * own.itemsize
        + (RUNS + BEHIND) * wide.itemsize
        + INT32.itemsize
        + INT64.itemsize
    )


class NumberLookBackLowering(TileScan):
    """Lowering of a region around a scan of numbers along the stream for a GPU."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        super().__init__(graph, region)
        self.lanes = vector_lanes(self.dtype)
        self.read = region.reads[self.node.id][0]
        self.knobs = style.settled(NUMBER_SCAN.knobs)
        self.loads = self.knobs.unroll or LOADS
        # In the device's own buffers, vectors are aligned where the batch begins at a multiple of their size.
        self.aligned = not style.capabilities.host_memory
        self.far = self.aligned and style.capabilities.warp_groups

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts tiles."""
        scope = self._scope()
        scope.add(*self.sizes())
        sums = scope.let(self.nothing(self.wide), self.wide)
        last = scope.let(self.nothing(self.wide), self.wide)
        scope.add(
            *(self.fetch_ahead() if self.far else []),
            self._stage(),
            If(equal(LID, 0), self._put("nearest", BEHIND, INT32)),
            WorkGroupBarrier(),
        )
        scope.add(self._walk(), WorkGroupBarrier(), self._chain(sums, last))
        carry = scope.fresh(self.wide, 1)
        scope.add(LookBehind(carry, self.words, self.state, T, BEHIND, self.op), self._carry(carry, sums, last))
        # Others wait for a tile from its ticket on, so none is drawn before loading can begin.
        scope.add(*self._results(carry), Ticket(DRAWN, self.words))
        sizes: dict[str, Any] = {"work_group": RUNS, "lanes": self.lanes, "knobs": self.knobs}
        return self.kernel(name, self._arrays(), scope.statements, T, DRAWN, **sizes)

    def sizes(self) -> list[Stmt]:
        """Declare the integers of a tile, and whether it is `whole`: all of it is in the batch, and aligned."""
        whole = all_of(equal(HI - LO, self.records), not self.aligned or equal(PHASE % self.lanes, 0))
        return [*super().sizes(), SetInteger(WHOLE, whole)]

    def _arrays(self) -> list[Array]:
        sizes = {
            "stage": (self.dtype, RUNS * (RUN + self.lanes)),
            "totals": (self.wide, RUNS),
            "ahead": (self.wide, BEHIND),
            "nearest": (INT32, 1),
            "taken": (INT64, 1),
        }
        return [Array(name, dtype, 1, size, local=True) for name, (dtype, size) in sizes.items()]

    def _scope(self, lanes: int = 1) -> Scope:
        return Scope(self.names, lanes=lanes)

    def _put(self, array: str, value: IndexLike, dtype: np.dtype) -> tuple[Stmt, ...]:
        """Set the only element of an array to an integer."""
        scope = self._scope()
        scope.add(PutItem(array, 0, scope.let(Integer(value), dtype)))
        return tuple(scope.statements)

    # -- numbers of a tile --------------------------------------------------------------------------

    def _slot(self, scope: Scope, number: IndexLike) -> IndexLike:
        """Declare the index of a number of the tile in local memory."""
        return scope.narrow(number + number // RUN * self.lanes)

    def _point(self, scope: Scope, at: IndexLike) -> ScanPoint:
        """Return the point at these numbers of the batch; vectors are whole."""
        numbers = Numbers(at, aligned=self.aligned and scope.lanes > 1)
        return ScanPoint(self.graph, self.region, self.arguments, scope, numbers)

    def _turns(self, scope: Scope, turns: int) -> list[tuple[IndexLike, IndexLike, IndexLike]]:
        """Return for each vector of a work-item in a loop over `k` its index in the batch, its slot and its run."""
        together = RUNS * self.lanes
        number = scope.narrow(K + LID * self.lanes)
        slot, run = self._slot(scope, number), scope.narrow(number // RUN)
        here = scope.integer(BASE + number)
        return [
            (
                here + i * together,
                slot + i * (together + together // RUN * self.lanes),
                run + i * together // RUN,
            )
            for i in range(turns)
        ]

    def _each(self, whole: Scope, turns: int, some: Scope) -> Stmt:
        """Loop over the tile by `turns` vectors per work-item, or number by number where some are missing."""
        every = For(K, 0, self.records, RUNS * self.lanes * turns, tuple(whole.statements))
        place = SetInteger(P, K * RUNS + LID)
        guarded = If(all_of(P >= LO, P < HI), tuple(some.statements))
        partly = For(K, 0, self.records // RUNS, 1, (place, guarded), unroll=8)
        return If(IsSet(WHOLE), (every,), (partly,))

    def _stage(self) -> Stmt:
        """Load the tile to local memory."""
        whole, some = self._scope(self.lanes), self._scope()
        turns = self._turns(whole, self.loads)
        values = [self._point(whole.beside(), at).value(self.read) for at, _, _ in turns]
        whole.add(*(PutItem("stage", slot, value, True) for (_, slot, _), value in zip(turns, values, strict=True)))
        slot = self._slot(some, P)
        some.add(PutItem("stage", slot, self._point(some, BASE + P).value(self.read)))
        return self._each(whole, self.loads, some)

    # -- runs ---------------------------------------------------------------------------------------

    def _walk(self) -> Stmt:
        """Scan every run by one work-item, in place, and store its total in `totals`."""
        scope = self._scope()
        total = scope.let(self.nothing(self.dtype), self.dtype)
        begun = scope.inner()
        begun.add(Assign(total, Splat(self.narrowed(begun, begun.let(Load(self.state, 2), self.wide)))))
        scope.add(If(all_of(equal(T, 0), equal(LID, Q0)), tuple(begun.statements)))
        start, stop = (
            scope.narrow(index_max(to_int(LID) * RUN, LO)),
            scope.narrow(index_min(to_int(LID) * RUN + RUN, HI)),
        )
        whole, some = scope.inner(), scope.inner()
        self._scan_vectors(whole, total)
        slot = self._slot(some, J)
        self.take_in(some, total, slot, some.let(ArrayItem("stage", slot), self.dtype))
        partly = For(J, start, stop, 1, tuple(some.statements))
        scope.add(If(equal(stop - start, RUN), tuple(whole.statements), (partly,)))
        scope.add(PutItem("totals", LID, self.widened(scope, total)))
        return If(all_of(LID >= Q0, LID < Q1), tuple(scope.statements))

    def _scan_vectors(self, scope: Scope, total: Var) -> None:
        """Scan a whole run, vector by vector."""
        inner = scope.inner()
        slot = inner.narrow(to_int(LID) * (RUN + self.lanes) + J)
        vector = inner.let(ArrayItem("stage", slot, True), self.dtype, self.lanes)
        sums = [total]
        for lane in range(self.lanes):
            sums.append(self.combined(inner, sums[-1], inner.let(Picked((vector,), (lane,)), self.dtype)))
        results = sums[:-1] if self.exclusive else sums[1:]
        every = Picked(tuple(results), tuple(range(self.lanes)))
        inner.add(
            PutItem("stage", slot, inner.let(every, self.dtype, self.lanes), True), Assign(total, Splat(sums[-1]))
        )
        scope.add(For(J, 0, RUN, self.lanes, tuple(inner.statements), unroll=1))

    # -- what comes before ----------------------------------------------------------------------------

    def _chain(self, sums: Var, last: Var) -> Stmt:
        """Replace `totals` by the prefix of each run in its tile, and publish the total of its whole runs."""
        scope = self._scope()
        scope.add(If(equal(T, 0), (Assign(sums, Load(self.state, 1)),)))
        whole, some = scope.inner(), scope.inner()
        self._chain_runs(whole, sums, ADDED)
        self._chain_runs(some, sums, 1)
        every = For(Q, 0, RUNS, ADDED, tuple(whole.statements))
        partly = For(Q, Q0, ENDED, 1, tuple(some.statements))
        scope.add(If(equal(ENDED - Q0, RUNS), (every,), (partly,)))
        rest = scope.inner()
        rest.add(Assign(last, ArrayItem("totals", ENDED)), PutItem("totals", ENDED, sums))
        scope.add(If(ENDED < Q1, tuple(rest.statements)))
        scope.add(If(all_of(T > 0, T + 1 < BLOCKS), (Publish(self.words, T, sums, prefix=False),)))
        if before := self.before_all(self._scope(), 0):
            scope.add(If(equal(FIRST + T, 0), before))
        return If(equal(LID, 0), tuple(scope.statements))

    def _chain_runs(self, scope: Scope, sums: Var, together: int) -> None:
        """Add the totals of `together` runs, all read before the first is used."""
        runs = [scope.let(ArrayItem("totals", Q + i), self.wide) for i in range(together)]
        before = sums
        for i, own in enumerate(runs):
            scope.add(PutItem("totals", Q + i, before))
            before = self.combined(scope, before, own)
        scope.add(Assign(sums, Splat(before)))

    def _carry(self, carry: Var, sums: Var, last: Var) -> Stmt:
        """Publish the prefix of the next tile; after the last tile, store the state."""
        scope = self._scope()
        after = self.combined(scope, carry, sums)
        nothing = scope.let(self.nothing(self.wide), self.wide)
        ended = tuple(Store(self.state, part, var) for part, var in enumerate((after, nothing, nothing)))
        still = tuple(Store(self.state, part, var) for part, var in enumerate((carry, sums, last)))
        leave = If(equal(HI, self.records), ended, still)
        scope.add(If(T + 1 < BLOCKS, (Publish(self.words, T, after, prefix=True),), (leave,)))
        return If(equal(LID, 0), tuple(scope.statements))

    # -- results ----------------------------------------------------------------------------------------

    def _results(self, carry: Var) -> list[Stmt]:
        """Apply the epilogue to the tile's results, and store."""
        whole, some = self._scope(self.lanes), self._scope()
        for at, slot, run in self._turns(whole, self.loads):
            self._finish(whole.beside(), at, slot, run, carry)
        self._finish(some, BASE + P, self._slot(some, P), P // RUN, carry)
        return [self._each(whole, self.loads, some)]

    def _finish(self, scope: Scope, at: IndexLike, slot: IndexLike, run: IndexLike, carry: Var) -> None:
        lanes = scope.lanes
        value = self.widened(scope, scope.let(ArrayItem("stage", slot, lanes > 1), self.dtype))
        before = scope.let(ArrayItem("totals", run), self.wide, 1)
        for earlier in (before, carry):
            value = self.combined(scope, scope.let(Splat(earlier), self.wide), value)
        point = self._point(scope, at)
        scope.known[self.node.id] = self.narrowed(scope, value)
        point.store_all()


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_gpu_look_back(task)) is not None:
        return reason
    if task.anchor is not None and takes_numbers(task.anchor, task.style.capabilities):
        return None
    return task.refuse("its items have several numbers, or work-items do not exchange registers")


def _lower(task: LoweringTask) -> Kernel:
    return NumberLookBackLowering(task.graph, task.region, task.style).lower(task.name)


NUMBER_SCAN = Form(
    name="number scan",
    accepts=_why_not,
    lower=_lower,
    geometry=by_tickets,
    knobs=FormKnobs(gpu=(Knob("unroll", (2, 4, 8), LOADS),)),
)
"""Scans of a stream of numbers on GPUs."""
