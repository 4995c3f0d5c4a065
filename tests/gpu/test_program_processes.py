"""Processes that build programs at once, or are killed while they do: the next one works."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.program_cache import TEXT, cache_of_its_own


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    return cache_of_its_own(tmp_path, monkeypatch)


WORKER = """
import sys
import time
import numpy as np
from flowcompute.gpu.device import programs
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.discovery import select_device
device = select_device("cpu", False)
print("ready", flush=True)
sys.stdin.readline()
if sys.argv[1] == "stored":
    programs._compiled = None
program = programs.build(device, sys.argv[2])
kernel = cl.Kernel(program, "scale")
x = np.arange(4, dtype=np.float32)
buffer = cl.Buffer(device.context, cl.mem_flags.USE_HOST_PTR, hostbuf=x)
kernel.set_args(buffer, np.float32(1))
cl.enqueue_nd_range_kernel(device.queue, kernel, (4,), (1,)).wait()
print(x.tolist(), flush=True)
"""


def worker(mode: str, text: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WORKER, mode, text], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


@pytest.mark.compiles
def test_two_processes_build_the_same_kernel_at_once_and_a_third_compiles_nothing(folder: Path) -> None:
    both = [worker("any", TEXT % 2) for _ in range(2)]
    for one in both:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    work = folder.parent / "work"
    assert len(list(work.iterdir())) == 2
    for one in both:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    for one in both:
        assert one.communicate() == ("[0.0, 3.0, 6.0, 9.0]\n", "")
        assert one.returncode == 0
    (file,) = folder.iterdir()
    assert file.suffix == ".bin"
    assert list(work.iterdir()) == [], "working folders go with their processes"
    assert worker("stored", TEXT % 2).communicate("\n") == ("ready\n[0.0, 3.0, 6.0, 9.0]\n", "")


KILLED = """
import itertools, os, signal, sys, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # what Python 3.12 says of forks beside threads
from flowcompute.gpu.device import programs
from flowcompute.gpu.device.discovery import select_device

def child(number):
    device = select_device("cpu", False)
    os.write(ready[1], b"x")
    for n in itertools.count():
        programs.build(device, sys.argv[1] % (1000 * number + n))
        programs.save_new_programs()

# Forked before the first use of a device, so pyopencl is imported once only.
for round in range(5):
    ready = os.pipe()
    children = []
    for number in range(4):
        pid = os.fork()
        if pid == 0:
            child(4 * round + number)
        children.append(pid)
    for number, pid in enumerate(children):
        os.read(ready[0], 1)
    for number, pid in enumerate(children):
        until = time.monotonic() + 0.02 * (round + 4 * number)
        while time.monotonic() < until:
            assert os.waitpid(pid, os.WNOHANG) == (0, 0)
        os.kill(pid, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
"""


@pytest.mark.compiles
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_after_twenty_kills_during_a_build_the_next_start_works_and_tidies_up(folder: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", KILLED, TEXT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    work = folder.parent / "work"
    assert list(work.iterdir()), "the killed left their working folders"
    assert worker("any", TEXT % 0).communicate("\n") == ("ready\n[0.0, 1.0, 2.0, 3.0]\n", "")
    assert [name for name in work.iterdir() if (name / "lock").exists()] == []
