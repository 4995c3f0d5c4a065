"""Peers of the stream workloads: NumPy as most people write it, and as somebody with patience does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measuring.chunks import aligned, loaded, map_file, new_output, read_chunks
from benchmarks.measuring.workloads import CHUNK_BYTES, Job
from benchmarks.streams.stream_workloads import COLUMNS, WINDOWS


def prepare_loop(job: Job) -> Callable[[Job], object]:
    """Two passes over 4 MiB slices of a mapped file; sums in float64."""
    rows = CHUNK_BYTES // (COLUMNS * 4)

    def standardise(job: Job) -> None:
        x, out = np.load(job.inputs[0], mmap_mode="r"), new_output(job)
        total, squares = np.zeros(COLUMNS), np.zeros(COLUMNS)
        for start in range(0, len(x), rows):
            part = x[start : start + rows].astype(np.float64)
            total += part.sum(axis=0)
            squares += (part * part).sum(axis=0)
        mean = total / len(x)
        deviation = np.sqrt(squares / len(x) - mean * mean)
        low, scale = mean.astype(np.float32), deviation.astype(np.float32)
        for start in range(0, len(x), rows):
            out[start : start + rows] = (x[start : start + rows] - low) / scale

    return standardise


def prepare_out(job: Job) -> Callable[[Job], object]:
    """4 MiB reads into one buffer, sums round the first chunk's mean in float32, every operation with `out=`."""
    scratch = aligned(CHUNK_BYTES // 4)

    def standardise(job: Job) -> None:
        records = job.moved_bytes // (COLUMNS * 4)
        shift: np.ndarray | None = None
        total, squares = np.zeros(COLUMNS), np.zeros(COLUMNS)
        for _, (x,) in read_chunks(*job.inputs):
            shift = x.mean(axis=0) if shift is None else shift
            moved = np.subtract(x, shift, out=scratch[: x.size].reshape(x.shape))
            total += moved.sum(axis=0)
            squares += np.einsum("ij,ij->j", moved, moved)
        assert shift is not None
        off = total / records
        low = (shift + off).astype(np.float32)
        scale = (1 / np.sqrt(squares / records - off * off)).astype(np.float32)

        def scaled(x: np.ndarray) -> np.ndarray:
            y = np.subtract(x, low, out=scratch[: x.size].reshape(x.shape))
            return np.multiply(y, scale, out=y)

        new_output(job)
        map_file(job, scaled)

    return standardise


def prepare_sliding(job: Job) -> Callable[[Job], object]:
    """A view of all windows and its mean."""

    def smooth(job: Job) -> np.ndarray:
        x = loaded(job.inputs[0])
        return np.lib.stride_tricks.sliding_window_view(x, WINDOWS[job.workload], axis=0).mean(axis=-1)

    return smooth


def prepare_cumsum(job: Job) -> Callable[[Job], object]:
    """Differences of running sums in float64: a few operations a window of any size."""

    def smooth(job: Job) -> np.ndarray:
        x, size = loaded(job.inputs[0]), WINDOWS[job.workload]
        sums = np.zeros((len(x) + 1, *x.shape[1:]))
        np.cumsum(x, axis=0, dtype=np.float64, out=sums[1:])
        return ((sums[size:] - sums[:-size]) / size).astype(np.float32)

    return smooth


def prepare_random(job: Job) -> Callable[[Job], object]:
    """`numpy.random.default_rng`."""
    return _draw(np.random.PCG64(1))


def prepare_philox(job: Job) -> Callable[[Job], object]:
    """The generator that flowcompute's numbers come from, too."""
    return _draw(np.random.Philox(1))


def _draw(bits: np.random.BitGenerator) -> Callable[[Job], object]:
    generator = np.random.Generator(bits)

    def draw(job: Job) -> np.ndarray:
        numbers = job.moved_bytes // 4
        if job.workload == "S6":
            return generator.random(numbers, dtype=np.float32)
        return generator.standard_normal(numbers, dtype=np.float32)

    return draw
