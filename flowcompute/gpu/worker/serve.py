"""Main loop of the worker process of `worker_process.py`, which builds and launches kernels in shared memory."""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import mmap
import os
import signal
import socket
import sys
from typing import Any

import numpy as np

from flowcompute.errors import FlowError
from flowcompute.gpu.device import all_devices
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.gpu.worker.messages import receive, send

_PR_SET_PDEATHSIG = 1


def serve(handle: int, parent: int) -> None:
    """Handle the messages of a socket until it is closed.

    Args:
        handle: of the socket.
        parent: the process to end with.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    channel = socket.socket(fileno=handle)
    server = _WorkerServer()
    while True:
        try:
            message, file = receive(channel)
        except EOFError:
            return
        try:
            answer = server.do(message, file)
        except FlowError as error:
            answer = {"error": type(error).__name__, "message": error.message}
            answer |= {"expected": error.expected, "got": error.got, "hint": error.hint}
        if answer is not None:
            send(channel, answer)


class _WorkerServer:
    """A device, its kernels, and the memory of arrays. Numbers name kernels and segments."""

    def __init__(self) -> None:
        self._launcher: LocalLauncher | None = None
        self._in_place = False
        self._kernels: list[tuple[Any, list[np.dtype | None]]] = []
        self._segments: dict[int, np.ndarray] = {}

    def do(self, message: dict[str, Any], file: int | None) -> dict[str, Any] | None:
        """Handle a message and return the answer, or None where none is expected."""
        what = message.pop("do")
        if file is not None:
            self._map(file, **message)
            return None
        if what == "open":
            return self._open(**message)
        assert self._launcher is not None
        with self._launcher.told():
            if what == "build":
                return self._build(**message)
            if what == "launch":
                return self._launch(**message)
            if what == "fetch":
                self._launcher.memory.fetch(("value", message["key"]), self._view(message["key"], message["size"]))
                return {}
        assert what == "release"
        self._launcher.memory.release({("value", key) for key in message["keys"]})
        for key in message["keys"]:
            self._segments.pop(key, None)
        return None

    def _open(
        self,
        position: int,
        kind: str,
        host_memory: bool,
        options: list[str],
        staging: int,
        device_budget: int | None,
    ) -> dict[str, Any]:
        device = copy.copy(all_devices()[position])
        assert device.capabilities.kind == kind, "the drivers list other devices here"
        device.capabilities = dataclasses.replace(device.capabilities, host_memory=host_memory)
        device.build_options = tuple(options)
        self._in_place = host_memory
        self._launcher = LocalLauncher(device, staging, device_budget)
        return {}

    def _map(self, file: int, key: int, size: int) -> None:
        if self._launcher is not None:
            self._launcher.memory.release({("value", key)})
        self._segments[key] = np.frombuffer(mmap.mmap(file, size), np.uint8)
        os.close(file)

    def _view(self, key: int, size: int) -> np.ndarray:
        return self._segments[key][:size]

    def _build(self, text: str, name: str, types: list[str | None]) -> dict[str, Any]:
        assert self._launcher is not None
        dtypes = [None if one is None else np.dtype(one) for one in types]
        self._kernels.append((self._launcher.build(text, name, dtypes), dtypes))
        return {"kernel": len(self._kernels) - 1}

    def _launch(self, kernel: int, values: list[Any], groups: int, work_group: int, timed: bool) -> dict[str, Any]:
        assert self._launcher is not None
        compiled, types = self._kernels[kernel]
        written: list[Any] = []
        arguments = [self._argument(value, dtype, written) for value, dtype in zip(values, types, strict=True)]
        seconds = self._launcher.launch(compiled, arguments, groups, work_group, written, timed=timed)
        return {"seconds": None if seconds is None else seconds()}

    def _argument(self, value: Any, dtype: np.dtype | None, written: list[Any]) -> Any:
        if dtype is not None:
            return np.frombuffer(bytes.fromhex(value), dtype)[0]
        assert self._launcher is not None
        memory = self._launcher.memory
        role, number, size, new = value
        key, array = ("value", number), self._view(number, size)
        if new:
            memory.forget({key})
        if role == "input":
            # On host devices a buffer is the memory itself, so it is always fresh.
            return memory.input(key, array, fresh=self._in_place)
        buffer = memory.output(key, array) if role == "output" else memory.state(key, array)
        written.append(buffer)
        return buffer
