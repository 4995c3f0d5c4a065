"""Jobs on a cluster whose workers are this process: killed at every step, gone on with, to the bytes of one machine."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.cli.command import main
from flowcompute.distributed.kept import COMMIT, JOB, ClusterFolder, ShardFolder
from flowcompute.errors import CheckpointError, DestinationError, PlanError, RunError
from flowcompute.sinks.file_sink import StoredWriter
from tests.distributed.here import QUIET, KilledError, X, check, dying, job, killed_within_a_shard, live, run, visible
from tests.support.slow import slow_but


@pytest.mark.parametrize("at", slow_but([5], [0, 1, 5, 9, 11]))
def test_a_client_that_died_is_followed_by_another(folder: Path, asked: list[bytes], at: int) -> None:
    with pytest.raises(KilledError):
        run(folder, dying(at))
    assert not visible(folder / "b")
    done = fc.thaw(folder / "kept")
    assert not done.done
    assert 0 <= done.progress.items <= (done.progress.total_items or 0)
    before = len(asked)
    made = run(folder)
    assert made.shards.resumed == at
    assert made.shards.count == len(asked) - before + at
    check(folder, made)
    assert fc.thaw(folder / "kept").done
    assert fc.thaw(folder / "kept").progress.items == done.progress.total_items


def test_a_finished_job_gives_its_results_again(folder: Path, asked: list[bytes]) -> None:
    check(folder, run(folder))
    count = len(asked)
    made = run(folder)
    assert len(asked) == count
    assert made.shards.items == 0
    check(folder, made)
    (folder / "b" / "z.npy").write_bytes(b"another")
    with pytest.raises(CheckpointError, match="it is not what the finished job has written"):
        run(folder)


@pytest.mark.parametrize("at", slow_but([7], [1, 2, 7, 20, 33]))
def test_a_shard_goes_on_between_its_batches(folder: Path, asked: list[bytes], at: int) -> None:
    with killed_within_a_shard(at):
        run(folder, memory="1MiB")
    before = fc.thaw(folder / "kept").progress
    made = run(folder, memory="1MiB")
    assert made.shards.items <= (before.total_items or 0) - before.items
    check(folder, made)


@pytest.mark.parametrize("at", slow_but([2], [0, 1, 2, 3]))
def test_a_crash_between_two_commits_is_rolled_forward(
    folder: Path, asked: list[bytes], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    commit, calls = StoredWriter.commit, []

    def refuse(self: StoredWriter) -> str:
        calls.append(self)
        if len(calls) - 1 == at:
            raise KilledError
        return commit(self)

    with monkeypatch.context() as patch:
        patch.setattr(StoredWriter, "commit", refuse)
        with pytest.raises(KilledError):
            run(folder)
    assert len(visible(folder / "b")) == at
    check(folder, run(folder))


def test_what_is_damaged_is_computed_again(folder: Path, asked: list[bytes]) -> None:
    with pytest.raises(KilledError):
        run(folder, dying(9))
    results = sorted((folder / "kept").rglob("result"))
    results[0].write_bytes(results[0].read_bytes()[:-1])
    results[1].write_bytes(b"")
    made = run(folder)
    assert made.shards.resumed == 7
    check(folder, made)


@pytest.mark.parametrize("at", slow_but([99], [9, 99]))
def test_a_job_keeps_its_number_of_shards(folder: Path, asked: list[bytes], at: int) -> None:
    """Also one that is done: its drafts are gone."""
    with contextlib.suppress(KilledError):
        run(folder, dying(at))
    said: dict[str, Any] = {"checkpoint": folder / "kept", **QUIET}
    made = fc.run(*job(folder, "b"), cluster=live, shards=2, **said)
    assert made.shards.resumed >= 9
    check(folder, made)


def test_the_command_line_tells_of_a_folder(
    folder: Path, asked: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder)
    for verb in ("show", "verify"):
        assert main(["checkpoint", verb, str(folder / "kept")]) == 0
        assert "a job on a cluster, done" in capsys.readouterr().out
    (folder / "kept" / JOB).write_bytes(b"damaged")
    assert main(["checkpoint", "verify", str(folder / "kept")]) != 0
    assert "damaged" in capsys.readouterr().err


def test_without_a_folder_nothing_is_kept(folder: Path, asked: list[bytes]) -> None:
    made = fc.run(*job(folder, "b"), cluster=live, shards=3, **QUIET)
    check(folder, made)
    with pytest.raises(KilledError):
        fc.run(
            fc.open(folder / "x.npy") * 3 >> fc.save(folder / "b" / "gone.npy"),
            cluster=dying(len(asked)),
            **QUIET,
            shards=2,
        )
    assert not [name for name in os.listdir(folder / "b") if "gone" in name]
    assert fc.run(fc.open(folder / "x.npy").sum(), cluster=live, shards=1, **QUIET).value


# -- owners ----------------------------------------------------------------------------------------------


def test_a_later_attempt_fences_an_earlier_one(tmp_path: Path) -> None:
    first, second = (ShardFolder(str(tmp_path / "s"), b"r") for _ in range(2))
    first.claim()
    first.save({"position": 1}, 1)
    second.claim()
    for call in (first.check, lambda: first.save({"position": 2}, 2), lambda: first.finish({}, 3)):
        with pytest.raises(RunError, match="taken it over"):
            call()
    assert second.state() == {"position": 1}
    assert (second.items(), second.result()) == (1, None)
    second.finish({"folds": np.arange(3)}, 9)
    assert ShardFolder(str(tmp_path / "s"), b"other").result() is None
    kept = [re.sub("-[0-9a-f]{8}$", "", name) for name in sorted(os.listdir(tmp_path / "s"))]
    assert kept == ["attempt-1", "attempt-2", "progress", "result"]


def test_of_two_attempts_that_begin_together_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (ShardFolder(str(tmp_path / "s"), b"r") for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(ShardFolder, "_newest", lambda _: (0, ""))
        first.claim()
        second.claim()
    refused = 0
    for one in (first, second):
        with contextlib.suppress(RunError):
            one.check()
            continue
        refused += 1
    assert refused == 1


def test_an_attempt_of_a_folder_that_was_begun_anew_writes_nothing(tmp_path: Path) -> None:
    stale = ShardFolder(str(tmp_path / "s"), b"r")
    stale.claim()
    shutil.rmtree(tmp_path / "s")
    with pytest.raises(CheckpointError, match="cannot look into"):
        stale.save({"position": 1}, 1)
    ShardFolder(str(tmp_path / "s"), b"r").claim()
    with pytest.raises(RunError, match="taken it over"):
        stale.save({"position": 1}, 1)
    assert len(os.listdir(tmp_path / "s")) == 1


def test_one_client_owns_a_folder(folder: Path, asked: list[bytes]) -> None:
    def meanwhile(_: int) -> None:
        with pytest.raises(CheckpointError, match="another client runs this job"):
            ClusterFolder(folder / "kept", [], b"", 0, 1)

    run(folder, meanwhile)


def test_a_folder_of_something_else_is_refused(folder: Path, asked: list[bytes]) -> None:
    with pytest.raises(KilledError):
        run(folder, dying(1))
    x = fc.open(folder / "x.npy")
    with pytest.raises(CheckpointError, match="another job"):
        fc.run(x.sum(), cluster=live, shards=2, checkpoint=folder / "kept", **QUIET)
    np.save(folder / "x.npy", X + 1)
    with pytest.raises(CheckpointError, match="sources have changed"):
        run(folder)
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.tex").write_text("years")
    with pytest.raises(CheckpointError, match="something else"):
        fc.run(x.sum(), cluster=live, shards=2, checkpoint=folder / "mine", **QUIET)
    (folder / "kept" / COMMIT).write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="damaged"):
        fc.thaw(folder / "kept")


def test_what_makes_no_sense_is_refused(folder: Path, asked: list[bytes]) -> None:
    x = fc.open(folder / "x.npy")
    for options in ({"tune": True}, {"on_batch": print}, {"trace": "t.json"}, {"isolate": True}):
        with pytest.raises(PlanError, match="on a cluster"):
            fc.run(x.sum(), cluster=live, **options)
    for shards in (0, True, 1.5, "many"):
        with pytest.raises(PlanError, match="so many shards"):
            fc.run(x.sum(), cluster=live, shards=shards)  # type: ignore[arg-type]
    for every in (-1, "64MiB", True):
        with pytest.raises(PlanError, match="checkpoint_every"):
            fc.run(x.sum(), cluster=live, shards=2, checkpoint_every=every)
    with pytest.raises(PlanError, match="without a cluster"):
        fc.run(x.sum(), shards=3)
    for bad, word in (
        (fc.host(lambda batch: batch * 2, x, name="mine").sum(axis=0), "mine"),
        (fc.ema(x[:, 0], 0.1).sum(), "ema"),
    ):
        with pytest.raises(PlanError, match=word):
            fc.run(bad, cluster=live, shards=2, checkpoint=folder / "refused", **QUIET)
    assert not (folder / "refused").exists()
    assert not os.listdir(folder / "b")
    assert not asked


def test_a_full_disk_is_told(folder: Path, asked: list[bytes]) -> None:
    x = fc.open(folder / "x.npy")
    with pytest.raises(DestinationError, match="cannot create"):
        fc.run(x * 2 >> fc.save(folder / "none" / "y.npy"), cluster=live, shards=2, checkpoint=folder / "k", **QUIET)
