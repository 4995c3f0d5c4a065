"""Peer: torch eager on the CPU, in a 4 MiB read loop."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.measuring.chunks import column_moments, map_file, read_chunks, tiny_batches
from benchmarks.measuring.workloads import COLUMNS, Job

torch.set_num_threads(len(os.sched_getaffinity(0)))
torch.set_grad_enabled(False)
tensor = torch.from_numpy


def prepare(job: Job) -> Callable[[Job], object]:
    """The library's own softmax is used, as a user would."""
    weight = tensor(np.load(job.weight))
    formulas: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "W1": lambda x: torch.sigmoid(1.5 * x - 0.25) * torch.tanh(x) + x * x,
        "W3": lambda x: torch.softmax(x, dim=1),
        "W4": lambda x: (x / x.norm(dim=1, keepdim=True)) @ weight,
    }

    def dot(job: Job) -> float:
        return sum(float(torch.dot(tensor(x), tensor(y))) for _, (x, y) in read_chunks(*job.inputs))

    def moments(job: Job) -> tuple[np.ndarray, np.ndarray]:
        parts = (tensor(x) for _, (x,) in read_chunks(*job.inputs))
        sums = ((x.sum(0).numpy(), (x * x).sum(0).numpy()) for x in parts)
        return column_moments(job.moved_bytes // (COLUMNS * 4), sums, COLUMNS)

    def tiny(job: Job) -> np.ndarray:
        data = tiny_batches(job)
        result = np.empty_like(data)
        for x, y in zip(tensor(data), tensor(result), strict=True):
            y.copy_(x * 2 + 1)
        return result

    if job.workload in formulas:
        formula = formulas[job.workload]
        return lambda job: map_file(job, lambda x: formula(tensor(x)).numpy())
    return {"W2": dot, "W5": moments, "W6": tiny}[job.workload]
