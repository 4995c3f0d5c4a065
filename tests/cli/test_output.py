"""What the command prints, where, and when nobody can take it."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from tests.cli.conftest import Say, program


def test_the_command_alone_prints_help(say: Say) -> None:
    for arguments in ((), ("checkpoint",), ("strategies",)):
        said = say(*arguments)
        assert said.code == 2
        assert said.err.startswith("usage: flowcompute")
        assert "--traceback" in said.err
        assert said.out == ""
    assert "exit codes" in say().err


def test_a_closed_output_is_told_without_a_traceback(folder: Path) -> None:
    done = program(folder, "flowcompute plan jobs_here:total --device numpy >&-")
    assert done.returncode == 1
    assert done.stderr == "flowcompute: cannot write standard output: Bad file descriptor\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
@pytest.mark.parametrize("command", ["plan jobs_here:total --device numpy", "inspect x.npy"])
def test_a_full_output_is_told_without_a_traceback(folder: Path, command: str) -> None:
    np.save(folder / "x.npy", np.zeros(3))
    done = program(folder, f"flowcompute {command} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "flowcompute: cannot write standard output: No space left on device\n"


def test_a_closed_error_output_keeps_results_and_files_whole(folder: Path) -> None:
    done = program(folder, "flowcompute run jobs_here:saved --device numpy 2>&-")
    assert (done.returncode, done.stdout) == (0, "save: y.npy\n")
    np.testing.assert_array_equal(np.load(folder / "y.npy"), np.arange(12).reshape(4, 3) * 2)


def test_pictures_are_written_before_anything_is_printed(folder: Path) -> None:
    done = program(
        folder, "set -o pipefail; flowcompute plan jobs_here:total --device numpy --svg p.svg --dot p.dot >&-"
    )
    assert done.returncode == 1
    assert (folder / "p.svg").read_text().startswith("<svg")
    assert (folder / "p.dot").read_text().startswith("digraph")


def test_lines_are_not_wrapped_where_there_is_no_terminal(folder: Path) -> None:
    done = program(folder, "unset COLUMNS; flowcompute devices")
    assert done.returncode == 0, done.stderr
    name = "numpy"
    row = next(line for line in done.stdout.splitlines() if line.startswith(name))
    assert "the reference: slow, needs no driver" in row


@pytest.mark.parametrize("command", ["flowcompute", '"{python}" bin/flowcompute'])
def test_what_started_the_command_is_no_line_of_the_users(folder: Path, command: str) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "flowcompute").write_text("import sys\nfrom flowcompute.cli import main\nsys.exit(main())\n")
    done = program(folder, f"{command.format(python=sys.executable)} plan jobs_here:total --device numpy")
    assert done.returncode == 0, done.stderr
    (written,) = (line for line in done.stdout.splitlines() if line.startswith("  write"))
    assert written.rstrip() == "  write  to_array: float32()"
    assert "  jobs_here.py:6" in done.stdout


@pytest.mark.parametrize("command", ["run kept_here:job --checkpoint kept", "resume kept", "checkpoint show kept"])
def test_a_warning_is_told_once(say: Say, folder: Path, command: str) -> None:
    (folder / "kept_here.py").write_text("import flowcompute as fc\njob = fc.range(400_000).sum()\n")
    job = fc.range(400_000).sum()
    batches = iter(range(3))
    run = fc.start(
        job,
        checkpoint="kept",
        checkpoint_every=0,
        device="numpy",
        strategy=fc.Strategy(batch_bytes=1 << 12),
        on_batch=lambda run: next(batches, None) is None and run.freeze(),
    )
    with pytest.raises(fc.RunError, match="was frozen"):
        run.wait()
    newest = max(Path("kept").glob("gen-*.msgpack"))
    newest.write_bytes(newest.read_bytes()[:-9])
    options = () if command.startswith("checkpoint") else ("--no-progress", "--device", "numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        said = say(*command.split(), *options)
    assert said.code == 0, said.err
    assert said.err.count("cannot read gen-") == 1, said.err


def test_a_finished_job_says_so(say: Say) -> None:
    options = ("run", "jobs_here:total", "--no-progress", "--device", "numpy", "--checkpoint", "kept")
    first = say(*options)
    assert (first.code, first.err) == (0, "")
    again = say(*options)
    assert (again.code, again.out) == (0, first.out)
    assert again.err == "flowcompute: the job in kept had already finished; these are its results\n"
    assert say("resume", "kept", "--no-progress", "--device", "numpy").err == again.err


def test_inspect_of_a_checkpoint_shows_the_job(say: Say) -> None:
    say("run", "jobs_here:total", "--no-progress", "--device", "numpy", "--checkpoint", "kept")
    for path in ("kept", "kept/"):
        assert say("inspect", path).out == say("checkpoint", "show", path).out != ""


def test_inspect_shows_the_first_records(say: Say, folder: Path) -> None:
    values = np.random.default_rng(1).standard_normal((40, 3)).astype("f4")
    np.save(folder / "x.npy", values)
    for count, given in ((2, ("--head", "2")), (5, ("--head",)), (40, ("--head", "99"))):
        said = say("inspect", "x.npy", *given)
        assert said.code == 0
        assert said.out.endswith(f"{values[:count]}\n")
        assert "float32(40, 3) stream" in said.out
    values.astype(">f8").tofile(folder / "x.bin")
    raw = say("inspect", "x.bin", "--dtype", ">f8", "--shape", "3", "--head", "3")
    assert raw.out.endswith(f"{values[:3].astype('f8')}\n")
    (folder / "none.bin").write_bytes(b"")
    assert say("inspect", "none.bin", "--dtype", "u1", "--head").out.endswith("[]\n")


def test_run_takes_what_the_verb_takes(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, object]] = []
    start = fc.start
    monkeypatch.setattr(fc, "start", lambda *elements, **options: given.append(options) or start(*elements, **options))
    said = say(
        *("run", "jobs_here:total", "--no-progress", "--device", "numpy", "--throttle", "0.001", "--precision", "fast"),
        *("--strategy", "depth=2,batch_bytes=4096", "--strategy", "reader_threads=1", "--input", "read"),
        *("--stall-timeout", "60"),
    )
    assert (said.code, said.err) == (0, "")
    (options,) = given
    assert options["throttle"] == 0.001
    assert options["precision"] == "fast"
    assert options["stall_timeout_s"] == 60
    assert options["isolate"] is False
    assert options["strategy"] == fc.Strategy(depth=2, batch_bytes=4096, reader_threads=1, input="read")


def test_a_run_can_be_isolated(say: Say) -> None:
    said = say("run", "jobs_here:total", "--isolate", "--launch-timeout", "60", "--no-progress")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith("66.0\n")
    refused = say("run", "jobs_here:total", "--isolate", "--device", "numpy")
    assert refused.code == 2
    assert "isolate" in refused.err


def test_a_run_has_a_name(say: Say, folder: Path) -> None:
    said = say("run", "jobs_here:total", "--device", "numpy", "--name", "nightly", "--metrics-log", "log.jsonl")
    assert said.code == 0
    assert said.err.startswith("nightly: 4 records")
    assert '"name": "nightly"' in (folder / "log.jsonl").read_text()
