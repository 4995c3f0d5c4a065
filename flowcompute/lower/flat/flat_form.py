"""Kernels over a flat sequence of numbers: element-wise regions, and folds of streams of numbers."""

from __future__ import annotations

import itertools

import numpy as np

from flowcompute.elements.generated import Generator
from flowcompute.fuse import Access, Reason, Region
from flowcompute.graph import Graph, Node
from flowcompute.ir import (
    BLOCK,
    BLOCKS,
    FIRST,
    GID,
    GSIZE,
    LANES,
    LID,
    WID,
    WSIZE,
    FoldSpec,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    N,
    Name,
    Picked,
    SetInteger,
    Stmt,
    Store,
    Var,
    all_of,
    choose,
    equal,
    has_dense_items,
    index_min,
    is_dense,
    names,
    register_dtype,
    storage,
)
from flowcompute.ir.launches import by_blocks, by_numbers
from flowcompute.lower.emit import CHUNK_RANGE, START, STOP, Arguments, Point, Scope, loaded, loads_of, units_loop
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import (
    CPU_ITEMS,
    CPU_PARTS,
    CPU_VECTOR,
    GPU_FOLD_PARTS,
    GROUPS,
    ITEMS,
    TURNS,
    UNROLL,
    WORK_GROUP,
    FormKnobs,
    KernelStyle,
    Knob,
    written_turns,
)
from flowcompute.lower.reduction import Parts, Reduction, moved
from flowcompute.lower.rows import Slot, Subgroup, VectorBlocks, subgroup_size

_I, _WHOLE, _LEFT = names("i whole left")
"""Number of a work-item's next vector, end of its whole vectors, and numbers behind it."""
_TURN, _BLOCK, _BASE = names("turn block base")
"""First block of a work-group's turn, a block, and its first number."""
_LEFT_OF_BLOCK = Name("left", narrow=True)


def is_flat(graph: Graph, region: Region) -> bool:
    """Check whether all streams of the region run densely over its domain, and residents cyclically."""
    if region.reduced or (region.folds and region.numbers != 1):
        return False
    made = [i for i in region.nodes if isinstance(graph.nodes[i].op, Generator)]
    if any(graph.nodes[i].spec.item_numbers != region.numbers for i in made):
        return False
    return all(_fits(graph, region, access) for access in loads_of(graph, region)) and all(
        graph.nodes[i].spec.item_numbers == region.numbers for i in region.outputs
    )


def _fits(graph: Graph, region: Region, access: Access) -> bool:
    spec = graph.nodes[access.value].spec
    if spec.is_stream and region.stream:
        # A single number may be anywhere in its record; several numbers must be dense.
        return spec.item_numbers == region.numbers and (
            region.numbers == 1 or is_dense(graph, access.value, region.entered)
        )
    if spec.item_numbers == region.numbers:
        # Kernels read through views of some residents.
        return has_dense_items(graph, access.value)
    return spec.item_numbers == 1 or is_suffix(spec.shape, access, region)


def is_suffix(shape: tuple[int, ...], access: Access, region: Region) -> bool:
    """Check whether a resident value repeats with its own size as period."""
    core = [size for size in shape if size != 1]
    return (
        core == [size for size in region.domain if size != 1][len(_wide(region)) - len(core) :]
        and [axis for axis in access.layout if axis is not None] == _wide(region)[len(_wide(region)) - len(core) :]
    )


def _wide(region: Region) -> list[int]:
    return [axis for axis, size in enumerate(region.domain) if size != 1]


class FlatPoint(Point):
    """Numbers of the batch from `index` on, one for each lane, of which `count` exist."""

    def __init__(self, parent: FlatLowering, scope: Scope, index: IndexLike, count: IndexLike | None) -> None:
        super().__init__(parent.graph, parent.region, parent.arguments, scope)
        self.lowering = parent
        self.index = index
        self.count = count
        self.aligned = parent.aligned and count is None and scope.lanes > 1

    def load(self, access: Access) -> Var:
        """Load from the flat index, or cyclically."""
        spec = self.graph.nodes[access.value].spec
        dense = spec.item_numbers == self.region.numbers and (spec.is_stream or not self.region.stream)
        if dense:
            lies = storage(self.graph, access.value, self.region.entered)
            argument = self.arguments.input(self.graph, self.region, lies.base)
            if not spec.is_stream or is_dense(self.graph, access.value, self.region.entered):
                return loaded(self.scope, Load(argument, self.index, 1, self.count, aligned=self.aligned))
            index = self.index * lies.record + lies.offset
            return loaded(self.scope, Load(argument, index, lies.record, self.count))
        if spec.item_numbers == 1:
            return loaded(self.scope, Load(self.arguments.input(self.graph, self.region, access.value), 0, 0))
        # A resident operand is uploaded with its first vector repeated behind it, so a vector never wraps.
        argument = self.arguments.get("input", spec.dtype, access.value, period=spec.item_numbers)
        return loaded(self.scope, Load(argument, self.lowering.cyclic(spec.item_numbers, self.scope, self.index)))

    def position(self, node: Node) -> tuple[IndexLike, int, None]:
        """Return the flat index, counted from the first record of the stream."""
        return FIRST * node.spec.item_numbers + self.index, 1, None


class FlatLowering:
    """Lowering of a flat region."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle, folds: dict[int, FoldSpec]) -> None:
        self.graph = graph
        self.region = region
        self.folds = folds
        capabilities = style.capabilities
        self.knobs = knobs = style.settled((NUMBERS if region.folds else MAP).knobs)
        self.cpu = capabilities.code_shape == "cpu"
        self.shuffles = capabilities.shuffles
        self.group = knobs.work_group or 1
        self.subgroup = subgroup_size(self.group, shuffle=capabilities.shuffles)
        self.lanes = knobs.vector_width or 4
        # In a GPU's own buffers, vectors begin at multiples of their size.
        self.aligned = not self.cpu and not capabilities.host_memory
        self.arguments = Arguments()
        self.names = itertools.count()
        self.periods: dict[int, Name] = {}

    def lower(self, name: str) -> Kernel:
        """Return the kernel."""
        body = self._fold_body() if self.region.folds else self._map_body()
        return Kernel(
            name,
            self.region.name,
            self.arguments.ordered(),
            tuple(body),
            work="records" if self.region.folds else "flat",
            work_group=self.group,
            block=BLOCK if self.region.folds else 0,
            units=1 if self.region.folds else self.region.numbers,
            lanes=self.lanes,
            knobs=self.knobs,
        )

    # -- maps ---------------------------------------------------------------------------------

    def cyclic(self, period: int, scope: Scope, index: IndexLike) -> IndexLike:
        """Return the index in a cyclic operand for the flat index; CPUs increment it instead of dividing."""
        if not self.cpu:
            return scope.integer(index % period)
        return self.periods.setdefault(period, Name(f"p{len(self.periods)}"))

    def _points(self, point: FlatPoint) -> None:
        for output in self.region.outputs:
            point.store(output, point.index, 1, point.count, aligned=point.aligned)

    def _map_body(self) -> list[Stmt]:
        """Distribute `chunk` numbers to each work-item, in vectors; the very last vector may be partial."""
        lanes, turns = self.lanes, written_turns(self.knobs)
        main = Scope(self.names, lanes=lanes)
        self._points(FlatPoint(self, main, _I, None))
        tail = Scope(self.names, lanes=lanes)
        self._points(FlatPoint(self, tail, _I, _LEFT))
        rest = If(_I < STOP, (SetInteger(_LEFT, STOP - _I), *tail.statements))
        if not self.cpu:
            whole = If(_I + lanes <= N, tuple(main.statements), (SetInteger(_LEFT, N - _I), *tail.statements))
            return [For(_I, WID * lanes, N, WSIZE * lanes, (whole,), unroll=turns)]
        start = [*CHUNK_RANGE, *(SetInteger(place, START % period) for period, place in self.periods.items())]
        for period, place in self.periods.items():
            step = lanes % period
            after = place + step
            main.add(SetInteger(place, after - choose(after >= period, period, 0), new=False))
        loop: list[Stmt] = [
            SetInteger(_WHOLE, STOP - (STOP - START) % lanes),
            For(_I, START, _WHOLE, lanes, tuple(main.statements), unroll=turns),
            SetInteger(_I, _WHOLE),
            rest,
        ]
        return start + loop

    # -- folds --------------------------------------------------------------------------------

    def _reductions(self) -> list[Reduction]:
        return [self._reduction(fold) for fold in self.region.folds]

    def _reduction(self, fold: int) -> Reduction:
        spec = self.folds[fold]
        reads = self.region.reads[fold]

        def operands(scope: Scope, column: IndexLike, count: IndexLike | None) -> Parts:
            point = FlatPoint(self, scope, column, count)
            if self.cpu and fold == self.region.folds[0]:
                self._points(point)
            values = tuple(point.value(key) for key in reads)
            if spec.op == "var":
                shift = scope.find(_shift(fold))
                assert shift is not None
                return moved(scope, values[0], shift)
            return values

        return Reduction(f"f{fold}", spec.op, accumulators(spec), operands, FIRST)

    def _fold_body(self) -> list[Stmt]:
        """Reduce blocks of records, one at a time, by work-items (CPU) or work-groups (GPU)."""
        scope = Scope(self.names, lanes=self.lanes if self.cpu else 1)
        scope.add(SetInteger(_BASE, _BLOCK * BLOCK))
        reductions = self._reductions()
        for fold in self.region.folds:
            if self.folds[fold].op == "var":
                first = FlatPoint(self, scope.inner(4 if self.cpu else 1), _BASE, 1)
                value = first.value(self.region.reads[fold][0])
                scope.add(*first.scope.statements)
                # Of the vector only the first lane exists; a splat of a vector would be the vector as it stands.
                scope.known[_shift(fold)] = scope.let(Picked((value,), (0,)), value.dtype, 1)
        if self.cpu:
            self._vector_blocks(scope, reductions)
            return units_loop(_BLOCK, BLOCKS, self.cpu, tuple(scope.statements))
        return self._subgroup_blocks(scope, reductions)

    def _subgroup_blocks(self, scope: Scope, reductions: list[Reduction]) -> list[Stmt]:
        """Reduce a block by each sub-group of a work-group; sub-groups behind the last block repeat it."""
        subgroup = Subgroup(scope, BLOCK, group=self.group, shuffle=self.shuffles, lanes=LANES)
        totals = subgroup.start(reductions)
        whole, short = subgroup.scope.inner(1), subgroup.scope.inner(1)
        for inner, limit in ((whole, None), (short, _LEFT_OF_BLOCK)):
            beside = subgroup.at(inner)
            slots = beside.slots(_BASE, limit)
            beside.accumulate(reductions, totals, slots)
            self._store_slots(inner, slots)
        short.statements.insert(0, SetInteger(_LEFT_OF_BLOCK, N - _BASE))
        scope.add(If(_BASE + BLOCK <= N, tuple(whole.statements), tuple(short.statements)))
        storing = scope.inner(1)
        self._store(storing, subgroup.finish(reductions, totals, spread=False))
        own = _TURN + LID // self.subgroup
        scope.add(If(all_of(equal(subgroup.place, 0), own < BLOCKS), tuple(storing.statements)))
        block = SetInteger(_BLOCK, index_min(own, BLOCKS - 1))
        subgroups = self.group // self.subgroup
        return [For(_TURN, GID * subgroups, BLOCKS, GSIZE * subgroups, (block, *scope.statements))]

    def _store_slots(self, scope: Scope, slots: list[Slot]) -> None:
        """Store the outputs beside the folds, for columns that exist and in the sub-group that owns the block."""
        storing = scope.inner(1)
        for slot in slots if self.region.outputs else ():
            inner = slot.scope.inner(1)
            self._points(FlatPoint(self, inner, slot.column, None))
            storing.add(*inner.statements if slot.valid is None else (If(slot.valid, tuple(inner.statements)),))
        if storing.statements:
            scope.add(If(_TURN + LID // self.subgroup < BLOCKS, tuple(storing.statements)))

    def _vector_blocks(self, scope: Scope, reductions: list[Reduction]) -> None:
        whole, short = scope.inner(), scope.inner()
        blocks = VectorBlocks(whole, reductions, self.lanes)
        self._store(whole, blocks.streamed_block(whole, _BASE))
        blocks = VectorBlocks(short, reductions, self.lanes)
        self._store(short, blocks.dynamic_block(short, _BASE, N - _BASE))
        scope.add(If(_BASE + BLOCK <= N, tuple(whole.statements), tuple(short.statements)))

    def _store(self, scope: Scope, results: list[Parts]) -> None:
        for fold, parts in zip(self.region.folds, results, strict=True):
            shift = scope.find(_shift(fold))
            for part, var in enumerate(parts if shift is None else (shift, *parts)):
                argument = self.arguments.get("partial", self.folds[fold].parts()[part], fold, part)
                scope.add(Store(argument, _BLOCK, var, 1, 1))


def accumulators(spec: FoldSpec) -> tuple[np.dtype, ...]:
    """Return the register dtypes of accumulated parts; a variance's shift is not accumulated."""
    parts = spec.parts()[1:] if spec.op == "var" else spec.parts()
    return tuple(register_dtype(part) for part in parts)


def _shift(fold: int) -> Access:
    return Access(fold, (-3,))


def _why_not(task: LoweringTask) -> Reason | None:
    if task.region.anchor is not None:
        return task.refuse("it has an anchor")
    return None if is_flat(task.graph, task.region) else task.refuse("its values do not lie along one run of numbers")


def _why_no_map(task: LoweringTask) -> Reason | None:
    return task.refuse("it folds a stream") if task.region.folds else _why_not(task)


def _why_no_numbers(task: LoweringTask) -> Reason | None:
    return _why_not(task) if task.region.folds else task.refuse("it folds no stream")


def _lower(task: LoweringTask) -> Kernel:
    return FlatLowering(task.graph, task.region, task.style, task.folds).lower(task.name)


MAP = Form(
    name="map",
    accepts=_why_no_map,
    lower=_lower,
    geometry=by_numbers,
    knobs=FormKnobs(
        cpu=(CPU_VECTOR, UNROLL, CPU_ITEMS),
        # On an H200 one vector for each work-item of small groups is 7 to 9 % faster than several turns of large ones.
        gpu=(
            Knob("vector_width", (2, 4, 8), 4),
            Knob("unroll", TURNS, 1),
            Knob("work_group", GROUPS, 256),
            Knob("items_per_work_item", ITEMS, 4),
        ),
    ),
    joins=True,
)
"""Element-wise operations on a run of numbers."""

NUMBERS = Form(
    name="numbers",
    accepts=_why_no_numbers,
    lower=_lower,
    geometry=by_blocks,
    knobs=FormKnobs(cpu=(CPU_VECTOR, CPU_PARTS), gpu=(WORK_GROUP, GPU_FOLD_PARTS)),
)
"""Folds of a stream of numbers."""
