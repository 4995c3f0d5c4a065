"""What the command says when something fails, and with which exit code it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from flowcompute.cli.show_error import as_options
from tests.cli.conftest import Say, program


def test_a_job_that_fails_ends_with_1_and_shows_where_the_users_function_failed(say: Say) -> None:
    said = say("run", "jobs_here:failing", "--no-progress", "--device", "numpy")
    assert said.code == 1
    for text in ("jobs_here.py", "in fails", "in helper", "1 / 0", "ZeroDivisionError: division by zero"):
        assert text in said.err
    assert said.err.splitlines()[-2].startswith("  made at ")
    # Neither our files nor those of the event loop.
    assert "host_call.py" not in said.err
    assert "_run.py" not in said.err


def test_traceback_shows_all_of_it(say: Say) -> None:
    said = say("run", "jobs_here:failing", "--no-progress", "--device", "numpy", "--traceback")
    assert said.code == 1
    for text in ("in helper", "host_call.py", "flowcompute: fails: the function failed: ZeroDivisionError"):
        assert text in said.err
    refused = say("inspect", "none.npy", "--traceback")
    assert refused.code == 1
    assert "Traceback (most recent call last)" in refused.err


def test_an_error_of_ours_has_no_traceback(say: Say) -> None:
    said = say("inspect", "none.npy")
    assert said.code == 1
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        ("import flowcompute\n\n1 / 0\n", 3, "ZeroDivisionError: division by zero"),
        ("import no_such_module\n", 1, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = (\n", 1, "SyntaxError: '(' was never closed"),
        ("def job():\n    raise ValueError('not today')\n", 2, "ValueError: not today"),
        ("import flowcompute as fc\nfc.run(1, oops=2)\n", 2, None),
    ],
)
def test_an_error_of_the_jobs_module_names_its_line(
    say: Say, folder: Path, text: str, line: int, error: str | None
) -> None:
    (folder / "broken_here.py").write_text(text)
    said = say("run", "broken_here:job")
    assert said.code == 1
    if error is None:
        assert f"made at   {folder}/broken_here.py:{line}" in said.err
        return
    assert said.err.splitlines()[-2:] == [
        f"flowcompute: broken_here:job: cannot load the job: {error}"
        + (" (broken_here.py, line 1)" * (error[:2] == "Sy")),
        f"  made at   {folder}/broken_here.py:{line}",
    ]
    assert f'broken_here.py", line {line}' in said.err
    assert "importlib" not in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "jobs_here:absent"),
        ("run", "no_such_module_here:job"),
        ("run", "jobs_here:total", "--memory", "much"),
        ("run", "jobs_here:total", "--device", "toaster"),
        ("run", "jobs_here:total", "--checkpoint-every", "60"),
        ("run", "jobs_here:total", "--strategy", "depth=many"),
        ("run", "jobs_here:total", "--throttle", "often"),
        ("inspect", "what.xyz"),
        ("inspect", "jobs_here:total", "--head"),
        ("nothing",),
    ],
)
def test_wrong_usage_ends_with_2(say: Say, arguments: tuple[str, ...]) -> None:
    said = say(*arguments)
    assert said.code == 2
    assert "Traceback" not in said.err
    assert said.out == ""


def test_hints_name_options_of_the_command_and_no_line_of_ours(say: Say, folder: Path) -> None:
    (folder / "x.xyz").write_bytes(bytes(8))
    said = say("inspect", "x.xyz")
    assert "--format npy or --format raw" in said.err
    assert "made at" not in said.err
    assert "--checkpoint PATH" not in said.err
    alone = say("run", "jobs_here:total", "--checkpoint-every", "60")
    assert "--checkpoint" in alone.err
    # A line of Python stays one.
    np.save(folder / "a.npy", np.zeros(3))
    assert "fc.open(" in say("inspect", ".").err


def test_progress_of_nothing_is_not_told_before_an_error(say: Say) -> None:
    assert "items" not in say("run", "jobs_here:failing", "--device", "numpy").err


@pytest.mark.slow
def test_hanging_up_is_a_clean_end(folder: Path) -> None:
    (folder / "endless_here.py").write_text(
        "import itertools, os, signal\n"
        "import numpy as np, flowcompute as fc\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "def hang_up(batch):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    return batch\n"
        "x = fc.iterate(itertools.repeat(np.ones((64, 4), np.float32)), shape=(4,), dtype='float32')\n"
        "job = fc.host(hang_up, x) >> fc.save('y.npy')\n"
    )
    done = program(folder, "flowcompute run endless_here:job --no-progress --device numpy")
    assert (done.returncode, done.stderr) == (129, "flowcompute: hung up; no unfinished file was left\n")
    assert not list(folder.glob("*y.npy*"))


def test_calls_of_python_are_not_taken_for_options() -> None:
    options = {"--strategy", "--memory", "--shape", "--format", "--checkpoint-every"}
    for text, told in (
        ('raise memory=, or memory="2GiB"', "raise --memory, or --memory 2GiB"),
        ('read it: strategy=fc.Strategy(input="read", depth=2)', "read it: --strategy input=read, depth=2"),
        ("fc.iterate(batches, shape=(4,), memory=3)", "fc.iterate(batches, shape=(4,), memory=3)"),
        ('bind={"x": 1}, other=3, shape=(4,)', 'bind={"x": 1}, other=3, shape=(4,)'),
        ("set checkpoint_every=60", "set --checkpoint-every 60"),
    ):
        assert as_options(text, options) == told


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is Linux's")
def test_too_few_addresses_to_map_a_file_say_what_to_do_and_that_does_it(folder: Path) -> None:
    array = np.lib.format.open_memmap(folder / "x.npy", "w+", np.uint8, (8 << 30,))
    array[-1] = 7
    array.flush()
    os.utime(folder / "x.npy", (0, 0))
    (folder / "large_here.py").write_text("import flowcompute as fc\njob = fc.open('x.npy')[:1000].max()\n")
    command = "ulimit -v 6000000; flowcompute run large_here:job --no-progress --device numpy --memory 8MiB"
    refused = program(folder, command)
    assert refused.returncode == 1
    assert "--strategy input=read" in refused.stderr
    assert "ulimit -v" in refused.stderr
    done = program(folder, f"{command} --strategy input=read")
    assert (done.returncode, done.stderr) == (0, "")
