"""Workloads of `python -m benchmarks streams`: passes, windows and random numbers, and who computes it."""

from __future__ import annotations

import os

import numpy as np

from benchmarks.measuring.workloads import SMALL_MIB, Job, Workload, has_shape

COLUMNS = 64
CHANNELS = 8
SERIES_PART = 16
DRAWN_PART = 4
STEP = 1 << 16

STREAMS = {
    workload.name: workload
    for workload in (
        Workload("S1", f"standardise {COLUMNS} columns, file to file", ("columns",), 1.0, 1e-4),
        Workload("S2", "mean of windows of 16, a series", ("series",), 0.0, 1e-5),
        Workload("S3", "mean of windows of 64, a series", ("series",), 0.0, 1e-5),
        Workload("S4", f"mean of windows of 16, items of {CHANNELS}", ("channels",), 0.0, 1e-5),
        Workload("S5", f"mean of windows of 64, items of {CHANNELS}", ("channels",), 0.0, 1e-5),
        Workload("S6", "uniform float32 numbers", (), 0.0, 2e-3),
        Workload("S7", "normal float32 numbers", (), 0.0, 2e-3),
    )
}

WINDOWS = {"S2": 16, "S3": 64, "S4": 16, "S5": 64}

_SMOOTHERS = ("flowcompute", "numpy-sliding", "numpy-cumsum", "torch-conv1d", "torch-pool")
_GENERATORS = ("flowcompute", "numpy", "numpy-philox", "torch", "jax")

PEERS = {
    "S1": ("flowcompute", "flowcompute-read", "numpy-loop", "numpy-out", "dask"),
    **dict.fromkeys(WINDOWS, _SMOOTHERS),
    "S6": _GENERATORS,
    "S7": _GENERATORS,
}


def input_shape(name: str, mib: int) -> tuple[int, ...]:
    """Shape of an input when the file to standardise has `mib` MiB."""
    numbers = (mib << 20) // 4
    if name == "columns":
        return (numbers // COLUMNS, COLUMNS)
    series = numbers // SERIES_PART
    return (series // CHANNELS, CHANNELS) if name == "channels" else (series,)


def make_job(workload: Workload, peer: str, folder: str, mib: int) -> Job:
    """The files of a workload in `folder`, with an output file of the peer's own."""
    inputs = tuple(os.path.join(folder, f"{name}.npy") for name in workload.inputs)
    part = 1 if workload.name == "S1" else SERIES_PART if inputs else DRAWN_PART
    return Job(
        workload=workload.name,
        inputs=inputs,
        output=os.path.join(folder, f"out-{peer}.npy"),
        output_shape=input_shape("columns", mib) if workload.output else None,
        weight="",
        moved_bytes=(mib << 20) // part,
    )


def make_inputs(workload: Workload, folder: str, mib: int) -> None:
    """Write the input files that are missing or have another size; the same numbers every time."""
    assert mib % SMALL_MIB == 0
    os.makedirs(folder, exist_ok=True)
    for name in workload.inputs:
        path, shape = os.path.join(folder, f"{name}.npy"), input_shape(name, mib)
        if has_shape(path, shape):
            continue
        rng = np.random.default_rng(len(name))
        out = np.lib.format.open_memmap(path + ".tmp", "w+", np.float32, shape)
        for start in range(0, shape[0], STEP):
            part = out[start : start + STEP]
            part[:] = rng.standard_normal(part.shape, dtype=np.float32) * 5 + 10
        out.flush()
        os.replace(path + ".tmp", path)
