"""Gains and losses of tuning: gain over the default on 12 workloads, and never worse.

Each run of a workload is tuned with an empty store, as by a user's first `tune=`. What it keeps is then measured
against the default, whole run against whole run in turns, unless it is the default. With `--regret` all candidates
of the kernels of three workloads are measured as well, and what tuning kept is held against the best of them.

    python -m benchmarks.tuning.tuned [--device gpu] [--runs 5] [--tune quick] [--pairs 11] [--mib 64]
        [--regret] [NAME ...]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import flowcompute as fc
from benchmarks.measuring.interleaved import interleaved
from benchmarks.tuning.search import record
from flowcompute.elements.element import Element
from flowcompute.strategy.strategy_store import StrategyStore

WORSE = 1.02
"""What is kept must not take longer than so much of the default's time, in 95 of 100 runs."""

REGRET = ("chain", "softmax", "columns")


class Data:
    """Inputs of one size, made once.

    Args:
        mib: of each.
        folder: for files.
    """

    def __init__(self, mib: int, folder: str) -> None:
        self.mib = mib
        self.folder = folder
        self._made: dict[tuple[int, ...], np.ndarray] = {}

    def stream(self, *item: int) -> Element:
        """A stream in memory."""
        return fc.source(self._array(*item))

    def file(self, *item: int) -> Element:
        """The same in a file that is old enough to be mapped."""
        path = os.path.join(self.folder, f"{'x'.join(map(str, ('records', *item)))}.npy")
        if not os.path.exists(path):
            np.save(path, self._array(*item))
            os.utime(path, (1, 1))
        return fc.open(path)

    def _array(self, *item: int) -> np.ndarray:
        if item not in self._made:
            records = (self.mib << 20) // (4 * int(np.prod(item, dtype=int)))
            self._made[item] = np.random.default_rng(1).standard_normal((records, *item), dtype=np.float32)
        return self._made[item]


def _weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).standard_normal(shape, dtype=np.float32)


def _standardised(x: Element) -> Element:
    return (x - x.mean(axis=0)) / x.std(axis=0)


WORKLOADS: dict[str, Callable[[Data], Sequence[Element]]] = {
    "chain": lambda data: [((x := data.stream()) * 2.5 + x) * (x - 1.5) >> fc.discard()],
    "w1": lambda data: [fc.nn.sigmoid(1.5 * (x := data.file()) - 0.25) * fc.tanh(x) + x * x >> fc.discard()],
    "dot": lambda data: [fc.vecdot(x := data.stream(), x * 0.5)],
    "rowsums": lambda data: [(data.stream(64) ** 2).sum(axis=1) >> fc.discard()],
    "softmax": lambda data: [fc.nn.softmax(data.stream(1024), axis=1) >> fc.discard()],
    "layernorm": lambda data: [fc.nn.layer_norm(data.stream(768), axis=1) >> fc.discard()],
    "columns": lambda data: [data.stream(512).var(axis=0)],
    "matmul": lambda data: [data.stream(256) @ _weights(256, 256) >> fc.discard()],
    "conv": lambda data: [fc.nn.conv2d(data.stream(3, 32, 32), _weights(16, 3, 3, 3), padding=1) >> fc.discard()],
    "scan": lambda data: [fc.cumulative_sum(data.stream(16), axis=0) >> fc.discard()],
    "window": lambda data: [fc.window(data.stream(), size=16).mean(axis=1) >> fc.discard()],
    "standardised": lambda data: [_standardised(data.file(64)) >> fc.discard()],
}


@dataclass
class Tuned:
    """One tuned run: what it kept, and how long that takes by the default's time."""

    tuning: fc.Tuning
    strategy: fc.Strategy
    ratio: float
    default: fc.Strategy

    @property
    def changes(self) -> str:
        """The knobs that are other than by default."""
        mine, before = self.strategy.plain(), self.default.plain()
        return ", ".join(f"{name}={value}" for name, value in mine.items() if value != before.get(name))


def tuned(name: str, data: Data, options: argparse.Namespace) -> Tuned:
    """Tune a workload with an empty store, and measure what it kept."""
    job = WORKLOADS[name]
    common: dict[str, Any] = {"device": options.device, "progress": False, "memory": options.memory}
    StrategyStore().clear()
    default = fc.run(*job(data), **common).strategy
    run = fc.run(*job(data), tune=options.tune, **common)
    kept = run.strategy
    if kept == default:
        return Tuned(run.tuning, kept, 1.0, default)
    calls = {
        label: lambda strategy=strategy: fc.run(*job(data), strategy=strategy, **common)
        for label, strategy in (("default", default), ("kept", kept))
    }
    seconds = interleaved(calls, options.pairs, untimed=2)
    pairs = zip(seconds["default"], seconds["kept"], strict=True)
    return Tuned(run.tuning, kept, statistics.median(b / a for a, b in pairs), default)


def regret(name: str, data: Data, runs: Sequence[Tuned], options: argparse.Namespace) -> None:
    """How far what tuning kept for the first kernel is from the best of all candidates."""
    recorder = record(WORKLOADS[name](data)[0], options)
    medians = {one: float(np.median(ratios)) for one, ratios in recorder.ratios.items()} | {(): 1.0}
    best = min(medians.values())
    own = [one.strategy.of_kernel("k0").plain() for one in runs]
    keys = [tuple(sorted((k, v) for k, v in one.items() if v != recorder.default[k])) for one in own]
    lost = [medians[key] / best - 1 for key in keys]
    spread = float(np.median([np.std(np.log(ratios)) for ratios in recorder.ratios.values()]))
    print(
        f"{name:<13} {len(medians) - 1:>4} candidates, spread of a pair {spread:.1%}: the best saves {1 - best:.1%}; "
        f"regret {statistics.median(lost):.1%}, {max(lost):.1%} at most"
    )


def _tune(text: str) -> bool | str:
    return True if text == "True" else text


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning.tuned", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(WORKLOADS), metavar="NAME")
    parser.add_argument("--device", default="auto", help="as in run(device=)")
    parser.add_argument("--runs", type=int, default=5, help="of each workload; 5 of 12 are 60")
    parser.add_argument("--tune", type=_tune, default="quick", help="True, quick or full")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--mib", type=int, default=64, help="of each input")
    parser.add_argument("--memory", default="512MiB")
    parser.add_argument("--regret", action="store_true", help=f"all candidates of {', '.join(REGRET)} too")
    parser.add_argument("--rounds", type=int, default=12, help="of these")
    parser.add_argument("--cpu-time", action="store_true", help="these in seconds of the processor")
    parser.add_argument("--batch", type=int, default=16, help="MiB of these")
    options = parser.parse_args()
    found: dict[str, list[Tuned]] = {name: [] for name in options.names}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLOWCOMPUTE_CACHE"] = os.path.join(folder, "cache")
        data = Data(options.mib, folder)
        for turn in range(options.runs):
            for name, runs in found.items():
                runs.append(tuned(name, data, options))
            print(f"run {turn + 1} of {options.runs}", flush=True)
        print("workload      trials  seconds  kept something  gain (median)  worst   best")
        for name, runs in found.items():
            ratios = [one.ratio for one in runs]
            trials = statistics.median(one.tuning.trials for one in runs)
            seconds = statistics.median(one.tuning.seconds for one in runs)
            print(
                f"{name:<13} {trials:>6.0f} {seconds:>8.2f} {sum(one != 1 for one in ratios):>9} of {len(runs)}"
                f" {1 - statistics.median(ratios):>13.1%} {1 - max(ratios):>7.1%} {1 - min(ratios):>6.1%}"
            )
            for one in runs:
                if one.ratio != 1:
                    print(f"  kept {one.changes}: {1 - one.ratio:.1%}")
        every = np.array([one.ratio for runs in found.values() for one in runs])
        late = float(np.quantile(every, 0.95))
        verdict = "not worse than allowed" if late <= WORSE else "WORSE THAN ALLOWED"
        print(
            f"{len(every)} tuned runs: median gain {1 - np.median(every):.1%}, mean {1 - every.mean():.1%};"
            f" 95th percentile {late - 1:+.1%} of the default's time (allowed {WORSE - 1:+.0%}): {verdict}"
        )
        for name in (name for name in REGRET if options.regret and name in found):
            regret(name, data, found[name], options)


if __name__ == "__main__":
    main()
