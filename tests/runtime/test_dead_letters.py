"""The dead-letter file: what it says, and that it is there whole, or not at all, whatever happens."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
import trio

import flowcompute as fc
from flowcompute.errors import DestinationError, PlanError, RunError
from flowcompute.jobs import job_of
from flowcompute.runtime.channels.run_record import RunRecord
from flowcompute.runtime.run.driver import Driver
from flowcompute.runtime.run.running_pass import PassSettings
from tests.runtime.dropping import Function, batches, dead, dead_letters, fails_at, kept, rows, run, with_files, written
from tests.runtime.test_failure import CancelAt
from tests.support.faulty_files import FaultyFiles


def test_each_record_has_a_line_that_any_reader_of_json_understands(tmp_path):
    path = tmp_path / "d.jsonl"
    data = np.zeros((5, 2), "f4")
    data[1] = np.nan, -np.inf
    data[3] = np.inf, -0.0
    many, flags = np.zeros((5, 65)), np.array([True, False, True, False, True])

    def refuse(x, _, flag):
        if not flag.all():
            raise OSError('"quoted"\n\udcff and é')
        return x

    y = fc.host(
        refuse, fc.source(data), fc.source(many), fc.source(flags), on_error="dead_letter", dead_letter=str(path)
    )
    done = run(y, items=2)
    np.testing.assert_array_equal(done.value, data[::2])
    common = {"element": "refuse", "error": "OSError", "text": '"quoted"\n\udcff and é'}
    assert dead_letters(path) == [
        {**common, "record": 1, "inputs": [["nan", "-inf"], None, False]},
        {**common, "record": 3, "inputs": [["inf", -0.0], None, False]},
    ]
    assert [float(text) for text in ("inf", "-inf")] == [np.inf, -np.inf]


def test_the_file_is_there_also_without_lines_and_replaces_an_older_one(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text("of yesterday")
    path.chmod(0o640)
    held = []

    def look(_):
        held.append((path.read_text(), len(os.listdir(tmp_path))))

    run(dead(path, {95}), on_batch=look)
    assert set(held) == {("of yesterday", 2)}
    assert written(path) == [95]
    assert path.stat().st_mode & 0o777 == 0o640
    run(dead(path, {}))
    assert path.read_bytes() == b""
    assert os.listdir(tmp_path) == ["d.jsonl"]


def test_lines_can_be_looked_at_while_the_run_goes_on(tmp_path):
    seen = []

    def look(_):
        (name,) = os.listdir(tmp_path)
        seen.append(len((tmp_path / name).read_bytes().splitlines()))

    run(dead(tmp_path / "d.jsonl", {5, 15, 16, 45}, 50), items=10, on_batch=look)
    assert seen == [1, 3, 3, 3, 4]


def test_all_are_written_and_a_hundred_are_named(tmp_path):
    path = tmp_path / "d.jsonl"
    done = run(dead(path, range(1, 1000), 1000), items=1000)
    assert len(done.value) == 1
    assert done.skipped["made"].count == 999
    assert [one.record for one in done.skipped["made"].first] == list(range(1, 101))
    assert written(path) == list(range(1, 1000))
    assert str(done.skipped["made"]) == "999 skipped, first record 1: ValueError: cannot use 1"


def test_a_run_that_fails_leaves_it_and_nothing_else(tmp_path):
    path = tmp_path / "d.jsonl"

    def look(going):
        if going.progress.items >= 30:
            raise ZeroDivisionError

    started = fc.start(
        dead(path, range(0, 100, 9)) >> fc.save(tmp_path / "y.npy"),
        strategy=batches(10), progress=False, device="numpy", on_batch=look,
    )  # fmt: skip
    with pytest.raises(RunError, match="ZeroDivisionError"):
        started.wait(30)
    assert written(path) == [0, 9, 18, 27]
    assert started.skipped["made"].count == 4
    assert os.listdir(tmp_path) == ["d.jsonl"]


@pytest.mark.parametrize("older", [True, False])
def test_a_run_that_is_stopped_leaves_nothing(tmp_path, older):
    path = tmp_path / "d.jsonl"
    if older:
        path.write_text("of yesterday")
    y = dead(path, range(0, 100, 9))
    with pytest.raises(RunError, match="stopped"):
        fc.start(y, strategy=batches(10), progress=False, on_batch=lambda going: going.stop()).wait(30)
    assert os.listdir(tmp_path) == ["d.jsonl"] * older
    assert not older or path.read_text() == "of yesterday"


def test_cancelled_at_every_await_it_is_whole_or_not_there(tmp_path):
    path = tmp_path / "d.jsonl"
    y = dead(path, {3, 14, 19}, 20)
    job = job_of(fc.plan(y - y.mean(axis=0) >> fc.discard(), strategy=batches(10), device="numpy"))
    outcomes = set()
    for k in range(1, 1000):
        path.write_text("of yesterday")
        instrument = CancelAt(k, trio.CancelScope())

        async def main(scope=instrument.scope):
            with scope:
                await Driver(job, RunRecord(None, 1 << 20), PassSettings()).run()
                return True
            return False

        complete = trio.run(main, instruments=[instrument])
        outcomes.add(complete)
        assert os.listdir(tmp_path) == ["d.jsonl"]
        assert written(path) == [3, 14, 19] if complete else path.read_text() == "of yesterday"
        if instrument.left > 0:
            break
    assert instrument.left > 0, "not every await was reached"
    assert outcomes == {True, False}


def test_a_run_that_fails_before_it_computes_leaves_an_empty_one(tmp_path):
    (tmp_path / "d.jsonl").write_text("of yesterday")
    with pytest.raises(DestinationError, match="ENOENT"):
        run(dead(tmp_path / "d.jsonl", {3}) >> fc.save(tmp_path / "no" / "y.npy"))
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("d.jsonl", 0)]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_any_operation_on_the_file_may_fail(tmp_path, error):
    path = tmp_path / "d.jsonl"
    path.write_text("of yesterday")
    faultless = FaultyFiles(longest=50)
    run(with_files(dead(path, {4, 40, 41}), faultless))
    assert written(path) == [4, 40, 41]
    for k in range(len(faultless.log)):
        path.write_text("of yesterday")
        files = FaultyFiles(k, error, longest=50)
        job = with_files(dead(path, {4, 40, 41}), files) >> fc.save(tmp_path / "y.npy")
        with pytest.raises(DestinationError, match="the dead-letter file") as caught:
            run(job)
        assert caught.value.element == "made"
        assert caught.value.site is not None
        assert os.path.basename(caught.value.site.file) == "dropping.py"
        assert os.listdir(tmp_path) == ["d.jsonl"]
        # Whole lines, as many as there were; the next attempt to write them may have succeeded.
        assert path.read_text() == "of yesterday" or written(path) == [4, 40, 41][: len(written(path))]
        assert not files.handles


def test_a_file_that_cannot_be_is_refused_before_anything_is_computed(tmp_path):
    calls = []
    for path, words in ((tmp_path, "failed.jsonl"), (tmp_path / "no" / "d.jsonl", "ENOENT"), ("/dev/null", "regular")):
        y = fc.host(calls.append, fc.source(rows(5)), on_error="dead_letter", dead_letter=path)
        with pytest.raises(DestinationError, match="dead-letter file") as caught:
            run(y)
        assert words in str(caught.value)
    assert calls == []
    assert os.listdir(tmp_path) == []


def test_a_file_of_another_element_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", rows(10))
    x = fc.open(tmp_path / "x.npy", name="x")
    twice = fails_at({})

    def y(path, x=x):
        return fc.host(twice, x, on_error="dead_letter", dead_letter=path)

    os.symlink(tmp_path, tmp_path / "link")
    cases = [
        ([y(tmp_path / "x.npy")], "which x reads"),
        ([y(tmp_path / "link" / "x.npy", x[2:5])], "reads"),
        ([y(tmp_path / "link" / "y.npy") >> fc.save(tmp_path / "y.npy", name="out")], "which out writes"),
        ([y(tmp_path / "d.jsonl"), y(tmp_path / "link" / "d.jsonl")], "which twice writes"),
    ]
    for roots, words in cases:
        with pytest.raises(PlanError, match="dead-letter file") as caught:
            fc.plan(*roots)
        assert words in caught.value.got
    several = fc.open([tmp_path / "x.npy", tmp_path / "x.npy"], name="both")
    z = fc.host(twice, several, on_error="dead_letter", dead_letter=tmp_path / "x.npy")
    with pytest.raises(PlanError, match="dead-letter file"):
        fc.plan(z)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), rows(10))


# -- several readings -----------------------------------------------------------------------------


@pytest.mark.parametrize("items", [1, 10, 1000])
def test_passes_drop_the_same_records_and_each_is_written_once(tmp_path, items):
    path = tmp_path / "d.jsonl"
    bad = [0, 17, 18, 99]
    y = dead(path, bad)
    done = run((y - y.mean(axis=0)) / y.std(axis=0), y.max(axis=0), items=items)
    assert len(done.plan.passes) == 2
    value = kept(rows(100), bad)
    np.testing.assert_allclose(done.values[0], (value - value.mean(axis=0)) / value.std(axis=0), rtol=1e-9, atol=1e-12)
    assert written(path) == bad
    assert done.skipped["made"].count == done.progress.skipped == len(bad)


READ_IN_PART: dict[str, Function] = {
    "a pass that ends early before a whole one": lambda y: y - y[:10].mean(axis=0),
    "a whole pass before one that ends early": lambda y: (y - y.mean(axis=0))[:10],
    "an arm that ends early before a whole one": lambda y: fc.concat([y[:3], y]),
    "a whole arm before one that ends early": lambda y: fc.concat([y, y[:3]]),
}


@pytest.mark.parametrize("items", [3, 10])
@pytest.mark.parametrize("name", READ_IN_PART)
def test_the_file_has_what_the_longest_reading_dropped(tmp_path, name, items):
    path = tmp_path / "d.jsonl"
    bad = list(range(1, 100, 6))
    done = run(READ_IN_PART[name](dead(path, bad)), items=items)
    assert done.skipped["made"].count == len(bad)
    assert written(path) == bad
    assert {letter["element"] for letter in dead_letters(path)} == {"made"}


def test_a_spooled_stream_is_made_once(tmp_path):
    path = tmp_path / "d.jsonl"
    calls = []
    inner = fails_at({7})

    def once(batch):
        calls.append(len(batch))
        return inner(batch)

    y = fc.spool(fc.host(once, fc.source(rows(20)), on_error="dead_letter", dead_letter=path))
    np.testing.assert_array_equal(run(y - y.max(axis=0), items=100).value[-1, 0], 0)
    assert sum(calls) == 20 + 20
    assert written(path) == [7]
