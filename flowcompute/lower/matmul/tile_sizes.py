"""Sizes that the hand-shaped kernels have in common. No bit of a result depends on them."""

from __future__ import annotations

from flowcompute.ir import DeviceCapabilities

STRIP_BYTES = 64
"""What a CPU holds of a row at once: four rows of it are 8 sums of AVX2, which keep its multipliers busy."""
PAD = 4
"""Numbers between the rows of a local tile, so that work-items which write a column of it use different banks."""
NEAR = 1 << 23
"""Strides below it keep what lies in one tile within 32 bits."""


def strip_lanes(capabilities: DeviceCapabilities, itemsize: int) -> int:
    """Numbers of `itemsize` bytes in a vector on a CPU: a strip of them, but never fewer than 8."""
    return min(capabilities.lanes, max(8, STRIP_BYTES // itemsize))
