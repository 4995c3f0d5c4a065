"""Self-attention along the stream on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.elements.streams import POSITION
from flowcompute.engine.scans.carry import Scan
from flowcompute.engine.scans.key_value_cache import KeyValueCache
from flowcompute.engine.scans.slot_cache import SlotCache
from flowcompute.graph import Node
from flowcompute.ir import rows_seen, slots_of


class AttentionScan(Scan):
    """Self-attention along the stream on the host, record by record, so that no bit depends on the batch."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._cache: KeyValueCache | SlotCache = KeyValueCache(node, 1) if slots_of(node) == 1 else SlotCache(node, 1)

    def advance(self, arrays: list[np.ndarray], start: int, out: np.ndarray) -> None:  # type: ignore[override]
        """See `Scan.advance`."""
        q, k, v, *rest = arrays
        cache, items = self._cache, len(q)
        if not items:
            return
        cache.widen(items)
        if isinstance(cache, SlotCache):
            cache.place(start, rest[0])
            at, rows = rest[0][:, POSITION], cache.places.rows_of(rest[0])
        else:
            at = rest[0] if rest else np.arange(start, start + items)
            cache.place(start, items, at)
            rows = np.arange(cache.places.row, cache.places.end)
        for array, new in zip(cache.arrays, (k, v), strict=True):
            array[rows] = new.reshape(items, -1)
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
                position, stop = int(at[i]), int(rows[i]) + 1
                seen = slice(stop - min(position + 1, window or position + 1), stop)
                results[i] = _attended(queries[i], keys[seen], values[seen])

    def mark(self) -> Callable[[], None]:
        """See `Carry.mark`; nothing is copied."""
        return self._cache.places.mark()

    def snapshot(self) -> dict[str, Any]:
        """See `KeyValueCache.snapshot`."""
        return self._cache.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        rows = np.shape(state["keys"])
        # Of several slots a single one may have all rows that are kept.
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
