"""What an executor asks of a device: memory, programs, launches. Here it is asked in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from flowcompute.errors import Site
from flowcompute.gpu.device import Device, Faults, build, cl, save_new_programs
from flowcompute.gpu.memory import Memory, memory_of


class Launcher(ABC):
    """Builds and launches kernels for one executor.

    Attributes:
        memory: gives kernels the buffers of arrays.
    """

    memory: Memory

    @abstractmethod
    def told(self, element: str | None = None, site: Site | None = None) -> AbstractContextManager[None]:
        """What the device raises inside is an error of the family that names the element; see `Faults.told`."""

    @abstractmethod
    def build(self, text: str, name: str, types: Sequence[np.dtype | None]) -> Any:
        """A kernel to launch.

        Args:
            text: OpenCL C.
            name: of the kernel in it.
            types: the dtype of each scalar parameter, None for buffers.

        Raises:
            KernelError: if it does not compile.
        """

    @abstractmethod
    def launch(
        self, kernel: Any, values: Sequence[Any], groups: int, work_group: int, written: Sequence[Any], *, timed: bool
    ) -> float | None:
        """Launch a kernel and wait for it.

        Args:
            kernel: from `build`.
            values: its arguments: numbers, and buffers from `memory`.
            groups: work-groups.
            work_group: work-items in each.
            written: the buffers that it writes to.
            timed: whether to look how long it takes.

        Returns:
            Seconds on the device, where they are asked for.
        """

    @abstractmethod
    def keep_programs(self, limit_s: float) -> None:
        """Keep what was compiled for later processes, the newest first; begin nothing after so many seconds."""

    @abstractmethod
    def close(self) -> None:
        """Release everything; harmless when called twice."""


class LocalLauncher(Launcher):
    """Asks the driver in this process.

    Args:
        device: where kernels run.
        budget_bytes: what may be allocated on the host.
        device_bytes: what may be allocated on a discrete device; None for all that it has.

    Raises:
        DeviceError: if the device does not start.
    """

    def __init__(self, device: Device, budget_bytes: int, device_bytes: int | None = None) -> None:
        self._device = device
        self._faults = Faults(device)
        self.memory = memory_of(device, budget_bytes, device_bytes)

    def told(self, element: str | None = None, site: Site | None = None) -> AbstractContextManager[None]:
        """See `Faults.told`."""
        return self._faults.told(element, site)

    def build(self, text: str, name: str, types: Sequence[np.dtype | None]) -> cl.Kernel:
        """A kernel of the device's context."""
        kernel = cl.Kernel(build(self._device, text, ()), name)
        # Typed once, scalars cost nothing to set; untyped ones 10 microseconds each.
        kernel.set_scalar_arg_dtypes(list(types))
        return kernel

    def launch(
        self, kernel: Any, values: Sequence[Any], groups: int, work_group: int, written: Sequence[Any], *, timed: bool
    ) -> float | None:
        """Launch and wait."""
        queue = self._device.timing_queue if timed else self._device.queue
        kernel.set_args(*values)
        if timed:
            # No queue waits for another one: uploads may be under way in the first.
            self._device.queue.finish()
        event = cl.enqueue_nd_range_kernel(queue, kernel, (groups * work_group,), (work_group,))
        if timed:
            event.wait()
        self.memory.finish(written)
        return (event.profile.end - event.profile.start) * 1e-9 if timed else None

    def keep_programs(self, limit_s: float) -> None:
        """Keep the binaries."""
        save_new_programs(limit_s)

    def close(self) -> None:
        """Release the buffers."""
        self.memory.close()
