"""Steps of a pass: regions of fused nodes and single nodes, run once or for each batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flowcompute.fuse import Region
from flowcompute.graph import Node
from flowcompute.ir import Kernel


@dataclass(frozen=True)
class RegionStep:
    """A region of fused nodes.

    Attributes:
        name: of the region.
        region: what is computed.
        kernel: what computes it; None on backends without kernels.
        placement: index of the device in `Backend.placements`.
    """

    name: str
    region: Region
    kernel: Kernel | None
    placement: int = 0


@dataclass(frozen=True)
class NodeStep:
    """A single node outside of all regions.

    It is a host function, a slice of a resident value along the stream, or a fold of row results.

    Attributes:
        name: of the node.
        node: what is computed.
        on_device: whether it is a fold of products whose state lies on the first device, which has memory of its own.
        from_host: whether such a fold takes arrays of the host: several devices have made them.
    """

    name: str
    node: Node
    on_device: bool = False
    from_host: bool = False

    @property
    def reads_device(self) -> bool:
        """True where nobody brings operands to the host."""
        return self.on_device and not self.from_host


Step = RegionStep | NodeStep


def device_folds(steps: Iterable[Step]) -> list[NodeStep]:
    """Return the steps whose state lies on a discrete device."""
    return [step for step in steps if isinstance(step, NodeStep) and step.on_device]


def scan_in(step: Step) -> int:
    """Return the id of the node whose carry a step may hold, or -1 if it holds none."""
    if isinstance(step, NodeStep):
        return step.node.id
    return -1 if step.region.anchor is None else step.region.anchor
