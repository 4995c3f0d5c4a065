"""Rewrite of products of whole numbers of a byte for a device: as its groups of sub-groups multiply them."""

from __future__ import annotations

from flowcompute.graph import Graph
from flowcompute.ir import DeviceCapabilities
from flowcompute.rewrite.products.byte_factors import turn_byte_factors
from flowcompute.rewrite.products.zero_points import multiply_unshifted


def multiply_bytes(graph: Graph, capabilities: DeviceCapabilities, room_bytes: float) -> Graph:
    """Return the graph as a device multiplies its bytes. Roots keep their order.

    Args:
        graph: the graph.
        capabilities: of the device.
        room_bytes: for resident operands and for factors that are turned; without that room none is.
    """
    return turn_byte_factors(multiply_unshifted(graph), room_bytes) if capabilities.warp_groups else graph
