"""Cost of a step of `Trainer` beside its kernels, and a check that its first step alone lowers and compiles.

Seconds of kernels are those in launches and in waiting for them; of folds, what the host adds up of the records. The
rest is Python: looking at the loss, finding its plan, arguments of launches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

import flowcompute as fc
from benchmarks.training.loops import parameters
from benchmarks.training.models import RATE, Model
from flowcompute.engine.accumulators.products import Products
from flowcompute.engine.folds import Fold
from flowcompute.gpu.memory.device_memory import DeviceMemory, HostMemory
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.lower import KernelCache

SETTLED = 5
"""Steps that do not count, the first one among them."""


@contextmanager
def _watched() -> Iterator[dict[str, float]]:
    """Count seconds of kernels and of folds on the host, and what is lowered and built."""
    found = dict.fromkeys(("kernels", "folds", "lowered", "built"), 0.0)
    depth = 0

    def timed(owner: type, name: str, kind: str) -> Any:
        original = getattr(owner, name)

        def call(*given: Any, **options: Any) -> Any:
            nonlocal depth
            began_s, depth = time.perf_counter(), depth + 1
            try:
                return original(*given, **options)
            finally:
                depth -= 1
                # One that is called by another is part of it.
                found[kind] += 0.0 if depth else time.perf_counter() - began_s

        return mock.patch.object(owner, name, call)

    def numbered(owner: type, name: str, kind: str) -> Any:
        original = getattr(owner, name)

        def call(*given: Any, **options: Any) -> Any:
            found[kind] += 1
            return original(*given, **options)

        return mock.patch.object(owner, name, call)

    with ExitStack() as patches:
        for owner in (HostMemory, DeviceMemory):
            patches.enter_context(timed(owner, "wait", "kernels"))
        patches.enter_context(timed(LocalLauncher, "launch", "kernels"))
        for owner, more in ((Products, ()), (Fold, ("push_blocks", "value_of_block"))):
            for name in ("push_records", "result", "value_of", *more):
                patches.enter_context(timed(owner, name, "folds"))
        patches.enter_context(numbered(KernelCache, "lower", "lowered"))
        patches.enter_context(numbered(LocalLauncher, "build", "built"))
        yield found


def step_row(name: str, model: Model, device: str) -> None:
    """Print medians of the steps of a model.

    Raises:
        AssertionError: if anything is lowered or built after the first step.
    """
    p, rows = parameters(model), []
    with fc.train.Trainer([*p.values()], fc.train.adam(RATE), device=device) as trainer, _watched() as found:
        for part in map(model.part, range(model.steps)):
            loss = model.by_flowcompute(p, *(fc.source(one[part]) for one in model.data))
            before, began_s, busy_s = dict(found), time.perf_counter(), time.process_time()
            trainer.step(loss)
            took_s, busy_s = time.perf_counter() - began_s, time.process_time() - busy_s
            kernels_s, folds_s = (found[kind] - before[kind] for kind in ("kernels", "folds"))
            rows.append((took_s, kernels_s, folds_s, took_s - kernels_s - folds_s, busy_s))
            if len(rows) > 1:
                made = {kind: found[kind] - before[kind] for kind in ("lowered", "built")}
                assert not any(made.values()), f"after the first step: {made}"
        assert trainer.compiled == 1
    middle = [1e3 * median(column) for column in zip(*rows[SETTLED:], strict=True)]
    print(f"a step of {name}: the first {rows[0][0]:.2f} s, {rows[0][4]:.2f} s of the processor; then, of {len(rows)}:")
    for what, ms in zip(("wall", "kernels", "folds", "beside them", "processor"), middle, strict=True):
        print(f"{what:16}{np.round(ms, 2):10.2f} ms")
