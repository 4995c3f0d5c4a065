"""Arrays are freed with the last reference to them: nothing of an ended run waits for the garbage collector."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import flowcompute as fc

RECORDS = 5000

GRAPHS: dict[str, Callable[[fc.Element], fc.Element]] = {
    "map": lambda x: x * 2,
    "passes": lambda x: x - x.mean(),
    "sign of a choice": lambda x: fc.copysign(1.0, fc.where(x > 0, x, -x)),
    "window": lambda x: fc.window(x, size=3).mean(axis=1),
    "scan": lambda x: fc.cumulative_sum(x),
    "selection": lambda x: x[x > 0],
    "host function": lambda x: fc.host(lambda batch: batch + 1, x, shape=(), dtype="float32"),
}


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("device", ["auto", "numpy"])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_result_of_an_ended_run_is_freed(graph: Callable[[fc.Element], fc.Element], device: str) -> None:
    data = np.ones(RECORDS, np.float32)
    result = graph(fc.source(data)).resolve(device=device, progress=False, strategy=fc.Strategy(batch_bytes=4096))
    alive = weakref.ref(result)
    assert alive() is result
    del result
    assert alive() is None


def test_a_run_that_called_back_is_freed_with_its_values() -> None:
    seen: list[int] = []
    run = (fc.source(np.ones(RECORDS, np.float32)) * 2).run(progress=False, on_batch=lambda run: seen.append(1))
    values, alive = weakref.ref(run.value), weakref.ref(run)
    assert seen
    del run
    assert alive() is None
    assert values() is None


def test_an_iterator_that_was_read_is_freed() -> None:
    batch = np.ones(RECORDS, np.float32)
    alive = weakref.ref(batch)
    total = fc.iterate(iter([batch]), shape=(), dtype="float32").sum().resolve(progress=False)
    del batch
    assert total == RECORDS
    assert alive() is None
