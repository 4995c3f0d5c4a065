"""Regions under construction: their nodes, their operands and their dependencies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from flowcompute.elements import Constant, Kind
from flowcompute.elements.axes import INDEX
from flowcompute.fuse.dependencies import Dependencies
from flowcompute.fuse.nan_bits import exposed_values
from flowcompute.fuse.region import Access, Layout, Region
from flowcompute.graph import Graph, Node, changing_values
from flowcompute.imports import dataclass

MAX_POINTERS = 16
MAX_NODES = 300
MAX_SWEEPS = 16
"""Reductions in a row, each of which goes over the items once more and computes again what is before it."""
FOLD_BESIDE_ROWS = 4096
"""Widest item whose columns are folded in the same kernel that reduces its rows."""


@dataclass(frozen=True)
class OpenedView:
    """A view that only inserts axes of size 1: a kernel that computes what it is of reads through it.

    `x * z[:, None]` reads a number of each record beside the record's row. The view has strides, so otherwise the
    numbers would be stored for a second kernel, and the rows read twice.

    Attributes:
        base: the value that it is of.
        kept: by axis of its items whether it is one of that value; the others have size 1.
    """

    base: int
    kept: tuple[bool, ...]


@dataclass
class Group:
    """A region under construction.

    See `Region` for attributes that are not named here.

    Attributes:
        pointers: the values that it reads through a pointer. Scalar constants are passed by value.
        sweeps: how many reductions in a row a value depends on, for values that depend on one in this region.
        again: whether it computes values a second time, which must not happen where they are computed first.
    """

    id: int
    stream: bool
    level: int
    domain: tuple[int, ...]
    reduced: frozenset[int] = frozenset()
    nodes: list[int] = field(default_factory=list)
    layouts: dict[int, Layout] = field(default_factory=dict)
    reads: dict[int, tuple[int | Access, ...]] = field(default_factory=dict)
    folds: list[int] = field(default_factory=list)
    anchor: int | None = None
    pointers: set[int] = field(default_factory=set)
    sweeps: dict[int, int] = field(default_factory=dict)
    again: bool = False

    @property
    def trivial(self) -> bool:
        """Flag that every value is one number per item, so that any domain fits."""
        return math.prod(self.domain) == 1 and not self.reduced and not self.folds and self.anchor is None


class Groups:
    """The regions under construction, and the nodes between them that no kernel computes."""

    def __init__(
        self, graph: Graph, levels: Sequence[int], opened: Mapping[int, OpenedView], *, folds_apart: bool
    ) -> None:
        self.graph = graph
        self.folds_apart = folds_apart
        self.opened = opened
        self.levels = levels
        self.groups: dict[int, Group] = {}
        self.group_of: dict[int, int] = {}
        self.host_folds: list[int] = []
        self.dependencies = Dependencies(graph)
        self.changing = changing_values(graph)

    def changes(self, nodes: Iterable[int]) -> bool:
        """Check whether some of these resident values are others where the graph is run again."""
        return not self.changing.isdisjoint(nodes)

    def start(self, node: Node, domain: tuple[int, ...], *, stream: bool, anchor: int | None = None) -> Group:
        """Start a region, whose id is that of its first node."""
        group = Group(node.id, stream, self.levels[node.id], domain, anchor=anchor, again=node.again)
        self.groups[node.id] = group
        self.dependencies.add(node.id)
        return group

    def why_folded_apart(self, domain: tuple[int, ...]) -> str | None:
        """Return why no kernel on this domain both folds records and reduces rows; None if one may."""
        if math.prod(domain) == 1:
            return "numbers are folded in blocks of records, not row by row"
        if self.folds_apart:
            return "a GPU folds columns in a kernel of their own"
        if math.prod(domain) > FOLD_BESIDE_ROWS:
            return "rows this wide are folded in a kernel of their own"
        return None

    def put(self, group: Group, node: int) -> None:
        """Add a node to a region."""
        self.group_of[node] = group.id
        self.dependencies.join(group.id, node)

    def set_reads(self, group: Group, node: int, operands: tuple[int | Access, ...]) -> None:
        """Record the operands of a node of a region."""
        group.reads[node] = operands
        values = [operand.value for operand in operands if isinstance(operand, Access)]
        group.pointers |= self.pointer_arguments(values)
        self.dependencies.read(group.id, values)

    def operands(self, node: Node) -> tuple[int, ...]:
        """Return the operands of a node; in place of opened views what they are of, where a region computes that."""
        if not self.opened:
            return node.inputs
        below = ((i, self.opened.get(i)) for i in node.inputs)
        return tuple(i if view is None or view.base not in self.group_of else view.base for i, view in below)

    def layout_in(self, group: Group, value: int) -> Layout | None:
        """Return the domain axis of each axis of a value that a region computes, or of an opened view of it."""
        view = self.opened.get(value)
        if view is None or view.base not in group.layouts:
            return group.layouts.get(value)
        own = iter(group.layouts[view.base])
        return tuple(next(own) if kept else None for kept in view.kept)

    def pointer_arguments(self, values: Iterable[int]) -> set[int]:
        """Return the values that a kernel reads through a pointer."""
        nodes = self.graph.nodes
        return {i for i in values if not (isinstance(nodes[i].element, Constant) and not nodes[i].spec.shape)}

    def external(self, group: Group) -> list[int]:
        """Return the operands of the region's nodes that other regions or steps compute."""
        return [
            operand.value for operands in group.reads.values() for operand in operands if isinstance(operand, Access)
        ]

    def unite(self, target: Group, groups: list[Group], domain: tuple[int, ...]) -> None:
        """Merge all these regions into `target`, on a domain that fits all."""
        if target.domain != domain:
            target.layouts = {i: (None,) * len(layout) for i, layout in target.layouts.items()}
            target.reads = {i: _flattened(operands) for i, operands in target.reads.items()}
            target.domain = domain
        for other in groups:
            if other is target:
                continue
            if other.domain != domain:
                other.layouts = {i: (None,) * len(layout) for i, layout in other.layouts.items()}
                other.reads = {i: _flattened(operands) for i, operands in other.reads.items()}
            target.reduced |= other.reduced
            target.nodes = sorted(target.nodes + other.nodes)
            target.folds = sorted(target.folds + other.folds)
            target.anchor = other.anchor if target.anchor is None else target.anchor
            target.layouts |= other.layouts
            target.reads |= other.reads
            target.pointers |= other.pointers
            target.sweeps |= other.sweeps
            for i in other.nodes + other.folds:
                self.group_of[i] = target.id
            self.dependencies.merge(target.id, other.id)
            del self.groups[other.id]

    def title(self, group: Group) -> str:
        """Return the name of the region, which is that of its last node."""
        return self.graph.nodes[max(group.nodes + group.folds)].name

    # -- result -----------------------------------------------------------------------------

    def regions(self, wanted: set[int]) -> list[Region]:
        """Return the finished regions. `wanted` are values that sinks and other steps read."""
        used = set(wanted)
        for group in self.groups.values():
            used.update(self.external(group))
        for fold in self.host_folds:
            used.update(self.graph.nodes[fold].inputs)
        # Views come after what they are of.
        for value in sorted(self.opened, reverse=True):
            if value in used:
                used.add(self.opened[value].base)
        inorder = sorted(self.groups.values(), key=lambda g: min(g.nodes + g.folds))
        return [self._region(group, used) for group in inorder]

    def _region(self, group: Group, used: set[int]) -> Region:
        """Return a finished region, which stores what is `used`."""
        nodes = tuple(sorted(group.nodes))
        outputs = tuple(i for i in nodes if i in used)
        return Region(
            name=self.title(group),
            stream=group.stream,
            level=group.level,
            domain=group.domain,
            reduced=group.reduced,
            nodes=nodes + tuple(sorted(group.folds)),
            layouts=group.layouts,
            reads=group.reads,
            outputs=outputs,
            folds=tuple(sorted(group.folds)),
            exposed=exposed_values(self.graph, nodes, outputs),
            anchor=group.anchor,
        )


def opened_views(graph: Graph) -> dict[int, OpenedView]:
    """Return the views of streams that only insert item axes, by node."""
    return {node.id: view for node in graph.nodes if (view := _opened(graph, node)) is not None}


def _opened(graph: Graph, node: Node) -> OpenedView | None:
    if node.kind is not Kind.VIEW or node.op is not INDEX or not node.spec.is_stream:
        return None
    base = graph.nodes[node.inputs[0]]
    index = node.attrs["index"]
    kept = tuple(key is not None for key in index)
    whole = tuple((0, size, 1) for size in base.spec.shape)
    if all(kept) or tuple(key for key in index if key is not None) != whole or not base.spec.is_stream:
        return None
    return OpenedView(base.id, kept)


def _flattened(operands: tuple[int | Access, ...]) -> tuple[int | Access, ...]:
    return tuple(
        Access(operand.value, (None,) * len(operand.layout)) if isinstance(operand, Access) else operand
        for operand in operands
    )


def own_axes(shape: tuple[int, ...]) -> Layout:
    """Return the layout of a value that spans the domain."""
    return tuple(range(len(shape)))


def spread(axes: Layout, shape: tuple[int, ...], domain: tuple[int, ...]) -> Layout:
    """Return the layout in which axes without a domain axis get the domain's axis at their position, if it fits."""
    if len(shape) != len(domain):
        return axes
    return tuple(
        own if axis is None and own not in axes and size == domain[own] != 1 else axis
        for own, (axis, size) in enumerate(zip(axes, shape, strict=True))
    )
