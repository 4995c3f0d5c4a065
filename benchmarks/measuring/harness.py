"""Runs peers side by side: a child process each, kept alive, repetitions interleaved, memory watched from outside."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.measuring.check import Checker
from benchmarks.measuring.peers import REPLACES, W6_FRACTION
from benchmarks.measuring.workloads import SMALL_MIB, Job, Workload, make_inputs, make_job, prepare_output

ROOT = str(Path(__file__).resolve().parents[2])
SAMPLE_S = 0.02
SMALL_BATCHES = 2000


@dataclass
class Measured:
    """What one peer did on one workload.

    Attributes:
        peer: its name.
        state: "right", "wrong", "missing", "not applicable" or "failed".
        text: why, when not right.
        moved: bytes read and written, or batches, in one repetition.
        seconds: of each repetition.
        processor_seconds: the same of all threads of the process, user and system.
        error: largest error against float64.
        base_bytes, peak_bytes: private memory before the first repetition and at most; 0 where unknown.
        resident_bytes: the most that ever was resident (VmHWM), with mapped pages of files.
    """

    peer: str
    state: str = "right"
    text: str = ""
    moved: int = 0
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    error: float = 0.0
    base_bytes: int = 0
    peak_bytes: int = 0
    resident_bytes: int = 0


@dataclass(frozen=True)
class Task:
    """A peer's work: the files that are measured, and small ones to warm up with.

    Attributes:
        anew: the peer makes its output file; what is there is removed before, since freeing it is not its work.
            Otherwise it overwrites one that exists.
        begun: an output without pages is made for the peer, within the time, since it only overwrites.
    """

    peer: str
    job: Job
    small: Job
    anew: bool
    begun: bool = False


@dataclass(frozen=True)
class Setup:
    """Options of the user: the folder for files, MiB an input, repetitions, tiny batches, cold or warm, new files."""

    folder: str
    mib: int
    repetitions: int
    batches: int
    cold: bool
    new_files: bool = False


def measure(workload: Workload, peers: list[str], setup: Setup, say: Callable[[str], None]) -> list[Measured]:
    """All peers on one workload, repetition by repetition."""
    small_folder = os.path.join(setup.folder, "small")
    make_inputs(workload, setup.folder, setup.mib, setup.batches)
    make_inputs(workload, small_folder, SMALL_MIB, SMALL_BATCHES)
    tasks = []
    for peer in peers:
        job = make_job(workload, peer, setup.folder, setup.mib, setup.batches)
        small = make_job(workload, peer, small_folder, SMALL_MIB, SMALL_BATCHES)
        if workload.name == "W6" and peer in W6_FRACTION:
            job = replace(job, moved_bytes=max(1, int(setup.batches * W6_FRACTION[peer])))
        replaces = peer.partition(":")[0] in REPLACES
        tasks.append(Task(peer, job, small, replaces or setup.new_files, setup.new_files and not replaces))
    return compare(workload, tasks, setup, say, Checker)


def compare(
    workload: Workload,
    tasks: list[Task],
    setup: Setup,
    say: Callable[[str], None],
    checker: Callable[[Job], Reference],
    untimed: int = 0,
) -> list[Measured]:
    """All tasks on one workload, repetition by repetition, after `untimed` ones of each that do not count."""
    children: list[Child] = []
    with contextlib.ExitStack() as stack:
        for task in tasks:
            for each in (task.job, task.small):
                if not task.anew:
                    prepare_output(each)
                stack.callback(_remove, each.output)
            children.append(stack.enter_context(Child(task, setup.folder)))
        for repetition in range(-untimed, setup.repetitions):
            for child in children:
                child.repeat(setup.cold)
                if repetition < 0:
                    child.measured.seconds.clear()
                    child.measured.processor_seconds.clear()
            say(f"{workload.name} {repetition + 1}/{setup.repetitions}")
        references: dict[int, Reference] = {}
        for child in children:
            if workload.tolerance or workload.name == "W6":
                child.check(workload, references.setdefault(child.job.moved_bytes, checker(child.job)))
    return [child.measured for child in children]


class Reference(Protocol):
    """What knows the right answer."""

    def error(self, result: np.ndarray | None, output: str) -> float:
        """How far an answer is from it."""
        ...


class Child:
    """One peer's process."""

    def __init__(self, work: Task, folder: str) -> None:
        self.job = job = work.job
        self._anew = work.anew
        self.measured = Measured(work.peer, moved=job.moved_bytes)
        self._result = os.path.join(folder, "result.npy")
        self._log = os.path.join(folder, f"log-{os.path.basename(job.output)}-{job.workload}.txt")
        task = json.dumps(asdict(work))
        # Mapped pages of a file on tmpfs count as shared memory of the process, and are not the peer's doing.
        self._shared_counts = not _on_tmpfs(folder)
        cores = str(len(os.sched_getaffinity(0)))
        with open(self._log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.measuring.child", task],
                cwd=ROOT,
                env=os.environ | {"OMP_NUM_THREADS": cores, "NUMEXPR_MAX_THREADS": cores},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def __enter__(self) -> Child:
        self._note(self._answer())
        self.measured.base_bytes = self._memory()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        if self.measured.state == "right":
            _remove(self._log)

    def repeat(self, cold: bool) -> None:
        """One timed repetition; what it wrote is made durable before anybody else's begins."""
        if self.measured.state != "right":
            return
        if self._anew:
            _remove(self.job.output)
        elif cold and self.job.output_shape is not None:
            _drop(self.job.output)
        if cold:
            for path in self.job.inputs:
                _drop(path)
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(stop,))
        watcher.start()
        answer = self._ask("cold" if cold else "run")
        stop.set()
        watcher.join()
        if "seconds" in answer:
            self.measured.seconds.append(answer["seconds"])
            self.measured.processor_seconds.append(answer["processor_seconds"])
            self.measured.resident_bytes = self._status("VmHWM:")
            if self.job.output_shape is not None:
                _sync(self.job.output)
        else:
            self._note({"state": "failed", "text": answer["text"]})

    def check(self, workload: Workload, checker: Reference) -> None:
        """Compare the answer of the last repetition with the reference."""
        if self.measured.state != "right":
            return
        _remove(self._result)
        result = np.load(self._result) if self._ask(f"result {self._result}").get("saved") else None
        self.measured.error = checker.error(result, self.job.output)
        if self.measured.error > workload.tolerance:
            self.measured.state = "wrong"
            self.measured.text = f"error {self.measured.error:.1e}, accepted {workload.tolerance:.0e}"
        _remove(self._result)

    def _note(self, answer: dict[str, Any]) -> None:
        if answer["state"] != "ready":
            self.measured.state = answer["state"]
            self.measured.text = answer.get("text", "")

    def _ask(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        code = self._process.wait()
        return {"state": "failed", "text": f"its process ended with code {code}, see {self._log}"}

    def _watch(self, stop: threading.Event) -> None:
        ended = False
        while not ended:
            ended = stop.wait(SAMPLE_S)
            self.measured.peak_bytes = max(self.measured.peak_bytes, self._memory())

    def _memory(self) -> int:
        return self._status("RssAnon:", "RssShmem:") if self._shared_counts else self._status("RssAnon:")

    def _status(self, *wanted: str) -> int:
        try:
            with open(f"/proc/{self._process.pid}/status", encoding="ascii") as file:
                return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(wanted))
        except (FileNotFoundError, ProcessLookupError):
            return 0


def _on_tmpfs(folder: str) -> bool:
    try:
        with open("/proc/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1:3] for line in file]
    except FileNotFoundError:
        return False
    path = os.path.realpath(folder) + "/"
    inside = [(len(at), kind) for at, kind in mounts if path.startswith(at.rstrip("/") + "/")]
    return bool(inside) and max(inside)[1] == "tmpfs"


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDWR)
    os.fsync(handle)
    os.close(handle)


def _drop(path: str) -> None:
    """Out of the page cache, as far as no other process maps it."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
