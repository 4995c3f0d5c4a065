"""Sizes of scans of wide items along the stream on GPUs: work-groups, their columns, and tiles of a work-item."""

from __future__ import annotations

from flowcompute.elements.streams import KernelScan
from flowcompute.graph import Node
from flowcompute.ir import RUN, DeviceCapabilities, Kernel, register_dtype, scan_tile
from flowcompute.lower.scan.scan_anchor import scan_wide
from flowcompute.spec import FLOAT64, INT64

FORM = "column scan"

GROUP_BYTES = 1024
"""Bytes that the work-items of a work-group store at a time: 256 of float32, so that two work-groups fit on a unit."""

DOUBLE_GROUP = 512
"""Work-items of a work-group for float64: all registers of a unit, so that fewer prefixes are handed on."""

DOUBLE_PARTS = 4
"""Most tiles of its work-items; the totals of more take too much local memory."""

FEW_TILES = 64
"""Tiles of a stretch below which a work-group is twice as large: each stretch waits for the one before it."""

COLUMNS = 16
"""Columns of a panel: 64 bytes of float32. Rows of 32 bytes reach a smaller part of the rate of memory."""

LINE_BYTES, MANY_TILES = 128, 32
"""Bytes of a panel's row where a stretch has as many tiles even so: whole lines of the cache."""

FEW_COLUMNS = 8
"""The same where stretches would have fewer tiles than `LEAST_TILES`: waiting costs more than narrow rows."""

LEAST_TILES = 16

FEWEST = 64
"""Fewest numbers of an item for which this form pays."""

KEPT_BYTES = 256
"""Most bytes of the numbers that a work-item keeps in registers, where these are several tiles."""

MOST_PARTS = 8
"""Most tiles of a work-item; more of them take the local memory of other work-groups."""

ADDED = 16
"""Most tiles whose totals are read before the first is added."""

REGISTERS_BYTES = 128 << 10
"""Most bytes for the numbers of all work-items of a work-group: half of the registers of a compute unit."""

LEAST_ROWS = 2
"""Fewest rows of work-items: 64 of a work-group, and 32 columns."""

LEAST_GROUP = 64
"""Fewest work-items of a work-group, which the others are halved to where local memory is small."""

REGISTER_BYTES = 4
"""Bytes of a register, which narrower numbers take, too."""


def takes_columns(node: Node) -> bool:
    """Check whether a scan along the stream is one by columns: tiles are a few runs, whose steps are unrolled."""
    return node.spec.item_numbers >= FEWEST and not isinstance(node.element, KernelScan)


def column_scan_bytes(node: Node, capabilities: DeviceCapabilities) -> int:
    """Return the most bytes of local memory of a work-group: what its tiles and runs add up to, and a ticket."""
    return _local_bytes(node, work_group_of(node, capabilities))


def parts_of(node: Node) -> int:
    """Return the tiles of a work-item, one after the other; 1 where a tile has several runs."""
    if scan_tile(node.spec.item_numbers) > RUN:
        return 1
    return max(1, min(MOST_PARTS, KEPT_BYTES // _run_bytes(node)))


def columns_of(node: Node) -> int:
    """Return the columns of a panel."""
    runs, line = -(-scan_tile(node.spec.item_numbers) // RUN), LINE_BYTES // _number_bytes(node)
    tiles = _wanted_group(node) // COLUMNS * parts_of(node) // runs
    if tiles * COLUMNS // line >= MANY_TILES:
        return line
    return COLUMNS if tiles >= LEAST_TILES else FEW_COLUMNS


def work_group_of(node: Node, capabilities: DeviceCapabilities) -> int:
    """Return the work-items of a work-group, a power of two: as many as a device takes and has local memory for."""
    group = min(_wanted_group(node), capabilities.max_work_group)
    while group > LEAST_GROUP and _local_bytes(node, group) > capabilities.local_bytes:
        group //= 2
    return group


def _wanted_group(node: Node) -> int:
    """Return the work-items of a work-group where a device takes any number."""
    runs, parts = -(-scan_tile(node.spec.item_numbers) // RUN), parts_of(node)
    group = GROUP_BYTES // _number_bytes(node)
    if group // COLUMNS * parts // runs < FEW_TILES:
        group *= 2
    if node.spec.dtype == FLOAT64 and parts <= DOUBLE_PARTS:
        group = DOUBLE_GROUP
    return 1 << min(group, REGISTERS_BYTES // (_run_bytes(node) * parts)).bit_length() - 1


def tiles_handed_on(node: Node, kernel: Kernel) -> int:
    """Return for how many tiles a kernel hands on one prefix, at least: whatever its knobs are."""
    if kernel.form != FORM:
        return 1
    return max(1, LEAST_ROWS * parts_of(node) // -(-scan_tile(node.spec.item_numbers) // RUN))


def _local_bytes(node: Node, group: int) -> int:
    return 2 * group * parts_of(node) * scan_wide(node).itemsize + INT64.itemsize


def _number_bytes(node: Node) -> int:
    """Return the bytes that a number takes in registers."""
    return max(node.spec.dtype.itemsize, REGISTER_BYTES)


def _run_bytes(node: Node) -> int:
    """Return the bytes of the registers that a run takes."""
    return min(scan_tile(node.spec.item_numbers), RUN) * max(register_dtype(node.spec.dtype).itemsize, REGISTER_BYTES)
