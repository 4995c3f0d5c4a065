"""Copies between arrays of the host and buffers of a discrete device."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

import numpy as np

from flowcompute.gpu.device import Device, cl
from flowcompute.gpu.memory.device_buffers import as_bytes, as_lines, copy_lines
from flowcompute.gpu.memory.small_staging import SmallStaging
from flowcompute.gpu.memory.staging import MIN_BYTES, Staging, read_buffer
from flowcompute.schedule.memory import pinned

DIRECT_BYTES = 1 << 10
"""Bytes up to which the driver uploads numbers itself, wherever they lie."""


class Transfers:
    """Uploads and downloads of a discrete device.

    The device itself copies pinned arrays. Other large arrays go through pinned blocks, and those of small
    batches through pinned slots. Other small arrays go through the driver.

    Args:
        device: a discrete one.
        staging_bytes: pinned memory for blocks; see `schedule.memory.in_flight.pinned` for slots beside it.
    """

    def __init__(self, device: Device, staging_bytes: int) -> None:
        self._pinned = device.pinned
        # PoCL 3.0 may crash if two threads enqueue to one queue and one of the commands is refused.
        self._enqueuing = threading.Lock()
        # NVIDIA's driver alternates reads that wait in a queue with transfers in the other direction.
        self._reading = threading.Lock()
        self._up = Staging(device, staging_bytes // 2, self._enqueuing)
        self._down = Staging(device, staging_bytes // 2, self._reading)
        self._small = SmallStaging(device, pinned(staging_bytes) - staging_bytes, self._enqueuing)

    def upload(
        self,
        array: np.ndarray,
        buffer: cl.Buffer,
        queue: cl.CommandQueue,
        *,
        lasting: bool = False,
        at_bytes: int = 0,
    ) -> cl.Event | None:
        """Copy an array to a place in a buffer, its numbers in order, in the queue's order.

        Separate lines of numbers are joined on the way. Other arrays are made contiguous before.

        Args:
            array: the numbers.
            buffer: the destination.
            queue: of the device.
            lasting: whether the array stays unchanged until the returned event. Otherwise it may change on
                return.
            at_bytes: the place. Only contiguous arrays that do not last have one behind the start.

        Returns:
            The event to wait for; None where nothing is in progress.
        """
        if not array.nbytes:
            return None
        if array.nbytes <= DIRECT_BYTES and array.flags.c_contiguous and not lasting:
            # To ask whether they are pinned takes longer than the copy.
            with self._enqueuing:
                cl.enqueue_copy(queue, buffer, as_bytes(array), dst_offset=at_bytes, is_blocking=True)
            return None
        lines = as_lines(array)
        if self._pinned.holds(lines):
            with self._enqueuing:
                event = _copy(queue, buffer, lines, at_bytes)
        elif self._up.takes(array.nbytes):
            self._up.upload(lines, buffer, queue, at_bytes)
            with self._enqueuing:
                event = cl.enqueue_marker(queue)
        elif lasting and self._small.takes(array.nbytes):
            event = self._small.upload(lines, buffer, queue)
        else:
            self._upload_small(lines, buffer, queue, at_bytes)
            return None
        queue.flush()
        if lasting:
            return event
        event.wait()
        return None

    def _upload_small(self, lines: np.ndarray, buffer: cl.Buffer, queue: cl.CommandQueue, at_bytes: int) -> None:
        if len(lines) == 1:
            with self._enqueuing:
                cl.enqueue_copy(queue, buffer, lines[0], dst_offset=at_bytes, is_blocking=True)
            return
        assert not at_bytes, "only contiguous arrays have a place behind the start"
        piece = np.empty(min(lines.size, MIN_BYTES), np.uint8)
        for start in range(0, lines.size, len(piece)):
            part = piece[: lines.size - start]
            copy_lines(lines, start, part)
            with self._enqueuing:
                cl.enqueue_copy(queue, buffer, part, dst_offset=start, is_blocking=True)

    def download(self, buffer: cl.Buffer, array: np.ndarray, queue: cl.CommandQueue, *, at_bytes: int = 0) -> None:
        """Fill a C-contiguous array from a place in a buffer, in the queue's order. It is complete on return."""
        assert array.flags.c_contiguous
        if self._down.takes(array.nbytes) and not self._pinned.holds(array):
            self._down.download(buffer, as_bytes(array), queue, at_bytes)
        elif array.nbytes:
            with self._reading:
                read_buffer(queue, buffer, as_bytes(array), at_bytes)

    def close(self) -> None:
        """Wait for the transfers in progress and free the blocks. Calling it twice does nothing."""
        with ExitStack() as all_of_it:
            for one in (self._small, self._down, self._up):
                all_of_it.callback(one.close)


def _copy(queue: cl.CommandQueue, buffer: cl.Buffer, lines: np.ndarray, at_bytes: int) -> cl.Event:
    """Let the device read pinned lines of bytes `(lines, bytes)`, one or several separate ones."""
    count, width = lines.shape
    if count == 1:
        return cl.enqueue_copy(queue, buffer, lines[0], dst_offset=at_bytes, is_blocking=False)
    assert not at_bytes, "only contiguous arrays have a place behind the start"
    apart = lines.strides[0]
    whole = np.lib.stride_tricks.as_strided(lines[0], ((count - 1) * apart + width,), (1,), writeable=False)
    rectangle: Any = {
        "buffer_origin": (0, 0, 0),
        "host_origin": (0, 0, 0),
        "region": (width, count, 1),
        "buffer_pitches": (width, 0),
        "host_pitches": (apart, 0),
    }
    return cl.enqueue_copy(queue, buffer, whole, is_blocking=False, **rectangle)
