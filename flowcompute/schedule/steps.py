"""Steps of a pass: regions of fused nodes and single nodes, run once or for each batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from flowcompute.elements import Kind
from flowcompute.elements.axes import INDICES
from flowcompute.elements.math import WHERE
from flowcompute.fuse import Region
from flowcompute.graph import Graph, Node, is_number
from flowcompute.imports import dataclass
from flowcompute.ir import Kernel

FUSED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.FOLD, Kind.CONTRACT)
"""Kinds of nodes that regions compute."""

RESIDENT = -1
"""Placeholder for a clock: the node is computed once."""

_PURE = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT, Kind.VIEW)
"""Kinds of nodes that do nothing but make a value."""


@dataclass(frozen=True)
class RegionStep:
    """A region of fused nodes.

    Attributes:
        name: of the region.
        region: what is computed.
        kernel: what computes it; None on backends without kernels.
        placement: index of the device in `Backend.placements`.
        merged: folds whose blocks the device merges, which has memory of its own. The host merges those of others.
    """

    name: str
    region: Region
    kernel: Kernel | None
    placement: int = 0
    merged: frozenset[int] = frozenset()


@dataclass(frozen=True)
class NodeStep:
    """A single node outside of all regions.

    It is a host function, a slice of a resident value along the stream, a fold of row results, or one number that is
    repeated; see `repeated_numbers`.

    Attributes:
        name: of the node.
        node: what is computed.
        there: by place the operands that a fold reads on the first device, whose memory its state lies in: values that
            have memory of their own, which the operands are or lie in as they are. Empty for all that the host does.
    """

    name: str
    node: Node
    there: tuple[int, ...] = ()

    @property
    def on_device(self) -> bool:
        """True for a fold whose state lies on a discrete device."""
        return bool(self.there)

    @property
    def on_host(self) -> tuple[int, ...]:
        """The operands that are read on the host."""
        return self.node.inputs[1:2] if self.node.op is WHERE else self.node.inputs[len(self.there) :]


Step = RegionStep | NodeStep


def device_folds(steps: Iterable[Step]) -> list[NodeStep]:
    """Return the steps whose state lies on a discrete device."""
    return [step for step in steps if isinstance(step, NodeStep) and step.on_device]


def merged_folds(steps: Iterable[Step]) -> set[int]:
    """Return the folds of regions whose blocks a discrete device merges."""
    return {i for step in steps if isinstance(step, RegionStep) for i in step.merged}


def scan_in(step: Step) -> int:
    """Return the id of the node whose carry a step may hold, or -1 if it holds none."""
    if isinstance(step, NodeStep):
        return step.node.id
    return -1 if step.region.anchor is None else step.region.anchor


def repeated_numbers(graph: Graph, values: Collection[int], readers: Collection[int]) -> tuple[set[int], set[int]]:
    """Find streams of one number that only the host reads, such as those of `full_like`, and what nobody then needs.

    Whatever the condition of `where` is, both its values are the number. So no kernel has to make it.

    Args:
        graph: the graph.
        values: that are computed; none of them is a result.
        readers: nodes whose operands the host reads.

    Returns:
        The streams, and the values that are computed for them alone.
    """
    users = graph.users()

    def is_one_number(node: Node) -> bool:
        is_same = node.op is WHERE and node.spec.is_stream and node.inputs[1] == node.inputs[2]
        return is_same and is_number(graph.nodes[node.inputs[1]])

    given = {i for i in values if users[i] and set(users[i]) <= {*readers} and is_one_number(graph.nodes[i])}
    idle = set[int]()
    for i in sorted(values, reverse=True):
        # Indices are checked all the same.
        may_idle = graph.nodes[i].kind in _PURE and graph.nodes[i].op is not INDICES and i not in given
        if may_idle and users[i] and set(users[i]) <= given | idle:
            idle.add(i)
    return given, idle
