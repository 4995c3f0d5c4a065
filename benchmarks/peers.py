"""Who is measured: names of peers, and the module and function behind each."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

from benchmarks.stream_workloads import STREAMS
from benchmarks.workloads import Job

YARDSTICK = "c"

MODULES = {
    "c": ("peer_c", "prepare"),
    "c-commit": ("peer_c", "prepare_commit"),
    "c-leave": ("peer_c", "prepare_leave"),
    "flowcompute": ("peer_flowcompute", "prepare"),
    "flowcompute-durable": ("peer_flowcompute", "prepare_durable"),
    "flowcompute-leave": ("peer_flowcompute", "prepare_leave"),
    "numpy-memmap": ("peer_numpy", "prepare_memmap"),
    "numpy-out": ("peer_numpy", "prepare_out"),
    "numexpr": ("peer_numexpr", "prepare"),
    "jax": ("peer_jax", "prepare"),
    "dask": ("peer_dask", "prepare"),
    "torch": ("peer_torch", "prepare"),
}

STREAM_MODULES = {
    "flowcompute": ("stream_flowcompute", "prepare"),
    "flowcompute-read": ("stream_flowcompute", "prepare_read"),
    "dask": ("stream_dask", "prepare"),
    "jax": ("stream_jax", "prepare"),
    "numpy": ("stream_numpy", "prepare_random"),
    "numpy-cumsum": ("stream_numpy", "prepare_cumsum"),
    "numpy-loop": ("stream_numpy", "prepare_loop"),
    "numpy-out": ("stream_numpy", "prepare_out"),
    "numpy-philox": ("stream_numpy", "prepare_philox"),
    "numpy-sliding": ("stream_numpy", "prepare_sliding"),
    "torch": ("stream_torch", "prepare_random"),
    "torch-conv1d": ("stream_torch", "prepare_conv1d"),
    "torch-pool": ("stream_torch", "prepare_pool"),
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
