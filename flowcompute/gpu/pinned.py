"""Pinned host memory: what a discrete device reads and writes by itself, at the speed of the bus."""

from __future__ import annotations

import mmap
import threading
from bisect import bisect_right, insort
from collections import defaultdict
from typing import Any

import numpy as np

from flowcompute.errors import RunError
from flowcompute.gpu._cl import cl

KEPT_BYTES = 512 << 20
"""What stays pinned for the next run, at most: pinning takes some ten times as long as filling."""


class PinnedMemory:
    """Blocks of pinned memory of one context, which are handed out again.

    Args:
        context: of the device.
        queue: to map blocks with.

    Attributes:
        lent_bytes: bytes lent out now.
        free_bytes: bytes that wait for the next borrower.
    """

    def __init__(self, context: cl.Context, queue: cl.CommandQueue) -> None:
        self._context = context
        self._queue = queue
        self._lock = threading.Lock()
        self._free: dict[int, list[np.ndarray]] = defaultdict(list)
        self._lent: dict[int, np.ndarray] = {}
        self._starts: list[int] = []
        self._in_place: dict[tuple[int, int], tuple[cl.Buffer, int]] = {}
        self.lent_bytes = 0
        self.free_bytes = 0

    def take(self, size_bytes: int) -> np.ndarray:
        """So many bytes, with anything in them; they begin on a page.

        Raises:
            RunError: if the driver pins no more.
        """
        with self._lock:
            free = self._free[size_bytes]
            if free:
                array = free.pop()
                self.free_bytes -= size_bytes
            else:
                array = self._pinned(size_bytes)
            self._lent[array.ctypes.data] = array
            insort(self._starts, array.ctypes.data)
            self.lent_bytes += size_bytes
            return array

    def give(self, array: np.ndarray) -> None:
        """Hand back what `take` gave."""
        with self._lock:
            array = self._lent.pop(array.ctypes.data)
            self._starts.remove(array.ctypes.data)
            self.lent_bytes -= array.nbytes
            if self.free_bytes + array.nbytes <= KEPT_BYTES:
                self._free[array.nbytes].append(array)
                self.free_bytes += array.nbytes

    def pin(self, array: np.ndarray) -> bool:
        """Pin an array where it lies, until `unpin` was called as often; False where that is not possible.

        Args:
            array: C-contiguous; it may be read and changed as before.
        """
        # The memory of mapped files is pinned by no driver, and some do not say so.
        if not array.nbytes or _is_mapped(array):
            return False
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
        place = _place(array)
        with self._lock:
            buffer, count = self._in_place.get(place, (None, 0))
            try:
                self._in_place[place] = buffer or cl.Buffer(self._context, flags, hostbuf=array), count + 1
            except cl.Error:
                # What is not pinned is copied to what is.
                return False
        return True

    def unpin(self, array: np.ndarray) -> None:
        """Let go of what `pin` has pinned; nobody reads it any more."""
        with self._lock:
            buffer, count = self._in_place.pop(_place(array))
            if count > 1:
                self._in_place[_place(array)] = buffer, count - 1

    def holds(self, array: np.ndarray) -> bool:
        """Whether an array lies in a block that is lent out, or in what was pinned in place."""
        if array.flags.c_contiguous:
            first = array.__array_interface__["data"][0]
            last = first + array.nbytes
        else:
            first, last = np.lib.array_utils.byte_bounds(array)
        with self._lock:
            # Asked for every array of every batch: of blocks, which lie apart, only one can hold it.
            before = bisect_right(self._starts, first)
            if before and last <= self._starts[before - 1] + self._lent[self._starts[before - 1]].nbytes:
                return True
            return any(start <= first and last <= start + size for start, size in self._in_place)

    def _pinned(self, size_bytes: int) -> np.ndarray:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        try:
            buffer = cl.Buffer(self._context, flags, size_bytes)
            # The array keeps the mapping alive, and the mapping the buffer.
            mapped: Any = cl.enqueue_map_buffer(
                self._queue, buffer, access, 0, (size_bytes,), np.dtype(np.uint8), is_blocking=True
            )
        except cl.Error as error:
            raise RunError(
                f"the driver pins no {size_bytes} bytes of host memory more: {error}",
                got=f"{self.lent_bytes} bytes pinned and in use",
                hint="take smaller batches: strategy=fc.Strategy(batch_bytes=...), or fewer at a time: depth=",
            ) from error
        array: np.ndarray = mapped[0]
        return array


def _place(array: np.ndarray) -> tuple[int, int]:
    return array.ctypes.data, array.nbytes


def _is_mapped(array: np.ndarray) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return isinstance(owner, mmap.mmap)
