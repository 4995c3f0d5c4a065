"""Copies between arrays of the host and buffers of a discrete device."""

from __future__ import annotations

import numpy as np

from flowcompute.gpu._cl import cl
from flowcompute.gpu.buffers import as_bytes, as_lines, packed
from flowcompute.gpu.device import Device
from flowcompute.gpu.staging import LEAST_BYTES, Staging


class Transfers:
    """Uploads and downloads, one of each at a time.

    Pinned arrays are copied by the device; large other ones go through pinned pieces, small ones
    through the driver.

    Args:
        device: a discrete one.
        staging_bytes: pinned memory for pieces.
    """

    def __init__(self, device: Device, staging_bytes: int) -> None:
        self._device = device
        self._up = Staging(device, staging_bytes // 2)
        self._down = Staging(device, staging_bytes // 2)

    def upload(self, array: np.ndarray, buffer: cl.Buffer, queue: cl.CommandQueue) -> None:
        """Copy an array to the start of a buffer, its numbers in order, in the queue's order; it may change after.

        Lines of numbers that lie apart are put together on the way, and other arrays before.
        """
        lines = as_lines(array)
        if self._up.takes(array.nbytes) and not (len(lines) == 1 and self._device.pinned.holds(array)):
            self._up.upload(lines, buffer, queue)
        elif len(lines) == 1 and array.nbytes:
            cl.enqueue_copy(queue, buffer, lines[0], is_blocking=True)
        elif array.nbytes:
            piece = np.empty(min(array.nbytes, LEAST_BYTES), np.uint8)
            for start in range(0, array.nbytes, len(piece)):
                part = piece[: array.nbytes - start]
                packed(lines, start, part)
                cl.enqueue_copy(queue, buffer, part, dst_offset=start, is_blocking=True)

    def download(self, buffer: cl.Buffer, array: np.ndarray, queue: cl.CommandQueue) -> None:
        """Fill a C-contiguous array from the start of a buffer, in the queue's order; complete on return."""
        assert array.flags.c_contiguous
        if self._down.takes(array.nbytes) and not self._device.pinned.holds(array):
            self._down.download(buffer, as_bytes(array), queue)
        elif array.nbytes:
            cl.enqueue_copy(queue, as_bytes(array), buffer, is_blocking=True)

    def close(self) -> None:
        """Wait for what is under way and give the pieces back; harmless when called twice."""
        self._up.close()
        self._down.close()
