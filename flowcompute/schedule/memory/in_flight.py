"""Transfers in flight between the host and a discrete device."""

from __future__ import annotations

import math
from collections.abc import Iterable

from flowcompute.ir import DeviceCapabilities
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.run_knobs import COPYING_THREADS

SLOTS_BYTES = 16 << 20
"""The most pinned memory that transfers of small batches use."""

_UPLOADS = 3
"""Batches uploaded at a time. Handing one to a thread and back takes as long as copying some tens of MiB."""

PIECE_BYTES = 4 << 20
"""Bytes that a thread copies to or from pinned memory at a time. Smaller pieces cost more, larger ones overlap less."""

STAGING_BLOCKS = 4
"""Blocks of pinned memory in each direction. Threads copy some while the device reads or writes another."""

MOST_STAGING_BYTES = 2 * STAGING_BLOCKS * PIECE_BYTES * -(-COPYING_THREADS // 2)
"""The most pinned memory of a run: all threads have a piece in two blocks."""

_STAGING_SHARE = 8

_FEWEST_ROUNDS = 2
"""Times that transfers go around the blocks. Pinning memory takes as long as copying it some times over."""


def pinned(staging_bytes: int) -> int:
    """Return the bytes of pinned memory of a device: staging blocks of large arrays and slots of small batches."""
    return staging_bytes + min(SLOTS_BYTES, staging_bytes // 2)


def crossing_bytes(passes: Iterable[Pass], resident_bytes: int) -> float:
    """Return the bytes that a job moves across the bus; infinity where it does not know the length of its streams."""
    sources = [source.spec for one in passes for source in one.sources]
    sinks = [sink.spec for one in passes for sink in one.sinks if sink.spec.is_stream]
    if any(spec.length is None for spec in (*sources, *sinks)):
        return math.inf
    return resident_bytes + sum((spec.length or 0) * spec.item_bytes for spec in (*sources, *sinks))


def staging_bytes(budget_bytes: int, crossing: float = math.inf) -> int:
    """Return the bytes of pinned memory of a discrete device.

    Args:
        budget_bytes: of the host, the device's share of it.
        crossing: bytes that cross the bus in a job; see `crossing_bytes`.

    Returns:
        Whole pieces in each block; zero under a small budget, and for a job that moves little.
    """
    least = 2 * STAGING_BLOCKS * PIECE_BYTES
    return int(min(MOST_STAGING_BYTES, budget_bytes // _STAGING_SHARE, crossing / _FEWEST_ROUNDS) // least) * least


def staging_shares(backend: BackendDescription) -> int:
    """Return the number of shares that the pinned memory for transfers is divided into.

    Each device across a bus has one, and so has the executor that leads several devices.
    """
    counts = (
        placement.capabilities.devices for placement in backend.placements if not placement.capabilities.host_memory
    )
    return sum(count if count == 1 else count + 1 for count in counts)


def batches_of_each(depth: int, capabilities: DeviceCapabilities) -> int:
    """Return the batches in flight on each device, if all devices together have `depth`."""
    return -(-depth // capabilities.devices)


def uploads_at_a_time(depth: int) -> int:
    """Return the number of batches that are uploaded to a device at a time."""
    return min(_UPLOADS, depth)
