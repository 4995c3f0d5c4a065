"""The device of a pass, as folds whose state lies there use it: buffers, launches and copies in its queue."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.gpu.device import Device, cl
from flowcompute.gpu.memory import Memory
from flowcompute.gpu.worker import Launcher
from flowcompute.imports import LateModule, dataclass
from flowcompute.ir import Kernel
from flowcompute.ir.launches import LaunchTask, divide
from flowcompute.schedule.memory import placeholder_array
from flowcompute.spec import FLOAT64, Spec

if TYPE_CHECKING:
    from flowcompute import lower
else:
    lower = LateModule("flowcompute.lower")


class KeptForFolds:
    """Kernels, launches and memory that folds of a pass use again, as they are made anew for each run of their plan.

    Attributes:
        built: kernels by text and name.
        launches: by kernel and records what was found for a launch, with the kernel.
        rooms: memory of the host by name.
    """

    def __init__(self) -> None:
        self.built: dict[tuple[str, str], Any] = {}
        self.launches: dict[tuple[int, int], tuple[Kernel, Any, int, int, int]] = {}
        self.rooms: dict[Hashable, np.ndarray] = {}

    def clear(self) -> None:
        """Let go of all."""
        self.built.clear()
        self.launches.clear()
        self.rooms.clear()


@dataclass(frozen=True)
class FoldDevice:
    """The device of a pass, for folds.

    Attributes:
        device: what computes.
        memory: its buffers.
        launcher: launches kernels there.
        compiled: gives what to launch for a kernel.
        style: of kernels.
        kept: what the folds of the next run use again.
    """

    device: Device
    memory: Memory
    launcher: Launcher
    compiled: Callable[[Kernel], Any]
    style: lower.KernelStyle
    kept: KeptForFolds

    def buffer(self, key: Hashable, dtype: np.dtype, numbers: int) -> cl.Buffer:
        """Return the buffer of a name, with room for so many numbers."""
        return self.memory.output(key, placeholder_array(Spec(dtype, (numbers,))))

    def room(self, key: Hashable, numbers: int) -> np.ndarray:
        """Return memory of the host for so many numbers in float64, which is moved fastest."""
        if key not in self.kept.rooms:
            room = self.memory.room(8 * numbers)
            self.kept.rooms[key] = np.empty(numbers) if room is None else room.view(FLOAT64)
        return self.kept.rooms[key]

    def build(self, text: str, name: str, types: Sequence[np.dtype | None]) -> Any:
        """Return a kernel of a text, built when it is asked for first; see `Launcher.build`."""
        if (text, name) not in self.kept.built:
            self.kept.built[text, name] = self.launcher.build(text, name, types)
        return self.kept.built[text, name]

    def launch(self, kernel: Kernel, operands: Sequence[cl.Buffer], made: cl.Buffer, items: int) -> None:
        """Launch a kernel of `lower.product_folds` over so many records; nobody waits for it."""
        # Held with its kernel, so that no other one has this number.
        key = id(kernel), items
        found = self.kept.launches.get(key)
        if found is None:
            task = LaunchTask(kernel, self.style.capabilities, items, 0, {}, lambda: kernel.units)
            found = self.kept.launches[key] = kernel, self.compiled(kernel), *divide(task)
        _, compiled, total, chunk, groups = found
        buffers = [made if one.value == lower.MADE else operands[one.value] for one in kernel.arguments]
        values = [*buffers, total, chunk, 0, 0, 0]
        self.launcher.launch(compiled, values, groups, kernel.work_group, [made], timed=False, deferred=True)

    def copy(self, source: cl.Buffer, target: cl.Buffer, size_bytes: int, at: int = 0, to: int = 0) -> None:
        """Copy bytes between two buffers, after what was launched before."""
        queue = self.device.queue
        cl.enqueue_copy(queue, target, source, byte_count=size_bytes, src_offset=at, dst_offset=to)
        self.memory.defer((source, target))
        if self.memory.recording is not None:
            self.memory.recording.copied(source, target, size_bytes, at, to)

    def upload(self, array: np.ndarray, target: cl.Buffer, at: int = 0) -> None:
        """Copy an array to a place in a buffer; it may change on return."""
        if self.memory.recording is not None:
            self.memory.recording.refuse()
        if array.nbytes:
            cl.enqueue_copy(self.device.queue, target, np.ascontiguousarray(array), dst_offset=at, is_blocking=True)

    def clear(self, buffer: cl.Buffer, begin: int, end: int) -> None:
        """Put zeros into a range of bytes."""
        if end > begin:
            cl.enqueue_fill_buffer(self.device.queue, buffer, np.zeros(1, np.uint8), begin, end - begin)
            self.memory.defer((buffer,))
            if self.memory.recording is not None:
                self.memory.recording.cleared(buffer, begin, end)
