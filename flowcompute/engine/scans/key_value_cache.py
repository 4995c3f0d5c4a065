"""Keys and values of the records that later ones attend to: the state of self-attention along the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.engine.scans.carry import Scan
from flowcompute.errors import RunError
from flowcompute.graph import Node
from flowcompute.ir import ATTENTION_KEYS, rows_kept, rows_seen


class KeyValueCache:
    """Rows of keys and values, in the order of the stream. Rows that nobody sees any more are dropped when it is full.

    Args:
        node: the attention.
        records: of a batch at most.

    Attributes:
        arrays: rows of keys, and rows of values.
        row: of the next record.
        seen: how many rows before it the next record may see.
    """

    def __init__(self, node: Node, records: int) -> None:
        self._node = node
        self._most = rows_seen(node)
        self.arrays: tuple[np.ndarray, ...] = ()
        self.row = self.seen = 0
        self._dropped = 0
        self.widen(records)

    def widen(self, records: int) -> bool:
        """Make room for batches of so many records; tells whether there was none."""
        rows = rows_kept(self._node) + records
        if self.arrays and rows <= len(self.arrays[0]):
            return False
        old, keys_and_values = self.arrays, self._node.element.inputs[1:3]
        # Memory that was not written takes no room on the host.
        self.arrays = tuple(np.zeros((rows, one.spec.item_numbers), self._node.spec.dtype) for one in keys_and_values)
        for new, rest in zip(self.arrays, old, strict=False):
            new[: self.row] = rest[: self.row]
        return True

    def is_full(self, items: int) -> bool:
        """Tell whether rows have to be dropped before so many records are added."""
        return self.row + items > len(self.arrays[0]) - (ATTENTION_KEYS - 1)

    def drop(self, first: int) -> None:
        """Drop the rows that no later record sees.

        Args:
            first: position of the next record in its text.
        """
        keep = min(first, self._most, self.row)
        begin = self.row - keep
        for array in self.arrays:
            array[:keep] = array[begin : self.row].copy()
        self.row = keep
        self._dropped += begin

    def check(self, start: int, last: int) -> None:
        """Refuse a text that is longer than the context.

        Args:
            start: first record of the batch.
            last: the highest position of a record of the batch in its text.

        Raises:
            RunError: if it is.
        """
        context = self._node.attrs["context"]
        if context is not None and last >= context:
            raise RunError(
                "cannot look back on a text of more records",
                element=self._node.name,
                site=self._node.element.site,
                records=(start, start + 1),
                expected=f"at most {context} records, as context= says",
                got=f"record {last} of a text",
                hint="raise context=, or begin a new text",
            )

    def added(self, items: int, last: int) -> None:
        """Note that records were added, the last one at position `last` of its text."""
        self.row += items
        self.seen = min(last + 1, self._most)

    def mark(self) -> Callable[[], None]:
        """Note where it stands; the result puts it back there. Rows that were dropped since were of no use."""
        row, seen, dropped = self.row, self.seen, self._dropped

        def back() -> None:
            self.row = max(0, row - (self._dropped - dropped))
            self.seen = min(seen, self.row)

        return back

    def snapshot(self) -> dict[str, Any]:
        """Return the rows that the next record may see."""
        seen = min(self.seen, self.row)
        shapes = (one.spec.shape for one in self._node.element.inputs[1:3])
        keys, values = (
            array[self.row - seen : self.row].reshape(seen, *shape).copy()
            for array, shape in zip(self.arrays, shapes, strict=True)
        )
        return {"keys": keys, "values": values}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot.

        Raises:
            ValueError: if it holds other rows than this attention has.
        """
        kept = [np.asarray(state[name]) for name in ("keys", "values")]
        rows = len(kept[0]) if kept[0].ndim else -1
        for array, new, one in zip(self.arrays, kept, self._node.element.inputs[1:3], strict=True):
            if (new.dtype, new.shape) != (array.dtype, (rows, *one.spec.shape)):
                raise ValueError(f"rows {new.dtype}{new.shape} of keys or values")
            if self.is_full(rows - self.row):
                raise ValueError(f"{rows} rows of keys and values")
            array[:rows] = new.reshape(rows, array.shape[1])
        self.row = self.seen = rows


class AttentionScan(Scan):
    """Self-attention along the stream on the host, record by record, so that no bit depends on the batch."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._cache = KeyValueCache(node, 1)

    def advance(self, arrays: list[np.ndarray], start: int, out: np.ndarray) -> None:  # type: ignore[override]
        """See `Scan.advance`."""
        q, k, v, *rest = arrays
        cache, items = self._cache, len(q)
        if not items:
            return
        at = rest[0] if rest else np.arange(start, start + items)
        cache.check(start, int(at.max()))
        cache.widen(items)
        if cache.is_full(items):
            cache.drop(int(at[0]))
        first = cache.row
        for array, new in zip(cache.arrays, (k, v), strict=True):
            array[first : first + items] = new.reshape(items, -1)
        dtype, (groups, size), width = self._node.spec.dtype, k.shape[1:], v.shape[2]
        queries = q.astype(dtype).reshape(items, groups, -1, size) * dtype.type(self._node.attrs["scale"])
        keys, values = (
            array.reshape(len(array), groups, 1, numbers)
            for array, numbers in zip(cache.arrays, (size, width), strict=True)
        )
        results = out.reshape(items, groups, -1, width)
        window = self._node.attrs["window"]
        with np.errstate(all="ignore"):
            for i in range(items):
                position = int(at[i])
                stop = first + i + 1
                seen = slice(stop - min(position + 1, window or position + 1), stop)
                results[i] = _attended(queries[i], keys[seen], values[seen])
        cache.added(items, int(at[-1]))

    def mark(self) -> Callable[[], None]:
        """See `Carry.mark`; nothing is copied."""
        return self._cache.mark()

    def snapshot(self) -> dict[str, Any]:
        """See `KeyValueCache.snapshot`."""
        return self._cache.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        rows = np.shape(state["keys"])
        self._cache.widen(min(rows[0] if rows else 0, rows_seen(self._node)))
        self._cache.restore(state)


def _attended(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return what a record attends to.

    Args:
        query: (groups, heads of a group, d), scaled.
        keys: (rows, groups, 1, d).
        values: (rows, groups, 1, dv).
    """
    # Products are not left to BLAS, whose order of sums depends on shapes and places.
    scores = (keys * query).sum(axis=-1)
    highest = scores.max(axis=0, initial=np.finfo(scores.dtype).min)
    weights = np.exp(scores - highest)
    total = weights.sum(axis=0)[..., None]
    made = (weights[..., None] * values).sum(axis=0)
    return np.where(total == 0, 0, made / total)
