"""Kernels that walk rows: item reductions with all their phases, broadcasts between streams, folds of columns.

A **row** is a run over the column axes (the reduced ones, else the last); the other axes of
the domain number the rows of a record. Reductions of depth k need k sweeps over the row
(phases); a last sweep makes the outputs. What an earlier sweep computed at a cost is kept.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from flowcompute.elements.op import Kind
from flowcompute.graph.graph import Graph
from flowcompute.planner.backend import Traits
from flowcompute.planner.canonical import LANES, identity
from flowcompute.planner.emit import Arguments, Key, Point, Scope, loaded
from flowcompute.planner.fold import FoldSpec
from flowcompute.planner.kernel import (
    Argument,
    Array,
    For,
    If,
    Integer,
    Item,
    Kernel,
    Load,
    Number,
    Put,
    SetInteger,
    Splat,
    Stmt,
    Store,
    Var,
    register_dtype,
)
from flowcompute.planner.lower_flat import units_loop
from flowcompute.planner.lower_reduce import GroupBlocks, Parts, Reduction, VectorBlocks, index_operand, moved
from flowcompute.planner.regions import Access, Layout, Region
from flowcompute.spec import INT64

KEPT_COST = 8
KEPT_NUMBERS = 16384
ROW_LANES = 4
"""Lanes of row values on CPUs: library functions have the bits of their vector form (never the scalar's)."""

COLUMN_TILE = 1024
"""Columns of a fold that one work-item takes, where there are no rows to reduce."""


@dataclass(frozen=True)
class Place:
    """Where a value lies: strides in numbers over records, row axes and column axes."""

    record: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]


class RowLowering:
    """Lowers one region row by row."""

    def __init__(self, graph: Graph, region: Region, traits: Traits, folds: dict[int, FoldSpec]) -> None:
        self.graph = graph
        self.region = region
        self.folds = folds
        self.cpu = traits.code_shape == "cpu"
        self.lanes = traits.lanes if self.cpu else 1
        self.arguments = Arguments()
        self.names = itertools.count()
        axes = range(len(region.domain))
        reduced = sorted(region.reduced)
        self.column_axes = reduced or self._trailing()
        self.row_axes = [axis for axis in axes if axis not in self.column_axes]
        self.columns = math.prod(region.domain[axis] for axis in self.column_axes)
        self.rows = math.prod(region.domain[axis] for axis in self.row_axes)
        self.phase_of = self._phases()
        self.depth = max([0, *(phase + 1 for i, phase in self.phase_of.items() if self.kind(i) is Kind.REDUCE)])
        self.kept = self._kept() if self.cpu and self.columns <= KEPT_NUMBERS else {}

    # -- shape of the walk --------------------------------------------------------------------

    def _trailing(self) -> list[int]:
        """Without reductions: as many trailing axes as every value runs along alike (all or none of them)."""
        domain = self.region.domain
        if not domain:
            return []
        axes = [len(domain) - 1]
        for axis in range(len(domain) - 2, -1, -1):
            if not all(self._alike(layout, shape, axis, axes[0]) for layout, shape in self._values()):
                break
            axes.insert(0, axis)
        return axes

    def _values(self) -> list[tuple[Layout, tuple[int, ...]]]:
        region, nodes = self.region, self.graph.nodes
        values = [(region.layouts[i], nodes[i].spec.shape) for i in region.layouts]
        accesses = {o for operands in region.reads.values() for o in operands if isinstance(o, Access)}
        return values + [(access.layout, nodes[access.value].spec.shape) for access in accesses]

    def _alike(self, layout: Layout, shape: tuple[int, ...], first: int, second: int) -> bool:
        wide = [axis for axis, size in zip(layout, shape, strict=True) if axis is not None and size != 1]
        domain = self.region.domain
        if domain[first] == 1 or domain[second] == 1:
            return True
        if (first in wide) != (second in wide):
            return False
        return first not in wide or wide.index(second) == wide.index(first) + 1

    def kind(self, node: int) -> Kind | None:
        """Kind of a node."""
        return self.graph.nodes[node].kind

    def is_full(self, layout: Layout, shape: tuple[int, ...]) -> bool:
        """Whether a value differs from column to column."""
        return any(axis in self.column_axes and size != 1 for axis, size in zip(layout, shape, strict=True))

    def full_key(self, key: Key) -> bool:
        """Whether a node or access differs from column to column."""
        if isinstance(key, Access):
            return self.is_full(key.layout, self.graph.nodes[key.value].spec.shape)
        return self.is_full(self.region.layouts[key], self.graph.nodes[key].spec.shape)

    def place(self, layout: Layout, shape: tuple[int, ...], stream: bool) -> Place:
        """Strides of a C-contiguous value of this item shape."""
        strides = [0] * len(self.region.domain)
        step = 1
        for axis, size in zip(reversed(layout), reversed(shape), strict=True):
            if axis is not None and size != 1:
                strides[axis] = step
            step *= size
        return Place(
            step if stream else 0,
            tuple(strides[axis] for axis in self.row_axes),
            tuple(strides[axis] for axis in self.column_axes),
        )

    # -- phases -------------------------------------------------------------------------------

    def _phases(self) -> dict[int, int]:
        """For each node the sweep in which it can first be computed (a reduction: is accumulated)."""
        phases: dict[int, int] = {}
        for i in self.region.nodes:
            inside = [o for o in self.region.reads[i] if isinstance(o, int)]
            phases[i] = max([0, *(phases[o] + (self.kind(o) is Kind.REDUCE) for o in inside)])
        return phases

    def targets(self, phase: int) -> list[int]:
        """Nodes that sweep number `phase` exists for; the last sweep makes outputs and folds."""
        if phase < self.depth:
            return [i for i in self.region.nodes if self.kind(i) is Kind.REDUCE and self.phase_of[i] == phase]
        return [i for i in self.region.outputs if self.full_key(i)] + list(self.region.folds)

    def _needs(self, phase: int) -> set[int]:
        """Full-level element-wise nodes that a sweep evaluates."""
        needed: set[int] = set()
        todo = list(self.targets(phase))
        while todo:
            node = todo.pop()
            operands = [node] if node in self.region.outputs and self.kind(node) is Kind.ELEMENTWISE else []
            operands += [o for o in self.region.reads[node] if isinstance(o, int)]
            for operand in operands:
                if operand not in needed and self.kind(operand) is Kind.ELEMENTWISE and self.full_key(operand):
                    needed.add(operand)
                    todo.append(operand)
        return needed

    def _cost(self, node: int) -> int:
        op = self.graph.nodes[node].op
        assert op is not None
        return op.cost

    def _kept(self) -> dict[int, int]:
        """Costly nodes that a later sweep needs again, with the sweep that computes them."""
        needs = [self._needs(phase) for phase in range(self.depth + 1)]
        kept: dict[int, int] = {}
        for node in reversed(self.region.nodes):
            phases = [phase for phase, needed in enumerate(needs) if node in needed]
            if len(phases) < 2 or self._subtree_cost(node) < KEPT_COST:
                continue
            users = [u for u in self.region.nodes if node in self.region.reads[u]]
            later = [u for u in users if any(u in needs[phase] or u in self.targets(phase) for phase in phases[1:])]
            stored = node in self.region.outputs and self.depth in phases[1:]
            if stored or any(kept.get(user) != phases[0] for user in later):
                kept[node] = phases[0]
        return kept

    def _subtree_cost(self, node: int) -> int:
        """Cost of computing a node from loads and row values."""
        seen: set[int] = set()
        todo, cost = [node], 0
        while todo:
            i = todo.pop()
            if i in seen or self.kind(i) is not Kind.ELEMENTWISE or not self.full_key(i):
                continue
            seen.add(i)
            cost += self._cost(i)
            todo.extend(o for o in self.region.reads[i] if isinstance(o, int))
        return cost

    # -- the kernel ---------------------------------------------------------------------------

    def lower(self, name: str) -> Kernel:
        """The kernel."""
        blocks = [self.folds[fold].block for fold in self.region.folds]
        block = blocks[0] if blocks else 0
        row = Scope(self.names, lanes=ROW_LANES if self.cpu else 1)
        tiled = bool(self.region.folds) and not self.depth and self.rows == 1 and self.columns > COLUMN_TILE
        # Several work-items may share a record's columns when no row has to be seen whole.
        self.tile = COLUMN_TILE if tiled and self.cpu else self.columns
        walk = RowWalk(self, row, block)
        walk.emit()
        body = walk.columns_body() if block else walk.rows_body()
        return Kernel(
            name,
            self.region.name,
            self.arguments.ordered(),
            tuple(body),
            work="columns" if block else "rows",
            work_group=1 if self.cpu else LANES,
            block=block,
            columns=self.tile if tiled and self.cpu else 0,
            units=self.rows,
            lanes=self.lanes,
            notes={"depth": self.depth, "kept": tuple(self.graph.nodes[i].name for i in self.kept)},
        )


class RowPoint(Point):
    """A row: what is constant along its columns."""

    def __init__(self, walk: RowWalk, scope: Scope) -> None:
        super().__init__(walk.lowering.graph, walk.lowering.region, walk.lowering.arguments, scope)
        self.walk = walk

    def load(self, access: Access) -> Var:
        """Load the row's one number."""
        argument, base, _ = self.walk.locate(access)
        return loaded(self.scope, Load(argument, base, 0))


class ColumnPoint(Point):
    """Columns `column` to `column + lanes` of the row, of which `count` exist.

    `phase` is twice the number of the sweep, and one more once what the sweep keeps is kept.
    """

    def __init__(self, row: RowPoint, scope: Scope, column: str, count: str | None, phase: int) -> None:
        super().__init__(row.graph, row.region, row.arguments, scope)
        self.row = row
        self.walk = row.walk
        self.column = column
        self.count = count
        self.phase = phase

    def home(self, key: Key) -> Point:
        """The row for what is constant along it."""
        return self if self.walk.lowering.full_key(key) else self.row

    def load(self, access: Access) -> Var:
        """Load a vector of the row."""
        argument, base, place = self.walk.locate(access)
        index, stride, each = self.walk.address(base, place, self.column)
        return loaded(self.scope, Load(argument, index, stride, self.count, each))

    def compute(self, key: Key) -> Var:
        """As everywhere, but what an earlier sweep has kept is fetched, and what is to be kept is put away."""
        kept = self.walk.lowering.kept
        if isinstance(key, Access) or key not in kept:
            return super().compute(key)
        lowering = self.walk.lowering
        array, slot = self.walk.kept_array(key), f"({self.column}) / {lowering.lanes}"
        if 2 * kept[key] < self.phase:
            dtype = register_dtype(self.graph.nodes[key].spec.dtype)
            return self.scope.let(Item(array, slot), dtype, mask_bytes=self.walk.kept_masks[key])
        var = super().compute(key)
        self.walk.kept_masks[key] = var.mask_bytes
        self.scope.add(Put(array, slot, var))
        return var


class RowWalk:
    """Emits the sweeps over one row."""

    def __init__(self, lowering: RowLowering, scope: Scope, block: int) -> None:
        self.lowering = lowering
        self.scope = scope
        self.block = block
        self.row = RowPoint(self, scope)
        self.bases: dict[tuple[str, Place], str] = {}
        self.arrays: dict[int, str] = {}
        self.kept_masks: dict[int, int] = {}
        self.declared: list[Array] = []

    # -- addresses ----------------------------------------------------------------------------

    def locate(self, access: Access) -> tuple[Argument, str, Place]:
        """The argument of an access, the integer that holds its row's first number, and its strides."""
        lowering = self.lowering
        spec = lowering.graph.nodes[access.value].spec
        argument = lowering.arguments.get("input", spec.dtype, access.value)
        place = lowering.place(access.layout, spec.shape, spec.is_stream)
        return argument, self.base(argument.name, place), place

    def base(self, name: str, place: Place) -> str:
        """An integer with the offset of the row in an argument."""
        if (name, place) not in self.bases:
            terms = [f"record * {place.record}"] if place.record else []
            for position, stride in enumerate(place.rows):
                if stride:
                    terms.append(f"{self._row_index(position)} * {stride}")
            text = " + ".join(terms) or "0"
            self.bases[name, place] = self.scope.integer(f"({text})" if text == "0" else text)
        return self.bases[name, place]

    def _row_index(self, position: int) -> str:
        sizes = [self.lowering.region.domain[axis] for axis in self.lowering.row_axes]
        below = math.prod(sizes[position + 1 :])
        text = "outer" if below == 1 else f"(outer / {below})"
        return text if position == 0 else f"({text} % {sizes[position]})"

    def address(self, base: str, place: Place, column: str) -> tuple[str, int, str | None]:
        """Index, stride and, where there is no single stride, the index of each lane."""
        sizes = [self.lowering.region.domain[axis] for axis in self.lowering.column_axes]
        if len(sizes) == 1:
            stride = place.columns[0]
            return (f"{base} + {column}" if stride == 1 else f"{base} + ({column}) * {stride}"), stride, None
        dense = all(stride == math.prod(sizes[position + 1 :]) for position, stride in enumerate(place.columns))
        if dense:
            return f"{base} + {column}", 1, None
        terms = []
        for position, stride in enumerate(place.columns):
            if stride:
                below = math.prod(sizes[position + 1 :])
                terms.append(f"(({column} + {{lane}}) / {below} % {sizes[position]}) * {stride}")
        return base, 1, f"{base} + {' + '.join(terms)}"

    # -- sweeps -------------------------------------------------------------------------------

    def kept_array(self, node: int) -> str:
        """The private array that keeps a node's row."""
        if node not in self.arrays:
            lowering = self.lowering
            name = f"row{len(self.arrays)}"
            dtype = register_dtype(lowering.graph.nodes[node].spec.dtype)
            self.arrays[node] = name
            size = -(-lowering.columns // lowering.lanes)
            self.declared.append(Array(name, dtype, lowering.lanes, size, mask_bytes=dtype.itemsize))
        return self.arrays[node]

    def emit(self) -> None:
        """All sweeps, then the row's own outputs."""
        lowering = self.lowering
        for phase in range(lowering.depth):
            self._reduce(phase)
        self._finish(lowering.depth)
        for output in lowering.region.outputs:
            if not lowering.full_key(output):
                self._store_row_value(output)

    def _reduce(self, phase: int) -> None:
        lowering = self.lowering
        nodes = lowering.targets(phase)
        self._keep(phase)
        reductions = [self._reduction(node, phase) for node in nodes]
        scope = self.scope.inner(lowering.lanes)
        if lowering.cpu:
            results = VectorBlocks(scope, reductions, lowering.lanes).row(lowering.columns)
        else:
            results = GroupBlocks(scope, reductions).row(lowering.columns)
        self.scope.add(*scope.statements)
        for node, parts in zip(nodes, results, strict=True):
            result = lowering.graph.nodes[node]
            self.scope.known[node] = self.scope.let(
                Splat(parts[-1]), register_dtype(result.spec.dtype), mask_bytes=parts[-1].mask_bytes
            )

    def _reduction(self, node: int, phase: int) -> Reduction:
        lowering = self.lowering
        graph_node = lowering.graph.nodes[node]
        assert graph_node.op is not None
        op = graph_node.op.name
        reads = lowering.region.reads[node]
        source = register_dtype(lowering.graph.nodes[graph_node.inputs[0]].spec.dtype)

        def operands(scope: Scope, column: str, count: str | None) -> Parts:
            point = ColumnPoint(self.row, scope, column, count, 2 * phase + 1)
            values = tuple(point.value(key) for key in reads)
            return (values[0], index_operand(scope, column)) if op in ("argmin", "argmax") else values

        dtypes = (source, INT64) if op in ("argmin", "argmax") else (source,)
        return Reduction(f"n{node}", op, dtypes, operands)

    def _keep(self, phase: int) -> None:
        """A loop of its own for what this sweep computes and later ones need again."""
        lowering = self.lowering
        nodes = [node for node, first in lowering.kept.items() if first == phase]
        if not nodes:
            return
        lanes, columns = lowering.lanes, lowering.columns
        whole = columns - columns % lanes
        main, tail = self.scope.inner(lanes), self.scope.inner(lanes)
        for node in nodes:
            ColumnPoint(self.row, main, "c", None, 2 * phase).value(node)
        if whole:
            self.scope.add(For("c", "0", str(whole), str(lanes), tuple(main.statements)))
        if columns % lanes:
            for node in nodes:
                ColumnPoint(self.row, tail, str(whole), str(columns % lanes), 2 * phase).value(node)
            self.scope.add(If("1", tuple(tail.statements)))

    def _finish(self, phase: int) -> None:
        """The sweep that stores full-level outputs and accumulates columns."""
        lowering = self.lowering
        targets = lowering.targets(phase)
        if not targets:
            return
        lanes, columns = lowering.lanes, lowering.columns
        main = self.scope.inner(lanes)
        if not lowering.cpu:
            self._at(ColumnPoint(self.row, main, "c", None, 2 * phase))
            self.scope.add(For("c", "lid", str(columns), str(LANES), tuple(main.statements)))
            return
        self._at(ColumnPoint(self.row, main, "c", None, 2 * phase))
        if lowering.tile != columns:
            tail = self.scope.inner(lanes)
            self._at(ColumnPoint(self.row, tail, "c", "left", 2 * phase))
            self.scope.add(
                SetInteger("whole", f"till - (till - from) % {lanes}"),
                For("c", "from", "whole", str(lanes), tuple(main.statements)),
                SetInteger("c", "whole"),
                If("c < till", (SetInteger("left", "till - c"), *tail.statements)),
            )
            return
        whole = columns - columns % lanes
        if whole:
            self.scope.add(For("c", "0", str(whole), str(lanes), tuple(main.statements)))
        if columns % lanes:
            tail = self.scope.inner(lanes)
            self._at(ColumnPoint(self.row, tail, str(whole), str(columns % lanes), 2 * phase))
            self.scope.add(If("1", tuple(tail.statements)))

    def _at(self, point: ColumnPoint) -> None:
        lowering = self.lowering
        for output in lowering.region.outputs:
            if lowering.full_key(output):
                spec = lowering.graph.nodes[output].spec
                place = lowering.place(lowering.region.layouts[output], spec.shape, True)
                argument = lowering.arguments.get("output", spec.dtype, output)
                index, stride, each = self.address(self.base(argument.name, place), place, point.column)
                point.store(output, index, stride, point.count, each)
        for fold in lowering.region.folds:
            self._accumulate(point, fold)

    def _store_row_value(self, output: int) -> None:
        lowering = self.lowering
        spec = lowering.graph.nodes[output].spec
        place = lowering.place(lowering.region.layouts[output], spec.shape, True)
        argument = lowering.arguments.get("output", spec.dtype, output)
        scope = self.scope.inner(self.scope.lanes)
        RowPoint(self, scope).store(output, self.base(argument.name, place), 1, "1")
        self.scope.add(*scope.statements if lowering.cpu else (If("lid == 0", tuple(scope.statements)),))

    # -- folds of columns ---------------------------------------------------------------------

    def _accumulate(self, point: ColumnPoint, fold: int) -> None:
        """Add the record's columns to the block's partial results, which are the accumulators."""
        lowering = self.lowering
        spec = lowering.folds[fold]
        layout = self._fold_layout(fold)
        place = lowering.place(layout, spec.item, False)
        scope, count = point.scope, point.count
        index, stride, each = self.address(self.base(f"part{fold}", place), place, point.column)
        arguments = [lowering.arguments.get("partial", dtype, fold, part) for part, dtype in enumerate(spec.parts())]
        values = tuple(point.value(key) for key in lowering.region.reads[fold])
        start = f"block * {spec.numbers} + {index}"
        lanes_each = None if each is None else f"block * {spec.numbers} + {each}"
        old = tuple(loaded(scope, Load(argument, start, stride, count, lanes_each)) for argument in arguments)
        op = spec.op
        if op in ("argmin", "argmax"):
            values = (values[0], index_operand_of(scope, "first + record"))
        if op == "var":
            values = moved(scope, values[0], old[0])
        name = {"mean": "sum", "var": "sum"}.get(op, op)
        reduction = Reduction(f"f{fold}", name, spec.parts(), lambda *_: ())
        accumulated = old[1:] if op == "var" else old
        new = reduction.combined(scope, accumulated, values, fused=True)
        for argument, var in zip(arguments[1:] if op == "var" else arguments, new, strict=True):
            scope.add(Store(argument, start, var, stride, count, each=lanes_each))

    def _fold_layout(self, fold: int) -> Layout:
        reads = self.lowering.region.reads[fold]
        best: Layout = ()
        for key in reads:
            layout = key.layout if isinstance(key, Access) else self.lowering.region.layouts[key]
            if sum(axis is not None for axis in layout) > sum(axis is not None for axis in best) or not best:
                best = layout
        rank = len(self.lowering.folds[fold].item)
        return (None,) * (rank - len(best)) + best

    def _begin_block(self, scope: Scope) -> None:
        """Set the block's accumulators: to the identity, or to what the batch before left unfinished."""
        lowering = self.lowering
        for fold in lowering.region.folds:
            spec = lowering.folds[fold]
            for part, dtype in enumerate(spec.parts()):
                target = lowering.arguments.get("partial", dtype, fold, part)
                carry = lowering.arguments.get("carry", dtype, fold, part)
                inner = scope.inner(1)
                if spec.op == "var" and part == 0:
                    fresh = self._first_record(inner, fold)
                else:
                    value = _start(spec.op, dtype, part)
                    fresh = inner.let(Number(value), dtype, mask_bytes=1)
                inner.add(Store(target, f"block * {spec.numbers} + j", fresh, 1, "1"))
                load = scope.inner(1)
                old = loaded(load, Load(carry, "j", 1))
                load.add(Store(target, f"block * {spec.numbers} + j", old, 1, "1"))
                scope.add(
                    If(
                        "(block == 0) & (phase > 0)",
                        (For("j", self._from("0"), self._till(spec.numbers), self._step(), tuple(load.statements)),),
                        (For("j", self._from("0"), self._till(spec.numbers), self._step(), tuple(inner.statements)),),
                    )
                )

    def _from(self, start: str) -> str:
        return "lid" if not self.lowering.cpu else "from" if self._tiled() else start

    def _till(self, numbers: int) -> str:
        return "till" if self._tiled() else str(numbers)

    def _step(self) -> str:
        return "1" if self.lowering.cpu else str(LANES)

    def _tiled(self) -> bool:
        return self.lowering.tile != self.lowering.columns

    def _first_record(self, scope: Scope, fold: int) -> Var:
        """A variance's shift starts as zero; the first record of the block replaces it (see `columns_body`)."""
        return scope.let(Number(0), self.lowering.folds[fold].parts()[0])

    # -- bodies -------------------------------------------------------------------------------

    def rows_body(self) -> list[Stmt]:
        """Each work-item (CPU) or work-group (GPU) takes a run of rows."""
        rows = self.lowering.rows
        inner = [
            SetInteger("record", "r" if rows == 1 else f"r / {rows}"),
            *([] if rows == 1 else [SetInteger("outer", f"r % {rows}")]),
            *self.scope.statements,
        ]
        if self.lowering.cpu:
            start = [SetInteger("start", "gid * chunk"), SetInteger("stop", "min(n, start + chunk)")]
            return [*self.declared, *start, For("r", "start", "stop", "1", tuple(inner))]
        return [*self.declared, For("r", "gid", "n", "gsize", tuple(inner))]

    def columns_body(self) -> list[Stmt]:
        """Each work-item takes the records of one block (and a tile of its columns) in order."""
        lowering = self.lowering
        head = Scope(self.lowering.names, lanes=1)
        self._begin_block(head)
        rows = lowering.rows
        record: list[Stmt] = list(self.scope.statements)
        if rows > 1:
            record = [For("outer", "0", str(rows), "1", tuple(record))]
        shifts = [fold for fold in lowering.region.folds if lowering.folds[fold].op == "var"]
        first: list[Stmt] = []
        if shifts:
            first = self._shift_sweep(shifts)
        block = lowering.folds[lowering.region.folds[0]].block
        bounds = [
            SetInteger("lo", f"max((long)0, block * {block} - phase)"),
            SetInteger("hi", f"min(n, (block + 1) * {block} - phase)"),
        ]
        tiles: list[Stmt] = []
        if self._tiled():
            count = -(-lowering.columns // lowering.tile)
            tiles = [
                SetInteger("block", f"unit / {count}"),
                SetInteger("from", f"(unit % {count}) * {lowering.tile}"),
                SetInteger("till", f"min((long){lowering.columns}, from + {lowering.tile})"),
            ]
        else:
            tiles = [SetInteger("block", "unit")]
        loop = For("record", "lo", "hi", "1", tuple(record))
        total = f"blocks * {-(-lowering.columns // lowering.tile)}" if self._tiled() else "blocks"
        body = [*tiles, *bounds, *head.statements, *first, loop]
        return [*self.declared, *units_loop("unit", f"({total})", lowering.cpu, tuple(body))]

    def _shift_sweep(self, shifts: list[int]) -> list[Stmt]:
        """Store the first record of a fresh block as the shift of its variances."""
        lowering = self.lowering
        row = Scope(lowering.names, lanes=self.scope.lanes)
        walk = RowWalk(lowering, row, self.block)
        walk.arrays, walk.kept_masks = self.arrays, self.kept_masks
        walk.declared = self.declared
        for phase in range(lowering.depth):
            walk._reduce(phase)
        walk.shift_columns(shifts)
        body: list[Stmt] = list(row.statements)
        if lowering.rows > 1:
            body = [For("outer", "0", str(lowering.rows), "1", tuple(body))]
        return [If("(block > 0) | (phase == 0)", (SetInteger("record", "lo"), *body))]

    def shift_columns(self, shifts: list[int]) -> None:
        """One sweep that stores the operands of variances as their shifts."""
        lowering = self.lowering
        lanes, columns = lowering.lanes, lowering.columns

        def at(point: ColumnPoint) -> None:
            for fold in shifts:
                spec = lowering.folds[fold]
                place = lowering.place(self._fold_layout(fold), spec.item, False)
                index, stride, each = self.address(self.base(f"part{fold}", place), place, point.column)
                argument = lowering.arguments.get("partial", spec.parts()[0], fold, 0)
                value = point.value(lowering.region.reads[fold][0])
                offset = f"block * {spec.numbers} + "
                point.scope.add(
                    Store(
                        argument,
                        offset + index,
                        value,
                        stride,
                        point.count,
                        each=None if each is None else offset + each,
                    )
                )

        main = self.scope.inner(lanes)
        at(ColumnPoint(self.row, main, "c", None, 2 * lowering.depth))
        if not lowering.cpu:
            self.scope.add(For("c", "lid", str(columns), str(LANES), tuple(main.statements)))
            return
        tail = self.scope.inner(lanes)
        at(ColumnPoint(self.row, tail, "c", "left", 2 * lowering.depth))
        start, stop = ("from", "till") if self._tiled() else ("0", str(columns))
        self.scope.add(
            SetInteger("whole", f"{stop} - ({stop} - {start}) % {lanes}"),
            For("c", start, "whole", str(lanes), tuple(main.statements)),
            SetInteger("c", "whole"),
            If(f"c < {stop}", (SetInteger("left", f"{stop} - c"), *tail.statements)),
        )


def index_operand_of(scope: Scope, text: str) -> Var:
    """One index in all lanes."""
    return scope.let(Integer(text), INT64)


def _start(op: str, dtype: np.dtype, part: int) -> object:
    if op in ("argmin", "argmax") and part == 1:
        return int(np.iinfo(np.int64).max)
    value = identity("sum" if op == "var" else op, dtype)
    return value.item() if isinstance(value, np.generic) else value
