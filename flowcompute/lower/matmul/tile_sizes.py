"""Tile sizes that several kernel forms share. No bit of a result depends on them."""

from __future__ import annotations

from flowcompute.ir import DeviceCapabilities

STRIP_BYTES = 64
"""Bytes of a row in a CPU's tile: four rows of it are 8 AVX2 accumulators, which keep the multipliers busy."""
PAD = 4
"""Padding between the rows of a local tile, so that work-items that write a column use different banks."""
NEAR = 1 << 23
"""Bound of strides below which offsets within one tile fit into 32 bits."""


def strip_lanes(capabilities: DeviceCapabilities, itemsize: int) -> int:
    """Return the lanes of a vector on a CPU for numbers of `itemsize` bytes: one strip, but never fewer than 8."""
    return min(capabilities.lanes, max(8, STRIP_BYTES // itemsize))
