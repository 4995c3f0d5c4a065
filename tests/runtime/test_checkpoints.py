"""Runs that are frozen, resumed and thawed: the same bits as in one go, whatever the job is made of."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.checkpoint.store.folder import CheckpointFolder
from flowcompute.errors import CheckpointError, PlanError, RunError

DATA = np.random.default_rng(21).standard_normal((6000, 4), dtype=np.float32)
SMALL = fc.Strategy(batch_bytes=1 << 14)


@pytest.fixture
def x(tmp_path: Path) -> fc.Element:
    np.save(tmp_path / "x.npy", DATA)
    return fc.open(tmp_path / "x.npy")


class Ticks:
    """Iterable again and again; some of what it yields is wrong."""

    def __iter__(self) -> Any:
        for start in range(0, 6000, 100):
            yield "bad" if start % 700 == 0 else DATA[start : start + 100]


def halve(array: np.ndarray) -> np.ndarray:
    if (array[:, 0] > 2.5).any():
        raise ValueError("large")
    return array / 2


def jobs(x: fc.Element, folder: Path) -> dict[str, Callable[[], list[fc.Element]]]:
    """Every kind of state there is."""
    return {
        "folds": lambda: [x.var(axis=0), x.max(), x.argmin(axis=0), fc.quantile(x[:, 0], 0.3), x.T @ x],
        "sketches": lambda: [fc.top_k(x[:, 1], 5)[0], fc.histogram(x[:, 2], bins=9, range=(-3, 3))[0], fc.cov(x)],
        "scans": lambda: [fc.cumulative_sum(x, axis=0), fc.cumulative_max(x, axis=0), fc.ema(x, alpha=0.1)],
        "windows": lambda: [fc.window(x, 7, pad="edge").mean(axis=1), fc.diff(x, axis=0), fc.cut(x, 9, tail="pad")],
        "selections": lambda: [x[x[:, 0] > 0], x[10:5000:3], fc.concat([x[:100] * 1, x[200:300]])],
        "three passes": lambda: [((y := x - x.mean(axis=0)) / y.std(axis=0)) - (y * y).max(axis=0)],
        "spool": lambda: [(s := fc.spool(x * 3)) - s.mean(axis=0)],
        "random": lambda: [fc.random.normal(shape=(4,), length=6000, seed=5) + x, fc.range(6000)[:, None] * x],
        "files": lambda: [x * 2 >> fc.save(folder / "a.npy"), x.sum(axis=0) >> fc.save(folder / "b.npy")],
        "host": lambda: [fc.host(halve, x, shape=(4,), dtype="float32", on_error="skip", name="halve").sum(axis=0)],
        "iterate": lambda: [fc.iterate(Ticks(), shape=(4,), dtype="float32", on_error="skip", name="ticks") + 1],
    }


def value_bytes(values: tuple[Any, ...]) -> list[bytes]:
    return [Path(v).read_bytes() if isinstance(v, str) else np.asarray(v).tobytes() for v in values]


def frozen_after(roots: list[fc.Element], batches: int, path: Path, **options: Any) -> bool:
    """Freeze a run after so many batches; whether it was still running then."""
    seen = []

    def watch(run: fc.Run) -> None:
        seen.append(run)
        if len(seen) == batches:
            run.freeze(None if "checkpoint" in options else path)

    run = fc.start(*roots, progress=False, strategy=SMALL, on_batch=watch, **options)
    try:
        run.wait()
    except RunError as error:
        assert "was frozen into" in str(error)
        assert f"fc.thaw({str(path)!r})" in str(error)
        return True
    return False


@pytest.mark.parametrize("kind", jobs(fc.source(DATA), Path()))
def test_a_job_frozen_twice_gives_the_bits_of_one_in_one_go(kind: str, x: fc.Element, tmp_path: Path) -> None:
    make = jobs(x, tmp_path)[kind]
    whole = fc.run(*make(), device="numpy", progress=False, strategy=SMALL)
    expected = value_bytes(whole.values)
    path = tmp_path / "ckpt"
    assert frozen_after(make(), 2, path, device="numpy", checkpoint=path)
    assert frozen_after(make(), 1, path, device="numpy", checkpoint=path)
    again = fc.run(*make(), device="numpy", progress=False, memory="16MiB", checkpoint=path)
    assert value_bytes(again.values) == expected
    assert {name: skipped.count for name, skipped in again.skipped.items()} == {
        name: skipped.count for name, skipped in whole.skipped.items()
    }
    done = fc.run(*make(), device="numpy", progress=False, checkpoint=path)
    assert value_bytes(done.values) == expected
    assert done.metrics == {}


@pytest.mark.parametrize("kind", ["folds", "windows", "selections", "spool", "files", "three passes"])
def test_a_run_without_a_checkpoint_is_frozen_and_thawed(kind: str, x: fc.Element, tmp_path: Path) -> None:
    make = jobs(x, tmp_path)[kind]
    expected = value_bytes(fc.run(*make(), device="numpy", progress=False).values)
    path = tmp_path / "ckpt"
    assert frozen_after(make(), 3, path, device="numpy")
    frozen = fc.thaw(path)
    assert frozen.progress.items > 0
    assert not frozen.done
    values = frozen.run(device="numpy", progress=False).values
    assert value_bytes(values) == expected
    assert fc.thaw(path).done
    assert value_bytes(fc.thaw(path).run(progress=False, device="numpy").values) == expected


def test_kernels_go_on_as_they_began(x: fc.Element, tmp_path: Path) -> None:
    def make() -> list[fc.Element]:
        centred = fc.tanh(x) - x.mean(axis=0)
        return [centred, x.sum(), (x * x).sum(axis=0), fc.cumulative_sum(x, axis=0), fc.nn.softmax(x).max(axis=1)]

    expected = value_bytes(fc.run(*make(), device="cpu", progress=False).values)
    path = tmp_path / "ckpt"
    for batches in (2, 1, 3):
        assert frozen_after(make(), batches, path, device="cpu", checkpoint=path)
    values = fc.thaw(path).run(device="cpu", progress=False, memory="16MiB").values
    assert value_bytes(values) == expected


def test_items_in_pieces_stay_in_pieces_with_more_memory(tmp_path: Path) -> None:
    data = np.random.default_rng(1).standard_normal((6, 300_000), dtype=np.float32)
    np.save(tmp_path / "wide.npy", data)
    x = fc.open(tmp_path / "wide.npy")

    def make() -> list[fc.Element]:
        return [(x * 2).sum(axis=1), x + 1 >> fc.save(tmp_path / "y.npy")]

    expected = value_bytes(fc.run(*make(), device="numpy", progress=False, memory="3MiB").values)
    path = tmp_path / "ckpt"
    run = fc.start(*make(), device="numpy", progress=False, memory="3MiB", on_batch=lambda run: run.freeze(path))
    with pytest.raises(RunError, match="was frozen"):
        run.wait()
    assert value_bytes(fc.thaw(path).run(device="numpy", progress=False, memory="64MiB").values) == expected


def test_blocks_of_records_that_do_not_fit_are_in_pieces_too(tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.ones((600, 2000), "f4"))
    x = fc.open(tmp_path / "wide.npy")
    for memory in ("64KiB", "1MiB", "6MiB"):  # with a checkpoint batches are whole blocks: of 1024 records, 8 MB
        kept: Any = {"checkpoint": tmp_path / memory, "device": "numpy", "progress": False}
        assert fc.resolve(fc.vecdot(x, x).sum(), memory=memory, **kept) == 1_200_000


def test_dead_letters_are_written_once(x: fc.Element, tmp_path: Path) -> None:
    def make(name: str) -> fc.Element:
        dead_letters = tmp_path / f"{name}.jsonl"
        made = fc.host(
            halve, x, shape=(4,), dtype="float32", on_error="dead_letter", dead_letter=dead_letters, name="halve"
        )
        return made.sum(axis=0)

    fc.resolve(make("whole"), device="numpy", progress=False, strategy=SMALL)
    path = tmp_path / "ckpt"
    for _ in range(3):
        assert frozen_after([make("kept")], 2, path, device="numpy", checkpoint=path)
    fc.resolve(make("kept"), device="numpy", progress=False, checkpoint=path)
    lines = [json.loads(line) for line in (tmp_path / "whole.jsonl").read_text().splitlines()]
    assert len(lines) > 10
    assert [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()] == lines
    assert not list(tmp_path.glob(".*"))


def test_what_was_bound_by_name_goes_on(x: fc.Element, tmp_path: Path) -> None:
    y = fc.host(halve, x[:, :2], shape=(2,), dtype="float32", on_error="skip", name="halve")
    expected = fc.resolve(y, device="numpy", progress=False)
    path = tmp_path / "ckpt"
    assert frozen_after([y], 2, path, device="numpy")
    with pytest.raises(CheckpointError, match=r"halve(.|\n)*bind="):
        fc.thaw(path).resolve(device="numpy", progress=False)
    again = fc.thaw(path, bind={"halve": halve}).resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(again, expected)


def test_callbacks_are_told_what_may_come_again(x: fc.Element, tmp_path: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    sink = fc.callback(
        lambda array, which: seen.append((which.epoch, which.start, len(array))), labels=True, name="tell"
    )
    path = tmp_path / "ckpt"
    assert frozen_after([x >> sink], 3, path, device="numpy", checkpoint=path)
    fc.resolve(x >> sink, device="numpy", progress=False, strategy=SMALL, checkpoint=path)
    covered = np.zeros(len(DATA), int)
    for _, start, items in seen:
        covered[start : start + items] += 1
    assert (covered == 1).all()
    epochs = [epoch for epoch, _, _ in seen]
    assert epochs == sorted(epochs)
    assert len(set(epochs)) > 1


def test_copies_for_checkpoints_are_in_the_budget(x: fc.Element, tmp_path: Path) -> None:
    def items(**options: Any) -> dict[str, int]:
        job = [x.T @ x, fc.window(x, 3).sum(axis=1) >> fc.discard()]
        return dict(fc.run(*job, device="numpy", progress=False, strategy=SMALL, **options).plan.memory.items)

    plain, kept = items(), items(checkpoint=tmp_path / "ckpt")
    more = {name: size for name, size in kept.items() if name not in plain}
    assert [name.split(" ", 1)[1] for name in more] == ["(copy for a checkpoint)", "(waiting), copied x 1"]
    assert more["matmul (copy for a checkpoint)"] == plain["matmul (fold)"]


def test_a_stopped_run_says_what_is_kept(x: fc.Element, tmp_path: Path) -> None:
    run = fc.start(
        x * 2, device="numpy", progress=False, strategy=SMALL, checkpoint=tmp_path / "c", on_batch=fc.Run.stop
    )
    with pytest.raises(RunError, match=r"was stopped(.|\n)*start it again to go on"):
        run.wait()
    np.testing.assert_array_equal((x * 2).resolve(device="numpy", progress=False, checkpoint=tmp_path / "c"), DATA * 2)


# -- refusals -----------------------------------------------------------------------------------


def test_sources_that_cannot_be_read_again_are_refused_when_planned(tmp_path: Path) -> None:
    once = fc.iterate(iter([DATA]), shape=(4,), dtype="float32", name="once")
    with pytest.raises(
        PlanError, match=r"once: cannot resume a job whose source can be read only once(.|\n)*file first"
    ):
        once.sum().resolve(checkpoint=tmp_path / "ckpt", device="numpy")
    assert not (tmp_path / "ckpt").exists()


def test_two_results_in_one_file_are_refused(x: fc.Element, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(PlanError, match=r"second: cannot write to the same file as first"):
        fc.resolve(
            x * 1 >> fc.save(tmp_path / "y.npy", name="first"),
            x * 2 >> fc.save(tmp_path / "link" / "y.npy", name="second"),
        )


def test_a_job_that_replaces_what_it_reads_cannot_be_resumed(x: fc.Element, tmp_path: Path) -> None:
    job = x * 2 >> fc.save(tmp_path / "x.npy", name="out")
    with pytest.raises(PlanError, match=r"out: cannot replace a file that the job reads(.|\n)*another file"):
        job.resolve(checkpoint=tmp_path / "ckpt", device="numpy", progress=False)
    job.resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), DATA * 2)


def test_dropped_records_are_not_written_where_the_checkpoint_is(x: fc.Element, tmp_path: Path) -> None:
    job = fc.host(
        np.sqrt, x, shape=(4,), dtype="float32", name="root", on_error="dead_letter", dead_letter=tmp_path / "ckpt/d"
    )
    with pytest.raises(PlanError, match=r"root: cannot write where the checkpoint(.|\n)*another path"):
        job.resolve(checkpoint=tmp_path / "ckpt", device="numpy", progress=False)


@pytest.mark.parametrize("target", ["ckpt", "ckpt/y.npy"])
def test_a_result_is_not_written_where_the_checkpoint_is(target: str, x: fc.Element, tmp_path: Path) -> None:
    job, path = x * 2 >> fc.save(tmp_path / target, format="npy", name="out"), tmp_path / "ckpt"
    with pytest.raises(PlanError, match=r"out: cannot write where the checkpoint(.|\n)*another path"):
        job.resolve(checkpoint=path, device="numpy", progress=False)
    with pytest.raises(PlanError, match="cannot write where the checkpoint"):
        (x * 2 >> fc.save(tmp_path / "ckpt.npy")).run(
            device="numpy", progress=False, on_batch=lambda run: run.freeze(tmp_path / "ckpt.npy")
        )
    assert not list(tmp_path.glob("*ckpt*"))


@pytest.mark.parametrize("path", [5, True, "", b"x", "a\0b"])
def test_a_checkpoint_is_a_path(path: Any, x: fc.Element) -> None:
    with pytest.raises(PlanError, match=r"checkpoint: cannot use this value(.|\n)*the path of a folder"):
        x.sum().resolve(checkpoint=path, device="numpy")


def test_a_changed_job_is_refused_with_the_difference(x: fc.Element, tmp_path: Path) -> None:
    path = tmp_path / "ckpt"
    assert frozen_after([x * 2 + 1], 2, path, device="numpy", checkpoint=path)
    before = sorted((p.name, p.stat().st_size) for p in path.iterdir())
    with pytest.raises(CheckpointError, match=r"not this one any more(.|\n)*(3|add)"):
        (x * 3 + 1).resolve(device="numpy", checkpoint=path, progress=False)
    with pytest.raises(CheckpointError, match="precision"):
        (x * 2 + 1).resolve(device="numpy", checkpoint=path, progress=False, precision="fast")
    assert sorted((p.name, p.stat().st_size) for p in path.iterdir()) == before
    assert (x * 2 + 1).resolve(device="numpy", checkpoint=path, progress=False).shape == DATA.shape


def test_a_changed_source_is_refused_until_it_is_what_it_was(x: fc.Element, tmp_path: Path) -> None:
    path, file = tmp_path / "ckpt", tmp_path / "x.npy"
    assert frozen_after([x * 2], 2, path, device="numpy", checkpoint=path)
    status = file.stat()
    old = file.read_bytes()
    file.write_bytes(old[:-4] + b"\0\0\0\0")
    with pytest.raises(CheckpointError, match=r"x\.npy"):
        fc.thaw(path).resolve(device="numpy", progress=False)
    file.write_bytes(old)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    np.testing.assert_array_equal(fc.thaw(path).resolve(device="numpy", progress=False), DATA * 2)


def test_a_source_that_is_gone_is_told_with_what_to_do(x: fc.Element, tmp_path: Path) -> None:
    path = tmp_path / "ckpt"
    assert frozen_after([x * 2], 2, path, device="numpy", checkpoint=path)
    (tmp_path / "x.npy").unlink()
    with pytest.raises(CheckpointError, match=r"open: cannot open .*x\.npy(.|\n)*made at(.|\n)*do +check the path"):
        fc.thaw(path).resolve(device="numpy", progress=False)


def test_a_folder_in_the_way_of_a_result_is_told_before_the_job_goes_on(x: fc.Element, tmp_path: Path) -> None:
    path, target, done = tmp_path / "ckpt", tmp_path / "y.npy", []
    job = x * 2 >> fc.save(target)
    assert frozen_after([job], 2, path, device="numpy", checkpoint=path)
    target.mkdir()
    with pytest.raises(fc.DestinationError, match=r"y\.npy: it is a folder"):
        job.resolve(device="numpy", progress=False, checkpoint=path, on_batch=done.append)
    assert not done
    target.rmdir()
    assert job.resolve(device="numpy", progress=False, checkpoint=path) == str(target)


def test_a_checkpoint_has_one_owner(x: fc.Element, tmp_path: Path) -> None:
    path, go = tmp_path / "ckpt", threading.Event()
    with fc.start(x * 2, device="numpy", progress=False, checkpoint=path, on_batch=lambda _: go.wait(20)) as run:
        while not path.exists():
            pass
        with pytest.raises(CheckpointError, match=str(os.getpid())):
            (x * 2).resolve(device="numpy", progress=False, checkpoint=path)
        go.set()
        np.testing.assert_array_equal(run.wait().value, DATA * 2)


def test_a_finished_job_whose_file_is_gone_is_refused(x: fc.Element, tmp_path: Path) -> None:
    path, file = tmp_path / "ckpt", tmp_path / "y.npy"
    job = x * 2 >> fc.save(file)
    assert job.resolve(device="numpy", progress=False, checkpoint=path) == str(file)
    file.unlink()
    with pytest.raises(CheckpointError, match=r"y\.npy: it is not what the finished job has written(.|\n)*no file"):
        job.resolve(device="numpy", progress=False, checkpoint=path)


@pytest.mark.parametrize("every", [-1, "soon", True, float("nan"), None])
def test_a_cadence_that_makes_no_sense_is_refused(every: Any, x: fc.Element, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="checkpoint_every"):
        x.sum().resolve(checkpoint=tmp_path / "ckpt", checkpoint_every=every)


def test_bytes_say_how_often(x: fc.Element, tmp_path: Path) -> None:
    run = fc.run(
        x * 2, device="numpy", progress=False, strategy=SMALL, checkpoint=tmp_path / "a", checkpoint_every="32KiB"
    )
    seldom = fc.run(x * 2, device="numpy", progress=False, strategy=SMALL, checkpoint=tmp_path / "b")
    assert fc.thaw(tmp_path / "a").number > fc.thaw(tmp_path / "b").number
    np.testing.assert_array_equal(run.value, seldom.value)


def test_a_run_that_has_ended_cannot_be_frozen(x: fc.Element, tmp_path: Path) -> None:
    run = fc.run(x * 2, device="numpy", progress=False)
    with pytest.raises(RunError, match="cannot freeze the run: it has ended"):
        run.freeze(tmp_path / "ckpt")
    assert not (tmp_path / "ckpt").exists()


def test_a_freeze_needs_a_place(x: fc.Element, tmp_path: Path) -> None:
    go = threading.Event()
    with fc.start(x * 2, device="numpy", progress=False, on_batch=lambda _: go.wait(20)) as run:
        with pytest.raises(CheckpointError, match=r"no checkpoint of its own(.|\n)*run.freeze\(path\)"):
            run.freeze()
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / "file").touch()
        with pytest.raises(CheckpointError, match="there already"):
            run.freeze(tmp_path / "there")
        with pytest.raises(CheckpointError, match=r"cannot create .*nowhere(.|\n)*check the path"):
            run.freeze(tmp_path / "nowhere" / "ckpt")
        with pytest.raises(CheckpointError, match="cannot use a value of type int as a path"):
            run.freeze(5)  # type: ignore[arg-type]
        go.set()
        np.testing.assert_array_equal(run.wait().value, DATA * 2)


@pytest.mark.parametrize("path", [5, None, "", b"x", "a\0b", ["x"]])
def test_what_is_thawed_is_a_path(path: Any) -> None:
    with pytest.raises(CheckpointError, match=r"as a path(.|\n)*give the path of a folder"):
        fc.thaw(path)


@pytest.mark.parametrize("bind", [5, "x", ["x"]])
def test_what_is_bound_has_names(bind: Any, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"bind=(.|\n)*as bind="):
        fc.thaw(tmp_path, bind=bind)


def edited(body: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """A copy of a state in which one thing is another."""
    copy: dict[str, Any] = pickle.loads(pickle.dumps(body))
    places: list[tuple[Any, Any]] = []

    def look(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            if key not in ("done", "progress"):
                places.append((value, key))
                look(value[key])

    look(copy)
    holder, key = draw.choice(places)
    wrong = [None, -1, 10**12, "text", b"", [], {}, 1.5, True, np.zeros(3, "f4"), np.zeros((0, 2), "i8")]
    holder[key] = draw.choice(wrong)
    return copy


def test_a_state_that_no_job_can_have_is_an_error_of_the_checkpoint(x: fc.Element, tmp_path: Path) -> None:
    sums = fc.cumulative_sum(x, axis=0) >> fc.save(tmp_path / "y.npy")
    job = [fc.window(x, 3).sum(axis=1), x.var(axis=0), sums]
    path, draw = tmp_path / "ckpt", random.Random(3)
    assert frozen_after(job, 3, path, device="numpy", checkpoint=path)
    drafts = {draft: draft.read_bytes() for draft in tmp_path.glob(".y*")}
    refused = 0
    for number in range(40):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(path, copy)
        with CheckpointFolder.open(copy) as folder:
            folder.commit(edited(folder.newest().body, draw))
        for draft, content in drafts.items():
            draft.write_bytes(content)
        try:
            fc.run(*job, device="numpy", progress=False, checkpoint=copy)
        except CheckpointError:
            refused += 1
        except fc.FlowError:
            pass  # what only shows while records are computed and written
    assert refused > 25


def test_folds_of_row_results_need_no_whole_blocks(tmp_path: Path) -> None:
    """Of wide items a block would be larger than the budget."""
    wide = np.random.default_rng(3).standard_normal((200, 4096), dtype=np.float32)
    right = (fc.argmax(fc.source(wide), axis=1) == fc.source(np.arange(200) * 20)).astype("float32").mean()
    expected = right.resolve(device="numpy", progress=False)
    plan = right.plan(device="numpy", memory="1MiB")
    assert all(clock.granule == 1 for one in plan.passes for clock in one.clocks)
    path = tmp_path / "ckpt"
    options: dict[str, Any] = {"device": "numpy", "memory": "600KiB", "checkpoint": path, "progress": False}
    with pytest.raises(RunError, match="was frozen into"):
        right.run(strategy=SMALL, on_batch=lambda run: run.freeze(), **options)
    assert right.resolve(**options).tobytes() == expected.tobytes()
