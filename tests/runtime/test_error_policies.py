"""`on_error=` of host functions: which records go, who hears of it, and that nobody else notices."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.batch import Batch
from flowcompute.errors import DestinationError, RunError
from flowcompute.jobs import job_of
from flowcompute.metrics import Skipped
from flowcompute.runtime.channels.progress_line import describe
from tests.runtime.dropping import Function, dead_letters, fails_at, kept, rows, run, with_files, written
from tests.support.faulty_files import FaultyFiles

LENGTHS = [0, 1, 2, 31, 32, 33, 64, 65, 200]


# -- which records ------------------------------------------------------------------------------


@given(st.data(), st.sampled_from(LENGTHS), st.integers(1, 70), st.sampled_from(["numpy", "cpu"]))
def test_what_fails_is_gone_and_counted_for_every_batch_size(data, length, items, device):
    some = st.sets(st.integers(0, max(length - 1, 0)), max_size=min(length, 12))
    bad = data.draw(st.sampled_from([set(), set(range(length))]) | some)
    how = data.draw(st.sampled_from(["raise", "dtype", "shape", "rank", "object"]))
    numbers = rows(length)
    done = run(fc.host(fails_at(bad, how), fc.source(numbers), on_error="skip"), items=items, device=device)
    np.testing.assert_array_equal(done.value, kept(numbers, bad))
    assert done.skipped["twice"].count == done.progress.skipped == len(bad)
    assert [one.record for one in done.skipped["twice"].first] == sorted(bad)[:100]


@pytest.mark.parametrize("edge", [0, 1, 1022, 1023, 1024, 1025, 2046, 2047])
@pytest.mark.parametrize("items", [1023, 1024, 1025, 4096])
def test_at_the_edges_of_batches(edge, items):
    numbers = rows(2048)
    y = fc.host(fails_at({edge}), fc.source(numbers), on_error="skip")
    done = run(y, items=items)
    np.testing.assert_array_equal(done.value, kept(numbers, {edge}))
    assert [str(one) for one in done.skipped["twice"].first] == [f"record {edge}: ValueError: cannot use {edge}"]


def test_results_have_the_same_bits_for_every_batch_size():
    numbers = rows(3000)
    bad = set(range(0, 3000, 41)) | {2999}
    found = []
    for device in ("numpy", "cpu"):
        for items in (37, 1024, 1025, 5000):
            y = fc.host(fails_at(bad), fc.source(numbers), on_error="skip")
            done = run(y.sum(axis=0), y.max(axis=0), (y / 3).mean(axis=0), y, items=items, device=device)
            assert done.skipped["twice"].count == len(bad)
            found.append(b"".join(np.asarray(value).tobytes() for value in done.values))
    assert set(found) == {found[0]}
    np.testing.assert_allclose(done.values[0], kept(numbers, bad).sum(axis=0), rtol=1e-12)


def test_a_function_of_several_streams_and_a_resident_value(tmp_path):
    a, b, c = np.arange(50, dtype="f4"), np.arange(50, dtype="i4") % 4, np.array([10.0, 20, 30])

    def pick(x, which, table):
        return x + table[which].astype("f4")

    y = fc.host(pick, fc.source(a), fc.source(b), c, on_error="dead_letter", dead_letter=tmp_path / "d.jsonl")
    done = run(y)
    np.testing.assert_array_equal(done.value, (a + c[np.minimum(b, 2)])[b < 3].astype("f4"))
    assert done.skipped["pick"].count == 12
    first = dead_letters(tmp_path / "d.jsonl")[0]
    assert (first["record"], first["error"], first["inputs"]) == (3, "IndexError", [3.0, 3])


def test_no_record_is_computed_more_often_than_promised():
    calls: list[int] = []
    inner = fails_at({777})

    def counted(batch):
        calls.append(len(batch))
        return inner(batch)

    run(fc.host(counted, fc.source(rows(1024)), on_error="skip"), items=1024)
    # The batch, 32 parts, and 32 single ones of the part that failed.
    assert sorted(calls) == [1] * 32 + [32] * 32 + [1024]


def test_a_function_may_use_its_result_again():
    memory = np.empty((64, 2))
    inner = fails_at({5, 40})

    def reusing(batch):
        memory[: len(batch)] = inner(batch)
        return memory[: len(batch)]

    numbers = rows(64)
    np.testing.assert_array_equal(
        run(fc.host(reusing, fc.source(numbers), on_error="skip"), items=64).value, kept(numbers, {5, 40})
    )


def test_a_run_says_how_many_were_dropped_wherever_it_says_what_it_did():
    done = run(fc.host(fails_at(range(1200)), fc.source(rows(1203)), on_error="skip"), items=1203)
    assert "1200 skipped" in str(done)
    assert "1,200 skipped" in describe(done.progress, None)
    none = run(fc.host(fails_at([]), fc.source(rows(3)), on_error="skip"))
    assert "skipped" not in str(none) + describe(none.progress, None)
    assert none.skipped == {"twice": Skipped()}


def test_raise_is_the_default_and_names_the_batch():
    y = fc.host(fails_at({25}), fc.source(rows(100)))
    with pytest.raises(RunError, match="cannot use 25") as caught:
        run(y, items=10)
    assert caught.value.records[0] <= 25 < caught.value.records[1]
    assert run(fc.host(fails_at({}), fc.source(rows(5)))).skipped == {}


class Mute(Exception):
    """One whose text cannot be had."""

    def __str__(self) -> str:
        raise KeyError("text")


def test_an_error_without_a_text_is_an_error_like_others():
    def refuse(batch):
        if batch[0, 0] == 3:
            raise Mute
        return batch

    x = fc.source(rows(5))
    done = run(fc.host(refuse, x, on_error="skip"), items=1)
    assert [one.error for one in done.skipped["refuse"].first] == ["Mute"]
    assert "KeyError" in done.skipped["refuse"].first[0].text
    with pytest.raises(RunError, match="the function failed: Mute"):
        run(fc.host(refuse, x), items=1)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_no_failed_record(kind, tmp_path):
    def leave(batch):
        raise kind

    path = tmp_path / "d.jsonl"
    with pytest.raises(kind):
        run(fc.host(leave, fc.source(rows(5)), on_error="dead_letter", dead_letter=path))
    assert os.listdir(tmp_path) == []


# -- what comes after it --------------------------------------------------------------------------


FOLLOWED: dict[str, tuple[Function, Function]] = {
    "window": (lambda y: fc.window(y, size=3).sum(axis=1), lambda v: v[:-2] + v[1:-1] + v[2:]),
    "cut": (lambda y: fc.cut(y, every=4, tail="drop"), lambda v: v[: len(v) // 4 * 4].reshape(-1, 4, 2)),
    "select": (lambda y: y[y[:, 1] > 0], lambda v: v[v[:, 1] > 0]),
    "sum of selected": (lambda y: y[y[:, 0] > 50].sum(axis=0), lambda v: v[v[:, 0] > 50].sum(axis=0)),
    "step": (lambda y: y[1::3], lambda v: v[1::3]),
    "scan": (lambda y: fc.cumulative_sum(y[:, 0]), lambda v: v[:, 0].cumsum()),
    "ends": (lambda y: fc.concat([y, y]), lambda v: np.concatenate([v, v])),
    "again": (lambda y: fc.host(fails_at({20, 22}), y, on_error="skip"), lambda v: v[~np.isin(v[:, 0], [20, 22])] * 2),
}  # fmt: skip


@pytest.mark.parametrize("items", [1, 7, 100])
@pytest.mark.parametrize("name", FOLLOWED)
def test_records_close_up_for_what_follows(name, items):
    numbers = rows(60)
    numbers[:, 1] = np.arange(60) % 5 - 2
    bad = {0, 13, 14, 15, 59}
    follow, meaning = FOLLOWED[name]
    done = run(follow(fc.host(fails_at(bad), fc.source(numbers), name="first", on_error="skip")), items=items)
    np.testing.assert_array_equal(done.value, meaning(kept(numbers, bad)))
    assert done.skipped["first"].count == len(bad)


def test_a_run_that_does_not_come_out_even_is_an_error():
    y = fc.host(fails_at({3}), fc.source(rows(12)), on_error="skip")
    with pytest.raises(RunError, match="11"):
        run(fc.cut(y, every=4))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("items", [1, 10, 100])
def test_meeting_its_own_input_takes_that_none_was_dropped(items, known):
    numbers = rows(40)
    x = fc.source(numbers) if known else fc.iterate([numbers], shape=(2,), dtype="f8")
    y = fc.host(fails_at({12, 30}), x, on_error="skip")
    with pytest.raises(RunError) as caught:
        run(x + y, items=items)
    assert "40" in caught.value.expected
    assert "38" in caught.value.got
    x = fc.source(numbers) if known else fc.iterate([numbers], shape=(2,), dtype="f8")
    whole = run(x + fc.host(fails_at({}), x, on_error="skip"), items=items)
    np.testing.assert_array_equal(whole.value, numbers * 3)
    assert whole.skipped["twice"].count == 0


def test_two_that_drop_different_records_do_not_meet():
    x = fc.source(rows(40))
    y, z = (fc.host(fails_at(bad), x, on_error="skip") for bad in ({1}, {2, 3}))
    with pytest.raises(RunError) as caught:
        run(y + z)
    assert {"38", "39"} <= set((caught.value.expected + " " + caught.value.got).split())
    done = run(y, z)
    assert [one.count for one in done.skipped.values()] == [1, 2]
    assert list(map(len, done.values)) == [39, 38]


# -- flows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["reset", "cumulative"])
def test_flows_count_for_as_long_as_they_are_open(tmp_path, mode):
    path = tmp_path / "d.jsonl"
    feed = fc.feed(shape=(2,), dtype="f8")
    y = fc.host(fails_at({1, 4, 5}), feed, on_error="dead_letter", dead_letter=path, name="made")
    numbers = rows(6)
    with y.flow(mode=mode, device="numpy") as flow:
        for first in (0, 3):
            flow.send(numbers[first : first + 3])
            np.testing.assert_array_equal(flow.receive(), kept(numbers, {1, 4, 5})[first * 2 // 3 :][: 2 - first // 3])
        flow.send(numbers[:0])
        assert len(flow.receive()) == 0
        assert flow.skipped["made"].count == 3
        flow.resolve()
        flow.send(numbers)
        assert [one.record for one in flow.skipped["made"].first] == [
            1, 4, 5, *([1, 4, 5] if mode == "reset" else [7, 10, 11])
        ]  # fmt: skip
        assert not path.exists()
    assert flow.skipped["made"].count == 6
    assert len(dead_letters(path)) == 6
    assert os.listdir(tmp_path) == ["d.jsonl"]


@pytest.mark.parametrize(("mode", "second"), [("reset", 16), ("cumulative", 2 + 16)])
def test_folds_of_flows_leave_out_what_was_dropped(mode, second):
    feed = fc.feed(shape=(2,), dtype="f8")
    total = fc.host(fails_at({2}), feed, on_error="skip")[:, 0].sum(axis=0)
    with total.flow(mode=mode, device="numpy") as flow:
        flow.send(rows(3))
        assert flow.resolve() == 2
        flow.send(rows(5))
        assert flow.resolve() == second


def test_a_flow_that_cannot_write_fails_and_tries_again_when_it_is_closed(tmp_path):
    path = tmp_path / "d.jsonl"
    files = FaultyFiles(0, errno.ENOSPC, only=frozenset({"write"}))
    feed = fc.feed(shape=(2,), dtype="f8")
    y = with_files(fc.host(fails_at({0, 2}), feed, on_error="dead_letter", dead_letter=path, name="made"), files)
    with y.flow(device="numpy") as flow, pytest.raises(DestinationError, match="No space"):
        flow.send(rows(3))
    assert written(path) == [0, 2]
    assert flow.skipped["made"].count == 2
    assert not files.handles


async def test_async_flows_count_and_complete_the_file_at_their_end(tmp_path):
    path = tmp_path / "d.jsonl"
    feed = fc.feed(shape=(2,), dtype="f8")
    y = fc.host(fails_at({1}), feed, on_error="dead_letter", dead_letter=path, name="made")
    async with y.flow(device="numpy") as flow:
        await flow.send(rows(3))
        assert len(await flow.receive()) == 2
        assert not path.exists()
    assert flow.skipped["made"].count == 1
    assert written(path) == [1]


def test_a_flow_that_fails_completes_its_file(tmp_path):
    path = tmp_path / "d.jsonl"
    feed = fc.feed(shape=(2,), dtype="f8")
    y = fc.host(fails_at({1}), feed, on_error="dead_letter", dead_letter=path, name="made")
    with pytest.raises(RunError, match="cannot use 8"), fc.host(fails_at({8}), y * 2).flow(device="numpy") as flow:
        flow.send(rows(3))
    assert written(path) == [1]
    assert os.listdir(tmp_path) == ["d.jsonl"]


# -- state ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0, 10, 50])
def test_an_executor_goes_on_counting_from_a_snapshot(cut):
    numbers = rows(60)
    y = fc.host(fails_at({3, 12, 13, 55}), fc.source(numbers), on_error="skip")
    plan = fc.plan(y.sum(axis=0), device="numpy", strategy=fc.Strategy(batch_bytes=160))
    (stage,) = plan.passes[0].sources
    state = None
    for start, stop in ((0, cut), (cut, 60)):
        executor = job_of(plan).executor(0, {})
        executor.open()
        if state is not None:
            executor.restore(state)
        for seq, begin in enumerate(range(start, stop, 10)):
            executor.process(Batch(seq, begin, begin + 10, {stage.value: numbers[begin : begin + 10]}, 0), {})
        state = executor.snapshot()
    executor.end(0, {})
    (value,) = executor.finish().values()
    np.testing.assert_array_equal(value, run(y.sum(axis=0)).value)
    (skip_counter,) = executor.skip_counters
    assert skip_counter.skipped == run(y).skipped["twice"]
    assert [one.record for one in skip_counter.skipped.first] == [3, 12, 13, 55]
