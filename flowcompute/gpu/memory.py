"""Where kernels find the arrays of a pass: in place on host devices, in buffers of their own on discrete ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence

import numpy as np

from flowcompute.gpu._cl import cl
from flowcompute.gpu.buffers import DeviceArena, HostBuffers
from flowcompute.gpu.device import Device
from flowcompute.gpu.staging import Staging
from flowcompute.planner.memory import staging_bytes


class Memory(ABC):
    """Gives kernels the buffers of arrays in host memory. Keys name values."""

    @abstractmethod
    def input(self, key: Hashable, array: np.ndarray, *, fresh: bool) -> cl.Buffer:
        """A buffer with the content of `array`; `fresh` says that the array may be another one than last time."""

    @abstractmethod
    def output(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """A buffer that a kernel fills."""

    @abstractmethod
    def state(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """A buffer that kernels read and change; it begins with the content of `array`, anew after `forget`."""

    @abstractmethod
    def finish(self, outputs: Sequence[cl.Buffer]) -> None:
        """Wait for the kernels so far, which filled `outputs`."""

    @abstractmethod
    def fetch(self, key: Hashable, array: np.ndarray) -> None:
        """Make an output visible in its array."""

    @abstractmethod
    def forget(self, keys: set[Hashable]) -> None:
        """These values belong to a batch that is over."""

    @abstractmethod
    def release(self, keys: set[Hashable]) -> None:
        """Give back what these values took on a device of its own; what is asked for next may be smaller."""

    @abstractmethod
    def close(self) -> None:
        """Release every buffer."""


def memory_of(device: Device, budget_bytes: int) -> Memory:
    """The memory that kernels of a device work on, within a host budget."""
    return HostMemory(device) if device.traits.host_memory else DeviceMemory(device, budget_bytes)


class HostMemory(Memory):
    """Buffers that are the arrays themselves: nothing is uploaded or downloaded."""

    def __init__(self, device: Device) -> None:
        self._buffers = HostBuffers(device)
        self._kept: dict[Hashable, cl.Buffer] = {}

    def input(self, key: Hashable, array: np.ndarray, *, fresh: bool) -> cl.Buffer:
        """The array itself; a strided or misaligned one is copied first."""
        if not fresh and key in self._kept:
            return self._kept[key]
        in_place = array.flags.c_contiguous and array.flags.aligned
        buffer = self._buffers.input(array if in_place else np.array(array, order="C"))
        if not fresh:
            self._kept[key] = buffer
        return buffer

    def output(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """The array itself."""
        del key
        return self._buffers.output(array)

    def state(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """The array itself."""
        return self.output(key, array)

    def finish(self, outputs: Sequence[cl.Buffer]) -> None:
        """Wait, and make what was written visible in the arrays."""
        self._buffers.finish(outputs)

    def fetch(self, key: Hashable, array: np.ndarray) -> None:
        """Nothing to do: the array was computed in place."""

    def forget(self, keys: set[Hashable]) -> None:
        """Use the arrays that are given next; of streams these are always fresh."""
        for key in self._kept.keys() & keys:
            del self._kept[key]

    def release(self, keys: set[Hashable]) -> None:
        """As `forget`: the arrays are their owners'."""
        self.forget(keys)

    def close(self) -> None:
        """Release the buffers."""
        self._kept.clear()


class DeviceMemory(Memory):
    """Buffers on a discrete device, one for each value, kept for the next batch."""

    def __init__(self, device: Device, budget_bytes: int) -> None:
        self._device = device
        self._arena = DeviceArena(device, staging=Staging(device, staging_bytes(budget_bytes)))
        self._buffers: dict[Hashable, cl.Buffer] = {}
        self._current: set[Hashable] = set()

    def _room(self, key: Hashable, size_bytes: int) -> cl.Buffer:
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < size_bytes:
            if buffer is not None:
                self._arena.give(self._buffers.pop(key))
            buffer = self._buffers[key] = self._arena.take(size_bytes)
        return buffer

    def input(self, key: Hashable, array: np.ndarray, *, fresh: bool) -> cl.Buffer:
        """Upload the array, unless the value is on the device already."""
        if key in self._current:
            return self._buffers[key]
        buffer = self._room(key, array.nbytes)
        self._arena.upload(np.ascontiguousarray(array), buffer, self._device.queue)
        # What a batch has uploaded stays for its later kernels, until `forget`.
        if not fresh or isinstance(key, int):
            self._current.add(key)
        return buffer

    def output(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """Room on the device; later kernels of this batch find the value there."""
        buffer = self._room(key, array.nbytes)
        self._current.add(key)
        return buffer

    def state(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """A buffer of its own, filled when first asked for."""
        return self.input(key, array, fresh=False)

    def finish(self, outputs: Sequence[cl.Buffer]) -> None:  # noqa: ARG002 - nothing to map
        """Wait."""
        self._device.queue.finish()

    def fetch(self, key: Hashable, array: np.ndarray) -> None:
        """Download the value."""
        self._arena.download(self._buffers[key], array)

    def forget(self, keys: set[Hashable]) -> None:
        """Upload these anew when they are asked for again."""
        self._current -= keys

    def release(self, keys: set[Hashable]) -> None:
        """Give their buffers back to the device."""
        self.forget(keys)
        for key in self._buffers.keys() & keys:
            self._arena.give(self._buffers.pop(key))
        self._arena.release_waiting()

    def close(self) -> None:
        """Release the buffers."""
        self._arena.close()
        self._buffers.clear()
        self._current.clear()
