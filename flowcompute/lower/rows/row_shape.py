"""Row structure of a region: axes, strides, phases, and values worth keeping between sweeps.

A **row** runs over the column axes: the reduced ones, else the last. The other axes of the domain number
the rows of a record. Reductions of depth k need k sweeps over the row (phases). A last sweep computes the
outputs. Costly values of an earlier sweep are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flowcompute.elements import Kind
from flowcompute.fuse import Access, Layout, Region
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import FoldSpec, IndexLike, Storage, c_strides, register_dtype, storage
from flowcompute.lower.emit import Key, Point, Scope, loads_of
from flowcompute.lower.kernel_knobs import FormKnobs, KernelStyle, written_turns
from flowcompute.lower.reduction import Parts, Reduction
from flowcompute.spec import INT64

KEPT_COST = 8
KEPT_NUMBERS = 16384

COLUMN_TILE = 1024
"""Columns of a fold per work-item, where there are no rows to reduce."""


@dataclass(frozen=True)
class RowStrides:
    """Strides of a value in numbers, over records, row axes and column axes."""

    record: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]


class RowShape:
    """Facts about a region that lowering needs before it emits anything."""

    def __init__(
        self, graph: Graph, region: Region, style: KernelStyle, folds: dict[int, FoldSpec], knobs: FormKnobs
    ) -> None:
        capabilities = style.capabilities
        self.graph = graph
        self.region = region
        self.folds = folds
        self.cpu = capabilities.code_shape == "cpu"
        self.knobs = settled = style.settled(knobs)
        self.lanes = (settled.vector_width or capabilities.lanes) if self.cpu else 1
        self.turns = written_turns(settled)
        self.group = settled.work_group or 1
        self.shuffles = capabilities.shuffles
        # In a GPU's own buffers, vectors begin at multiples of their size.
        self.own_buffers = not self.cpu and not capabilities.host_memory
        axes = range(len(region.domain))
        reduced = sorted(region.reduced)
        self.column_axes = reduced or self._trailing()
        self.row_axes = [axis for axis in axes if axis not in self.column_axes]
        self.columns = math.prod(region.domain[axis] for axis in self.column_axes)
        self.rows = math.prod(region.domain[axis] for axis in self.row_axes)
        self.phase_of = self._phases()
        self.depth = max([0, *(phase + 1 for i, phase in self.phase_of.items() if self.kind(i) is Kind.REDUCE)])
        self.kept = self.worth_keeping() if self.cpu and self.columns <= KEPT_NUMBERS else {}
        # Several work-items or work-groups may share a record's columns when no row has to be seen whole.
        apart = bool(region.folds) and not self.depth and self.rows == 1
        self.tiled = apart and (not self.cpu or self.columns > COLUMN_TILE)
        self.tile = (COLUMN_TILE if self.cpu else self.group) if self.tiled else self.columns

    # -- shape of the rows --------------------------------------------------------------------

    def _trailing(self) -> list[int]:
        """Return the column axes of a region without reductions.

        These are as many trailing axes as every value runs along in the same way (all or none of them).
        """
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
        loads = loads_of(self.graph, region)
        return values + [(access.layout, nodes[access.value].spec.shape) for access in loads]

    def _alike(self, layout: Layout, shape: tuple[int, ...], first: int, second: int) -> bool:
        wide = [axis for axis, size in zip(layout, shape, strict=True) if axis is not None and size != 1]
        domain = self.region.domain
        if domain[first] == 1 or domain[second] == 1:
            return True
        if (first in wide) != (second in wide):
            return False
        return first not in wide or wide.index(second) == wide.index(first) + 1

    def kind(self, node: int) -> Kind | None:
        """Return the kind of a node."""
        return self.graph.nodes[node].kind

    def is_full(self, layout: Layout, shape: tuple[int, ...]) -> bool:
        """Check whether a value differs from column to column."""
        return any(axis in self.column_axes and size != 1 for axis, size in zip(layout, shape, strict=True))

    def full_key(self, key: Key) -> bool:
        """Check whether a node or access differs from column to column."""
        if isinstance(key, Access):
            return self.is_full(key.layout, self.graph.nodes[key.value].spec.shape)
        return self.is_full(self.region.layouts[key], self.graph.nodes[key].spec.shape)

    def place(self, layout: Layout, shape: tuple[int, ...], stream: bool) -> RowStrides:
        """Return the strides of a C-contiguous value of this item shape."""
        return self._placed(layout, shape, c_strides(shape), math.prod(shape) if stream else 0)

    def stored(self, node: int) -> RowStrides:
        """Return the strides of a node's value, as an output or a generated stream."""
        return self.place(self.region.layouts[node], self.graph.nodes[node].spec.shape, True)

    def place_of(self, access: Access) -> tuple[Storage, RowStrides]:
        """Return the storage and the strides of a value that the region reads."""
        lies = storage(self.graph, access.value, self.region.entered)
        shape = self.graph.nodes[access.value].spec.shape
        return lies, self._placed(access.layout, shape, lies.strides, lies.record)

    def _placed(self, layout: Layout, shape: tuple[int, ...], own: tuple[int, ...], record: int) -> RowStrides:
        strides = [0] * len(self.region.domain)
        for axis, size, stride in zip(layout, shape, own, strict=True):
            if axis is not None and size != 1:
                strides[axis] = stride
        return RowStrides(
            record,
            tuple(strides[axis] for axis in self.row_axes),
            tuple(strides[axis] for axis in self.column_axes),
        )

    def moves_vectors(self, vector: int, *, views: bool = False) -> bool:
        """Check whether vectors of columns begin at multiples of their size in all that a kernel moves.

        Args:
            vector: numbers that are neighbours.
            views: whether columns may have other strides along all axes but the last.
        """
        if not self.own_buffers or self.columns % vector:
            return False
        read = [self.place_of(access) for access in loads_of(self.graph, self.region) if self.full_key(access)]
        places = [place for _, place in read] + [self.stored(i) for i in self.region.outputs if self.full_key(i)]
        begins = [lies.offset for lies, _ in read]
        begins += [number for place in places for number in (place.record, *place.rows)]
        if any(number % vector for number in begins):
            return False
        return all(self._is_dense(place) or (views and self._ends_in(place, vector)) for place in places)

    def _is_dense(self, place: RowStrides) -> bool:
        """Check whether neighbouring columns are neighbours in memory."""
        wide = self._wide(place)
        below = [math.prod(size for size, _ in wide[position + 1 :]) for position in range(len(wide))]
        return [stride for _, stride in wide] == below

    def _ends_in(self, place: RowStrides, vector: int) -> bool:
        """Check whether the last axis consists of whole vectors, which begin at multiples of their size."""
        *others, last = self._wide(place) or [(1, 0)]
        return last[1] == 1 and last[0] % vector == 0 and not any(stride % vector for _, stride in others)

    def _wide(self, place: RowStrides) -> list[tuple[int, int]]:
        """Return size and stride of each column axis with several columns."""
        sizes = [self.region.domain[axis] for axis in self.column_axes]
        return [(size, stride) for size, stride in zip(sizes, place.columns, strict=True) if size != 1]

    # -- reductions ---------------------------------------------------------------------------

    def reduction(self, node: int, point: Callable[[Scope, IndexLike, IndexLike | None], Point]) -> Reduction:
        """Return the reduction of a node, whose operands are values at `point(scope, column, count)`."""
        reduced = self.graph.nodes[node]
        assert reduced.op is not None
        op, reads = reduced.op.name, self.region.reads[node]
        source = register_dtype(self.graph.nodes[reduced.inputs[0]].spec.dtype)

        def operands(scope: Scope, column: IndexLike, count: IndexLike | None) -> Parts:
            at = point(scope, column, count)
            return tuple(at.value(key) for key in reads)

        return Reduction(f"n{node}", op, (source, INT64) if op in ("argmin", "argmax") else (source,), operands)

    # -- phases -------------------------------------------------------------------------------

    def _phases(self) -> dict[int, int]:
        """Return for each node the sweep that can first compute it (for a reduction: accumulate it)."""
        phases: dict[int, int] = {}
        for i in self.region.nodes:
            inside = [o for o in self.region.reads[i] if isinstance(o, int)]
            phases[i] = max([0, *(phases[o] + (self.kind(o) is Kind.REDUCE) for o in inside)])
        return phases

    def targets(self, phase: int) -> list[int]:
        """Return the nodes for which sweep number `phase` exists; the last sweep computes outputs and folds."""
        if phase < self.depth:
            return [i for i in self.region.nodes if self.kind(i) is Kind.REDUCE and self.phase_of[i] == phase]
        return [i for i in self.region.outputs if self.full_key(i)] + list(self.region.folds)

    def _needs(self, phase: int) -> set[int]:
        """Return the full-level element-wise nodes that a sweep evaluates."""
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

    def worth_keeping(self) -> dict[int, int]:
        """Return costly nodes that a later sweep needs again, with the sweep that computes them."""
        needs = [self._needs(phase) for phase in range(self.depth + 1)]
        computed = [needed.union(self.targets(phase)) for phase, needed in enumerate(needs)]
        users: dict[Key, list[int]] = {}
        for user in self.region.nodes:
            for operand in self.region.reads[user]:
                users.setdefault(operand, []).append(user)
        kept: dict[int, int] = {}
        for node in reversed(self.region.nodes):
            phases = [phase for phase, needed in enumerate(needs) if node in needed]
            if len(phases) < 2 or not self._is_costly(node):
                continue
            later = [u for u in users.get(node, ()) if any(u in computed[phase] for phase in phases[1:])]
            stored = node in self.region.outputs and self.depth in phases[1:]
            if stored or any(kept.get(user) != phases[0] for user in later):
                kept[node] = phases[0]
        return kept

    def _is_costly(self, node: int) -> bool:
        """Check whether computing a node from loads and row values costs more than keeping it."""
        seen: set[int] = set()
        todo, cost = [node], 0
        while todo and cost < KEPT_COST:
            i = todo.pop()
            if i in seen or self.kind(i) is not Kind.ELEMENTWISE or not self.full_key(i):
                continue
            seen.add(i)
            cost += self._cost(i)
            todo.extend(o for o in self.region.reads[i] if isinstance(o, int))
        return cost >= KEPT_COST
