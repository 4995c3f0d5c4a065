"""Scans: look-back scans along the stream, and serial scans."""

from flowcompute.lower.scan.scan_anchor import identity_of, is_scan, scan_wide
from flowcompute.lower.scan.scan_forms import lower_scan, why_on_host

__all__ = ["identity_of", "is_scan", "lower_scan", "scan_wide", "why_on_host"]
