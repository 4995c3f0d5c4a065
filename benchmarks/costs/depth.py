"""Cost of deep and wide graphs: `python -m benchmarks.costs.depth`.

Seconds of the processor to compose, hash, print, plan and run graphs of several sizes, and to freeze and thaw them. No
numbers to speak of are computed, so what is left is the cost of an operation.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import flowcompute as fc
from flowcompute.elements import Element

STAGES = ("compose", "hash", "print", "plan", "print the plan")
KEPT = ("run with a checkpoint", "thaw")


def source(columns: int = 4) -> Element:
    """A short stream."""
    return fc.source(np.ones((10, columns), np.float32))


def additions(n: int) -> Element:
    """A chain of additions."""
    x = source()
    for i in range(n):
        x = x + i % 7
    return x


def flips(n: int) -> Element:
    """A chain of flips."""
    x = source()
    for _ in range(n):
        x = fc.flip(x, axis=1)
    return x


def slices(n: int) -> Element:
    """A chain of slices of items."""
    x = source(n + 4)
    for _ in range(n):
        x = x[:, 1:]
    return x


def transposes(n: int) -> Element:
    """A chain of transposes."""
    x: Element = fc.source(np.ones((10, 4, 5), np.float32))
    for _ in range(n):
        x = x.mT
    return x


def row_sums(n: int) -> Element:
    """A chain of sums of rows, each added to its row."""
    x = source()
    for _ in range(n // 2):
        x = x + x.sum(axis=1, keepdims=True)
    return x


def many_readers(n: int) -> Element:
    """A source that half of the operations read, and the sum of these."""
    x = source()
    parts = [x * i for i in range(n // 2)]
    while len(parts) > 1:
        pairs = [one + other for one, other in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def diamonds(n: int) -> Element:
    """Each value added to itself."""
    x = source()
    for _ in range(n):
        x = x + x
    return x


GRAPHS: tuple[Callable[[int], Element], ...] = (
    additions,
    flips,
    slices,
    transposes,
    row_sums,
    many_readers,
    diamonds,
)


def measured(graph: Callable[[int], Element], n: int, device: str) -> Iterator[float]:
    """Yield the seconds of the processor of each stage."""
    began = time.process_time()

    def lap() -> float:
        nonlocal began
        before, began = began, time.process_time()
        return began - before

    root = graph(n)
    yield lap()
    _ = root.hash
    yield lap()
    str(root)
    yield lap()
    plan = root.plan(device=device)
    yield lap()
    str(plan)
    yield lap()


def kept(graph: Callable[[int], Element], n: int, device: str) -> Iterator[float]:
    """Yield the seconds of the processor to run with a checkpoint, and to take the result out of it again."""
    root = graph(n)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kept"
        began = time.process_time()
        root.resolve(device=device, checkpoint=str(path), tune=False, progress=False)
        ended = time.process_time()
        yield ended - began
        fc.thaw(path).resolve(device=device, tune=False, progress=False)
        yield time.process_time() - ended


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs.depth", description=__doc__)
    parser.add_argument("--device", default="numpy", help="as in plan(device=)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="operations")
    parser.add_argument("--graphs", nargs="+", default=[graph.__name__ for graph in GRAPHS])
    parser.add_argument("--kept", action="store_true", help="run, freeze and thaw instead of planning")
    options = parser.parse_args()
    stages = KEPT if options.kept else STAGES
    # The first verb loads what plans and runs.
    [*measured(additions, 1, options.device)]
    print(f"| graph | operations | {' | '.join(stages)} | sum |\n|{' --- |' * (len(stages) + 3)}")
    for graph in (graph for graph in GRAPHS if graph.__name__ in options.graphs):
        for n in options.sizes:
            seconds = [*(kept if options.kept else measured)(graph, n, options.device)]
            cells = " | ".join(f"{value:.2f}" for value in (*seconds, sum(seconds)))
            print(f"| {graph.__name__.replace('_', ' ')} | {n:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
