"""Peers of the stream workloads: torch on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.measuring.chunks import loaded
from benchmarks.measuring.workloads import Job
from benchmarks.streams.stream_workloads import WINDOWS

torch.set_num_threads(len(os.sched_getaffinity(0)))
torch.set_grad_enabled(False)


def prepare_conv1d(job: Job) -> Callable[[Job], object]:
    """A depthwise `conv1d` with equal weights."""

    def smooth(x: torch.Tensor, size: int) -> torch.Tensor:
        weight = torch.full((x.shape[1], 1, size), 1 / size)
        return torch.nn.functional.conv1d(x, weight, groups=x.shape[1])

    return _smoother(smooth)


def prepare_pool(job: Job) -> Callable[[Job], object]:
    """`avg_pool1d` with a stride of 1."""
    return _smoother(lambda x, size: torch.nn.functional.avg_pool1d(x, size, 1))


def prepare_random(job: Job) -> Callable[[Job], object]:
    """`torch.rand` and `torch.randn`."""
    draw = torch.rand if job.workload == "S6" else torch.randn
    return lambda job: draw(job.moved_bytes // 4).numpy()


def _smoother(smooth: Callable[[torch.Tensor, int], torch.Tensor]) -> Callable[[Job], np.ndarray]:
    """Records become the last axis, as torch wants them, and the first again, both as views."""

    def run(job: Job) -> np.ndarray:
        x = loaded(job.inputs[0])
        channels = torch.from_numpy(x.reshape(len(x), -1)).T[None]
        result = smooth(channels, WINDOWS[job.workload])[0].T.numpy()
        return result.reshape(len(result), *x.shape[1:])

    return run
