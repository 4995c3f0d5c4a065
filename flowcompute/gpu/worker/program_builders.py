"""Worker processes that build programs beside this one, where the driver keeps programs for all processes.

NVIDIA's compiler takes half a second for a kernel, and one kernel of a process at a time. So threads gain nothing. Its
driver keeps what it has compiled in a folder, from which another process loads it in milliseconds.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

import numpy as np

from flowcompute.engine import CHECK, check_stopped
from flowcompute.errors import KernelError
from flowcompute.gpu.device import Device, is_built, shared_by_driver
from flowcompute.gpu.kernel_arguments import argument_types
from flowcompute.gpu.rendered_programs import program_of
from flowcompute.gpu.worker.worker_process import Worker, building, opening
from flowcompute.ir import Kernel
from flowcompute.strategy import core_limit, default_memory_bytes

_LOG = logging.getLogger(__name__)

WORTH_S = 3.0
"""Seconds that all programs which are left would take, each as long as the last one, for which processes are started:
the first of them has begun to build after one or two."""

MOST_PROCESSES = 8
"""Four take most of the gain on sixteen cores, and twelve no more than eight."""

_HOST_BYTES = 1 << 30
"""Memory that a process is counted with, against half of the machine's; the driver takes most of it."""

_DEVICE_BYTES = 768 << 20
"""Memory of a process on the device, of which all together take an eighth at most."""

_LOADED_SHARE = 0.5
"""Share of the seconds of the program after which processes were started, which loading one of theirs may take. It
takes a hundredth where the driver finds it. Else it is built twice, as in a folder that is full or cannot be written.
"""

_POLL_INTERVAL_S = 0.05

_TURN = threading.Lock()
"""Held by the run that has such processes: one of a process at a time."""


class _NotNeededError(BaseException):
    """Nobody needs the program any more that a worker process builds."""


class ProgramBuilders:
    """Worker processes that build some of the programs that a run needs, while it builds the others.

    None is started before a program has taken long here. A program that one of them fails at is built here.

    Args:
        device: to build for.
        kernels: those that the run builds, in its order; none where it has no need of help.
    """

    def __init__(self, device: Device, kernels: Iterable[Kernel]) -> None:
        programs = {program_of(kernel): argument_types(kernel) for kernel in kernels}
        self._device = device
        self._left = {text: (name, types) for (text, name), types in programs.items() if not is_built(device, text)}
        self._elsewhere: set[str] = set()
        self._made: set[str] = set()
        self._loading_s = 0.0
        self._news = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._has_turn = self._is_over = False

    @classmethod
    def of(cls, device: Device, kernels: Iterable[Kernel], *, isolated: bool) -> Self:
        """Return those of a run, which never start where they would be of no use.

        Args:
            device, kernels: as of the class.
            isolated: whether a worker process builds already.
        """
        return cls(device, kernels if shared_by_driver(device) and not isolated and _can_start() else ())

    @contextmanager
    def building(self, kernel: Kernel) -> Iterator[None]:
        """Let a kernel be built inside the block. Wait first where a worker process is building its program."""
        text, _ = program_of(kernel)
        with self._news:
            self._left.pop(text, None)
            while text in self._elsewhere:
                self._news.wait(_POLL_INTERVAL_S)
                check_stopped()
            is_made = text in self._made
            self._made.discard(text)
        began_s = time.monotonic()
        yield
        took_s = time.monotonic() - began_s
        if not is_made:
            self._start(took_s)
        elif took_s > self._loading_s and not self._is_over:
            _LOG.warning(
                "programs are built without processes beside this one: the driver does not keep theirs, and took "
                "%.2f s for one; look whether it can write to its folder",
                took_s,
            )
            self._end()

    def _start(self, took_s: float) -> None:
        """Start processes if the programs that are left are worth it, after one has taken so many seconds."""
        count = len(self._left)
        if self._has_turn or count * took_s < WORTH_S or not _TURN.acquire(blocking=False):
            return
        self._has_turn, self._loading_s = True, took_s * _LOADED_SHARE
        rooms = self._device.capabilities.memory_bytes // 8 // _DEVICE_BYTES, default_memory_bytes() // _HOST_BYTES
        for number in range(min(core_limit() - 1, count - 1, MOST_PROCESSES, *rooms)):
            one = threading.Thread(target=self._help, name=f"flowcompute-builder-{number}", daemon=True)
            try:
                one.start()
            except RuntimeError as error:
                _LOG.warning("programs are built without processes beside this one: %s", error)
                return
            self._threads.append(one)

    def _help(self) -> None:
        """Let a process build programs until none is left. It runs in a thread of its own."""
        CHECK.set(self._check)
        try:
            with contextlib.closing(Worker(self._device.capabilities.name)) as worker:
                worker.ask(opening(self._device))
                while (program := self._take()) is not None:
                    self._build(worker, *program)
        except _NotNeededError:
            return
        except Exception as error:  # noqa: BLE001 - whatever fails there is done here
            _LOG.warning("a process that builds programs failed, and they are built without it: %s", error)

    def _check(self) -> None:
        if self._is_over:
            raise _NotNeededError

    def _take(self) -> tuple[str, str, Sequence[np.dtype | None]] | None:
        """Return a program that a process is to build; the longest first, since it takes longest."""
        with self._news:
            if not self._left:
                return None
            text = max(self._left, key=len)
            self._elsewhere.add(text)
            return text, *self._left.pop(text)

    def _build(self, worker: Worker, text: str, name: str, types: Sequence[np.dtype | None]) -> None:
        try:
            worker.ask(building(text, name, types))
            self._made.add(text)
        except KernelError:
            # This process finds the same, and tells its user.
            pass
        finally:
            with self._news:
                self._elsewhere.discard(text)
                self._news.notify_all()

    def _end(self) -> None:
        """Let all processes end, also those that are building."""
        with self._news:
            self._left.clear()
        self._is_over = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        try:
            for one in self._threads:
                one.join()
        finally:
            if self._has_turn:
                _TURN.release()


def _can_start() -> bool:
    """Check whether there are cores for other processes, and an interpreter to start them with."""
    name = os.path.basename(sys.executable or "")
    # A program that has Python inside may name itself, and would be started.
    return sys.platform == "linux" and core_limit() > 1 and name.startswith("python")
