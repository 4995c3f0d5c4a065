"""Times that a plan expects of its stages from measured rates, and the words of a run on stages that missed them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.calibration import file_measurement, measure_files
from flowcompute.cli.command import main
from flowcompute.errors import DestinationError, PlanError
from flowcompute.files import FILES, Files, cached_share
from flowcompute.metrics import NodeMetrics
from flowcompute.schedule.explain import expected_times as expecting
from flowcompute.schedule.explain import missed
from flowcompute.strategy import FileRates, Limits, load_file_rates, save_file_rates, save_limits

RECORDS, ITEM = 4096, 64
SIZE = RECORDS * ITEM * 4
RATES = FileRates(read_bytes_per_s=1e6, cached_bytes_per_s=1e7, write_bytes_per_s=2e6)
LIMITS = Limits(bytes_per_s=1e6, operations_per_s={"float32": 1e9}, when=1)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file whose disk was measured, as was the reference's processor; passes of any size expect something."""
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(expecting, "LEAST_BYTES", 1)
    np.save(tmp_path / "x.npy", np.ones((RECORDS, ITEM), "f4"))
    assert save_file_rates(str(tmp_path), RATES)
    return tmp_path / "x.npy"


def by_stage(plan):
    return {one.stage: one for one in plan.expectations}


def copied(path, target):
    return (fc.open(path) * 2) >> fc.save(target)


def test_files_that_are_read_and_written_take_their_bytes_over_the_rate(path, monkeypatch):
    monkeypatch.setattr(expecting, "cached_share", lambda files, path: 0.25)
    plan = fc.plan(copied(path, path.with_name("y.npy")), device="numpy", strategy=fc.Strategy(input="read"))
    found = by_stage(plan)
    assert set(found) == {"open", "save"}
    assert found["open"].seconds == pytest.approx(SIZE * (0.25 / 1e7 + 0.75 / 1e6))
    assert (found["open"].records, found["open"].bytes, found["open"].limit) == (RECORDS, SIZE, "the disk")
    assert found["save"].seconds == pytest.approx(SIZE / 2e6)
    text = str(plan)
    assert f"expects {found['open'].seconds:.2f} s or more" in text
    assert all(str(one) in text for one in found.values())


def test_a_mapped_file_is_read_by_the_kernel_that_touches_it_first(path, monkeypatch):
    monkeypatch.setattr(expecting, "cached_share", lambda files, path: 1.0)
    x = fc.open(path)
    plan = fc.plan((x * 2).sum(axis=0), x.max(axis=0), device="cpu")
    kinds = {one.kind for one in plan.expectations}
    if x.must_read() is not None:
        # The file was written just now.
        assert kinds == {"read"}
    monkeypatch.setattr(type(x), "must_read", lambda self, mapped=True: None if mapped else "asked for")
    plan = fc.plan((x * 2).sum(axis=0), x.max(axis=0), device="cpu")
    assert {(one.kind, one.limit) for one in plan.expectations} == {("compute", "the system's cache")}
    assert sum(one.seconds for one in plan.expectations) == pytest.approx(SIZE / 1e7)


def test_kernels_take_what_their_device_allows_and_passes_add_up(path):
    kind = fc.plan(fc.source(np.ones((2, 2), "f4")) * 2, device="cpu").backend.capabilities.kind
    assert save_limits(kind, LIMITS)
    x = fc.source(np.ones((RECORDS, ITEM), "f4"))
    (one,) = fc.plan(x * 2.5, device="cpu").expectations
    assert (one.kind, one.bytes, one.limit) == ("compute", 2 * SIZE, "memory")
    assert one.seconds == pytest.approx(2 * SIZE / 1e6)
    # Two readings of one file by stages of one name.
    y = fc.open(path)
    twice = fc.plan((y - y.mean(axis=0)).max(axis=0), device="cpu", strategy=fc.Strategy(input="read"))
    assert len(twice.passes) == 2
    found = by_stage(twice)
    assert (found["open"].records, found["open"].bytes) == (2 * RECORDS, 2 * SIZE)
    assert found["open"].seconds in (pytest.approx(2 * SIZE / 1e7), pytest.approx(2 * SIZE / 1e6))


def test_nothing_is_expected_of_what_was_not_measured_or_is_not_known(path, monkeypatch):
    job = copied(path, path.with_name("y.npy"))
    assert fc.plan(job, device="numpy").expectations
    # The length is known once the selection has run.
    x = fc.open(path)
    kept = fc.plan(x[x[:, 0] > 0] >> fc.save(path.with_name("z.npy")), device="numpy")
    assert "save" not in by_stage(kept)
    monkeypatch.setattr(expecting, "LEAST_BYTES", SIZE + 1)
    assert fc.plan(job, device="numpy").expectations == ()
    assert "expects" not in str(fc.plan(job, device="numpy"))
    monkeypatch.setattr(expecting, "LEAST_BYTES", 1)
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(path.with_name("empty")))
    assert fc.plan(job, device="numpy").expectations == ()


def test_a_source_that_is_gone_is_told_by_the_run_and_not_by_what_it_expects(path):
    job = fc.plan(copied(path, path.with_name("y.npy")), device="numpy")
    path.unlink()
    assert [one.stage for one in job.expectations] == ["save"]


def row(kind, seconds, items=RECORDS):
    return NodeMetrics("a", kind, items, 1, SIZE, SIZE, 0.0, seconds, 0.0)


@pytest.mark.parametrize(("kind", "factor"), [("read", 2), ("compute", 4), ("write", 2)])
def test_a_stage_misses_what_is_expected_of_as_many_records(kind, factor):
    one = expecting.Expectation("a", kind, RECORDS, SIZE, 1.0, "the disk")
    stage = "region" if kind == "compute" else "source"
    assert missed([one], {"a": row(stage, factor)}) == ()
    assert missed([one], {"b": row(stage, factor + 1)}) == ()
    (text,) = missed([one], {"a": row(stage, factor + 1)})
    assert text == f"a took {factor + 1:.2f} s, and 1.00 s were expected by the disk"
    # A resumed job has read a part of them.
    assert missed([one], {"a": row(stage, factor / 2 + 0.1, RECORDS // 2)})
    # What a small stage loses is nothing to tell of.
    small = dataclasses.replace(one, seconds=1e-4)
    assert missed([small], {"a": row(stage, 1e-2)}) == ()


def test_a_run_tells_of_missed_expectations_when_it_has_ended(path, monkeypatch):
    job = copied(path, path.with_name("y.npy"))
    monkeypatch.setattr(expecting, "_FAILED_S", 0.0)
    assert fc.run(job, device="numpy", progress=False).notes == ()
    save_file_rates(str(path), FileRates(1e18, 1e18, 1e18))
    seen = []
    run = fc.run(job, device="numpy", progress=False, on_batch=lambda run: seen.append(run.notes))
    assert set(seen) == {()}
    assert any(note.startswith("save took ") for note in run.notes)
    assert all(note in str(run) for note in run.notes)


def test_the_rates_of_a_disk_are_measured_once_and_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FLOWCOMPUTE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setattr(file_measurement.measure_files, "__kwdefaults__", {**defaults(), "size": 1 << 16})
    assert main(["devices", "--files", str(folder)]) == 0
    rates = load_file_rates(str(folder / "not there yet"))
    assert rates is not None
    assert str(rates) in capsys.readouterr().out.replace("\n", " ")
    assert list(folder.iterdir()) == []


def defaults():
    return dict(measure_files.__kwdefaults__)


def test_rates_are_bytes_over_seconds(tmp_path):
    ticks = iter([0.0, 2.0, 10.0, 11.0, 20.0, 20.5])
    rates = measure_files(str(tmp_path), size=1000, clock=lambda: next(ticks))
    assert rates.write_bytes_per_s == 500
    # Where the file stays in the cache there is one rate.
    assert (rates.read_bytes_per_s, rates.cached_bytes_per_s) in ((1000, 2000), (2000, 2000))


class FullDisk(Files):
    def _write_some(self, handle, data, offset):
        raise OSError(28, "No space left on device")


def test_a_folder_that_takes_no_file_is_named(tmp_path):
    with pytest.raises(DestinationError, match=r"cannot measure files in .*No space left") as caught:
        measure_files(str(tmp_path), files=FullDisk())
    assert "268,435,456 bytes" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DestinationError, match="cannot measure files in"):
        measure_files(str(tmp_path / "missing"))


@pytest.mark.parametrize("text", ["", "[]", '{"mount": "/"}', '{"mount": 1, "rates": {}}'])
def test_rates_that_cannot_be_read_are_missing(path, text):
    assert load_file_rates(str(path)) == RATES
    (kept,) = (path.parent / "cache" / "disks").iterdir()
    good = kept.read_text()
    kept.write_text(text)
    assert load_file_rates(str(path)) is None
    for bad in ("0.0", "-1.0", "Infinity", "NaN", "true"):
        kept.write_text(good.replace("1000000.0", bad))
        assert load_file_rates(str(path)) is None
    with pytest.raises(PlanError, match="rates of files"):
        FileRates(0, 1, 1)


def test_the_share_that_is_cached_is_that_of_samples(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"")
    assert cached_share(FILES, str(path)) == 1
    path.write_bytes(b"x" * 100_000)
    assert 0 <= cached_share(FILES, str(path)) <= 1
    with pytest.raises(OSError):
        cached_share(FILES, str(tmp_path / "missing"))
