"""Steps of a pass: regions of fused nodes and single nodes, run once or for each batch."""

from __future__ import annotations

from collections.abc import Iterable

from flowcompute.fuse import Region
from flowcompute.graph import Node
from flowcompute.imports import dataclass
from flowcompute.ir import Kernel


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

    It is a host function, a slice of a resident value along the stream, or a fold of row results.

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
        return self.node.inputs[len(self.there) :]


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
