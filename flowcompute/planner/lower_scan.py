"""Kernels of scans: which form takes which scan, and why some are left to the host."""

from __future__ import annotations

from flowcompute.graph.graph import Graph, Node
from flowcompute.planner.backend import Traits
from flowcompute.planner.kernel import Kernel
from flowcompute.planner.lower_group_scan import GroupScanLowering
from flowcompute.planner.lower_tile_scan import TileScanLowering
from flowcompute.planner.region import Region
from flowcompute.planner.scan_point import REDUCTIONS, scan_wide
from flowcompute.spec import FLOAT64

WIDEST_TILE = 1024
"""Numbers in the widest item that is scanned along the stream in tiles."""


def why_on_host(node: Node, traits: Traits, *, by_hand: bool) -> str | None:
    """Why a scan is left to the host; None where there is a kernel for it."""
    assert node.op is not None
    if traits.code_shape == "numpy":
        return "NumPy scans it by itself"
    if by_hand:
        return "records are sent by hand, a few at a time, and are scanned on the host"
    if node.op.name not in REDUCTIONS or node.attrs["axis"] is not None:
        return "its step is called for each record in order, on the host"
    if scan_wide(node) == FLOAT64 and not traits.float64:
        return f"it carries in float64, which {traits.name} does not have"
    if node.spec.item_numbers > WIDEST_TILE:
        return f"items of more than {WIDEST_TILE} numbers leave tiles too few records"
    return None


def lower_scan(graph: Graph, region: Region, traits: Traits, name: str) -> Kernel:
    """The kernel of a region around a scan."""
    if traits.code_shape == "gpu":
        return GroupScanLowering(graph, region, traits).lower(name)
    return TileScanLowering(graph, region, traits).lower(name)
