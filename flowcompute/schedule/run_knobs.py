"""Default values of a run's knobs, by the properties of the device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from flowcompute.ir import DeviceCapabilities
from flowcompute.schedule.plan import Pass
from flowcompute.strategy import Strategy

DEFAULT_BATCH_BYTES = {"cpu": 8 << 20, "gpu": 64 << 20, "numpy": 1 << 20}

LONG_BATCHES = 64
"""Streams of at least this many default batches cross a bus in batches of twice the size.

Handing over such a batch takes a third of the time of one of 64 MiB. In a long stream it matters little that the first
and the last batch overlap with nothing.
"""

JOINED_BYTES = 32 << 20
"""Largest size of small batches that cross a bus and are computed as one.

Handing over a single batch takes 0.5 ms, ten times the transfer of a MiB. Handing over 32 as one takes 1.8 ms.
"""

MOST_JOINED = 64
"""Largest number of batches that are computed as one."""

IN_FLIGHT_BYTES = 4 << 20
"""Bytes of small batches that an edge may hold where nothing crosses a bus: they are handed over together."""

MOST_IN_FLIGHT = 16
"""Largest number of small batches that an edge holds by default."""

COPYING_THREADS = max(2, min(16, (os.cpu_count() or 1) // 2))
"""Threads that copy to pinned memory or read files into it. Drivers use the other processors to wait."""


def default_batch_bytes(capabilities: DeviceCapabilities, passes: Sequence[Pass]) -> int:
    """Return the default bytes of a batch.

    The size is doubled where a stream across a bus is long for each device. Small batches let several devices end at
    the same time.
    """
    default = DEFAULT_BATCH_BYTES[capabilities.code_shape]
    if capabilities.host_memory:
        return default
    lengths = (sum(source.spec.item_bytes * (source.spec.length or 0) for source in one.sources) for one in passes)
    return 2 * default if max(lengths, default=0) >= LONG_BATCHES * default * capabilities.devices else default


def joined_batches(strategy: Strategy, capabilities: DeviceCapabilities, *, by_hand: bool) -> int:
    """Return the largest number of available batches that are computed as one."""
    if by_hand or capabilities.host_memory:
        return 1
    small = max(1, min(MOST_JOINED, JOINED_BYTES // strategy.batch_bytes)) if strategy.batch_bytes else 1
    return strategy.joined_batches or small


def depth_of_small_batches(strategy: Strategy, capabilities: DeviceCapabilities) -> int:
    """Return the batches in flight by default where they are asked to be small, and none has to cross a bus."""
    if not strategy.batch_bytes or not capabilities.host_memory:
        return 0
    return min(MOST_IN_FLIGHT, IN_FLIGHT_BYTES // strategy.batch_bytes)


def with_defaults(strategy: Strategy, capabilities: DeviceCapabilities) -> Strategy:
    """Return a strategy with all knobs of the run set, except the batch size.

    A discrete device reads pinned memory directly, so files are read into pinned memory instead of being mapped and
    copied. Three batches are in flight on it: one uploading, one computing, one downloading. Several devices have that
    many each. GPUs that share the host's memory compute in place, but not all of their drivers can do so in the pages
    of a mapped file.
    """
    discrete = not capabilities.host_memory
    how: Literal["mapped", "read"] = "read" if discrete or capabilities.code_shape == "gpu" else "mapped"
    return replace(
        strategy,
        depth=strategy.depth or (3 if discrete else 2) * capabilities.devices,
        input=strategy.input or how,
        reader_threads=strategy.reader_threads or (COPYING_THREADS if discrete else 1),
    )
