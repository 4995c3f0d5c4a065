"""What is on its way to a device across a bus at a time."""

from __future__ import annotations

from flowcompute.ir import DeviceCapabilities

SLOTS_BYTES = 16 << 20
"""Pinned memory that the arrays of small batches go through on their way to a device, at most."""

_UPLOADS = 3
"""Batches uploaded at a time: handing one to a thread and back takes as long as copying some tens of MiB."""


def pinned(staging_bytes: int) -> int:
    """Pinned memory of a device for transfers: the pieces that large arrays go through, and what small batches have."""
    return staging_bytes + min(SLOTS_BYTES, staging_bytes // 2)


def batches_of_each(depth: int, capabilities: DeviceCapabilities) -> int:
    """Batches in flight on one device, where all have so many together; no more where it computes them alone."""
    return -(-depth // capabilities.devices)


def uploads_at_a_time(depth: int) -> int:
    """Batches that are uploaded at a time to a device."""
    return min(_UPLOADS, depth)
