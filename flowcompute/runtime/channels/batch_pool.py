"""Host buffers of a pass: aligned, allocated once, lent and given back.

A buffer is also the credit of its bytes. A stage takes it before it makes its output, it travels
with the batch, and it returns when the last consumer is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from flowcompute.batch import ALIGNMENT, aligned_array
from flowcompute.errors import RunError
from flowcompute.imports import LateModule

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")

Room = Callable[[int], np.ndarray | None]
"""Gives so many bytes of memory that is better than any, or None; it stays its own."""


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype, room: Room) -> np.ndarray:
    """Return an uninitialised C-contiguous array whose first byte lies on a multiple of `ALIGNMENT`."""
    size = math.prod(shape) * dtype.itemsize
    raw = room(size) if size else None
    if raw is None:
        return aligned_array(shape, dtype)
    skip = -raw.ctypes.data % ALIGNMENT
    return raw[skip : skip + size].view(dtype).reshape(shape)


class MemoryTracker:
    """Counts the bytes that a run holds in its own buffers and in results that grow.

    Args:
        room_bytes: what results of unknown length may take together.

    Attributes:
        held_bytes: bytes held now.
        peak_bytes: the most that were held at a time. The slack of alignment, less than
            `ALIGNMENT` bytes a buffer, is not counted.
        lent: buffers lent out now.
    """

    def __init__(self, room_bytes: int) -> None:
        self.held_bytes = 0
        self.peak_bytes = 0
        self.lent = 0
        self._room_bytes = room_bytes
        self._kept_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Count an allocation."""
        self.held_bytes += size_bytes
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)

    def give(self, size_bytes: int) -> None:
        """Count a release."""
        self.held_bytes -= size_bytes

    def keep(self, size_bytes: int) -> None:
        """Count bytes added to a result in memory whose length nobody knew beforehand.

        Raises:
            RunError: if such results would outgrow the budget.
        """
        if self._kept_bytes + size_bytes > self._room_bytes:
            raise RunError(
                "cannot keep the result: it outgrows the memory budget",
                expected=f"at most {self._room_bytes} bytes beside the buffers of the run",
                got=f"{self._kept_bytes + size_bytes} bytes and more to come",
                hint="write it to a file: x >> fc.save(path); or raise memory=",
            )
        self._kept_bytes += size_bytes
        self.take(size_bytes)


class SharedBuffer:
    """A lent buffer, which counts its holders. `array` is whole; the borrower cuts it to the records of the batch.

    Attributes:
        array: the buffer.
        holders: consumers that have not released it yet.
    """

    __slots__ = ("_pool", "array", "holders")

    def __init__(self, pool: Pool, array: np.ndarray) -> None:
        self.array = array
        self.holders = 0
        self._pool = pool

    def release(self) -> None:
        """Note that one holder is done; the last one gives the buffer back."""
        assert self.holders > 0, "released more often than held"
        self.holders -= 1
        if not self.holders:
            self._pool.give_back(self)


class Pool:
    """The buffers of one edge: at most `count` of `items` records each, made when first needed.

    Only used from the trio thread, by one borrower; its numbers may be read from any.

    Args:
        tracker: counts its bytes.
        count, items, item_shape, dtype: of the buffers.
        room: where their memory comes from.

    Attributes:
        count: as given.
        peak_bytes: the most that its buffers took.
    """

    def __init__(
        self,
        tracker: MemoryTracker,
        count: int,
        items: int,
        item_shape: tuple[int, ...],
        dtype: np.dtype,
        room: Room = lambda _: None,
    ) -> None:
        self._tracker = tracker
        self._shape = (items, *item_shape)
        self._dtype = dtype
        self._room = room
        self.count = count
        self.peak_bytes = 0
        self._made: list[SharedBuffer] = []
        self._free: list[SharedBuffer] = []
        self._waiting = trio.lowlevel.ParkingLot()

    def acquire_nowait(self) -> SharedBuffer | None:
        """Return a buffer held once, or None when all are lent."""
        if self._free:
            buffer = self._free.pop()
        elif len(self._made) < self.count:
            buffer = SharedBuffer(self, aligned_empty(self._shape, self._dtype, self._room))
            self._made.append(buffer)
            self._tracker.take(buffer.array.nbytes)
            self.peak_bytes += buffer.array.nbytes
        else:
            return None
        buffer.holders = 1
        self._tracker.lent += 1
        return buffer

    @property
    def is_free(self) -> bool:
        """True where a buffer need not be waited for."""
        return bool(self._free) or len(self._made) < self.count

    async def acquire(self) -> SharedBuffer:
        """Return a buffer held once, as soon as one is free."""
        while (buffer := self.acquire_nowait()) is None:
            await self._waiting.park()
        return buffer

    def give_back(self, buffer: SharedBuffer) -> None:
        """Take a buffer back; called when its last holder is done."""
        self._tracker.lent -= 1
        self._free.append(buffer)
        self._waiting.unpark()

    @property
    def lent(self) -> int:
        """Buffers that are in use now."""
        return max(len(self._made) - len(self._free), 0)

    def close(self) -> None:
        """Let go of all buffers; none may be lent any more."""
        assert len(self._free) == len(self._made), "a buffer is still lent"
        for buffer in self._made:
            self._tracker.give(buffer.array.nbytes)
        self._made.clear()
        self._free.clear()
