"""A checkpoint that is taken before a resumed run has computed anything holds what it was resumed from."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from tests.support.slow import slow_but

DATA = np.random.default_rng(3).standard_normal((9000, 4), dtype=np.float32)

JOBS: dict[str, Callable[[fc.Element], list[fc.Element]]] = {
    "scans": lambda x: [
        fc.cumulative_sum(x, axis=0),
        fc.cumulative_max(x[:, 0]),
        fc.cumulative_prod(1 + x * 1e-3, axis=0),
        fc.ema(x, alpha=0.1),
        fc.scan(lambda carry, value: carry * 0.5 + value, x[:, 1], init=np.float32(0), name="step"),
    ],
    "folds": lambda x: [x.sum(axis=0), x.var(axis=0), x[:, 0].sum(), x.argmax(axis=0), x.T @ x],
    "statistics": lambda x: [fc.quantile(x[:, 0], 0.3), fc.histogram(x, 9, (-3, 3))[0], fc.cov(x)],
    "clocks": lambda x: [
        fc.window(x, 7).mean(axis=1),
        fc.cut(x, 9, tail="drop").sum(axis=1),
        x[x[:, 0] > 0],
        fc.concat([x[:100], x[200:300]]),
    ],
    "passes": lambda x: [
        (s := fc.spool(fc.cumulative_sum(x, axis=0))) - s.mean(axis=0),
        fc.cumulative_sum(s - s.max(), axis=0),
    ],
}


class KilledError(Exception):
    """In place of a kill."""


@pytest.mark.parametrize("device", slow_but(["numpy"], ["auto", "numpy"]))
@pytest.mark.parametrize("kind", JOBS)
def test_a_cut_before_the_first_batch_holds_what_came_before(kind: str, device: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", DATA)
    job = JOBS[kind]
    expected = fc.run(*job(fc.open(tmp_path / "x.npy")), device=device, progress=False).values
    kept = tmp_path / "kept"
    frozen = -1

    def kill(_: fc.Run) -> None:
        # The state at the beginning of this run is written while its first batch is computed.
        while fc.thaw(kept).number == frozen:
            os.sched_yield()
        raise KilledError

    small = fc.Strategy(batch_bytes=1 << 14)
    options = {"device": device, "strategy": small, "progress": False, "checkpoint": kept, "checkpoint_every": 0}
    calls = iter(range(3))
    run = fc.start(
        *job(fc.open(tmp_path / "x.npy")), on_batch=lambda run: next(calls, None) is None and run.freeze(), **options
    )
    with pytest.raises(fc.RunError, match="frozen"):
        run.wait()
    for _ in range(2):
        before, frozen = fc.thaw(kept).progress.items, fc.thaw(kept).number
        with pytest.raises(fc.RunError, match="KilledError"):
            fc.run(*job(fc.open(tmp_path / "x.npy")), on_batch=kill, **options)
        assert fc.thaw(kept).number == frozen + 1
        assert fc.thaw(kept).progress.items == before, "nothing was computed between the two"
    values = fc.run(*job(fc.open(tmp_path / "x.npy")), **{**options, "checkpoint_every": "auto"}).values
    for value, other in zip(values, expected, strict=True):
        assert np.asarray(value).tobytes() == np.asarray(other).tobytes()
