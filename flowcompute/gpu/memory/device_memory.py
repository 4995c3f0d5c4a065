"""Where kernels find the arrays of a pass: in place on host devices, in buffers of their own on discrete ones."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np

from flowcompute.gpu.device import ROOM, Device, cl
from flowcompute.gpu.memory.device_buffers import DeviceArena, HostBuffers
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.schedule.memory import BufferAssignment, staging_bytes


class Memory(ABC):
    """Gives kernels the buffers of arrays in host memory. Keys name values.

    A batch is brought in (`upload`), worked on between `begin` and `forget`, and fetched
    (`download`); on discrete devices neighbouring batches may be at each of the three at a time.
    """

    def reuse(self, buffers: Mapping[Hashable, BufferAssignment]) -> None:  # noqa: B027 - in place elsewhere
        """Before anything else: which buffers values have in turns."""

    def expect(self, slot: int) -> None:  # noqa: B027 - as above
        """Values of a coming batch are about to be uploaded into a slot."""

    def upload(self, key: Hashable, array: np.ndarray, slot: int) -> None:  # noqa: B027 - as above
        """Begin to bring a value of a coming batch to the device, into a buffer of a slot.

        The array is to stay as it is until `arrive` has come back, or the slot was dropped.
        """

    def arrive(self, key: Hashable, slot: int) -> None:  # noqa: B027 - as above
        """Wait until a value of a slot has been uploaded."""

    def begin(self, slot: int) -> None:  # noqa: B027 - as above
        """Work on the batch that was uploaded into a slot."""

    def prefetch(self, key: Hashable, array: np.ndarray, pinned: np.ndarray | None = None) -> None:  # noqa: B027 - as above
        """`input` will be asked for this; it may be uploaded while kernels work.

        Args:
            pinned: C-contiguous memory that will be uploaded soon and often, with what lies in it; see `pin`.
        """

    def pin(self, array: np.ndarray) -> None:  # noqa: B027 - as above
        """A C-contiguous array of which parts will be uploaded several times, or all of it, until the end."""

    @abstractmethod
    def input(self, key: Hashable, array: np.ndarray, *, fresh: bool) -> cl.Buffer:
        """A buffer with the content of `array`; `fresh` says that the array may be another one than last time."""

    @abstractmethod
    def output(self, key: Hashable, array: np.ndarray, *, late: bool = False) -> cl.Buffer:
        """A buffer that a kernel fills; `late`: it is needed while other batches are worked on."""

    @abstractmethod
    def state(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """A buffer that kernels read and change; it begins with the content of `array`, anew after `forget`."""

    @abstractmethod
    def finish(self, outputs: Sequence[cl.Buffer]) -> None:
        """Wait for the kernels so far, which filled `outputs`."""

    @abstractmethod
    def fetch(self, key: Hashable, array: np.ndarray) -> None:
        """Make an output visible in its array."""

    def download(self, key: Hashable, array: np.ndarray, slot: int) -> None:  # noqa: B027 - as above
        """Make a late output of a slot visible in its array; `finish` has waited for its kernel."""

    def drop(self, slot: int) -> None:  # noqa: B027 - as above
        """Give the buffers of a slot back to the device."""

    def is_pinned(self, array: np.ndarray) -> bool:  # noqa: ARG002 - for those that pin
        """Whether a discrete device reads an array by itself."""
        return False

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Host memory that is transferred fastest, until `close`; None where any is as good."""
        del size_bytes
        return None

    @abstractmethod
    def forget(self, keys: set[Hashable]) -> None:
        """These values belong to a batch that is over."""

    @abstractmethod
    def release(self, keys: set[Hashable]) -> None:
        """Give back what these values took on a device of its own; what is asked for next may be smaller."""

    @abstractmethod
    def close(self) -> None:
        """Release every buffer."""


def memory_of(device: Device, budget_bytes: int, device_bytes: int | None = None) -> Memory:
    """The memory that kernels of a device work on, within budgets of the host and of a discrete device."""
    return HostMemory(device) if device.capabilities.host_memory else DeviceMemory(device, budget_bytes, device_bytes)


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

    def output(self, key: Hashable, array: np.ndarray, *, late: bool = False) -> cl.Buffer:
        """The array itself."""
        del key, late
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
    """Buffers on a discrete device: one for each value, or for values in turns, kept for the next batch.

    Values that are uploaded ahead or downloaded late have one for each slot. Each direction has a
    queue of its own.
    """

    def __init__(self, device: Device, budget_bytes: int, device_bytes: int | None = None) -> None:
        self._device = device
        # A device that is lost has others from then on, which know nothing of what was asked of these.
        self._on_host, self._uploads = device.pinned, device.upload_queue
        self._arena = DeviceArena(device, device_bytes)
        self._transfers = Transfers(device, staging_bytes(budget_bytes))
        self._buffers: dict[Hashable, cl.Buffer] = {}
        self._reused: Mapping[Hashable, BufferAssignment] = {}
        self._current: dict[Hashable, cl.Buffer] = {}
        self._slots: dict[int, dict[Hashable, cl.Buffer]] = {}
        self._there: dict[int, dict[Hashable, cl.Buffer]] = {}
        self._arriving: dict[int, dict[Hashable, cl.Event]] = {}
        self._pinned: dict[tuple[int, int], np.ndarray] = {}
        self._pinning = threading.Lock()
        self._slot = 0
        self._coming: dict[Hashable, tuple[np.ndarray, Future[None]]] = {}
        self._prefetcher: ThreadPoolExecutor | None = None
        self._rooms: list[np.ndarray] = []

    def reuse(self, buffers: Mapping[Hashable, BufferAssignment]) -> None:
        """Each has room for the largest of its values from the beginning."""
        self._reused = buffers

    def _buffer(self, key: Hashable, array: np.ndarray, slot: int | None = None) -> cl.Buffer:
        buffers, size_bytes = self._buffers if slot is None else self._slots.setdefault(slot, {}), array.nbytes
        if (one := self._reused.get(key)) is not None:
            key, size_bytes = one, len(array) * one.item_bytes
        buffer = buffers.get(key)
        if buffer is None or buffer.size < size_bytes:
            if buffer is not None:
                # The plan counts the larger one only.
                self._arena.give(buffers.pop(key))
                self._arena.release_waiting()
            buffer = buffers[key] = self._arena.take(size_bytes)
        return buffer

    def expect(self, slot: int) -> None:
        """Nothing has come to a slot yet."""
        self._there[slot] = {}

    def upload(self, key: Hashable, array: np.ndarray, slot: int) -> None:
        """Copy a value to the device on a queue of its own, while the next one is made ready."""
        buffer = self._buffer(key, array, slot)
        event = self._transfers.upload(array, buffer, self._uploads, lasting=True)
        if event is not None:
            self._arriving.setdefault(slot, {})[key] = event
        self._there[slot][key] = buffer

    def arrive(self, key: Hashable, slot: int) -> None:
        """Wait for its copy."""
        event = self._arriving.get(slot, {}).pop(key, None)
        if event is not None:
            event.wait()

    def is_pinned(self, array: np.ndarray) -> bool:
        """Whether it lies in pinned memory, as a whole or in lines that lie apart."""
        return self._on_host.holds(array)

    def pin(self, array: np.ndarray) -> None:
        """Where it lies."""
        place = array.ctypes.data, array.nbytes
        with self._pinning:
            if place not in self._pinned and self._on_host.pin(array):
                self._pinned[place] = array

    def prefetch(self, key: Hashable, array: np.ndarray, pinned: np.ndarray | None = None) -> None:
        """Upload in a thread of its own, which pins while the device reads."""
        if self._prefetcher is None:
            self._prefetcher = ThreadPoolExecutor(1, thread_name_prefix="flowcompute-prefetch")
        buffer = self._buffer(key, array)

        def upload() -> None:
            event = self._transfers.upload(array, buffer, self._uploads, lasting=True)
            if pinned is not None:
                self.pin(pinned)
            if event is not None:
                event.wait()

        self._coming[key] = (array, self._prefetcher.submit(upload))

    def begin(self, slot: int) -> None:
        """Find what has come to a slot, or was left there."""
        self._slot = slot
        self._current.update(self._there[slot])

    def input(self, key: Hashable, array: np.ndarray, *, fresh: bool) -> cl.Buffer:
        """Upload the array, unless the value is on the device already."""
        if key in self._current:
            return self._current[key]
        if key in self._coming:
            expected, there = self._coming.pop(key)
            there.result()
            if expected is array:
                return self._buffers[key]
        buffer = self._buffer(key, array)
        self._transfers.upload(array, buffer, self._device.queue)
        # What a batch has uploaded stays for its later kernels, until `forget`.
        if not fresh or isinstance(key, int):
            self._current[key] = buffer
        return buffer

    def output(self, key: Hashable, array: np.ndarray, *, late: bool = False) -> cl.Buffer:
        """Room on the device; later kernels of this batch find the value there."""
        buffer = self._current[key] = self._buffer(key, array, self._slot if late else None)
        if late:
            self._there[self._slot][key] = buffer
        return buffer

    def state(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """A buffer of its own, filled when first asked for."""
        return self.input(key, array, fresh=False)

    def finish(self, outputs: Sequence[cl.Buffer]) -> None:  # noqa: ARG002 - nothing to map
        """Wait."""
        self._device.queue.finish()

    def fetch(self, key: Hashable, array: np.ndarray) -> None:
        """Download the value."""
        self._transfers.download(self._current[key], array, self._device.queue)

    def download(self, key: Hashable, array: np.ndarray, slot: int) -> None:
        """Copy from the device on a queue of its own; tried again where the driver had no room to do it."""
        buffer = self._slots[slot][self._reused.get(key, key)]
        try:
            self._transfers.download(buffer, array, self._device.download_queue)
        except cl.Error as error:
            if error.code not in ROOM:
                raise
            self._arena.release_waiting()
            self._transfers.download(buffer, array, self._device.download_queue)

    def drop(self, slot: int) -> None:
        """Give the buffers of a slot back to the device."""
        self._there.pop(slot, None)
        if self._arriving.pop(slot, None):
            # Buffers are not given to anybody else while copies write to them.
            self._uploads.finish()
        for buffer in self._slots.pop(slot, {}).values():
            self._arena.give(buffer)
        self._arena.release_waiting()

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Pinned memory."""
        self._rooms.append(room := self._on_host.take(size_bytes))
        return room

    def forget(self, keys: set[Hashable]) -> None:
        """Upload these anew when they are asked for again."""
        for key in self._current.keys() & keys:
            del self._current[key]

    def release(self, keys: set[Hashable]) -> None:
        """Give their buffers back to the device."""
        self.forget(keys)
        for key in self._buffers.keys() & {self._reused.get(key, key) for key in keys}:
            self._arena.give(self._buffers.pop(key))
        self._arena.release_waiting()

    def close(self) -> None:
        """Release the buffers."""
        with ExitStack() as all_of_it:
            # From the last to the first, also where one fails.
            all_of_it.callback(self._give_back_rooms)
            for buffers in (self._buffers, self._slots, self._current, self._there):
                all_of_it.callback(buffers.clear)
            all_of_it.callback(self._arena.close)
            all_of_it.callback(self._unpin)
            all_of_it.callback(self._transfers.close)
            all_of_it.callback(self._end_uploads)

    def _end_uploads(self) -> None:
        """Wait for what nobody has come for."""
        if self._prefetcher is not None:
            # It is of no interest, also where it failed.
            self._prefetcher.shutdown(wait=True)
        self._prefetcher = None
        self._coming.clear()
        if any(self._arriving.values()):
            self._uploads.finish()
        self._arriving.clear()

    def _unpin(self) -> None:
        while self._pinned:
            self._on_host.unpin(self._pinned.popitem()[1])

    def _give_back_rooms(self) -> None:
        while self._rooms:
            self._on_host.give(self._rooms.pop())
