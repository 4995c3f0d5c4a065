"""Common parts of scan kernels: indices of a region around a scan, and the sizes of the canonical order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements import Kind
from flowcompute.elements.functions import UserOp
from flowcompute.elements.streams import KernelScan
from flowcompute.fuse import Access, Reason, Region
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import (
    BLOCKS,
    BUSY,
    FIRST,
    LANE,
    LID,
    PHASE,
    RUN,
    RUN_BYTES,
    ArrayItem,
    ArrayNumber,
    Assign,
    CallFunction,
    Combine,
    ConditionLike,
    ConstantValue,
    Convert,
    Expr,
    If,
    IndexLike,
    Integer,
    Kernel,
    Load,
    N,
    Name,
    PrefetchRun,
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
    all_of,
    choose,
    equal,
    identity,
    index_min,
    is_dense,
    merge_dtype,
    names,
    register_dtype,
    scan_tile,
    storage,
)
from flowcompute.lower.anchor_point import Axes
from flowcompute.lower.emit import Arguments, Point, Scope, loaded, loads_of
from flowcompute.lower.form import LoweringTask
from flowcompute.spec import INT64, is_float

REDUCTIONS = {"cumulative_sum": "sum", "cumulative_prod": "prod", "cumulative_max": "max", "cumulative_min": "min"}
"""Scans by an associative operation, and the reduction whose step each of them uses."""


VECTOR_BYTES = 16
"""Bytes of a vector, which a work-item loads, keeps in local memory and stores at once."""

AHEAD = 32
"""Distance in tiles to the one that is fetched into the second-level cache, where the device can do that."""


@dataclass(frozen=True)
class Numbers:
    """Indices of a batch's numbers, counted through records and items: one for each lane.

    Attributes:
        at: index of the first lane.
        stride: distance from one lane to the next, where it is the same for all.
        each: otherwise the index of each lane, with `LANE` in it.
        count: number of valid lanes, where that may be fewer than all.
        aligned: whether the index of the first lane is a multiple of the lanes, and buffers begin at such a place.
        whole: whether the index of the first lane is a multiple of the lanes, which all are valid.
    """

    at: IndexLike
    stride: int = 1
    each: IndexLike | None = None
    count: IndexLike | None = None
    aligned: bool = False
    whole: bool = False

    @property
    def of_lane(self) -> IndexLike:
        """Index of each lane, as an expression with `LANE` in it."""
        return self.at + LANE * self.stride if self.each is None else self.each


class ScanPoint(Point):
    """Point in the loops of a scan kernel at which it processes these numbers."""

    def __init__(self, graph: Graph, region: Region, arguments: Arguments, scope: Scope, numbers: Numbers) -> None:
        super().__init__(graph, region, arguments, scope)
        self.numbers = numbers
        self.count = numbers.count

    def load(self, access: Access) -> Var:
        """Load these numbers of a value, with the value's strides."""
        spec, numbers = self.graph.nodes[access.value].spec, self.numbers
        lies = storage(self.graph, access.value, self.region.entered)
        argument = self.arguments.input(self.graph, self.region, lies.base)
        strides = [0] * len(self.region.domain)
        for axis, size, stride in zip(access.layout, spec.shape, lies.strides, strict=True):
            if axis is not None and size != 1:
                strides[axis] = stride
        # No index is divided by the size of the first axis, so any stands for that of the stream.
        axes = Axes.of((2, *self.region.domain), (lies.record, *strides))
        # A vector that crosses no end of the last axis is one run of it, or one number that is broadcast.
        is_run = numbers.whole and axes.sizes[-1] % self.scope.lanes == 0
        if (axes.single or is_run) and (numbers.each is None or not axes.stride):
            index = axes.offset(numbers.at) + lies.offset
            stride = numbers.stride * axes.stride
            aligned = numbers.aligned and axes.single and stride == 1 and lies.offset % self.scope.lanes == 0
            return loaded(self.scope, Load(argument, index, stride, self.count if stride else None, aligned=aligned))
        each = axes.offset(numbers.of_lane) + lies.offset
        return loaded(self.scope, Load(argument, each, 1, self.count, each))

    def position(self, node: Node) -> tuple[IndexLike, int, IndexLike | None]:
        """Return the same indices, counted from the first record of the stream."""
        before, numbers = FIRST * node.spec.item_numbers, self.numbers
        return before + numbers.at, numbers.stride, None if numbers.each is None else before + numbers.each

    def store_all(self) -> None:
        """Store the region's outputs at these numbers."""
        numbers = self.numbers
        for output in self.region.outputs:
            self.store(output, numbers.at, numbers.stride, numbers.count, numbers.each, aligned=numbers.aligned)


class TileScan:
    """Common parts of lowerings of a scan by an associative operation along the stream.

    Attributes:
        columns: numbers in an item; each is scanned by itself.
        records: records in a tile.
        runs: runs of a tile.
        dtype: dtype of the scanned numbers.
        wide: dtype in which results of runs and tiles are combined.
        exclusive: whether each result leaves out its own number, and inside a run combines only earlier
            numbers.
        aligned: whether buffers begin at a multiple of any vector.
    """

    aligned = False

    narrow = True
    """Whether records and runs of a tile are integers of 32 bits."""

    def __init__(self, graph: Graph, region: Region) -> None:
        assert region.anchor is not None
        self.graph = graph
        self.region = region
        self.node = graph.nodes[region.anchor]
        assert self.node.op is not None
        self.op = operation_of(self.node)
        self.columns = self.node.spec.item_numbers
        self.records = scan_tile(self.columns)
        self.dtype = register_dtype(self.node.spec.dtype)
        self.wide = scan_wide(self.node)
        self.exclusive = bool(self.node.attrs.get("exclusive", False))
        self.arguments = Arguments()
        self.names = itertools.count()
        self.state = self.arguments.get("state", self.wide, self.node.id)
        self.words = self.arguments.get("words", self.wide, self.node.id)

    def sizes(self) -> list[Stmt]:
        """Declare the records `lo` to `hi` of tile `t` that are in the batch, and the runs that they belong to.

        `base` is the index of the tile's first number in the batch. Runs `q0` to `q1` are in the batch, and those
        before `ended` are complete.
        """
        (t, base), (lo, hi, q0, q1, ended) = names("t base"), names("lo hi q0 q1 ended", narrow=self.narrow)
        return [
            SetInteger(lo, choose(equal(t, 0), PHASE, 0)),
            SetInteger(hi, index_min(self.records, PHASE + N - t * self.records)),
            SetInteger(base, (t * self.records - PHASE) * self.columns),
            SetInteger(q0, lo // RUN),
            SetInteger(q1, (hi + (RUN - 1)) // RUN),
            SetInteger(ended, choose(equal(hi, self.records), q1, hi // RUN)),
        ]

    def begin(self, column: Name) -> Stmt:
        """Load what the previous batch left of an open run and its tile; later tiles begin with the identity."""
        old, new = Scope(self.names, lanes=1), Scope(self.names, lanes=1)
        left = old.let(Load(self.state, 2 * self.columns + column), self.wide)
        old.add(PutItem("last", column, self.narrowed(old, left)))
        old.add(PutItem("sums", column, old.let(Load(self.state, self.columns + column), self.wide)))
        new.add(PutItem("last", column, new.let(self.nothing(self.dtype), self.dtype)))
        new.add(PutItem("sums", column, new.let(self.nothing(self.wide), self.wide)))
        return If(equal(Name("t"), 0), tuple(old.statements), tuple(new.statements))

    def pass_on(self, scope: Scope, column: Name) -> None:
        """Publish the prefix of the next tile; after the last tile, store the state after the batch.

        The state has three numbers a column: the carries between tiles, between runs, and inside the run.
        """
        d, t = self.columns, Name("t")
        hi, ended, q1 = names("hi ended q1", narrow=self.narrow)
        carry = scope.let(ArrayItem("carries", column), self.wide)
        total = scope.let(ArrayItem("sums", column), self.wide)
        after = self.combined(scope, carry, total)
        publish = Publish(self.words, t * d + column, after, prefix=True)
        leave = scope.inner()
        nothing = leave.let(self.nothing(self.wide), self.wide)
        open_run = leave.inner()
        last = self.widened(open_run, open_run.let(ArrayItem("last", column), self.dtype))
        open_run.add(Store(self.state, 2 * d + column, last))
        whole = tuple(Store(self.state, part * d + column, var) for part, var in enumerate((after, nothing, nothing)))
        still = (Store(self.state, column, carry), Store(self.state, d + column, total))
        run = If(ended < q1, tuple(open_run.statements), (whole[2],))
        leave.add(If(equal(hi, self.records), whole, (*still, run)))
        scope.add(If(t + 1 < BLOCKS, (publish,), tuple(leave.statements)))

    def kernel(
        self,
        name: str,
        arrays: Sequence[Stmt],
        body: Sequence[Stmt],
        ticket: Name,
        drawn: Name | None,
        tickets: IndexLike = BLOCKS,
        **sizes: Any,
    ) -> Kernel:
        """Return a kernel whose work-groups take tickets until none is left.

        Args:
            name: of the kernel.
            arrays: statements before the loop, among them the local array `taken`.
            body: what is done for a ticket. It draws the next one, `drawn`, as late as it can: whoever has a
                ticket keeps all later tiles waiting.
            ticket: name of the ticket that is worked on.
            drawn: name of the ticket that is drawn meanwhile; None where `body` ends with the next one as `ticket`.
            tickets: how many there are.
            sizes: further attributes of the kernel.
        """
        first = Name("drawn_first")
        again = shared_ticket(self.names, drawn, ticket) if drawn is not None else []
        begin = [Ticket(first, self.words, tickets=tickets), *shared_ticket(self.names, first, ticket, new=True)]
        return Kernel(
            name,
            self.region.name,
            self.arguments.ordered(),
            (*arrays, *begin, While(ticket < tickets, (*body, *again))),
            work="scan",
            block=self.records,
            columns=self.columns,
            **sizes,
        )

    def operand(self, scope: Scope, at: IndexLike, count: IndexLike | None, *, whole: bool = False) -> Var:
        """Compute the operand at these numbers of the batch: as `whole`, a vector that begins at a multiple of it."""
        numbers = Numbers(at, count=count, aligned=whole and self.aligned, whole=whole)
        point = ScanPoint(self.graph, self.region, self.arguments, scope, numbers)
        return point.value(self.region.reads[self.node.id][0])

    def store(self, scope: Scope, at: IndexLike, count: IndexLike | None, result: Var, *, whole: bool = False) -> None:
        """Apply the epilogue to the scan's result, which is in the wide dtype, and store these numbers of the batch."""
        numbers = Numbers(at, count=count, aligned=whole and self.aligned, whole=whole)
        point = ScanPoint(self.graph, self.region, self.arguments, scope, numbers)
        point.scope.known[self.node.id] = self.narrowed(scope, result)
        point.store_all()

    def fetch_ahead(self) -> list[Stmt]:
        """Fetch a later tile of each input whose tiles are runs of memory into the cache that compute units share.

        By work-item `BUSY`, for whole tiles. Batches must begin at aligned places of the inputs.
        """
        size, t = self.records * self.columns, Name("t")
        # The tile exists and is whole, since it is not the last one.
        return self.fetched(Name("base") + AHEAD * size, size, size, t + (AHEAD + 1) < BLOCKS)

    def fetched(self, begin: IndexLike, multiple: int, size: int, there: ConditionLike) -> list[Stmt]:
        """Fetch `size` numbers of each such input from index `begin` on, if `there`, where others exist behind them.

        Where batches begin at an aligned place, `begin` is a multiple of `multiple` numbers behind one.
        """
        ahead, step = list[Stmt](), 1
        for access in sorted(loads_of(self.graph, self.region), key=lambda one: one.value):
            is_run = is_dense(self.graph, access.value, self.region.entered)
            is_other = self.graph.nodes[access.value].spec.item_numbers != self.columns
            if access.value in self.region.nodes or is_other or not is_run:
                continue
            lies = storage(self.graph, access.value, self.region.entered)
            argument = self.arguments.input(self.graph, self.region, lies.base)
            numbers, first = RUN_BYTES // argument.dtype.itemsize, begin
            if size % numbers or multiple % numbers:
                # Others exist behind it, so the run may end there.
                first = begin // numbers * numbers
            else:
                step = max(step, numbers)
            ahead.append(PrefetchRun(argument, first, -(-size // numbers) * numbers))
        if not ahead:
            return []
        aligned = equal(PHASE * self.columns % step, 0)
        return [If(all_of(equal(LID, BUSY), aligned, there), tuple(ahead))]

    def nothing(self, dtype: np.dtype) -> ConstantValue:
        """Return the identity of the operation."""
        return ConstantValue(identity_of(self.node, dtype))

    def combined(self, scope: Scope, left: Var, right: Var, count: IndexLike | None = None) -> Var:
        """Combine `left` with `right`, which follows it; `count` lanes are valid."""
        return put_together(scope, self.op, left, right, count)

    def take_in(self, scope: Scope, total: Var, place: IndexLike, number: Var, *, vector: bool = False) -> None:
        """Accumulate a number into `total`, and store its result inside the run at its place of `stage`."""
        after = Assign(total, Splat(self.combined(scope, total, number)))
        result = PutItem("stage", place, total, vector)
        scope.add(*((result, after) if self.exclusive else (after, result)))

    def before_all(self, scope: Scope, place: IndexLike) -> tuple[Stmt, ...]:
        """Store the prefix of the very first record of the stream at its place of `stage`.

        Needed for exclusive sums of floats only: the first prefix is +0, while the identity is -0.
        """
        if not self.exclusive or self.op != "sum" or not is_float(self.dtype):
            return ()
        scope.add(PutItem("stage", place, scope.let(ConstantValue(scan_initial(self.node, self.dtype)), self.dtype)))
        return tuple(scope.statements)

    def widened(self, scope: Scope, var: Var) -> Var:
        """Convert to the wide dtype."""
        return converted(scope, var, self.wide)

    def narrowed(self, scope: Scope, var: Var) -> Var:
        """Convert to the dtype of the numbers."""
        return converted(scope, var, self.dtype)


def shared_ticket(names: itertools.count[int], drawn: Name, into: Name, *, new: bool = False) -> list[Stmt]:
    """Broadcast a drawn ticket to the work-group through the local array `taken`."""
    return [put_ticket(names, drawn), WorkGroupBarrier(), SetInteger(into, ArrayNumber("taken", 0), new=new)]


def put_ticket(names: itertools.count[int], drawn: Name, by: int = 0) -> Stmt:
    """Store a ticket, which work-item `by` has drawn, in the local array `taken`."""
    scope = Scope(names, lanes=1)
    scope.add(PutItem("taken", 0, scope.let(Integer(drawn), INT64)))
    return If(equal(LID, by), tuple(scope.statements))


def converted(scope: Scope, var: Var, dtype: np.dtype) -> Var:
    """Convert a value to another dtype."""
    expr: Expr = Convert(var, var.dtype, dtype)
    return var if var.dtype == dtype else scope.let(expr, dtype, var.lanes)


def operation_of(node: Node) -> str | UserOp:
    """Return the operation of a scan: the step of a reduction, or a user's function."""
    assert node.op is not None
    return node.element.step if isinstance(node.element, KernelScan) else REDUCTIONS[node.op.name]


def put_together(scope: Scope, op: str | UserOp, left: Var, right: Var, count: IndexLike | None = None) -> Var:
    """Combine `left` with `right`, which follows it; `count` lanes are valid."""
    if isinstance(op, str):
        return scope.let(Combine(op, (left,), (right,), 0), left.dtype, left.lanes)
    result = scope.fresh(left.dtype, left.lanes)
    scope.add(CallFunction((result,), op, (left, right), count))
    return result


def identity_of(node: Node, dtype: np.dtype) -> Any:
    """Return the identity of a scan's operation as a Python number."""
    if isinstance(node.element, KernelScan):
        return node.element.inits[0].item()
    assert node.op is not None
    value = identity(REDUCTIONS[node.op.name], dtype)
    return value.item() if isinstance(value, np.generic) else value


def scan_initial(node: Node, dtype: np.dtype) -> Any:
    """Return the prefix of the first number: +0 for a sum, where `identity_of` returns -0."""
    assert node.op is not None
    return 0 if node.op.name == "cumulative_sum" else identity_of(node, dtype)


def vector_lanes(dtype: np.dtype) -> int:
    """Return the numbers of a vector; narrow ones take four bytes in registers."""
    return VECTOR_BYTES // max(dtype.itemsize, 4)


def scan_wide(node: Node) -> np.dtype:
    """Return the dtype in which results of runs and tiles are combined.

    That is float64 for floats. Operations for which this changes nothing, and users' functions, keep their
    dtype.
    """
    assert node.op is not None
    dtype = register_dtype(node.spec.dtype)
    kept = node.op.name in ("cumulative_max", "cumulative_min") or isinstance(node.element, KernelScan)
    return dtype if kept else merge_dtype(dtype)


def is_scan(node: Node) -> bool:
    """Check whether a node is a scan along an axis."""
    return node.kind is Kind.SCAN


def is_walked(node: Node) -> bool:
    """Whether a scan is walked number by number, not in tiles."""
    assert node.op is not None
    associative = node.op.name in REDUCTIONS or node.attrs.get("associative", False)
    return node.attrs["axis"] is not None or not associative


def why_no_serial_scan(task: LoweringTask) -> Reason | None:
    """Return why a region is none around a scan that is walked."""
    if task.anchor is None or not is_scan(task.anchor):
        return task.refuse("its anchor is no scan")
    return None if is_walked(task.anchor) else task.refuse("its scan takes tiles that look back")


def why_no_look_back(task: LoweringTask) -> Reason | None:
    """Return why a region is none around a scan in tiles that look back."""
    if task.anchor is None or not is_scan(task.anchor):
        return task.refuse("its anchor is no scan")
    return task.refuse("its scan is walked number by number") if is_walked(task.anchor) else None


def why_no_gpu_look_back(task: LoweringTask) -> Reason | None:
    """Return why a region is none around a scan in tiles of work-groups that look back."""
    return why_no_look_back(task) if task.is_gpu else task.refuse("a work-item of a CPU scans a tile by itself")
