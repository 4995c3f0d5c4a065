"""Ctrl-C, SIGTERM and SIGHUP while the main thread has runs with checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from tests.support.slow import slow_but

JOB = fc.source(np.ones((6000, 4), "f4"), name="x") * 2

PROGRAM = """
import os, signal, sys
import numpy as np, flowcompute as fc
signal.signal(signal.SIGINT, signal.default_int_handler)
x = fc.source(np.ones((6000, 4), "f4"))
seen = []
def hit(run):
    seen.append(1)
    for number in map(int, sys.argv[2:] if len(seen) == 2 else []):
        os.kill(os.getpid(), number)
kept = {} if sys.argv[1] == "none" else {"checkpoint": sys.argv[1]}
job = x * 2 >> fc.save(os.path.join(os.path.dirname(__file__), "y.npy"))
fc.resolve(job, device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=1 << 14), on_batch=hit, throttle=0.01, **kept)
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, -signal.SIGINT, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kept", [True, False])
def test_a_signal_freezes_or_leaves_nothing(tmp_path: Path, number: int, code: int, kept: bool) -> None:
    (tmp_path / "job.py").write_text(PROGRAM)
    where = str(tmp_path / "ckpt") if kept else "none"
    command = [sys.executable, str(tmp_path / "job.py"), where, str(int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == code, ended.stderr
    assert not (tmp_path / "y.npy").exists()
    drafts = list(tmp_path.glob(".y.npy.*"))
    assert len(drafts) == kept
    if kept:
        assert 0 < fc.thaw(where).progress.items < 6000
        fc.thaw(where).resolve(device="numpy", progress=False)
        np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.full((6000, 4), 2, "f4"))
        assert not list(tmp_path.glob(".y.npy.*"))


def test_signals_go_where_they_went_before_once_the_run_is_over(tmp_path: Path) -> None:
    got: list[int] = []
    earlier = signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    try:
        own = signal.getsignal(signal.SIGTERM)
        fc.run(JOB, device="numpy", progress=False, checkpoint=tmp_path / "waited")
        assert signal.getsignal(signal.SIGTERM) is own
        run = fc.start(JOB, device="numpy", progress=False, checkpoint=tmp_path / "alone")
        assert signal.getsignal(signal.SIGTERM) is not own
        while run.is_running:
            pass
        signal.raise_signal(signal.SIGTERM)
        assert got == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is own
        assert run.value.shape == (6000, 4)
    finally:
        signal.signal(signal.SIGTERM, earlier)


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    earlier, go = signal.signal(signal.SIGINT, signal.default_int_handler), threading.Event()
    try:

        def hit(run: fc.Run) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            while run._interrupts is None or run._interrupts.received is None:
                pass
            os.kill(os.getpid(), signal.SIGINT)
            go.wait(20)

        run = fc.start(JOB, device="numpy", progress=False, checkpoint=tmp_path / "ckpt", on_batch=hit)
        with pytest.raises(KeyboardInterrupt):
            run.wait(30)
        assert run.is_running
        go.set()
        run.join(20)
        assert not run.is_running
        assert JOB.resolve(device="numpy", progress=False, checkpoint=tmp_path / "ckpt").shape == (6000, 4)
    finally:
        go.set()
        signal.signal(signal.SIGINT, earlier)


def test_runs_that_overlap_leave_the_signals_as_they_were(tmp_path: Path) -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    own = signal.getsignal(signal.SIGTERM)
    try:
        runs = [fc.start(JOB, device="numpy", progress=False, checkpoint=tmp_path / name) for name in "abc"]
        for run in runs:  # those that came first are left first
            run.wait()
        assert signal.getsignal(signal.SIGTERM) is own
        signal.raise_signal(signal.SIGTERM)
        assert got == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("kept", slow_but([True], [True, False]))
def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path, kept: bool) -> None:
    (tmp_path / "job.py").write_text(f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{PROGRAM}")
    where = str(tmp_path / "ckpt") if kept else "none"
    command = [sys.executable, str(tmp_path / "job.py"), where, str(int(signal.SIGHUP))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.full((6000, 4), 2, "f4"))


def _records_kept(folder: Path) -> int:
    """Return the records of the state that a command, still at work, has kept: 0 where there is none yet."""
    with suppress(fc.CheckpointError):
        return fc.thaw(folder).progress.items
    return 0


@pytest.mark.slow
def test_the_command_freezes_when_its_terminal_is_closed(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(
        "import flowcompute as fc\njob = fc.host(lambda batch: batch, fc.range(10**12)).sum()\n"
    )
    near, far = os.openpty()
    command = ["-m", "flowcompute", "run", "endless:job", "--device", "numpy", "--memory", "1MiB"]
    command += ["--checkpoint", "kept", "--checkpoint-every", "0"]
    # The terminal becomes that of a new session, so that closing it hangs up.
    begin = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    begin += "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    process = subprocess.Popen(
        [sys.executable, "-c", begin, *command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(fc.__file__).parents[1])},
        stdin=far,
        stdout=far,
        stderr=far,
    )
    os.close(far)
    try:
        # The first state has no records: a signal before the first batch keeps it.
        while not _records_kept(tmp_path / "kept"):
            assert process.poll() is None
            os.read(near, 1 << 16)
        os.close(near)
        assert process.wait(60) == 129
    finally:
        process.kill()
        process.wait()
    assert 0 < fc.thaw(tmp_path / "kept").progress.items < 10**12
