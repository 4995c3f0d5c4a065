"""What flows, in which order, in how much memory."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.errors import RunError, SourceError
from flowcompute.runtime.channels.run_record import RunRecord
from flowcompute.runtime.events.stage_reporter import WAITING
from flowcompute.runtime.run.driver import Driver
from flowcompute.runtime.run.running_pass import PassSettings
from tests.properties.cases import cases
from tests.runtime.fakes import FakeAsyncSource, Job, Scene, full_job, full_values, records
from tests.support.starting import start


def run(job: Job):
    return start(job.planned(), progress=False).wait(30)


def assert_values(values, expected) -> None:
    assert len(values) == len(expected)
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


@cases(60)
@given(
    length=st.integers(0, 30),
    batch_items=st.integers(1, 12),
    depth=st.sampled_from([1, 2, 3, 4, 8, 13]),
    known=st.booleans(),
    overlapped=st.booleans(),
)
def test_results_depend_on_neither_batch_size_nor_depth(length, batch_items, depth, known, overlapped):
    scene = Scene()
    job = full_job(scene, length=length, known=known, batch_items=batch_items, depth=depth, overlapped=overlapped)
    done = run(job)
    assert_values(done.values, full_values(length))
    scene.assert_put_away(committed=True)
    [executor] = scene.executors
    assert executor.records == length
    assert executor.ended
    starts = range(0, length, batch_items)
    assert executor.seqs == [(seq, at, min(at + batch_items, length)) for seq, at in enumerate(starts)]
    assert done.progress.items == length
    assert done.progress.total_items == length
    assert done._record.tracker.lent == 0
    assert done._record.tracker.held_bytes == 0


@pytest.mark.parametrize("known", [True, False])
def test_an_empty_stream_is_finished_and_never_processed(known):
    scene = Scene()
    done = run(full_job(scene, length=0, known=known))
    assert scene.counts["process"] == 0
    assert scene.counts["finish"] == 1
    assert_values(done.values, full_values(0))
    assert done.progress.fraction == 1.0


def test_a_pass_without_sources_finishes_at_once():
    scene = Scene()
    job = Job(scene)
    job.folds = {5: 0}
    job.sink("total", 5)
    assert run(job).value == 0
    assert scene.counts["process"] == 0


def test_without_sources_the_length_says_how_many_records_there_are():
    job = Job(Scene(), batch_items=4, length=10)
    job.functions = {10: lambda x: 7}
    job.sink("y", 10)
    np.testing.assert_array_equal(run(job).value, np.full((10, 3), 7))
    assert [stop for _, _, stop in job.scene.executors[0].seqs] == [4, 8, 10]


def test_buffers_are_made_once_and_never_more_than_the_depth():
    for depth in (1, 2, 5):
        scene = Scene()
        done = run(full_job(scene, length=100, depth=depth))
        # Source b gives views and one sink is written in place: buffers are for a and for the value of two sinks.
        assert done.peak_bytes <= 2 * depth * 4 * 3 * 8


def test_a_short_stream_has_short_buffers():
    done = run(full_job(Scene(), length=3, batch_items=1000, depth=3))
    assert done.peak_bytes == 2 * 3 * 3 * 8


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("views", [False, True])
async def test_a_stopped_sink_stops_the_source(depth, views, mock_clock):
    scene = Scene()
    job = Job(scene, depth=depth)
    a = job.source("a", records(400), views=views)
    job.functions = {10: lambda x: x[a] + 0}
    job.sink("slow", 10)
    record = RunRecord(None, 0)
    opened = threading.Event()
    scene.hooks["write slow"] = lambda number: opened.wait(20)
    lent = []
    scene.hooks["read a"] = scene.hooks["process"] = lambda _: lent.append(record.tracker.lent)
    told = []

    def on_stuck_thread(error):
        told.append(error)
        opened.set()

    async def watch():
        # Once all tasks wait and only the held sink is at work, nothing else can move any more.
        waiting = []
        while waiting != [True, True, False]:
            await trio.testing.wait_all_tasks_blocked()
            waiting = [stage.state in WAITING for each in record.passes for stage in each.stages]
        # `depth` batches on each edge; where there are views one more is in the source's hands.
        assert scene.counts["read a"] == 2 * depth + views
        mock_clock.jump(5)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        with pytest.raises(RunError, match="slow: the run stalled") as caught:
            await Driver(job.planned(), record, PassSettings(stall_timeout_s=5, on_stuck_thread=on_stuck_thread)).run()
    assert told == [caught.value]
    assert "a: waiting for" in caught.value.got
    assert "compute: waiting for a free buffer towards slow for 5 s" in caught.value.got
    assert "slow: busy writing records 0 to 4 in a worker thread for 5 s" in caught.value.got
    assert max(lent) <= (1 if views else 2) * depth
    assert record.tracker.lent == 0
    scene.assert_put_away(committed=False)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (10, 9, ("'b' and 'a'", "got       9", ": 10")),
        (10, 7, ("'b' and 'a'", "got       7", "at least 8")),
        (8, 12, ("'a' and 'b'", "got       8", "at least 12")),
        (4, 40, ("'a' and 'b'", "got       4", "at least 8")),
        (0, 1, ("'a' and 'b'", "got       0", ": 1")),
    ],
)
def test_several_sources_of_different_length_name_both(first, second, words):
    job = Job(Scene())
    a, b = job.source("a", records(first)), job.source("b", records(second), views=True)
    job.functions = {10: lambda x: x[a] + x[b]}
    job.sink("y", 10)
    with pytest.raises(RunError) as caught:
        run(job)
    for word in words:
        assert word in str(caught.value)
    job.scene.assert_put_away(committed=False)


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("delivered", [0, 3, 4, 8, 9])
def test_a_known_length_must_be_delivered(views, delivered):
    job = Job(Scene())
    a = job.source("a", records(delivered), views=views, length=10)
    job.functions = {10: lambda x: x[a]}
    job.sink("y", 10)
    with pytest.raises(SourceError) as caught:
        run(job)
    assert caught.value.element == "a"
    assert caught.value.expected == "10 records"
    assert caught.value.got == str(delivered)
    job.scene.assert_put_away(committed=False)


def test_tiny_yields_fill_whole_batches():
    job = Job(Scene(), batch_items=6)
    data = records(20)
    left = iter(data)

    async def read(out):
        count = 0
        # Rows first: `zip` asks for one more of its first argument than it gives.
        for row, record in zip(out, left, strict=False):
            row[...] = record
            count += 1
        return count

    a = job.add("a", FakeAsyncSource(job.scene, read, name="a"))
    job.functions = {10: lambda x: x[a]}
    job.sink("y", 10)
    np.testing.assert_array_equal(run(job).value, data)
    assert [stop - begin for _, begin, stop in job.scene.executors[0].seqs] == [6, 6, 6, 2]
    job.scene.assert_put_away(committed=True)


def test_a_view_needs_no_copy():
    job = Job(Scene())
    data = records(8)
    a = job.source("a", data, views=True)
    seen = []
    job.functions = {10: lambda x: seen.append(np.shares_memory(x[a], data)) or x[a]}
    job.sink("y", 10, place=8)
    done = run(job)
    assert seen == [True, True]
    assert done.peak_bytes == 0


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("depth", [1, 3])
def test_a_source_that_is_a_result_goes_on_without_a_buffer(views, depth):
    job = Job(Scene(), depth=depth)
    data = records(50)
    a = job.source("a", data, views=views)
    job.sink("one", a)
    job.sink("two", a)
    done = run(job)
    assert_values(done.values, [data, data])
    assert done.peak_bytes == (0 if views else depth * 4 * 24)
    job.scene.assert_put_away(committed=True)


def test_a_source_that_is_a_result_is_copied_to_where_it_belongs():
    job = Job(Scene())
    data = records(10)
    a = job.source("a", data)
    job.functions = {a: lambda x: x[a]}
    job.sink("y", a, place=10)
    np.testing.assert_array_equal(run(job).value, data)


@pytest.mark.parametrize(("operation", "stages", "at"), [("read b", "sources", 1), ("write twice_1", "sinks", 0)])
def test_what_is_immediate_is_asked_without_a_thread(operation, stages, at):
    scene = Scene()
    job = full_job(scene)
    names = set()
    scene.hooks[operation] = lambda _: names.add(threading.current_thread().name)
    run(job)
    assert names == {"flowcompute-worker"}
    names.clear()
    element = getattr(job, stages)[at].element
    opened = element.open

    def open_immediate(*args, **options):
        made = opened(*args, **options)
        made.immediate = True
        return made

    element.freeze_fields(open=open_immediate)
    run(job)
    assert names == {"flowcompute-run"}


@pytest.mark.parametrize(("input", "mapped"), [(None, True), ("mapped", True), ("read", False)])
def test_the_strategy_says_whether_files_are_mapped(input, mapped):
    job = full_job(Scene())
    job.input = input
    run(job)
    assert [reader.mapped for reader in job.scene.readers] == [mapped, mapped]
    assert [reader.element for reader in job.scene.readers] == ["a", "b"]


@pytest.mark.parametrize("place", [None, 10])
def test_a_result_of_unknown_length_stays_in_the_budget(place):
    job = Job(Scene())
    a = job.source("a", records(10))
    job.functions = {10: lambda x: x[a]}
    job.sink("y", 10, in_memory=True, place=place)
    job.room_bytes = 10 * 24
    done = run(job)
    np.testing.assert_array_equal(done.value, records(10))
    assert done.peak_bytes >= 10 * 24
    job.room_bytes -= 1
    with pytest.raises(RunError, match="outgrows") as caught:
        run(job)
    assert caught.value.element == "y"
    assert caught.value.records == (8, 10)
    assert "fc.save" in caught.value.hint
    assert [writer.ends for writer in job.scene.writers] == [["commit"], ["abort"]]


def test_memory_of_the_destination_that_is_too_small_is_refused():
    job = Job(Scene())
    a = job.source("a", records(10))
    job.functions = {10: lambda x: x[a]}
    job.sink("y", 10, place=6)
    with pytest.raises(RunError, match="more records came than were declared") as caught:
        run(job)
    assert caught.value.element == "y"


def test_the_passes_run_in_order_and_are_committed_together():
    scene = Scene()
    job = full_job(scene)
    job.passes = 2
    scene.hooks["commit"] = lambda _: ends.append(scene.counts["finish"])
    ends: list[int] = []
    done = run(job)
    assert ends == [2] * 8
    assert done.progress.items == 20
    assert done.metrics["a"].items == 20
    assert done.metrics["step"].batches == 6
    scene.assert_put_away(committed=True)


def test_neighbouring_batches_are_uploaded_computed_and_downloaded_at_a_time():
    scene = Scene()
    # Whoever comes first waits for the others: three batches that took turns would never meet.
    meeting = threading.Barrier(3)
    for operation, batch in (("upload", 3), ("process", 2), ("download", 1)):
        scene.hooks[operation] = lambda number, batch=batch: meeting.wait(20) if number == batch else None
    done = run(full_job(scene, length=20, depth=3, overlapped=True))
    assert_values(done.values, full_values(20))
    assert list(done.metrics)[2:5] == ["upload", "step", "download"]
    for name in ("upload", "download"):
        assert done.metrics[name].kind == "transfer"
        assert done.metrics[name].batches == 5
