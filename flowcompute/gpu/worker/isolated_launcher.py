"""Launches in a worker process: it receives kernel texts and numbers, and shares the memory of arrays."""

from __future__ import annotations

import math
import mmap
import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flowcompute.errors import DeviceError, KernelError, PlanError, Site, short_repr
from flowcompute.gpu.device import Device
from flowcompute.gpu.memory import Memory
from flowcompute.gpu.worker.launcher import Launcher, LocalLauncher
from flowcompute.gpu.worker.worker_process import Worker, building, opening
from flowcompute.schedule.memory import BufferAssignment
from flowcompute.strategy import Config, Devices

if sys.platform != "win32":
    import fcntl


class Isolation(NamedTuple):
    """Options of isolation: whether kernels run in a worker process, and how long a launch may take there."""

    isolate: bool = False
    launch_timeout_s: float | None = None

    def checked(self, device: Devices) -> Isolation:
        """Return these options if they can be met.

        Args:
            device: as given by the user.

        Raises:
            PlanError: if they make no sense, or kernels cannot be isolated here.
        """
        limit_s = self.launch_timeout_s
        if not isinstance(self.isolate, bool):
            raise PlanError(
                "cannot use this isolate=", element="isolate", expected="True or False", got=short_repr(self.isolate)
            )
        if limit_s is not None:
            is_number = isinstance(limit_s, int | float) and not isinstance(limit_s, bool)
            if not is_number or not 0 < limit_s < math.inf:
                raise PlanError(
                    "cannot use this launch_timeout_s=",
                    element="launch_timeout_s",
                    expected="seconds, more than 0, or None",
                    got=short_repr(limit_s),
                )
            if not self.isolate:
                raise PlanError(
                    "cannot end a launch in this process",
                    element="launch_timeout_s",
                    hint="give isolate=True with it",
                )
        if self.isolate and (missing := _missing(device)) is not None:
            raise PlanError(
                "cannot isolate kernels",
                element="isolate",
                expected="an OpenCL device, Linux, and an interpreter to start a worker process with",
                got=missing,
                hint="leave isolate= out",
            )
        return self


def _missing(device: Devices) -> str | None:
    """Return the reason why there can be no worker process, or None."""
    if device in ("numpy", ["numpy"], ("numpy",)):
        return 'device="numpy", which computes in this process and has no kernels'
    if not hasattr(os, "memfd_create"):
        return f"{sys.platform}, where memory without a name cannot be shared"
    return None if sys.executable else "a Python that does not know its own interpreter"


def open_launcher(device: Device, config: Config, staging_bytes: int = 0) -> Launcher:
    """Open the launcher for a plan's kernels, in this process or in a worker process.

    Args:
        device: the device that computes.
        config: of the plan.
        staging_bytes: pinned memory for large transfers of a discrete device.

    Raises:
        DeviceError: if the device or the worker does not start.
    """
    if config.isolate:
        return IsolatedLauncher(device, config, staging_bytes)
    return LocalLauncher(device, staging_bytes, config.device_memory_bytes)


class Handle(NamedTuple):
    """Reference to a buffer of the worker: its role, the number of its value, its bytes, and whether these are new."""

    role: str
    number: int
    size: int
    new: bool


class Segment:
    """Memory without a name that the worker maps too. Nobody can change its size."""

    def __init__(self, size: int) -> None:
        self.size = max(mmap.PAGESIZE, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        self.file = os.memfd_create("flowcompute", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.file, self.size)
            # Otherwise a faulty worker could shrink memory that this process has mapped.
            fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            self.bytes = np.frombuffer(mmap.mmap(self.file, self.size), np.uint8)
        except BaseException:
            os.close(self.file)
            raise

    def like(self, array: np.ndarray) -> np.ndarray:
        """Return the beginning of the segment as an array of the same shape."""
        return self.bytes[: array.nbytes].view(array.dtype).reshape(array.shape)


class IsolatedMemory(Memory):
    """Memory whose buffers are segments, one for each value or group of values, kept for the next batch.

    Args:
        worker: the process whose kernels use the segments.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._numbers: dict[Hashable, int] = {}
        self._reused: Mapping[Hashable, BufferAssignment] = {}
        self._segments: dict[int, Segment] = {}
        self._current: set[Hashable] = set()

    def reuse(self, buffers: Mapping[Hashable, BufferAssignment]) -> None:
        """Set which values share a segment. Each grows in the first batch, until its largest value fits."""
        self._reused = buffers

    def _room(self, key: Hashable, size: int) -> tuple[int, Segment]:
        key = self._reused.get(key, key)
        number = self._numbers.setdefault(key, len(self._numbers))
        segment = self._segments.get(number)
        if segment is None or segment.size < size:
            # The old one is closed before the new one is made, so that both never exist at a time.
            self._segments.pop(number, None)
            segment = Segment(size)
            try:
                self._worker.tell({"do": "map", "key": number, "size": segment.size}, segment.file)
            finally:
                os.close(segment.file)
            self._segments[number] = segment
        return number, segment

    def input(self, key: Hashable, array: np.ndarray, *, fresh: bool) -> Any:
        """Copy the array, unless its value is in the segment already."""
        return self._filled("input", key, array, fresh=fresh)

    def state(self, key: Hashable, array: np.ndarray) -> Any:
        """Return a separate segment, filled at the first call."""
        return self._filled("state", key, array, fresh=False)

    def _filled(self, role: str, key: Hashable, array: np.ndarray, *, fresh: bool) -> Handle:
        number, segment = self._room(key, array.nbytes)
        if key in self._current:
            return Handle(role, number, array.nbytes, False)
        np.copyto(segment.like(array), array)
        # Values that a batch has copied stay for its later kernels, until `forget`.
        if not fresh or isinstance(key, int):
            self._current.add(key)
        return Handle(role, number, array.nbytes, True)

    def output(self, key: Hashable, array: np.ndarray, *, late: bool = False) -> Any:
        """Return a segment for a kernel's result. Later kernels of this batch find the value there."""
        del late
        number, _ = self._room(key, array.nbytes)
        self._current.add(key)
        return Handle("output", number, array.nbytes, True)

    def finish(self, outputs: Sequence[Any]) -> None:
        """Do nothing: each launch is waited for."""

    def fetch(self, key: Hashable, array: np.ndarray) -> None:
        """Copy the value from its segment."""
        number = self._numbers[self._reused.get(key, key)]
        self._worker.ask({"do": "fetch", "key": number, "size": array.nbytes})
        np.copyto(array, self._segments[number].like(array))

    def forget(self, keys: set[Hashable]) -> None:
        """Drop these values, so that they are copied anew when they are needed again."""
        self._current -= keys

    def release(self, keys: set[Hashable]) -> None:
        """Release their segments, here and in the worker."""
        self.forget(keys)
        known = {self._numbers.get(self._reused.get(key, key)) for key in keys}
        numbers = [number for number in self._segments if number in known]
        for number in numbers:
            del self._segments[number]
        self._worker.tell({"do": "release", "keys": numbers})

    def close(self) -> None:
        """Release all segments. The worker's end with its process."""
        self._segments.clear()
        self._numbers.clear()
        self._current.clear()


class Built(NamedTuple):
    """A kernel of the worker, and the dtypes of its scalar parameters."""

    number: int
    types: Sequence[np.dtype | None]


class IsolatedLauncher(Launcher):
    """A launcher that lets a worker process make all calls of the driver.

    Args:
        device: the device that runs the kernels.
        config: the memory that may be allocated on host and device, and the time limit of a launch.
        staging_bytes: pinned memory for large transfers of a discrete device.

    Raises:
        DeviceError: if the worker or the device does not start.
    """

    def __init__(self, device: Device, config: Config, staging_bytes: int = 0) -> None:
        self._limit_s = config.launch_timeout_s
        self._worker = Worker(device.capabilities.name)
        self.memory = IsolatedMemory(self._worker)
        try:
            self._worker.ask(opening(device, staging_bytes, config.device_memory_bytes))
        except BaseException:
            self._worker.close()
            raise

    @contextmanager
    def told(self, element: str | None = None, site: Site | None = None) -> Iterator[None]:
        """Name the element in errors that the worker reports."""
        try:
            yield
        except (DeviceError, KernelError) as error:
            if error.element is None:
                error.element, error.site = element, site
            raise

    def build(self, text: str, name: str, types: Sequence[np.dtype | None]) -> Built:
        """Build a kernel in the worker."""
        answer = self._worker.ask(building(text, name, types))
        return Built(int(answer["kernel"]), types)

    def launch(
        self,
        kernel: Any,
        values: Sequence[Any],
        groups: int,
        work_group: int,
        written: Sequence[Any],
        *,
        timed: bool,
        deferred: bool = False,
    ) -> Callable[[], float] | None:
        """Launch in the worker and wait for it, at most until the time limit."""
        del written, deferred
        coded = [
            value if dtype is None else np.asarray(value, dtype).tobytes().hex()
            for value, dtype in zip(values, kernel.types, strict=True)
        ]
        message = {"do": "launch", "kernel": kernel.number, "values": coded, "groups": groups}
        answer = self._worker.ask(message | {"work_group": work_group, "timed": timed}, self._limit_s)
        return partial(float, answer["seconds"]) if timed else None

    def keep_programs(self, limit_s: float) -> None:
        """Do nothing: the worker stores its programs when it ends."""

    def close(self) -> None:
        """End the worker."""
        self._worker.close()
        self.memory.close()
