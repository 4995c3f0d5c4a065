"""Kernels in a worker process: the same bits, and whatever they do there, this process goes on and nothing is left."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.split_backend import SplitBackend
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.worker.isolated_launcher import IsolatedMemory
from flowcompute.gpu.worker.messages import receive, send
from flowcompute.gpu.worker.worker_process import Worker
from flowcompute.reference import NumpyBackend
from tests.gpu.shapes import job_on_gpu, plan_for_gpu, twin
from tests.gpu.test_faults import DATA, MEMORY, same, some_of_everything
from tests.gpu.test_record_products import X, Y, product
from tests.support.starting import start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memory without a name"),
]

CRASH = "float crash(float v) { if (v == 300.0f) *(volatile int *)0 = 1; return v + 1; }"
HANG = "float hang(float v) { volatile float w = v; while (w >= 0.0f) w = v; return w; }"


def numbers() -> fc.Source:
    return fc.source(np.arange(1000, dtype="f4"))


def children() -> set[str]:
    found: set[str] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        # A thread that has nothing to do may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.update(file.read_text().split())
    return found


def open_memory() -> list[str]:
    links = [Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    return [link for path in links if path.is_symlink() and "memfd" in (link := os.readlink(path))]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = children()
    yield
    assert children() <= before
    assert not [one.name for one in threading.enumerate() if one.name.startswith("flowcompute-")]
    assert open_memory() == []
    assert "memfd:flowcompute" not in Path("/proc/self/maps").read_text()


def test_the_same_bits_in_the_bytes_that_were_planned() -> None:
    expected = fc.resolve(*some_of_everything(), memory=MEMORY, device="cpu")
    sizes: dict[object, int] = {}
    room = IsolatedMemory._room

    def measured(memory: IsolatedMemory, key: Any, size: int) -> Any:
        where = memory._reused.get(key, key)
        sizes[where] = max(sizes.get(where, 0), size)
        return room(memory, key, size)

    with mock.patch.object(IsolatedMemory, "_room", measured):
        run = fc.run(*some_of_everything(), memory=MEMORY, device="cpu", isolate=True)
    assert [same(*pair) for pair in zip(run.values, expected, strict=True)] == [True] * len(expected)
    planned = [size for what, size in run.plan.memory.items if "shared" in what]
    carried = sum(size for key, size in sizes.items() if isinstance(key, tuple) and key[0] in ("state", "words"))
    assert 0 < sum(sizes.values()) - carried <= sum(planned)


@pytest.mark.compiles
def test_parts_of_a_graph_have_workers_of_their_own() -> None:
    """Two devices and NumPy; what crosses goes through the host."""
    cpu = select_device("cpu", needs_float64=True)
    placements = [OpenCLBackend(cpu), OpenCLBackend(twin(cpu)), NumpyBackend()]
    backend = SplitBackend(placements, {"a": 0, "b": 1, "numpy": 2})
    rows = ((fc.source(DATA) * 2).on("a") + 1).on("b")
    inside = (rows @ np.ones((DATA.shape[1], 3), DATA.dtype)).on("numpy")
    roots = [(inside.sum(axis=1).on("numpy") * 2).on("b"), rows]
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=NumpyBackend()):
        expected = fc.resolve(*roots, memory=MEMORY)
    sizes: dict[object, int] = {}
    room = IsolatedMemory._room

    def measured(memory: IsolatedMemory, key: Any, size: int) -> Any:
        where = id(memory), memory._reused.get(key, key)
        sizes[where] = max(sizes.get(where, 0), size)
        return room(memory, key, size)

    with (
        mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=backend),
        mock.patch.object(IsolatedMemory, "_room", measured),
    ):
        run = fc.run(*roots, memory=MEMORY, progress=False, isolate=True)
    assert [same(*pair) for pair in zip(run.values, expected, strict=True)] == [True] * len(roots)
    assert 0 < sum(sizes.values()) <= sum(size for what, size in run.plan.memory.items if "shared" in what)
    assert len({memory for memory, _ in sizes}) == 2


def test_a_discrete_device_that_finds_no_room_there() -> None:
    x = fc.source(DATA)
    plan = plan_for_gpu(fc.cumulative_sum(x, axis=0) * 2, fc.window(x * 2, 3).sum(axis=1), x.max(axis=0), memory=MEMORY)
    expected = start(job_on_gpu(plan), progress=False).wait().values
    ask, launches = Worker.ask, []

    def full_once(worker: Worker, message: dict[str, Any], *rest: Any) -> dict[str, Any]:
        launches.extend([1] * (message["do"] == "launch"))
        if message["do"] == "launch" and len(launches) == 3:
            raise fc.DeviceFullError("no room there")
        return ask(worker, message, *rest)

    isolated = dataclasses.replace(plan, config=dataclasses.replace(plan.config, isolate=True))
    with mock.patch.object(Worker, "ask", full_once), pytest.warns(fc.DeviceWarning, match="no room on"):
        run = start(job_on_gpu(isolated), progress=False).wait()
    assert [same(*pair) for pair in zip(run.values, expected, strict=True)] == [True] * len(expected)
    assert len(run.notes) == 1


def test_a_crash_is_an_error_of_the_run(tmp_path: Path) -> None:
    job = fc.opencl(CRASH, numbers(), name="mine") >> fc.save(tmp_path / "y.npy")
    with pytest.raises(fc.DeviceError, match="killed by SIGSEGV") as caught:
        job.run(device="cpu", isolate=True, memory="1MiB")
    error = caught.value
    assert (error.element, error.records) == ("mine", (0, 1000))
    assert error.site is not None
    assert error.site.file == __file__
    assert list(tmp_path.iterdir()) == []


def test_a_launch_that_takes_too_long_is_ended() -> None:
    with pytest.raises(fc.DeviceError, match=r"longer than launch_timeout_s=0\.5") as caught:
        fc.opencl(HANG, numbers()).resolve(device="cpu", isolate=True, launch_timeout_s=0.5)
    assert (caught.value.element, caught.value.records) == ("hang", (0, 1000))
    assert "more seconds" in str(caught.value)


def test_a_run_in_an_endless_launch_can_be_stopped() -> None:
    ask, launched = Worker.ask, threading.Event()

    def noticed(worker: Worker, message: dict[str, Any], *rest: Any) -> dict[str, Any]:
        if message["do"] == "launch":
            launched.set()
        return ask(worker, message, *rest)

    with mock.patch.object(Worker, "ask", noticed):
        run = fc.start(fc.opencl(HANG, numbers()), device="cpu", isolate=True)
        launched.wait()
        run.stop()
        with pytest.raises(fc.RunError, match="stopped"):
            run.wait()


KILLED = f"""
import numpy as np, flowcompute as fc
from flowcompute.gpu.worker.worker_process import Worker
ask = Worker.ask
def told(worker, message, *rest):
    if message["do"] == "launch":
        print(worker._process.pid, flush=True)
    return ask(worker, message, *rest)
Worker.ask = told
fc.opencl({HANG!r}, fc.source(np.arange(9, dtype="f4"))).resolve(device="cpu", isolate=True)
"""


def test_a_worker_ends_with_its_process_even_in_a_launch() -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        worker = os.pidfd_open(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
    with contextlib.closing(os.fdopen(worker)):
        assert select.select([worker], [], [], 60)[0], "it lives on"


def test_a_worker_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(fc.DeviceError, match=r"cannot start the worker process of .*: .*/nowhere/python"):
        (numbers() * 2).resolve(device="cpu", isolate=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"isolate": True, "device": "numpy"}, "has no kernels"),
        ({"isolate": 1}, "True or False"),
        ({"launch_timeout_s": 1.0}, "isolate=True"),
        ({"isolate": True, "launch_timeout_s": 0}, "more than 0"),
    ],
)
def test_what_cannot_be_isolated_is_refused_when_planned(options: dict[str, Any], said: str) -> None:
    with pytest.raises(fc.PlanError, match=said):
        fc.plan(numbers() * 2, **options)


def test_functions_that_stay_in_this_process_are_named() -> None:
    shifted = fc.host(lambda a: a, numbers() * 2, shape=(), dtype="f4", name="shifted")
    reasons = fc.plan(shifted, device="cpu", isolate=True).reasons
    assert [reason.element for reason in reasons if reason.kind == "isolate"] == ["shifted"]


def test_messages_bring_texts_and_files() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull, "rb") as file:
        big = {"text": "x" * 1_000_000}
        sender = threading.Thread(target=send, args=(ours, big))
        sender.start()
        assert receive(theirs) == (big, None)
        sender.join()
        send(ours, {"do": "map"}, file.fileno())
        message, handle = receive(theirs)
        assert message == {"do": "map"}
        assert handle is not None
        assert os.path.samestat(os.fstat(handle), os.fstat(file.fileno()))
        os.close(handle)
        for junk in (b"\xff" * 5, b"\x01\0\0\0\0[", b"\x02\0\0\0\0[]", b"\x02\0\0\0\x01{}"):
            ours.sendall(junk)
            with pytest.raises(ValueError):
                receive(theirs)
            theirs.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                theirs.recv(100)
            theirs.setblocking(True)
        ours.sendall(b"\x02\0")
        ours.close()
        with pytest.raises(EOFError):
            receive(theirs)


def test_a_worker_process_multiplies_records_as_this_one() -> None:
    assert product(fc.source(X), fc.source(Y), isolate=True) == product(fc.source(X), fc.source(Y))
