"""Serial scans: along an axis of items, and recurrences along the stream.

Each work-item scans sequences of its own; on CPUs, as many at a time as a vector has lanes. All
intermediate values stay in registers, and only results are stored. Along items the order is that of
`engine.scans.host_scan`. A recurrence has only one order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from flowcompute.elements.math import add, exp, multiply
from flowcompute.elements.nn import SELECTIVE_SCAN
from flowcompute.elements.streams import LINEAR_RECURRENCE, KernelScan
from flowcompute.fuse import Access, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    FIRST,
    GID,
    GSIZE,
    LANE,
    RUN,
    WID,
    WSIZE,
    Apply,
    Assign,
    CallFunction,
    ConstantValue,
    Expr,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    MultiplyAdd,
    N,
    Name,
    SetInteger,
    Splat,
    Stmt,
    Store,
    Var,
    equal,
    first_carries,
    in_lane,
    index_min,
    names,
    register_dtype,
    scan_tile,
    storage,
)
from flowcompute.ir.launches import by_sequences
from flowcompute.lower.emit import Arguments, Scope, loaded
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import CPU_VECTOR, FormKnobs, KernelStyle, Knob
from flowcompute.lower.scan.scan_anchor import (
    REDUCTIONS,
    Numbers,
    ScanPoint,
    converted,
    identity_of,
    is_scan,
    operation_of,
    put_together,
    scan_initial,
    scan_wide,
    why_no_serial_scan,
)
from flowcompute.spec import FLOAT64

SEQUENCE, STEP, COUNT = names("u j count")
"""First sequence of a vector, number in a sequence, and count of sequences."""
GROUP = 64
"""Work-items in a work-group of a GPU; a small number spreads few sequences over many compute units."""


Next = Callable[[Scope, ScanPoint, list[Var]], list[Var]]
"""Function of the carry and the numbers at a point that returns what is carried after them."""


class RecurrenceState:
    """State of a recurrence: its last results."""

    def __init__(self, scope: Scope, begun: Sequence[Expr], dtypes: list[np.dtype], next_: Next) -> None:
        self.last = [scope.let(expr, dtype) for expr, dtype in zip(begun, dtypes, strict=True)]
        self.next = next_

    def between(self, scope: Scope) -> None:
        """Do nothing between tiles."""

    def step(self, scope: Scope, point: ScanPoint) -> list[Var]:
        """Apply the step to a number of each operand, and return the results."""
        results = self.next(scope, point, self.last)
        scope.add(*(Assign(old, Splat(new)) for old, new in zip(self.last, results, strict=True)))
        return [scope.let(Splat(one), one.dtype) for one in self.last]


class SerialScanLowering:
    """Lowering of a region around a serial scan."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        assert region.anchor is not None
        self.graph = graph
        self.region = region
        self.node = graph.nodes[region.anchor]
        self.cpu = style.capabilities.code_shape == "cpu"
        self.knobs = style.settled(SERIAL_SCAN.knobs)
        self.lanes = self.knobs.vector_width or 1
        self.arguments = Arguments()
        self.names = itertools.count()
        shape, axis = self.node.spec.shape, self.node.attrs["axis"]
        self.along_stream = axis is None
        self.length = 0 if axis is None else shape[axis]
        self.inner = math.prod(shape if axis is None else shape[axis + 1 :])
        # Sequences of a record, or of the stream.
        self.units = self.inner if axis is None else math.prod(shape[:axis]) * self.inner
        self.total: IndexLike = self.units if axis is None else N * self.units
        self.dtype = register_dtype(self.node.spec.dtype)

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts sequences."""
        whole = self._sequences(None)
        body: list[Stmt] = [SetInteger(COUNT, self.total)]
        if not self.cpu:
            body.append(For(SEQUENCE, WID, COUNT, WSIZE, tuple(whole)))
        elif self.along_stream and self.units % self.lanes == 0:
            body.append(For(SEQUENCE, GID * self.lanes, COUNT, GSIZE * self.lanes, tuple(whole)))
        else:
            left = Name("left")
            some = self._sequences(left)
            each = If(SEQUENCE + self.lanes <= COUNT, tuple(whole), (SetInteger(left, COUNT - SEQUENCE), *some))
            body.append(For(SEQUENCE, GID * self.lanes, COUNT, GSIZE * self.lanes, (each,)))
        return Kernel(
            name,
            self.region.name,
            self.arguments.ordered(),
            tuple(body),
            work="walk",
            work_group=self.knobs.work_group or 1,
            units=self.units,
            lanes=self.lanes,
            knobs=self.knobs,
            notes={"along": "stream" if self.along_stream else "items"},
        )

    # -- places -----------------------------------------------------------------------------------

    def _sequences(self, count: IndexLike | None) -> list[Stmt]:
        """Scan `lanes` sequences from number `u` on, of which `count` exist."""
        scope = Scope(self.names, lanes=self.lanes)
        op = self.node.op
        assert op is not None
        if op.name in REDUCTIONS or self.node.attrs.get("associative", False):
            self._tiled(scope, count)
        elif op is SELECTIVE_SCAN:
            self._selective(scope, count)
        else:
            self._recurrence(scope, count)
        return scope.statements

    def _numbers(self, step: IndexLike, count: IndexLike | None) -> Numbers:
        """Return the indices of number `step` of each sequence."""
        length, inner = self.length, self.inner
        whole = self.lanes > 1 and count is None and inner % self.lanes == 0
        if self.along_stream:
            return Numbers(step * inner + SEQUENCE, 1, None, count, whole=whole)
        if inner == 1:
            return Numbers(SEQUENCE * length + step, length, None, count)
        own = SEQUENCE + LANE
        of_lane = (own // inner * length + step) * inner + own % inner
        at = (SEQUENCE // inner * length + step) * inner + SEQUENCE % inner
        # Lanes are neighbours in memory where no vector crosses the end of the inner axes.
        return Numbers(at, 1, None if inner % self.lanes == 0 else of_lane, count, whole=whole)

    def _point(self, scope: Scope, step: IndexLike, count: IndexLike | None) -> ScanPoint:
        return ScanPoint(self.graph, self.region, self.arguments, scope, self._numbers(step, count))

    def _finish(self, point: ScanPoint, *results: Var) -> None:
        """Apply the epilogue to the scan's results, and store."""
        self.make_known(point.scope, results)
        point.store_all()

    def make_known(self, scope: Scope, results: Sequence[Var]) -> None:
        """Make the results of all scans of the region known in a scope."""
        for i in self.region.nodes:
            node = self.graph.nodes[i]
            if is_scan(node):
                own = results[node.element.step.result if isinstance(node.element, KernelScan) else 0]
                scope.known[i] = converted(scope, own, register_dtype(node.spec.dtype))

    # -- scans by an operation ----------------------------------------------------------------------

    def _tiled(self, scope: Scope, count: IndexLike | None) -> None:
        """Scan the runs one after the other, and likewise the tiles.

        Levels that a short axis does not have are left out.
        """
        op, wide, tile = operation_of(self.node), scan_wide(self.node), scan_tile(1)
        exclusive = self.node.attrs.get("exclusive", False)
        levels = 1 + (self.length > RUN) + (self.length > tile)
        nothing = identity_of(self.node, wide)
        before = scope.let(ConstantValue(scan_initial(self.node, wide)), wide) if exclusive else None

        def combined(inner: Scope, left: Var, right: Var) -> Var:
            return put_together(inner, op, left, right, count)

        def level(outer: Scope, depth: int, start: IndexLike, stop: IndexLike, above: list[Var]) -> Var:
            """Scan numbers `start` to `stop` and return their total; `above` holds the prefixes, the nearest last."""
            if depth == 0:
                total = outer.let(ConstantValue(identity_of(self.node, self.dtype)), self.dtype)
                inner = outer.inner()
                point = self._point(inner, STEP, count)
                number = point.value(self.region.reads[self.node.id][0])
                inner.add(Assign(total, Splat(combined(inner, total, number))))
                result = converted(inner, total, wide)
                for other in reversed(above):
                    result = combined(inner, other, result)
                if before is None:
                    self._finish(point, result)
                else:
                    self._finish(point, inner.let(Splat(before), wide))
                    inner.add(Assign(before, Splat(result)))
                outer.add(For(STEP, start, stop, 1, tuple(inner.statements)))
                return converted(outer, total, wide)
            total = outer.let(ConstantValue(nothing), wide)
            inner = outer.inner()
            size, index = (RUN, Name("r0")) if depth == 1 else (tile, Name("t0"))
            own = level(inner, depth - 1, index, index_min(index + size, stop), [*above, total])
            inner.add(Assign(total, Splat(combined(inner, total, own))))
            outer.add(For(index, start, stop, size, tuple(inner.statements)))
            return total

        level(scope, levels - 1, 0, self.length, [])

    # -- recurrences ----------------------------------------------------------------------------------

    def _recurrence(self, scope: Scope, count: IndexLike | None) -> None:
        """Emit a loop that updates the carried values with each number; along the stream they are the state."""
        dtypes, next_ = self.recurrence()
        parts = enumerate(dtypes if self.along_stream else ())
        states = [self.arguments.get("state", dtype, self.node.id, part) for part, dtype in parts]
        begun = [Load(state, SEQUENCE, 1, count) for state in states] or self.begun()
        carried = RecurrenceState(scope, begun, dtypes, next_)
        inner = scope.inner()
        point = self._point(inner, STEP, count)
        self._finish(point, *carried.step(inner, point))
        scope.add(For(STEP, 0, N if self.along_stream else self.length, 1, tuple(inner.statements)))
        scope.add(*(Store(state, SEQUENCE, one, 1, count) for state, one in zip(states, carried.last, strict=False)))

    def recurrence(self) -> tuple[list[np.dtype], Next]:
        """Return the dtypes of what a recurrence carries, and what computes the next of it."""
        if self.node.op is LINEAR_RECURRENCE:
            return [self.dtype], self._linear
        if isinstance(self.node.element, KernelScan):
            return [begun.dtype for begun in first_carries(self.node)], self._stepped
        return [FLOAT64], self._decayed

    def begun(self) -> Sequence[Expr]:
        """Return the initial carry of a sequence in an item."""
        element = self.node.element
        inits = [init.item() for init in element.inits] if isinstance(element, KernelScan) else [0.0]
        return [ConstantValue(init) for init in inits]

    def _selective(self, scope: Scope, count: IndexLike | None) -> None:
        """Emit a selective scan.

        The states of a channel stay in registers. At each time step their sum, weighted by `c`, is stored.
        """
        u, delta, *others = self.region.reads[self.node.id]
        a, b, c = (other for other in others if isinstance(other, Access))
        states = range(self.graph.nodes[a.value].spec.shape[1])
        factors = [self._beside(scope, a, None, n, count) for n in states]
        held = [scope.let(ConstantValue(0.0), self.dtype) for _ in states]
        inner = scope.inner()
        point = self._point(inner, STEP, count)
        x, step = point.value(u), point.value(delta)
        pushed = self._product(inner, step, x)
        total = inner.let(ConstantValue(0.0), self.dtype)
        for n, (factor, state) in enumerate(zip(factors, held, strict=True)):
            power = self._product(inner, step, factor)
            decay = inner.let(Apply(exp.op, (power,), self.dtype), self.dtype)
            gain = self._product(inner, pushed, self._beside(inner, b, STEP, n, count))
            inner.add(Assign(state, Splat(inner.let(MultiplyAdd(decay, state, gain), self.dtype))))
            seen = self._beside(inner, c, STEP, n, count)
            inner.add(Assign(total, Splat(inner.let(MultiplyAdd(seen, state, total), self.dtype))))
        self._finish(point, inner.let(Splat(total), self.dtype))
        scope.add(For(STEP, 0, self.length, 1, tuple(inner.statements)))

    def _product(self, scope: Scope, left: Var, right: Var) -> Var:
        return scope.let(Apply(multiply.op, (left, right), self.dtype), self.dtype)

    def _beside(self, scope: Scope, access: Access, row: Name | None, column: int, count: IndexLike | None) -> Var:
        """Load a number of a matrix that is resident or belongs to each lane's record.

        Without a `row` each lane reads that of its own channel.
        """
        lies = storage(self.graph, access.value, self.region.entered)
        argument = self.arguments.get("input", self.graph.nodes[access.value].spec.dtype, lies.base)
        down, across = lies.strides
        if self.inner % self.lanes == 0:
            # All lanes are channels of one record.
            channel = SEQUENCE % self.inner if row is None else row
            index = lies.offset + channel * down + column * across + SEQUENCE // self.inner * lies.record
            own = row is None
            return loaded(scope, Load(argument, index, down if own else 0, count if own else None))
        sequence = SEQUENCE + LANE
        channel = sequence % self.inner if row is None else row
        each = lies.offset + channel * down + column * across + sequence // self.inner * lies.record
        return loaded(scope, Load(argument, in_lane(each, 0), 1, count, each))

    def _decayed(self, scope: Scope, point: ScanPoint, last: list[Var]) -> list[Var]:
        """Compute `(1 - alpha) * last + alpha * x`; the result of the very first record is the record itself."""
        alpha = float(self.node.attrs["alpha"])
        (read,) = self.region.reads[self.node.id]
        number = converted(scope, point.value(read), FLOAT64)
        keep, take = scope.let(ConstantValue(1.0 - alpha), FLOAT64), scope.let(ConstantValue(alpha), FLOAT64)
        old = scope.let(Apply(multiply.op, (keep, *last), FLOAT64), FLOAT64)
        new = scope.let(Apply(multiply.op, (take, number), FLOAT64), FLOAT64)
        result = scope.let(Apply(add.op, (old, new), FLOAT64), FLOAT64)
        scope.add(If(equal(FIRST + STEP, 0), (Assign(result, Splat(number)),)))
        return [result]

    def _stepped(self, scope: Scope, point: ScanPoint, last: list[Var]) -> list[Var]:
        """Call a user's function on the carry and the numbers."""
        assert isinstance(self.node.element, KernelScan)
        numbers = [point.value(read) for read in self.region.reads[self.node.id]]
        results = [scope.fresh(one.dtype, scope.lanes) for one in last]
        scope.add(CallFunction(tuple(results), self.node.element.step, (*last, *numbers), point.count))
        return results

    def _linear(self, scope: Scope, point: ScanPoint, last: list[Var]) -> list[Var]:
        """Compute `a * last + b`, rounded once."""
        a, b = (point.value(read) for read in self.region.reads[self.node.id])
        return [scope.let(MultiplyAdd(a, last[0], b), self.dtype)]


def _lower(task: LoweringTask) -> Kernel:
    return SerialScanLowering(task.graph, task.region, task.style).lower(task.name)


SERIAL_SCAN = Form(
    name="walk",
    accepts=why_no_serial_scan,
    lower=_lower,
    geometry=by_sequences,
    knobs=FormKnobs(cpu=(CPU_VECTOR,), gpu=(Knob("work_group", (32, 64, 128, 256), GROUP),)),
)
"""Scans that are walked number by number."""
