"""Memory of kernels: arrays in place on host devices, separate buffers on discrete devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np

from flowcompute.gpu.device import ROOM, Device, cl
from flowcompute.gpu.memory.device_buffers import DeviceArena, HostBuffers
from flowcompute.gpu.memory.growing_rows import DeviceRows
from flowcompute.gpu.memory.kernel_memory import Memory
from flowcompute.gpu.memory.recording import Again, Fetch, Push, Recording
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.schedule.memory import BufferAssignment


def make_memory(device: Device, staging_bytes: int, device_bytes: int | None = None) -> Memory:
    """Make the memory that kernels of a device work on, with pinned memory and a budget of a discrete one."""
    return HostMemory(device) if device.capabilities.host_memory else DeviceMemory(device, staging_bytes, device_bytes)


class HostMemory(Memory):
    """Memory whose buffers are the arrays themselves: nothing is uploaded or downloaded."""

    in_place = True

    def __init__(self, device: Device) -> None:
        self._buffers = HostBuffers(device)
        self._kept: dict[Hashable, cl.Buffer] = {}
        self._deferred: list[Sequence[object]] = []
        self._last: cl.Event | None = None
        self._left: tuple[cl.Event, list[Sequence[object]]] | None = None

    def input(self, key: Hashable, array: np.ndarray, *, fresh: bool) -> cl.Buffer:
        """Return the array itself as a buffer. A strided or misaligned one is copied first."""
        if not fresh and key in self._kept:
            return self._kept[key]
        in_place = array.flags.c_contiguous and array.flags.aligned
        if not in_place:
            self.wait()
            array = np.array(array, order="C")
        buffer = self._buffers.input(array)
        if not fresh:
            self._kept[key] = buffer
        return buffer

    def output(self, key: Hashable, array: np.ndarray, *, late: bool = False) -> cl.Buffer:
        """Return the array itself as a buffer."""
        del key, late
        return self._buffers.output(array)

    def state(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """Return the array itself as a buffer."""
        return self.output(key, array)

    def finish(self, outputs: Sequence[cl.Buffer]) -> None:
        """Wait, and make the kernels' output visible in the arrays."""
        self._buffers.finish(outputs)
        self._deferred.clear()
        self._last = self._left = None

    def defer(self, held: Sequence[object], event: cl.Event | None = None) -> None:
        """Hold the buffers of a kernel in progress, which keep their arrays alive."""
        self._deferred.append(held)
        self._last = event or self._last

    def leave(self) -> None:
        """Leave kernels in progress, and wait for those that were left the last time, which the queue had before."""
        left, self._left = self._left, None if self._last is None else (self._last, self._deferred)
        self._last, self._deferred = None, []
        if left is not None:
            left[0].wait()

    def wait(self) -> None:
        """Wait for the kernels that were deferred: they work on the very bytes of the arrays."""
        if self._deferred or self._left is not None:
            self.finish(())

    def fetch(self, key: Hashable, array: np.ndarray) -> None:
        """Wait for the kernels that were deferred; the array was computed in place."""
        del key, array
        self.wait()

    def forget(self, keys: set[Hashable]) -> None:
        """Drop the buffers of these values, so that the next arrays are used. Arrays of streams are always fresh."""
        for key in self._kept.keys() & keys:
            del self._kept[key]

    def release(self, keys: set[Hashable]) -> None:
        """Drop the buffers of these values. The arrays belong to the caller."""
        self.forget(keys)

    def close(self) -> None:
        """Release the buffers."""
        self.wait()
        self._kept.clear()


class DeviceMemory(Memory):
    """Memory of a discrete device: one buffer for each value or group of values, kept for the next batch.

    Values that are uploaded ahead or downloaded late have one buffer for each slot. Each direction has its own
    queue.
    """

    records = rows_grow = True

    def __init__(self, device: Device, staging_bytes: int, device_bytes: int | None = None) -> None:
        self._device = device
        # A device that is lost gets new queues, which know nothing of the commands in these.
        self._on_host, self._uploads = device.pinned, device.upload_queue
        self._arena = DeviceArena(device, device_bytes)
        self._transfers = Transfers(device, staging_bytes)
        self._buffers: dict[Hashable, cl.Buffer] = {}
        self._reused: Mapping[Hashable, BufferAssignment] = {}
        self._current: dict[Hashable, cl.Buffer] = {}
        self._slots: dict[int, dict[Hashable, cl.Buffer]] = {}
        self._slot_values: dict[int, dict[Hashable, cl.Buffer]] = {}
        self._arriving: dict[int, dict[Hashable, cl.Event]] = {}
        self._pinned: dict[tuple[int, int], np.ndarray] = {}
        self._pinning = threading.Lock()
        self._slot = 0
        self._prefetched: dict[Hashable, tuple[np.ndarray, Future[None]]] = {}
        self._prefetcher: ThreadPoolExecutor | None = None
        self._pinned_rooms: list[np.ndarray] = []
        self._rows: dict[Hashable, DeviceRows] = {}
        self._is_deferred = False

    def reuse(self, buffers: Mapping[Hashable, BufferAssignment]) -> None:
        """Set which values share a buffer. Each buffer has room for its largest value from the beginning."""
        self._reused = buffers

    def _buffer(self, key: Hashable, array: np.ndarray, slot: int | None = None) -> cl.Buffer:
        buffers, size_bytes = self._buffers if slot is None else self._slots.setdefault(slot, {}), array.nbytes
        if (one := self._reused.get(key)) is not None:
            key, size_bytes = one, len(array) * one.item_bytes
        buffer = buffers.get(key)
        if buffer is None or buffer.size < size_bytes:
            if buffer is not None:
                # The plan counts only the larger buffer. Another queue may get the memory of this one.
                self.wait()
                self.replaced()
                self._arena.give(buffers.pop(key))
                self._arena.release_free()
            buffer = buffers[key] = self._arena.take(size_bytes)
        return buffer

    def expect(self, slot: int) -> None:
        """Empty a slot for the uploads of a coming batch."""
        self._slot_values[slot] = {}

    def upload(self, key: Hashable, array: np.ndarray, slot: int) -> None:
        """Copy a value to the device on a separate queue, while the next one is prepared."""
        buffer = self._buffer(key, array, slot)
        event = self._transfers.upload(array, buffer, self._uploads, lasting=True)
        if self.recording is not None:
            self.recording.uploaded(key, buffer)
        if event is not None:
            self._arriving.setdefault(slot, {})[key] = event
        self._slot_values[slot][key] = buffer

    def arrive(self, key: Hashable, slot: int) -> None:
        """Wait for the copy of a value."""
        event = self._arriving.get(slot, {}).pop(key, None)
        if event is not None:
            event.wait()

    def is_pinned(self, array: np.ndarray) -> bool:
        """Check whether an array lies in pinned memory, as a whole or in separate lines."""
        return self._on_host.holds(array)

    def pin(self, array: np.ndarray) -> None:
        """Pin the array where it lies."""
        place = array.ctypes.data, array.nbytes
        with self._pinning:
            if place not in self._pinned and self._on_host.pin(array):
                self._pinned[place] = array

    def prefetch(self, key: Hashable, array: np.ndarray, pinned: np.ndarray | None = None) -> None:
        """Upload in a separate thread, which pins memory while the device reads."""
        if self._prefetcher is None:
            self._prefetcher = ThreadPoolExecutor(1, thread_name_prefix="flowcompute-prefetch")
        buffer = self._buffer(key, array)
        self._refuse_to_record()

        def upload() -> None:
            event = self._transfers.upload(array, buffer, self._uploads, lasting=True)
            if pinned is not None:
                self.pin(pinned)
            if event is not None:
                event.wait()

        self._prefetched[key] = (array, self._prefetcher.submit(upload))

    def begin(self, slot: int) -> None:
        """Use the values that were uploaded into a slot or left there."""
        self._slot = slot
        self._current.update(self._slot_values[slot])

    def input(self, key: Hashable, array: np.ndarray, *, fresh: bool) -> cl.Buffer:
        """Upload the array, unless the value is on the device already."""
        if key in self._current:
            return self._current[key]
        if key in self._prefetched:
            expected, there = self._prefetched.pop(key)
            there.result()
            if expected is array:
                return self._buffers[key]
        buffer = self._buffer(key, array)
        self._transfers.upload(array, buffer, self._device.queue)
        if self.recording is not None:
            self.recording.uploaded(key, buffer)
        # Values that a batch has uploaded stay for its later kernels, until `forget`.
        if not fresh or isinstance(key, int):
            self._current[key] = buffer
        return buffer

    def input_parts(self, key: Hashable, array: np.ndarray, places: np.ndarray) -> cl.Buffer:
        """Upload these parts of the array, and nothing else. Neighbours are uploaded together."""
        if key in self._prefetched:
            # Something else was expected, as before a batch that is begun again.
            self._prefetched.pop(key)[1].result()
        buffer, part_bytes = self._buffer(key, array), array.nbytes // len(array)
        self._refuse_to_record()
        asked = np.unique(places)
        for run in np.split(asked, np.flatnonzero(np.diff(asked) > 1) + 1) if len(asked) else ():
            first, stop = int(run[0]), int(run[-1]) + 1
            self._transfers.upload(array[first:stop], buffer, self._device.queue, at_bytes=first * part_bytes)
        return buffer

    def output(self, key: Hashable, array: np.ndarray, *, late: bool = False) -> cl.Buffer:
        """Return a buffer on the device. Later kernels of this batch find the value there."""
        buffer = self._current[key] = self._buffer(key, array, self._slot if late else None)
        if late:
            self._slot_values[self._slot][key] = buffer
        return buffer

    def made_again(self, outputs: Mapping[int, Any]) -> None:
        """Let later kernels of this batch find the values in these buffers."""
        for value, buffer in outputs.items():
            self._current[value] = buffer

    def state(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """Return a separate buffer, filled at the first call."""
        return self.input(key, array, fresh=False)

    def rows(self, key: Hashable, arrays: Sequence[np.ndarray]) -> DeviceRows:
        """Return rows that take no more of the device than is needed; see `Memory.rows`."""
        if key in self._rows:
            self.wait()
            self.replaced()
            self._rows.pop(key).close()
        made = self._rows[key] = DeviceRows(self, key, arrays, self._device, self._arena, self._transfers)
        return made

    def finish(self, outputs: Sequence[cl.Buffer]) -> None:  # noqa: ARG002 - nothing to map
        """Wait for the kernels so far."""
        self._is_deferred = False
        self._device.queue.finish()

    def defer(self, held: Sequence[object], event: cl.Event | None = None) -> None:  # noqa: ARG002 - the driver holds them
        """Note that kernels are in progress. All that follows on their queue comes after them."""
        self._is_deferred = True

    def wait(self) -> None:
        """Wait for the kernels that were deferred, before another queue touches what they work on."""
        if self._is_deferred:
            self.finish(())

    def fetch(self, key: Hashable, array: np.ndarray) -> None:
        """Download the value."""
        if self.recording is not None:
            self.recording.fetched(key, self._current[key], array)
        self._transfers.download(self._current[key], array, self._device.queue)

    def lend(self, made: Hashable) -> cl.Buffer:
        """Return the buffer, in which the value stays until the pass runs again."""
        return self._buffers[made]

    def place(self, key: Hashable) -> cl.Buffer | None:
        """Return the buffer of a value that stays; see `Memory.place`."""
        return self._buffers.get(key)

    def hand_on(self, made: Hashable, given: Hashable) -> cl.Buffer:
        """Let two values swap their buffers: what is made next must not be written over what is given."""
        before, self._buffers[given] = self._buffers.pop(given, None), self._buffers.pop(made)
        if before is not None:
            self._buffers[made] = before
        self._current.pop(made, None)
        self._current.pop(given, None)
        return self._buffers[given]

    def take(self, key: Hashable, buffer: cl.Buffer) -> None:
        """Use the buffer, which may be that of the memory of another pass; one of its own is given back."""
        own = self._buffers.get(key)
        if own is not None and own is not buffer:
            self.replaced()
            self._arena.give(self._buffers.pop(key))
        self._current[key] = buffer

    def fetch_handed(self, buffer: cl.Buffer, array: np.ndarray) -> None:
        """Download the value."""
        self._refuse_to_record()
        self._transfers.download(buffer, array, self._device.queue)

    def fill(self, buffer: cl.Buffer, array: np.ndarray) -> None:
        """Upload the numbers."""
        self._refuse_to_record()
        self._transfers.upload(array, buffer, self._device.queue)

    def _refuse_to_record(self) -> None:
        """Let a run that is recorded be one that is not done again."""
        if self.recording is not None:
            self.recording.refuse()

    def repeat(
        self,
        recording: Recording,
        array: Callable[[int], np.ndarray],
        scalar: Callable[[int], Any],
        pushes: Mapping[int, Push],
    ) -> Mapping[int, np.ndarray]:
        """Give the commands again. All that is uploaded is held until the last of them is done."""
        held: list[np.ndarray] = []

        def upload(value: int, buffer: cl.Buffer) -> None:
            held.append(array(value))
            self._transfers.upload(held[-1], buffer, self._device.queue, lasting=True)

        def download(buffer: cl.Buffer, array: np.ndarray) -> None:
            self._transfers.download(buffer, array, self._device.queue)

        again = Again(self._device.queue, upload, download, scalar, pushes)
        done = False
        try:
            for command in recording.given_again(self._device.queue):
                command.give(again)
            done = bool(recording.commands) and isinstance(recording.commands[-1], Fetch)
        finally:
            if not done:
                self._device.queue.finish()
        return again.fetched

    def download(self, key: Hashable, array: np.ndarray, slot: int) -> None:
        """Copy from the device on a separate queue. The copy is tried again where the driver had no room for it."""
        buffer = self._slots[slot][self._reused.get(key, key)]
        self._refuse_to_record()
        if self._is_deferred:
            # Another thread may go on deferring: the mark stays.
            self._device.queue.finish()
        try:
            self._transfers.download(buffer, array, self._device.download_queue)
        except cl.Error as error:
            if error.code not in ROOM:
                raise
            self._arena.release_free()
            self._transfers.download(buffer, array, self._device.download_queue)

    def drop(self, slot: int) -> None:
        """Give the buffers of a slot back to the device."""
        self._slot_values.pop(slot, None)
        self.replaced()
        if self._arriving.pop(slot, None):
            # A buffer must not be reused while a copy writes to it.
            self._uploads.finish()
        for buffer in self._slots.pop(slot, {}).values():
            self._arena.give(buffer)
        self._arena.release_free()

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Return pinned memory."""
        self._pinned_rooms.append(room := self._on_host.take(size_bytes))
        return room

    def forget(self, keys: set[Hashable]) -> None:
        """Drop these values, so that they are uploaded anew when they are needed again."""
        for key in self._current.keys() & keys:
            del self._current[key]

    def release(self, keys: set[Hashable]) -> None:
        """Give their buffers back to the device."""
        self.wait()
        self.replaced()
        self.forget(keys)
        for key in self._buffers.keys() & {self._reused.get(key, key) for key in keys}:
            self._arena.give(self._buffers.pop(key))
        self._arena.release_free()

    def close(self) -> None:
        """Release the buffers."""
        with ExitStack() as all_of_it:
            # The stack closes from the last to the first, also where one fails.
            all_of_it.callback(self._free_pinned_rooms)
            for buffers in (self._buffers, self._slots, self._current, self._slot_values, self._rows):
                all_of_it.callback(buffers.clear)
            all_of_it.callback(self._arena.close)
            all_of_it.callback(self._unpin)
            all_of_it.callback(self._transfers.close)
            all_of_it.callback(self._end_uploads)
            all_of_it.callback(self.wait)

    def _end_uploads(self) -> None:
        """Wait for uploads that were not used."""
        if self._prefetcher is not None:
            # Nobody needs the value, so a failure does not matter.
            self._prefetcher.shutdown(wait=True)
        self._prefetcher = None
        self._prefetched.clear()
        if any(self._arriving.values()):
            self._uploads.finish()
        self._arriving.clear()

    def _unpin(self) -> None:
        while self._pinned:
            self._on_host.unpin(self._pinned.popitem()[1])

    def _free_pinned_rooms(self) -> None:
        while self._pinned_rooms:
            self._on_host.give(self._pinned_rooms.pop())
