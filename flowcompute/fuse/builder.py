"""Fusion of nodes into regions, with the reasons for each boundary.

Nodes are visited in topological order. Each joins the region of its operands if one domain fits all (see
`_Builder._join`). Otherwise it starts a region, and the boundary is recorded with its reason. Finally, regions of equal
domain that read a common value are merged (horizontal fusion).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from flowcompute.elements import Kind
from flowcompute.elements.nn import SELECTIVE_SCAN
from flowcompute.elements.quantized import Dequantize
from flowcompute.elements.streams import KernelScan
from flowcompute.fuse.anchors import anchor_name, has_own_nest, share_carry
from flowcompute.fuse.groups import (
    MAX_NODES,
    MAX_POINTERS,
    MAX_SWEEPS,
    Group,
    Groups,
    OpenedView,
    own_axes,
    spread,
)
from flowcompute.fuse.horizontal import merge_horizontally
from flowcompute.fuse.late_choices import LateChoices
from flowcompute.fuse.producers import FusedProducers
from flowcompute.fuse.reasons import Reason
from flowcompute.fuse.region import Access, Layout, Region
from flowcompute.fuse.sharing import Sharing, share_launches
from flowcompute.fuse.stencils import Stencil
from flowcompute.graph import Graph, Node
from flowcompute.ir import CANONICAL_FOLDS

BLOCKS_STORED = "blocks are decoded from memory"


class _Refusal(Exception):  # noqa: N818 - a decision, not an error
    """An exception with the reason why a node cannot join a region."""


class _Builder(Groups):
    def __init__(
        self,
        graph: Graph,
        levels: Sequence[int],
        fused_producers: Sequence[FusedProducers],
        stencils: Sequence[Stencil],
        *,
        wanted: set[int],
        numbers_on_host: bool,
        opened: Mapping[int, OpenedView],
        folds_apart: bool,
    ) -> None:
        super().__init__(graph, levels, opened, folds_apart=folds_apart)
        self.stencils = {user: stencil for stencil in stencils for user in stencil.users}
        self.fused_producers: dict[int, list[FusedProducers]] = {}
        for producers in fused_producers:
            self.fused_producers.setdefault(producers.anchor, []).append(producers)
        self.numbers_on_host = numbers_on_host
        self.users = graph.users()
        self.late = LateChoices(graph, self.users, wanted)
        self.reasons: list[Reason] = []

    # -- one node ---------------------------------------------------------------------------

    def add(self, node: Node) -> None:
        """Add a node to a region, or to the folds that read records on the host."""
        if node.kind is Kind.FOLD and (reason := self._why_on_host(node)) is not None:
            self.host_folds.append(node.id)
            self.reasons.append(Reason("cut", node.name, reason))
            return
        if node.kind is Kind.SCAN and node.id in self.group_of:
            return
        stream = node.spec.is_stream or node.kind is Kind.FOLD
        if node.id in self.stencils:
            self._start_stencil(self.stencils[node.id])
            return
        if has_own_nest(node) or node.kind is Kind.VIEW:
            self._start_anchor(node, stream)
            return
        if isinstance(node.op, Dequantize):
            self._start(node, stream)
            self._record_stored(node, node.id, BLOCKS_STORED)
            return
        operand_groups = [
            group
            for group in dict.fromkeys(self.group_of[i] for i in self.operands(node) if i in self.group_of)
            if self.groups[group].stream == stream and self.groups[group].level == self.levels[node.id]
        ]
        operand_groups.sort()
        # The regions of all operands if possible, otherwise the latest ones, otherwise any that takes it.
        latest = [operand_groups[first:] for first in range(len(operand_groups))]
        for joined in (*latest, *([one] for one in reversed(operand_groups[:-1]))):
            try:
                self._join(node, joined)
            except _Refusal as refusal:
                self.reasons.append(Reason("cut", node.name, str(refusal)))
            else:
                break
        else:
            self._start(node, stream)
        self._record_stored(node, node.id)
        if node.kind is Kind.SCAN:
            self._add_scans_of_carry(node)

    def _record_stored(self, named: Node, reading: int, why: str | None = None) -> None:
        """Record why a node of a region reads from memory what other kernels of its clock compute.

        Args:
            named: the operation that the reasons name: the node itself, or the anchor that it is computed for.
            reading: id of the node.
            why: the reason for operands that are no views; None if the refusals to join their kernels are recorded.
        """
        group = self.groups[self.group_of[named.id]]
        values = [operand.value for operand in group.reads[reading] if isinstance(operand, Access)]
        for value in dict.fromkeys(values):
            base = self._below_views(value)
            owner = self.groups.get(self.group_of.get(base, -1))
            if owner is None or (owner.stream, owner.level) != (group.stream, group.level):
                continue
            text = why if base == value else "it is read in another shape or order"
            if text is not None:
                self.reasons.append(Reason("cut", named.name, f"{self.graph.nodes[base].name} is stored: {text}"))

    def _below_views(self, value: int) -> int:
        """Return the value that a value is a view of. What a kernel gathers is no view."""
        nodes = self.graph.nodes
        while value not in self.group_of and nodes[value].kind is Kind.VIEW:
            value = nodes[value].inputs[0]
        return value

    def _add_scans_of_carry(self, node: Node) -> None:
        """Make a scan the anchor of its region, and add the other components of its carry."""
        group = self.groups[self.group_of[node.id]]
        group.anchor = node.id
        for other in sorted(set(self.users[node.inputs[0]])) if isinstance(node.element, KernelScan) else ():
            if other > node.id and share_carry(node, self.graph.nodes[other]):
                self._place(group, self.graph.nodes[other], group.layouts[node.id])

    def _why_on_host(self, node: Node) -> str | None:
        """Return why a fold reads records on the host; None if a kernel reduces its blocks."""
        assert node.op is not None
        if node.op.name not in CANONICAL_FOLDS:
            return "its state is kept on the host, which takes the records in order"
        if self.numbers_on_host and math.prod(self._operand_shape(node)) == 1:
            return "records are sent by hand, a few at a time: kernels fold whole blocks of numbers"
        # A kernel reduces each record to one number.
        few = len(node.inputs) > 1 and node.op.name != "vecdot"
        owner = self.group_of.get(node.inputs[0])
        wide = owner is not None and math.prod(self.groups[owner].domain) > 1
        if few or (wide and math.prod(self._operand_shape(node)) == 1):
            return "row results are few: their blocks are folded on the host"
        return None

    def _operand_shape(self, node: Node) -> tuple[int, ...]:
        """Return the item shape over which a node iterates: the broadcast shape of its operands."""
        if node.kind in (Kind.ELEMENTWISE, Kind.SCAN):
            return node.spec.shape
        shapes = [self.graph.nodes[i].spec.shape for i in node.inputs]
        rank = max(map(len, shapes))
        padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
        return tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*padded, strict=True))

    def _start(self, node: Node, stream: bool) -> None:
        shape = self._operand_shape(node)
        self._place(self.start(node, shape, stream=stream), node, own_axes(shape))

    def _start_anchor(self, node: Node, stream: bool) -> None:
        """Start a region with a product or attention, which subsequent element-wise operations join."""
        group = self.start(node, node.spec.shape, stream=stream, anchor=node.id)
        fused_producers = self.fused_producers.get(node.id, ())
        computed = {producers.operand for producers in fused_producers}
        for producers in fused_producers:
            self._place_producers(group, producers)
        self.set_reads(group, node.id, tuple(i if i in computed else self._whole(i) for i in node.inputs))
        group.layouts[node.id] = own_axes(node.spec.shape)
        group.nodes.append(node.id)
        self.put(group, node.id)
        if node.kind is Kind.SCAN:
            self._record_stored(node, node.id, f"{anchor_name(node)} reads earlier records from memory")
        for i in sorted({i for producers in fused_producers for i in producers.nodes}):
            decodes = isinstance(self.graph.nodes[i].op, Dequantize)
            elsewhere = "a scan, attention or gather computes it in its own kernel"
            self._record_stored(node, i, BLOCKS_STORED if decodes else elsewhere)

    def _start_stencil(self, stencil: Stencil) -> None:
        """Start a region with operations that read neighbours, their borders, and all of their results."""
        first = self.graph.nodes[stencil.users[0]]
        if first.id in self.group_of:
            return
        group = self.start(first, first.spec.shape, stream=True, anchor=first.id)
        for i in stencil.inside:
            operands = self.graph.nodes[i].inputs
            self.set_reads(group, i, tuple(o if o in stencil.inside else self._whole(o) for o in operands))
            group.layouts[i] = own_axes(self.graph.nodes[i].spec.shape)
            group.nodes.append(i)
            self.put(group, i)
        for i in stencil.users:
            self._place(group, self.graph.nodes[i], own_axes(group.domain))
        for i in (*stencil.inside, *stencil.users):
            self._record_stored(first, i, "a stencil reads its operands from memory")

    def _place_producers(self, group: Group, producers: FusedProducers) -> None:
        """Add the producers of an operand, whose axes are those of its root."""
        rank = len(self.graph.nodes[producers.root].spec.shape)
        for i in producers.nodes:
            node = self.graph.nodes[i]
            inside = node.kind is Kind.VIEW
            if isinstance(node.op, Dequantize):
                self.set_reads(group, i, self._blocks(node))
            else:
                self.set_reads(
                    group, i, tuple(o if inside or o in producers.nodes else self._whole(o, rank) for o in node.inputs)
                )
            group.layouts[i] = self._whole(i, rank).layout
        group.nodes = sorted({*group.nodes, *producers.nodes})

    def _blocks(self, node: Node) -> tuple[Access, ...]:
        """Return the access to the blocks that a node decodes. They lie along no axis of the domain."""
        (raw,) = node.inputs
        return (Access(raw, (None,) * len(self.graph.nodes[raw].spec.shape)),)

    def _whole(self, value: int, rank: int | None = None) -> Access:
        """Return the access to a value on its own axes, or on the last axes of `rank`."""
        shape = self.graph.nodes[value].spec.shape
        behind = 0 if rank is None else rank - len(shape)
        axes = (axis + behind for axis in range(len(shape)))
        if rank is None:
            return Access(value, tuple(axes))
        return Access(value, tuple(axis if size != 1 else None for axis, size in zip(axes, shape, strict=True)))

    def _join(self, node: Node, ids: list[int]) -> None:
        """Add the node to the union of these regions.

        Raises:
            _Refusal: if no single domain fits, or the union would depend on itself.
        """
        groups = [self.groups[i] for i in ids]
        again = node.again or groups[0].again
        if any(group.again != again for group in groups):
            raise _Refusal("what is computed again is not computed with what is computed first")
        for group in groups:
            if (chooser := self.late.chooser(node.id, group.nodes)) is not None:
                name = self.graph.nodes[chooser].name
                raise _Refusal(f"it waits for {name}, which chooses what is made of it")
        shape = self._operand_shape(node)
        placed = [self._align(node, group, shape) for group in groups]
        main = 0
        if len(groups) > 1:
            main = max(range(len(groups)), key=lambda i: (not groups[i].trivial, len(groups[i].nodes)))
        target = groups[main]
        if target.trivial:
            domain, axes = shape, own_axes(shape)
        else:
            domain, axes = target.domain, spread(placed[main], shape, target.domain)
            if None in axes and any(axis is None and size != 1 for axis, size in zip(axes, shape, strict=True)):
                raise _Refusal(f"it is broadcast to items {shape}, which its operands in the kernel do not span")
        for position, other in enumerate(groups):
            if position == main or other.trivial:
                continue
            if other.domain != domain:
                raise _Refusal(f"its operands run over items {domain} and {other.domain}")
            if other.reduced and target.reduced and other.reduced != target.reduced:
                raise _Refusal("its operands reduce different axes")
            for own, elsewhere in zip(axes, placed[position], strict=True):
                if elsewhere is not None and own != elsewhere:
                    raise _Refusal("its operands line up on different axes")
        self._check_anchor(node, groups)
        self._check_node(node, target, groups, axes, shape)
        self._check_order(node, groups)
        if sum(len(group.nodes) for group in groups) >= MAX_NODES:
            raise _Refusal(f"the kernel would hold more than {MAX_NODES} operations")
        outside = {i for i in self.operands(node) if self.group_of.get(i) not in ids}
        values = self.pointer_arguments(outside).union(*(group.pointers for group in groups))
        if len(values) + sum(len(group.folds) for group in groups) + 1 > MAX_POINTERS:
            raise _Refusal(f"the kernel would take more than {MAX_POINTERS} pointers")
        self.unite(target, groups, domain)
        self._place(target, node, axes)

    def _align(self, node: Node, group: Group, shape: tuple[int, ...]) -> Layout:
        """Return the domain axis of each of the node's axes, as given by its operands in the region."""
        axes: list[int | None] = [None] * len(shape)
        if group.trivial:
            return tuple(axes)
        for operand in node.inputs:
            layout = self.layout_in(group, operand)
            if layout is None:
                continue
            for back, axis in enumerate(reversed(layout), 1):
                if axis is None:
                    continue
                if axes[-back] not in (None, axis):
                    raise _Refusal("its operands line up on different axes")
                axes[-back] = axis
        for axis, size in zip(axes, shape, strict=True):
            if axis is not None and size not in (1, group.domain[axis]):
                raise _Refusal("an operand is broadcast along an axis that was reduced to another size")
        named = [axis for axis in axes if axis is not None]
        if len(set(named)) != len(named):
            raise _Refusal("two of its axes are one axis of its operands")
        return tuple(axes)

    def _check_node(self, node: Node, target: Group, groups: list[Group], axes: Layout, shape: tuple[int, ...]) -> None:
        folds = node.kind is Kind.FOLD or any(group.folds for group in groups)
        if node.kind is not Kind.REDUCE and not folds:
            return
        reduced = next((group.reduced for group in groups if group.reduced), frozenset())
        domain = shape if target.trivial else target.domain
        if node.kind is Kind.REDUCE:
            wanted = [axes[axis] for axis in node.attrs["axes"]]
            for axis, own in zip(node.attrs["axes"], wanted, strict=True):
                if own is None or domain[own] != shape[axis]:
                    raise _Refusal("it reduces an axis along which its operand is constant here")
            if reduced and set(wanted) != reduced:
                raise _Refusal("it reduces other axes than the reductions already in the kernel")
            if any(group.sweeps.get(i, 0) >= MAX_SWEEPS for group in groups for i in self.operands(node)):
                raise _Refusal(f"the kernel would hold more than {MAX_SWEEPS} reductions in a row")
        if node.kind is Kind.FOLD and math.prod(shape) != math.prod(domain):
            raise _Refusal("it folds row results over other columns than the kernel's")
        if folds and (reduced or node.kind is Kind.REDUCE) and (apart := self.why_folded_apart(domain)) is not None:
            raise _Refusal(apart)

    def _check_anchor(self, node: Node, groups: list[Group]) -> None:
        """Check that a node follows the region's anchor element by element, in its shape.

        Raises:
            _Refusal: if it does not, or if it is a scan that needs operands of another shape.
        """
        if node.kind is Kind.SCAN:
            self._check_scanned(node, groups)
            return
        anchors = [group for group in groups if group.anchor is not None]
        if not anchors:
            return
        if len(anchors) > 1:
            raise _Refusal("a kernel holds one matrix product, attention, scan or gather")
        name = anchor_name(self.graph.nodes[anchors[0].anchor or 0])
        if node.kind is not Kind.ELEMENTWISE:
            raise _Refusal(f"it needs whole rows of {name}, which is stored in parts")
        domain = anchors[0].domain
        others = [i for group in groups if group is not anchors[0] for i in group.nodes]
        if any(group.reduced or group.folds for group in groups):
            raise _Refusal(f"reductions and {name} read their operands in different orders")
        if any(self.graph.nodes[i].spec.shape != domain for i in (node.id, *others)):
            raise _Refusal(f"its shape is not that of {name}, {domain}")

    def _check_scanned(self, node: Node, groups: list[Group]) -> None:
        """Check that a scan's kernel computes only element-wise operations of the scan's shape.

        Raises:
            _Refusal: if it would compute others.
        """
        matrices = node.inputs[2:] if node.op is SELECTIVE_SCAN else ()
        for group in groups:
            if any(i in group.nodes for i in matrices):
                raise _Refusal("its matrices are stored: every channel reads them")
            if group.anchor is not None:
                raise _Refusal(f"a kernel holds one scan, and {anchor_name(self.graph.nodes[group.anchor])} is stored")
            if group.reduced or group.folds:
                raise _Refusal("reductions and scans read their operands in different orders")
            if any(self.graph.nodes[i].spec.shape != node.spec.shape for i in group.nodes):
                raise _Refusal(f"the operations before it are not of its shape, {node.spec.shape}")

    def _check_order(self, node: Node, groups: list[Group]) -> None:
        """Check that no region must run after a step that needs another of the regions.

        Raises:
            _Refusal: if one must.
        """
        ids = [group.id for group in groups]
        values = {i for i in self.operands(node) if self.group_of.get(i) not in ids}
        # A single region does not depend on itself.
        values.update(*(self.dependencies.operands(i) for i in (ids if len(ids) > 1 else ())))
        if self.dependencies.reaches(values, ids):
            raise _Refusal("a value it needs is made from this kernel's results by another step")

    def _place(self, group: Group, node: Node, axes: Layout) -> None:
        """Record the node, its layout and its accesses to operands."""
        operands: list[int | Access] = []
        for i, below in zip(node.inputs, self.operands(node), strict=True):
            if self.group_of.get(below) == group.id:
                operands.append(below)
                continue
            shape = self.graph.nodes[i].spec.shape
            own = axes[len(axes) - len(shape) :] if shape else ()
            operands.append(
                Access(i, tuple(axis if size != 1 else None for axis, size in zip(own, shape, strict=True)))
            )
        self.put(group, node.id)
        self.set_reads(group, node.id, self._blocks(node) if isinstance(node.op, Dequantize) else tuple(operands))
        if node.kind is Kind.FOLD:
            group.folds.append(node.id)
            return
        earlier = max([group.sweeps.get(i, 0) for i in self.operands(node)], default=0) if group.sweeps else 0
        sweeps = earlier + (node.kind is Kind.REDUCE)
        if sweeps:
            group.sweeps[node.id] = sweeps
        if node.kind is Kind.REDUCE:
            reduced = node.attrs["axes"]
            group.reduced |= frozenset(axes[axis] for axis in reduced if axes[axis] is not None)
            if not node.attrs["keepdims"]:
                axes = tuple(own for axis, own in enumerate(axes) if axis not in reduced)
        group.layouts[node.id] = axes
        group.nodes.append(node.id)


def build_regions(
    graph: Graph,
    levels: Sequence[int],
    fused: Iterable[int],
    wanted: set[int],
    fused_producers: Sequence[FusedProducers] = (),
    stencils: Sequence[Stencil] = (),
    *,
    numbers_on_host: bool = False,
    sharing: Sharing | None = None,
    opened: Mapping[int, OpenedView] | None = None,
    folds_apart: bool = False,
) -> tuple[list[Region], list[int], list[Reason]]:
    """Group the nodes `fused` (in topological order) into regions.

    Args:
        graph: the graph.
        levels: the number of passes before each node.
        fused: ids of the nodes to group.
        wanted: values that are read outside of regions.
        fused_producers: producers of operands of anchors, which are not among `fused`.
        stencils: operations that read neighbours, with their borders, which are not among `fused` either.
        numbers_on_host: whether streams of scalars are folded on the host, where batches may have any size. Kernels
            fold whole canonical blocks of scalars.
        sharing: which kernels may share a launch; None where none can.
        opened: views that kernels read through. What they are of is not among `wanted` for their sake.
        folds_apart: whether no kernel reduces rows and folds columns, as on GPUs; see `docs/decisions/0222`.

    Returns:
        The regions, ids of the folds that read records on the host, and the reason for each boundary.
    """
    views = opened or {}
    options = {"numbers_on_host": numbers_on_host, "folds_apart": folds_apart}
    builder = _Builder(graph, levels, fused_producers, stencils, wanted=wanted, opened=views, **options)
    for i in fused:
        builder.add(graph.nodes[i])
    reasons = builder.reasons + merge_horizontally(builder)
    regions = builder.regions(wanted)
    if sharing is not None:
        regions, told = share_launches(builder, regions, wanted, sharing)
        reasons += told
    return regions, builder.host_folds, reasons
