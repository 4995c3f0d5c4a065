"""Streams kept in a temporary file: the right values of later passes, one reading, a limit, and nothing left behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import DestinationError, PlanError, RunError, SourceError, SpecError
from flowcompute.files.scratch import Scratch

X = np.random.default_rng(3).integers(-9, 9, (500, 3)).astype(np.float32) / 8


class Once:
    """Records that can be read once, in uneven pieces; counts how many were taken."""

    def __init__(self, array: np.ndarray = X, fail_at: int | None = None) -> None:
        self.array = array
        self.fail_at = fail_at
        self.taken = 0

    def __iter__(self) -> Iterator[np.ndarray]:
        for start in range(0, len(self.array), 70):
            if self.fail_at is not None and start >= self.fail_at:
                raise ValueError("the wire is cut")
            part = self.array[start : start + 70]
            self.taken += len(part)
            yield part

    @property
    def stream(self) -> fc.Element:
        return fc.iterate(iter(self), shape=self.array.shape[1:], dtype=self.array.dtype)


def assert_nothing_left(folder: Path) -> None:
    """Neither a name in the folder, nor an open file without one."""
    assert list(folder.iterdir()) == []
    assert open_files(folder) == []


def open_files(folder: Path) -> list[str]:
    found = []
    for handle in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{handle}"))
        except FileNotFoundError:
            continue
    return [path for path in found if path.startswith(str(folder))]


# -- values -------------------------------------------------------------------------------------

TWO_PASSES: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "the stream itself": lambda x, keep: (y := keep(x)) - y.mean(axis=0),
    "a map": lambda x, keep: (y := keep(x * 2)) * y.max(axis=0),
    "a column": lambda x, keep: (y := keep(x[:, 1])) - y.sum(axis=0),
    "rows backwards": lambda x, keep: (y := keep(x[:, ::-1])) - fc.exp(y).mean(axis=0),
    "windows": lambda x, keep: (y := keep(fc.window(x, 3))) - y.mean(axis=0),
    "a selection": lambda x, keep: (y := keep(x[x[:, 0] > 0])) - y.mean(axis=0),
    "a running sum": lambda x, keep: (y := keep(fc.cumulative_sum(x, axis=0))) / y.max(axis=0),
    "windows over what is kept": lambda x, keep: fc.window(y := keep(x), 5, pad="edge").sum(axis=1) - y.mean(axis=0),
    "three passes": lambda x, keep: (c := (y := keep(x)) - y.mean(axis=0)) / fc.abs(c).max(axis=0),
    "two things kept": lambda x, keep: keep((y := keep(x)) * 2) - y.mean(axis=0) * keep(y * 2).max(axis=0),
}


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *((name, "numpy") for name in TWO_PASSES),
        *((name, "cpu") for name in ("rows backwards", "windows", "a selection")),
    ],
)
def test_later_passes_see_the_same_stream(name: str, device: str, tmp_path: Path) -> None:
    build = TWO_PASSES[name]
    wanted = build(fc.source(X), lambda x: x).resolve(device=device, progress=False)
    for batch_bytes in (None, 100):
        once = Once()
        element = build(once.stream, lambda x: fc.spool(x, folder=tmp_path))
        result = element.resolve(device=device, progress=False, strategy=fc.Strategy(batch_bytes=batch_bytes))
        np.testing.assert_array_equal(result, wanted)
        assert once.taken == len(X), "the source is read once"
        assert_nothing_left(tmp_path)


@pytest.mark.parametrize(
    "array",
    [X[:0], X[:1], np.zeros((5, 0), np.float32), X.astype(ml_dtypes.bfloat16), X > 0, X.astype(np.int8)],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_every_kind_of_records_is_kept(array: np.ndarray) -> None:
    x = fc.spool(Once(array).stream)
    kept, total = fc.resolve(x == x.any(axis=0), x.sum(axis=0), device="numpy", progress=False)
    np.testing.assert_array_equal(kept, array == array.astype(bool).any(axis=0))
    assert total.shape == array.shape[1:]


def test_several_results_share_what_is_kept() -> None:
    once = Once()
    x = fc.spool(once.stream)
    centred, scaled, total = fc.resolve(x - x.mean(axis=0), x / x.max(axis=0), x.sum(axis=0), progress=False)
    np.testing.assert_allclose(centred, X - X.mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(scaled, X / X.max(axis=0))
    np.testing.assert_array_equal(total, X.sum(axis=0))
    assert once.taken == len(X)


# -- what is written, and how much memory it takes ------------------------------------------------


def test_nothing_is_written_where_one_pass_is_enough() -> None:
    with mock.patch.object(Scratch, "begin") as begin:
        result = fc.spool(Once().stream).sum(axis=0).resolve(progress=False)
    np.testing.assert_array_equal(result, X.sum(axis=0))
    begin.assert_not_called()


def test_what_is_kept_counts_against_no_memory() -> None:
    pieces = [X] * 100
    x = fc.spool(fc.iterate(iter(pieces), shape=(3,), dtype="float32"))
    budget = 20_000
    assert X.nbytes * len(pieces) > 25 * budget
    result = (x - x.mean(axis=0)).max(axis=0).resolve(memory=budget, progress=False, device="numpy")
    np.testing.assert_allclose(result, (X - X.mean(axis=0, dtype=np.float64)).max(axis=0), rtol=1e-6)


def test_the_plan_shows_what_is_kept_and_read_again() -> None:
    x = fc.spool(Once().stream, name="recording")
    text = str((x - x.mean(axis=0)).plan(device="numpy"))
    first, second = text.split("pass 2 of 2")
    assert "recording (kept)" in first
    assert "recording" in second


def test_the_file_has_no_name_while_it_is_used(tmp_path: Path) -> None:
    seen: list[tuple[list[Path], int]] = []
    x = fc.spool(Once().stream, folder=tmp_path)
    fc.run(
        x - x.mean(axis=0),
        on_batch=lambda _: seen.append((list(tmp_path.iterdir()), len(open_files(tmp_path)))),
        progress=False,
        strategy=fc.Strategy(batch_bytes=1000),
    )
    assert [names for names, _ in seen if names] == []
    assert {count for _, count in seen} == {1}
    assert_nothing_left(tmp_path)


# -- what goes wrong ------------------------------------------------------------------------------


def centred(once: Once, folder: Path, **options: Any) -> fc.Element:
    x = fc.spool(once.stream, folder=folder, **options)
    return x - x.mean(axis=0)


def test_without_it_the_plan_is_refused_with_the_hint() -> None:
    x = Once().stream
    with pytest.raises(PlanError, match="can be read only once") as caught:
        (x - x.mean(axis=0)).resolve()
    assert "fc.spool(x)" in str(caught.value.hint)
    with pytest.raises(PlanError, match="can be read only once"):
        (fc.spool(x) - x.mean(axis=0)).resolve()


def test_beyond_its_limit_it_fails(tmp_path: Path) -> None:
    assert centred(Once(), tmp_path, limit=X.nbytes).resolve(progress=False).shape == X.shape
    with pytest.raises(DestinationError, match="outgrow its limit") as caught:
        centred(Once(), tmp_path, limit=X.nbytes - 1).resolve(progress=False)
    error = caught.value
    assert str(X.nbytes - 1) in str(error.expected)
    assert "limit=" in str(error.hint)
    assert error.element
    assert error.records
    assert_nothing_left(tmp_path)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with (
        mock.patch(
            "flowcompute.files.file_layer.os.pwrite", side_effect=OSError(errno.ENOSPC, "No space left on device")
        ),
        pytest.raises(DestinationError, match="temporary file") as caught,
    ):
        centred(Once(), tmp_path).resolve(progress=False)
    assert "ENOSPC" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert_nothing_left(tmp_path)


def test_short_writes_and_reads_go_on(tmp_path: Path) -> None:
    write, read = os.pwrite, os.preadv
    with (
        mock.patch("flowcompute.files.file_layer.os.pwrite", lambda handle, data, at: write(handle, data[:7], at)),
        mock.patch(
            "flowcompute.files.file_layer.os.preadv", lambda handle, rooms, at: read(handle, [rooms[0][:5]], at)
        ),
    ):
        result = centred(Once(X[:40]), tmp_path).resolve(progress=False, device="numpy")
    np.testing.assert_array_equal(result, centred(Once(X[:40]), tmp_path).resolve(progress=False, device="numpy"))


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with (
        mock.patch("flowcompute.files.file_layer.os.preadv", side_effect=OSError(errno.EIO, "Input/output error")),
        pytest.raises(SourceError, match="temporary file"),
    ):
        centred(Once(), tmp_path).resolve(progress=False)
    assert_nothing_left(tmp_path)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DestinationError, match="nowhere") as caught:
        centred(Once(), tmp_path / "nowhere").resolve(progress=False)
    assert caught.value.hint


def test_a_source_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the wire is cut"):
        centred(Once(fail_at=200), tmp_path).resolve(progress=False, strategy=fc.Strategy(batch_bytes=1000))
    assert_nothing_left(tmp_path)


def test_a_later_pass_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(array: np.ndarray) -> np.ndarray:
        raise ValueError("no")

    with pytest.raises(RunError, match="no"):
        fc.host(fail, centred(Once(), tmp_path)).resolve(progress=False)
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize("batches", [1, 5, 12])
def test_a_run_that_is_stopped_leaves_nothing(batches: int, tmp_path: Path) -> None:
    done = 0

    def stop(run: fc.Run) -> None:
        nonlocal done
        done += 1
        if done == batches:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fc.run(
            centred(Once(), tmp_path), on_batch=stop, progress=False, strategy=fc.Strategy(batch_bytes=1000, depth=1)
        )
    assert done == batches
    assert_nothing_left(tmp_path)


@pytest.mark.parametrize(
    ("x", "options", "said"),
    [
        (fc.constant(X), {}, "cannot spool what is no stream"),
        (fc.source(X), {"limit": 0}, "cannot take limit="),
        (fc.source(X), {"limit": "1 GB"}, "cannot take limit="),
    ],
)
def test_what_makes_no_sense_is_refused(x: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        fc.spool(x, **options)
