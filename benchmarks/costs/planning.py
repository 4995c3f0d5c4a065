"""Costs of flowcompute before and between the numbers: `python -m benchmarks.costs.planning`.

Composing and planning a graph of 1000 elements; planning 30 layers of a transformer; the first result of a small
graph in a fresh process, with an empty and with a filled program cache; the time a batch costs beyond its numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import flowcompute as fc
from benchmarks.measuring.harness import ROOT

ELEMENTS = 1000
LAYERS = 30
WIDTH = 32
ROWS = 1024
NUMBERS = 4096

FIRST_RESULT = """
import time
began = time.perf_counter()
import numpy as np
import flowcompute as fc
imported = time.perf_counter()
x = fc.source(np.ones((1000, 8), np.float32))
y = (fc.nn.sigmoid(2 * x + 1) * fc.tanh(x)).sum(axis=1)
y.resolve(device={device!r}, progress=False)
print(imported - began, time.perf_counter() - imported)
"""


def compose_and_plan(device: str) -> tuple[float, float]:
    """Seconds to compose and to plan a chain of 1000 elements."""
    data = np.ones((1000, 8), np.float32)
    began = time.perf_counter()
    x = fc.source(data)
    y = x
    for k in range(ELEMENTS // 2):
        y = (y + x) if k % 2 else (y * x)
        y = fc.tanh(y) if k % 3 else fc.sqrt(y)
    composed = time.perf_counter()
    y.plan(device=device)
    return composed - began, time.perf_counter() - composed


def plan_layers(device: str) -> float:
    """Seconds of the processor to plan equal layers of a transformer, whose positions every layer reads."""

    rng = np.random.default_rng(1)

    def weights(rows: int, columns: int) -> fc.Element:
        return fc.constant(rng.standard_normal((rows, columns), np.float32))

    def heads(x: fc.Element) -> fc.Element:
        return fc.permute_dims(fc.reshape(x @ weights(WIDTH, WIDTH), (-1, 64, 4, WIDTH // 4)), (0, 2, 1, 3))

    x, at = fc.source(np.ones((16, 64, WIDTH), np.float32)), fc.source(np.arange(16, dtype=np.int32))
    for _ in range(LAYERS):
        h = fc.nn.rms_norm(x)
        mixed = fc.nn.attention(fc.nn.rope(heads(h), at), fc.nn.rope(heads(h), at), heads(h), causal=True)
        x = x + fc.reshape(fc.permute_dims(mixed, (0, 2, 1, 3)), (-1, 64, WIDTH)) @ weights(WIDTH, WIDTH)
        h = fc.nn.rms_norm(x)
        x = x + (fc.nn.silu(h @ weights(WIDTH, 64)) * (h @ weights(WIDTH, 64))) @ weights(64, WIDTH)
    began = time.process_time()
    fc.plan(x, device=device)
    return time.process_time() - began


def first_result(device: str, cache: str) -> tuple[float, float]:
    """Seconds to import and, after that, to the first result, in a fresh process with this cache folder."""
    environment = os.environ | {"FLOWCOMPUTE_CACHE": cache, "XDG_CACHE_HOME": cache, "PYTHONPATH": ROOT}
    environment.pop("POCL_CACHE_DIR", None)
    command = [sys.executable, "-c", FIRST_RESULT.format(device=device)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    imported, first = map(float, done.stdout.split())
    return imported, first


def batch_overhead(device: str) -> float:
    """Seconds a batch costs beyond its numbers: the same numbers in many and in few batches."""
    x = fc.source(np.ones((ROWS, NUMBERS), np.float32))
    points = []
    for rows in (1, 64):
        job = (x * 2 + 1) >> fc.discard()
        began = time.perf_counter()
        run = job.run(device=device, progress=False, strategy=fc.Strategy(batch_bytes=rows * NUMBERS * 4))
        points.append((run.launches, time.perf_counter() - began))
    (many, slow), (few, fast) = points
    if many <= few:
        raise SystemExit(f"{many} and {few} launches: the batches were not cut as asked, so nothing can be said")
    return (slow - fast) / (many - few)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.planning", description=__doc__)
    parser.add_argument("--device", default="auto", help="as in run(device=)")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--json", help="write the numbers to this file")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        seconds.setdefault(name, []).append(value)

    for _ in range(options.reps):
        composed, planned = compose_and_plan(options.device)
        note(f"compose {ELEMENTS} elements", composed)
        note(f"plan {ELEMENTS} elements", planned)
        note(f"plan {LAYERS} layers", plan_layers(options.device))
        note("a batch beyond its numbers", batch_overhead(options.device))
        with tempfile.TemporaryDirectory() as cache:
            for temperature in ("cold", "warm"):
                imported, first = first_result(options.device, cache)
                note("import", imported)
                note(f"first result, {temperature} program cache", first)
    print("| what | ms, median | spread |\n| --- | --- | --- |")
    for name, values in seconds.items():
        low, middle, high = (1e3 * value for value in (min(values), statistics.median(values), max(values)))
        print(f"| {name} | {middle:.3g} | {low:.3g} to {high:.3g} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(seconds, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
