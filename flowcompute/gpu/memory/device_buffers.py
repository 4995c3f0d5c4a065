"""Buffers of kernels: host arrays used in place, and device memory that is reused."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from flowcompute.errors import DeviceFullError
from flowcompute.gpu.device import ROOM, SMALLER, Device, cl

SMALLEST_BYTES = 256
"""Smallest size of a buffer. An array without items has one of this size, since OpenCL has no empty buffers."""


_INVALID_HOST_PTR = -37


class HostBuffers:
    """Buffers in the host's memory that are NumPy arrays: nothing is uploaded or downloaded.

    Arrays are C-contiguous and aligned to their items only. Kernels may read pages of a mapped file. A buffer
    keeps its array alive. OpenCL does not keep the arguments of a kernel alive: hold buffers until the kernel
    has finished.
    """

    def __init__(self, device: Device) -> None:
        assert device.capabilities.host_memory
        self._device = device
        self._context: cl.Context | None = None
        self._nothing: cl.Buffer | None = None

    def input(self, array: np.ndarray) -> cl.Buffer:
        """Return a buffer that kernels read. The array may be read-only."""
        try:
            return self._buffer(array, cl.mem_flags.READ_ONLY)
        except cl.Error as error:
            if error.code != _INVALID_HOST_PTR:
                raise
            # Some GPU drivers accept the pages of mapped files only as a copy.
            return self._made(array, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR)

    def output(self, array: np.ndarray) -> cl.Buffer:
        """Return a buffer that kernels read and write.

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
        return self._made(array, access | cl.mem_flags.USE_HOST_PTR)

    def _made(self, array: np.ndarray, flags: int) -> cl.Buffer:
        if self._context is None:
            # Asking the device takes as long as making a buffer. A device that is given up is not used again.
            self._context = self._device.context
        # pyopencl accepts no items of dtypes that NumPy itself does not know.
        return cl.Buffer(self._context, flags, hostbuf=array if array.dtype.isbuiltin == 1 else as_bytes(array))

    def finish(self, outputs: Sequence[cl.Buffer]) -> None:
        """Wait for all kernels so far, and make their output visible in the arrays of `outputs`.

        A driver may have worked on a copy. Only mapping a buffer brings its content to the array. On PoCL that
        costs less than the variation of the wait.
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
    """Return the same memory as bytes."""
    return array.reshape(-1).view(np.uint8)


def as_lines(array: np.ndarray) -> np.ndarray:
    """Return the bytes of an array in order, as lines `(lines, bytes)`.

    The lines are the array's own memory where the numbers of a line are neighbours. A C-contiguous array is one
    line. In other arrays two axes may have any strides.
    """
    if array.ndim == 2 and array.strides[1] == array.itemsize and not array.flags.c_contiguous:
        return array.view(np.uint8)
    return as_bytes(np.ascontiguousarray(array))[None]


def copy_lines(lines: np.ndarray, start: int, target: np.ndarray) -> None:
    """Fill `target` with the bytes of lines, as if these followed each other, from byte `start`."""
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
    """Return the bytes that `DeviceArena` allocates for a buffer of this size.

    They are at most an eighth more, or 256 bytes.
    """
    if size_bytes <= SMALLEST_BYTES:
        return SMALLEST_BYTES
    step = 1 << max(8, (size_bytes - 1).bit_length() - 4)
    return -(-size_bytes // step) * step


class DeviceArena:
    """Memory of a discrete device. Buffers that are given back are reused.

    Args:
        device: the device.
        limit_bytes: largest number of bytes allocated at a time; by default all memory of the device.

    Attributes:
        allocated_bytes: bytes allocated now, in use or free for reuse.
        lent_bytes: bytes in use now.
        peak_bytes: the most bytes that were allocated at a time.
    """

    def __init__(self, device: Device, limit_bytes: int | None = None) -> None:
        self._device = device
        self._limit_bytes = device.capabilities.memory_bytes if limit_bytes is None else limit_bytes
        self._lock = threading.Lock()
        self._free: dict[int, list[cl.Buffer]] = defaultdict(list)
        self._lent: dict[int, cl.Buffer] = {}
        self.allocated_bytes = 0
        self.lent_bytes = 0
        self.peak_bytes = 0

    def take(self, size_bytes: int) -> cl.Buffer:
        """Return a buffer of at least this size. Its contents are undefined.

        Raises:
            DeviceFullError: if the limit or the device's memory does not suffice.
        """
        size = size_class(size_bytes)
        with self._lock:
            waiting = self._free[size]
            buffer = waiting.pop() if waiting else self._allocate(size)
            self._lent[buffer.int_ptr] = buffer
            self.lent_bytes += size
            return buffer

    def give(self, buffer: cl.Buffer) -> None:
        """Give a buffer back. Commands in an in-order queue may still be using it."""
        with self._lock:
            del self._lent[buffer.int_ptr]
            self._free[buffer.size].append(buffer)
            self.lent_bytes -= buffer.size

    def _allocate(self, size: int) -> cl.Buffer:
        if self.allocated_bytes + size > self._limit_bytes:
            self._release_free()
        if self.allocated_bytes + size > self._limit_bytes:
            raise self._full(size, f"the limit is {self._limit_bytes} bytes")
        try:
            buffer = cl.Buffer(self._device.context, cl.mem_flags.READ_WRITE, size)
        except cl.Error as first:
            if first.code not in ROOM:
                raise
            self._release_free()
            try:
                buffer = cl.Buffer(self._device.context, cl.mem_flags.READ_WRITE, size)
            except cl.Error as error:
                raise self._full(size, str(error)) from error
        self.allocated_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
        return buffer

    def _full(self, size: int, why: str) -> DeviceFullError:
        return DeviceFullError(
            f"cannot allocate a buffer of {size} bytes on device {self._device.capabilities.name}",
            got=f"{self.lent_bytes} bytes in use; {why}",
            hint=SMALLER,
        )

    def _release_free(self) -> None:
        # References are dropped and buffers not released: any call on a released buffer ends the process.
        self.allocated_bytes -= sum(size * len(buffers) for size, buffers in self._free.items())
        self._free.clear()

    def release_free(self) -> None:
        """Return free buffers to the device."""
        with self._lock:
            self._release_free()

    def close(self) -> None:
        """Release every buffer. Calling it twice does nothing."""
        with self._lock:
            self._release_free()
            self._lent.clear()
            self.allocated_bytes -= self.lent_bytes
            self.lent_bytes = 0
