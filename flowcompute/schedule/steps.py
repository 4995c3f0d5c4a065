"""What a pass does for each batch, or once: regions of fused nodes and single nodes."""

from __future__ import annotations

from dataclasses import dataclass

from flowcompute.fuse import Region
from flowcompute.graph import Node
from flowcompute.ir import Kernel


@dataclass(frozen=True)
class RegionStep:
    """A region of fused nodes.

    Attributes:
        kernel: None on backends that have none.
        placement: which of the backend's seats computes it.
    """

    name: str
    region: Region
    kernel: Kernel | None
    placement: int = 0


@dataclass(frozen=True)
class NodeStep:
    """One node that is no region: a host function, a resident value cut along the stream, a fold of row results."""

    name: str
    node: Node


Step = RegionStep | NodeStep


def scan_in(step: Step) -> int:
    """The node whose carry a step may have; -1 where it has none."""
    if isinstance(step, NodeStep):
        return step.node.id
    return -1 if step.region.anchor is None else step.region.anchor
