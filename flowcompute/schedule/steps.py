"""Steps of a pass: regions of fused nodes and single nodes, run once or for each batch."""

from __future__ import annotations

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
    """

    name: str
    node: Node


Step = RegionStep | NodeStep


def scan_in(step: Step) -> int:
    """Return the id of the node whose carry a step may hold, or -1 if it holds none."""
    if isinstance(step, NodeStep):
        return step.node.id
    return -1 if step.region.anchor is None else step.region.anchor
