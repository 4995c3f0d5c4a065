"""Folds of products on a discrete device: records, blocks and the tree over them stay there until the end.

Blocks, the tree and snapshots are those of `engine.accumulators.products`. Only a block's product is a kernel's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from flowcompute.engine.folds import Accumulator, RecordBlocks
from flowcompute.errors import DeviceFullError, RunError
from flowcompute.gpu.device import cl
from flowcompute.gpu.run.folds.fold_device import FoldDevice
from flowcompute.graph import Node
from flowcompute.ir import HostFold, ProductShape, canonical_nan
from flowcompute.lower import lower_cast, lower_product, lower_sum
from flowcompute.schedule.memory import placeholder_array
from flowcompute.spec import FLOAT64


class DeviceProducts(Accumulator):
    """The state of `X.T @ Y` of two streams on a device.

    Records are copied behind each other until a block is whole. Its product is a node of the tree, in float64. A
    shorter last block is multiplied with zeros behind it, as many as its length says.

    Args:
        node: the fold's.
        spec: of the fold; operands in float32 or float64.
        there: its device.
        stays: whether nobody on the host reads its result.
    """

    def __init__(self, node: Node, spec: HostFold, there: FoldDevice, *, stays: bool) -> None:
        super().__init__(0)
        self._value, self._spec, self._there, self._stays = node.id, spec, there, stays
        self._told = partial(there.launcher.told, node.name, node.element.site)
        self._shape = ProductShape.of(spec)
        self._dtype = spec.operands[0].dtype
        self.block = self._shape.block
        self._widths = [one.item_bytes for one in spec.operands]
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._head = RecordBlocks(self.block, self.start).head
        self._count = 0
        # As in `BlockTree`: by level, left halves that wait, and right halves whose left one lies before the start.
        self._right: list[int | None] = []
        self._left: list[int | None] = []
        self._next = -(-self.start // self.block)
        self._free: list[int] = []
        self._nodes = 0

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self._spec

    # -- records ----------------------------------------------------------------------------------

    def prepare(self, items: int) -> Callable[[Sequence[cl.Buffer]], None]:
        """Allocate all that so many more records and the result need; gives what adds them.

        Raises:
            DeviceFullError: if the device has no room for it.
        """
        self.reserve(items)
        return partial(self.push, items=items)

    def reserve(self, items: int) -> None:
        """Allocate all that so many more records and the result need.

        Raises:
            DeviceFullError: if the device has no room for it.
        """
        blocks = self._next + (self._count + items) // self.block
        # Nodes wait at each level, on both sides where the range begins inside of the tree. Three are in hand.
        sides = 2 if self.start else 1
        while self._nodes < sides * blocks.bit_length() + 3:
            self._buffer(self._nodes)
            self._free.append(self._nodes)
            self._nodes += 1
        self._rooms()
        self._there.buffer(self._named("product"), self._dtype, self._shape.numbers)
        self._there.buffer(self._value, self._spec.result.dtype, self._shape.numbers)

    def push(self, operands: Sequence[cl.Buffer], items: int) -> None:
        """Add the records that come next, in buffers that nobody changes until the device has been waited for."""

        def copy(place: int, first: int, size: int, to: int) -> None:
            self._there.copy(operands[place], self._room(place), size, first, to)

        self._take(copy, items)
        self.records += items

    def _push(self, values: Sequence[np.ndarray]) -> None:
        """Add records that lie on the host."""
        lines = [np.ascontiguousarray(value).reshape(-1).view(np.uint8) for value in values]

        def copy(place: int, first: int, size: int, to: int) -> None:
            self._there.upload(lines[place][first : first + size], self._room(place), to)

        with self._told():
            try:
                self.reserve(len(values[0]))
            except DeviceFullError as error:
                # Others may have been given their records already: nothing is computed again.
                raise RunError(error.message, expected="room for a fold", got=error.got, hint=error.hint) from error
            self._take(copy, len(values[0]))

    def _take(self, copy: Callable[[int, int, int, int], None], items: int) -> None:
        """Add the records that come next.

        Args:
            copy: puts bytes of an operand, given by its place, from a place on into a place of its room.
            items: how many there are.
        """
        taken = self._to_head(copy, items)
        while taken < items:
            some = min(self.block - self._count, items - taken)
            self._append(copy, taken, some)
            taken += some
            if self._count == self.block:
                self._insert(self._product(self.block))
                self._count = 0

    def _to_head(self, copy: Callable[[int, int, int, int], None], items: int) -> int:
        """Bring records before the first whole block to the host; gives how many."""
        some = min(self._head.size - self._head.count, items)
        if some:
            self._append(copy, 0, some)
            self._head.take(tuple(self._fetched_records()))
            self._count = 0
        return some

    def _append(self, copy: Callable[[int, int, int, int], None], first: int, some: int) -> None:
        for place, width in enumerate(self._widths):
            copy(place, first * width, some * width, self._count * width)
        self._count += some

    def _room(self, place: int) -> cl.Buffer:
        """Return the buffer of an operand's records of a block."""
        numbers = self._spec.operands[place].item_numbers
        return self._there.buffer(self._named("room", place), self._dtype, self.block * numbers)

    def _rooms(self) -> list[cl.Buffer]:
        return [self._room(place) for place in range(len(self._spec.operands))]

    def _fetched_records(self) -> Iterator[np.ndarray]:
        """Yield the records of the open block, `(records, numbers)` of each operand."""
        for room, one in zip(self._rooms(), self._spec.operands, strict=True):
            records = np.empty((self._count, one.item_numbers), self._dtype)
            self._there.memory.fetch_handed(room, records)
            yield records

    # -- nodes ------------------------------------------------------------------------------------

    def _named(self, *what: Hashable) -> Hashable:
        return ("products", self._value, *what)

    def _buffer(self, node: int) -> cl.Buffer:
        return self._there.buffer(self._named("node", node), FLOAT64, self._shape.numbers)

    def _multiply(self, records: int, made: cl.Buffer) -> None:
        """Multiply the first records in the rooms, in the operands' dtype."""
        shape, rooms = self._shape, self._rooms()
        rows = shape.padded(records)
        for room, width in zip(rooms, self._widths, strict=True):
            self._there.clear(room, records * width, rows * width // shape.rows)
        kernel = lower_product(self._dtype, rows, shape.left, shape.right, self._there.style)
        self._there.launch(kernel, (rooms[0], rooms[-1]), made, 1)

    def _product(self, records: int) -> int:
        """Return the product of the first records in the rooms, as a node."""
        there, node = self._there, self._free.pop()
        if self._dtype == FLOAT64:
            self._multiply(records, self._buffer(node))
            return node
        narrow = there.buffer(self._named("product"), self._dtype, self._shape.numbers)
        self._multiply(records, narrow)
        there.launch(lower_cast(self._dtype, FLOAT64, there.style), (narrow,), self._buffer(node), self._shape.numbers)
        return node

    def _sum(self, one: int, other: int) -> int:
        """Return the sum of two nodes, which are kept."""
        there, made = self._there, self._free.pop()
        operands = self._buffer(one), self._buffer(other)
        there.launch(lower_sum(there.style), operands, self._buffer(made), self._shape.numbers)
        return made

    def _insert(self, node: int) -> None:
        """Add the next block to the tree; see `BlockTree`."""
        index, level = self._next, 0
        self._next += 1
        while True:
            while level >= len(self._right):
                self._right.append(None)
                self._left.append(None)
            waiting, self._right[level] = self._right[level], None
            if waiting is None:
                (self._left if index % 2 else self._right)[level] = node
                return
            made = self._sum(waiting, node)
            self._free += [waiting, node]
            node, index, level = made, index // 2, level + 1

    # -- result -----------------------------------------------------------------------------------

    def result(self) -> np.ndarray:
        """Return the product over all records so far; 0 without any. The device has it, too.

        The array is a placeholder where nobody on the host reads it.
        """
        spec = self._spec.result
        with self._told():
            self._end()
            if self._stays:
                return placeholder_array(spec)
            array = np.empty(spec.shape, spec.dtype)
            self._there.memory.fetch(self._value, array)
        return canonical_nan(array)

    def _end(self) -> None:
        """Make the result on the device."""
        there, spec, numbers = self._there, self._spec.result, self._shape.numbers
        self.reserve(0)
        made = there.buffer(self._value, spec.dtype, numbers)
        inside = [node for node in (*self._right, *reversed(self._left)) if node is not None]
        if self._count and not inside and not self._head.count and self._dtype == spec.dtype != FLOAT64:
            # Widened and rounded again it would be the same.
            self._multiply(self._count, made)
        elif (total := self._total(inside)) is None:
            there.clear(made, 0, numbers * spec.dtype.itemsize)
        else:
            if spec.dtype == FLOAT64:
                there.copy(self._buffer(total), made, numbers * 8)
            else:
                there.launch(lower_cast(FLOAT64, spec.dtype, there.style), (self._buffer(total),), made, numbers)
            if total not in inside:
                self._free.append(total)

    def _total(self, inside: Sequence[int]) -> int | None:
        """Return all that has come as one node, merged from the latest to the earliest; see `BlockedAccumulator`."""
        own = [self._product(self._count)] if self._count else []
        order = [*own, *inside]
        if self._head.count:
            own.append(self._product_of_head())
            order.append(own[-1])
        total: int | None = None
        for node in order:
            made = node if total is None else self._sum(node, total)
            self._free += [one for one in (node, total) if one is not None and one in own and one != made]
            own, total = [*own, made], made
        return total

    def _product_of_head(self) -> int:
        """Return the product of the records before the first whole block. The rooms are those of the open block."""
        kept, count = tuple(self._fetched_records()), self._count
        self._put(self._head.records)
        node = self._product(self._head.count)
        self._put(kept)
        self._count = count
        return node

    def _put(self, arrays: Sequence[np.ndarray]) -> None:
        """Upload records into the rooms, in place of those there."""
        for room, array in zip(self._rooms(), arrays, strict=False):
            self._there.upload(array, room)
        self._count = len(arrays[0]) if arrays else 0

    # -- state ------------------------------------------------------------------------------------

    def _join(self, other: Self) -> None:
        raise ValueError(f"cannot merge states on a device, of {self.records} and {other.records} records")

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data and arrays, as a fold on the host has it."""
        sides = {"left": self._left, "right": self._right}
        with self._told():
            tree = {
                name: [None if node is None else [self._fetched(node)] for node in side] for name, side in sides.items()
            }
            tail = [*self._fetched_records()] if self._count else []
        blocks = {"head": self._head.snapshot(), "tail": tail}
        return {"start": self.start, "records": self.records, **blocks, "tree": {"next": self._next, **tree}}

    def _fetched(self, node: int) -> np.ndarray:
        array = np.empty((self._shape.left, self._shape.right))
        self._there.memory.fetch_handed(self._buffer(node), array)
        return array

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold, on a device or the host.

        Raises:
            ValueError: if it is of another one.
        """
        self.start, self.records = state["start"], state["records"]
        self._begin_anew()
        tree = state["tree"]
        self._next = tree["next"]
        head, tail = (self._checked(state[name]) for name in ("head", "tail"))
        if head:
            self._head.take(head)
        with self._told():
            self.reserve(0)
            self._left, self._right = ([self._restored(one) for one in tree[side]] for side in ("left", "right"))
            self._put(tail)

    def _checked(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return records of a block, if they are such."""
        numbers = [one.item_numbers for one in self._spec.operands]
        found = [(one.dtype, one.shape[1:]) for one in arrays]
        if found and (found != [(self._dtype, (n,)) for n in numbers] or len({len(one) for one in arrays}) != 1):
            raise ValueError(f"records of {found} in place of rows of {numbers} numbers of {self._dtype}")
        if found and len(arrays[0]) >= self.block:
            raise ValueError(f"{len(arrays[0])} records of an open block of {self.block}")
        return tuple(arrays)

    def _restored(self, parts: Sequence[np.ndarray] | None) -> int | None:
        """Return a node with the numbers of a kept one."""
        if parts is None:
            return None
        (array,) = parts
        if array.dtype != FLOAT64 or array.shape != (self._shape.left, self._shape.right):
            raise ValueError(f"a node of {array.dtype}{array.shape}, where {self._shape} is folded")
        node = self._free.pop()
        self._there.upload(array, self._buffer(node))
        return node
