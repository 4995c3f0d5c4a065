"""Rows on a discrete device, which takes memory for them as they are needed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from flowcompute.gpu.device import Device, cl
from flowcompute.gpu.memory.device_buffers import DeviceArena
from flowcompute.gpu.memory.kernel_memory import Memory, Rows
from flowcompute.gpu.memory.transfers import Transfers


class DeviceRows(Rows):
    """Rows in buffers that are replaced by larger ones; see `Rows`. What is in use is copied by the device.

    Args:
        memory, key, arrays: see `Rows`.
        device: the device.
        arena: gives the buffers.
        transfers: of the device.
    """

    grows = True

    def __init__(
        self,
        memory: Memory,
        key: Hashable,
        arrays: Sequence[np.ndarray],
        device: Device,
        arena: DeviceArena,
        transfers: Transfers,
    ) -> None:
        self._device, self._arena, self._transfers = device, arena, transfers
        self._buffers: list[cl.Buffer] = []
        self._is_there = False
        self._row_bytes = [array[0, :1].nbytes for array in arrays]
        super().__init__(memory, key, arrays)
        self.room = 0

    def make_room(self, room: int, used: Sequence[int]) -> None:
        """See `Rows.make_room`. For a moment there are both the old and the new buffers."""
        if room <= self.room:
            return
        old, queue = self._buffers, self._device.queue
        if old:
            self._memory.replaced()
        new: list[cl.Buffer] = []
        try:
            for array, size in zip(self._arrays, self._row_bytes, strict=True):
                new.append(self._arena.take(len(array) * room * size))
                # What is read behind the last row must be a number.
                cl.enqueue_fill_buffer(queue, new[-1], np.zeros(1, array.dtype), 0, len(array) * room * size)
            for part, text, rows in self._counting(used) if self._is_there else ():
                size = self._row_bytes[part]
                at, to, many = (one * size for one in (text * self.room, text * room, rows))
                cl.enqueue_copy(queue, new[part], old[part], byte_count=many, src_offset=at, dst_offset=to)
            # Another queue may get the memory of the old ones.
            queue.finish()
        except BaseException:
            with suppress(cl.Error):
                queue.finish()
            self._give(new)
            raise
        self._buffers, self.room = new, room
        self._give(old)

    def buffer(self, part: int, used: Sequence[int]) -> cl.Buffer:
        """See `Rows.buffer`."""
        if not self._is_there:
            for one, text, rows in self._counting(used):
                at = text * self.room * self._row_bytes[one]
                numbers = self._arrays[one][text, :rows]
                self._transfers.upload(numbers, self._buffers[one], self._device.queue, at_bytes=at)
            self._is_there = True
        return self._buffers[part]

    def move(self, moves: Sequence[tuple[int, int, int]], used: Sequence[int]) -> bool:
        """See `Rows.move`. Rows that would be copied over themselves go through the arrays."""
        if not self._is_there:
            return False
        if any(rows > row for _, row, rows in moves):
            return super().move(moves, used)
        for buffer, size in zip(self._buffers, self._row_bytes, strict=True):
            for text, row, rows in (one for one in moves if one[2]):
                at, to, many = (one * size for one in (text * self.room + row, text * self.room, rows))
                cl.enqueue_copy(self._device.queue, buffer, buffer, byte_count=many, src_offset=at, dst_offset=to)
        self._memory.defer(())
        return True

    def fetch(self, used: Sequence[int]) -> None:
        """See `Rows.fetch`."""
        for part, text, rows in self._counting(used) if self._is_there else ():
            at = text * self.room * self._row_bytes[part]
            numbers = self._arrays[part][text, :rows]
            self._transfers.download(self._buffers[part], numbers, self._device.queue, at_bytes=at)

    def forget(self) -> None:
        """See `Rows.forget`. Buffers stay."""
        self._is_there = False

    def close(self) -> None:
        """Give the buffers back."""
        buffers, self._buffers, self.room = self._buffers, [], 0
        self.forget()
        self._give(buffers)

    def _counting(self, used: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Return the rows that count: in which array, of which text, and how many."""
        for part in range(len(self._arrays)):
            yield from ((part, text, rows) for text, rows in enumerate(used) if rows)

    def _give(self, buffers: Sequence[cl.Buffer]) -> None:
        for buffer in buffers:
            self._arena.give(buffer)
        self._arena.release_free()
