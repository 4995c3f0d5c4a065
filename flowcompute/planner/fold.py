"""The state of a fold over the stream: partial results of canonical blocks, merged on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowcompute.planner.canonical import (
    Parts,
    canonical_nan,
    combine,
    fold_block,
    identities,
    identity,
    merge_dtype,
    reduce_rows,
)
from flowcompute.spec import FLOAT64, INT64, is_float


@dataclass(frozen=True)
class FoldSpec:
    """What a fold computes.

    Attributes:
        op: name of the reduction.
        dtype: dtype of the folded values (of the accumulators).
        item: shape of an item.
        result_dtype: dtype of the result.
        result_shape: shape of the result (`item`, or `(1, *item)` with keepdims).
        inner: numbers that each value already stands for (means of items, indices inside items).
        correction: of a variance.
        inputs: operands of the fold.
    """

    op: str
    dtype: np.dtype
    item: tuple[int, ...]
    result_dtype: np.dtype
    result_shape: tuple[int, ...]
    inner: int = 1
    correction: float = 0.0
    inputs: int = 1

    @property
    def numbers(self) -> int:
        """Numbers in an item."""
        return int(np.prod(self.item, dtype=np.int64))

    @property
    def block(self) -> int:
        """Records in a canonical block."""
        return fold_block(self.numbers)

    def parts(self) -> tuple[np.dtype, ...]:
        """Dtypes of a block's partial result, one array each."""
        if self.op == "var":
            return (self.dtype,) * (2 + self.inputs)
        return (self.dtype, INT64) if self.op in ("argmin", "argmax") else (self.dtype,)


class Fold:
    """Accumulates a fold in canonical order, from records or from blocks that a kernel has reduced.

    `push_records` keeps the records of an unfinished block; `push_blocks` takes whole blocks
    and, at the end of the stream, the last shorter one; `push_open_blocks` accumulators.
    """

    def __init__(self, spec: FoldSpec) -> None:
        self.spec = spec
        self.records = 0
        self._tail: Parts | None = None
        self._open: tuple[Parts, int] | None = None
        self._levels: list[tuple[Parts, int] | None] = []

    def push_records(self, values: Sequence[np.ndarray]) -> None:
        """Add records: arrays `(n, *item)`, one for each input of the fold."""
        flat = tuple(np.asarray(value).reshape(len(value), self.spec.numbers) for value in values)
        if self._tail is not None:
            flat = tuple(np.concatenate([old, new]) for old, new in zip(self._tail, flat, strict=True))
        pending = 0 if self._tail is None else len(self._tail[0])
        self.records += len(flat[0]) - pending
        whole = len(flat[0]) // self.spec.block * self.spec.block
        if whole:
            start = self.records - len(flat[0])
            self._add_blocks(self._reduce(tuple(part[:whole] for part in flat), start), self.spec.block)
        self._tail = tuple(part[whole:].copy() for part in flat)

    def push_blocks(self, parts: Sequence[np.ndarray], records: int) -> None:
        """Add `records` records as partial results of blocks, arrays `(blocks, *item)` of `spec.parts()`.

        All but the last block of the stream are whole.
        """
        flat = tuple(np.asarray(part).reshape(len(part), self.spec.numbers) for part in parts)
        whole = records // self.spec.block
        if whole:
            self._add_blocks(tuple(part[:whole] for part in flat), self.spec.block)
        rest = records - whole * self.spec.block
        if rest:
            self._add_blocks(tuple(part[whole : whole + 1] for part in flat), rest)
        self.records += records

    def push_open_blocks(self, parts: Sequence[np.ndarray], phase: int, records: int) -> None:
        """Add records as accumulators of blocks, the first of which began `phase` records earlier.

        The last block may go on in the next batch: it counts only when it is whole, or in `result`.
        """
        flat = tuple(np.asarray(part).reshape(len(part), self.spec.numbers) for part in parts)
        whole = (phase + records) // self.spec.block
        if whole:
            self._add_blocks(tuple(part[:whole] for part in flat), self.spec.block)
        rest = phase + records - whole * self.spec.block
        self._open = (tuple(part[whole].copy() for part in flat), rest) if rest else None
        self.records += records

    def result(self) -> np.ndarray:
        """The value of the fold over all records so far."""
        # Nodes are never changed in place, so a copy of the list keeps them.
        state = list(self._levels)
        records, tail = self.records, self._tail
        try:
            if tail is not None and len(tail[0]):
                self._add_blocks(self._reduce(tail, self.records - len(tail[0])), len(tail[0]))
            if self._open is not None:
                self._add_blocks(tuple(part[None] for part in self._open[0]), self._open[1])
            return self._finish(self._total())
        finally:
            self._levels, self.records, self._tail = state, records, tail

    @property
    def open_accumulators(self) -> Parts | None:
        """The accumulators of the block that the next batch goes on with, one array of numbers a part."""
        return None if self._open is None else self._open[0]

    def snapshot(self) -> dict[str, Any]:
        """The state as plain data and arrays."""
        return {
            "records": self.records,
            "open": None if self._open is None else [[part.copy() for part in self._open[0]], self._open[1]],
            "tail": None if self._tail is None else [part.copy() for part in self._tail],
            "levels": [
                None if level is None else [[part.copy() for part in level[0]], level[1]] for level in self._levels
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold."""
        self.records = state["records"]
        self._open = None if state["open"] is None else (tuple(state["open"][0]), state["open"][1])
        self._tail = None if state["tail"] is None else tuple(state["tail"])
        self._levels = [None if level is None else (tuple(level[0]), level[1]) for level in state["levels"]]

    # -- blocks -----------------------------------------------------------------------------

    @np.errstate(all="ignore")
    @np.errstate(all="ignore")
    def _reduce(self, flat: Parts, start: int) -> Parts:
        """Records `(n, numbers)` to block partials `(blocks, numbers)`; only the last block may be short."""
        spec = self.spec
        block = min(spec.block, len(flat[0]))
        blocks = tuple(part.reshape(len(part) // block, block, spec.numbers) for part in flat)
        if spec.op in ("argmin", "argmax"):
            records = (start + np.arange(len(flat[0]), dtype=np.int64)).reshape(-1, block, 1) * spec.inner
            index = records + blocks[1] if len(blocks) > 1 else np.broadcast_to(records, blocks[0].shape)
            blocks = (blocks[0], index)
        if spec.op == "vecdot":
            blocks = (blocks[0] * blocks[1],)
        if spec.op == "var":
            shift = blocks[0][:, :1]
            moved = blocks[0] - shift
            summed = self._reduce_in_order("var", (moved, moved * moved, *blocks[1:]))
            return (shift[:, 0], *summed)
        return self._reduce_in_order(spec.op, blocks)

    def _reduce_in_order(self, op: str, blocks: Parts) -> Parts:
        if self.spec.numbers == 1:
            # A short last block keeps the 256 lanes of a whole one: its length is not known in advance.
            room = self.spec.block - blocks[0].shape[1]
            fills = identities(op, blocks)
            padded = tuple(self._padded(part, fill, room) for part, fill in zip(blocks, fills, strict=True))
            return tuple(part[:, None] for part in reduce_rows(op, tuple(part[:, :, 0] for part in padded)))
        total = tuple(part[:, 0] for part in blocks)
        for record in range(1, blocks[0].shape[1]):
            total = combine(op, total, tuple(part[:, record] for part in blocks))
        return total

    @staticmethod
    def _padded(part: np.ndarray, fill: Any, room: int) -> np.ndarray:
        return np.concatenate([part, np.full((len(part), room, 1), fill, part.dtype)], axis=1) if room else part

    def _add_blocks(self, parts: Parts, records: int) -> None:
        """Merge consecutive blocks of `records` records each into the binary counter."""
        with np.errstate(all="ignore"):
            if self.spec.op == "var":
                parts = self._moments(parts, records)
            nodes = tuple(part.astype(merge_dtype(part.dtype), copy=False) for part in parts)
            level = 0
            while len(nodes[0]):
                if level == len(self._levels):
                    self._levels.append(None)
                pending = self._levels[level]
                self._levels[level] = None
                if pending is not None and pending[1] != records:
                    # The stream's last, shorter block: alone, and merged with what stands to its left.
                    pair = tuple(part[None] for part in pending[0])
                    nodes, records = self._merge(pair, pending[1], nodes, records), pending[1] + records
                else:
                    if pending is not None:
                        nodes = tuple(np.concatenate([p[None], n]) for p, n in zip(pending[0], nodes, strict=True))
                    if len(nodes[0]) % 2:
                        self._levels[level] = (tuple(node[-1].copy() for node in nodes), records)
                        nodes = tuple(node[:-1] for node in nodes)
                    left, right = (tuple(node[side::2] for node in nodes) for side in (0, 1))
                    nodes, records = self._merge(left, records, right, records), 2 * records
                level += 1

    def _moments(self, parts: Parts, records: int) -> Parts:
        """Shifted sums of a block as (mean, squared deviations, inner variance) in float64."""
        shift, first, second, *inside = (part.astype(FLOAT64) for part in parts)
        mean = first / records
        deviations = np.maximum(second - first * mean, 0)
        return (shift + mean, deviations, *inside)

    def _merge(self, a: Parts, a_records: int, b: Parts, b_records: int) -> Parts:
        """Two neighbouring nodes of the tree (arrays of them) as one."""
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

    def _total(self) -> Parts | None:
        """All nodes as one, from the latest to the earliest."""
        total: tuple[Parts, int] | None = None
        with np.errstate(all="ignore"):
            for level in self._levels:
                if level is not None and total is not None:
                    total = self._merge(*level, *total), level[1] + total[1]
                elif level is not None:
                    total = level
        return None if total is None else total[0]

    # -- finish -----------------------------------------------------------------------------

    def _finish(self, total: Parts | None) -> np.ndarray:
        spec = self.spec
        with np.errstate(all="ignore"):
            if total is None:
                value = self._empty()
            elif spec.op == "mean":
                value = total[0] / self.records
            elif spec.op == "var":
                count = self.records * spec.inner
                inside = total[2] * spec.inner if len(total) > 2 else 0.0
                value = (total[1] * spec.inner + inside) / max(count - spec.correction, 0)
            else:
                value = total[-1]
            result = np.asarray(value).astype(spec.result_dtype).reshape(spec.result_shape)
            return canonical_nan(result) if is_float(spec.result_dtype) else result

    def _empty(self) -> np.ndarray:
        spec = self.spec
        if spec.op in ("mean", "var"):
            return np.full(spec.numbers, np.nan)
        if spec.op in ("min", "max", "argmin", "argmax"):
            raise ValueError("an empty stream has no such value")
        value = 0 if spec.op in ("sum", "vecdot") and is_float(spec.dtype) else identity(spec.op, spec.dtype)
        return np.full(spec.numbers, value, spec.dtype)
