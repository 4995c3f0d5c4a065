"""Worker processes that build programs beside a run: it waits for theirs, builds what they fail at, and leaves none."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from flowcompute.engine import CHECK
from flowcompute.errors import DeviceError, KernelError
from flowcompute.gpu.device import shared_by_driver
from flowcompute.gpu.worker import ProgramBuilders, program_builders
from flowcompute.gpu.worker.worker_process import Worker
from flowcompute.schedule import RegionStep
from tests.checkpoint.operands import rows
from tests.gpu.shapes import gpu_shaped, plan_for_gpu
from tests.gpu.test_isolation import children

TEXTS = ["a" * length for length in range(1, 9)]


class Process:
    """Stand-in for a worker process: it says what it builds, and waits or fails where a test wants it."""

    said: ClassVar[list[tuple[str, str]]] = []
    closed: ClassVar[list[Process]] = []
    refused: ClassVar[dict[str, Exception]] = {}
    endless: ClassVar[set[str]] = set()
    begun: ClassVar[threading.Event] = threading.Event()
    waits: ClassVar[threading.Event] = threading.Event()
    clock_s: ClassVar[float] = 0.0

    def __init__(self, name: str) -> None:
        self.name = name

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["do"] == "open":
            return {}
        text = message["text"]
        self.said.append(("begins", text))
        self.begun.set()
        if text in self.refused:
            raise self.refused[text]
        while text in self.endless:
            self.waits.set()
            CHECK.get()()
        self.said.append(("ends", text))
        return {"kernel": 0}

    def close(self) -> None:
        self.closed.append(self)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Process]]:
    """Two of these, for texts in the place of kernels, beside a driver that keeps programs."""
    for held in (Process.said, Process.closed, Process.refused, Process.endless):
        held.clear()
    Process.begun.clear()
    Process.waits.clear()
    Process.clock_s = 0.0
    replaced: dict[str, Any] = {"Worker": Process, "WORTH_S": 0.0, "core_limit": lambda: 3}
    replaced |= {"program_of": lambda text: (text, "f"), "argument_types": lambda _: []}
    replaced |= {"time": SimpleNamespace(monotonic=lambda: Process.clock_s)}
    replaced |= {"is_built": lambda *_: False, "shared_by_driver": lambda _: True}
    for name, value in replaced.items():
        monkeypatch.setattr(program_builders, name, value)
    yield Process
    assert not [one.name for one in threading.enumerate() if one.name.startswith("flowcompute-builder")]
    assert not program_builders._TURN.locked()


def run(texts: list[Any] = TEXTS, *, wait: bool = True) -> list[str]:
    """Build all texts as a run does, and return those that were built here, which is all."""
    built = []
    with ProgramBuilders.of(gpu_shaped().device, texts, isolated=False) as builders:
        for number, text in enumerate(texts):
            with builders.building(text):
                Process.said.append(("here", text))
                built.append(text)
            if wait and number == 0:
                assert Process.begun.wait(60)
    return built


def test_a_run_takes_what_others_have_built_and_builds_the_rest(processes: type[Process]) -> None:
    assert run() == TEXTS
    elsewhere = [text for what, text in processes.said if what == "ends"]
    assert elsewhere
    assert TEXTS[0] not in elsewhere
    for text in elsewhere:
        assert processes.said.index(("ends", text)) < processes.said.index(("here", text))
    assert len(elsewhere) == len(set(elsewhere))
    assert elsewhere[0] in TEXTS[-2:], "the longest first"
    assert len(processes.closed) == 2


def test_what_others_fail_at_is_built_here(processes: type[Process], caplog: pytest.LogCaptureFixture) -> None:
    processes.refused[TEXTS[-1]] = DeviceError("its process ended: killed by SIGSEGV")
    processes.refused[TEXTS[-2]] = KernelError("cannot compile a kernel")
    assert run() == TEXTS
    (warned,) = caplog.records
    assert "they are built without it" in warned.getMessage()
    assert "killed by SIGSEGV" in warned.getMessage()
    assert ("begins", TEXTS[-1]) in processes.said
    assert ("begins", TEXTS[-2]) in processes.said


def test_a_run_that_ends_before_leaves_nothing(processes: type[Process]) -> None:
    processes.endless.update(TEXTS)
    token = CHECK.set(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        CHECK.reset(token)
    assert {what for what, _ in processes.said} == {"here", "begins"}
    assert len(processes.closed) == 2


def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shared_by_driver", lambda _: False),
        ("core_limit", lambda: 1),
        ("default_memory_bytes", lambda: (1 << 30) - 1),
        ("WORTH_S", 1e9),
        ("sys.executable", "/usr/bin/blender"),
    ],
)
def test_none_is_started_where_none_is_of_use(
    processes: type[Process], monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    owner, field = (sys, "executable") if name == "sys.executable" else (program_builders, name)
    monkeypatch.setattr(owner, field, value)
    assert run(wait=False) == TEXTS
    assert [what for what, _ in processes.said] == ["here"] * len(TEXTS)


@pytest.mark.parametrize(
    ("owner", "error"), [(threading.Thread, RuntimeError), (Process, OSError), (Process, RuntimeError)]
)
def test_what_does_not_start_is_done_here(
    processes: type[Process],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    owner: type,
    error: type[Exception],
) -> None:
    def refuse(*_: object) -> None:
        raise error("there is no room")

    monkeypatch.setattr(owner, "start" if owner is threading.Thread else "__init__", refuse)
    assert run(wait=False) == TEXTS
    assert {what for what, _ in processes.said} == {"here"}
    assert "there is no room" in caplog.text


def test_a_process_without_a_thread_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    pairs: list[tuple[socket.socket, socket.socket]] = []
    pair = socket.socketpair
    monkeypatch.setattr(socket, "socketpair", lambda: pairs.append(pair()) or pairs[-1])
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(DeviceError, match="cannot start the worker process of it: can't start new thread"):
        Worker("it")
    assert [one.fileno() for one in pairs[0]] == [-1, -1]


@pytest.mark.parametrize("is_kept", [True, False])
def test_they_end_where_the_driver_does_not_find_what_they_build(
    processes: type[Process], caplog: pytest.LogCaptureFixture, is_kept: bool
) -> None:
    with ProgramBuilders.of(gpu_shaped().device, TEXTS, isolated=False) as builders:
        with builders.building(TEXTS[0]):
            processes.clock_s += 1.0
        for thread in builders._threads:
            thread.join(60)
        elsewhere = [text for what, text in processes.said if what == "ends"]
        assert sorted(elsewhere) == TEXTS[1:]
        for text in elsewhere:
            with builders.building(text):
                processes.clock_s += 0.4 if is_kept else 0.6
        assert builders._is_over != is_kept
    warned = [one.getMessage() for one in caplog.records]
    assert len(warned) == (not is_kept)
    assert all("the driver does not keep theirs, and took 0.60 s for one" in one for one in warned)


def test_those_that_build_are_ended_where_what_they_build_is_not_found(
    processes: type[Process], caplog: pytest.LogCaptureFixture
) -> None:
    processes.endless.add(TEXTS[1])
    with ProgramBuilders.of(gpu_shaped().device, TEXTS, isolated=False) as builders:
        with builders.building(TEXTS[0]):
            processes.clock_s += 1.0
        assert processes.waits.wait(60)
        with builders.building(TEXTS[-1]):
            processes.clock_s += 1.0
        for thread in builders._threads:
            thread.join(60)
            assert not thread.is_alive()
        with builders.building(TEXTS[1]):
            pass
    assert len(caplog.records) == 1
    assert ("begins", TEXTS[1]) in processes.said
    assert ("ends", TEXTS[1]) not in processes.said


@pytest.mark.parametrize(("value", "is_shared"), [(None, True), ("0", True), ("1", False)])
def test_a_user_may_forbid_the_driver_to_keep_programs(
    monkeypatch: pytest.MonkeyPatch, value: str | None, is_shared: bool
) -> None:
    monkeypatch.delenv("CUDA_CACHE_DISABLE", raising=False)
    if value is not None:
        monkeypatch.setenv("CUDA_CACHE_DISABLE", value)
    device = gpu_shaped().device
    assert not shared_by_driver(device)
    monkeypatch.setattr(device, "platform", "NVIDIA CUDA")
    assert shared_by_driver(device) == is_shared


def test_one_run_at_a_time_has_processes(processes: type[Process]) -> None:
    processes.endless.update(TEXTS)
    with ProgramBuilders.of(gpu_shaped().device, TEXTS, isolated=False) as builders:
        with builders.building(TEXTS[0]):
            pass
        assert processes.begun.wait(60)
        assert run(wait=False) == TEXTS
        processes.endless.clear()


@pytest.mark.slow
@pytest.mark.compiles
def test_a_process_builds_for_the_same_device(monkeypatch: pytest.MonkeyPatch) -> None:
    x = rows()
    steps = [step for root in (x * 2, x - 1, x.sum(axis=1)) for step in plan_for_gpu(root).steps]
    kernels = [step.kernel for step in steps if isinstance(step, RegionStep) and step.kernel]
    replaced: dict[str, Any] = {"WORTH_S": 0.0, "core_limit": lambda: 2, "shared_by_driver": lambda _: True}
    for name, value in replaced.items():
        monkeypatch.setattr(program_builders, name, value)
    before, answers = children(), []
    ask = program_builders.Worker.ask
    monkeypatch.setattr(program_builders.Worker, "ask", lambda *args: answers.append(ask(*args)) or answers[-1])
    with ProgramBuilders.of(gpu_shaped().device, kernels, isolated=False) as builders:
        with builders.building(kernels[0]):
            pass
        with builders._news:
            assert builders._news.wait_for(lambda: len(answers) == len(kernels), 60)
        assert len(children() - before) == 1
    assert answers == [{}, *({"kernel": number} for number in range(len(kernels) - 1))]
    assert children() <= before
