"""Folds of products on a discrete device: records, blocks and the tree over them stay there until the end.

Blocks, the tree and snapshots are those of `engine.accumulators.products`. Only a block's product is a kernel's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from flowcompute.engine.accumulators import Products
from flowcompute.engine.folds import Accumulator, RecordBlocks
from flowcompute.errors import DeviceFullError, RunError
from flowcompute.gpu.device import cl
from flowcompute.gpu.run.folds.block_products import add_products
from flowcompute.gpu.run.folds.fold_device import FoldDevice
from flowcompute.graph import Node
from flowcompute.imports import LateModule
from flowcompute.ir import HostFold, Kernel, ProductShape, canonical_nan, waiting_nodes
from flowcompute.schedule.memory import placeholder_array
from flowcompute.spec import FLOAT64

if TYPE_CHECKING:
    from flowcompute import lower
else:
    lower = LateModule("flowcompute.lower")

Copy: TypeAlias = "Callable[[int, int, int, cl.Buffer, int], None]"
"""`copy(place, first, size, room, to)` puts bytes of an operand, given by its place, into a place of a room."""


class DeviceProducts(Accumulator):
    """The state of `X.T @ Y` of two streams on a device.

    Records are copied behind each other until blocks are whole. Several blocks are multiplied in one launch, where they
    make one node of the tree, which is in float64. A shorter last block is multiplied with zeros behind it, as many as
    its length says. In a step of a training, records that need no zeros are multiplied where they lie.

    Args:
        node: the fold's.
        spec: of the fold; operands in float32 or float64.
        there: its device.
        length: records at most; None if unknown.
        stays: whether nobody on the host reads its result.
        in_step: whether it is of a step of a training, within which nobody asks for its state.
    """

    def __init__(
        self,
        node: Node,
        spec: HostFold,
        there: FoldDevice,
        length: int | None,
        *,
        stays: bool,
        in_step: bool = False,
    ) -> None:
        super().__init__(0)
        self._value, self._spec, self._there, self._stays = node.id, spec, there, stays
        self._told = partial(there.launcher.told, node.name, node.element.site)
        self._shape, self._whole = ProductShape.of(spec), length if in_step else None
        self._dtype = spec.operands[0].dtype
        self.block, self._together = self._shape.block, self._shape.together(length)
        self._opened_rows = self._shape.opened_rows(length)
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
        self._nodes: list[cl.Buffer] = []
        self._rooms: dict[int, cl.Buffer] = {}
        self._kernels: dict[tuple[int, int], Kernel] = {}
        self._is_ended = False

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
        if self._are_whole(items):
            self._made()
            return partial(self._multiply_whole, items)
        self.reserve(items)
        return partial(self.push, items=items)

    def _are_whole(self, items: int) -> bool:
        """Check whether so many records are the whole stream, and one block without zeros.

        Their product is the result then. Widened for the tree and rounded again it would be the same.
        """
        rows = items * self._shape.rows
        is_one = 0 < items <= self.block and self._shape.padded(items) == rows
        return items == self._whole and is_one and self._dtype == self._spec.result.dtype != FLOAT64

    def _multiply_whole(self, items: int, operands: Sequence[cl.Buffer]) -> None:
        """Multiply the only records, in buffers that nobody changes until the device has been waited for."""
        self._multiply(items, operands, self._made())
        self.records += items
        self._is_ended = True

    def _made(self) -> cl.Buffer:
        return self._there.buffer(self._value, self._spec.result.dtype, self._shape.numbers)

    def reserve(self, items: int) -> None:
        """Allocate all that so many more records and the result need.

        Raises:
            DeviceFullError: if the device has no room for it.
        """
        first = -(-self.start // self.block)
        blocks = self._next - first + (self._count + items) // self.block
        # Three are in hand.
        there, numbers = self._there, self._shape.numbers
        while len(self._nodes) < waiting_nodes(first, blocks) + 3:
            self._free.append(len(self._nodes))
            self._nodes.append(there.buffer(self._named("node", len(self._nodes)), FLOAT64, numbers))
        for place, one in enumerate(self._spec.operands):
            room = self._opened_rows * (one.item_numbers // self._shape.rows)
            self._rooms[place] = there.buffer(self._named("room", place), self._dtype, room)
            self._gathered(place)
        self._products()
        self._made()

    def push(self, operands: Sequence[cl.Buffer], items: int) -> None:
        """Add the records that come next, in buffers that nobody changes until the device has been waited for."""

        def copy(place: int, first: int, size: int, room: cl.Buffer, to: int) -> None:
            self._there.copy(operands[place], room, size, first, to)

        self._take(copy, items)
        self.records += items

    def _push(self, values: Sequence[np.ndarray]) -> None:
        """Add records that lie on the host."""
        lines = [np.ascontiguousarray(value).reshape(-1).view(np.uint8) for value in values]

        def copy(place: int, first: int, size: int, room: cl.Buffer, to: int) -> None:
            self._there.upload(lines[place][first : first + size], room, to)

        with self._told():
            try:
                self.reserve(len(values[0]))
            except DeviceFullError as error:
                # Others may have been given their records already: nothing is computed again.
                raise RunError(error.message, expected="room for a fold", got=error.got, hint=error.hint) from error
            self._take(copy, len(values[0]))

    def _take(self, copy: Copy, items: int) -> None:
        """Add the records that come next.

        Args:
            copy: puts bytes of an operand, given by its place, from a place on into a place of a room.
            items: how many there are.
        """
        taken = self._to_head(copy, items)
        while (whole := (self._count + items - taken) // self.block) > 0:
            # As many as are one node.
            blocks = min(self._together, 1 << (whole.bit_length() - 1), (self._next & -self._next) or self._together)
            some = blocks * self.block - self._count
            if blocks == 1:
                self._append(copy, taken, some)
                self._insert(self._product(self.block))
            else:
                self._gather(copy, taken, some)
                self._insert(self._added(blocks), blocks.bit_length() - 1)
            taken, self._count = taken + some, 0
        if taken < items:
            self._append(copy, taken, items - taken)

    def _to_head(self, copy: Copy, items: int) -> int:
        """Bring records before the first whole block to the host; gives how many."""
        some = min(self._head.size - self._head.count, items)
        if some:
            self._append(copy, 0, some)
            self._head.take(tuple(self._fetched_records()))
            self._count = 0
        return some

    def _append(self, copy: Copy, first: int, some: int) -> None:
        for place, width in enumerate(self._widths):
            copy(place, first * width, some * width, self._rooms[place], self._count * width)
        self._count += some

    def _gather(self, copy: Copy, first: int, some: int) -> None:
        """Put the open block, and records behind it, to where several blocks have room."""
        for place, width in enumerate(self._widths):
            opened, room = self._count * width, self._gathered(place)
            if opened:
                self._there.copy(self._rooms[place], room, opened)
            copy(place, first * width, some * width, room, opened)

    # Of what is used within one launch all folds of a pass have the same: they launch in one queue. It is looked up
    # where it is used, since a fold that needs a larger one replaces it.

    def _gathered(self, place: int) -> cl.Buffer:
        """Return the buffer of an operand's records of blocks that are multiplied together."""
        numbers = self._spec.operands[place].item_numbers
        if self._together == 1:
            return self._rooms[place]
        return self._there.buffer(("all products", place), self._dtype, self._together * self.block * numbers)

    def _products(self) -> cl.Buffer:
        """Return the buffer of the products of some blocks."""
        return self._there.buffer(("all products", "made"), self._dtype, self._together * self._shape.numbers)

    def _fetched_records(self) -> Iterator[np.ndarray]:
        """Yield the records of the open block, `(records, numbers)` of each operand."""
        for room, one in zip(self._rooms.values(), self._spec.operands, strict=True):
            records = np.empty((self._count, one.item_numbers), self._dtype)
            self._there.memory.fetch_handed(room, records)
            yield records

    # -- nodes ------------------------------------------------------------------------------------

    def _named(self, *what: Hashable) -> Hashable:
        return ("products", self._value, *what)

    def _multiply_rooms(self, records: int, made: cl.Buffer) -> None:
        """Multiply the first records in the rooms, in the operands' dtype."""
        shape, rooms = self._shape, [*self._rooms.values()]
        rows = shape.padded(records)
        for room, width in zip(rooms, self._widths, strict=True):
            self._there.clear(room, records * width, rows * width // shape.rows)
        self._multiply(records, rooms, made)

    def _multiply(self, records: int, operands: Sequence[cl.Buffer], made: cl.Buffer) -> None:
        """Multiply records, behind which lie zeros."""
        self._there.launch(self._kernel(self._shape.padded(records)), (operands[0], operands[-1]), made, 1)

    def _kernel(self, rows: int, blocks: int = 1) -> Kernel:
        """Return the kernel that multiplies each of some blocks of so many rows."""
        if (rows, blocks) not in self._kernels:
            shape, style = self._shape, self._there.style
            self._kernels[rows, blocks] = lower.lower_product(self._dtype, rows, shape.left, shape.right, style, blocks)
        return self._kernels[rows, blocks]

    def _product(self, records: int) -> int:
        """Return the product of the first records in the rooms, as a node."""
        there, node = self._there, self._free.pop()
        if self._dtype == FLOAT64:
            self._multiply_rooms(records, self._nodes[node])
            return node
        narrow = self._products()
        self._multiply_rooms(records, narrow)
        there.launch(
            lower.lower_cast(self._dtype, FLOAT64, there.style), (narrow,), self._nodes[node], self._shape.numbers
        )
        return node

    def _added(self, blocks: int) -> int:
        """Return the node of some whole blocks that were gathered."""
        there, shape, node, made = self._there, self._shape, self._free.pop(), self._products()
        kernel = self._kernel(self.block * shape.rows, blocks)
        operands = self._gathered(0), self._gathered(len(self._rooms) - 1)
        there.launch(kernel, operands, made, blocks)
        add_products(there, made, self._nodes[node], self._dtype, shape.numbers, blocks)
        return node

    def _sum(self, one: int, other: int) -> int:
        """Return the sum of two nodes, which are kept."""
        there, made = self._there, self._free.pop()
        operands = self._nodes[one], self._nodes[other]
        there.launch(lower.lower_sum(there.style), operands, self._nodes[made], self._shape.numbers)
        return made

    def _insert(self, node: int, level: int = 0) -> None:
        """Add the next block to the tree, or the node of the next 2^level blocks; see `BlockTree`."""
        index = self._next >> level
        self._next += 1 << level
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
            if not self._is_ended:
                self._end()
            # What was made before the end of the pass is found there from now on.
            self._made()
            if self._stays:
                return placeholder_array(spec)
            array = np.empty(spec.shape, spec.dtype)
            self._there.memory.fetch(self._value, array)
        return canonical_nan(array)

    def _end(self) -> None:
        """Make the result on the device."""
        there, spec, numbers = self._there, self._spec.result, self._shape.numbers
        self.reserve(0)
        made = self._made()
        inside = [node for node in (*self._right, *reversed(self._left)) if node is not None]
        if self._count and not inside and not self._head.count and self._dtype == spec.dtype != FLOAT64:
            # Widened and rounded again it would be the same.
            self._multiply_rooms(self._count, made)
        elif (total := self._total(inside)) is None:
            there.clear(made, 0, numbers * spec.dtype.itemsize)
        else:
            if spec.dtype == FLOAT64:
                there.copy(self._nodes[total], made, numbers * 8)
            else:
                there.launch(lower.lower_cast(FLOAT64, spec.dtype, there.style), (self._nodes[total],), made, numbers)
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
        for room, array in zip(self._rooms.values(), arrays, strict=False):
            self._there.upload(array, room)
        self._count = len(arrays[0]) if arrays else 0

    # -- state ------------------------------------------------------------------------------------

    def takes(self, other: Accumulator) -> bool:
        """Check whether it can take in a state, which is on the host."""
        return isinstance(other, Products)

    def _join(self, other: Products) -> None:
        head, tail = other.cut.head.records, other.cut.tail.records
        if head:
            self._push(head)
        with self._told():
            self.reserve(other.records)
            for parts, records in other.tree.nodes:
                self._insert(self._restored(parts), (records // self.block).bit_length() - 1)
        if tail:
            self._push(tail)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data and arrays, as a fold on the host has it."""
        return self._state(lambda _side, _level: np.empty(self._shape.numbers))

    def hand_over(self) -> dict[str, Any]:
        """Return the state as `snapshot` does, in memory that a later fold of the same step takes."""
        return self._state(lambda side, level: self._there.room(self._named("node", side, level), self._shape.numbers))

    def _state(self, room: Callable[[str, int], np.ndarray]) -> dict[str, Any]:
        """Return the state; `room(side, level)` gives memory for the numbers of a node."""
        sides, tree = {"left": self._left, "right": self._right}, dict[str, Any]()
        with self._told():
            for name, side in sides.items():
                tree[name] = [
                    None if node is None else [self._fetched(node, room(name, level))]
                    for level, node in enumerate(side)
                ]
            tail = [*self._fetched_records()] if self._count else []
        blocks = {"head": self._head.snapshot(), "tail": tail}
        return {"start": self.start, "records": self.records, **blocks, "tree": {"next": self._next, **tree}}

    def _fetched(self, node: int, array: np.ndarray) -> np.ndarray:
        """Return the numbers of a node as a matrix, in an array with room for them."""
        self._there.memory.fetch_handed(self._nodes[node], array)
        return array.reshape(self._shape.left, self._shape.right)

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
            self._left, self._right = (
                [None if one is None else self._restored(one) for one in tree[side]] for side in ("left", "right")
            )
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

    def _restored(self, parts: Sequence[np.ndarray]) -> int:
        """Return a node with the numbers of one on the host."""
        (array,) = parts
        if array.dtype != FLOAT64 or array.shape != (self._shape.left, self._shape.right):
            raise ValueError(f"a node of {array.dtype}{array.shape}, where {self._shape} is folded")
        node = self._free.pop()
        self._there.memory.fill(self._nodes[node], array)
        return node
