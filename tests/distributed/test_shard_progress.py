"""Shards that are stopped between batches and go on: the same bits; states of something else are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed import ShardedJob, ShardProgress, ShardStart, ShardState, run_shard
from tests.distributed.test_shards import bits, numbers, planned, statistics
from tests.properties.cases import cases


class StoppedError(Exception):
    """Somebody has stopped the shard."""


class StopsAfter:
    """Stops a shard at a batch, with a state that has gone through bytes."""

    def __init__(self, batches: int) -> None:
        self.left = batches
        self.kept: bytes | None = None

    def __call__(self, progress: ShardProgress) -> None:
        assert progress.position < progress.stop
        self.left -= 1
        if self.left < 0:
            self.kept = pack({"kept": progress.snapshot()})
            raise StoppedError


def run_with_stops(job: Any, index: int, start: ShardStart, batches: int) -> tuple[ShardState, int]:
    """Run a shard that is stopped after every so many batches; gives how often it was, too."""
    kept, stops = None, 0
    while True:
        stopping = StopsAfter(batches)
        try:
            return run_shard(job, index, start, resume=kept, on_batch=stopping), stops
        except StoppedError:
            assert stopping.kept is not None
            kept, stops = unpack(stopping.kept)["kept"], stops + 1


@cases(2)
@given(shards=st.integers(1, 4), batches=st.integers(0, 3))
def test_shards_that_are_stopped_go_on(shards: int, batches: int) -> None:
    array = numbers(20_000)
    want = fc.run(*statistics(fc.source(array)), device="numpy", progress=False).values
    job = planned(*statistics(fc.source(array)), strategy=fc.Strategy(batch_bytes=1 << 14))
    stopped = []

    def run_shards(index: int, starts: Sequence[ShardStart]) -> list[ShardState]:
        found = [run_with_stops(job, index, one, batches) for one in starts]
        stopped.append(sum(stops for _, stops in found))
        return [state for state, _ in found]

    assert bits(ShardedJob(job, shards).run(run_shards)) == bits(want)
    assert batches or sum(stopped)


@pytest.mark.parametrize(
    "change",
    [
        {"records": [0, 2048]},
        {"position": 1 << 40},
        {"position": "3"},
        {"state": {}},
        {"state": None},
    ],
    ids=str,
)
def test_states_of_something_else_are_refused(change: dict[str, Any]) -> None:
    job = planned(fc.source(numbers(9000)).sum(axis=0), strategy=fc.Strategy(batch_bytes=1 << 13))
    stopping = StopsAfter(1)
    with pytest.raises(StoppedError):
        run_shard(job, 0, ShardStart((0, 8192)), on_batch=stopping)
    assert stopping.kept is not None
    kept = {**unpack(stopping.kept)["kept"], **change}
    with pytest.raises(fc.CheckpointError, match="cannot go on with a shard"):
        run_shard(job, 0, ShardStart((0, 8192)), resume=kept)
