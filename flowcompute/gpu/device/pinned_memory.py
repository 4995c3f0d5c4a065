"""Pinned host memory: what a discrete device reads and writes by itself, at the speed of the bus."""

from __future__ import annotations

import ctypes
import mmap
import threading
import weakref
from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowcompute.elements import owner_of, share_block
from flowcompute.errors import RunError
from flowcompute.gpu.device._cl import cl
from flowcompute.strategy import default_memory_bytes

KEPT_BYTES = max(512 << 20, min(2 << 30, default_memory_bytes() // 16))
"""What stays pinned for the next run, at most: pinning takes some ten times as long as filling.

A stream from file to file has three batches of 64 or 128 MiB at either end, and what transfers go through.
"""

_ROOMIER = 1.5
"""A block that waits is taken for less than it has, up to this factor."""


@dataclass(frozen=True, eq=False)
class _Block:
    """Memory that stays pinned as long as the buffer that lies in it."""

    array: np.ndarray
    buffer: cl.Buffer

    @property
    def start(self) -> int:
        """Its address."""
        return self.array.ctypes.data

    def size(self) -> int:
        """In bytes."""
        return self.array.nbytes


class PinnedMemory:
    """Blocks of pinned memory of one context, which are handed out again.

    Args:
        context: of the device.

    Attributes:
        lent_bytes: bytes lent out now.
        free_bytes: bytes that wait for the next borrower.
    """

    def __init__(self, context: cl.Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._free: list[_Block] = []
        self._lent: dict[int, tuple[_Block, int]] = {}
        self._starts: list[int] = []
        self._in_place: dict[tuple[int, int], tuple[cl.Buffer, int]] = {}
        self._lasting: dict[tuple[int, int], cl.Buffer | None] = {}
        self.lent_bytes = 0
        self.free_bytes = 0

    def take(self, size_bytes: int) -> np.ndarray:
        """So many bytes, with anything in them; they begin on a page.

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
        """Hand back what `take` gave. The blocks that waited longest make room for it."""
        with self._lock:
            block, size_bytes = self._lent.pop(array.ctypes.data)
            self._starts.remove(block.start)
            self.lent_bytes -= size_bytes
            if block.array.nbytes > KEPT_BYTES:
                return
            while self.free_bytes + block.array.nbytes > KEPT_BYTES:
                self.free_bytes -= self._free.pop(0).array.nbytes
            self._free.append(block)
            self.free_bytes += block.array.nbytes

    def _fitting(self, size_bytes: int) -> _Block | None:
        """The smallest block that waits and has room for so many bytes, if it has not much more."""
        sizes = range(size_bytes, int(size_bytes * _ROOMIER) + 1)
        return min((one for one in self._free if one.array.nbytes in sizes), key=_Block.size, default=None)

    def pin(self, array: np.ndarray) -> bool:
        """Pin an array where it lies, until `unpin` was called as often; False where that is not possible.

        Args:
            array: C-contiguous; it may be read and changed as before.
        """
        # The memory of mapped files is pinned by no driver, and some do not say so.
        if not array.nbytes or _is_mapped(array):
            return False
        if self._lasts(*_bounds(array)):
            # Pinned twice, it would be let go when the first of them is.
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
        """Whether an array lies in a block that is lent out, or in what was pinned in place or asked to be."""
        first, last = _bounds(array)
        with self._lock:
            # Asked for every array of every batch: of blocks, which lie apart, only one can hold it.
            before = bisect_right(self._starts, first)
            if before and last <= self._starts[before - 1] + self._lent[self._starts[before - 1]][1]:
                return True
            if any(start <= first and last <= start + size for start, size in self._in_place):
                return True
        return self._lasts(first, last)

    def _lasts(self, first: int, last: int) -> bool:
        """Whether bytes lie in an array that is to be pinned, asked for or by another device; from now on it is."""
        owner = owner_of(first, last)
        if owner is None or any(owner is block.array for block in self._own()):
            return False
        return self._pin_for_life(owner)

    def _own(self) -> list[_Block]:
        with self._lock:
            return [*self._free, *(block for block, _ in self._lent.values())]

    def _pin_for_life(self, owner: np.ndarray) -> bool:
        """Pin an array until it is gone; False where the driver does not."""
        place = _place(owner)
        with self._lock:
            if place not in self._lasting:
                # A buffer keeps the array alive that it is made of: this one only knows where it lies.
                memory = (ctypes.c_char * owner.nbytes).from_address(place[0])
                try:
                    self._lasting[place] = self._buffer_in(memory)
                except cl.Error:
                    self._lasting[place] = None
                # Arrays may end anywhere, also where the lock is held.
                weakref.finalize(owner, self._lasting.pop, place, None).atexit = False
            return self._lasting[place] is not None

    def _pinned(self, size_bytes: int) -> _Block:
        # Ordinary memory that is pinned afterwards: NVIDIA's driver takes 2.6 times as long to make some of its own.
        raw = np.empty(size_bytes + mmap.PAGESIZE, np.uint8)
        skip = -raw.ctypes.data % mmap.PAGESIZE
        array = raw[skip : skip + size_bytes]
        try:
            block = _Block(array, self._buffer_in(array))
            share_block(array)
            return block
        except cl.Error as error:
            raise RunError(
                f"the driver pins no {size_bytes} bytes of host memory more: {error}",
                got=f"{self.lent_bytes} bytes pinned and in use",
                hint="take smaller batches: strategy=fc.Strategy(batch_bytes=...), or fewer at a time: depth=",
            ) from error

    def _buffer_in(self, memory: Any) -> cl.Buffer:
        """A buffer that keeps memory pinned where it lies."""
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=memory)


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """The first byte of an array, and the one behind its last."""
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
