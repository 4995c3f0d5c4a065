"""Launchers: access of an executor to the memory, programs and launches of a device, here in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from flowcompute.errors import Site
from flowcompute.gpu.device import (
    BoundKernel,
    Device,
    Faults,
    TakenKernel,
    build,
    cl,
    driver_functions,
    save_new_programs,
)
from flowcompute.gpu.memory import Memory, make_memory


class Launcher(ABC):
    """Interface to build and launch kernels for one executor.

    Attributes:
        memory: buffers of arrays for kernels.
    """

    memory: Memory

    @abstractmethod
    def told(self, element: str | None = None, site: Site | None = None) -> AbstractContextManager[None]:
        """Make the device's errors inside the block errors of the family that name the element; see `Faults.told`."""

    @abstractmethod
    def build(self, text: str, name: str, types: Sequence[np.dtype | None]) -> Any:
        """Build a kernel.

        Args:
            text: OpenCL C.
            name: of the kernel in it.
            types: the dtype of each scalar parameter, None for buffers.

        Raises:
            KernelError: if it does not compile.
        """

    @property
    def can_defer(self) -> bool:
        """True where launches need not be waited for one by one; see `Memory.wait`."""
        return False

    @property
    def times_deferred(self) -> bool:
        """True where launches that are timed need not be waited for one by one either."""
        return False

    @abstractmethod
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
        """Launch a kernel and wait for it, or leave the waiting to `Memory.wait`.

        Args:
            kernel: from `build`.
            values: its arguments: numbers, and buffers from `memory`.
            groups: number of work-groups.
            work_group: work-items in each.
            written: the buffers that it writes to.
            timed: whether to measure its time.
            deferred: whether to leave the waiting, where `can_defer`; of a timed one where `times_deferred`.

        Returns:
            If `timed`, what gives the seconds on the device once it has been waited for; otherwise None.
        """

    @property
    def can_bind(self) -> bool:
        """True where `bind` spares the host more than it takes, of launches that are repeated."""
        return False

    def bind(
        self, kernel: Any, types: Sequence[np.dtype | None], values: Sequence[Any], groups: int, work_group: int
    ) -> BoundKernel:
        """Return a launch whose arguments stay set, where launchers `can_bind`. Launching it is not recorded.

        Args:
            kernel, values, groups, work_group: as of `launch`; None is a value that is put later.
            types: as of `build`.
        """
        raise NotImplementedError

    @abstractmethod
    def keep_programs(self, limit_s: float) -> None:
        """Store compiled programs for later processes, the newest first. Begin none after `limit_s` seconds."""

    @abstractmethod
    def close(self) -> None:
        """Release everything. Calling it twice does nothing."""


class LocalLauncher(Launcher):
    """A launcher that calls the driver in this process.

    Args:
        device: the device that runs the kernels.
        staging_bytes: pinned memory for large transfers of a discrete device.
        device_bytes: bytes that may be allocated on a discrete device; None for all that it has.

    Raises:
        DeviceError: if the device does not start.
    """

    def __init__(self, device: Device, staging_bytes: int, device_bytes: int | None = None) -> None:
        self._device = device
        self._faults = Faults(device)
        self._taken: list[tuple[cl.Context, TakenKernel]] = []
        self._types: dict[cl.Kernel, tuple[np.dtype | None, ...]] = {}
        self.memory = make_memory(device, staging_bytes, device_bytes)

    def told(self, element: str | None = None, site: Site | None = None) -> AbstractContextManager[None]:
        """Name an element in errors; see `Faults.told`."""
        return self._faults.told(element, site)

    def build(self, text: str, name: str, types: Sequence[np.dtype | None]) -> cl.Kernel:
        """Build a kernel in the device's context."""
        context = self._device.context
        taken = self._device.kernels.take(build(self._device, text, ()), name, types)
        self._taken.append((context, taken))
        self._types[taken.kernel] = taken.made_of[-1]
        return taken.kernel

    @property
    def can_defer(self) -> bool:
        """True where kernels run in the order of one queue, and nothing but it writes what they have made."""
        return not self._device.capabilities.host_memory or self._device.is_in_place

    @property
    def times_deferred(self) -> bool:
        """True where the queue of all launches has time stamps."""
        return self.can_defer and self._device.timing_queue is self._device.queue

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
        """Launch a kernel and wait for it, or leave the waiting to `Memory.wait`."""
        queue = self._device.timing_queue if timed else self._device.queue
        kernel.set_args(*values)
        if queue is not self._device.queue:
            # No queue waits for another one: the first may have uploads in progress.
            self._device.queue.finish()
        event = cl.enqueue_nd_range_kernel(queue, kernel, (groups * work_group,), (work_group,))
        if self.memory.recording is not None:
            self.memory.recording.launched(kernel, self._types[kernel], values, groups * work_group, work_group)
        if deferred:
            self.memory.defer(values, event)
        else:
            if queue is not self._device.queue:
                event.wait()
            self.memory.finish(written)
        return partial(_device_seconds, event) if timed else None

    @property
    def can_bind(self) -> bool:
        """True on discrete devices, whose drivers need the host long for a launch."""
        return not self._device.capabilities.host_memory and driver_functions() is not None

    def bind(
        self, kernel: Any, types: Sequence[np.dtype | None], values: Sequence[Any], groups: int, work_group: int
    ) -> BoundKernel:
        """Return a launch whose arguments stay set."""
        return BoundKernel(self._device.queue, kernel, types, values, groups * work_group, work_group)

    def keep_programs(self, limit_s: float) -> None:
        """Store the binaries."""
        save_new_programs(limit_s)

    def close(self) -> None:
        """Release the buffers, and let others have the kernels."""
        self.memory.close()
        self._types.clear()
        while self._taken:
            context, taken = self._taken.pop()
            if not self._device.is_given_up(context):
                self._device.kernels.give_back(taken)


def _device_seconds(event: cl.Event) -> float:
    """Return how long a kernel took that has ended."""
    return float(event.profile.end - event.profile.start) * 1e-9
