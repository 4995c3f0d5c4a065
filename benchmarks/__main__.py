"""`python -m benchmarks` and `python -m benchmarks streams`: measure, check, print tables; see README.md."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from benchmarks.measuring.harness import ROOT, Measured, Setup, measure
from benchmarks.measuring.peers import MODULES, YARDSTICK
from benchmarks.measuring.report import limits_table, print_heading, save_json, save_plot, say, summary, table
from benchmarks.measuring.workloads import LIMITS, SMALL_MIB, WORKLOADS, Workload
from benchmarks.streams import streams


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="which of %(default)s")
    parser.add_argument(
        "--peers",
        default=",".join(MODULES),
        help="which of %(default)s; flowcompute:TEXT is flowcompute on the device TEXT",
    )
    parser.add_argument("--mib", type=int, default=256, help="size of an input file, MiB (a multiple of 16)")
    parser.add_argument("--reps", type=int, default=5, help="repetitions")
    parser.add_argument("--batches", type=int, default=1_000_000, help="tiny batches of W6")
    parser.add_argument("--cold", action="store_true", help="files out of the page cache before, fsync within the time")
    parser.add_argument("--new-files", action="store_true", help="every peer makes its output file, as users do")
    parser.add_argument("--summary", help="write one table of all ratios to this file, with machine, load and versions")
    parser.add_argument("--no-limits", action="store_true", help="do not measure the machine itself")
    parser.add_argument("--data", default=os.path.join(ROOT, "benchmarks", "data"), help="folder for the files")
    parser.add_argument("--json", help="write everything to this file")
    parser.add_argument("--plot", help="write a plot to this file (needs matplotlib)")
    options = parser.parse_args()
    if options.mib < SMALL_MIB or options.mib % SMALL_MIB:
        parser.error(f"--mib must be a multiple of {SMALL_MIB}")
    if options.reps < 1 or options.batches < 1:
        parser.error("--reps and --batches must be at least 1")
    options.workloads = options.workloads.split(",")
    options.peers = options.peers.split(",")
    for name, known in (("workloads", WORKLOADS), ("peers", MODULES)):
        unknown = [one for one in getattr(options, name) if one.partition(":")[0] not in known]
        if unknown:
            parser.error(f"unknown {name}: {', '.join(unknown)}; known are {', '.join(known)}")
    return options


def main() -> int:
    """Measure what was asked for; 1 when a peer's answer was wrong."""
    options = parse()
    setup = Setup(options.data, options.mib, options.reps, options.batches, options.cold, options.new_files)
    started_load = print_heading("an input", setup)["load"]
    limits: list[tuple[Workload, Measured]] = []
    if not options.no_limits:
        limits += [(limit, measure(limit, [YARDSTICK], setup, say)[0]) for limit in LIMITS.values()]
        say("")
        print(limits_table(limits), flush=True)
    results: dict[str, list[Measured]] = {}
    for name in options.workloads:
        results[name] = measure(WORKLOADS[name], options.peers, setup, say)
        say("")
        print(table(WORKLOADS[name], results[name]), flush=True)
    if options.summary:
        command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
        with open(options.summary, "w", encoding="utf-8") as file:
            file.write(summary(results, setup, command, started_load=started_load))
    if options.json:
        save_json(options.json, setup, limits, results)
    if options.plot:
        save_plot(options.plot, {name: (WORKLOADS[name], measured) for name, measured in results.items()})
    return int(any(one.state == "wrong" for measured in results.values() for one in measured))


if __name__ == "__main__":
    raise SystemExit(streams.main(sys.argv[2:]) if sys.argv[1:2] == ["streams"] else main())
