"""Windows, selections, scans and other streams of clocks of their own in shards: the bits and bytes of one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.distributed import ShardedJob
from flowcompute.elements import Element
from tests.distributed.test_shard_regions import contents
from tests.distributed.test_shards import bits, numbers, planned
from tests.properties.cases import cases

Make = Callable[[Any], Element]

STREAMS: dict[str, Make] = {
    "window": lambda x: fc.window(x[:, 1], size=33).max(axis=1),
    "window of steps": lambda x: fc.window(x, size=5, step=3).sum(axis=1),
    "window far apart": lambda x: fc.window(x[:, 0], size=3, step=40).sum(axis=1),
    "window padded": lambda x: fc.window(x[:, 0], size=9, pad=0.5).sum(axis=1),
    "window mirrored": lambda x: fc.window(x[:, 0], size=7, pad="reflect").sum(axis=1),
    "window of a window": lambda x: fc.window(fc.window(x[:, 0], size=5).sum(axis=1), size=4, step=2).max(axis=1),
    "window of a section": lambda x: fc.window(x[100:3000:3, 0], size=6).sum(axis=1),
    "section": lambda x: (x[:, :2] * x[:, 1:])[1000:-2:7],
    "short section": lambda x: (x + x[:, :1])[5:9],
    "flatten": lambda x: fc.flatten(x) + 1,
    "cut": lambda x: fc.cut(x[:, 0], every=100, tail="pad").sum(axis=1),
    "cut dropped": lambda x: fc.cut(x, every=7, tail="drop").max(axis=1),
    "cut short": lambda x: fc.cut(x, every=64, tail="emit").sum(axis=1),
    "selected": lambda x: x[x[:, 0] > 0.3],
    "few selected": lambda x: x[x[:, 0] > 3.2] * 2,
    "none selected": lambda x: x[x[:, 0] > 100],
    "window of selected": lambda x: fc.window(x[:, 1][x[:, 0] > 0.3], size=5).sum(axis=1),
    "selected with places": lambda x: x[x[:, 0] > 0] * 2 + x[:, 1:2][x[:, 0] > 0],
    "sum": lambda x: fc.cumulative_sum(x, axis=0),
    "sum before": lambda x: fc.cumulative_sum(x[:, 0] * 1.5, axis=0) + x[:, 1],
    "product": lambda x: fc.cumulative_prod(1 + x[:, 0] / 1000, axis=0),
    "sum of whole numbers": lambda x: fc.cumulative_sum((x * 9).astype("int16"), axis=0),
    "window of a sum": lambda x: fc.window(fc.cumulative_sum(x[:, 0], axis=0), size=10).mean(axis=1),
    "sum of items": lambda x: fc.cumulative_sum(x, axis=1),
}


def folds(y: Element) -> tuple[Element, ...]:
    scalar = y if y.ndim == 1 else y[:, 0]
    return y.sum(axis=0), y.astype("float64").var(axis=0), scalar.sum(), scalar.argmax() + 0


def check(
    tmp_path_factory: pytest.TempPathFactory, make: Make, array: np.ndarray, shards: int, batch: int, **options: Any
) -> None:
    x = fc.source(array)
    device = options.get("device", "numpy")

    def job(folder: Path) -> tuple[Element, ...]:
        return (make(x) >> fc.save(folder / "y.npy"), *folds(make(x)), make(x) >> fc.save(folder / "y.zarr", chunk=77))

    one, many = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("many")
    try:
        want = fc.run(*job(one), device=device, progress=False).values
    except fc.RunError as error:
        with pytest.raises(fc.RunError, match=error.message[:20]):
            ShardedJob(planned(*job(many), **options), shards).run()
        return
    ran = planned(*job(many), strategy=fc.Strategy(batch_bytes=batch), **options)
    made = ShardedJob(ran, shards).run()
    assert bits(made[1:-1]) == bits(want[1:-1])
    assert contents(many) == contents(one)


@pytest.mark.parametrize("name", STREAMS)
@cases(3)
@given(
    length=st.sampled_from([1023, 1025, 8192, 20_001, 70_000]),
    shards=st.integers(2, 17),
    batch=st.sampled_from([1 << 12, 1 << 16, 1 << 22]),
)
def test_streams_of_shards_are_those_of_one_run(
    tmp_path_factory: pytest.TempPathFactory, name: str, length: int, shards: int, batch: int
) -> None:
    check(tmp_path_factory, STREAMS[name], numbers(length), shards, batch)
