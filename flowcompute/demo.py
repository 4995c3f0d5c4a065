"""The demo: how far away the Moon is, streamed from a file through one kernel to a file, in less memory than the file."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

import flowcompute as fc
from flowcompute.demo_data import DemoData, find_data
from flowcompute.elements import Compute, Element
from flowcompute.errors import RunError
from flowcompute.runtime.run import Run

RESULT = "moon-distance-km.npy"

_AXES, _DEGREES = 3, 13
_CHECKED_ITEMS = 1024
_AGREE_KM = 1e-6
_MIB = 1 << 20


def distance(moon: Element) -> Compute:
    """Kilometres from the Earth's centre to the Moon's in the middle of each item's four days.

    An item holds, for each of x, y and z, the coefficients of a Chebyshev polynomial over -1 .. 1. In the
    middle, at 0, these polynomials are 1, 0, -1, 0, 1 and so on.
    """
    middle = np.cos(np.arange(_DEGREES) * np.pi / 2).round()
    # One matrix of weights for each coordinate, so that all three sum over the same axes: then they fuse.
    weights = np.zeros((_AXES, _AXES, _DEGREES))
    for axis in range(_AXES):
        weights[axis, axis] = middle
    x, y, z = ((moon * weight).sum(axis=(1, 2)) for weight in weights)
    return fc.sqrt(x * x + y * y + z * z)


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What a demo run did.

    Attributes:
        data: what it read.
        run: the finished run.
        nearest_km, mean_km, farthest_km: the answer.
        path: where the distances lie; None if they were not kept.
        checked_items: how many distances were computed again with NumPy.
        worst_km: the largest difference among these.
        start_s: seconds until the first batch was through: finding the device, building the kernel.
        anonymous_bytes: most anonymous memory of the process at the end of a batch; None where unknown.
    """

    data: DemoData
    run: Run
    nearest_km: float
    mean_km: float
    farthest_km: float
    path: str | None
    checked_items: int
    worst_km: float
    start_s: float
    anonymous_bytes: int | None


class _Watch:
    """Notes, after each batch, when the first came through and how much memory the process had."""

    def __init__(self) -> None:
        self.began_s = time.perf_counter()
        self.start_s = math.nan
        self.anonymous_bytes: int | None = None

    def __call__(self, _run: Run) -> None:
        if math.isnan(self.start_s):
            self.start_s = time.perf_counter() - self.began_s
        now = anonymous_bytes()
        if now is not None:
            self.anonymous_bytes = max(now, self.anonymous_bytes or 0)


def anonymous_bytes() -> int | None:
    """Memory of this process that belongs to no file, in bytes; None where the system does not say."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return None


def run_demo(
    *,
    memory: str | int | None = None,
    large: bool = False,
    offline: bool = False,
    keep: str | None = None,
    device: str = "auto",
    progress: bool | None = None,
    console: Console,
) -> DemoReport:
    """Find the data, say what will be done, do it, check it.

    Args:
        memory: budget; by default a quarter of the file.
        large: the ephemeris of 6000 years and not that of 300.
        offline: generate data where none was kept from an earlier run.
        keep: folder to write the distances to; by default a temporary one.
        device, progress: as for `fc.run`.
        console: where to say what will be done.

    Raises:
        FlowError: whatever went wrong.
    """
    data = find_data(large=large, offline=offline)
    size = os.path.getsize(data.path)
    budget = max(_MIB, size // 4 // _MIB * _MIB) if memory is None else memory
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if keep is None else keep
        os.makedirs(folder, exist_ok=True)
        target = os.path.join(folder, RESULT)
        moon = fc.open(data.path, name="moon")
        km = distance(moon)
        roots = (km >> fc.save(target), km.min(), km.mean(), km.max())
        plan = fc.plan(*roots, memory=budget, device=device)
        console.print(f"{data.description}", highlight=False)
        console.print(
            f"{moon.spec}: {decimal(size)} in a budget of {decimal(plan.memory.budget_bytes)}\n", highlight=False
        )
        watch = _Watch()
        run = fc.run(*roots, memory=budget, device=device, progress=progress, on_batch=watch)
        checked, worst = _check(data.path, target)
    nearest, mean, farthest = (float(value) for value in run.values[1:])
    return DemoReport(
        data,
        run,
        nearest,
        mean,
        farthest,
        None if keep is None else target,
        checked,
        worst,
        watch.start_s,
        watch.anonymous_bytes,
    )
