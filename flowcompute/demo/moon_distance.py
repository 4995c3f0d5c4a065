"""Demo: the distance of the Moon, from a file through one kernel to a file, in less memory than the file takes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Unpack

import numpy as np
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

import flowcompute as fc
from flowcompute.demo.ephemeris import DE421, DE422, DemoData, find_data
from flowcompute.elements import Compute, Element
from flowcompute.errors import DestinationError, RunError
from flowcompute.files import FILES, explain
from flowcompute.imports import dataclass
from flowcompute.runtime.run import Run
from flowcompute.strategy import PlanOptions

RESULT = "moon-distance-km.npy"
"""Name of the file that the demo writes."""

_AXES, _DEGREES = 3, 13
_CHECKED_ITEMS = 1000
_AGREE_KM = 1e-6
_POSSIBLE_KM = (356_000, 407_000)
_MIB = 1 << 20


def distance(moon: Element) -> Compute:
    """Return the kilometres from the Earth's centre to the Moon's, in the middle of each item's four days.

    An item holds, for each of x, y and z, the coefficients of a Chebyshev polynomial over -1 .. 1. In the
    middle these polynomials are 1, 0, -1, 0, 1 and so on.
    """
    # There is one matrix of weights for each coordinate: all three then sum over the same axes, and fuse.
    x, y, z = ((moon * weights).sum(axis=(1, 2)) for weights in _middle_weights())
    return fc.sqrt(x * x + y * y + z * z)


def _middle_weights() -> np.ndarray:
    weights = np.zeros((_AXES, _AXES, _DEGREES))
    for axis in range(_AXES):
        weights[axis, axis] = np.cos(np.arange(_DEGREES) * np.pi / 2).round()
    return weights


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Results of a demo run.

    Attributes:
        data: the input.
        run: the finished run.
        nearest_km, mean_km, farthest_km: the answer.
        path: the file of the distances; None if they were not kept.
        checked_items: number of distances, spread over the file, that were computed again with NumPy.
        worst_km: the largest difference among these.
        started_s: seconds from the start of the run until the first batch was complete: device, kernel, first reads.
        anonymous_bytes: the most memory without a file behind it that the process had after a batch; None where
            the system does not say.
    """

    data: DemoData
    run: Run
    nearest_km: float
    mean_km: float
    farthest_km: float
    path: str | None
    checked_items: int
    worst_km: float
    started_s: float
    anonymous_bytes: int | None


class _Watch:
    """Observer that records the time of the first batch, and the process's memory after each batch."""

    def __init__(self) -> None:
        self.started_s: float | None = None
        self.anonymous_bytes: int | None = None

    def __call__(self, run: Run) -> None:
        if self.started_s is None:
            self.started_s = run.seconds
        now = _anonymous_bytes()
        if now is not None:
            self.anonymous_bytes = max(now, self.anonymous_bytes or 0)


def _anonymous_bytes() -> int | None:
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return None


def run_demo(
    *,
    large: bool = False,
    offline: bool = False,
    keep: str | None = None,
    progress: bool | None = None,
    console: Console,
    **options: Unpack[PlanOptions],
) -> DemoReport:
    """Find the data, print what will be done, run the job, and check it.

    Args:
        large: the ephemeris of 6000 years and not that of 300.
        offline: use a file of an earlier run, else generate one; never use the network.
        keep: folder for the distances; by default they are dropped.
        progress: as for `fc.run`.
        console: the console that is printed to.
        options: as for `fc.plan`; `memory` is by default a quarter of the file.

    Raises:
        FlowError: as the job does; RunError if the answer differs from NumPy's.
    """
    with console.status(_search_message(large, offline)):
        data = find_data(large=large, offline=offline)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="flowcompute-")) if keep is None else keep
        target = os.path.join(_make_folder(folder), RESULT)
        moon = fc.open(data.path, name="moon")
        size_bytes = os.path.getsize(data.path)
        km = distance(moon)
        roots = (km >> fc.save(target), km.min(), km.mean(), km.max())
        if options.get("memory") is None:
            options["memory"] = max(_MIB, size_bytes // 4 // _MIB * _MIB)
        # The file is read and not mapped, so that every byte visibly lies in the budget.
        options["strategy"] = (options.get("strategy") or fc.Strategy()).with_defaults(fc.Strategy(input="read"))
        plan = fc.plan(*roots, **options)
        console.print(Text(data.description))
        console.print(Text(f"{moon.spec}, {decimal(size_bytes)}, in {decimal(plan.memory.budget_bytes)} of memory"))
        watch = _Watch()
        run = fc.run(*roots, **options, progress=progress, on_batch=watch)
        checked_items, worst_km = _check(data.path, target)
    _, nearest_km, mean_km, farthest_km = run.values
    return DemoReport(
        data=data,
        run=run,
        nearest_km=float(nearest_km),
        mean_km=float(mean_km),
        farthest_km=float(farthest_km),
        path=None if keep is None else target,
        checked_items=checked_items,
        worst_km=worst_km,
        started_s=run.seconds if watch.started_s is None else watch.started_s,
        anonymous_bytes=watch.anonymous_bytes,
    )


def _search_message(large: bool, offline: bool) -> str:
    """Return the line to print while data is found, which may take minutes."""
    ephemeris = DE422 if large else DE421
    source = "" if offline else f" ({decimal(ephemeris.archive_bytes)} from PyPI, once)"
    return f"looking for JPL ephemeris {ephemeris.package.upper()}{source}"


def _make_folder(folder: str) -> str:
    try:
        FILES.make_folders(folder, 0o777)
    except OSError as error:
        said, hint = explain(error)
        raise DestinationError(f"cannot make {folder}: {said}", element="keep", hint=hint) from error
    return folder


def _check(source: str, target: str) -> tuple[int, float]:
    """Compute some of the distances again with NumPy. Return their number and the largest difference in km.

    Raises:
        RunError: if one differs by more than rounding.
    """
    moon, km = np.load(source, mmap_mode="r"), np.load(target, mmap_mode="r")
    some = np.unique(np.linspace(0, len(moon) - 1, _CHECKED_ITEMS).astype(np.int64))
    position = moon[some] @ _middle_weights()[0, 0]
    differences = np.abs(np.sqrt((position * position).sum(axis=-1)) - km[some])
    worst = int(differences.argmax())
    if len(km) != len(moon) or not differences[worst] <= _AGREE_KM:
        raise RunError(
            "cannot confirm the demo's distances: NumPy's differ",
            element="sqrt",
            records=(int(some[worst]), int(some[worst]) + 1),
            expected=f"{len(moon)} distances, equal to {_AGREE_KM} km",
            got=f"{len(km)} distances, one off by {differences[worst]} km",
            hint="please report this with the output of `flowcompute devices`; --device numpy needs no driver",
        )
    return len(some), float(differences[worst])


def summary(report: DemoReport) -> Table:
    """Return the report as a table that fits a screen."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for label, text in _lines(report):
        table.add_row(label, Text(text))
    return table


def _lines(report: DemoReport) -> list[tuple[str, str]]:
    run, plan = report.run, report.run.plan
    nearest, farthest = (f"{limit:,}" for limit in _POSSIBLE_KM)
    process = "" if report.anonymous_bytes is None else f"; {decimal(report.anonymous_bytes)} in the whole process"
    kernels = "none: NumPy computed it"
    if plan.kernels:
        kernels = (
            f"{len(plan.kernels)}, launched {run.launches} times, once for each batch of {plan.batch_items:,} records"
        )
    return [
        ("distance", f"{report.nearest_km:,.0f} to {report.farthest_km:,.0f} km, {report.mean_km:,.0f} km on average"),
        ("", f"(the real Moon stays between {nearest} and {farthest} km)"),
        ("checked", f"{report.checked_items:,} distances against NumPy: equal to {report.worst_km:.1g} km"),
        ("records", run.progress.records.removesuffix(" records")),
        ("bytes", f"{decimal(run.bytes_read)} read, {decimal(run.bytes_written)} written"),
        ("speed", f"{_flow_speed(report) / 1e9:.2f} GB/s, read and written, after the first batch"),
        ("seconds", f"{run.seconds:.2f}, {report.started_s:.2f} of them to the first batch (device, kernel)"),
        ("bottleneck", f"{run.bottleneck}, busy for {_busy_s(run):.2f} s"),
        ("memory", f"{decimal(run.peak_bytes)} in own buffers at the peak{process}"),
        ("kernels", kernels),
        ("device", f"{plan.backend.capabilities.name} ({plan.backend.capabilities.reason})"),
        ("result", report.path or "dropped (keep it with --keep FOLDER)"),
    ]


def _flow_speed(report: DemoReport) -> float:
    """Return the bytes a second after the first batch, or over all where there is one batch."""
    run = report.run
    items, first = run.progress.items, min(run.plan.batch_items, run.progress.items)
    moved_bytes = run.bytes_read + run.bytes_written
    if first == items:
        return moved_bytes / run.seconds
    return moved_bytes * (items - first) / items / (run.seconds - report.started_s)


def _busy_s(run: Run) -> float:
    return 0.0 if run.bottleneck is None else run.metrics[run.bottleneck].busy_s
