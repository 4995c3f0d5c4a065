"""Serial scans along items on GPUs, through tiles in local memory.

Without tiles, neighbouring work-items would read addresses that are an item apart. Memory transfers whole
lines, so most of each transfer would be wasted. Here a work-group takes as many sequences as it has
work-items, and some numbers of each at a time.

Neighbouring work-items load neighbouring numbers of a tile into local memory. Then each work-item scans one
sequence there; the pitch puts sequences in different banks. Results are stored as they were loaded. The
next tile is prefetched before the current one is scanned. The order of operations is that of
`SerialScanLowering`, whose steps this lowering uses.
"""

from __future__ import annotations

import math
from dataclasses import replace

from flowcompute.elements import Constant
from flowcompute.elements.generated import Generator
from flowcompute.elements.nn import SELECTIVE_SCAN
from flowcompute.elements.streams import KernelScan
from flowcompute.fuse import Access, Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    RUN,
    Array,
    ArrayItem,
    Assign,
    ConstantValue,
    For,
    If,
    IndexLike,
    Kernel,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    Var,
    WorkGroupBarrier,
    all_of,
    equal,
    index_min,
    names,
    register_dtype,
    scan_tile,
)
from flowcompute.ir.launches import by_sequences
from flowcompute.lower.emit import Key, Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, Knob
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
from flowcompute.lower.scan.serial_scan import RecurrenceState, SerialScanLowering
from flowcompute.spec import BOOL, Spec

G, J, J0, K, ROW0, ROWS = names("g j j0 k row0 rows")
COLUMN, LEFT, ROW, STOP = names("column left row stop", narrow=True)
"""Integers of a tile: its rows `g` begin at row `row0`, `left` more follow; `stop` numbers of each from `j0` on exist.

A work-item loads column `column` of each row that is `k` after its own, `row`."""

WIDE = 64
"""Size of a tile whose rows are long: work-items, sequences, and numbers of each that are loaded in a row."""

NARROW = 32
"""The same size where rows are shorter or take more memory: 128 bytes of float32, a line of the memory bus."""

NEIGHBOURS = 8
"""Number of adjacent sequences from which on work-items read neighbouring addresses without tiles."""

AHEAD_BYTES = 256
"""Bytes of registers into which a work-item prefetches."""

ASKED = 16
"""Numbers of a sequence that are read from local memory before the first is used."""


class SerialScanTile:
    """Sizes of a tile, and its arrays in local memory.

    Attributes:
        inner: adjacent sequences of a row.
        rows: rows of the tile, one for each run of `inner` sequences.
        steps: numbers of each sequence in a full tile, a power of two up to `RUN`.
        pitch: work-items that load a row together, a power of two.
        staged: operands that are loaded to local memory; scalars are not.
        arrays: local arrays, those of operands first; a result reuses the array of an operand of its dtype.
        results: array of each value that the scan of a tile leaves in local memory.
    """

    def __init__(self, graph: Graph, region: Region, group: int, width: int) -> None:
        assert region.anchor is not None
        node = graph.nodes[region.anchor]
        shape, axis = node.spec.shape, node.attrs["axis"]
        self.length: int = shape[axis]
        self.inner = math.prod(shape[axis + 1 :])
        self.staged = [key for key in dict.fromkeys(region.reads[node.id]) if not _is_scalar(graph, key)]
        dtypes = [register_dtype(_spec_of(graph, key).dtype) for key in self.staged]
        ahead = AHEAD_BYTES // max(1, sum(dtype.itemsize for dtype in dtypes))
        short = 1 << (max(1, self.length * self.inner) - 1).bit_length()
        self.pitch: int = min(width, group, short, 1 << max(ahead, 1).bit_length() - 1)
        self.pitch = max(self.pitch, 1 << (self.inner - 1).bit_length())
        self.steps = 1 << (self.pitch // self.inner).bit_length() - 1
        self.rows: int = group // self.inner
        self.group = group
        self.arrays = {f"stage{i}": dtype for i, dtype in enumerate(dtypes)}
        self.results: dict[int, str] = {}
        free = dict(self.arrays)
        for i in _results_in_tile(graph, region, set(self.staged)):
            dtype = register_dtype(graph.nodes[i].spec.dtype)
            name = next((name for name, held in free.items() if held == dtype), f"result{len(self.results)}")
            free.pop(name, None)
            self.arrays[name] = dtype
            self.results[i] = name

    @property
    def apart(self) -> int:
        """Pitch of rows in local memory: one more than they hold, against bank conflicts."""
        return self.pitch + 1

    @property
    def together(self) -> int:
        """Rows that a work-group loads at a time."""
        return self.group // self.pitch

    @property
    def turns(self) -> int:
        """Numbers that a work-item loads of each tile."""
        return -(-self.rows // self.together)

    @property
    def numbers(self) -> int:
        """Size of a local array in numbers; the last rows may be unused."""
        return self.turns * self.together * self.apart

    @property
    def local_bytes(self) -> int:
        """Bytes of all local arrays."""
        return sum(self.numbers * dtype.itemsize for dtype in self.arrays.values())


class TiledSerialScanLowering(SerialScanLowering):
    """Lowering of a region around a scan along items for a GPU."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        super().__init__(graph, region, style)
        wide = SerialScanTile(graph, region, WIDE, WIDE)
        size = WIDE if wide.pitch == WIDE and wide.local_bytes <= style.capabilities.local_bytes else NARROW
        self.knobs = style.settled(TILED_SERIAL_SCAN.knobs, work_group=size, tile_columns=size)
        self.tile = SerialScanTile(graph, region, self.knobs.work_group or size, self.knobs.tile_columns or size)
        if self.tile.local_bytes > style.capabilities.local_bytes:
            self.knobs = replace(self.knobs, work_group=NARROW, tile_columns=NARROW)
            self.tile = SerialScanTile(graph, region, NARROW, NARROW)
        # Numbers of a row of the batch.
        self.pace = self.tile.length * self.tile.inner
        self.whole = equal(LEFT, self.tile.rows - 1)

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts sequences."""
        tile = self.tile
        scope = Scope(self.names, lanes=1)
        scope.add(
            SetInteger(ROW0, G * tile.rows),
            SetInteger(LEFT, index_min(tile.rows, ROWS - ROW0) - 1),
        )
        carried = self._carried(scope)
        ahead, first, body = self._ahead(scope), scope.inner(), scope.inner()
        self._ask(first, ahead, 0)
        body.add(*self._stage(ahead), WorkGroupBarrier())
        following = body.inner()
        self._ask(following, ahead, J0 + tile.steps)
        if ahead:
            scope.add(If(self.whole, tuple(first.statements)))
        if ahead and tile.length > tile.steps:
            body.add(If(all_of(self.whole, J0 + tile.steps < tile.length), tuple(following.statements)))
        body.add(SetInteger(STOP, index_min(tile.steps, tile.length - J0)))
        body.add(*self._walk(carried), WorkGroupBarrier(), *self._results(), WorkGroupBarrier())
        scope.add(For(J0, 0, tile.length, tile.steps, tuple(body.statements)))
        arrays = [Array(array, dtype, 1, tile.numbers, local=True) for array, dtype in tile.arrays.items()]
        places = [
            SetInteger(ROWS, self.total if tile.inner == 1 else self.total // tile.inner),
            SetInteger(ROW, LID // tile.pitch),
            SetInteger(COLUMN, LID % tile.pitch),
        ]
        every = For(G, GID, (ROWS + (tile.rows - 1)) // tile.rows, GSIZE, tuple(scope.statements))
        return Kernel(
            name,
            self.region.name,
            self.arguments.ordered(),
            (*arrays, *places, every),
            work="walk",
            work_group=tile.group,
            units=self.units,
            knobs=self.knobs,
            notes={"along": "items"},
        )

    def _carried(self, scope: Scope) -> _OperationState | RecurrenceState:
        """Declare the initial carry of each sequence."""
        op = self.node.op
        assert op is not None
        if op.name in REDUCTIONS or self.node.attrs.get("associative", False):
            return _OperationState(self, scope)
        return RecurrenceState(scope, self.begun(), *self.recurrence())

    # -- from and to memory -----------------------------------------------------------------------

    def _at(self, scope: Scope, at: IndexLike) -> ScanPoint:
        return ScanPoint(self.graph, self.region, self.arguments, scope, Numbers(at))

    def _slot(self, turn: IndexLike) -> IndexLike:
        """Return the index, in a local array, of a number that this work-item loads or stores."""
        return (ROW + turn) * self.tile.apart + COLUMN

    def _place(self, scope: Scope, start: IndexLike, turn: IndexLike) -> IndexLike:
        """Return the index of that number in the batch.

        Behind the end of a row it is the index of the row's last number, which is loaded but not used.
        """
        tile = self.tile
        column = start * tile.inner + COLUMN
        if tile.length % tile.steps or tile.steps * tile.inner < tile.pitch:
            column = index_min(column, self.pace - 1)
        return scope.integer((ROW0 + ROW + turn) * self.pace + column)

    def _ahead(self, scope: Scope) -> list[list[Var]]:
        """Declare the registers for prefetched numbers: for each operand, those of one tile."""
        tile = self.tile
        turns = tile.turns if tile.rows == tile.turns * tile.together else 0
        dtypes = [tile.arrays[f"stage{i}"] for i in range(len(tile.staged) if turns else 0)]
        return [[scope.let(ConstantValue(0), dtype) for _ in range(turns)] for dtype in dtypes]

    def _ask(self, scope: Scope, ahead: list[list[Var]], start: IndexLike) -> None:
        """Prefetch the tile from number `start` of each sequence on; all its rows must exist."""
        tile = self.tile
        begin = self._place(scope, start, 0)
        for key, variables in zip(tile.staged, ahead, strict=False):
            for turn, var in enumerate(variables):
                place = begin + turn * tile.together * self.pace
                scope.add(Assign(var, Splat(self._at(scope.beside(), place).value(key))))

    def _stage(self, ahead: list[list[Var]]) -> list[Stmt]:
        """Store the tile in local memory, from the prefetched registers, or row by row where rows are missing."""
        tile = self.tile
        some = Scope(self.names, lanes=1)
        place = self._place(some, J0, K)
        for i, key in enumerate(tile.staged):
            some.add(PutItem(f"stage{i}", self._slot(K), self._at(some.beside(), place).value(key)))
        partly = self._rows(some)
        puts = [
            PutItem(f"stage{i}", self._slot(turn * tile.together), var)
            for i, variables in enumerate(ahead)
            for turn, var in enumerate(variables)
        ]
        return [If(self.whole, tuple(puts), (partly,)) if ahead else partly]

    def _rows(self, scope: Scope) -> Stmt:
        """Loop over the rows of a work-item, `k` rows after its first."""
        return For(K, 0, LEFT + 1 - ROW, self.tile.together, tuple(scope.statements))

    def _results(self) -> list[Stmt]:
        """Apply the epilogue to the tile's results, and store."""
        tile = self.tile
        some, whole = Scope(self.names, lanes=1), Scope(self.names, lanes=1)
        column = J0 * tile.inner + COLUMN
        self._finish_one(some, some.integer((ROW0 + ROW + K) * self.pace + column), self._slot(K))
        stored: tuple[Stmt, ...] = (self._rows(some),)
        if tile.rows == tile.turns * tile.together:
            begin = whole.integer((ROW0 + ROW) * self.pace + column)
            for turn in range(0, tile.rows, tile.together):
                self._finish_one(whole.beside(), begin + turn * self.pace, self._slot(turn))
            stored = (If(self.whole, tuple(whole.statements), stored),)
        return [If(COLUMN < STOP * tile.inner, stored)]

    def _finish_one(self, scope: Scope, at: IndexLike, slot: IndexLike) -> None:
        point = self._at(scope, at)
        for node, array in self.tile.results.items():
            scope.known[node] = scope.let(ArrayItem(array, slot), self.tile.arrays[array])
        point.store_all()

    # -- scan ------------------------------------------------------------------------------------------

    def _walk(self, carried: _OperationState | RecurrenceState) -> list[Stmt]:
        """Scan the tile's numbers in place, one sequence for each work-item."""
        tile = self.tile
        scope, some = Scope(self.names, lanes=1), Scope(self.names, lanes=1)
        carried.between(scope)
        lane = LID // tile.inner * tile.apart + LID % tile.inner if tile.inner > 1 else LID * tile.apart
        begin = scope.narrow(lane)
        self._steps(carried, some, [begin + J * tile.inner])
        partly = For(J, 0, STOP, 1, tuple(some.statements))
        asked = min(ASKED, tile.steps)
        if tile.length < tile.steps or isinstance(self.node.element, KernelScan):
            scope.add(partly)
        else:
            whole = Scope(self.names, lanes=1)
            self._steps(carried, whole, [begin + (J + i) * tile.inner for i in range(asked)])
            every = For(J, 0, tile.steps, asked, tuple(whole.statements))
            scope.add(If(equal(STOP, tile.steps), (every,), (partly,)) if tile.length % tile.steps else every)
        return [If(LID <= LEFT if tile.inner == 1 else LID // tile.inner <= LEFT, tuple(scope.statements))]

    def _steps(self, carried: _OperationState | RecurrenceState, scope: Scope, slots: list[IndexLike]) -> None:
        """Scan numbers of a sequence one after the other; all are read before the first is used."""
        tile = self.tile
        steps = [scope.beside() for _ in slots]
        for step, slot in zip(steps, slots, strict=True):
            for i, key in enumerate(tile.staged):
                step.known[key] = step.let(ArrayItem(f"stage{i}", slot), tile.arrays[f"stage{i}"])
        for step, slot in zip(steps, slots, strict=True):
            # Nothing is loaded from global memory here: all operands but scalars are known.
            point = self._at(step, 0)
            results = carried.step(step, point)
            self.make_known(step, results)
            step.add(*(PutItem(array, slot, point.value(i)) for i, array in tile.results.items()))


class _OperationState:
    """State of a scan by an operation: the total of the open run, and those of the runs and tiles above it.

    An axis that is too short for runs or tiles has no totals of these.
    """

    def __init__(self, lowering: TiledSerialScanLowering, scope: Scope) -> None:
        self.node = lowering.node
        self.read = lowering.region.reads[self.node.id][0]
        self.op, self.dtype, self.wide = operation_of(self.node), lowering.dtype, scan_wide(self.node)
        self.total = scope.let(ConstantValue(identity_of(self.node, self.dtype)), self.dtype)
        levels = (lowering.length > scan_tile(1)) + (lowering.length > RUN)
        self.above = [scope.let(ConstantValue(identity_of(self.node, self.wide)), self.wide) for _ in range(levels)]
        exclusive = self.node.attrs.get("exclusive", False)
        self.before = scope.let(ConstantValue(scan_initial(self.node, self.wide)), self.wide) if exclusive else None

    def between(self, scope: Scope) -> None:
        """Fold totals upwards where a run or a tile of the canonical order ended with the previous tile."""
        below, sizes = self.total, [RUN, scan_tile(1)]
        for size, total in zip(sizes, reversed(self.above), strict=False):
            ended = scope.inner()
            own = converted(ended, below, self.wide)
            ended.add(Assign(total, Splat(put_together(ended, self.op, total, own))))
            ended.add(Assign(below, ConstantValue(identity_of(self.node, below.dtype))))
            scope.add(If(all_of(J0 > 0, equal(J0 % size, 0)), tuple(ended.statements)))
            below = total

    def step(self, scope: Scope, point: ScanPoint) -> list[Var]:
        """Accumulate a number, and return its result."""
        scope.add(Assign(self.total, Splat(put_together(scope, self.op, self.total, point.value(self.read)))))
        result = converted(scope, scope.let(Splat(self.total), self.dtype), self.wide)
        for other in reversed(self.above):
            result = put_together(scope, self.op, other, result)
        if self.before is None:
            return [result]
        last = scope.let(Splat(self.before), self.wide)
        scope.add(Assign(self.before, Splat(result)))
        return [last]


def _results_in_tile(graph: Graph, region: Region, staged: set[Key]) -> tuple[int, ...]:
    """Return the values that are in local memory after a tile is scanned.

    They are the outputs where the tile holds all their operands, else the scans. To load an operand again,
    or to keep it beside the result, costs more than the operation.
    """
    waiting: list[Key] = list(region.outputs)
    while waiting:
        key = waiting.pop()
        if key in staged or _is_scalar(graph, key):
            continue
        if isinstance(key, Access) or _spec_of(graph, key).dtype == BOOL or isinstance(graph.nodes[key].op, Generator):
            return tuple(i for i in region.nodes if is_scan(graph.nodes[i]))
        waiting.extend(() if is_scan(graph.nodes[key]) else region.reads[key])
    return region.outputs


def _is_scalar(graph: Graph, key: Key) -> bool:
    """Check whether an operand is one scalar constant, which needs no load."""
    element = graph.nodes[key.value].element if isinstance(key, Access) else None
    return isinstance(element, Constant) and element.value.ndim == 0


def _spec_of(graph: Graph, key: Key) -> Spec:
    return graph.nodes[key.value if isinstance(key, Access) else key].spec


def _why_not(task: LoweringTask) -> Reason | None:
    if not task.is_gpu:
        return task.refuse("work-items of a CPU share no local memory")
    if (reason := why_no_serial_scan(task)) is not None:
        return reason
    graph, region, node = task.graph, task.region, task.anchor
    if node is None or node.attrs["axis"] is None or node.op is SELECTIVE_SCAN:
        return task.refuse("its scan runs along the stream, or is a selective one")
    if any(_spec_of(graph, key).dtype == BOOL for key in region.reads[node.id]):
        return task.refuse("it scans bools")
    shape = SerialScanTile(graph, region, NARROW, NARROW)
    if shape.inner >= NEIGHBOURS or shape.local_bytes > task.style.capabilities.local_bytes:
        return task.refuse("its sequences are neighbours in memory, or its tiles do not fit into local memory")
    return None


def _lower(task: LoweringTask) -> Kernel:
    return TiledSerialScanLowering(task.graph, task.region, task.style).lower(task.name)


TILED_SERIAL_SCAN = Form(
    name="tiled walk",
    accepts=_why_not,
    lower=_lower,
    geometry=by_sequences,
    knobs=FormKnobs(gpu=(Knob("work_group", (32, 64, 128)), Knob("tile_columns", (16, 32, 64)))),
)
"""Scans along items on GPUs, staged through local memory."""
