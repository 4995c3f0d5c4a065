"""The rows of `run.metrics`: what they add up to, and that keeping them changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import PlanError
from flowcompute.metrics import EdgeMetrics
from flowcompute.observe import StageState
from flowcompute.ring import Recent, Ring
from flowcompute.runtime.channels.batch_pool import MemoryTracker, Pool
from flowcompute.runtime.channels.channel import Channel, Message
from flowcompute.runtime.channels.pass_record import PassRecord
from flowcompute.runtime.events.stage_reporter import StageReporter

DATA = np.random.default_rng(6).standard_normal((5_000, 8), dtype=np.float32)


def job():
    x = fc.source(DATA, name="x")
    kept = fc.exp(x).sum(axis=1)
    positive = x[x[:, 0] > 0]
    return (kept >> fc.to_array(name="kept"), (positive * 2).sum(axis=0), (x - x.mean(axis=0)).std())


@pytest.mark.parametrize("device", ["auto", "numpy"])
def test_rows_count_what_passed_stage_by_stage(device):
    run = fc.run(*job(), device=device, strategy=fc.Strategy(batch_bytes=1 << 15), progress=False)
    metrics = run.metrics
    passes = len(run.plan.passes)
    # The sources are read once in each pass.
    assert metrics["x"].items == passes * len(DATA)
    assert metrics["x"].bytes_out == passes * DATA.nbytes == run.bytes_read
    assert metrics["x"].bytes_in == 0
    assert metrics["kept"].bytes_in == 4 * len(DATA)
    assert (metrics["exp"].bytes_in, metrics["exp"].bytes_out) == (DATA.nbytes, 4 * len(DATA))
    selected = int((DATA[:, 0] > 0).sum())
    assert {row.items for row in metrics.values() if row.kind == "region"} <= {0, selected, len(DATA)}
    assert sum(row.launches for row in metrics.values()) == run.launches > passes
    timed = [row for row in metrics.values() if row.device_s]
    assert all(row.launches and row.kind == "region" for row in timed)
    assert bool(timed) == (device == "auto")
    assert bool(sum(row.compile_s for row in metrics.values())) == (device == "auto")
    for edge in metrics.edges:
        assert (edge.queued, edge.credits) == (0, 0)
        # Batches of a discrete device are uploaded and downloaded in stages of their own.
        assert {"compute", "upload", "download"} & {edge.source, edge.target}
    assert run.bottleneck in metrics


@pytest.mark.parametrize("batch_bytes", [1 << 13, 1 << 15, 1 << 22])
def test_the_last_batches_add_up_to_the_row_that_they_belong_to(batch_bytes):
    strategy = fc.Strategy(batch_bytes=batch_bytes)
    run = fc.run(fc.tanh(fc.source(DATA, name="x")), device="numpy", strategy=strategy, progress=False)
    for row in run.metrics.values():
        recent = row.recent
        assert sum(batch.batches for batch in recent) == row.batches >= 1
        assert sum(batch.items for batch in recent) == row.items == len(DATA)
        assert sum(batch.bytes_in for batch in recent) == row.bytes_in
        assert sum(batch.bytes_out for batch in recent) == row.bytes_out
        assert sum(batch.busy_s for batch in recent) <= row.busy_s + 1e-9
        assert sorted(batch.ended_s for batch in recent) == [batch.ended_s for batch in recent]
        assert all(0 <= batch.ended_s <= run.seconds for batch in recent)


def test_the_history_of_a_stage_is_bounded():
    strategy = fc.Strategy(batch_bytes=32)
    row = fc.run(fc.source(DATA[:300], name="x") * 2, device="numpy", strategy=strategy, progress=False).metrics["x"]
    assert row.batches == 300 > len(row.recent) == 128
    assert sum(batch.items for batch in row.recent) == 128


def test_observing_changes_no_plan_and_no_bit():
    # Plans tell lines: both jobs are made at one.
    seen, unseen = (fc.run(*job(), progress=False, metrics=metrics) for metrics in (True, False))
    assert [kernel.source for kernel in seen.plan.kernels] == [kernel.source for kernel in unseen.plan.kernels]
    assert str(seen.plan) == str(unseen.plan)
    for a, b in zip(seen.values, unseen.values, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    for name, row in unseen.metrics.items():
        assert (row.launches, row.device_s, row.compile_s, row.recent) == (0, 0.0, 0.0, ())
        assert (row.items, row.batches, row.bytes_in) == (
            seen.metrics[name].items,
            seen.metrics[name].batches,
            seen.metrics[name].bytes_in,
        )


@pytest.mark.parametrize("option", [{"metrics_port": 0}, {"trace": "t.json"}, {"metrics_log": "m.jsonl"}])
def test_without_metrics_there_is_nothing_to_write(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError, match="without metrics") as caught:
        fc.run(fc.source(DATA).sum(), metrics=False, progress=False, **option)
    assert next(iter(option)) in str(caught.value)
    assert not list(tmp_path.iterdir())


async def test_the_bottleneck_is_who_is_waited_for_not_who_is_longest_in_one_step():
    source, sink, compute = StageReporter("source"), StageReporter("sink"), StageReporter("compute")
    one = PassRecord([source], compute, [sink])
    one.totals[source].seconds[StageState.BUSY] = 3.0
    one.totals[sink].seconds.update({StageState.BUSY: 1.0, StageState.INPUT: 9.0})
    one.steps.steps = {"a": (1, 2.0), "b": (1, 2.5)}
    assert max(one.loads, key=lambda name: one.loads[name]) == "b"
    assert one.loads["b"] == 4.5
    # What is computed ahead is computed by whoever uploads it, and is no upload.
    upload, download = StageReporter("upload"), StageReporter("download")
    two = PassRecord([source], compute, [sink], (upload, download))
    two.steps.steps = one.steps.steps
    two.totals[upload].seconds[StageState.BUSY], two.steps.seconds[StageState.BUSY] = 5.0, 1.0
    assert two.loads["upload"] == 5.0 - (4.5 - 1.0)
    # A source that waits for what it iterates over is waited for itself.
    one.totals[source].seconds[StageState.INPUT] = 2.0
    assert max(one.loads, key=lambda name: one.loads[name]) == "source"


async def test_rows_and_edges_tell_queues_credits_and_bytes_of_the_moment():
    source, sink, compute = StageReporter("source"), StageReporter("sink"), StageReporter("compute")
    one, tracker = PassRecord([source], compute, [sink]), MemoryTracker(0)
    one.steps.steps = {"a": (1, 2.0)}
    into, out = Channel(source, compute, 1), Channel(compute, sink, 1)
    read, made = Pool(tracker, 2, 10, (3,), np.dtype("f4")), Pool(tracker, 2, 10, (), np.dtype("f4"))
    one.edges += [(into, read), (out, made)]
    first, second, result = read.acquire_nowait(), read.acquire_nowait(), made.acquire_nowait()
    await into.send(Message(0, 10, first.array, first))
    rows = {row.name: row for row in one.rows()}
    assert (rows["a"].queued, rows["source"].credits, rows["source"].peak_bytes) == (1, 2, 240)
    assert (rows["sink"].queued, rows["a"].credits, rows["a"].peak_bytes) == (0, 1, 40)
    await out.send(Message(0, 10, result.array, result))
    second.release()
    assert one.edge_rows() == [
        EdgeMetrics("source", "compute", 1, 1, 1, 2, 240),
        EdgeMetrics("compute", "sink", 1, 1, 1, 2, 40),
    ]
    for channel, pool in one.edges:
        channel.close()
        assert pool.lent == 0
        pool.close()
    assert [edge.peak_bytes for edge in one.edge_rows()] == [240, 40]


@given(st.integers(0, 5), st.lists(st.integers(), max_size=20))
def test_a_ring_keeps_the_newest_in_order(room, items):
    ring: Ring[int] = Ring(room)
    for item in items:
        ring.add(item)
    assert list(ring.items()) == (items[-room:] if room else [])
    assert (ring.count, ring.lost) == (len(items), max(len(items) - room, 0))


@given(st.integers(1, 4), st.lists(st.integers(0, 6), max_size=30))
def test_values_that_were_used_last_are_kept(room, keys):
    recent: Recent[int, list[int]] = Recent(room, list)
    for number, key in enumerate(keys):
        recent.take(key).append(number)
    used = list(dict.fromkeys(reversed(keys)))
    kept, gone = used[:room], used[room:]
    assert len(recent.values()) == len(kept)
    assert all(recent.get(key) is None for key in gone)
    for key in kept:
        value = recent.get(key)
        assert value is not None
        assert value[-1] == max(number for number, each in enumerate(keys) if each == key)
    recent.clear()
    assert not recent.values()
    assert not recent.take(0)
