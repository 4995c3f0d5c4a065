"""The state of a fold over the stream: partial results of canonical blocks, merged on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from flowcompute.engine.folds.block_tree import Node
from flowcompute.engine.folds.blocked_fold import BlockedAccumulator
from flowcompute.engine.folds.fused_products import fused_multiply_add
from flowcompute.ir import (
    LANES,
    FoldSpec,
    Parts,
    canonical_nan,
    combine,
    identity,
    merge_dtype,
    reduce_block,
    reduce_rows,
)
from flowcompute.spec import FLOAT64, is_float

TOGETHER = 1 << 13
"""Numbers of blocks that are merged at a time: 64 KiB in float64, small enough that an allocator keeps the memory."""

Merged = tuple[int, int, Parts]
"""The place of a block in a batch, the level of the node that begins with it, and the node."""


class Fold(BlockedAccumulator):
    """Accumulates a canonical reduction, from records or from blocks that a kernel has reduced.

    `push_records` keeps the records of an unfinished block; `push_blocks` takes whole blocks
    and, at the end of the stream, the last shorter one; `push_open_blocks` accumulators. A fold
    that was restored may go on in another of these ways than it began in, with the same bits.
    """

    def __init__(self, spec: FoldSpec, start: int = 0) -> None:
        super().__init__(spec.block, start)
        self.spec = spec
        self._open: tuple[Parts, int] | None = None

    @property
    def description(self) -> FoldSpec:
        """Record of the fold."""
        return self.spec

    def arrays(self, values: Sequence[np.ndarray]) -> Parts:
        """Return operands as `(records, numbers)`."""
        return tuple(np.asarray(value).reshape(len(value), self.spec.numbers) for value in values)

    def push_blocks(self, parts: Sequence[np.ndarray], records: int) -> None:
        """Add `records` records as partial results of blocks, arrays `(blocks, *item)` of `spec.parts()`.

        All but the last block of the stream are whole.

        Raises:
            ValueError: after a block that was not whole.
        """
        self._push_parts(parts, 0, records)

    def push_open_blocks(
        self, parts: Sequence[np.ndarray], phase: int, records: int, merged: Sequence[Merged] = ()
    ) -> None:
        """Add records as accumulators of blocks, the first of which began `phase` records earlier.

        The last block may go on in the next batch: it counts only when it is whole, or in `result`. Some of the
        whole ones may be `merged` already.

        Raises:
            ValueError: if the block before did not end so many records earlier.
        """
        self._push_parts(parts, phase, records, merged)

    def _push_parts(self, parts: Sequence[np.ndarray], phase: int, records: int, merged: Sequence[Merged] = ()) -> None:
        if phase != self.stop % self.block:
            raise ValueError(
                f"cannot add blocks: a block goes on after {self.stop % self.block} records, not after {phase}"
            )
        flat = self.arrays(parts)
        whole = (phase + records) // self.block
        done = 0
        with np.errstate(all="ignore"):
            for place, level, node in merged:
                self._add_blocks(flat, done, place)
                self.tree.add_node(node, level)
                done = place + (1 << level)
            self._add_blocks(flat, done, whole)
        rest = phase + records - whole * self.block
        self._open = (tuple(part[whole].copy() for part in flat), rest) if rest else None
        self.records += records

    def _add_blocks(self, parts: Parts, start: int, stop: int) -> None:
        step = max(1, TOGETHER // max(1, self.spec.numbers))
        for at in range(start, stop, step):
            some = tuple(part[at : min(at + step, stop)] for part in parts)
            self.tree.add(self._prepared(some, self.block))

    def nodes(self) -> list[Node]:
        """Return all that has come, in record order, with the accumulators of the open block."""
        found = super().nodes()
        if self._open is not None:
            parts, records = self._open
            with np.errstate(all="ignore"):
                prepared = self._prepared(tuple(part[None] for part in parts), records)
            found.append((tuple(part[0] for part in prepared), records))
        return found

    def result(self) -> np.ndarray:
        """Return the value of the fold over all records so far."""
        total = self.total()
        return self._finish(None if total is None else total[0], self.records)

    def value_of(self, values: Sequence[np.ndarray]) -> np.ndarray | None:
        """Return the value of the fold over these records alone; see `Accumulator.value_of`."""
        if not self.is_one_block(len(values[0])):
            return None
        node, records = self._unfinished(self.arrays(values), 0)
        return self._finish(node, records)

    def values_of(self, several: Sequence[Sequence[np.ndarray]]) -> np.ndarray | None:
        """Return the values of the fold over each of several lots of records alone; None where `value_of` gives them.

        Args:
            several: lots of as many records, each as `value_of` takes it.

        Returns:
            An array `(lots, *item)` with the bits of `value_of`.
        """
        return self.values_of_runs([np.concatenate(parts) for parts in zip(*several, strict=True)], len(several[0][0]))

    def values_of_runs(self, values: Sequence[np.ndarray], records: int) -> np.ndarray | None:
        """Return the values of the fold over each run of so many records alone; None where `value_of` gives them.

        Args:
            values: whole runs, as `value_of` takes them.
            records: in each run.

        Returns:
            An array `(runs, *item)` with the bits of `value_of`.
        """
        if not self.is_one_block(records):
            return None
        with np.errstate(all="ignore"):
            made = self._finish(self.reduce(self.arrays(values), records, 0), records)
        if self.spec.op in ("argmin", "argmax"):
            # Places count from the first record of a run.
            first = np.arange(len(made), dtype=made.dtype) * (records * self.spec.inner)
            made -= first.reshape(-1, *(1,) * (made.ndim - 1))
        return made

    def value_of_block(self, parts: Sequence[np.ndarray], records: int) -> np.ndarray:
        """Return the value of the fold over the records of one block, which are all there are.

        Args:
            parts: its partial results, arrays `(1, *item)` of `spec.parts()`.
            records: in the block.
        """
        with np.errstate(all="ignore"):
            prepared = self._prepared(self.arrays(parts), records)
            return self._finish(tuple(part[0] for part in prepared), records)

    def _join(self, other: Self) -> None:
        if self._open is not None:
            raise ValueError(
                f"cannot merge: record {self.stop} lies inside a block of {self.block} records whose first part "
                "a kernel reduced; such states are merged at whole blocks only"
            )
        super()._join(other)
        self._open = other._open

    def open_tail(self) -> None:
        """Turn the records of an unfinished block into accumulators, which a kernel goes on with."""
        tail = self.cut.tail
        if tail.count:
            first = self.stop - tail.count
            with np.errstate(all="ignore"):
                accumulated = self._accumulate(self._mapped(tail.records, tail.count, first))
            self._open = (tuple(part[0] for part in accumulated), tail.count)
            tail.count = 0

    def _push(self, values: Sequence[np.ndarray]) -> None:
        arrays = self.arrays(values)
        if self._open is not None:
            arrays = self._go_on(arrays)
        self._take(arrays)

    def _go_on(self, arrays: Parts) -> Parts:
        """Add records to the accumulators of the open block; gives those that belong to later ones."""
        assert self._open is not None
        before, done = self._open
        items = min(self.block - done, len(arrays[0]))
        if items:
            own = self._mapped(tuple(array[:items] for array in arrays), items, self.stop)
            with np.errstate(all="ignore"):
                after = self._accumulate(own, tuple(part[None] for part in before))
                self._open = (tuple(part[0].copy() for part in after), done + items)
                if done + items == self.block:
                    self.tree.add(self._prepared(after, self.block))
                    self._open = None
        return tuple(array[items:] for array in arrays)

    @property
    def open_accumulators(self) -> Parts | None:
        """The accumulators of the block that the next batch goes on with, one array of numbers a part."""
        return None if self._open is None else self._open[0]

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data and arrays."""
        kept = None if self._open is None else [[part.copy() for part in self._open[0]], self._open[1]]
        return {**super().snapshot(), "open": kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        super().restore(state)
        self._open = None if state["open"] is None else (tuple(state["open"][0]), state["open"][1])

    # -- blocks -----------------------------------------------------------------------------

    def reduce(self, arrays: Parts, records: int, first: int) -> Parts:
        """Reduce records `(n, numbers)` to nodes `(blocks, numbers)`."""
        blocks = self._mapped(arrays, records, first)
        if self.spec.op == "vecdot" and self.spec.fused:
            return self._prepared((self._fused(*blocks),), records)
        return self._prepared(self._accumulate(blocks), records)

    def _mapped(self, arrays: Parts, records: int, first: int) -> Parts:
        """Return records `(n, numbers)` as blocks `(blocks, records, numbers)`, with their indices where they count."""
        spec = self.spec
        blocks = tuple(part.reshape(len(part) // records, records, spec.numbers) for part in arrays)
        if spec.op in ("argmin", "argmax"):
            index = (first + np.arange(len(arrays[0]), dtype=np.int64)).reshape(-1, records, 1) * spec.inner
            index = index + blocks[1] if len(blocks) > 1 else np.broadcast_to(index, blocks[0].shape)
            blocks = (blocks[0], index)
        return blocks

    def _accumulate(self, blocks: Parts, before: Parts | None = None) -> Parts:
        """Reduce blocks to accumulators `(blocks, numbers)` of `spec.parts()`, as kernels have them.

        Args:
            before: the accumulators that the blocks' earlier records have given.
        """
        op = self.spec.op
        if op == "vecdot":
            blocks = (blocks[0] * blocks[1],)
        if op != "var":
            return self._reduce_in_order(op, _behind(before, blocks))
        shift = blocks[0][:, :1] if before is None else before[0][:, None]
        moved = blocks[0] - shift
        parts = _behind(None if before is None else before[1:], (moved, moved * moved, *blocks[1:]))
        return (shift[:, 0], *self._reduce_in_order("var", parts))

    def _reduce_in_order(self, op: str, blocks: Parts) -> Parts:
        if self.spec.numbers == 1:
            # A short last block keeps the 256 lanes of a whole one: its length is not known in advance.
            return tuple(part[:, None] for part in reduce_block(op, tuple(part[:, :, 0] for part in blocks)))
        total = tuple(part[:, 0] for part in blocks)
        for record in range(1, blocks[0].shape[1]):
            total = combine(op, total, tuple(part[:, record] for part in blocks))
        return total

    def _fused(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compute dot products of blocks of single numbers `(blocks, records, 1)`: lanes of a block step by step."""
        room = self.block - left.shape[1]
        nothing = identity("vecdot", left.dtype)
        steps = [
            self._padded(part, fill, room).reshape(len(part), -1, LANES)
            for part, fill in ((left, nothing), (right, left.dtype.type(1)))
        ]
        total = np.full((len(left), LANES), nothing, left.dtype)
        for step in range(steps[0].shape[1]):
            total = fused_multiply_add(steps[0][:, step], steps[1][:, step], total)
        return reduce_rows("sum", (total,))[0][:, None]

    @staticmethod
    def _padded(part: np.ndarray, fill: Any, room: int) -> np.ndarray:
        return np.concatenate([part, np.full((len(part), room, 1), fill, part.dtype)], axis=1) if room else part

    def _prepared(self, parts: Parts, records: int) -> Parts:
        """Return partial results of blocks of so many records as nodes of the tree, floats in float64."""
        if self.spec.op == "var":
            parts = self._moments(parts, records)
        return tuple(part.astype(merge_dtype(part.dtype), copy=False) for part in parts)

    def _moments(self, parts: Parts, records: int) -> Parts:
        """Return shifted sums of a block as (mean, squared deviations, inner variance) in float64."""
        shift, first, second, *inside = (part.astype(FLOAT64) for part in parts)
        mean = first / records
        deviations = np.maximum(second - first * mean, 0)
        return (shift + mean, deviations, *inside)

    def merge_nodes(self, a: Parts, a_records: int, b: Parts, b_records: int) -> Parts:
        """Merge two neighbouring nodes of the tree (arrays of them)."""
        if self.spec.op != "var":
            return combine(self.spec.op, a, b)
        records = a_records + b_records
        gap = b[0] - a[0]
        mean = a[0] + gap * (b_records / records)
        gap *= gap
        gap *= a_records * b_records / records
        gap += a[1]
        gap += b[1]
        return (mean, gap, *(x + y for x, y in zip(a[2:], b[2:], strict=True)))

    # -- finish -----------------------------------------------------------------------------

    def _finish(self, total: Parts | None, records: int) -> np.ndarray:
        """Return the value of a fold over so many records, merged into one node; of several `(nodes, numbers)` each."""
        spec, several = self.spec, () if total is None else total[-1].shape[:-1]
        with np.errstate(all="ignore"):
            if total is None:
                value = self._empty()
            elif spec.op == "mean":
                value = total[0] / records
            elif spec.op == "var":
                count = records * spec.inner
                inside = total[2] * spec.inner if len(total) > 2 else 0.0
                value = (total[1] * spec.inner + inside) / max(count - spec.correction, 0)
            elif spec.selected and spec.op in ("sum", "vecdot"):
                # What counts as nothing is -0.0, and so would be the sum of nothing else.
                value = total[-1] + total[-1].dtype.type(0)
            else:
                value = total[-1]
            result = np.asarray(value).astype(spec.result_dtype).reshape((*several, *spec.result_shape))
            return canonical_nan(result) if is_float(spec.result_dtype) else result

    def _empty(self) -> np.ndarray:
        spec = self.spec
        if spec.op in ("mean", "var"):
            return np.full(spec.numbers, np.nan)
        if spec.op in ("min", "max", "argmin", "argmax"):
            if self.records:
                # No stream brings a fold there; a state that was restored may.
                raise LookupError(f"nothing is kept of {self.records} records")
            raise ValueError(f"cannot take the {spec.op} of an empty stream")
        value = 0 if spec.op in ("sum", "vecdot") and is_float(spec.dtype) else identity(spec.op, spec.dtype)
        return np.full(spec.numbers, value, spec.dtype)


def _behind(before: Parts | None, blocks: Parts) -> Parts:
    """Return blocks with accumulators in place of their earlier records."""
    if before is None:
        return blocks
    return tuple(np.concatenate([first[:, None], block], axis=1) for first, block in zip(before, blocks, strict=True))
