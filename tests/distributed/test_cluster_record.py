"""Numbers of all shards together: what they tell while they run, and what nobody should believe."""

from __future__ import annotations

from typing import Any

import pytest

import flowcompute as fc
from flowcompute.distributed.cluster.cluster_record import ClusterRecord
from flowcompute.distributed.shard_work import MOST_STAGES, ShardWork, rows_of_data
from tests.distributed.here import run
from tests.distributed.test_shards import numbers, planned


def told(shard: int, attempt: str, items: int, stage: int = 0) -> dict[str, Any]:
    work = ShardWork()
    work.passed("source", "x", items, 0.5, bytes_out=8 * items)
    return {"shard": shard, "stage": stage, "attempt": attempt, "items": items, "work": work.as_data()}


def a_record() -> ClusterRecord:
    return ClusterRecord(planned(fc.source(numbers(5001), name="x").sum(axis=0)).plan, 100)


def test_shards_are_added_up() -> None:
    record = a_record()
    record.begin_stage()
    record.heard(told(0, "a", 10))
    record.heard(told(1, "b", 20))
    record.heard(told(1, "b", 30))
    assert (record.progress.items, record.progress.total_items, record.progress.bytes_read) == (40, 100, 320)
    # Another attempt begins anew, but what the dead one has read was read.
    record.heard(told(1, "c", 5))
    assert (record.progress.items, record.metrics["x"].items) == (15, 45)
    record.ended(1, 50, told(1, "c", 50)["work"])
    assert (record.progress.items, record.metrics["x"].items) == (60, 90)
    assert record.bottleneck == "x"
    # What a shard of an earlier stage still tells does not count.
    record.begin_stage()
    record.heard(told(0, "a", 10))
    assert record.progress.items == 50
    record.end()
    record.complete()
    assert record.progress.fraction == 1
    assert record.snapshot().progress.done


@pytest.mark.parametrize(
    "changes",
    [
        *({"shard": "0"}, {"items": -1}, {"items": 1.5}, {"stage": 9}, {"work": 3}, {"work": [["source", "x", 1]]}),
        *({"work": [["what", "x", *[0] * 10]]}, {"work": [["source", "x", *[-1] * 10]]}),
        {"work": [["source", "x", *[0] * 5, float("nan"), *[0] * 4]]},
    ],
)
def test_what_makes_no_sense_counts_for_nothing(changes: dict[str, Any]) -> None:
    record = a_record()
    record.begin_stage()
    record.heard({**told(0, "a", 10), **changes})
    for nothing in (None, 3, {}, "text"):
        record.heard(nothing)
    assert not record.progress.items
    assert not record.metrics


def test_messages_stay_small_however_long_the_plan() -> None:
    work = ShardWork()
    for number in range(MOST_STAGES + 9):
        work.passed("destination", str(number), 1, 0.0)
    assert len(work.as_data()) == len(rows_of_data(work.as_data() * 2)) == MOST_STAGES


def test_a_run_has_the_numbers_of_all_its_shards(folder: Any, asked: list[bytes]) -> None:
    made = run(folder)
    assert made.progress.done
    assert made.progress.items == made.progress.total_items
    assert made.metrics["x"].items >= made.shards.items > 0
    written = {name: row.items for name, row in made.metrics.items() if row.kind == "destination"}
    assert set(written.values()) >= {20_011}
    assert made.progress.bytes_written > 0
    assert made.bottleneck in made.metrics
    again = run(folder)
    assert again.progress.fraction == 1
    assert not again.metrics
