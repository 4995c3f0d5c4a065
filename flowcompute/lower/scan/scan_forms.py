"""Kernels of scans: which form takes which scan, and why some are left to the host."""

from __future__ import annotations

from flowcompute.elements.streams import SCAN, KernelScan
from flowcompute.fuse import Region
from flowcompute.graph import Graph, Node
from flowcompute.ir import DeviceCapabilities, Kernel
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.lower.scan.column_look_back import ColumnLookBackLowering, column_scan_bytes, takes_columns
from flowcompute.lower.scan.cpu_look_back import CpuLookBackLowering
from flowcompute.lower.scan.number_look_back import NumberLookBackLowering, number_scan_bytes, takes_numbers
from flowcompute.lower.scan.scan_anchor import REDUCTIONS, scan_wide
from flowcompute.lower.scan.serial_scan import SerialScanLowering
from flowcompute.lower.scan.tiled_serial_scan import TiledSerialScanLowering, is_walked_in_tiles
from flowcompute.lower.scan.work_group_look_back import WorkGroupLookBackLowering, scan_local_bytes
from flowcompute.spec import BOOL, FLOAT64

WIDEST_TILE = 1024
"""Numbers in the widest item that is scanned along the stream in tiles."""


def why_on_host(node: Node, capabilities: DeviceCapabilities, *, by_hand: bool) -> str | None:
    """Why a scan is left to the host; None where there is a kernel for it."""
    assert node.op is not None
    if capabilities.code_shape == "numpy":
        return "NumPy scans it by itself"
    if by_hand:
        return "records are sent by hand, a few at a time, and are scanned on the host"
    if node.op is SCAN:
        return "its step is called for each record in order, on the host"
    if not capabilities.float64 and _needs_float64(node):
        return f"it carries in float64, which {capabilities.name} does not have"
    carried = node.element.inits if isinstance(node.element, KernelScan) else (node.spec,)
    if any(one.dtype == BOOL for one in carried):
        return "bools are carried on the host"
    if is_walked(node):
        return None
    if node.spec.item_numbers > WIDEST_TILE:
        return f"items of more than {WIDEST_TILE} numbers leave tiles too few records"
    needed = _local_bytes(node, capabilities)
    if capabilities.code_shape == "gpu" and needed > capabilities.local_bytes:
        return f"its tiles take {needed} bytes of local memory, and {capabilities.name} has {capabilities.local_bytes}"
    return None


def _local_bytes(node: Node, capabilities: DeviceCapabilities) -> int:
    """Local memory of a GPU's work-group for a scan in tiles."""
    if takes_columns(node):
        return column_scan_bytes(node)
    return number_scan_bytes(node) if takes_numbers(node, capabilities) else scan_local_bytes(node)


def is_walked(node: Node) -> bool:
    """Whether a scan is walked number by number, not in tiles."""
    assert node.op is not None
    associative = node.op.name in REDUCTIONS or node.attrs.get("associative", False)
    return node.attrs["axis"] is not None or not associative


def _needs_float64(node: Node) -> bool:
    assert node.op is not None
    if isinstance(node.element, KernelScan):
        return node.element.step.float64
    return node.op.name == "ema" or (node.op.name in REDUCTIONS and scan_wide(node) == FLOAT64)


def lower_scan(graph: Graph, region: Region, style: KernelStyle, name: str) -> Kernel:
    """The kernel of a region around a scan."""
    assert region.anchor is not None
    if is_walked(graph.nodes[region.anchor]):
        if is_walked_in_tiles(graph, region, style.capabilities):
            return TiledSerialScanLowering(graph, region, style).lower(name)
        return SerialScanLowering(graph, region, style).lower(name)
    if style.capabilities.code_shape == "gpu":
        if takes_columns(graph.nodes[region.anchor]):
            return ColumnLookBackLowering(graph, region, style).lower(name)
        if takes_numbers(graph.nodes[region.anchor], style.capabilities):
            return NumberLookBackLowering(graph, region, style).lower(name)
        return WorkGroupLookBackLowering(graph, region, style).lower(name)
    return CpuLookBackLowering(graph, region, style).lower(name)
