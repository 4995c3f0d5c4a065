"""Tables, JSON and a plot of what was measured."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from dataclasses import asdict
from importlib import metadata
from typing import Any

from benchmarks.measuring.harness import Measured, Setup
from benchmarks.measuring.peers import YARDSTICK
from benchmarks.measuring.workloads import Workload

LIBRARIES = ("numpy", "numexpr", "jax", "dask", "torch", "pyopencl", "pocl-binary-distribution", "intel-opencl-rt")


def rates(workload: Workload, measured: Measured) -> list[float]:
    """Throughput of each repetition, in the workload's unit."""
    scale = 1e6 if workload.name == "W6" else 1e9
    return [measured.moved / seconds / scale for seconds in measured.seconds]


def ratio(workload: Workload, measured: Measured, yardstick: Measured | None) -> float | None:
    """Median over the repetitions of this peer's throughput over the yardstick's in the same repetition."""
    if yardstick is None or not yardstick.seconds or not measured.seconds:
        return None
    pairs = zip(rates(workload, measured), rates(workload, yardstick), strict=False)
    return statistics.median(mine / theirs for mine, theirs in pairs)


def find(results: list[Measured], peer: str) -> Measured | None:
    """The named peer's results, if it was right."""
    return next((one for one in results if one.peer == peer and one.state == "right"), None)


def table(workload: Workload, results: list[Measured]) -> str:
    """One workload as a Markdown table, the fastest first."""
    yardstick = find(results, YARDSTICK)
    fast = [one for one in results if one.state in ("right", "wrong") and one.seconds]
    fast.sort(key=lambda one: -statistics.median(rates(workload, one)))
    lines = [
        f"\n### {workload.name}: {workload.title}\n",
        f"| peer | {workload.unit}, median | spread | ratio to C | error | peak memory, MB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in fast:
        speeds = rates(workload, one)
        compared = ratio(workload, one, yardstick)
        lines.append(
            f"| {one.peer} | {statistics.median(speeds):.3g} | {min(speeds):.3g} to {max(speeds):.3g} "
            f"| {'' if compared is None else f'{compared:.2f}'} "
            f"| {f'**WRONG**: {one.text}' if one.state == 'wrong' else f'{one.error:.0e}'} "
            f"| {f'{one.peak_bytes / 1e6:.0f}' if one.peak_bytes else ''} |"
        )
    rest = [one for one in results if one not in fast]
    reasons: dict[str, list[str]] = {}
    for one in rest:
        reasons.setdefault(f"{one.state}: {one.text}" if one.text else one.state, []).append(one.peer)
    lines += [""] + [f"- {', '.join(peers)}: {reason}" for reason, peers in reasons.items()]
    return "\n".join(lines).rstrip()


def limits_table(results: list[tuple[Workload, Measured]]) -> str:
    """What the machine itself reached in the same run."""
    lines = ["\n### Limits of the machine\n", "| what | GB/s, median | spread |", "| --- | --- | --- |"]
    for workload, one in results:
        if one.state != "right":
            lines.append(f"| {workload.title} | {one.state}: {one.text} | |")
            continue
        speeds = rates(workload, one)
        lines.append(f"| {workload.title} | {statistics.median(speeds):.3g} | {min(speeds):.3g} to {max(speeds):.3g} |")
    return "\n".join(lines)


def environment() -> dict[str, Any]:
    """Machine and versions."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    model = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": versions,
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "load": os.getloadavg()[0],
    }


def print_heading(input_name: str, setup: Setup) -> dict[str, Any]:
    """Say where and how it is measured; the environment."""
    machine = environment()
    print(f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f}, Python {machine['python']}")
    print(", ".join(f"{name} {version}" for name, version in machine["libraries"].items()))
    print(f"{setup.mib} MiB {input_name}, {setup.repetitions} repetitions, {'cold' if setup.cold else 'warm'} files")
    return machine


def say(text: str) -> None:
    """Show how far it is, on a line of its own that the next one replaces; nothing without a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def summary(results: dict[str, list[Measured]], setup: Setup, command: str, *, started_load: float) -> str:
    """Return one table of all workloads: each peer's ratio to C with its spread, where, when and how it was measured.

    Args:
        results: of each workload, with the yardstick among them.
        setup: what the user chose.
        command: what was asked for.
        started_load: processes that wanted a core when it began.
    """
    machine = environment()
    versions = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
    files = "each makes a new file" if setup.new_files else "peers overwrite a file, flowcompute makes a new one"
    loads = f"load {started_load:.1f} at the start, {machine['load']:.1f} at the end, its own work included"
    where = f"{machine['date']}, {machine['processor']}, {machine['cores']} cores, {loads}"
    lines = [
        f"{where}. Python {machine['python']}, {versions}.",
        "",
        f"`{command}`: ratios to C, the median of {setup.repetitions} repetitions and their spread; {files}.",
        "",
    ]
    peers = [one.peer for one in next(iter(results.values())) if one.peer != YARDSTICK]
    # On a machine with other work the second table is the one to read.
    for clock, title in (("seconds", "ratio to C"), ("processor_seconds", "the same in processor seconds")):
        lines += [f"| {title} | " + " | ".join(peers) + " |", "|" + " --- |" * (len(peers) + 1)]
        for name, measured in results.items():
            yardstick = find(measured, YARDSTICK)
            cells = [_compared(find(measured, peer), yardstick, clock) for peer in peers]
            lines.append("| " + " | ".join([name, *cells]) + " |")
        lines.append("")
    return "\n".join(lines)


def _compared(one: Measured | None, yardstick: Measured | None, clock: str) -> str:
    """Return the ratios of a peer's repetitions to those of the yardstick, "-" where there are none."""
    if one is None or yardstick is None or not one.seconds or not yardstick.seconds:
        return "-"
    pairs = zip(getattr(one, clock), getattr(yardstick, clock), strict=False)
    ratios = [one.moved / mine / (yardstick.moved / theirs) for mine, theirs in pairs]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def save_json(
    path: str, setup: Setup, limits: list[tuple[Workload, Measured]], results: dict[str, list[Measured]]
) -> None:
    """Everything that was measured, repetition by repetition."""
    everything = {
        "environment": environment(),
        "setup": {key: value for key, value in asdict(setup).items() if key != "folder"},
        "limits": {workload.name: asdict(one) for workload, one in limits},
        "workloads": {name: [asdict(one) for one in measured] for name, measured in results.items()},
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(everything, file, indent=1)
        file.write("\n")


def save_plot(path: str, results: dict[str, tuple[Workload, list[Measured]]]) -> None:
    """A bar for each peer and workload: throughput over that of C, every repetition as a dot."""
    import matplotlib as mpl  # noqa: PLC0415 - only those who plot need it

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    shown = {name: pair for name, pair in results.items() if find(pair[1], YARDSTICK)}
    if not shown:
        raise SystemExit(f"a plot shows ratios: measure the peer {YARDSTICK!r} too")
    figure, axes = plt.subplots(1, len(shown), figsize=(2.6 * len(shown) + 1, 4), squeeze=False)
    for axis, (name, (workload, measured)) in zip(axes[0], shown.items(), strict=True):
        yardstick = find(measured, YARDSTICK)
        assert yardstick is not None
        right = [one for one in measured if one.state == "right"]
        for place, one in enumerate(right):
            pairs = zip(rates(workload, one), rates(workload, yardstick), strict=True)
            ratios = [mine / theirs for mine, theirs in pairs]
            color = "tab:orange" if one.peer.startswith("flowcompute") else "tab:blue"
            axis.barh(place, statistics.median(ratios), color=color, alpha=0.6)
            axis.plot(ratios, [place] * len(ratios), ".", color="black", markersize=4)
        axis.set_yticks(range(len(right)), [one.peer for one in right])
        axis.invert_yaxis()
        axis.axvline(1.0, color="black", linewidth=0.8)
        axis.set_title(name)
        axis.set_xlabel("throughput / C")
        axis.set_xlim(left=0)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
