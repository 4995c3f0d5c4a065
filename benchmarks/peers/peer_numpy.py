"""Peers: NumPy on mapped files, as one writes it first, and with `out=` in a read loop, as an expert does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measuring.chunks import aligned, column_moments, map_file, read_chunks, tiny_batches
from benchmarks.measuring.workloads import CHUNK_BYTES, COLUMNS, WEIGHT_COLUMNS, Job

SCALE, SHIFT, ONE = np.float32(1.5), np.float32(-0.25), np.float32(1)


def prepare_memmap(job: Job) -> Callable[[Job], object] | None:
    """Formulas on 4 MiB slices of `np.load(path, mmap_mode="r")`."""
    weight = np.load(job.weight)

    def softmax(x: np.ndarray) -> np.ndarray:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    formulas: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "W1": lambda x: ONE / (ONE + np.exp(-(SCALE * x + SHIFT))) * np.tanh(x) + x * x,
        "W3": softmax,
        "W4": lambda x: (x / np.sqrt((x * x).sum(axis=1, keepdims=True))) @ weight,
    }

    def slices(path: str) -> list[np.ndarray]:
        mapped = np.load(path, mmap_mode="r")
        step = CHUNK_BYTES // (mapped.nbytes // len(mapped))
        return [mapped[start : start + step] for start in range(0, len(mapped), step)]

    def map_job(job: Job) -> None:
        out = np.load(job.output, mmap_mode="r+")
        start = 0
        for x in slices(job.inputs[0]):
            out[start : start + len(x)] = formulas[job.workload](x)
            start += len(x)

    def dot(job: Job) -> float:
        return sum(float(np.dot(x, y)) for x, y in zip(*map(slices, job.inputs), strict=True))

    def moments(job: Job) -> tuple[np.ndarray, np.ndarray]:
        parts = slices(job.inputs[0])
        return column_moments(sum(map(len, parts)), ((x.sum(0), (x * x).sum(0)) for x in parts), COLUMNS)

    return {"W1": map_job, "W3": map_job, "W4": map_job, "W2": dot, "W5": moments}.get(job.workload)


def prepare_out(job: Job) -> Callable[[Job], object]:
    """4 MiB reads into one buffer, every operation into an array that exists."""
    weight = np.load(job.weight)
    first, second = aligned(CHUNK_BYTES // 4), aligned(CHUNK_BYTES // 4)

    def chain(x: np.ndarray) -> np.ndarray:
        y, z = first[: x.size], second[: x.size]
        np.multiply(x, -SCALE, out=y)
        np.subtract(y, SHIFT, out=y)
        np.exp(y, out=y)
        np.add(y, ONE, out=y)
        np.tanh(x, out=z)
        np.divide(z, y, out=y)
        np.multiply(x, x, out=z)
        return np.add(y, z, out=y)

    def softmax(x: np.ndarray) -> np.ndarray:
        y = first[: x.size].reshape(x.shape)
        np.subtract(x, x.max(axis=1, keepdims=True), out=y)
        np.exp(y, out=y)
        return np.divide(y, y.sum(axis=1, keepdims=True), out=y)

    def project(x: np.ndarray) -> np.ndarray:
        y = first[: len(x) * WEIGHT_COLUMNS].reshape(len(x), WEIGHT_COLUMNS)
        np.matmul(x, weight, out=y)
        return np.multiply(y, ONE / np.sqrt(np.einsum("ij,ij->i", x, x))[:, None], out=y)

    def dot(job: Job) -> float:
        return sum(float(np.dot(x, y)) for _, (x, y) in read_chunks(*job.inputs))

    def moments(job: Job) -> tuple[np.ndarray, np.ndarray]:
        parts = (x for _, (x,) in read_chunks(*job.inputs))
        sums = ((x.sum(0), np.einsum("ij,ij->j", x, x)) for x in parts)
        rows = job.moved_bytes // (COLUMNS * 4)
        return column_moments(rows, sums, COLUMNS)

    def tiny(job: Job) -> np.ndarray:
        data = tiny_batches(job)
        result = np.empty_like(data)
        for x, y in zip(data, result, strict=True):
            np.multiply(x, 2, out=y)
            np.add(y, 1, out=y)
        return result

    formulas = {"W1": chain, "W3": softmax, "W4": project}
    if job.workload in formulas:
        return lambda job: map_file(job, formulas[job.workload])
    return {"W2": dot, "W5": moments, "W6": tiny}[job.workload]
