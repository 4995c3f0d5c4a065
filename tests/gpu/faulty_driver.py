"""A driver that fails on demand: out of memory, or lost from some call on."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self
from unittest import mock

from flowcompute.gpu.device._cl import cl

FULL, RESOURCES, LOST, REFUSED = -4, -5, -36, -54
"""MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_RESOURCES, INVALID_COMMAND_QUEUE, INVALID_WORK_GROUP_SIZE."""

_CALLS = ("Buffer", "enqueue_nd_range_kernel", "enqueue_copy", "enqueue_map_buffer")


def driver_error(code: int, routine: str) -> cl.Error:
    """What pyopencl raises."""
    kind = {FULL: cl.MemoryError, RESOURCES: cl.RuntimeError}.get(code, cl.LogicError)
    return kind(cl._cl._ErrorRecord(msg="", code=code, routine=routine))


class FaultyDriver:
    """While it is entered, pyopencl's allocations, launches, copies and waits are counted, and some fail.

    Args:
        fail_at: which call fails, by its number from 0, or by its name: the first of that name; None for none.
        code: the OpenCL error it fails with.
        lost: whether everything fails from there on, until a new context is made.
        most_bytes: the largest buffer that there is room for on the device.

    Attributes:
        calls: the calls so far, the failed ones included.
    """

    def __init__(
        self, fail_at: int | str | None = None, code: int = FULL, *, lost: bool = False, most_bytes: int | None = None
    ) -> None:
        self.calls: list[str] = []
        self._fail_at, self._code, self._most_bytes = fail_at, code, most_bytes
        self._lost = lost
        self._failed = self._broken = False
        self._patches: list[Any] = []

    def __enter__(self) -> Self:
        for name in _CALLS:
            self._patch(cl, name, getattr(cl, name))
        self._patch(cl.CommandQueue, "finish", cl.CommandQueue.finish)
        self._patch(cl.Event, "wait", cl.Event.wait)
        make = cl.Context

        def context(*arguments: Any, **options: Any) -> Any:
            self._broken = False
            return make(*arguments, **options)

        self._patches.append(mock.patch.object(cl, "Context", context))
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for patch in reversed(self._patches):
            patch.stop()

    def _patch(self, owner: Any, name: str, real: Callable[..., Any]) -> None:
        def call(*arguments: Any, **options: Any) -> Any:
            self._step(name, arguments)
            return real(*arguments, **options)

        self._patches.append(mock.patch.object(owner, name, call))

    def _step(self, name: str, arguments: tuple[Any, ...]) -> None:
        index = len(self.calls)
        self.calls.append(name)
        if self._broken:
            raise driver_error(LOST, name)
        most = math.inf if self._most_bytes is None or _pins(name, arguments) else self._most_bytes
        if name == "Buffer" and _size(arguments) > most:
            raise driver_error(FULL, name)
        if self._fail_at in (index, name) and not self._failed:
            self._failed, self._broken = True, self._lost
            raise driver_error(self._code, name)


class FlakyDriver(FaultyDriver):
    """A driver that finds no room on the device now and then, a few times; memory of the host it pins.

    Args:
        seed: which calls fail.
        times: how many; those that follow one are good, as they look whether the device is.
    """

    def __init__(self, seed: int, times: int = 4) -> None:
        super().__init__()
        self._random, self._times, self._last = random.Random(seed), times, -1

    def _step(self, name: str, arguments: tuple[Any, ...]) -> None:
        super()._step(name, arguments)
        at = len(self.calls)
        if self._times and not _pins(name, arguments) and at - self._last > 8 and self._random.random() < 0.03:
            self._times, self._last = self._times - 1, at
            raise driver_error(FULL, name)


def _pins(name: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a call is about memory of the host: how much of it there is already is a matter of timing."""
    return name == "enqueue_map_buffer" or (name == "Buffer" and bool(arguments[1] & cl.mem_flags.ALLOC_HOST_PTR))


def _size(arguments: tuple[Any, ...]) -> int:
    return arguments[2] if len(arguments) > 2 else 0
