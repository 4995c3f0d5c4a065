"""Pinned memory that transfers to and from discrete devices go through."""

from __future__ import annotations

from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.run_knobs import COPYING_THREADS

PIECE_BYTES = 4 << 20
"""Bytes that a thread copies to or from pinned memory at a time. Smaller pieces cost more, larger ones overlap less."""

STAGING_BLOCKS = 4
"""Blocks of pinned memory in each direction. Threads copy some while the device reads or writes another."""

MOST_STAGING_BYTES = 2 * STAGING_BLOCKS * PIECE_BYTES * -(-COPYING_THREADS // 2)
"""The most pinned memory of a run: all threads have a piece in two blocks."""

_STAGING_SHARE = 8


def staging_bytes(budget_bytes: int) -> int:
    """Return the bytes of pinned memory of a discrete device within a host budget.

    The result is zero under a small budget. Blocks consist of whole pieces.
    """
    least = 2 * STAGING_BLOCKS * PIECE_BYTES
    return min(MOST_STAGING_BYTES, budget_bytes // _STAGING_SHARE) // least * least


def staging_shares(backend: BackendDescription) -> int:
    """Return the number of shares that the pinned memory for transfers is divided into.

    Each device across a bus has one, and so has the executor that leads several devices.
    """
    counts = (
        placement.capabilities.devices for placement in backend.placements if not placement.capabilities.host_memory
    )
    return sum(count if count == 1 else count + 1 for count in counts)
