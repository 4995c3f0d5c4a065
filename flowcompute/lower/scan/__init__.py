"""Scans: look-back scans along the stream, and serial scans."""

from flowcompute.lower.scan.column_look_back import COLUMN_SCAN
from flowcompute.lower.scan.column_sizes import tiles_handed_on
from flowcompute.lower.scan.cpu_look_back import CPU_SCAN, WIDE_SCAN
from flowcompute.lower.scan.host_reasons import why_on_host
from flowcompute.lower.scan.number_look_back import NUMBER_SCAN
from flowcompute.lower.scan.scan_anchor import identity_of, is_scan, scan_wide
from flowcompute.lower.scan.serial_scan import SERIAL_SCAN
from flowcompute.lower.scan.tiled_serial_scan import TILED_SERIAL_SCAN
from flowcompute.lower.scan.work_group_look_back import LOOK_BACK_SCAN

__all__ = [
    "COLUMN_SCAN",
    "CPU_SCAN",
    "LOOK_BACK_SCAN",
    "NUMBER_SCAN",
    "SERIAL_SCAN",
    "TILED_SERIAL_SCAN",
    "WIDE_SCAN",
    "identity_of",
    "is_scan",
    "scan_wide",
    "tiles_handed_on",
    "why_on_host",
]
