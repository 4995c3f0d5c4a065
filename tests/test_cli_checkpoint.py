"""Frozen jobs on the command line: what is printed, what is noticed, and with which exit code it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.cli.command import main

DATA = (np.arange(40_000) % 251).astype(np.float32).reshape(20_000, 2)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", DATA)


def frozen(*roots: fc.Element, after: int = 3, **options: Any) -> str:
    """The checkpoint of a job that was frozen after so many batches."""
    batches = iter(range(after - 1))
    asked = lambda run: next(batches, None) is None and run.freeze()  # noqa: E731
    small = fc.Strategy(batch_bytes=1 << 14)
    run = fc.start(*roots, checkpoint="kept", device="numpy", memory="1MiB", strategy=small, on_batch=asked, **options)
    with pytest.raises(fc.RunError, match="was frozen into"):
        run.wait()
    return "kept"


def job() -> tuple[fc.Element, ...]:
    x = fc.open("x.npy", name="x")
    return (x * 2 + 1) >> fc.save("y.npy"), x.sum(axis=0), fc.cumulative_sum(x[:, 0])[-1]


def resume(path: str) -> int:
    return main(["resume", path, "--no-progress", "--device", "numpy", "--memory", "1MiB"])


def test_a_frozen_job_is_resumed_and_prints_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    path = frozen(*job())
    assert not os.path.exists("y.npy")
    assert resume(path) == 0
    said = capsys.readouterr()
    assert said.err == ""
    for text in (": y.npy", f"sum: {DATA.sum(axis=0)}", f": {DATA[:, 0].sum()}"):
        assert text in said.out
    np.testing.assert_array_equal(np.load("y.npy"), DATA * 2 + 1)
    # A job that is done says the same once more.
    assert resume(path) == 0
    assert capsys.readouterr().out == said.out


def test_the_share_is_that_of_the_records_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    x = fc.open("x.npy", name="x")
    path = frozen((x - x.mean(axis=0)) >> fc.save("y.npy"), after=2)
    assert main(["checkpoint", "show", path]) == 0
    assert "pass 1 of 2, 4,096 of 20,000 records (20.5 %), " in capsys.readouterr().out


def test_what_has_to_be_bound_is_told_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    x = fc.open("x.npy")
    seen: list[tuple[int, int]] = []
    path = frozen(fc.host(np.sqrt, x, name="root"), x >> fc.callback(lambda array, label: None, labels=True))
    assert resume(path) == 1
    err = capsys.readouterr().err
    for text in ("root (function), callback (function)", "fc.thaw(path, bind={'root': ..., 'callback': ...})"):
        assert text in err
    assert main(["checkpoint", "show", path]) == 0
    assert "fc.thaw('kept', bind={'root': ..., 'callback': ...}).resolve()" in capsys.readouterr().out
    bind = {"root": np.sqrt, "callback": lambda array, label: seen.append((label.start, len(array)))}
    roots, nothing = fc.thaw(path, bind=bind).resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(roots, np.sqrt(DATA))
    assert nothing is None
    assert seen[0][0] > 0
    assert sum(seen[-1]) == len(DATA)
    # Nothing of it is called any more: its results are there.
    assert resume(path) == 0
    assert "root: " in capsys.readouterr().out
    assert main(["checkpoint", "show", path]) == 0
    assert capsys.readouterr().out.endswith("gives its results by flowcompute resume kept\n")
    again, _ = fc.thaw(path, bind={"root": np.sqrt}).resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(again, roots)
    with pytest.raises(fc.CheckpointError, match="belongs to a job that is not this one"):
        fc.thaw(path, bind={"root": np.sort}).resolve(device="numpy", progress=False)
    with pytest.raises(fc.CheckpointError, match="cannot thaw without what no checkpoint keeps"):
        fc.thaw(path).elements()


def test_show_tells_the_job_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    path = frozen(*job())
    assert main(["checkpoint", "show", path]) == 0
    out = capsys.readouterr().out
    folder = os.getcwd()
    for text in (
        "of 20,000 records",
        "precision exact",
        f"    {folder}/x.npy: {os.path.getsize('x.npy'):,} bytes, sample ",
        "unchanged",
        "├─ multiply: float32(20000, 2) stream",
        "x (npy): float32(20000, 2) stream",
        f"save: float32(20000, 2) stream to {folder}/y.npy, exactly once",
        "in memory, kept in the checkpoint, exactly once",
        "goes on with flowcompute resume kept",
    ):
        assert text in out, out
    DATA[::2].tofile("x.npy")
    assert main(["checkpoint", "show", path]) == 0
    assert f"{folder}/x.npy has changed: it had" in capsys.readouterr().out


def test_a_flow_is_told_too_and_is_not_resumed_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    x = fc.feed(shape=(2,), dtype="float32", name="x")
    with x.sum(axis=0).flow(mode="cumulative", device="numpy") as flow:
        flow.send(DATA[:5])
        flow.freeze("kept")
    assert main(["checkpoint", "show", "kept"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("kept: 5 records")
    assert "x: float32(?, 2) stream, a feed" in out
    assert out.endswith("goes on with fc.thaw('kept').flow()\n")
    assert main(["checkpoint", "verify", "kept"]) == 0
    assert resume("kept") == 1
    assert "a flow was frozen" in capsys.readouterr().err


def test_list_says_what_each_generation_is_worth(capsys: pytest.CaptureFixture[str]) -> None:
    path = frozen(*job(), checkpoint_every=0)
    Path(path, "gen-00000099.msgpack").write_bytes(b"never finished")
    newest = max(int(one[4:12]) for one in os.listdir(path) if one.endswith(".msgpack") and one != "job.msgpack"
                 and "99" not in one)  # fmt: skip
    Path(path, f"gen-{newest - 1:08d}.msgpack").write_bytes(b"")
    assert main(["checkpoint", "list", path]) == 0
    *_, before, last, begun = capsys.readouterr().out.splitlines()
    assert before.split()[0] == str(newest - 1)
    assert "an unknown time" in before
    assert "checksum" in before
    assert last.split()[0] == str(newest)
    assert last.endswith(" bytes  ok, the newest")
    assert begun.endswith("never committed")


def test_verify_tells_what_is_wrong_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    path = frozen(*job())
    assert main(["checkpoint", "verify", path]) == 0
    assert "kept is sound: generation " in capsys.readouterr().out
    draft = next(Path().glob(".y.npy.*.partial"))
    whole = draft.read_bytes()
    draft.write_bytes(whole[: len(whole) // 8])
    assert main(["checkpoint", "verify", path]) == 1
    assert f"the unfinished result {draft.absolute()} has " in capsys.readouterr().out
    draft.write_bytes(whole)
    # Going on would not follow it.
    draft.rename("elsewhere")
    draft.symlink_to("elsewhere")
    assert main(["checkpoint", "verify", path]) == 1
    assert f"the unfinished result {draft.absolute()} is a link, or no file" in capsys.readouterr().out
    draft.unlink()
    Path("elsewhere").rename(draft)
    np.save("x.npy", DATA + 1)
    assert main(["checkpoint", "verify", path]) == 1
    assert "x.npy has changed: its content is another" in capsys.readouterr().out
    Path(path, "job.msgpack").write_bytes(b"")
    assert main(["checkpoint", "verify", path]) == 1
    assert "job.msgpack" in capsys.readouterr().out


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_fallback_is_told_without_python_around_it(capsys: pytest.CaptureFixture[str]) -> None:
    path = frozen(*job(), checkpoint_every=0)
    newest = fc.thaw(path).number
    Path(path, f"gen-{newest:08d}.msgpack").write_bytes(b"")
    assert resume(path) == 0
    said = capsys.readouterr().err.splitlines()
    assert said
    assert all(
        line.startswith(f"flowcompute: {os.getcwd()}/kept: cannot read gen-{newest:08d}.msgpack: ") for line in said
    )
    assert all(line.endswith(f"Using generation {newest - 1} instead") for line in said)
    np.testing.assert_array_equal(np.load("y.npy"), DATA * 2 + 1)


def test_verify_looks_at_what_a_finished_job_has_written(capsys: pytest.CaptureFixture[str]) -> None:
    path = frozen(*job())
    assert resume(path) == 0
    assert main(["checkpoint", "verify", path]) == 0
    os.utime("y.npy", ns=(0, 0))
    assert main(["checkpoint", "verify", path]) == 1
    assert f"the result {os.getcwd()}/y.npy is not what the job has written" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", [["resume"], ["checkpoint", "list"], ["checkpoint", "verify"], ["checkpoint", "show"]]
)
@pytest.mark.parametrize(
    ("path", "words"), [("none", "No such file"), ("empty", "not a checkpoint"), ("x.npy", "got       no folder")]
)
def test_what_is_no_checkpoint_is_refused(
    command: list[str], path: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkdir("empty")
    assert main([*command, path]) == 1
    err = capsys.readouterr().err
    assert err.startswith("flowcompute: ")
    assert words in err


@pytest.mark.parametrize("text", ["soon", "-1", "nan"])
def test_a_cadence_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", frozen(*job()), f"--checkpoint-every={text}"]) == 2
    assert "checkpoint_every" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "code", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_a_signal_freezes_the_job_and_says_where(name: str, code: int, word: str) -> None:
    Path("endless.py").write_text(
        "import os, signal\n"
        "import flowcompute as fc\n"
        # A shell's background, in which the tests may run, ignores it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "once = iter([1])\n"
        "def press(batch):\n"
        # A second one would not wait.
        "    if batch[0] and next(once, 0):\n"
        f"        os.kill(os.getpid(), signal.{name})\n"
        "    return batch\n"
        "job = fc.host(press, fc.range(10**12)).sum()\n"
    )
    command = [sys.executable, "-W", "error", "-m", "flowcompute", "run", "endless:job", "--no-progress"]
    command += ["--device", "numpy", "--memory", "1MiB", "--checkpoint", "kept here", "--checkpoint-every", "1GiB"]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(Path(fc.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code, done.stderr
    goes_on = "flowcompute resume 'kept here' goes on"
    assert done.stderr == f"flowcompute: {word}; what was done is kept in kept here, and {goes_on}\n"
    assert 0 < fc.thaw("kept here").progress.items < 10**12
