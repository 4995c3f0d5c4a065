"""Check of an answer of `python -m benchmarks streams`, against float64 on NumPy."""

from __future__ import annotations

import statistics
from functools import cached_property

import numpy as np

from benchmarks.measuring.check import largest
from benchmarks.measuring.workloads import Job
from benchmarks.streams.stream_workloads import COLUMNS, WINDOWS

BLOCKS = 32
BLOCK_ROWS = 4096
BINS = 16
ROWS = (1 << 22) // COLUMNS


class StreamChecker:
    """Computes references once and compares answers with them: the first, the last and 30 blocks between."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def error(self, result: np.ndarray | None, output: str) -> float:
        """The largest error relative to the largest value.

        Of random numbers the largest distance between wanted and found distribution at 15 quantiles.
        """
        if self._job.workload in WINDOWS:
            return float("inf") if result is None else self._windows_error(result)
        if self._job.output_shape is None:
            return float("inf") if result is None else self._distribution_error(result)
        found = np.load(output, mmap_mode="r")
        if found.shape != self._job.output_shape or found.dtype != np.float32:
            return float("inf")
        mean, deviation = self._moments
        x = self._input
        return max(largest(found[rows], (x[rows].astype("f8") - mean) / deviation) for rows in _blocks(len(x)))

    @cached_property
    def _input(self) -> np.ndarray:
        return np.load(self._job.inputs[0], mmap_mode="r")

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        x = self._input
        starts = range(0, len(x), ROWS)
        mean = sum(x[k : k + ROWS].sum(axis=0, dtype="f8") for k in starts) / len(x)
        squares = sum(((x[k : k + ROWS] - mean) ** 2).sum(axis=0) for k in starts)
        return mean, np.sqrt(squares / len(x))

    def _windows_error(self, result: np.ndarray) -> float:
        size, x = WINDOWS[self._job.workload], self._input
        if result.shape != (len(x) - size + 1, *x.shape[1:]) or result.dtype != np.float32:
            return float("inf")
        worst = 0.0
        for rows in _blocks(len(result)):
            part = x[rows.start : rows.stop + size - 1].astype("f8")
            wanted = np.lib.stride_tricks.sliding_window_view(part, size, axis=0).mean(axis=-1)
            worst = max(worst, largest(result[rows], wanted))
        return worst

    def _distribution_error(self, result: np.ndarray) -> float:
        if result.size != self._job.moved_bytes // 4 or result.dtype != np.float32:
            return float("inf")
        parts = [k / BINS for k in range(1, BINS)]
        normal = statistics.NormalDist().inv_cdf
        quantiles = parts if self._job.workload == "S6" else [normal(part) for part in parts]
        pairs = zip(parts, quantiles, strict=True)
        return max(abs(float((result < np.float32(quantile)).mean()) - part) for part, quantile in pairs)


def _blocks(rows: int) -> list[slice]:
    size = min(rows, BLOCK_ROWS)
    starts = np.unique(np.linspace(0, rows - size, BLOCKS).astype(int))
    return [slice(int(start), int(start) + size) for start in starts]
