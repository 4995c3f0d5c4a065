"""The knobs of a run where nobody has set them, by what the device is."""

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
"""Streams of as many default batches cross a bus in batches of twice the size: handing over takes a third of the time
of one of 64 MiB, and of so many it matters little that the first and the last overlap with nothing."""

JOINED_BYTES = 32 << 20
"""Small batches cross a bus and are computed as one, up to so many bytes. Each by itself takes 0.5 ms to be handed
over, which is ten times what a MiB takes; 32 take 1.8 ms together."""

MOST_JOINED = 64
"""As many, at most."""

COPYING_THREADS = max(2, min(16, (os.cpu_count() or 1) // 2))
"""Threads that copy to pinned memory, or read files into it. Drivers wait for devices on the other processors."""


def default_batch_bytes(capabilities: DeviceCapabilities, passes: Sequence[Pass]) -> int:
    """Bytes of a batch where nobody has said how many.

    Larger where a stream across a bus is long for each device; several of them end together if batches are small.
    """
    default = DEFAULT_BATCH_BYTES[capabilities.code_shape]
    if capabilities.host_memory:
        return default
    lengths = (sum(source.spec.item_bytes * (source.spec.length or 0) for source in one.sources) for one in passes)
    return 2 * default if max(lengths, default=0) >= LONG_BATCHES * default * capabilities.devices else default


def joined_batches(strategy: Strategy, capabilities: DeviceCapabilities, *, by_hand: bool) -> int:
    """Batches that are computed as one, at most, where they are there."""
    if by_hand or capabilities.host_memory:
        return 1
    small = max(1, min(MOST_JOINED, JOINED_BYTES // strategy.batch_bytes)) if strategy.batch_bytes else 1
    return strategy.joined_batches or small


def with_defaults(strategy: Strategy, capabilities: DeviceCapabilities) -> Strategy:
    """A strategy with all knobs of the run set, but for the size of batches.

    A device with memory of its own reads pinned memory by itself, so files are read into it rather than mapped
    and copied, and three batches are on their way: one uploaded, one computed, one downloaded. Several devices
    have as many batches each. GPUs that share the host's memory compute in place, but not all of their drivers do
    so in the pages of a mapped file.
    """
    discrete = not capabilities.host_memory
    how: Literal["mapped", "read"] = "read" if discrete or capabilities.code_shape == "gpu" else "mapped"
    return replace(
        strategy,
        depth=strategy.depth or (3 if discrete else 2) * capabilities.devices,
        input=strategy.input or how,
        reader_threads=strategy.reader_threads or (COPYING_THREADS if discrete else 1),
    )
