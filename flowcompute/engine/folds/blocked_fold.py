"""Folds that reduce canonical blocks of records and merge the blocks' results in the aligned tree."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from flowcompute.engine.folds.accumulator import Accumulator
from flowcompute.engine.folds.block_tree import BlockTree, Node, RecordBlocks
from flowcompute.ir import Parts


class BlockedAccumulator(Accumulator):
    """A fold whose bits depend on the records and the size of its blocks, and on nothing else.

    Args:
        block: records in a block.
        start: index of the first record.
    """

    def __init__(self, block: int, start: int = 0) -> None:
        super().__init__(start)
        self.block = block
        self.cut = RecordBlocks(block, start)
        self.tree = BlockTree(self.merge_nodes, block, -(-start // block))

    @property
    def blocks_at_once(self) -> int:
        """Number of blocks that are reduced together, which changes no bit."""
        return 1 << 62

    @abstractmethod
    def arrays(self, values: Sequence[np.ndarray]) -> Parts:
        """Return operands as they are kept until a block is whole."""

    @abstractmethod
    def reduce(self, arrays: Parts, records: int, first: int) -> Parts:
        """Reduce blocks of `records` records each to nodes: arrays of `blocks * records` to arrays of `blocks`.

        Args:
            first: index of the first record.
        """

    @abstractmethod
    def merge_nodes(self, a: Parts, a_records: int, b: Parts, b_records: int) -> Parts:
        """Merge neighbouring nodes (arrays of them) into one each."""

    def nodes(self) -> list[Node]:
        """Return all that has come, in record order: unfinished blocks at both ends, nodes of the tree between them."""
        head, tail = self.cut.head, self.cut.tail
        found = self.tree.nodes
        if head.count:
            found.insert(0, self._unfinished(head.records, self.start))
        if tail.count:
            found.append(self._unfinished(tail.records, self.tree.next * self.block))
        return found

    def total(self) -> Node | None:
        """Return all that has come as one node, merged from the latest to the earliest; None without records."""
        total: Node | None = None
        with np.errstate(all="ignore"):
            for parts, records in reversed(self.nodes()):
                if total is None:
                    total = parts, records
                else:
                    pair = (tuple(part[None] for part in node) for node in (parts, total[0]))
                    merged = self.merge_nodes(next(pair), records, next(pair), total[1])
                    total = tuple(part[0] for part in merged), records + total[1]
        return total

    def is_one_block(self, records: int) -> bool:
        """Check whether so many records are one block, where they are all there are."""
        return not self.start and 0 < records <= self.block

    def _unfinished(self, arrays: Parts, first: int) -> Node:
        records = len(arrays[0])
        with np.errstate(all="ignore"):
            return tuple(part[0] for part in self.reduce(arrays, records, first)), records

    def _push(self, values: Sequence[np.ndarray]) -> None:
        self._take(self.arrays(values))

    def _take(self, arrays: Parts) -> None:
        if not arrays:
            return
        step = self.blocks_at_once * self.block
        for whole in self.cut.push(arrays):
            for first in range(0, len(whole[0]), step):
                part = tuple(array[first : first + step] for array in whole)
                with np.errstate(all="ignore"):
                    self.tree.add(self.reduce(part, self.block, self.tree.next * self.block))

    def _join(self, other: Self) -> None:
        self._take(other.cut.head.records)
        with np.errstate(all="ignore"):
            self.tree.join(other.tree)
        self._take(other.cut.tail.records)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data and arrays."""
        return {"start": self.start, "records": self.records, **self.cut.snapshot(), "tree": self.tree.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        self.start, self.records = state["start"], state["records"]
        self.cut = RecordBlocks(self.block, self.start)
        self.cut.restore(state)
        self.tree.restore(state["tree"])
