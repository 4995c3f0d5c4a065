"""Keys and values of the records that later ones attend to: the state of self-attention along the stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from flowcompute.batch import aligned_array
from flowcompute.engine.scans.cache_places import BEHIND, PlacedCache, RowPlaces
from flowcompute.errors import RunError
from flowcompute.graph import Node
from flowcompute.ir import rows_kept, rows_seen

Moves = Callable[[Sequence[tuple[int, int, int]]], bool]
"""Moves rows to the beginning of their text where they lie on a device: each text with a row, and how many from there
on. False where the arrays on the host have them."""


class KeyValueCache(PlacedCache[RowPlaces]):
    """Rows of keys and values, in the order of the stream. Rows that nobody sees any more are dropped when it is full.

    Args:
        node: the attention.
        records: of a batch at most.
        moves: moves rows that lie elsewhere; None where the arrays always have them.
        grows: whether room for rows is made as they are needed; see `CachePlaces`.

    Attributes:
        arrays: rows of keys, and rows of values.
        places: of records among the rows; see `PlacedCache`.
    """

    def __init__(self, node: Node, records: int, moves: Moves | None = None, *, grows: bool = False) -> None:
        self._node, self._moves, self._grows = node, moves, grows
        self._most = rows_seen(node)
        super().__init__(RowPlaces(rows_kept(node) + records, grows=grows))
        self.arrays = row_arrays(node, self.places.most)

    def alike(self) -> Hashable:
        """Return the key of caches that give the same records the same places from now on."""
        at = self.places
        return self._most, at.most, at.room, self._node.attrs["context"], at.end, at.seen

    def widen(self, records: int) -> None:
        """Make room for batches of so many records."""
        rows, end = rows_kept(self._node) + records, self.places.end
        if rows <= self.places.most:
            return
        old, self.arrays = self.arrays, row_arrays(self._node, rows)
        for new, rest in zip(self.arrays, old, strict=True):
            new[:end] = rest[:end]
        self.places.widen(rows)

    def place(self, start: int, items: int, positions: np.ndarray | None) -> None:
        """Place the records of a batch. Where there is no room, rows go that no later record sees.

        Args:
            start: record index of the first one.
            items: how many.
            positions: of the records in their texts; None where all records are one text.

        Raises:
            RunError: if a text is longer than the context.
        """
        first, last, highest = start, start + items - 1, start + items - 1
        if positions is not None:
            first, last, highest = int(positions[0]), int(positions[-1]), int(positions.max())
        refuse_longer(self._node, start, highest)
        places = self.places
        places.add()
        keep = min(first, self._most, places.row)
        if places.drops(places.row, keep, items):
            row = places.row - keep
            for cache in places.caches:
                cache.move(row, keep)
            places.drop(row)
        places.reserve(places.row + items)
        places.place(start, items, min(last + 1, self._most))

    def move(self, row: int, rows: int) -> None:
        """Move rows to the beginning."""
        if self._moves is None or not self._moves([(0, row, rows)]):
            for array in self.arrays:
                array[:rows] = array[row : row + rows].copy()

    def snapshot(self) -> dict[str, Any]:
        """Return the rows that the next record may see."""
        end, seen = self.places.end, min(self.places.seen, self.places.end)
        shapes = (one.spec.shape for one in self._node.element.inputs[1:3])
        keys, values = (
            array[end - seen : end].reshape(seen, *shape).copy()
            for array, shape in zip(self.arrays, shapes, strict=True)
        )
        return {"keys": keys, "values": values}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot, with places of its own.

        Raises:
            ValueError: if it holds other rows than this attention has.
        """
        kept = [np.asarray(state[name]) for name in ("keys", "values")]
        rows = len(kept[0]) if kept[0].ndim else -1
        for array, new, one in zip(self.arrays, kept, self._node.element.inputs[1:3], strict=True):
            if (new.dtype, new.shape) != (array.dtype, (rows, *one.spec.shape)):
                raise ValueError(f"rows {new.dtype}{new.shape} of keys or values")
            if rows + BEHIND > self.places.most:
                raise ValueError(f"{rows} rows of keys and values")
            array[:rows] = new.reshape(rows, array.shape[1])
        self.share(RowPlaces(self.places.most, grows=self._grows))
        self.places.begin(rows)
        self.places.reserve(rows)


def row_arrays(node: Node, rows: int) -> tuple[np.ndarray, ...]:
    """Make memory for rows of keys and of values. What is not written takes no room on the host."""
    dtype, every = node.spec.dtype, node.element.inputs[1:3]
    return tuple(aligned_array((rows, one.spec.item_numbers), dtype, zeroed=True) for one in every)


def refuse_longer(node: Node, start: int, last: int) -> None:
    """Refuse a text that is longer than the context; see `KeyValueCache.check`.

    Raises:
        RunError: if it is.
    """
    context = node.attrs["context"]
    if context is not None and last >= context:
        raise RunError(
            "cannot look back on a text of more records",
            element=node.name,
            site=node.element.site,
            records=(start, start + 1),
            expected=f"at most {context} records, as context= says",
            got=f"record {last} of a text",
            hint="raise context=, or begin a new text",
        )
