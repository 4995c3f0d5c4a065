"""Jobs that a cluster began go on on one machine, and back: the same bytes, and nothing done twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowcompute as fc
from flowcompute.cli.command import main
from flowcompute.distributed import ClusterRun
from flowcompute.errors import CheckpointError, PlanError
from tests.distributed.here import QUIET, KilledError, check, dying, job, killed_within_a_shard, live, run, visible
from tests.support.slow import slow_but


def by_run(folder: Path) -> ClusterRun:
    return fc.run(*job(folder, "b"), checkpoint=folder / "kept", **QUIET)


def by_thaw(folder: Path) -> ClusterRun:
    made = fc.thaw(folder / "kept").run(**QUIET)
    assert isinstance(made, ClusterRun)
    return made


@pytest.mark.parametrize("go_on", [by_run, by_thaw])
@pytest.mark.parametrize("at", slow_but([9], [0, 1, 5, 9, 11]))
def test_one_machine_goes_on(folder: Path, asked: list[bytes], go_on: Callable[[Path], ClusterRun], at: int) -> None:
    with pytest.raises(KilledError):
        run(folder, dying(at))
    before = fc.thaw(folder / "kept").progress
    made = go_on(folder)
    assert len(asked) == at
    assert made.shards.resumed == at
    assert made.shards.items == (before.total_items or 0) - before.items
    check(folder, made)
    assert fc.thaw(folder / "kept").done
    # A job that is done has its values, there and here.
    for again in (run(folder), go_on(folder)):
        assert again.shards.items == 0
        check(folder, again)
    assert len(asked) == at


@pytest.mark.parametrize("at", slow_but([17], [3, 17, 30]))
def test_there_and_back(folder: Path, asked: list[bytes], at: int) -> None:
    """A cluster begins, one machine goes on and dies within a shard, a cluster ends: of other budgets each."""
    with pytest.raises(KilledError):
        run(folder, dying(3), memory="1MiB")
    first = fc.thaw(folder / "kept").progress.items
    with killed_within_a_shard(at):
        fc.resolve(*job(folder, "b"), checkpoint=folder / "kept", checkpoint_every=0, **{**QUIET, "memory": "2MiB"})
    assert not visible(folder / "b")
    between = fc.thaw(folder / "kept").progress
    assert between.items >= first
    made = run(folder, memory="1MiB")
    assert made.shards.items <= (between.total_items or 0) - between.items
    check(folder, made)


def test_the_command_line_goes_on(folder: Path, asked: list[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KilledError):
        run(folder, dying(9))
    assert "flowcompute resume on one machine" in str(fc.thaw(folder / "kept"))
    assert main(["resume", str(folder / "kept"), "--no-progress", "--memory", "24MiB"]) == 0
    assert "z.npy" in capsys.readouterr().out
    check(folder, run(folder))
    assert len(asked) == 9
    assert main(["resume", str(folder / "kept"), "--no-progress"]) == 0
    assert "had already finished" in capsys.readouterr().err
    assert main(["resume", str(folder / "kept"), "--isolate"]) != 0
    assert "cannot use isolate=" in capsys.readouterr().err


def test_progress_and_metrics_are_told(folder: Path, asked: list[bytes], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KilledError):
        run(folder, dying(9))
    made = fc.thaw(folder / "kept").run(progress=True, metrics_log=folder / "log", memory="24MiB")
    assert made.progress.items == made.progress.total_items
    assert "records" in (folder / "log").read_text() or (folder / "log").stat().st_size
    assert capsys.readouterr().err


def test_the_device_and_the_precision_are_kept(folder: Path, asked: list[bytes]) -> None:
    x = fc.open(folder / "x.npy")
    said: dict[str, Any] = {"checkpoint": folder / "kept", **QUIET}
    wanted = fc.run(x.sum(axis=0), cluster=live, device="numpy", mixed_devices=True, **said)
    for options in ({}, {"device": "auto"}):
        assert fc.thaw(folder / "kept").resolve(**options, **QUIET).tobytes() == wanted.value.tobytes()
    with pytest.raises(CheckpointError, match=r"in another precision(.|\n)*exact(.|\n)*fast"):
        fc.run(x.sum(axis=0), device="numpy", precision="fast", **said)
    with pytest.raises(CheckpointError, match="cannot choose precision again"):
        fc.thaw(folder / "kept").run(precision="fast")  # type: ignore[call-arg]
    with pytest.raises(CheckpointError, match=r"another job(.|\n)*device 'numpy [^']*'(.|\n)*say device="):
        run_of_kind(folder)


def run_of_kind(folder: Path) -> None:
    x = fc.open(folder / "x.npy")
    fc.run(x.sum(axis=0), cluster=live, device="numpy", checkpoint=folder / "other", **QUIET)
    fc.run(x.sum(axis=0), device="cpu", checkpoint=folder / "other", **QUIET)


def test_one_owner_at_a_time(folder: Path, asked: list[bytes]) -> None:
    def meanwhile(_: int) -> None:
        with pytest.raises(CheckpointError, match="another client runs this job"):
            by_thaw(folder)

    run(folder, meanwhile)


def test_what_a_folder_names_is_not_replaced_without_leave(folder: Path, asked: list[bytes]) -> None:
    """Who made the folder has named the results, and perhaps not this user."""
    with pytest.raises(KilledError):
        run(folder, dying(9))
    for draft in (folder / "b").glob(".k.npy*"):
        draft.unlink()
    (folder / "b" / "k.npy").write_bytes(b"mine")
    with pytest.raises(CheckpointError, match=r"this job has not begun here(.|\n)*k\.npy"):
        by_thaw(folder)
    assert (folder / "b" / "k.npy").read_bytes() == b"mine"
    assert len(visible(folder / "b")) == 1


def test_verbs_that_cannot_go_on_say_which_can(folder: Path, asked: list[bytes]) -> None:
    with pytest.raises(KilledError):
        run(folder, dying(1))
    x = fc.open(folder / "x.npy")
    with pytest.raises(CheckpointError, match=r"keeps a job of a cluster(.|\n)*fc\.run or fc\.resolve"):
        fc.start(x.sum(), checkpoint=folder / "kept", **QUIET)
    with pytest.raises(PlanError, match="cannot use isolate= on a cluster"):
        fc.run(x.sum(), checkpoint=folder / "kept", isolate=True, **QUIET)
    with pytest.raises(PlanError, match="without a cluster"):
        fc.run(x.sum(), checkpoint=folder / "kept", shards=3, **QUIET)


def test_what_one_machine_began_does_not_go_on_on_a_cluster(folder: Path, asked: list[bytes]) -> None:
    x = fc.open(folder / "x.npy")
    fc.run(x.sum(), checkpoint=folder / "one", **QUIET)
    with pytest.raises(CheckpointError, match=r"a job that one machine has begun(.|\n)*leave cluster= out"):
        fc.run(x.sum(), cluster=live, checkpoint=folder / "one", **QUIET)
