"""`python -m benchmarks streams`: passes, windows, random numbers and flows beside other libraries; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import statistics
from dataclasses import asdict

from benchmarks.costs.latency import Latency, latency_table, measure_latency
from benchmarks.measuring.harness import ROOT, Measured, Setup, Task, compare
from benchmarks.measuring.report import find, print_heading, say
from benchmarks.measuring.workloads import SMALL_MIB, Workload
from benchmarks.streams.stream_check import StreamChecker
from benchmarks.streams.stream_workloads import PEERS, STREAMS, make_inputs, make_job

OURS = "flowcompute"
LATENCY = "S8"


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks streams", description=__doc__)
    parser.add_argument("--workloads", default=",".join([*STREAMS, LATENCY]), help="which of %(default)s")
    parser.add_argument("--mib", type=int, default=1024, help="size of the file to standardise (a multiple of 16)")
    parser.add_argument("--reps", type=int, default=5, help="repetitions, after one that does not count")
    parser.add_argument("--calls", type=int, default=2000, help="calls in a repetition of S8")
    parser.add_argument("--cold", action="store_true", help="files out of the page cache before, fsync within the time")
    parser.add_argument("--data", default=os.path.join(ROOT, "benchmarks", "data", "streams"), help="folder for files")
    parser.add_argument("--json", help="write everything to this file")
    options = parser.parse_args(arguments)
    if options.mib < SMALL_MIB or options.mib % SMALL_MIB:
        parser.error(f"--mib must be a multiple of {SMALL_MIB}")
    if options.reps < 1 or options.calls < 2:
        parser.error("--reps must be at least 1 and --calls at least 2")
    options.workloads = options.workloads.split(",")
    unknown = set(options.workloads) - {*STREAMS, LATENCY}
    if unknown:
        parser.error(f"unknown workloads: {', '.join(sorted(unknown))}")
    return options


def table(workload: Workload, results: list[Measured]) -> str:
    """One workload as a Markdown table, the fastest first."""
    ours = find(results, OURS)
    fast = sorted((one for one in results if one.seconds), key=lambda one: statistics.median(one.seconds))
    lines = [
        f"\n### {workload.name}: {workload.title}\n",
        "| peer | seconds, median | spread | time over flowcompute's | error | private MB | resident MB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in fast:
        pairs = zip(one.seconds, ours.seconds if ours else (), strict=False)
        ratios = [theirs / mine for theirs, mine in pairs]
        lines.append(
            f"| {one.peer} | {statistics.median(one.seconds):.3g} | {min(one.seconds):.3g} to {max(one.seconds):.3g} "
            f"| {f'{statistics.median(ratios):.2f}' if ratios else ''} "
            f"| {f'**WRONG**: {one.text}' if one.state == 'wrong' else f'{one.error:.0e}'} "
            f"| {one.peak_bytes / 1e6:.0f} | {one.resident_bytes / 1e6:.0f} |"
        )
    rest = [f"- {one.peer}: {one.state} {one.text}".rstrip() for one in results if not one.seconds]
    return "\n".join([*lines, *rest])


def main(arguments: list[str]) -> int:
    """Measure what was asked for; 1 when a peer's answer was wrong."""
    options = parse(arguments)
    setup = Setup(options.data, options.mib, options.reps, 0, options.cold)
    machine = print_heading("a file", setup)
    results: dict[str, list[Measured]] = {}
    for name in options.workloads:
        if name != LATENCY:
            results[name] = _measure(STREAMS[name], setup)
            say("")
            print(table(STREAMS[name], results[name]), flush=True)
    latency: dict[str, Latency] = {}
    if LATENCY in options.workloads:
        latency = measure_latency(options.reps, options.calls)
        print(latency_table(latency))
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")
    if options.json:
        everything = {
            "environment": machine,
            "workloads": {name: [asdict(one) for one in measured] for name, measured in results.items()},
            LATENCY: {name: asdict(one) for name, one in latency.items()},
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)
            file.write("\n")
    return int(any(one.state == "wrong" for measured in results.values() for one in measured))


def _measure(workload: Workload, setup: Setup) -> list[Measured]:
    places = ((setup.folder, setup.mib), (os.path.join(setup.folder, "small"), SMALL_MIB))
    for folder, mib in places:
        make_inputs(workload, folder, mib)
    tasks = [
        Task(peer, *(make_job(workload, peer, *place) for place in places), anew=True) for peer in PEERS[workload.name]
    ]
    return compare(workload, tasks, setup, say, StreamChecker, untimed=1)
