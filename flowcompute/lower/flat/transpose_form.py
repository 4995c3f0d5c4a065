"""Transposing kernels of GPUs: values that lie along another axis than the result go through tiles of local memory.

A *turned* value has its neighbours in memory along an axis before the innermost one, as `permute_dims(x)` has.
Work-items that stored neighbours of the result would load numbers that are far apart. Here a work-group loads a tile of
SIDE x SIDE numbers along the memory of the value, and stores it along the memory of the result.

The *rows* of a tile run along all axes of the domain up to the one along which the value is dense. Its *columns* run
along the last axes, as many as one stride serves. Axes between them are walked tile by tile.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from flowcompute.elements.axes import PAD
from flowcompute.elements.generated import Generator
from flowcompute.elements.quantized import Dequantize
from flowcompute.fuse import Access, Reason, Region
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    Array,
    ArrayItem,
    Below,
    ConditionLike,
    ConstantValue,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    N,
    Name,
    PutItem,
    Select,
    SetInteger,
    Var,
    WorkGroupBarrier,
    all_of,
    c_strides,
    choose,
    index_min,
    names,
    register_dtype,
    storage,
    to_int,
)
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.anchor_point import Axes
from flowcompute.lower.emit import Arguments, Key, Point, Scope, loaded, loads_of
from flowcompute.lower.flat.gather import Gather, repeated
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.spec import BOOL

SIDE = 64
"""Rows and columns of a tile."""
GROUP = 256
"""Work-items of a work-group. Neighbours have the same rows (loads) or columns (stores) in each of their turns."""
TURNS = SIDE * SIDE // GROUP
TOGETHER = GROUP // SIDE
"""Columns or rows that a work-group moves at a time."""
LEAST = 16
"""Fewest rows, columns and neighbours in memory: with fewer, loads or stores would be mostly apart."""
EMPTIEST = 3
"""Numbers of tiles for each number of a record. With 4, items of 65 x 67 took longer than by loads that are apart."""
MOST_NUMBERS = 1 << 31
"""Places in a record have 32 bits."""

_TILE, _TURN = names("t turn")
_LANE, _FIRST = Name("lane", narrow=True), Name("part", narrow=True)


@dataclass(frozen=True)
class Turned:
    """A value that is loaded along its own memory.

    Attributes:
        key: what the region reads: an access, or the anchor that pads it.
        value: id of the value that owns the memory.
        offset: of its first number.
        record: numbers from one record to the next.
        sizes: of its own axes, by axis of the domain.
        strides: by axis of the domain.
        before: indices of the domain before its own, by axis.
    """

    key: Key
    value: int
    offset: int
    record: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def dense_axis(self) -> int | None:
        """The axis along which numbers are neighbours in memory, if that is not the last one of several numbers."""
        wide = [axis for axis, size in enumerate(self.sizes) if size > 1]
        return next((axis for axis in wide[:-1] if abs(self.strides[axis]) == 1), None)


@dataclass(frozen=True)
class Grid:
    """Tiles of a record: `rows` of the first axes, each `middle` times `columns` numbers of the result.

    Attributes:
        split: the first axis between rows and columns.
        last: the first axis of columns.
    """

    split: int
    last: int
    rows: int
    middle: int
    columns: int

    @classmethod
    def of(cls, domain: Sequence[int], turned: Sequence[Turned], padded: Sequence[bool]) -> Grid:
        """Return the tiles of values that are all dense along one axis.

        Args:
            domain: item shape of the result.
            turned: values that are dense along the same axis.
            padded: whether the result has more numbers than the values along an axis.
        """
        axis = turned[0].dense_axis
        assert axis is not None
        last = len(domain) - 1
        while last - 1 > axis and not padded[last - 1] and all(_is_single(domain, one, last - 1) for one in turned):
            last -= 1
        split = axis + 1
        return cls(split, last, *(math.prod(part) for part in (domain[:split], domain[split:last], domain[last:])))

    @property
    def down(self) -> int:
        """Tiles along the rows."""
        return -(-self.rows // SIDE)

    @property
    def across(self) -> int:
        """Tiles along the columns."""
        return -(-self.columns // SIDE)

    @property
    def is_empty(self) -> bool:
        """True if most numbers of the tiles do not exist."""
        return self.down * self.across * SIDE * SIDE > EMPTIEST * self.rows * self.columns

    @property
    def tiles(self) -> int:
        """Tiles of a record."""
        return self.down * self.middle * self.across


def _is_single(domain: Sequence[int], one: Turned, last: int) -> bool:
    return Axes.of(domain[last:], one.strides[last:]).single


class Transposition:
    """Facts about a region that reads turned values; `why_not` tells why it does not fit, if so."""

    def __init__(self, graph: Graph, region: Region) -> None:
        self.graph, self.region = graph, region
        self.gather: Gather | None = None
        self.turned: list[Turned] = []
        padded = [False] * len(region.domain)
        node = None if region.anchor is None else graph.nodes[region.anchor]
        if node is not None and node.op is PAD and node.spec.is_stream:
            self.gather = Gather(graph, region)
            padded = [any(pair) for pair in node.attrs["widths"]]
            operand, before = self.gather.operands[0], tuple(first for first, _ in node.attrs["widths"])
            lies = operand.lies
            found = [Turned(node.id, lies.base, lies.offset, lies.record, operand.spec.shape, lies.strides, before)]
        elif node is None:
            found = [self._seen(access) for access in loads_of(graph, region)]
        else:
            found = []
        found = [one for one in found if one.dense_axis is not None]
        # Values that are dense along another axis are loaded as they lie.
        self.turned = [one for one in found if one.dense_axis == found[0].dense_axis]
        self.padded = padded
        self.grid = Grid.of(region.domain, self.turned, padded) if self.turned else None

    def _seen(self, access: Access) -> Turned:
        strides, offset, record = placed(self.graph, self.region, access)
        sizes = tuple(size if stride else 1 for size, stride in zip(self.region.domain, strides, strict=True))
        value = storage(self.graph, access.value, self.region.entered).base
        return Turned(access, value, offset, record, sizes, strides, (0,) * len(strides))

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory for one tile of each turned value."""
        return sum(SIDE * pitch(size) * size for size in (self.item_bytes(one) for one in self.turned))

    def item_bytes(self, one: Turned) -> int:
        """Return the bytes of a number in registers."""
        return register_dtype(self.graph.nodes[one.value].spec.dtype).itemsize

    def why_not(self, local_bytes: int) -> str | None:
        """Return the reason why tiles do not fit; None where they do."""
        graph, region, grid = self.graph, self.region, self.grid
        if region.reduced or region.folds or region.parts or region.weight_tiles is not None:
            return "it reduces, folds or shares a launch"
        if grid is None:
            return "no value has its neighbours along another axis"
        numbers = math.prod(region.domain)
        if any(self.padded[grid.last :]):
            return "the axes that are stored together are padded"
        if any(graph.nodes[i].spec.item_numbers != numbers for i in region.outputs):
            return "it stores fewer numbers than its domain has"
        if any(isinstance(graph.nodes[i].op, Generator | Dequantize) for i in region.nodes):
            return "it makes numbers by their positions"
        if self.gather is not None and self.gather.is_computed(self.gather.operands[0]):
            return "what it pads is computed there"
        values = {access.value for access in loads_of(graph, region)} | {one.value for one in self.turned}
        roots = {storage(graph, value, region.entered).base for value in values}
        if max(numbers, *(graph.nodes[i].spec.item_numbers for i in values | roots)) >= MOST_NUMBERS:
            return "places in a record need 64 bits"
        if any(graph.nodes[one.value].spec.dtype == BOOL for one in self.turned):
            return "bools are masks in registers"
        if min(grid.rows, grid.columns, *(self._run(one) for one in self.turned)) < LEAST:
            return f"it has fewer than {LEAST} rows or columns, or neighbours in memory"
        if grid.is_empty:
            return "its tiles would be mostly empty"
        if self.local_bytes > local_bytes:
            return f"its tiles take {self.local_bytes} of {local_bytes} bytes of local memory"
        return None

    def _run(self, one: Turned) -> int:
        """Return how many neighbours in memory rows have."""
        assert self.grid is not None
        split = self.grid.split
        return Axes.of(one.sizes[:split], one.strides[:split]).sizes[-1]


def placed(graph: Graph, region: Region, access: Access) -> tuple[tuple[int, ...], int, int]:
    """Return the strides of a value by axis of the domain, its offset, and its numbers in a record."""
    lies, spec = storage(graph, access.value, region.entered), graph.nodes[access.value].spec
    strides = [0] * len(region.domain)
    for axis, size, stride in zip(access.layout, spec.shape, lies.strides, strict=True):
        if axis is not None and size != 1:
            strides[axis] = stride
    return tuple(strides), lies.offset, lies.record


def pitch(item_bytes: int) -> int:
    """Return the numbers of a line of a tile: one bank of local memory more than it has rows."""
    return SIDE + max(1, 4 // item_bytes)


class _TilePoint(Point):
    """Point of one number of a tile, as the result has it."""

    def __init__(self, parent: _Lowering, scope: Scope, record: IndexLike, indices: Sequence[IndexLike]) -> None:
        super().__init__(parent.graph, parent.region, parent.arguments, scope)
        self.record, self.indices = record, indices
        self.grid = parent.grid

    def load(self, access: Access) -> Var:
        """Load a value that is not turned."""
        strides, offset, record = placed(self.graph, self.region, access)
        argument = self.arguments.input(
            self.graph, self.region, storage(self.graph, access.value, self.region.entered).base
        )
        index: IndexLike = offset + self.record * record
        bounds = (0, self.grid.split, self.grid.last, len(strides))
        for at, (start, stop) in zip(self.indices, itertools.pairwise(bounds), strict=True):
            index += Axes.of(self.region.domain[start:stop], strides[start:stop]).offset(at)
        return loaded(self.scope, Load(argument, index))


class _Lowering:
    def __init__(self, task: LoweringTask) -> None:
        self.task, self.graph, self.region = task, task.graph, task.region
        self.facts = facts = Transposition(task.graph, task.region)
        assert facts.grid is not None
        self.grid = facts.grid
        self.arguments = Arguments() if facts.gather is None else facts.gather.arguments
        self.names = itertools.count() if facts.gather is None else facts.gather.names

    def lower(self) -> Kernel:
        """Return the kernel; its work counts records, of which each has the same tiles."""
        grid, scope = self.grid, Scope(self.names, lanes=1)
        record = scope.integer(_TILE // grid.tiles)
        within = scope.narrow(to_int(_TILE % grid.tiles))
        column = scope.narrow(within % grid.across * SIDE)
        rest = within // grid.across
        row = scope.narrow(rest % grid.down * SIDE)
        middle = 0 if grid.middle == 1 else scope.narrow(rest // grid.down)
        for place, one in enumerate(self.facts.turned):
            self._load(scope, one, place, record, row, middle, column)
        scope.add(WorkGroupBarrier())
        self._store(scope, record, row, middle, column)
        scope.add(WorkGroupBarrier())
        sizes = [self.facts.item_bytes(one) for one in self.facts.turned]
        tiles = [
            Array(_tile(place), self._dtype(one), 1, SIDE * pitch(size), local=True)
            for place, (one, size) in enumerate(zip(self.facts.turned, sizes, strict=True))
        ]
        body = For(_TILE, GID, N * grid.tiles, GSIZE, tuple(scope.statements))
        own = Scope(self.names, lanes=1)
        own.add(SetInteger(_LANE, to_int(LID) % SIDE), SetInteger(_FIRST, to_int(LID) // SIDE))
        return Kernel(
            self.task.name,
            self.region.name,
            self.arguments.ordered(),
            (*tiles, *own.statements, body),
            work="rows",
            work_group=GROUP,
            tile=(1, grid.tiles),
        )

    def _dtype(self, one: Turned) -> np.dtype:
        return register_dtype(self.graph.nodes[one.value].spec.dtype)

    def _load(
        self,
        scope: Scope,
        one: Turned,
        place: int,
        record: IndexLike,
        row: IndexLike,
        middle: IndexLike,
        column: IndexLike,
    ) -> None:
        """Load a tile along the memory of a value, and keep it in local memory."""
        grid, domain = self.grid, self.region.domain
        last = row + _LANE
        indices = [
            *_indices(
                domain[: grid.split], scope.narrow(last if grid.rows % SIDE == 0 else index_min(last, grid.rows - 1))
            ),
            *_indices(domain[grid.split : grid.last], middle),
        ]
        at: IndexLike = 0
        conditions: list[ConditionLike] = []
        for axis, index in enumerate(indices):
            along = scope.narrow(index) - one.before[axis]
            if self.facts.padded[axis]:
                along = self._inside(along, one.sizes[axis], conditions)
            at += along * one.strides[axis]
        outside = None
        if conditions:
            # Numbers beyond the edges are loaded from the first place, so that no load waits for a branch.
            exists = scope.flag(all_of(*conditions), narrow=True)
            at = choose(exists, at, 0)
            outside = scope.let(Below(exists), BOOL, mask_bytes=self.facts.item_bytes(one))
        begin = scope.integer(one.offset + record * one.record + scope.narrow(at))
        across = Axes.of(domain[grid.last :], one.strides[grid.last :])
        inner = scope.inner()
        own = inner.narrow(_FIRST + to_int(_TURN) * TOGETHER)
        from_first = column + own
        if grid.columns % SIDE:
            from_first = index_min(from_first, grid.columns - 1)
        value = self._number(inner, one, begin + inner.narrow(from_first * across.stride))
        if outside is not None:
            assert self.facts.gather is not None
            fill = inner.let(ConstantValue(self.facts.gather.fill), value.dtype)
            value = inner.let(Select(outside, value, fill), value.dtype)
        inner.add(PutItem(_tile(place), own * pitch(self.facts.item_bytes(one)) + _LANE, value))
        scope.add(For(_TURN, 0, TURNS, 1, tuple(inner.statements), unroll=1))

    def _inside(self, index: IndexLike, size: int, conditions: list[ConditionLike]) -> IndexLike:
        """Return an index along a padded axis of a value; where zeros are beyond its edges, add what tells so."""
        assert self.facts.gather is not None
        mode = self.facts.gather.node.attrs["mode"]
        if mode != "constant":
            return repeated(index, size, mode)
        conditions += [index >= 0, index < size]
        return index

    def _number(self, scope: Scope, one: Turned, index: IndexLike) -> Var:
        """Load one number."""
        return loaded(scope, Load(self.arguments.input(self.graph, self.region, one.value), index))

    def _store(self, scope: Scope, record: IndexLike, row: IndexLike, middle: IndexLike, column: IndexLike) -> None:
        """Store a tile along the memory of the results, with what is computed of it."""
        grid, numbers = self.grid, math.prod(self.region.domain)
        own = scope.narrow(column + _LANE)
        begin = scope.integer(record * numbers + scope.narrow(middle * grid.columns + own))
        inner = scope.inner()
        place = inner.narrow(_FIRST + to_int(_TURN) * TOGETHER)
        at = inner.narrow(row + place)
        computed = inner.inner()
        point = _TilePoint(self, computed, record, (at, middle, own))
        for number, one in enumerate(self.facts.turned):
            item = ArrayItem(_tile(number), _LANE * pitch(self.facts.item_bytes(one)) + place)
            computed.known[one.key] = computed.let(item, self._dtype(one))
        for output in self.region.outputs:
            point.store(output, begin + at * (grid.middle * grid.columns))
        exists = all_of(
            at < grid.rows if grid.rows % SIDE else True, own < grid.columns if grid.columns % SIDE else True
        )
        inner.add(If(exists, tuple(computed.statements)))
        scope.add(For(_TURN, 0, TURNS, 1, tuple(inner.statements), unroll=1))


def _tile(place: int) -> str:
    return f"tile{place}"


def _indices(sizes: Sequence[int], index: IndexLike) -> list[IndexLike]:
    """Return the index on each of several axes that are counted as one."""
    below = c_strides(sizes)
    return [
        index // step % size if axis else index // step
        for axis, (size, step) in enumerate(zip(sizes, below, strict=True))
    ]


def _why_not(task: LoweringTask) -> Reason | None:
    if not task.is_gpu:
        return task.refuse("CPUs have no local memory")
    if task.anchor is not None and task.anchor.op is not PAD:
        return task.refuse("its anchor is no padding")
    why = Transposition(task.graph, task.region).why_not(task.style.capabilities.local_bytes)
    return None if why is None else task.refuse(why)


def _lower(task: LoweringTask) -> Kernel:
    return _Lowering(task).lower()


TRANSPOSE = Form(name="transpose", accepts=_why_not, lower=_lower, geometry=by_tiles)
"""Values that lie along another axis than the result."""
