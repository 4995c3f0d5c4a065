"""Quality of the tuner's search of kernels: regret against exhaustive search, beside random search.

Every candidate of a kernel is launched in turns with the default over the results of one batch, in rounds, so that
whatever else the machine does falls on all of them. That is the truth; the searches are then replayed many
times on pairs drawn from these rounds, so that each of them meets the same noise.

    python -m benchmarks.tuning.search [--rounds 12] [--replays 200] [--device cpu] [--batch 16] [--cpu-time] [NAME ...]
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable

import numpy as np

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.engine.backend import PlannedJob
from flowcompute.ir.kernel import Kernel
from flowcompute.jobs import job_of
from flowcompute.lower.forms import candidates
from flowcompute.runtime.run.starting import start
from flowcompute.runtime.tuning.kernel_trials import TunedBackend
from flowcompute.schedule.explain.applied_knobs import variant
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy.knobs import KernelKnobs
from flowcompute.strategy.search import Candidate, Climb, RandomSearch, Search

WORSE = 1.02
"""What is kept must not take longer than so much of the default's time."""


def _source(records: int, *item: int) -> Element:
    return fc.source(np.random.default_rng(1).standard_normal((records, *item), dtype=np.float32))


WORKLOADS: dict[str, Callable[[], Element]] = {
    "chain": lambda: ((x := _source(4_000_000)) * 2.5 + x) * (x - 1.5) >> fc.discard(),
    "exp": lambda: fc.exp(-(x := _source(2_000_000)) * x) * fc.tanh(x) >> fc.discard(),
    "softmax": lambda: fc.nn.softmax(_source(4000, 1000), axis=1) >> fc.discard(),
    "columns": lambda: _source(40_000, 100).var(axis=0),
    "matmul": lambda: _source(2000, 256) @ np.random.default_rng(2).standard_normal((256, 256), dtype=np.float32),
}


class Recorder:
    """Measures all candidates of the first kernel on its first batch; a `KernelTuner`."""

    def __init__(self, rounds: int, *, cpu_time: bool) -> None:
        self.plan: fc.Plan | None = None
        self.ratios: dict[Candidate, list[float]] = {}
        self.default: dict[str, int] = {}
        self.space: dict[str, tuple[int, ...]] = {}
        self._rounds = rounds
        self._cpu_time = cpu_time

    def launched(self, step: RegionStep, launch: Callable[[Kernel], float]) -> Kernel | None:
        """Measure, once."""
        if self.ratios:
            return None
        kernel, plan = step.kernel, self.plan
        assert kernel is not None
        assert plan is not None
        self.space, self.default = candidates(kernel, plan.backend.capabilities), kernel.knobs.plain()
        every = [dict(zip(self.space, values, strict=True)) for values in itertools.product(*self.space.values())]
        made = {tuple(sorted((k, v) for k, v in one.items() if v != self.default[k])): one for one in every}
        kernels = {key: variant(plan, step, KernelKnobs(**one)) for key, one in made.items() if key}

        def seconds(one: Kernel) -> float:
            began = time.process_time()
            wall = launch(one)
            return time.process_time() - began if self._cpu_time else wall

        for one in (*kernels.values(), kernel):
            seconds(one)
        self.ratios = {key: [] for key in kernels}
        for turn in range(self._rounds):
            for key, one in kernels.items():
                pair = (one, kernel) if turn % 2 else (kernel, one)
                first, second = map(seconds, pair)
                self.ratios[key].append(first / second if turn % 2 else second / first)
        return None


def record(root: Element, options: argparse.Namespace) -> Recorder:
    """All candidates of the root's kernel, measured."""
    recorder = Recorder(options.rounds, cpu_time=options.cpu_time)
    plan = fc.plan(root, device=options.device, strategy=fc.Strategy(batch_bytes=options.batch << 20))
    recorder.plan = plan
    start(PlannedJob(plan, TunedBackend(job_of(plan).backend, recorder)), progress=False).wait()
    return recorder


def replayed(search: Search, recorder: Recorder, random: np.random.Generator) -> tuple[float, int, int]:
    """Seconds of what a search keeps by the default's, and how many candidates and pairs it took."""
    while (candidate := search.ask()) is not None:
        search.tell(candidate, float(random.choice(recorder.ratios[candidate])))
    kept = float(np.median(recorder.ratios[search.best])) if search.best else 1.0
    return kept, len(search.ratios), sum(map(len, search.ratios.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(WORKLOADS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--replays", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpu-time", action="store_true", help="seconds of the processor, where others use it too")
    parser.add_argument("--batch", type=int, default=16, help="MiB")
    options = parser.parse_args()
    print("kernel     candidates  best gain  spread    search   tried  pairs   gain  regret  p95  worse than default")
    for name in options.names:
        recorder = record(WORKLOADS[name](), options)
        medians = {one: float(np.median(ratios)) for one, ratios in recorder.ratios.items()}
        best = min([1.0, *medians.values()])
        spread = float(np.median([np.std(np.log(ratios)) for ratios in recorder.ratios.values()]))
        for label, make in (("climb", Climb), ("random", RandomSearch)):
            random = np.random.default_rng(0)
            rows = [
                replayed(make(recorder.space, recorder.default, seed), recorder, random)
                for seed in range(options.replays)
            ]
            kept, tried, pairs = (np.array(column) for column in zip(*rows, strict=True))
            regret = kept / best - 1
            head = f"{name:<10} {len(medians):>10} {1 - best:>9.1%} {spread:>7.1%}" if label == "climb" else " " * 39
            worse = np.mean(kept > WORSE)
            print(
                f"{head}    {label:<7} {tried.mean():>5.1f} {pairs.mean():>6.1f} {1 - kept.mean():>6.1%}"
                f" {regret.mean():>6.1%} {np.quantile(regret, 0.95):>6.1%} {worse:>6.1%}"
            )


if __name__ == "__main__":
    main()
