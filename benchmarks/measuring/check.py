"""Check of a peer's answer, against float64 on NumPy; a fast wrong answer is no answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measuring.workloads import Job

BLOCKS = 32
BLOCK_NUMBERS = 1 << 16
STEP = 1 << 20


class Checker:
    """Computes the reference of one workload once and compares answers with it.

    Of large outputs the first, the last and 30 evenly spaced blocks of 64 Ki numbers are compared.
    """

    def __init__(self, job: Job) -> None:
        self._inputs = [np.load(path, mmap_mode="r") for path in job.inputs]
        self._job = job
        self._weight = np.load(job.weight).astype(np.float64)
        self._reference: Any = None

    def error(self, result: np.ndarray | None, output: str) -> float:
        """The largest error, relative to the largest value (W2: to the sum of magnitudes); inf where shapes differ."""
        if self._job.workload == "W6":
            data = self._inputs[0][: self._job.moved_bytes].reshape(-1)
            if result is None or result.size != data.size:
                return float("inf")
            return float(np.abs(result.reshape(-1) - (data * np.float32(2) + np.float32(1))).max())
        if self._job.output_shape is None:
            return self._small_error(result)
        found = np.load(output, mmap_mode="r")
        if found.shape != self._job.output_shape or found.dtype != np.float32:
            return float("inf")
        self._reference = self._reference or [(rows, self._rows(rows)) for rows in self._blocks()]
        return max(largest(found[rows], wanted) for rows, wanted in self._reference)

    def _small_error(self, result: np.ndarray | None) -> float:
        if self._reference is None:
            self._reference = self._dot() if self._job.workload == "W2" else self._moments()
        if result is None:
            return float("inf")
        if self._job.workload == "W2":
            value, magnitude = self._reference
            error = abs(float(result) - value) / magnitude
            return error if error == error else float("inf")
        return largest(result, self._reference)

    def _blocks(self) -> list[slice]:
        x = self._inputs[0]
        rows = max(1, BLOCK_NUMBERS // (x.size // len(x)))
        starts = np.linspace(0, max(0, len(x) - rows), BLOCKS).astype(int)
        return [slice(int(start), int(start) + rows) for start in np.unique(starts)]

    def _rows(self, rows: slice) -> np.ndarray:
        x = self._inputs[0][rows].astype(np.float64)
        match self._job.workload:
            case "W1":
                return 1 / (1 + np.exp(-(1.5 * x - 0.25))) * np.tanh(x) + x * x
            case "W3":
                e = np.exp(x - x.max(axis=1, keepdims=True))
                return e / e.sum(axis=1, keepdims=True)
            case "W4":
                return x / np.sqrt((x * x).sum(axis=1, keepdims=True)) @ self._weight
        return x

    def _dot(self) -> tuple[float, float]:
        value = magnitude = 0.0
        first, second = self._inputs
        for start in range(0, len(first), STEP):
            products = first[start : start + STEP].astype(np.float64) * second[start : start + STEP]
            value += float(products.sum())
            magnitude += float(np.abs(products).sum())
        return value, magnitude

    def _moments(self) -> np.ndarray:
        (x,) = self._inputs
        step = STEP // x.shape[1]
        mean = sum(x[k : k + step].sum(axis=0, dtype=np.float64) for k in range(0, len(x), step)) / len(x)
        squares = sum(((x[k : k + step] - mean) ** 2).sum(axis=0) for k in range(0, len(x), step))
        return np.stack([mean, squares / len(x)])


def largest(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest error relative to the largest value; inf where shapes differ or a number is missing."""
    if found.shape != wanted.shape:
        return float("inf")
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    return error if error == error else float("inf")
