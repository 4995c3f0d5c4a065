"""Peers by name, and the module and function behind each."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

from benchmarks.measuring.workloads import Job
from benchmarks.streams.stream_workloads import STREAMS

YARDSTICK = "c"

MODULES = {
    "c": ("peers.peer_c", "prepare"),
    "c-commit": ("peers.peer_c", "prepare_commit"),
    "c-leave": ("peers.peer_c", "prepare_leave"),
    "flowcompute": ("peers.peer_flowcompute", "prepare"),
    "flowcompute-durable": ("peers.peer_flowcompute", "prepare_durable"),
    "flowcompute-leave": ("peers.peer_flowcompute", "prepare_leave"),
    "numpy-memmap": ("peers.peer_numpy", "prepare_memmap"),
    "numpy-out": ("peers.peer_numpy", "prepare_out"),
    "numexpr": ("peers.peer_numexpr", "prepare"),
    "jax": ("peers.peer_jax", "prepare"),
    "dask": ("peers.peer_dask", "prepare"),
    "torch": ("peers.peer_torch", "prepare"),
}

STREAM_MODULES = {
    "flowcompute": ("streams.stream_flowcompute", "prepare"),
    "flowcompute-read": ("streams.stream_flowcompute", "prepare_read"),
    "dask": ("streams.stream_dask", "prepare"),
    "jax": ("streams.stream_jax", "prepare"),
    "numpy": ("streams.stream_numpy", "prepare_random"),
    "numpy-cumsum": ("streams.stream_numpy", "prepare_cumsum"),
    "numpy-loop": ("streams.stream_numpy", "prepare_loop"),
    "numpy-out": ("streams.stream_numpy", "prepare_out"),
    "numpy-philox": ("streams.stream_numpy", "prepare_philox"),
    "numpy-sliding": ("streams.stream_numpy", "prepare_sliding"),
    "torch": ("streams.stream_torch", "prepare_random"),
    "torch-conv1d": ("streams.stream_torch", "prepare_conv1d"),
    "torch-pool": ("streams.stream_torch", "prepare_pool"),
}

REPLACES = {"c-commit", "c-leave", "flowcompute", "flowcompute-durable", "flowcompute-leave"}
"""Those that put a new file in the place of the old one; all do in the stream workloads."""

W6_FRACTION = {"jax": 0.02, "torch": 0.05, "numpy-out": 0.2}
"""The part of the tiny batches that slow machinery gets; rates are per batch, so they compare."""


def load(peer: str, workload: str) -> Callable[[Job], Callable[[Job], object] | None]:
    """The function that prepares a peer; `flowcompute:TEXT` is flowcompute on the device that TEXT names.

    Raises:
        ModuleNotFoundError: if the library is not installed.
    """
    name, _, device = peer.partition(":")
    module, function = (STREAM_MODULES if workload in STREAMS else MODULES)[name]
    prepare = getattr(importlib.import_module(f"benchmarks.{module}"), function)
    return functools.partial(prepare, device=device) if device else prepare
