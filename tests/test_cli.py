"""The command: what it prints, where, and with which exit code it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flowcompute as fc
from flowcompute.cli.command import main
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device import discovery as devices
from tests.gpu.shapes import gpu_shaped

JOBS = """
import numpy as np
import flowcompute as fc

x = fc.source(np.arange(12, dtype=np.float32).reshape(4, 3), name="numbers")
total = x.sum()
saved = fc.tanh(x) >> fc.save("y.npy")
both = [total, x.max(axis=0)]
seen = []
quiet = x >> fc.callback(seen.append)
wrong = 3
picky = fc.host(lambda batch: batch[batch < 9].reshape(len(batch), 3), x, name="picky", on_error="skip")
mixed = (total, "text")
nothing = ()

def make():
    return saved, total

class Room:
    inner = x * 2
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a module `cli_jobs`; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "cli_jobs.py").write_text(JOBS)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def say(folder: Path, capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str) -> Said:
        code = main(arguments)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


def refused(said: Said, *words: str, code: int = 2) -> None:
    assert said.code == code
    assert said.err.startswith("flowcompute: ")
    assert "Traceback" not in said.err
    for word in words:
        assert word in said.err


# -- run ------------------------------------------------------------------------------------------


def test_run_prints_the_value_of_each_root_and_progress_elsewhere(say) -> None:
    said = say("run", "cli_jobs:both")
    assert said.code == 0
    assert said.out.splitlines()[-1].endswith(": [ 9. 10. 11.]")
    assert "66.0" in said.out
    assert "4 records" in said.err


def test_run_without_progress_says_nothing_on_standard_error(say) -> None:
    assert say("run", "cli_jobs:total", "--no-progress").err == ""


def test_run_of_a_saved_root_prints_its_path(say, folder: Path) -> None:
    said = say("run", "cli_jobs:saved", "--no-progress")
    assert said.out.strip().endswith("y.npy")
    expected = np.tanh(np.arange(12, dtype=np.float32).reshape(4, 3))
    np.testing.assert_allclose(np.load(folder / "y.npy"), expected, rtol=1e-6)


def test_run_calls_a_function_for_its_elements(say) -> None:
    assert len(say("run", "cli_jobs:make", "--no-progress").out.splitlines()) == 2


def test_run_prints_nothing_for_a_root_without_value(say) -> None:
    assert say("run", "cli_jobs:quiet", "--no-progress") == Said(0, "", "")
    assert sum(map(len, sys.modules["cli_jobs"].seen)) == 4


def test_run_says_which_records_were_dropped(say) -> None:
    said = say("run", "cli_jobs:picky", "--no-progress")
    assert "[6. 7. 8.]" in said.out
    assert said.err.startswith("picky: 1 skipped, first record 3: ValueError: cannot reshape")


def test_run_follows_a_dotted_name(say) -> None:
    assert "22." in say("run", "cli_jobs:Room.inner", "--no-progress").out


def test_run_takes_budget_and_device(say) -> None:
    assert say("run", "cli_jobs:total", "--device", "numpy", "--memory", "1MiB", "--no-progress").out.endswith("66.0\n")
    refused(say("run", "cli_jobs:total", "--memory", "10B"), "memory", "budget")
    refused(say("run", "cli_jobs:total", "--memory", "much"), "memory", "'much'")
    refused(say("run", "cli_jobs:total", "--device", "toaster"), "'toaster'", "one of")


@pytest.mark.parametrize("command", ["run", "plan", "tune", "report"])
def test_commands_take_a_budget_of_the_device(say, command: str) -> None:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        said = say(command, "cli_jobs:total", "--device-memory", "10B")
        refused(said, "into the device's memory", "at least", "--device-memory")
    refused(say(command, "cli_jobs:total", "--device-memory", "much"), "device_memory", "'much'")


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("cli_jobs:absent", ["cannot find 'absent'", "total", "saved"]),
        ("cli_jobs:Room.absent", ["cannot find 'Room.absent'"]),
        ("cli_jobs:wrong", ["cannot use this as a job", "got       int", "module:name"]),
        ("cli_jobs:mixed", ["cannot use this as a job", "str among them"]),
        ("cli_jobs:nothing", ["cannot use this as a job", "at least one"]),
        ("no_such_module:job", ["cannot import 'no_such_module'", "PYTHONPATH"]),
        ("no_such_package.part:job", ["cannot import 'no_such_package'"]),
    ],
)
def test_a_job_that_is_none_is_refused(say, job: str, words: list[str]) -> None:
    refused(say("run", job), *words)


@pytest.mark.parametrize("text", ["cli_jobs", "cli_jobs.py:both", "./cli_jobs.py", ":both", "cli_jobs:", "a b:c", ""])
def test_a_name_that_is_no_job_is_wrong_usage(say, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        say("run", text)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert "usage: flowcompute run" in err
    if "cli_jobs" in text:
        assert f"perhaps cli_jobs:{'both' if 'both' in text else 'job'}" in err


def test_a_flow_error_in_the_users_module_is_told_with_its_line(say, folder: Path) -> None:
    (folder / "cli_shapes.py").write_text("import flowcompute as fc\n\njob = fc.open('none.npy')\n")
    refused(say("run", "cli_shapes:job"), "none.npy", "cli_shapes.py:3", code=1)


# -- plan -----------------------------------------------------------------------------------------


def test_plan_prints_the_plan_and_runs_nothing(say, folder: Path) -> None:
    said = say("plan", "cli_jobs:saved", "--memory", "1MiB")
    assert said.code == 0
    assert said.out.startswith("plan on ")
    assert "1.0 MiB on the host" in said.out
    assert "__kernel" not in said.out
    assert not (folder / "y.npy").exists()


def test_plan_prints_kernels_and_writes_pictures(say, folder: Path) -> None:
    said = say("plan", "cli_jobs:saved", "--kernels", "--dot", "plan.dot", "--svg", "plan.svg")
    assert "__kernel" in said.out
    assert (folder / "plan.dot").read_text().startswith("digraph")
    assert (folder / "plan.svg").read_text().startswith("<svg")


def test_plan_says_where_a_picture_cannot_be_written(say) -> None:
    refused(
        say("plan", "cli_jobs:saved", "--svg", "no/such/folder.svg"), "no/such/folder.svg", "check the path", code=1
    )


# -- inspect --------------------------------------------------------------------------------------


def test_inspect_says_what_a_file_holds(say, folder: Path) -> None:
    np.save(folder / "x.npy", np.zeros((5, 2, 3), np.float32))
    said = say("inspect", "x.npy")
    assert said.code == 0
    for text in (str(folder / "x.npy"), "float32(5, 2, 3) stream", "5 of 24 bytes", "npy", "little-endian", "input"):
        assert text in said.out


def test_inspect_says_how_a_file_is_stored(say, folder: Path) -> None:
    np.save(folder / "f.npy", np.asfortranarray(np.zeros((5, 4), ">f8")))
    said = say("inspect", "f.npy")
    assert "Fortran order" in said.out
    assert "big-endian" in said.out
    assert "read into buffers" in said.out


def test_inspect_of_a_raw_file_needs_its_dtype(say, folder: Path) -> None:
    (folder / "x.bin").write_bytes(bytes(104))
    refused(say("inspect", "x.bin"), "dtype")
    said = say("inspect", "x.bin", "--dtype", "float32", "--shape", "2,3", "--offset", "8")
    assert "float32(4, 2, 3) stream" in said.out
    assert "byte 8" in said.out
    (folder / "x.data").write_bytes(bytes(8))
    assert "uint8(8,) stream" in say("inspect", "x.data", "--format", "raw", "--dtype", "uint8").out


def test_inspect_of_several_files_lists_them(say, folder: Path) -> None:
    for day in (1, 2):
        np.save(folder / f"day-{day}.npy", np.zeros((day, 3)))
    said = say("inspect", "day-*.npy")
    assert "float64(3, 3) stream in 2 files" in said.out
    assert said.out.index("day-1.npy") < said.out.index("day-2.npy")


def test_inspect_of_tables_and_arrays_in_chunks(say, folder: Path) -> None:
    x = fc.source(np.arange(40, dtype="f4").reshape(20, 2))
    fc.run(fc.table({"a": x[:, 0], "b": x[:, 1] > 3}) >> fc.save(folder / "t.parquet", chunk=7), progress=False)
    fc.run(x >> fc.save(folder / "x.zarr", chunk=7), progress=False)
    code, out, err = say("inspect", "t.parquet", "--head", "2")
    assert (code, err) == (0, "")
    assert "20 records of 2 columns in 3 files" in out
    assert "  float a\n  bool  b\n" in out
    assert "a: [0. 2.]" in out
    texts = pa.table({"text": ["u", "v"], "n": [1, 2]})
    pq.write_table(texts, folder / "texts.parquet")
    said = say("inspect", "texts.parquet", "--head", "1")
    assert said.code == 0
    assert "text: not read, string\nn: [1]" in said.out
    code, out, err = say("inspect", "x.zarr", "--head", "1")
    assert (code, err) == (0, "")
    assert "float32(20, 2) stream" in out
    assert "[[0. 1.]]" in out


def test_inspect_of_a_job_draws_its_graph(say, folder: Path) -> None:
    said = say("inspect", "cli_jobs:saved")
    for word in ("save", "tanh", "numbers", "unresolved", "hash "):
        assert word in said.out
    assert not (folder / "y.npy").exists()


def test_inspect_prefers_a_file_that_bears_the_name_of_a_job(say, folder: Path) -> None:
    (folder / "cli_jobs:saved").write_bytes(b"abcd")
    assert "uint8(4,)" in say("inspect", "cli_jobs:saved", "--format", "raw", "--dtype", "uint8").out


def test_inspect_refuses_what_is_neither(say, folder: Path) -> None:
    refused(say("inspect", "none.npy"), "none.npy", "check the path", code=1)
    refused(say("inspect", "what"), "format")
    (folder / "text.npy").write_text("no array")
    refused(say("inspect", "text.npy"), "text.npy", "NUMPY", code=1)


def test_a_wrong_shape_is_wrong_usage(say) -> None:
    with pytest.raises(SystemExit) as ended:
        say("inspect", "x.bin", "--shape", "two")
    assert ended.value.code == 2


# -- devices --------------------------------------------------------------------------------------


def test_devices_lists_each_and_numpy_and_says_which_is_taken(say) -> None:
    said = say("devices")
    assert said.code == 0
    for row in devices.describe_devices():
        assert row.spec in said.out
        assert row.name in said.out
    assert "numpy" in said.out
    assert "auto: " in said.out


def test_devices_without_any_says_what_to_install(say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "all_devices", tuple)
    said = say("devices")
    refused(said, "any OpenCL device", "install")
    assert "numpy" in said.out


# -- the program ----------------------------------------------------------------------------------


def test_version_and_missing_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"flowcompute {fc.__version__}\n"
    assert main([]) == 2


def program(folder: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    root = Path(fc.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "flowcompute", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(root)},
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def test_an_interrupt_ends_it_with_130_and_leaves_no_file(folder: Path) -> None:
    (folder / "cli_endless.py").write_text(
        "import itertools, os, signal\n"
        "import numpy as np, flowcompute as fc\n"
        # A shell's background, in which the tests may run, ignores it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def press(batch):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return batch\n"
        "x = fc.iterate(itertools.repeat(np.ones((64, 4), np.float32)), shape=(4,), dtype='float32')\n"
        "job = fc.host(press, x) >> fc.save('y.npy')\n"
    )
    with program(folder, "run", "cli_endless:job", "--no-progress", "--device", "numpy") as process:
        _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert err == "flowcompute: interrupted; no unfinished file was left\n"
    assert not [path for path in os.listdir(folder) if "y.npy" in path]


def test_a_reader_that_goes_away_is_no_error_to_talk_about(folder: Path) -> None:
    (folder / "cli_large.py").write_text(
        "import numpy as np, flowcompute as fc\n"
        "x = fc.source(np.zeros(4, np.float32))\n"
        "job = [fc.tanh(x + k) for k in range(4000)]\n"
    )
    with program(folder, "inspect", "cli_large:job", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.wait(timeout=600)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_modules_of_the_current_folder_are_found_even_while_the_job_runs(folder: Path) -> None:
    (folder / "cli_helper.py").write_text("VALUE = 7\n")
    (folder / "cli_two.py").write_text(
        "import numpy as np, flowcompute as fc\n"
        "def late(batch):\n"
        "    from cli_helper import VALUE\n"
        "    return batch * VALUE\n"
        "job = fc.host(late, fc.source(np.ones(2, np.float32)))\n"
    )
    with program(folder, "run", "cli_two:job", "--no-progress", "--device", "numpy", stdout=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    assert "[7. 7.]" in out


def test_run_writes_its_numbers_where_it_is_told(say, folder: Path) -> None:
    said = say(
        "run", "cli_jobs:total", "--no-progress", "--trace", "t.json", "--metrics-log", "m.jsonl", "--metrics-port", "0"
    )
    assert said.code == 0
    assert '"traceEvents"' in (folder / "t.json").read_text()
    assert '"done": true' in (folder / "m.jsonl").read_text().splitlines()[-1]
    refused(
        say("run", "cli_jobs:total", "--metrics-port", "everywhere"),
        "metrics_port: cannot use this value",
        "'everywhere'",
    )
    refused(say("run", "cli_jobs:total", "--no-metrics", "--trace", "t.json"), "cannot use trace= without metrics")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("run", "jobs:one", "--memroy", "1MiB"), "--memory"),
        (("strategies", "show", "--trails"), "--trials"),
    ],
)
def test_the_nearest_option_is_offered(
    say, words: tuple[str, ...], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        say(*words)
    assert f"did you mean {meant}?" in capsys.readouterr().err
