"""What a run says of its checkpoints, and what a plan and a resumed job say because of them."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.store.folder import CheckpointFolder

SMALL = fc.Strategy(batch_bytes=1 << 12)


@pytest.fixture(name="options")
def fixture_options(tmp_path: Path) -> dict[str, Any]:
    np.save(tmp_path / "x.npy", np.ones((4096, 4), np.float32))
    kept = {"checkpoint": tmp_path / "kept", "checkpoint_every": 0}
    return {"device": "numpy", "memory": "1MiB", "strategy": SMALL, "progress": False, **kept}


def test_a_run_says_what_its_checkpoints_cost(tmp_path: Path, options: dict[str, Any]) -> None:
    x = fc.open(tmp_path / "x.npy", name="x")
    run = x.sum().run(**options)
    kept = run.checkpoints
    assert kept.count >= 2
    assert kept.number == fc.thaw(tmp_path / "kept").number
    assert 0 < kept.longest_pause_s <= kept.pause_s < run.seconds
    assert kept.write_s > 0
    assert kept.age_s is not None
    assert kept.age_s == run.checkpoints.age_s, "it stands still once the run has ended"
    assert str(run).splitlines()[1] == str(kept)
    assert str(kept).startswith(f"{kept.count} checkpoints: ")
    # A job that is done takes none.
    assert x.sum().run(**options).checkpoints.count == 0


def test_without_a_checkpoint_nothing_is_said(tmp_path: Path, options: dict[str, Any]) -> None:
    del options["checkpoint"], options["checkpoint_every"]
    run = fc.open(tmp_path / "x.npy").sum().run(**options)
    assert (run.checkpoints.count, run.checkpoints.number, run.checkpoints.age_s) == (0, None, None)
    assert "checkpoint" not in str(run).replace(Path(__file__).name, "")
    assert "once" not in str(run.plan)


def test_a_plan_says_what_each_destination_promises(tmp_path: Path, options: dict[str, Any]) -> None:
    x = fc.open(tmp_path / "x.npy", name="x")
    kept = fc.spool(x * 2, folder=tmp_path)
    roots = kept - kept.max() >> fc.save(tmp_path / "y.npy"), x >> fc.callback(lambda _: None), x.sum()
    text = str(fc.run(*roots, **options).plan)
    assert "write  save y.npy: float32(4096, 4) stream, exactly once  " in text
    assert "write  callback: float32(4096, 4) stream, at least once  " in text
    assert "write  to_array: float32(), exactly once  " in text
    assert text.count(" once  ") == 3, "a spool is no result"


def test_time_and_pace_of_a_resumed_job_are_those_of_all_its_runs(tmp_path: Path, options: dict[str, Any]) -> None:
    x = fc.open(tmp_path / "x.npy", name="x")
    run = x.sum().start(on_batch=lambda run: run.freeze(), **options)
    with pytest.raises(fc.RunError, match="frozen"):
        run.wait()
    assert "stopped" in str(run)
    before = fc.thaw(tmp_path / "kept").progress
    assert 0 < before.seconds <= run.progress.seconds
    again = x.sum().run(**options)
    assert again.progress.seconds == before.seconds + again.seconds
    assert "resolved" in str(again)
    # Asked once more it does nothing, and says so of the whole job.
    done = x.sum().run(**options).progress
    assert done.seconds > before.seconds
    assert done.items == 4096


def test_progress_counts_what_is_kept_and_nothing_beyond(tmp_path: Path, options: dict[str, Any]) -> None:
    """A killed job counts on from its last cut, not from what was computed while that was written."""
    x = fc.open(tmp_path / "x.npy", name="x")
    calls = itertools.count(1)
    kept: list[tuple[int, int]] = []

    def watch(_: fc.Run) -> None:
        # The state before the second batch is written while that is computed.
        if next(calls) == 2:
            while fc.thaw(tmp_path / "kept").number == 0:
                os.sched_yield()
            with CheckpointFolder.peek(tmp_path / "kept") as folder:
                body = folder.look().body
            kept.append((int(body["progress"]["items"]), sum(body["starts"].values())))

    assert x.sum().run(on_batch=watch, **options).value == 4096 * 4
    assert kept
    assert kept[0][0] == kept[0][1] > 0


def test_a_seed_that_was_drawn_is_in_the_checkpoint_and_not_in_the_program(options: dict[str, Any]) -> None:
    def job() -> fc.Element:
        return fc.random.normal(20_000).sum()

    first = job()
    with pytest.raises(fc.RunError, match="frozen"):
        first.run(on_batch=lambda run: run.freeze(), **options)
    with pytest.raises(fc.CheckpointError, match=r"normal.* seed is \d+, and was \d+") as caught:
        job().run(**options)
    assert "go on with the job as it was by fc.thaw, or begin anew" in str(caught.value)
    path = options.pop("checkpoint")
    assert fc.thaw(path).resolve(**options) == first.resolve(device="numpy")
    with pytest.raises(fc.PlanError, match='"auto", seconds, or a size like') as other:
        first.run(checkpoint=path, **{**options, "checkpoint_every": "soon"})
    assert other.value.got == "'soon'"


def test_an_interrupt_says_where_the_job_is(options: dict[str, Any]) -> None:
    # A shell's background, in which the tests may run, ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pressed = iter([True])

    def press(_: fc.Run) -> None:
        if next(pressed, False):
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            fc.range(10**12).sum().run(on_batch=press, **{**options, "checkpoint_every": "auto"})
    finally:
        signal.signal(signal.SIGINT, before)
    assert f"fc.thaw({str(options['checkpoint'])!r}).resolve() goes on" in caught.value.__notes__[0]
