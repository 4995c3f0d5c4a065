"""A loop for peers that have no files of their own: it reads, computes and writes chunk by chunk."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measuring.workloads import CHUNK_BYTES, Job


class NpyFile:
    """A float32 .npy file as a descriptor, the offset of its numbers, and its shape."""

    def __init__(self, path: str, flags: int = os.O_RDONLY) -> None:
        mapped = np.load(path, mmap_mode="r")
        self.shape: tuple[int, ...] = mapped.shape
        self.bytes: int = mapped.nbytes
        self.offset: int = mapped.offset
        self.handle = os.open(path, flags)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.handle)


def aligned(numbers: int) -> np.ndarray:
    """Uninitialised float32 numbers on a page boundary."""
    raw = np.empty(numbers * 4 + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    return raw[start : start + numbers * 4].view(np.float32)


@functools.lru_cache(maxsize=1)
def loaded(path: str) -> np.ndarray:
    """An input in memory, for workloads that time no file; read once."""
    return np.load(path)


@functools.lru_cache(maxsize=1)
def tiny_batches(job: Job) -> np.ndarray:
    """The batches of W6 in memory, an array of shape (batches, 16); read once, since W6 times no file."""
    return np.load(job.inputs[0])[: job.moved_bytes]


def read_chunks(*paths: str) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
    """Read files of one shape in step through one buffer each; yields (first row, one array a file)."""
    files = [NpyFile(path) for path in paths]
    buffers = [aligned(CHUNK_BYTES // 4) for _ in files]
    shape = files[0].shape
    row_bytes = files[0].bytes // shape[0]
    try:
        for start in range(0, files[0].bytes, CHUNK_BYTES):
            count = min(CHUNK_BYTES, files[0].bytes - start)
            views = []
            for file, buffer in zip(files, buffers, strict=True):
                part = buffer[: count // 4]
                if os.preadv(file.handle, [part.data], file.offset + start) != count:
                    raise OSError("short read")
                views.append(part.reshape(-1, *shape[1:]))
            yield start // row_bytes, tuple(views)
    finally:
        for file in files:
            file.close()


def map_file(job: Job, compute: Callable[[np.ndarray], np.ndarray]) -> None:
    """Input file to output file, one chunk after the other."""
    out = NpyFile(job.output, os.O_RDWR)
    row_bytes = out.bytes // out.shape[0]
    try:
        for row, (chunk,) in read_chunks(*job.inputs):
            result = np.ascontiguousarray(compute(chunk))
            if os.pwrite(out.handle, result.data.cast("B"), out.offset + row * row_bytes) != result.nbytes:
                raise OSError("short write")
    finally:
        out.close()


def new_output(job: Job) -> np.ndarray:
    """The output as a new file, mapped; its numbers take no space before they are written."""
    return np.lib.format.open_memmap(job.output, "w+", np.float32, job.output_shape)


def column_moments(
    rows: int, parts: Iterator[tuple[np.ndarray, np.ndarray]], columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of columns from (sum, sum of squares) of chunks, added in float64."""
    total, squares = np.zeros(columns), np.zeros(columns)
    for part, part_squares in parts:
        total += part
        squares += part_squares
    mean = total / rows
    return mean, squares / rows - mean * mean
