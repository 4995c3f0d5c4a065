"""Look-back scans of a stream of numbers on GPUs, in the canonical order of `engine.scans.host_scan`.

The prefix of a tile comes from a decoupled look-back (Merrill and Garland, 2016). A tile fills a third of a
compute unit's local memory, so few tiles are in flight. The latency of a tile therefore limits the speed.
All loads and stores are vectors. One work-item adds the totals of the tile's runs. Meanwhile others poll
what earlier tiles have published, each a tile of its own.

Rows of local memory hold one run each. Their pitch is one vector more than their length. Neighbours that
read vectors of neighbouring rows then have no bank conflicts.
"""

from __future__ import annotations

import numpy as np

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph, Node
from flowcompute.ir import (
    RUN,
    Array,
    ArrayItem,
    Assign,
    DeviceCapabilities,
    For,
    If,
    Integer,
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
    While,
    WorkGroupBarrier,
    register_dtype,
    scan_tile,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.geometry import by_tickets
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
from flowcompute.lower.scan.scan_anchor import Numbers, ScanPoint, TileScan, scan_wide, why_no_gpu_look_back
from flowcompute.spec import INT32, INT64

RUNS = scan_tile(1) // RUN
"""Runs of a tile; each is scanned by a work-item."""

VECTOR_BYTES = 16
"""Bytes of a vector, which a work-item loads, keeps in local memory and stores at once."""

LOADS = 4
"""Vectors that a work-item loads before it uses the first; more of them leave too few registers to other
work-groups.
"""

ADDED = 16
"""Runs whose totals are read before the first is added."""

BEHIND = 64
"""Tiles that a look-back inspects at once: about those that have published a total but no prefix yet."""


def takes_numbers(node: Node, capabilities: DeviceCapabilities) -> bool:
    """Check whether a scan along the stream is a look-back scan of numbers."""
    return capabilities.shuffles and node.spec.item_numbers == 1


def number_scan_bytes(node: Node) -> int:
    """Return the bytes of local memory of a work-group."""
    own, wide = register_dtype(node.spec.dtype), scan_wide(node)
    return RUNS * (RUN + _lanes(own)) * own.itemsize + (RUNS + BEHIND) * wide.itemsize + INT32.itemsize + INT64.itemsize


def _lanes(dtype: np.dtype) -> int:
    return VECTOR_BYTES // max(dtype.itemsize, 4)


class NumberLookBackLowering(TileScan):
    """Lowering of a region around a scan of numbers along the stream for a GPU."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        super().__init__(graph, region)
        self.lanes = _lanes(self.dtype)
        self.read = region.reads[self.node.id][0]
        self.knobs = style.settled(NUMBER_SCAN.knobs)
        self.loads = self.knobs.unroll or LOADS
        # In the device's own buffers, vectors are aligned where the batch begins at a multiple of their size.
        self.aligned = not style.capabilities.host_memory
        self.state = self.arguments.get("state", self.wide, self.node.id)
        self.words = self.arguments.get("words", self.wide, self.node.id)

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts tiles."""
        scope = self._scope()
        scope.add(*self._sizes())
        sums = scope.let(self.nothing(self.wide), self.wide)
        last = scope.let(self.nothing(self.wide), self.wide)
        scope.add(self._stage(), If("lid == 0", self._put("nearest", str(BEHIND), INT32)), WorkGroupBarrier())
        scope.add(self._walk(), WorkGroupBarrier(), self._chain(sums, last))
        carry = scope.fresh(self.wide, 1)
        scope.add(LookBehind(carry, self.words, self.state, "t", BEHIND, self.op), self._carry(carry, sums, last))
        # Drawn late: whoever has a ticket keeps all later tiles waiting.
        scope.add(Ticket("drawn", self.words), *self._results(carry))
        scope.add(self._share("drawn"), WorkGroupBarrier(), SetInteger("t", "taken[0]", new=False))
        first = [
            Ticket("drawn_first", self.words),
            self._share("drawn_first"),
            WorkGroupBarrier(),
            SetInteger("t", "taken[0]"),
        ]
        return Kernel(
            name,
            self.region.name,
            self.arguments.ordered(),
            (*self._arrays(), *first, While("t < blocks", tuple(scope.statements))),
            work="scan",
            work_group=RUNS,
            block=self.records,
            columns=1,
            lanes=self.lanes,
            knobs=self.knobs,
        )

    def _sizes(self) -> list[Stmt]:
        """Declare numbers `lo` to `hi` of tile `t`, and its runs `q0` to `q1`; those before `ended` end in it."""
        whole = f"hi - lo == {self.records}" + (f" && phase % {self.lanes} == 0" if self.aligned else "")
        return [
            SetInteger("lo", "t == 0 ? phase : 0", narrow=True),
            SetInteger("hi", f"min((long){self.records}, phase + n - t * {self.records})", narrow=True),
            SetInteger("base", f"t * {self.records} - phase"),
            SetInteger("q0", f"lo / {RUN}", narrow=True),
            SetInteger("q1", f"(hi + {RUN - 1}) / {RUN}", narrow=True),
            SetInteger("ended", f"hi == {self.records} ? q1 : hi / {RUN}", narrow=True),
            SetInteger("whole", whole, narrow=True),
        ]

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

    def _put(self, array: str, text: str, dtype: np.dtype) -> tuple[Stmt, ...]:
        """Set the only element of an array to an integer."""
        scope = self._scope()
        scope.add(PutItem(array, "0", scope.let(Integer(text), dtype)))
        return tuple(scope.statements)

    def _share(self, drawn: str) -> Stmt:
        """Broadcast the next ticket to the work-group."""
        return If("lid == 0", self._put("taken", drawn, INT64))

    # -- numbers of a tile --------------------------------------------------------------------------

    def _slot(self, scope: Scope, number: str) -> str:
        """Declare the index of a number of the tile in local memory."""
        return scope.narrow(f"{number} + ({number}) / {RUN} * {self.lanes}")

    def _point(self, scope: Scope, at: str) -> ScanPoint:
        """Return the point at these numbers of the batch; vectors are whole."""
        numbers = Numbers(at, aligned=self.aligned and scope.lanes > 1)
        return ScanPoint(self.graph, self.region, self.arguments, scope, numbers)

    def _turns(self, scope: Scope, turns: int) -> list[tuple[str, str, str]]:
        """Return for each vector of a work-item in a loop over `k` its index in the batch, its slot and its run."""
        together = RUNS * self.lanes
        number = scope.narrow(f"k + lid * {self.lanes}")
        slot, run = self._slot(scope, number), scope.narrow(f"{number} / {RUN}")
        here = scope.integer(f"base + {number}")
        return [
            (
                f"{here} + {i * together}",
                f"{slot} + {i * (together + together // RUN * self.lanes)}",
                f"{run} + {i * together // RUN}",
            )
            for i in range(turns)
        ]

    def _each(self, whole: Scope, turns: int, some: Scope) -> Stmt:
        """Loop over the tile by `turns` vectors per work-item, or number by number where some are missing."""
        every = For("k", "0", str(self.records), str(RUNS * self.lanes * turns), tuple(whole.statements))
        place = SetInteger("p", f"k * {RUNS} + lid", narrow=True)
        guarded = If("p >= lo && p < hi", tuple(some.statements))
        partly = For("k", "0", str(self.records // RUNS), "1", (place, guarded), unroll=8)
        return If("whole", (every,), (partly,))

    def _stage(self) -> Stmt:
        """Load the tile to local memory."""
        whole, some = self._scope(self.lanes), self._scope()
        turns = self._turns(whole, self.loads)
        values = [self._point(whole.beside(), at).value(self.read) for at, _, _ in turns]
        whole.add(*(PutItem("stage", slot, value, True) for (_, slot, _), value in zip(turns, values, strict=True)))
        slot = self._slot(some, "p")
        some.add(PutItem("stage", slot, self._point(some, "base + p").value(self.read)))
        return self._each(whole, self.loads, some)

    # -- runs ---------------------------------------------------------------------------------------

    def _walk(self) -> Stmt:
        """Scan every run by one work-item, in place, and store its total in `totals`."""
        scope = self._scope()
        total = scope.let(self.nothing(self.dtype), self.dtype)
        begun = scope.inner()
        begun.add(Assign(total, Splat(self.narrow(begun, begun.let(Load(self.state, "2"), self.wide)))))
        scope.add(If("t == 0 && lid == q0", tuple(begun.statements)))
        start, stop = scope.narrow(f"max((int)lid * {RUN}, lo)"), scope.narrow(f"min((int)lid * {RUN} + {RUN}, hi)")
        whole, some = scope.inner(), scope.inner()
        self._scan_vectors(whole, total)
        slot = self._slot(some, "j")
        self.take_in(some, total, slot, some.let(ArrayItem("stage", slot), self.dtype))
        partly = For("j", start, stop, "1", tuple(some.statements))
        scope.add(If(f"{stop} - {start} == {RUN}", tuple(whole.statements), (partly,)))
        scope.add(PutItem("totals", "lid", self.widened(scope, total)))
        return If("lid >= q0 && lid < q1", tuple(scope.statements))

    def _scan_vectors(self, scope: Scope, total: Var) -> None:
        """Scan a whole run, vector by vector."""
        inner = scope.inner()
        slot = inner.narrow(f"(int)lid * {RUN + self.lanes} + j")
        vector = inner.let(ArrayItem("stage", slot, True), self.dtype, self.lanes)
        sums = [total]
        for lane in range(self.lanes):
            sums.append(self.combined(inner, sums[-1], inner.let(Picked((vector,), (lane,)), self.dtype)))
        results = sums[:-1] if self.exclusive else sums[1:]
        every = Picked(tuple(results), tuple(range(self.lanes)))
        inner.add(
            PutItem("stage", slot, inner.let(every, self.dtype, self.lanes), True), Assign(total, Splat(sums[-1]))
        )
        scope.add(For("j", "0", str(RUN), str(self.lanes), tuple(inner.statements), unroll=1))

    # -- what comes before ----------------------------------------------------------------------------

    def _chain(self, sums: Var, last: Var) -> Stmt:
        """Replace `totals` by the prefix of each run in its tile, and publish the total of its whole runs."""
        scope = self._scope()
        scope.add(If("t == 0", (Assign(sums, Load(self.state, "1")),)))
        whole, some = scope.inner(), scope.inner()
        self._chain_runs(whole, sums, ADDED)
        self._chain_runs(some, sums, 1)
        every = For("q", "0", str(RUNS), str(ADDED), tuple(whole.statements))
        partly = For("q", "q0", "ended", "1", tuple(some.statements))
        scope.add(If(f"ended - q0 == {RUNS}", (every,), (partly,)))
        rest = scope.inner()
        rest.add(Assign(last, ArrayItem("totals", "ended")), PutItem("totals", "ended", sums))
        scope.add(If("ended < q1", tuple(rest.statements)))
        scope.add(If("t > 0 && t + 1 < blocks", (Publish(self.words, "t", sums, prefix=False),)))
        if before := self.before_all(self._scope(), "0"):
            scope.add(If("first + t == 0", before))
        return If("lid == 0", tuple(scope.statements))

    def _chain_runs(self, scope: Scope, sums: Var, together: int) -> None:
        """Add the totals of `together` runs, all read before the first is used."""
        runs = [scope.let(ArrayItem("totals", f"q + {i}"), self.wide) for i in range(together)]
        before = sums
        for i, own in enumerate(runs):
            scope.add(PutItem("totals", f"q + {i}", before))
            before = self.combined(scope, before, own)
        scope.add(Assign(sums, Splat(before)))

    def _carry(self, carry: Var, sums: Var, last: Var) -> Stmt:
        """Publish the prefix of the next tile; after the last tile, store the state."""
        scope = self._scope()
        after = self.combined(scope, carry, sums)
        nothing = scope.let(self.nothing(self.wide), self.wide)
        ended = tuple(Store(self.state, str(part), var) for part, var in enumerate((after, nothing, nothing)))
        still = tuple(Store(self.state, str(part), var) for part, var in enumerate((carry, sums, last)))
        leave = If(f"hi == {self.records}", ended, still)
        scope.add(If("t + 1 < blocks", (Publish(self.words, "t", after, prefix=True),), (leave,)))
        return If("lid == 0", tuple(scope.statements))

    # -- results ----------------------------------------------------------------------------------------

    def _results(self, carry: Var) -> list[Stmt]:
        """Apply the epilogue to the tile's results, and store."""
        whole, some = self._scope(self.lanes), self._scope()
        for at, slot, run in self._turns(whole, self.loads):
            self._finish(whole.beside(), at, slot, run, carry)
        self._finish(some, "base + p", self._slot(some, "p"), f"p / {RUN}", carry)
        return [self._each(whole, self.loads, some)]

    def _finish(self, scope: Scope, at: str, slot: str, run: str, carry: Var) -> None:
        lanes = scope.lanes
        value = self.widened(scope, scope.let(ArrayItem("stage", slot, lanes > 1), self.dtype))
        before = scope.let(ArrayItem("totals", run), self.wide, 1)
        for earlier in (before, carry):
            value = self.combined(scope, scope.let(Splat(earlier), self.wide), value)
        point = self._point(scope, at)
        scope.known[self.node.id] = self.narrow(scope, value)
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
