"""Why some scans are left to the host."""

from __future__ import annotations

from flowcompute.elements.nn import SELF_ATTENTION
from flowcompute.elements.streams import SCAN, TEXT_PLACES, KernelScan
from flowcompute.elements.training import TRAIN
from flowcompute.graph import Node
from flowcompute.ir import DeviceCapabilities
from flowcompute.lower.scan.column_sizes import column_scan_bytes, takes_columns
from flowcompute.lower.scan.number_look_back import number_scan_bytes, takes_numbers
from flowcompute.lower.scan.scan_anchor import REDUCTIONS, is_walked, scan_wide
from flowcompute.lower.scan.work_group_look_back import scan_local_bytes
from flowcompute.spec import BOOL, FLOAT64

WIDEST_TILE = 1024
"""Numbers in the widest item that is scanned along the stream in whole tiles. Tiles by columns may be of any width."""

LEAST_SEQUENCES = 1024
"""Sequences of a recurrence, numbers of an item, that a kernel is launched for where records are sent by hand."""


def why_on_host(node: Node, capabilities: DeviceCapabilities, *, by_hand: bool) -> str | None:
    """Why a scan is left to the host; None where there is a kernel for it."""
    assert node.op is not None
    if node.op is TRAIN:
        return "each of its records is a step with kernels of its own"
    if capabilities.code_shape == "numpy":
        return "NumPy scans it by itself"
    if node.op is SELF_ATTENTION:
        return None
    if node.op is TEXT_PLACES:
        return "the host counts records, and attention asks it where they are"
    if by_hand and not (is_walked(node) and node.spec.item_numbers >= LEAST_SEQUENCES):
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
    by_columns = capabilities.code_shape == "gpu" and takes_columns(node)
    if node.spec.item_numbers > WIDEST_TILE and not by_columns:
        return f"items of more than {WIDEST_TILE} numbers leave tiles too few records"
    needed = _local_bytes(node, capabilities)
    if capabilities.code_shape == "gpu" and needed > capabilities.local_bytes:
        return f"its tiles take {needed} bytes of local memory, and {capabilities.name} has {capabilities.local_bytes}"
    return None


def _local_bytes(node: Node, capabilities: DeviceCapabilities) -> int:
    """Local memory of a GPU's work-group for a scan in tiles."""
    if takes_columns(node):
        return column_scan_bytes(node, capabilities)
    return number_scan_bytes(node) if takes_numbers(node, capabilities) else scan_local_bytes(node)


def _needs_float64(node: Node) -> bool:
    assert node.op is not None
    if isinstance(node.element, KernelScan):
        return node.element.step.float64
    return node.op.name == "ema" or (node.op.name in REDUCTIONS and scan_wide(node) == FLOAT64)
