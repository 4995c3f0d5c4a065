"""Buffers of kernels: host arrays used in place, and device memory that is handed out again and again."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from flowcompute.errors import DeviceFullError
from flowcompute.gpu.device import ROOM, SMALLER, Device, cl

SMALLEST_BYTES = 256
"""The smallest piece of device memory; also what stands for an array without items, which OpenCL cannot have."""


_INVALID_HOST_PTR = -37


class HostBuffers:
    """Buffers of a device in the host's memory that are NumPy arrays: nothing is uploaded or downloaded.

    Arrays are C-contiguous and aligned to their items, no more; pages of a mapped file may be
    read. A buffer keeps its array alive, but OpenCL keeps neither alive for a kernel's arguments: hold buffers
    until the kernel has finished.
    """

    def __init__(self, device: Device) -> None:
        assert device.capabilities.host_memory
        self._device = device
        self._nothing: cl.Buffer | None = None

    def input(self, array: np.ndarray) -> cl.Buffer:
        """A buffer that kernels read; the array may be read-only."""
        try:
            return self._buffer(array, cl.mem_flags.READ_ONLY)
        except cl.Error as error:
            if error.code != _INVALID_HOST_PTR:
                raise
            # Some drivers of GPUs take the pages of mapped files only as a copy.
            return cl.Buffer(
                self._device.context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=as_bytes(array)
            )

    def output(self, array: np.ndarray) -> cl.Buffer:
        """A buffer that kernels read and write.

        Raises:
            ValueError: if the array is read-only.
        """
        return self._buffer(array, cl.mem_flags.READ_WRITE)

    def _buffer(self, array: np.ndarray, access: int) -> cl.Buffer:
        assert array.flags.c_contiguous
        assert array.flags.aligned
        if array.nbytes == 0:
            if self._nothing is None:
                self._nothing = cl.Buffer(self._device.context, cl.mem_flags.READ_WRITE, SMALLEST_BYTES)
            return self._nothing
        return cl.Buffer(self._device.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=as_bytes(array))

    def finish(self, outputs: Sequence[cl.Buffer]) -> None:
        """Wait for all kernels so far; then what they wrote to `outputs` can be read in the arrays.

        A driver may have worked on a copy: only mapping a buffer brings its content to the array
        (on PoCL it costs less than the spread of the wait).
        """
        queue = self._device.queue
        for buffer in outputs:
            if buffer is not self._nothing:
                mapped, _ = cl.enqueue_map_buffer(
                    queue, buffer, cl.map_flags.READ, 0, (buffer.size,), np.dtype(np.uint8), is_blocking=False
                )
                mapped.base.release(queue)
        queue.finish()


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The same memory as bytes: pyopencl takes no items of dtypes that NumPy itself does not know."""
    return array.reshape(-1).view(np.uint8)


def as_lines(array: np.ndarray) -> np.ndarray:
    """The bytes of an array in order, as lines `(lines, bytes)`: its own memory where numbers of a line are neighbours.

    Of a C-contiguous array that is one line; of others two axes may lie as they like.
    """
    if array.ndim == 2 and array.strides[1] == array.itemsize and not array.flags.c_contiguous:
        return array.view(np.uint8)
    return as_bytes(np.ascontiguousarray(array))[None]


def packed(lines: np.ndarray, start: int, target: np.ndarray) -> None:
    """Fill `target` with bytes of lines as if these followed each other, from the `start`-th on."""
    width, done = lines.shape[1], 0
    if len(lines) == 1:
        np.copyto(target, lines[0, start : start + len(target)])
        return
    while done < len(target):
        line, at = divmod(start + done, width)
        left = len(target) - done
        whole = 0 if at else left // width
        count = whole * width or min(width - at, left)
        if whole:
            np.copyto(target[done : done + count].reshape(whole, width), lines[line : line + whole])
        else:
            np.copyto(target[done : done + count], lines[line, at : at + count])
        done += count


def size_class(size_bytes: int) -> int:
    """Bytes that `DeviceArena` allocates for a buffer of this size: an eighth more at most, or 256 bytes."""
    if size_bytes <= SMALLEST_BYTES:
        return SMALLEST_BYTES
    step = 1 << max(8, (size_bytes - 1).bit_length() - 4)
    return -(-size_bytes // step) * step


class DeviceArena:
    """Memory of a discrete device: buffers that are given back are handed out again.

    Args:
        device: whose memory.
        limit_bytes: what may be allocated at a time; by default all that the device has.

    Attributes:
        allocated_bytes: bytes allocated now, lent out or waiting.
        lent_bytes: bytes lent out now.
        peak_bytes: the most that was allocated at a time.
    """

    def __init__(self, device: Device, limit_bytes: int | None = None) -> None:
        self._device = device
        self._limit_bytes = device.capabilities.memory_bytes if limit_bytes is None else limit_bytes
        self._lock = threading.Lock()
        self._waiting: dict[int, list[cl.Buffer]] = defaultdict(list)
        self._lent: dict[int, cl.Buffer] = {}
        self.allocated_bytes = 0
        self.lent_bytes = 0
        self.peak_bytes = 0

    def take(self, size_bytes: int) -> cl.Buffer:
        """A buffer of at least this size, with anything in it.

        Raises:
            DeviceFullError: if the limit or the device's memory does not suffice.
        """
        size = size_class(size_bytes)
        with self._lock:
            waiting = self._waiting[size]
            buffer = waiting.pop() if waiting else self._allocate(size)
            self._lent[buffer.int_ptr] = buffer
            self.lent_bytes += size
            return buffer

    def give(self, buffer: cl.Buffer) -> None:
        """Hand a buffer back; commands in an in-order queue may still be using it."""
        with self._lock:
            del self._lent[buffer.int_ptr]
            self._waiting[buffer.size].append(buffer)
            self.lent_bytes -= buffer.size

    def _allocate(self, size: int) -> cl.Buffer:
        if self.allocated_bytes + size > self._limit_bytes:
            self._release_waiting()
        if self.allocated_bytes + size > self._limit_bytes:
            raise self._full(size, f"the limit is {self._limit_bytes} bytes")
        try:
            buffer = cl.Buffer(self._device.context, cl.mem_flags.READ_WRITE, size)
        except cl.Error as first:
            if first.code not in ROOM:
                raise
            self._release_waiting()
            try:
                buffer = cl.Buffer(self._device.context, cl.mem_flags.READ_WRITE, size)
            except cl.Error as error:
                raise self._full(size, str(error)) from error
        self.allocated_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
        return buffer

    def _full(self, size: int, why: str) -> DeviceFullError:
        return DeviceFullError(
            f"device {self._device.capabilities.name} has no room for a buffer of {size} bytes",
            got=f"{self.lent_bytes} bytes in use; {why}",
            hint=SMALLER,
        )

    def _release_waiting(self) -> None:
        # Dropped, not released: asking a released buffer for anything ends the process.
        self.allocated_bytes -= sum(size * len(buffers) for size, buffers in self._waiting.items())
        self._waiting.clear()

    def release_waiting(self) -> None:
        """Give memory that nobody has back to the device."""
        with self._lock:
            self._release_waiting()

    def close(self) -> None:
        """Release every buffer; harmless when called twice."""
        with self._lock:
            self._release_waiting()
            self._lent.clear()
            self.allocated_bytes -= self.lent_bytes
            self.lent_bytes = 0
