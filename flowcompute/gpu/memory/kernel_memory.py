"""Interface of the memory that kernels work on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from flowcompute.gpu.device import cl
from flowcompute.gpu.memory.recording import Push, Recording
from flowcompute.schedule.memory import BufferAssignment


class Memory(ABC):
    """Interface that gives kernels the buffers of arrays in host memory. Keys name values.

    A batch is uploaded (`upload`), worked on between `begin` and `forget`, and downloaded (`download`). On
    discrete devices, three neighbouring batches may be in these three phases at a time.

    Attributes:
        in_place: whether kernels work on the very bytes of arrays.
        replaced: called before a buffer that kernels may know is given back.
        records: whether runs can be recorded.
        rows_grow: whether `rows` takes memory as it is needed.
        recording: notes all that crosses and all that is launched, while a run is recorded.
    """

    in_place = False
    records = rows_grow = False
    recording: Recording | None = None
    replaced: Callable[[], None] = staticmethod(lambda: None)

    def reuse(self, buffers: Mapping[Hashable, BufferAssignment]) -> None:  # noqa: B027 - in place elsewhere
        """Set which values share a buffer. Call this first."""

    def expect(self, slot: int) -> None:  # noqa: B027 - as above
        """Prepare a slot for the uploads of a coming batch."""

    def upload(self, key: Hashable, array: np.ndarray, slot: int) -> None:  # noqa: B027 - as above
        """Begin to upload a value of a coming batch into a buffer of a slot.

        The array must not change until `arrive` has returned, or the slot was dropped.
        """

    def arrive(self, key: Hashable, slot: int) -> None:  # noqa: B027 - as above
        """Wait until a value of a slot has been uploaded."""

    def begin(self, slot: int) -> None:  # noqa: B027 - as above
        """Begin to work on the batch that was uploaded into a slot."""

    def prefetch(self, key: Hashable, array: np.ndarray, pinned: np.ndarray | None = None) -> None:  # noqa: B027 - as above
        """Announce that `input` will be called for this value. It may be uploaded while kernels work.

        Args:
            key: name of the value.
            array: its numbers.
            pinned: C-contiguous memory that will be uploaded soon and often; see `pin`.
        """

    def pin(self, array: np.ndarray) -> None:  # noqa: B027 - as above
        """Pin a C-contiguous array that will be uploaded several times, as a whole or in parts, until the end."""

    @abstractmethod
    def input(self, key: Hashable, array: np.ndarray, *, fresh: bool) -> cl.Buffer:
        """Return a buffer with the content of `array`. `fresh` says that the array may differ from last time."""

    def input_parts(self, key: Hashable, array: np.ndarray, places: np.ndarray) -> cl.Buffer:  # noqa: ARG002 - as above
        """Return a buffer of which kernels read the parts at these places along the first axis alone."""
        return self.input(key, array, fresh=True)

    @abstractmethod
    def output(self, key: Hashable, array: np.ndarray, *, late: bool = False) -> cl.Buffer:
        """Return a buffer that a kernel fills. A `late` one is needed while other batches are worked on."""

    def made_again(self, outputs: Mapping[int, Any]) -> None:  # noqa: B027 - in place nobody looks for them
        """Note that a kernel fills the buffers that `output` gave for these values, which no other array has taken."""

    @abstractmethod
    def state(self, key: Hashable, array: np.ndarray) -> cl.Buffer:
        """Return a buffer that kernels read and change. It begins with the content of `array`, also after `forget`."""

    def rows(self, key: Hashable, arrays: Sequence[np.ndarray]) -> Rows:
        """Return the rows of these arrays as kernels extend them; they begin with what is in the arrays.

        Args:
            key: names them; others that had it are given back.
            arrays: `(texts, rows, numbers)`, as long as they may ever get.
        """
        return Rows(self, key, arrays)

    @abstractmethod
    def finish(self, outputs: Sequence[cl.Buffer]) -> None:
        """Wait for the kernels so far, which filled `outputs`."""

    def defer(self, held: Sequence[object], event: cl.Event | None = None) -> None:
        """Note that a kernel was launched that `finish` has not waited for, and hold what it works on until then.

        Args:
            held: what it works on.
            event: of the launch; None where that was noted before.
        """
        raise NotImplementedError

    def leave(self) -> None:
        """Leave the kernels that were deferred in progress, and wait for those that were left the last time."""
        self.wait()

    def wait(self) -> None:  # noqa: B027 - in a process of its own each kernel is waited for
        """Wait for the kernels that were deferred."""

    @abstractmethod
    def fetch(self, key: Hashable, array: np.ndarray) -> None:
        """Make an output visible in its array."""

    def download(self, key: Hashable, array: np.ndarray, slot: int) -> None:  # noqa: B027 - as above
        """Make a late output of a slot visible in its array. `finish` has waited for its kernel."""

    def drop(self, slot: int) -> None:  # noqa: B027 - as above
        """Give the buffers of a slot back to the device."""

    def is_pinned(self, array: np.ndarray) -> bool:  # noqa: ARG002 - discrete devices use it
        """Check whether a discrete device can read an array by itself."""
        return False

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Return host memory that is transferred fastest, valid until `close`, or None where any memory is as fast."""
        del size_bytes
        return None

    def lend(self, made: Hashable) -> cl.Buffer:
        """Return the buffer of a value that kernels have made, for `take` of another pass."""
        raise NotImplementedError

    def place(self, key: Hashable) -> cl.Buffer | None:
        """Return the buffer in which the next kernel makes a value that stays; None where there is none yet."""
        raise NotImplementedError

    def hand_on(self, made: Hashable, given: Hashable) -> cl.Buffer:
        """Return the buffer of a value that kernels have made, which is another value from now on."""
        raise NotImplementedError

    def take(self, key: Hashable, buffer: cl.Buffer) -> None:
        """Let a value be in a buffer that `hand_on` or `lend` returned, until it is forgotten."""
        raise NotImplementedError

    def fetch_handed(self, buffer: cl.Buffer, array: np.ndarray) -> None:
        """Bring what is in a buffer that `hand_on` returned into an array."""
        raise NotImplementedError

    def fill(self, buffer: cl.Buffer, array: np.ndarray) -> None:
        """Bring an array into a buffer of `output`; it may change on return."""
        raise NotImplementedError

    def repeat(
        self,
        recording: Recording,
        array: Callable[[int], np.ndarray],
        scalar: Callable[[int], Any],
        pushes: Mapping[int, Push],
    ) -> Mapping[int, np.ndarray]:
        """Do again what was recorded.

        Args:
            recording: of a run.
            array: gives the array of a value that crosses to the device.
            scalar: gives a number that is another one in each run.
            pushes: what adds records to a fold whose launches depend on them, by its node.

        Returns:
            What has come from the device, by value.
        """
        raise NotImplementedError

    @abstractmethod
    def forget(self, keys: set[Hashable]) -> None:
        """Drop values of a batch that has ended."""

    @abstractmethod
    def release(self, keys: set[Hashable]) -> None:
        """Free what these values took on a device of its own. The next buffers may be smaller."""

    @abstractmethod
    def close(self) -> None:
        """Release every buffer."""


class Rows:
    """Rows that kernels extend, of as many texts as may be open, in arrays of the same texts and rows.

    Args:
        memory: where kernels find them, in buffers as large as the arrays.
        key, arrays: see `Memory.rows`.

    Attributes:
        grows: whether buffers have room for fewer rows than the arrays, and get more as they are needed.
        room: rows of each text that buffers have room for. Those of a text follow those of the one before.
    """

    grows = False

    def __init__(self, memory: Memory, key: Hashable, arrays: Sequence[np.ndarray]) -> None:
        self._memory, self._arrays = memory, arrays
        self._keys = [(key, part) for part in range(len(arrays))]
        self.room = arrays[0].shape[1]
        self.forget()

    def make_room(self, room: int, used: Sequence[int]) -> None:
        """Make room for so many rows of each text; nothing has changed where that fails.

        Args:
            room: rows of each text.
            used: by text the rows that count.

        Raises:
            DeviceFullError: if the device has none.
        """

    def buffer(self, part: int, used: Sequence[int]) -> cl.Buffer:
        """Return the buffer of an array, in which these rows of each text count."""
        del used
        return self._memory.state(self._keys[part], self._arrays[part])

    def move(self, moves: Sequence[tuple[int, int, int]], used: Sequence[int]) -> bool:
        """Move rows to the beginning of their text, on the device; False where that is left to the arrays.

        Args:
            moves: a text, from which row on, and how many.
            used: see `make_room`.
        """
        del moves
        self.fetch(used)
        self.forget()
        return False

    def fetch(self, used: Sequence[int]) -> None:
        """Bring the rows that count into the arrays."""
        del used
        for key, array in zip(self._keys, self._arrays, strict=True):
            self._memory.fetch(key, array)

    def forget(self) -> None:
        """Begin with what is in the arrays from now on."""
        self._memory.forget({*self._keys})
