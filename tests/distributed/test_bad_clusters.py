"""Faults of a cluster in the middle of a job, and jobs at the edges: each tells, and loses nothing."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.store import pack, unpack
from flowcompute.distributed import ShardMessages, ShardStart, answer
from flowcompute.distributed.kept import ShardFolder, shard_folder
from flowcompute.distributed.shard_answer import stop
from flowcompute.errors import CheckpointError, RunError
from flowcompute.sinks.file_sink import StoredWriter
from tests.distributed.here import QUIET, Here, X, check, live, run, visible
from tests.distributed.test_shards import numbers, planned


def test_a_source_replaced_between_shards_ends_the_job(folder: Path, asked: list[bytes]) -> None:
    def client(number: int) -> None:
        if number == 6:
            np.save(folder / "x.npy", X[::-1])

    with pytest.raises(RunError, match=r"a shard failed on its worker(.|\n)*x\.npy"):
        run(folder, client)
    assert not visible(folder / "b")
    np.save(folder / "x.npy", X)
    check(folder, run(folder))


def test_a_full_disk_of_one_worker_is_told_and_the_job_goes_on(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        own = StoredWriter.write

        def write(self: StoredWriter, array: np.ndarray, start: int) -> None:
            if len(asked) == 11:
                raise OSError(28, "No space left on device")
            own(self, array, start)

        patch.setattr(StoredWriter, "write", write)
        with pytest.raises((RunError, OSError), match=r"No space left|disk"):
            run(folder)
    assert not visible(folder / "b")
    made = run(folder)
    assert made.shards.resumed >= 10
    check(folder, made)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_folder_of_states_that_one_worker_cannot_write_is_told(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """The worker could write when it was asked, and cannot in the middle of the job."""
    own = shard_folder.atomic_write_bytes

    def write(files: Any, path: str, data: bytes) -> None:
        if len(asked) == 7:
            raise OSError(code, os.strerror(code), path)
        own(files, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(shard_folder, "atomic_write_bytes", write)
        with pytest.raises(RunError, match=rf"a shard failed on its worker: cannot write to .*: {os.strerror(code)}"):
            run(folder)
    assert not visible(folder / "b")
    made = run(folder)
    assert made.shards.resumed >= 6
    check(folder, made)


@pytest.mark.parametrize("skew_s", [-4e8, 4e8])
def test_clocks_of_other_machines_do_not_count(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch, skew_s: float
) -> None:
    """The worker's clock is a dozen years off, and so are the times of all that it keeps."""
    now = time.time

    def client(_: int) -> None:
        monkeypatch.setattr(time, "time", lambda: now() + skew_s)
        for path in (folder / "kept").rglob("*"):
            os.utime(path, (now() + skew_s, now() + skew_s))

    made = run(folder, client, memory="1MiB")
    monkeypatch.setattr(time, "time", now)
    check(folder, made)
    assert fc.thaw(folder / "kept").done
    assert run(folder, memory="1MiB").shards.resumed == made.shards.count


def test_a_run_that_is_stopped_ends_its_shards(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bytes] = []
    monkeypatch.setattr(Here, "tell_all", lambda _, function, request: told.append(function(request)))

    def client(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, client)
    assert told == [b""]
    check(folder, run(folder))


def test_a_shard_of_a_stopped_run_ends_at_its_next_batch() -> None:
    job = planned(fc.source(numbers(5001)).sum(axis=0))
    stopped, other = ShardMessages(job, run="stopped"), ShardMessages(job, run="other")
    stop(pack({"run": "stopped"}))
    start = ShardStart((0, 1024))
    assert ShardMessages.states([answer(other.request(0, start))])
    with pytest.raises(RunError, match="its client has stopped the run"):
        ShardMessages.states([answer(stopped.request(0, start))])


def test_shards_whose_workers_die_again_and_again_are_named(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def answers(_: Here, requests: list[bytes], topic: object, again: object) -> None:
        for _ in range(9):
            again(2)  # type: ignore[operator]
            tries.append(2)

    monkeypatch.setattr(Here, "answers", answers)
    with pytest.raises(
        RunError, match=r"the shard of records \d+ to \d+: its workers died, or were replaced(.|\n)*progress in 3"
    ):
        run(folder)
    assert len(tries) == 2
    # One that gets on is tried as often as it takes.
    tries.clear()
    monkeypatch.setattr(ShardFolder, "items", lambda _: len(tries))
    with pytest.raises(TypeError):  # the stand-in for dask gives nothing
        run(folder)
    assert len(tries) == 9


def test_a_worker_whose_job_was_removed_writes_nothing(folder: Path, asked: list[bytes]) -> None:
    """It begins late: the folder is gone, or another job has begun there, which is cut into the same records."""
    x, kept = fc.open(folder / "x.npy"), folder / "kept"

    def summed(factor: int, client: Callable[[int], None]) -> np.ndarray:
        options = {"shards": 4, "checkpoint": kept, **QUIET}
        return np.asarray(fc.run((x * factor).sum(axis=0), cluster=client, **options).values[0])

    one = summed(1, live)
    late = list(asked)
    shutil.rmtree(kept)
    assert all("no longer kept" in unpack(answer(request))["error"] for request in late)
    assert not kept.exists()

    def another(number: int) -> None:
        assert "no longer kept" in unpack(answer(late[number % len(late)]))["error"]

    np.testing.assert_array_equal(summed(2, another), 2 * one)


def test_a_second_client_is_refused(folder: Path, asked: list[bytes]) -> None:
    def client(number: int) -> None:
        if number == 2:
            with pytest.raises(CheckpointError, match="another client runs this job"):
                run(folder)

    check(folder, run(folder, client))


@pytest.mark.parametrize("records", [0, 1, 2, 1025])
@pytest.mark.parametrize("shards", [1, 64])
def test_short_streams_and_many_shards(folder: Path, asked: list[bytes], records: int, shards: int) -> None:
    np.save(folder / "short.npy", X[:records])
    x = fc.open(folder / "short.npy")

    def job(out: str) -> tuple[fc.Element, ...]:
        return (
            x * 2 >> fc.save(folder / out / "d.npy"),
            fc.cumulative_sum(x, axis=0) >> fc.save(folder / out / "c.npy"),
            x[x[:, 0] > 0] >> fc.save(folder / out / "k.npy"),
            x.sum(axis=0),
        )

    made = fc.run(*job("b"), cluster=live, shards=shards, checkpoint=folder / "kept", **QUIET)
    wanted = fc.run(*job("a"), **QUIET)
    assert np.asarray(made.values[3]).tobytes() == np.asarray(wanted.values[3]).tobytes()
    for name in ("d.npy", "c.npy", "k.npy"):
        assert (folder / "a" / name).read_bytes() == (folder / "b" / name).read_bytes()


def test_answers_of_somebody_else_are_refused(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for said in (b"", pack({}), pack({"records": [0, 1]}), pack({"records": "xy"})):
        monkeypatch.setattr(Here, "answers", lambda *_, said=said: ((0, unpack(one)) for one in [said]))
        with pytest.raises(CheckpointError):
            run(folder)
