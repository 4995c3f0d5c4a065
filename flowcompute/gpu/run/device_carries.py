"""Carries of scans in kernels, from batch to batch, in the memory of a device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from flowcompute.batch import aligned_array
from flowcompute.elements.streams import KernelScan
from flowcompute.engine.scans import CachePlaces, Carry, KeyValueCache, SlotCache, carried, carries_of
from flowcompute.gpu.device import cl
from flowcompute.gpu.memory import Memory
from flowcompute.graph import Node
from flowcompute.imports import LateModule, dataclass
from flowcompute.ir import RUN, Argument, Kernel, first_carries, merge_dtype, register_dtype, slots_of
from flowcompute.spec import FLOAT64

if TYPE_CHECKING:
    from flowcompute.lower import scan
else:
    scan = LateModule("flowcompute.lower.scan")

_PARTS = ("carry", "runs", "run")


@dataclass(frozen=True)
class ScanLaunch:
    """A launch of a scan's kernel.

    Attributes:
        tiles: that the records lie in.
        start, items: the records.
        on_host: gives an operand's numbers on the host, by the operand's place.
    """

    tiles: int
    start: int
    items: int
    on_host: Callable[[int], np.ndarray]


class DeviceCarry(Carry):
    """A carry that kernels read and change.

    Args:
        node: the scan.
        memory: where the device finds it.
        states: its numbers, at the beginning: an array for each argument of the kernel.

    Attributes:
        value: the scan's.
        stays: whether launches over as many records differ in their places and numbers alone.
        places: of records, which others may share; None where it has none.
        grows: whether its buffers are replaced by larger ones at times.
    """

    stays = grows = False
    places: CachePlaces | None = None

    def __init__(self, node: Node, memory: Memory, *states: np.ndarray) -> None:
        self.value = node.id
        self._node = node
        self._memory = memory
        self._states = states
        self._launches = 0
        self._position = 0
        self._is_ahead = False
        self._begin_anew()

    def begin(self, launch: ScanLaunch) -> int:
        """Begin a launch; gives its number, which the kernel knows as `chunk`."""
        del launch
        self._is_ahead = True
        self._launches += 1
        return self._launches

    def again(self, launch: ScanLaunch) -> Callable[[], int]:
        """Return what begins further launches over the same records from here, and gives their numbers."""
        state = self.snapshot()

        def begin() -> int:
            self.restore(state)
            return self.begin(launch)

        return begin

    def advanced(self, position: int) -> None:
        """Note that the launch has ended, with the record before `position`."""
        self._position = position

    def has_room(self, items: int) -> bool:
        """Check whether a launch over so many records finds the buffers of the last one."""
        del items
        return True

    def buffer(self, argument: Argument) -> cl.Buffer:
        """Return what an argument of the kernel points to."""
        return self._memory.state(("state", self._node.id, argument.part), self._states[argument.part])

    def fetched(self) -> tuple[np.ndarray, ...]:
        """Return the numbers as kernels have left them."""
        if self._is_ahead:
            for part, state in enumerate(self._states):
                self._memory.fetch(("state", self._node.id, part), state)
            self._is_ahead = False
        return self._states

    def _begin_anew(self) -> None:
        """Begin with the numbers in the arrays, not those of the device."""
        self._is_ahead = False
        self._memory.forget({("state", self._node.id, part) for part in range(len(self._states))})


class LastCarry(DeviceCarry):
    """The carry of a recurrence: its last results; that of an average is None before its first record."""

    stays = True

    def __init__(self, node: Node, memory: Memory) -> None:
        assert node.op is not None
        self._begins = node.op.name == "ema"
        if isinstance(node.element, KernelScan):
            states = [begun.reshape(-1).copy() for begun in first_carries(node)]
        else:
            dtype = FLOAT64 if self._begins else register_dtype(node.spec.dtype)
            states = [aligned_array((node.spec.item_numbers,), np.dtype(dtype), zeroed=True)]
        super().__init__(node, memory, *states)
        self._marked: tuple[np.ndarray, ...] = ()

    def mark(self) -> Callable[[], None]:
        """See `Carry.mark`; the numbers are copied to where the last mark has copied them."""
        position, states = self._position, self.fetched()
        # Fresh pages for each slice would take longer than the copy.
        self._marked = self._marked or tuple(np.empty_like(state) for state in states)
        for kept, state in zip(self._marked, states, strict=True):
            np.copyto(kept, state)

        def back() -> None:
            for own, kept in zip(self._states, self._marked, strict=True):
                np.copyto(own, kept)
            self._position = position
            self._begin_anew()

        return back

    def snapshot(self) -> dict[str, Any]:
        """See `DecayScan.snapshot`, and `StepScan.snapshot` of several numbers."""
        if self._begins and self._position == 0:
            return {"carry": None}
        return carried([state.reshape(self._node.spec.shape).copy() for state in self.fetched()])

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        if state["carry"] is not None:
            for own, last in zip(self._states, carries_of(state), strict=True):
                own[...] = np.reshape(last, -1)
            self._position = max(self._position, 1)
        self._begin_anew()


class TileCarry(DeviceCarry):
    """The carry of a scan by an associative operation: of tiles, of runs, and inside the open run.

    Args:
        node: the scan.
        records: records in a tile.
        together: tiles for which one prefix is handed on, at least.
        memory: where the device finds it.
        batch_items: records in a batch, which the words that tiles hand on are allocated for.
    """

    def __init__(self, node: Node, records: int, together: int, memory: Memory, batch_items: int) -> None:
        super().__init__(node, memory, aligned_array((3, node.spec.item_numbers), np.dtype(scan.scan_wide(node))))
        self._records, self._together = records, together
        self._begun: tuple[bool, ...] = ()
        self._words = np.zeros(2, np.uint64)
        self._room(batch_items // records + 2)
        self.restore({"carry": None, "runs": None, "run": None})

    def _room(self, tiles: int) -> None:
        words = 2 + 2 * -(-tiles // self._together) * self._node.spec.item_numbers
        if len(self._words) < words:
            self._words = np.zeros(words, np.uint64)
            self._memory.forget({("words", self._node.id)})

    def begin(self, launch: ScanLaunch) -> int:
        """Make room for the words of a launch, which its number marks; see `DeviceCarry.begin`."""
        self._room(launch.tiles)
        return super().begin(launch)

    def buffer(self, argument: Argument) -> cl.Buffer:
        """Return what an argument of the kernel points to."""
        if argument.kind == "state":
            return super().buffer(argument)
        return self._memory.state((argument.kind, self._node.id), self._words)

    def advanced(self, position: int) -> None:
        """Note that the launch has ended, with the record before `position`."""
        super().advanced(position)
        inside = position % self._records
        self._begun = (position >= self._records, inside >= RUN, inside % RUN > 0)

    def snapshot(self) -> dict[str, Any]:
        """See `TiledScan.snapshot`: parts that have not begun are None."""
        (state,) = self.fetched()
        own = register_dtype(self._node.spec.dtype)
        wide = own if isinstance(self._node.element, KernelScan) else merge_dtype(own)
        dtypes = (wide, wide, own)
        parts = zip(_PARTS, self._begun, state, dtypes, strict=True)
        shape = self._node.spec.shape
        return {name: part.astype(dtype).reshape(shape) if there else None for name, there, part, dtype in parts}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        (own,) = self._states
        nothing = scan.identity_of(self._node, own.dtype)
        for row, name in enumerate(_PARTS):
            part = state[name]
            own[row] = nothing if part is None else np.reshape(part, -1)
        # A state may be asked for before the next launch: it is this one.
        self._begun = tuple(state[name] is not None for name in _PARTS)
        self._begin_anew()


class CacheCarry(DeviceCarry):
    """The keys and values of the records before, which kernels extend. Caches that are alike share their places.

    A device with memory of its own takes as much for them as they need so far.

    Args:
        node: the attention.
        memory: where the device finds them.
        states: other numbers, at the beginning.

    Attributes:
        places: of the records.
    """

    stays = marks_alone = True
    _cache: KeyValueCache | SlotCache

    def __init__(self, node: Node, memory: Memory, *states: np.ndarray) -> None:
        texts = slots_of(node)
        arrays = [one.reshape(texts, len(one) // texts, -1) for one in self._cache.arrays]
        self._rows = memory.rows(("rows", node.id), arrays)
        super().__init__(node, memory, *states)

    @property
    def places(self) -> CachePlaces:  # type: ignore[override]
        """Places of the records among the rows of the cache."""
        return self._cache.places

    @property
    def grows(self) -> bool:  # type: ignore[override]
        """True on a device with memory of its own."""
        return self._rows.grows

    def has_room(self, items: int) -> bool:
        """See `DeviceCarry.has_room`."""
        return not self._rows.grows or (self._rows.room >= self.places.room and self.places.has_room(items))

    def alike(self) -> Hashable:
        """See `Carry.alike`: places are those of the same records of texts, on one device."""
        return type(self), id(self._memory), self._node.inputs[3:], self._cache.alike()

    def join(self, other: Self) -> None:
        """See `Carry.join`."""
        self._cache.share(other._cache.places)  # type: ignore[arg-type]

    def begin(self, launch: ScanLaunch) -> int:
        """Make room for the rows of a launch, which have their places; see `DeviceCarry.begin`.

        Raises:
            DeviceFullError: if the device has none. Rows stay where they are.
        """
        if self._rows.room < self.places.room:
            self._rows.make_room(self.places.room, self.places.used())
        return super().begin(launch)

    def again(self, launch: ScanLaunch) -> Callable[[], int]:
        """See `DeviceCarry.again`: a launch writes the same rows again, and reads none of them before."""
        return partial(self.begin, launch)

    def advanced(self, position: int) -> None:
        """Do nothing: records are added when the next ones are placed."""

    def buffer(self, argument: Argument) -> cl.Buffer:
        """See `DeviceCarry.buffer`."""
        return self._rows.buffer(argument.part, self.places.used())

    def fetched(self) -> tuple[np.ndarray, ...]:
        """See `DeviceCarry.fetched`; gives the keys and values, as far as they count."""
        places = self.places
        places.turn += 1
        places.add()
        if self._is_ahead:
            self._rows.fetch(places.used())
            self._is_ahead = False
        return self._cache.arrays

    def mark(self) -> Callable[[], None]:
        """See `Carry.mark`; nothing is copied."""
        return self.places.mark()

    def snapshot(self) -> dict[str, Any]:
        """See `KeyValueCache.snapshot`."""
        self.fetched()
        return self._cache.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._cache.restore(state)
        self._begin_anew()

    def _move(self, moves: Sequence[tuple[int, int, int]]) -> bool:
        """Move rows where they are newest; see `Moves`."""
        self.places.turn += 1
        if not self._is_ahead:
            self._rows.forget()
            return False
        used = self.places.used()
        for text, row, rows in moves:
            used[text] = row + rows
        self._is_ahead = self._rows.move(moves, used)
        return self._is_ahead

    def _begin_anew(self) -> None:
        self.places.turn += 1
        self._rows.forget()
        self._is_ahead = False


class AttentionCarry(CacheCarry):
    """The keys and values of one text after the other; see `KeyValueCache`.

    Args:
        node: the attention.
        memory: where the device finds them.
        batch_items: records in a batch.
    """

    _cache: KeyValueCache

    def __init__(self, node: Node, memory: Memory, batch_items: int) -> None:
        self._cache = KeyValueCache(node, batch_items, self._move, grows=memory.rows_grow)
        self._has_positions = len(node.inputs) > 3
        super().__init__(node, memory)

    def begin(self, launch: ScanLaunch) -> int:
        """Make room for the records of a launch; gives the row of the first one.

        Raises:
            RunError: if a text is longer than the context.
        """
        if launch.items and self.places.batch != (launch.start, launch.items):
            at = launch.on_host(3) if self._has_positions else None
            self._cache.place(launch.start, launch.items, at)
        super().begin(launch)
        return self._cache.places.row


class SlotCarry(CacheCarry):
    """The keys and values of several texts that are open at once; see `SlotCache`.

    Args:
        node: the attention.
        memory: where the device finds them.
        batch_items: records in a batch.
    """

    _cache: SlotCache

    def __init__(self, node: Node, memory: Memory, batch_items: int) -> None:
        self._cache = SlotCache(node, batch_items, self._move, grows=memory.rows_grow)
        self._based: tuple[np.ndarray, int] | None = None
        # Launches that are repeated read this very array.
        super().__init__(node, memory, np.empty_like(self._cache.places.base))

    def begin(self, launch: ScanLaunch) -> int:
        """Make room for the records of a launch; gives 0, since each has its row by its place.

        Raises:
            RunError: if a text is longer than the context.
        """
        if launch.items and self.places.batch != (launch.start, launch.items):
            self._cache.place(launch.start, launch.on_host(3))
        super().begin(launch)
        base, room = self._cache.places.base, self._rows.room
        if self._based is None or self._based[0] is not base or self._based[1] != room:
            # A kernel in progress may read it.
            self._memory.wait()
            self._based = base, room
            np.add(base, np.arange(len(base)) * (room - self.places.most), out=self._states[0])
            self._memory.forget({self._base_key})
        return 0

    def buffer(self, argument: Argument) -> cl.Buffer:
        """See `DeviceCarry.buffer`."""
        return super().buffer(argument) if argument.part < 2 else self._memory.state(self._base_key, self._states[0])

    @property
    def _base_key(self) -> Hashable:
        return "state", self._node.id, 2


def make_device_carry(node: Node, kernel: Kernel, memory: Memory, batch_items: int) -> DeviceCarry:
    """Make what the scan of a kernel carries, for batches of so many records, at its beginning."""
    if kernel.work == "walk":
        return LastCarry(node, memory)
    if kernel.work == "attend":
        made = AttentionCarry if slots_of(node) == 1 else SlotCarry
        return made(node, memory, batch_items)
    return TileCarry(node, kernel.block, scan.tiles_handed_on(node, kernel), memory, batch_items)


def begin_nothing() -> int:
    """Return what `DeviceCarry.again` gives, where nothing is carried."""
    return 0
