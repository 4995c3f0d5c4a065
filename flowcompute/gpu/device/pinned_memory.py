"""Pinned host memory, which a discrete device reads and writes by itself at the speed of the bus."""

from __future__ import annotations

import ctypes
import mmap
import threading
import weakref
from bisect import bisect_right, insort
from typing import Any

import numpy as np

from flowcompute.elements import owner_of, share_block
from flowcompute.errors import RunError
from flowcompute.gpu.device._cl import cl
from flowcompute.imports import dataclass
from flowcompute.strategy import default_memory_bytes

MAX_FREE_BYTES = max(512 << 20, min(2 << 30, default_memory_bytes() // 16))
"""Most bytes that stay pinned for the next run, since pinning takes about ten times as long as filling.

A stream from file to file has three batches of 64 or 128 MiB at either end, and the blocks of transfers.
"""

_MAX_SIZE_RATIO = 1.5
"""A free block is taken for a request that is smaller by up to this factor."""


@dataclass(frozen=True, eq=False)
class _Block:
    """Memory that stays pinned as long as the buffer that lies in it."""

    array: np.ndarray
    buffer: cl.Buffer

    @property
    def start(self) -> int:
        """Address of the first byte."""
        return self.array.ctypes.data

    def size(self) -> int:
        """Return its bytes."""
        return self.array.nbytes


class PinnedMemory:
    """Reusable blocks of pinned memory of one context.

    Args:
        context: of the device.

    Attributes:
        lent_bytes: bytes in use now.
        free_bytes: bytes free for reuse.
    """

    def __init__(self, context: cl.Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._free: list[_Block] = []
        self._lent: dict[int, tuple[_Block, int]] = {}
        self._starts: list[int] = []
        self._in_place: dict[tuple[int, int], tuple[cl.Buffer, int]] = {}
        self._pinned_arrays: dict[tuple[int, int], cl.Buffer | None] = {}
        self.lent_bytes = 0
        self.free_bytes = 0

    def take(self, size_bytes: int) -> np.ndarray:
        """Return so many bytes with undefined contents. They begin on a page.

        Raises:
            RunError: if the driver pins no more.
        """
        with self._lock:
            block = self._fitting(size_bytes)
            if block is None:
                block = self._pinned(size_bytes)
            else:
                self._free.remove(block)
                self.free_bytes -= block.array.nbytes
            self._lent[block.start] = block, size_bytes
            insort(self._starts, block.start)
            self.lent_bytes += size_bytes
            return block.array[:size_bytes]

    def give(self, array: np.ndarray) -> None:
        """Give back an array of `take`. The blocks that were free longest are released to make room for it."""
        with self._lock:
            block, size_bytes = self._lent.pop(array.ctypes.data)
            self._starts.remove(block.start)
            self.lent_bytes -= size_bytes
            if block.array.nbytes > MAX_FREE_BYTES:
                return
            while self.free_bytes + block.array.nbytes > MAX_FREE_BYTES:
                self.free_bytes -= self._free.pop(0).array.nbytes
            self._free.append(block)
            self.free_bytes += block.array.nbytes

    def _fitting(self, size_bytes: int) -> _Block | None:
        """Return the smallest free block with so many bytes, unless it is much larger, or None."""
        sizes = range(size_bytes, int(size_bytes * _MAX_SIZE_RATIO) + 1)
        return min((one for one in self._free if one.array.nbytes in sizes), key=_Block.size, default=None)

    def pin(self, array: np.ndarray) -> bool:
        """Pin an array where it lies, until `unpin` was called as often. Return False where that is not possible.

        Args:
            array: C-contiguous; it may be read and changed as before.
        """
        # No driver pins the memory of mapped files, and some report no error.
        if not array.nbytes or _is_mapped(array):
            return False
        if self._is_in_pinned_array(*_bounds(array)):
            # An array that is pinned twice would be unpinned with the first of them.
            return False
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
        place = _place(array)
        with self._lock:
            buffer, count = self._in_place.get(place, (None, 0))
            try:
                self._in_place[place] = buffer or cl.Buffer(self._context, flags, hostbuf=array), count + 1
            except cl.Error:
                # An array that is not pinned is copied to pinned memory.
                return False
        return True

    def unpin(self, array: np.ndarray) -> None:
        """Unpin an array of `pin`. The device must have finished reading it."""
        with self._lock:
            buffer, count = self._in_place.pop(_place(array))
            if count > 1:
                self._in_place[_place(array)] = buffer, count - 1

    def holds(self, array: np.ndarray) -> bool:
        """Check whether an array lies in a block in use, or in an array that was pinned in place or is to be."""
        first, last = _bounds(array)
        with self._lock:
            # This is called for every array of every batch. Blocks do not overlap, so only one can hold it.
            before = bisect_right(self._starts, first)
            if before and last <= self._starts[before - 1] + self._lent[self._starts[before - 1]][1]:
                return True
            if any(start <= first and last <= start + size for start, size in self._in_place):
                return True
        return self._is_in_pinned_array(first, last)

    def _is_in_pinned_array(self, first: int, last: int) -> bool:
        """Check whether bytes lie in an array that the user or another device had pinned. If so, pin it now."""
        owner = owner_of(first, last)
        if owner is None or any(owner is block.array for block in self._own()):
            return False
        return self._pin_while_alive(owner)

    def _own(self) -> list[_Block]:
        with self._lock:
            return [*self._free, *(block for block, _ in self._lent.values())]

    def _pin_while_alive(self, owner: np.ndarray) -> bool:
        """Pin an array until it is freed. Return False where the driver does not."""
        place = _place(owner)
        with self._lock:
            if place not in self._pinned_arrays:
                # A buffer keeps alive the array that it is made of. This one therefore knows only the address.
                memory = (ctypes.c_char * owner.nbytes).from_address(place[0])
                try:
                    self._pinned_arrays[place] = self._buffer_in(memory)
                except cl.Error:
                    self._pinned_arrays[place] = None
                # Arrays may be freed anywhere, also where the lock is held.
                weakref.finalize(owner, self._pinned_arrays.pop, place, None).atexit = False
            return self._pinned_arrays[place] is not None

    def _pinned(self, size_bytes: int) -> _Block:
        # Ordinary memory is pinned after its allocation: NVIDIA's driver takes 2.6 times as long to allocate its own.
        raw = np.empty(size_bytes + mmap.PAGESIZE, np.uint8)
        skip = -raw.ctypes.data % mmap.PAGESIZE
        array = raw[skip : skip + size_bytes]
        try:
            block = _Block(array, self._buffer_in(array))
            share_block(array)
            return block
        except cl.Error as error:
            raise RunError(
                f"cannot pin {size_bytes} more bytes of host memory: {error}",
                got=f"{self.lent_bytes} bytes pinned and in use",
                hint="take smaller batches: strategy=fc.Strategy(batch_bytes=...), or fewer at a time: depth=",
            ) from error

    def _buffer_in(self, memory: Any) -> cl.Buffer:
        """Return a buffer that keeps memory pinned where it lies."""
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=memory)


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """Return the addresses of an array's first byte and of the byte behind its last one."""
    if array.flags.c_contiguous:
        first: int = array.__array_interface__["data"][0]
        return first, first + array.nbytes
    return np.lib.array_utils.byte_bounds(array)


def _place(array: np.ndarray) -> tuple[int, int]:
    return array.ctypes.data, array.nbytes


def _is_mapped(array: np.ndarray) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    return isinstance(owner, mmap.mmap)
