"""Records cut at canonical blocks, and results of blocks merged in the aligned tree, from any first record on.

Both begin anywhere in the stream, so that ranges of records reduced apart and joined later
give the bits of one reduced at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from flowcompute.ir import Parts

Node = tuple[Parts, int]
"""One row of each part, and how many records it stands for."""

Merge = Callable[[Parts, int, Parts, int], Parts]
"""`merge(a, records of each a, b, records of each b)`: neighbouring nodes, arrays of them, as one each."""


class _Room:
    """Memory for a number of records that batches fill."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        self._arrays: Parts = ()

    @property
    def records(self) -> Parts:
        """State of all that has come so far."""
        return tuple(array[: self.count] for array in self._arrays)

    def take(self, arrays: Parts) -> int:
        """Copy records until full; gives how many."""
        taken = min(self.size - self.count, len(arrays[0]))
        if taken:
            if not self._arrays:
                self._arrays = tuple(np.empty((self.size, *array.shape[1:]), array.dtype) for array in arrays)
            for own, array in zip(self._arrays, arrays, strict=True):
                own[self.count : self.count + taken] = array[:taken]
            self.count += taken
        return taken

    def snapshot(self) -> list[np.ndarray]:
        return [array.copy() for array in self.records]

    def restore(self, arrays: Sequence[np.ndarray]) -> None:
        self.count, self._arrays = 0, ()
        if arrays:
            self.take(tuple(arrays))


class RecordBlocks:
    """Cuts records that come in batches of any size at whole blocks.

    `head` keeps the records before the first whole block (of a range that begins inside one),
    `tail` those after the last.
    """

    def __init__(self, block: int, start: int) -> None:
        self.block = block
        self.head = _Room(-start % block)
        self.tail = _Room(block)

    def push(self, arrays: Parts) -> Iterator[Parts]:
        """Add records; gives the whole blocks that they complete, valid until the next is asked for."""
        taken = self.head.take(arrays)
        if self.tail.count:
            taken += self.tail.take(tuple(array[taken:] for array in arrays))
            if self.tail.count == self.block:
                yield self.tail.records
                self.tail.count = 0
        whole = taken + (len(arrays[0]) - taken) // self.block * self.block
        if whole > taken:
            yield tuple(array[taken:whole] for array in arrays)
        self.tail.take(tuple(array[whole:] for array in arrays))

    def snapshot(self) -> dict[str, Any]:
        """Return the records kept."""
        return {"head": self.head.snapshot(), "tail": self.tail.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.head.restore(state["head"])
        self.tail.restore(state["tail"])


class BlockTree:
    """Results of consecutive whole blocks, merged in a binary tree that is aligned to the block index.

    Node i of level l stands for the blocks i * 2^l to (i + 1) * 2^l - 1, whichever block the range begins with. It is
    made as soon as both halves are there, many at a time.

    Args:
        merge: two neighbouring nodes as one.
        block: records in a block.
        first: index of the first block.
    """

    def __init__(self, merge: Merge, block: int, first: int) -> None:
        self._merge = merge
        self.block = block
        self.next = first
        # By level: left halves that wait for blocks to come; right halves whose left one lies before the first block.
        self._right: list[Parts | None] = []
        self._left: list[Parts | None] = []

    def add(self, parts: Parts) -> None:
        """Add the results of the next blocks, one row of each part for a block."""
        count = len(parts[0])
        self._insert(parts, 0)
        self.next += count

    def _insert(self, nodes: Parts, level: int) -> None:
        index = self.next >> level
        while len(nodes[0]):
            while level >= len(self._right):
                self._right.append(None)
                self._left.append(None)
            waiting, self._right[level] = self._right[level], None
            if waiting is not None:
                nodes = tuple(np.concatenate([w[None], n]) for w, n in zip(waiting, nodes, strict=True))
            elif index % 2:
                self._left[level] = tuple(node[0].copy() for node in nodes)
                nodes, index = tuple(node[1:] for node in nodes), index + 1
            if len(nodes[0]) % 2:
                self._right[level] = tuple(node[-1].copy() for node in nodes)
                nodes = tuple(node[:-1] for node in nodes)
            if len(nodes[0]):
                records = self.block << level
                left, right = (tuple(node[side::2] for node in nodes) for side in (0, 1))
                nodes = self._merge(left, records, right, records)
            level, index = level + 1, index // 2

    def add_node(self, node: Parts, level: int) -> None:
        """Add what the next 2^level blocks, the first of which is a multiple of as many, are merged into."""
        self._insert(tuple(part[None] for part in node), level)
        self.next += 1 << level

    def join(self, other: BlockTree) -> None:
        """Add the nodes of a tree over the blocks that follow."""
        for level, node in other._in_order():
            self.add_node(node, level)

    def _in_order(self) -> Iterator[tuple[int, Parts]]:
        """Return levels and nodes, in block order."""
        for side, levels in ((self._left, range(len(self._left))), (self._right, range(len(self._right) - 1, -1, -1))):
            for level in levels:
                node = side[level]
                if node is not None:
                    yield level, node

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are no part of another, in block order."""
        return [(node, self.block << level) for level, node in self._in_order()]

    def snapshot(self) -> dict[str, Any]:
        """Return the nodes as plain data and arrays."""
        sides = {"left": self._left, "right": self._right}
        kept = {name: [_plain(node) for node in nodes] for name, nodes in sides.items()}
        return {"next": self.next, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.next = state["next"]
        self._left, self._right = (
            [None if node is None else tuple(node) for node in state[side]] for side in ("left", "right")
        )


def _plain(node: Parts | None) -> list[np.ndarray] | None:
    return None if node is None else [part.copy() for part in node]
