"""The knobs of a run where nobody has set them, by what the device is."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Literal

from flowcompute.planner.backend import Traits
from flowcompute.strategy import Strategy

DEFAULT_BATCH_BYTES = {"cpu": 8 << 20, "gpu": 64 << 20, "numpy": 1 << 20}

COPYING_THREADS = max(2, min(16, (os.cpu_count() or 1) // 2))
"""Threads that copy to pinned memory, or read files into it. Drivers wait for devices on the other processors."""


def with_defaults(strategy: Strategy, traits: Traits) -> Strategy:
    """A strategy with all knobs of the run set.

    A device with memory of its own reads pinned memory by itself, so files are read into it rather than mapped
    and copied, and three batches are on their way: one uploaded, one computed, one downloaded. Several devices
    have as many batches each. GPUs that share the host's memory compute in place, but not all of their drivers do
    so in the pages of a mapped file.
    """
    discrete = not traits.host_memory
    how: Literal["mapped", "read"] = "read" if discrete or traits.code_shape == "gpu" else "mapped"
    return replace(
        strategy,
        batch_bytes=strategy.batch_bytes or DEFAULT_BATCH_BYTES[traits.code_shape],
        depth=strategy.depth or (3 if discrete else 2) * traits.devices,
        input=strategy.input or how,
        reader_threads=strategy.reader_threads or (COPYING_THREADS if discrete else 1),
    )
