"""Transfers in flight between the host and a discrete device."""

from __future__ import annotations

from flowcompute.ir import DeviceCapabilities

SLOTS_BYTES = 16 << 20
"""The most pinned memory that transfers of small batches use."""

_UPLOADS = 3
"""Batches uploaded at a time. Handing one to a thread and back takes as long as copying some tens of MiB."""


def pinned(staging_bytes: int) -> int:
    """Return the bytes of pinned memory of a device: staging blocks of large arrays and slots of small batches."""
    return staging_bytes + min(SLOTS_BYTES, staging_bytes // 2)


def batches_of_each(depth: int, capabilities: DeviceCapabilities) -> int:
    """Return the batches in flight on each device, if all devices together have `depth`."""
    return -(-depth // capabilities.devices)


def uploads_at_a_time(depth: int) -> int:
    """Return the number of batches that are uploaded to a device at a time."""
    return min(_UPLOADS, depth)
