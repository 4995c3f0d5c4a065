"""Quantiles of streams that are not kept: the bound of their sketch, whatever the order and however it was merged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from flowcompute.engine.accumulators.sketch import rank_error
from flowcompute.engine.accumulators.table import make_fold
from flowcompute.ir.fold_spec import host_fold
from flowcompute.ir.reduction_order import SKETCH_RECORDS
from flowcompute.spec import FLOAT64, Spec, Stream


def quantiles(x: np.ndarray, q: np.ndarray, starts: Sequence[int] = (0,)) -> np.ndarray:
    spec = host_fold("quantile", [Spec(x.dtype, (), Stream(None))], {"q": tuple(q)}, Spec(FLOAT64, q.shape))
    bounds = [*starts, len(x)]
    parts = []
    for start, stop in zip(bounds, bounds[1:], strict=False):
        parts.append(make_fold(spec, start))
        parts[-1].push_records([x[start:stop]])
    while len(parts) > 1:
        parts[-2].merge(parts.pop())
    return parts[0].result()


def orders(length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    ramp = np.arange(length, dtype=np.float64)
    return {
        "ascending": ramp,
        "descending": ramp[::-1].copy(),
        "shuffled": rng.permutation(ramp),
        "interleaved": np.concatenate([ramp[start::257] for start in range(257)]),
        "from_both_ends": np.stack([ramp[: length // 2], ramp[::-1][: length // 2]], axis=1).reshape(-1),
        "few_values": np.floor(rng.random(length) * 7),
        "long_tail": rng.pareto(0.5, length),
    }


@pytest.mark.parametrize("kind", orders(8))
def test_the_sketch_keeps_its_bound(kind: str) -> None:
    x = orders(300_000)[kind]
    q = np.linspace(0, 1, 301)
    ranked = np.sort(x)
    worst = rank_error(len(x))
    assert worst < 0.0002 * len(x) + 1
    for starts in ((0,), (0, 1, 77_777, 200_000)):
        found = quantiles(x, q, starts)
        position = q * (len(x) - 1)
        below, above = np.searchsorted(ranked, found, "left"), np.searchsorted(ranked, found, "right")
        # Interpolation ends between two records, so up to one place more.
        assert (below <= position + worst + 1).all()
        assert (above >= position - worst).all()
        assert found[0] >= ranked[0]
        assert found[-1] <= ranked[-1]


def test_rank_error_as_documented() -> None:
    assert rank_error(SKETCH_RECORDS) == rank_error(2 * SKETCH_RECORDS - 1) == 0
    assert rank_error(10**6) / 10**6 < 0.0002
    assert rank_error(10**9) / 10**9 < 0.0005


def test_quantiles_of_infinities_and_nan() -> None:
    q = np.array([0, 0.5, 1])
    inf = np.inf
    assert np.array_equal(quantiles(np.array([-inf, -inf, 1, inf, inf]), q), [-inf, 1, inf])
    assert np.array_equal(quantiles(np.array([inf, inf]), q), [inf, inf, inf])
    x = np.zeros(50_000)
    x[7] = np.nan
    assert np.isnan(quantiles(x, q)).all()
    assert np.isnan(quantiles(x, q, (0, 30_000))).all()
    assert np.isnan(quantiles(np.empty(0), q)).all()
