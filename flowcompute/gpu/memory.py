"""Where kernels find their arrays: in place on host devices, in buffers of their own on discrete ones."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from flowcompute.gpu._cl import cl


class Memory(Protocol):
    """Gives kernels the buffers of arrays in host memory."""

    def input(self, key: object, array: np.ndarray, fresh: bool) -> Any:
        """A buffer with the content of `array`; `fresh` says that it may have changed since last asked."""

    def output(self, key: object, array: np.ndarray) -> Any:
        """A buffer that a kernel fills and `fetch` brings back to `array`."""

    def fetch(self, key: object, array: np.ndarray) -> None:
        """After the kernel has finished: make its results visible in `array`."""

    def close(self) -> None:
        """Release every buffer."""


def _usable(array: np.ndarray) -> bool:
    return array.flags.c_contiguous and array.ctypes.data % max(1, array.itemsize) == 0


class HostMemory:
    """Buffers that are the arrays themselves: nothing is uploaded or downloaded."""

    def __init__(self, context: Any, queue: Any) -> None:
        self._context = context
        self._queue = queue
        self._nothing = cl.Buffer(context, cl.mem_flags.READ_WRITE, 128)
        self._kept: dict[object, Any] = {}

    def input(self, key: object, array: np.ndarray, fresh: bool) -> Any:
        """The array itself; a misaligned or strided one is copied first."""
        if not array.nbytes:
            return self._nothing
        if not fresh and key in self._kept:
            return self._kept[key]
        usable = array if _usable(array) else np.array(array, order="C")
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
        buffer = cl.Buffer(self._context, flags, hostbuf=usable)
        if not fresh:
            self._kept[key] = buffer
        return buffer

    def output(self, key: object, array: np.ndarray) -> Any:
        """The array itself."""
        del key
        if not array.nbytes:
            return self._nothing
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=array)

    def fetch(self, key: object, array: np.ndarray) -> None:
        """Nothing to do: the array was computed in place."""

    def close(self) -> None:
        """Release the buffers."""
        self._kept.clear()


class DeviceMemory:
    """Buffers on a discrete device, one for each value, made once at the largest size seen."""

    def __init__(self, context: Any, queue: Any) -> None:
        self._context = context
        self._queue = queue
        self._buffers: dict[object, Any] = {}
        self._current: set[object] = set()

    def _room(self, key: object, size_bytes: int) -> Any:
        buffer = self._buffers.get(key)
        if buffer is None or buffer.size < size_bytes:
            if buffer is not None:
                buffer.release()
            buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(size_bytes, 128))
            self._buffers[key] = buffer
        return buffer

    def input(self, key: object, array: np.ndarray, fresh: bool) -> Any:
        """Upload the array, unless an earlier kernel left the value on the device."""
        if key in self._current:
            return self._buffers[key]
        buffer = self._room(key, array.nbytes)
        if array.nbytes:
            cl.enqueue_copy(self._queue, buffer, np.ascontiguousarray(array), is_blocking=True)
        if not fresh:
            self._current.add(key)
        return buffer

    def output(self, key: object, array: np.ndarray) -> Any:
        """Room on the device."""
        return self._room(key, array.nbytes)

    def fetch(self, key: object, array: np.ndarray) -> None:
        """Download the value."""
        if array.nbytes:
            cl.enqueue_copy(self._queue, array, self._buffers[key], is_blocking=True)

    def keep(self, key: object) -> None:
        """The value is on the device: later kernels of this batch need no upload."""
        self._current.add(key)

    def forget(self, keys: set[object]) -> None:
        """These values belong to a batch that is over."""
        self._current -= keys

    def close(self) -> None:
        """Release the buffers."""
        for buffer in self._buffers.values():
            buffer.release()
        self._buffers.clear()
        self._current.clear()
