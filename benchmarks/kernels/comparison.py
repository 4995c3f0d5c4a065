"""Kernels from memory to memory on a CPU, beside C, NumPy, jax, torch and tinygrad: no files, no runtime.

    python -m benchmarks.kernels [--mib 64] [--reps 7] [--peers c,numpy,jax,torch,tinygrad] [--cases W1,softmax,...]

All take turns in one process and use every core; a peer has its formula compiled, its arrays in its
own form and, where it lets one, its result's memory before anything is timed. tinygrad runs on the
same PoCL (`CL` is its name there). A cell is flowcompute's rate over the peer's, the median of the
repetitions, so more than 1 says that flowcompute is faster. Each computes twice and is timed the second
time: OpenMP's threads wait busily for some milliseconds after a peer's last call. Answers are compared.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import flowcompute as fc
from benchmarks.measuring.interleaved import interleaved
from benchmarks.measuring.report import environment
from benchmarks.measuring.workloads import COLUMNS, ROW, WEIGHT_COLUMNS
from flowcompute.batch import Batch
from flowcompute.jobs import job_of

PEERS = ("c", "numpy", "jax", "torch", "tinygrad")


@dataclass(frozen=True)
class Case:
    """One formula.

    Attributes:
        title: the formula, for people.
        shape: of the items of the array that it takes.
        ours: the elements, of a stream and the second operand.
        work: bytes that are read and written, or operations, for each number of the array.
        unit: what `work` counts.
        operand: shape of the second operand, if there is one.
        records: how many, where that is not what fills `--mib`.
    """

    title: str
    shape: tuple[int, ...]
    ours: Callable[[fc.Element, Any], Any]
    work: float
    unit: str = "GB/s"
    operand: tuple[int, ...] = ()
    records: int | None = None


def _unit_rows(x: fc.Element, weight: Any) -> Any:
    return (x / fc.sqrt((x * x).sum(axis=1, keepdims=True))) @ weight


CASES = {
    "W1": Case(
        "sigmoid(1.5x - 0.25) tanh(x) + x^2", (), lambda x, _: fc.nn.sigmoid(1.5 * x - 0.25) * fc.tanh(x) + x * x, 8
    ),
    "W3": Case(f"softmax of rows of {ROW}", (ROW,), lambda x, _: fc.nn.softmax(x), 8),
    "W4": Case(
        f"rows of {ROW} to unit length @ ({ROW}, {WEIGHT_COLUMNS})",
        (ROW,),
        _unit_rows,
        2 * WEIGHT_COLUMNS,
        "GFLOP/s",
        (ROW, WEIGHT_COLUMNS),
    ),
    "W5": Case(f"mean and variance of {COLUMNS} columns", (COLUMNS,), lambda x, _: (x.mean(axis=0), x.var(axis=0)), 4),
    "sum": Case("sum of all", (), lambda x, _: x.sum(), 4),
    "layer norm": Case(f"layer norm of rows of {ROW}", (ROW,), lambda x, _: fc.nn.layer_norm(x), 8),
    "argmax": Case(f"argmax of rows of {ROW}", (ROW,), lambda x, _: x.argmax(axis=1), 4),
    "scan": Case("running sum", (), lambda x, _: fc.cumulative_sum(x), 8),
    "conv": Case(
        "3 x 3 convolution, 32 to 32 channels of 56 x 56",
        (32, 56, 56),
        fc.nn.conv2d,
        2 * 9 * 32 * (54 / 56) ** 2,
        "GFLOP/s",
        (32, 32, 3, 3),
        16,
    ),
    "attention": Case(
        "self-attention, 8 heads of 512 x 64",
        (8, 512, 64),
        lambda x, _: fc.nn.attention(x, x, x),
        4 * 512,
        "GFLOP/s",
        (),
        4,
    ),
}


class OneBatch:
    """All records as one batch, computed where they lie; `run` computes them again from the beginning."""

    def __init__(self, roots: Sequence[fc.Element], array: np.ndarray) -> None:
        plan = fc.plan(*roots, device="cpu", memory="64GiB", strategy=fc.Strategy(batch_bytes=array.nbytes, depth=1))
        self.executor = job_of(plan).executor(0, {})
        self.executor.open()
        (one_pass,) = plan.passes
        self.batch = Batch(0, 0, len(array), {one_pass.sources[0].value: array})
        streams = [sink for sink in one_pass.sinks if sink.spec.is_stream]
        self.outputs = {sink.value: np.empty((len(array), *sink.spec.shape), sink.spec.dtype) for sink in streams}

    def run(self) -> None:
        """Launch all kernels, and put blocks of folds together."""
        self.executor.reset()
        self.executor.process(self.batch, self.outputs)


def main() -> int:
    """Measure and print the table; 1 if a peer's answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--cases", default=",".join(CASES))
    options = parser.parse_args()
    machine = environment()
    print(f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f}, {options.mib} MiB of float32")
    peers = {name: _library(name) for name in options.peers.split(",")}
    for name, found in peers.items():
        if isinstance(found, str):
            print(f"{name}: {found}")
    there = [name for name, found in peers.items() if not isinstance(found, str)]
    print(f"\n| kernel | flowcompute | {' | '.join(f'over {name}' for name in there)} |")
    print("| --- " * (2 + len(there)) + "|")
    wrong: list[str] = []
    for name in options.cases.split(","):
        print(_row(name, CASES[name], {one: peers[one] for one in there}, options, wrong), flush=True)
    print(*wrong, sep="\n")
    return int(bool(wrong))


def _library(name: str) -> Any:
    """What makes calls with a library, or why there is none."""
    try:
        return importlib.import_module(f"benchmarks.kernels.kernels_{name}").FORMULAS
    except ImportError as error:
        return f"not measured: {error}"


def _row(name: str, case: Case, peers: dict[str, Any], options: argparse.Namespace, wrong: list[str]) -> str:
    rng = np.random.default_rng(1)
    size = int(np.prod(case.shape, dtype=int))
    records = case.records or (options.mib << 20) // 4 // size
    array = rng.standard_normal((records, *case.shape), dtype=np.float32)
    operand = rng.standard_normal(case.operand, dtype=np.float32) if case.operand else None
    made = case.ours(fc.source(array), operand)
    roots = made if isinstance(made, tuple) else (made,)
    ours = OneBatch(roots, array)
    calls: dict[str, Callable[[], Any]] = {"flowcompute": ours.run}
    mine = [np.asarray(one) for one in fc.resolve(*roots, fc.constant(0), device="cpu", progress=False)[:-1]]
    for peer, formulas in peers.items():
        if name not in formulas:
            continue
        calls[peer] = formulas[name](array, operand)
        theirs = calls[peer]()
        answers = [np.asarray(one) for one in (theirs if len(roots) > 1 else (theirs,))]
        if not all(map(_alike, mine, answers)):
            wrong.append(f"{name}: {peer} gives another answer")
    seconds = interleaved(calls, options.reps, untimed=1, twice=True)
    rate = case.work * array.size / statistics.median(seconds["flowcompute"]) / 1e9
    cells = [f"{_ratio(seconds, peer):.2f}" if peer in seconds else "" for peer in peers]
    return f"| {name}: {case.title} | {rate:.3g} {case.unit} | {' | '.join(cells)} |"


def _ratio(seconds: dict[str, list[float]], peer: str) -> float:
    return statistics.median(b / a for a, b in zip(seconds["flowcompute"], seconds[peer], strict=True))


def _alike(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Equal but for roundings, which of a sum of millions are many."""
    scale = float(np.abs(mine).max()) or 1.0
    return mine.shape == theirs.shape and bool((np.abs(mine - theirs) <= 2e-3 * scale + (mine.size == 1)).all())


if __name__ == "__main__":
    raise SystemExit(main())
