"""Rewrite of products of halves for a device: as stored where it has tensor cores, elsewhere in float32."""

from __future__ import annotations

from flowcompute.graph import Graph
from flowcompute.ir import DeviceCapabilities
from flowcompute.rewrite.products.half_windows import multiply_half_windows
from flowcompute.rewrite.products.weighed_attention import weigh_in_float32


def multiply_halves(graph: Graph, capabilities: DeviceCapabilities, *, windows: bool = True) -> Graph:
    """Return the graph as a device multiplies its halves. Roots keep their order.

    Args:
        graph: the graph.
        capabilities: of the device.
        windows: whether convolutions may have the order of tensor cores; see `Shaping.half_windows`.
    """
    graph = weigh_in_float32(graph, capabilities)
    return multiply_half_windows(graph) if windows and capabilities.warp_groups else graph
