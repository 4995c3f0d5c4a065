"""Processor seconds that flowcompute costs around the numbers: `python -m benchmarks.costs.cost`.

Seconds of all threads of a process, user and system, so that other work on the machine disturbs less than it does a
clock on the wall. `--base` names another checkout, whose processes take turns with those of this one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

import flowcompute as fc
from benchmarks.costs.latency import RawLoop
from benchmarks.measuring.harness import ROOT

MIB = 1 << 20
FILE_MIB = 16
BATCH_BYTES = 16 << 10
FEW, MANY = 32, 1056
FLOW_ITEMS = 8

COMMANDS = {
    "an interpreter with NumPy": ["-c", "import numpy"],
    "`import flowcompute`": ["-c", "import flowcompute"],
    "importing, and a first name": ["-c", "import flowcompute as fc; fc.source"],
    "importing, and planning a sum": ["-c", "import flowcompute as fc; fc.arange(9).sum().plan(device='numpy')"],
    "`flowcompute --help`": ["-m", "flowcompute", "--help"],
}
"""Costs of a whole process."""


def seconds_of(call: Callable[[], object]) -> float:
    """Return the processor seconds of this process during a call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def repeated(call: Callable[[], object], times: int, before: int = 3) -> float:
    """Return the median processor seconds of a call, after some that do not count."""
    for _ in range(before):
        call()
    return statistics.median(seconds_of(call) for _ in range(times))


def probe(device: str, folder: str) -> dict[str, float]:
    """Return the processor seconds of what a process does again and again, by what it is."""
    options = {"device": device, "progress": False}
    small = np.ones((1000, 8), np.float32)
    path = os.path.join(folder, "input.npy")
    matrix = np.ones((64, 64), np.float32)

    def run_small() -> None:
        x = fc.source(small)
        (fc.nn.sigmoid(2 * x + 1) * fc.tanh(x)).sum(axis=1).resolve(**options)

    def run_file() -> None:
        (fc.open(path) * 2 + 1).sum(axis=0).resolve(**options)

    def run_resident() -> None:
        (fc.constant(matrix) @ fc.constant(matrix) + 1).resolve(**options)

    def plan_small() -> None:
        x = fc.source(small)
        (fc.nn.sigmoid(2 * x + 1) * fc.tanh(x)).sum(axis=1).plan(device=device)

    stream = fc.source(np.ones((MANY * BATCH_BYTES // 1024, 256), np.float32))

    def run_batches(count: int) -> Callable[[], object]:
        job = (stream[: count * BATCH_BYTES // 1024] * 2 + 1) >> fc.discard()
        strategy = fc.Strategy(batch_bytes=BATCH_BYTES)

        def run() -> None:
            launches = job.run(**options, strategy=strategy).launches
            if launches < count:
                raise SystemExit(f"{launches} launches, {count} were asked for: nothing can be said of a batch")

        return run

    few, many = run_batches(FEW), run_batches(MANY)
    found = {
        "planning an equal graph": repeated(plan_small, 20),
        "a second equal run, 32 KiB in memory": repeated(run_small, 20),
        f"a second equal run, a file of {FILE_MIB} MiB": repeated(run_file, 20),
        "a second equal run, resident values alone": repeated(run_resident, 20),
        "a batch of 16 KiB": (repeated(many, 3, 1) - repeated(few, 3, 1)) / (MANY - FEW),
    }
    feed = fc.feed(shape=(4,), dtype="float32")
    batch = np.ones((FLOW_ITEMS, 4), np.float32)
    with fc.sqrt(fc.vecdot(feed, feed)).flow(device=device) as flow:

        def exchange() -> None:
            for _ in range(500):
                flow.send(batch)
                flow.receive()

        found["a flow's `send` and `receive`"] = repeated(exchange, 7) / 500
        if device != "numpy":
            raw = RawLoop(flow.plan, FLOW_ITEMS)
            raw.call(batch)

            def launch() -> None:
                for _ in range(500):
                    raw.launch(batch)

            found["of which the kernel alone"] = repeated(launch, 7) / 500
    return found


def command(root: str, arguments: list[str], environment: dict[str, str]) -> tuple[float, str]:
    """Return the processor seconds of a process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**environment, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=root,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def measure(roots: dict[str, str], options: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Return the seconds by what costs them and by checkout; checkouts take turns."""
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "input.npy"), np.ones((FILE_MIB * MIB // 1024, 256), np.float32))
        for repetition in range(-1, options.reps):
            for name, root in roots.items():
                environment = dict(os.environ, FLOWCOMPUTE_CACHE=os.path.join(folder, f"cache-{name}"))
                environment.pop("PYTHONDONTWRITEBYTECODE", None)
                # Compiled files are part of every installation, but not of a checkout that only tests ran in.
                environment["PYTHONPYCACHEPREFIX"] = os.path.join(folder, f"compiled-{name}")
                seconds = {what: command(root, line, environment)[0] for what, line in COMMANDS.items()}
                line = [__file__, "--probe", folder, "--device", options.device]
                seconds |= json.loads(command(root, line, environment)[1])
                for what, value in seconds.items():
                    if repetition >= 0:
                        found.setdefault(what, {}).setdefault(name, []).append(value)
    return found


def table(found: dict[str, dict[str, list[float]]]) -> str:
    """Return medians and spreads in milliseconds as a Markdown table."""
    names = list(next(iter(found.values())))
    lines = ["| " + " | ".join(["ms of the processor", *names]) + " |", "|" + " --- |" * (len(names) + 1)]
    for what, by_name in found.items():
        cells = []
        for values in by_name.values():
            low, middle, high = (1e3 * value for value in (min(values), statistics.median(values), max(values)))
            cells.append(f"{middle:.3g} ({low:.3g} to {high:.3g})")
        lines.append("| " + " | ".join([what, *cells]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.cost", description=__doc__)
    parser.add_argument("--device", default="cpu", help="as in run(device=)")
    parser.add_argument("--base", help="another checkout, measured in turns with this one")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--json", help="write the seconds to this file")
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe is not None:
        print(json.dumps(probe(options.device, options.probe)))
        return
    roots = {} if options.base is None else {"before": os.path.abspath(options.base)}
    found = measure(roots | {"now": ROOT}, options)
    print(table(found))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
