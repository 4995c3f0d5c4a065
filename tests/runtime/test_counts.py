"""Counts that are told: records of a pass and not of all passes, bytes both ways, and nobody's but the stage's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.metrics import NodeMetrics, PassProgress, Progress

ITEMS = np.random.default_rng(6).random((4000, 8)).astype(np.float32)
SMALL = fc.Strategy(batch_bytes=1 << 12)


def standardised() -> Any:
    x = fc.source(ITEMS, name="x")
    return (x - x.mean(axis=0)) / x.std(axis=0)


def test_a_run_that_goes_on_tells_the_records_that_it_read_itself(tmp_path: Path) -> None:
    def run(**options: Any) -> Any:
        x = fc.source(ITEMS, name="x")
        job = (x - x.mean(axis=0)) / x.std(axis=0)
        return fc.run(job, device="numpy", progress=False, strategy=SMALL, checkpoint=tmp_path / "kept", **options)

    with pytest.raises(fc.RunError, match="frozen"):
        run(on_batch=lambda made: made.progress.items >= len(ITEMS) // 2 and made.freeze())
    made = run()
    total = made.metrics["x"].items
    assert len(ITEMS) < total < 2 * len(ITEMS)
    assert total % 2 == 0  # so that it could be taken for two passes over as many records
    assert f"{total:,} items in 2 passes" in str(made)


def test_records_of_two_passes_are_not_added_up() -> None:
    seen = []
    run = fc.run(
        standardised(), device="numpy", progress=False, strategy=SMALL, on_batch=lambda r: seen.append(r.progress)
    )
    assert run.progress.items == 2 * len(ITEMS)
    assert run.progress.records == "4,000 records in each of 2 passes"
    assert repr(run) == "<Run complete: 4,000 records in each of 2 passes>"
    assert str(run).startswith("4,000 records in each of 2 passes in ")
    assert "4,000 items in each of 2 passes" in str(run)
    assert "8,000" not in str(run)
    sizes = f"{2 * ITEMS.nbytes:,} bytes read, {run.bytes_written:,} bytes written"
    assert str(run.progress) == f"{run.progress.records} (100%) in {run.seconds:.3f} s, {sizes}"
    plan = str(run.plan)
    assert "pass 2 of 2: 4,000 records\n" in plan
    assert plan.count(run.plan.backend.capabilities.reason) == 1
    first = [one.current.items for one in seen if one.current.number == 1]
    second = [one.current.items for one in seen if one.current.number == 2]
    assert first == sorted(first)
    assert second == sorted(second)
    assert first[-1] == second[-1] == len(ITEMS)
    assert second[0] < len(ITEMS)
    assert {one.current.total_items for one in seen} == {len(ITEMS)}


def test_the_pass_and_its_records_survive_a_checkpoint(tmp_path: Path) -> None:
    options: Any = {"device": "numpy", "progress": False, "checkpoint": tmp_path / "kept"}

    def freeze(run: fc.Run) -> None:
        current = run.progress.current
        if current is not None and current.number == 2 and current.items > 1000:
            run.freeze()

    with pytest.raises(fc.RunError, match="frozen"):
        fc.run(standardised() >> fc.to_array(), strategy=SMALL, on_batch=freeze, **options)
    frozen = fc.thaw(tmp_path / "kept")
    kept = frozen.progress.current
    assert kept is not None
    assert kept == PassProgress(2, 2, kept.items, len(ITEMS))
    assert 1000 < kept.items < len(ITEMS)
    assert str(frozen.progress.records) in str(frozen)
    assert frozen.progress.bytes_written > 0
    seen: list[Progress] = []
    run = fc.run(standardised() >> fc.to_array(), strategy=SMALL, on_batch=lambda r: seen.append(r.progress), **options)
    assert seen[0].current is not None
    assert seen[0].current.items > kept.items
    assert run.progress.records == "4,000 records in each of 2 passes"
    assert run.progress.bytes_written == ITEMS.nbytes


def test_streams_that_nothing_joins_count_apart(tmp_path: Path) -> None:
    def both(name: str) -> list[Any]:
        return [fc.source(ITEMS + i, name=f"{name}{i}") for i in range(2)]

    def run(*elements: Any, **options: Any) -> Any:
        return fc.run(*elements, device="numpy", progress=False, strategy=SMALL, **options)

    x, y = both("a")
    assert run(x + y).progress.records == "4,000 records"
    x, y = both("b")
    seen: list[str] = []
    lines = tmp_path / "lines.jsonl"
    made = run(x * 2, y * 3, on_batch=lambda made: seen.append(made.progress.records), metrics_log=lines)
    assert made.progress.records == "8,000 records of 2 streams"
    assert str(made).startswith("8,000 records of 2 streams in ")
    assert "128 of 8,000 records of 2 streams" in seen
    assert json.loads(lines.read_text().splitlines()[-1])["pass"]["streams"] == 2
    x, y = both("c")
    made = run((x - x.mean(axis=0)) / (1 + y).std(axis=0))
    assert made.progress.records == "4,000 records in the last of 2 passes"
    x, y = both("d")
    kept: Any = {"checkpoint": tmp_path / "kept"}
    with pytest.raises(fc.RunError, match="frozen"):
        run(x * 2, y * 3, on_batch=lambda made: made.progress.items > 1000 and made.freeze(), **kept)
    x, y = both("d")
    assert run(x * 2, y * 3, **kept).progress.records == "8,000 records of 2 streams"


def test_a_stream_of_unknown_length_counts_what_came() -> None:
    x = fc.iterate([ITEMS[:100], ITEMS[100:130]], shape=(8,), dtype="float32")
    run = (x * 2).run(device="numpy", progress=False)
    assert run.progress.records == "130 records"


def test_rates_count_bytes_both_ways() -> None:
    run = (fc.source(ITEMS) * 2).run(device="numpy", progress=False)
    assert (run.progress.bytes_read, run.progress.bytes_written) == (ITEMS.nbytes, ITEMS.nbytes)
    assert run.progress.throughput == pytest.approx(2 * ITEMS.nbytes / run.progress.seconds)


def test_what_runs_once_has_no_waits_and_no_peaks_of_others() -> None:
    x = fc.source(ITEMS, name="x")
    scaled = (x / x.std(axis=0)) >> fc.callback(lambda _: None)
    run = scaled.run(device="numpy", progress=False, strategy=SMALL)
    once = run.metrics["std"]
    assert (once.batches, once.wait_in_s, once.wait_out_s) == (0, 0.0, 0.0)
    assert (once.peak_bytes, once.queued, once.credits) == (0, 0, 0)
    each = run.metrics["divide"]
    assert each.batches > 1
    assert each.peak_bytes > 0


@pytest.mark.parametrize(
    ("items", "batches", "passes", "text"),
    [
        (1, 1, 1, "1 record, 1 batch"),
        (4000, 2, 1, "4,000 records, 2 batches"),
        (8000, 4, 2, "4,000 records in each of 2 passes, 4 batches"),
        (5001, 3, 2, "5,001 records in 2 passes, 3 batches"),
    ],
)
def test_records_of_a_row_in_words(items: int, batches: int, passes: int, text: str) -> None:
    row = NodeMetrics("x", "source", items, batches, 0, 0, 0.0, 0.0, 0.0, passes=passes)
    assert row.records == text
