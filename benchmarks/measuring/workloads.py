"""The six workloads: what is computed, on which files, and how many bytes that moves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

CHUNK_BYTES = 4 << 20
"""What peers that loop over a file take at a time; every file is a whole number of these."""

ROW = 1024
COLUMNS = 512
WEIGHT_COLUMNS = 256
TINY = 16
SMALL_MIB = 16


@dataclass(frozen=True)
class Workload:
    """One computation.

    Attributes:
        name: W1 .. W6, or the name of a machine limit.
        title: the formula, for people.
        inputs: names of the input files (without .npy).
        output: bytes written to a file for each byte of the first input; 0 when the result is small.
        tolerance: largest accepted error, in the measure of `benchmarks.measuring.check`.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    output: float
    tolerance: float

    @property
    def unit(self) -> str:
        """What throughput is counted in."""
        return "M batches/s" if self.name == "W6" else "GB/s"


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "sigmoid(1.5x - 0.25) tanh(x) + x^2, file to file", ("a",), 1.0, 1e-5),
        Workload("W2", "dot product of two files", ("a", "b"), 0.0, 1e-6),
        Workload("W3", f"softmax of rows of {ROW}, file to file", (f"rows{ROW}",), 1.0, 1e-5),
        Workload(
            "W4",
            f"rows of {ROW} to unit length @ ({ROW}, {WEIGHT_COLUMNS}), file to file",
            (f"rows{ROW}",),
            WEIGHT_COLUMNS / ROW,
            1e-5,
        ),
        Workload("W5", f"mean and variance of {COLUMNS} columns", (f"rows{COLUMNS}",), 0.0, 1e-5),
        Workload("W6", f"2x + 1 on tiny batches of {TINY} numbers", ("tiny",), 0.0, 0.0),
    )
}

LIMITS = {
    limit.name: limit
    for limit in (
        Workload("memcpy", "memory to memory, all cores", ("a",), 1.0, 0.0),
        Workload("copy", "file to file through the page cache, pread and pwrite", ("a",), 1.0, 0.0),
        Workload("read", "file to cache-sized buffers, pread", ("a",), 0.0, 0.0),
    )
}


@dataclass(frozen=True)
class Job:
    """A workload on actual files, as a peer gets it.

    Attributes:
        workload: its name.
        inputs: paths of the .npy inputs.
        output: path of the .npy output; it exists, with the right header and size, unless the peer makes it anew.
        output_shape: shape of the output, or None when there is none.
        weight: path of the resident operand of W4.
        moved_bytes: bytes read plus bytes written to files; for W6 the number of batches.
    """

    workload: str
    inputs: tuple[str, ...]
    output: str
    output_shape: tuple[int, ...] | None
    weight: str
    moved_bytes: int

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Job:
        """Made again from what `asdict` and JSON left of it."""
        shape = fields["output_shape"]
        return cls(**fields | {"inputs": tuple(fields["inputs"]), "output_shape": shape and tuple(shape)})


def input_shape(name: str, mib: int, batches: int) -> tuple[int, ...]:
    """Shape of an input file of `mib` MiB; the tiny batches are counted instead."""
    numbers = (mib << 20) // 4
    if name == "tiny":
        return (batches, TINY)
    if name.startswith("rows"):
        width = int(name.removeprefix("rows"))
        return (numbers // width, width)
    return (numbers,)


def make_job(workload: Workload, peer: str, folder: str, mib: int, batches: int) -> Job:
    """The files of a workload of `mib` MiB in `folder`, with an output file of the peer's own."""
    shape = input_shape(workload.inputs[0], mib, batches)
    output_shape: tuple[int, ...] | None = None
    if workload.output:
        output_shape = (shape[0], WEIGHT_COLUMNS) if workload.name == "W4" else shape
    read_bytes = len(workload.inputs) * (mib << 20)
    return Job(
        workload=workload.name,
        inputs=tuple(os.path.join(folder, f"{name}.npy") for name in workload.inputs),
        output=os.path.join(folder, f"out-{peer.replace(':', '-').replace('/', '-').replace(' ', '-')}.npy"),
        output_shape=output_shape,
        weight=os.path.join(folder, "weight.npy"),
        moved_bytes=batches if workload.name == "W6" else read_bytes + int(workload.output * (mib << 20)),
    )


def make_inputs(workload: Workload, folder: str, mib: int, batches: int) -> None:
    """Write the input files that are missing or have another size; the same numbers every time."""
    os.makedirs(folder, exist_ok=True)
    for seed, name in enumerate(("a", "b", f"rows{ROW}", f"rows{COLUMNS}", "tiny")):
        path = os.path.join(folder, f"{name}.npy")
        shape = input_shape(name, mib, batches)
        if name in workload.inputs and not has_shape(path, shape):
            rng = np.random.default_rng(seed)
            out = np.lib.format.open_memmap(path + ".tmp", "w+", np.float32, shape)
            flat = out.reshape(-1)
            for start in range(0, flat.size, 1 << 20):
                part = flat[start : start + (1 << 20)]
                part[:] = rng.standard_normal(part.size, dtype=np.float32)
            out.flush()
            os.replace(path + ".tmp", path)
    weight = np.random.default_rng(99).standard_normal((ROW, WEIGHT_COLUMNS), dtype=np.float32)
    np.save(os.path.join(folder, "weight.npy"), weight)


def prepare_output(job: Job) -> None:
    """Make the output file whole, so that every repetition overwrites pages that exist."""
    if job.output_shape is not None and not has_shape(job.output, job.output_shape):
        out = np.lib.format.open_memmap(job.output, "w+", np.float32, job.output_shape)
        out[:] = np.nan
        out.flush()


def has_shape(path: str, shape: tuple[int, ...]) -> bool:
    """Whether there is a .npy file of this shape."""
    try:
        return np.load(path, mmap_mode="r").shape == shape
    except (OSError, ValueError):
        return False
