"""Keys and values of the records that later ones attend to: the state of self-attention along the stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from flowcompute.batch import aligned_array
from flowcompute.engine.scans.cache_places import PlacedCache, RowPlaces
from flowcompute.errors import RunError
from flowcompute.graph import Node
from flowcompute.ir import ATTENTION_KEYS, rows_kept, rows_seen


class KeyValueCache(PlacedCache[RowPlaces]):
    """Rows of keys and values, in the order of the stream. Rows that nobody sees any more are dropped when it is full.

    Args:
        node: the attention.
        records: of a batch at most.
        moving: called before rows move.
        moved: called when they have.

    Attributes:
        arrays: rows of keys, and rows of values.
        places: of records among the rows; see `PlacedCache`.
    """

    def __init__(
        self,
        node: Node,
        records: int,
        moving: Callable[[], object] | None = None,
        moved: Callable[[], object] | None = None,
    ) -> None:
        self._node, self._moving, self._moved = node, moving, moved
        super().__init__(RowPlaces())
        self._most = rows_seen(node)
        self.arrays: tuple[np.ndarray, ...] = ()
        self.widen(records)

    def alike(self) -> Hashable:
        """Return the key of caches that give the same records the same places from now on."""
        return self._most, len(self.arrays[0]), self._node.attrs["context"], self.places.end, self.places.seen

    def widen(self, records: int) -> bool:
        """Make room for batches of so many records; tells whether there was none."""
        rows = rows_kept(self._node) + records
        if self.arrays and rows <= len(self.arrays[0]):
            return False
        old, keys_and_values, end = self.arrays, self._node.element.inputs[1:3], self.places.end
        # Memory that was not written takes no room on the host.
        shapes, dtype = [(rows, one.spec.item_numbers) for one in keys_and_values], self._node.spec.dtype
        self.arrays = tuple(aligned_array(shape, dtype, zeroed=True) for shape in shapes)
        for new, rest in zip(self.arrays, old, strict=False):
            new[:end] = rest[:end]
        return True

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
        if self._has_no_room(places.end + items):
            self._drop(first)
        places.place(start, items, min(last + 1, self._most))

    def _has_no_room(self, rows: int) -> bool:
        return rows > len(self.arrays[0]) - (ATTENTION_KEYS - 1)

    def _drop(self, first: int) -> None:
        """Drop the rows that no record sees from the one on that is `first` in its text."""
        end = self.places.end
        keep = min(first, self._most, end)
        for cache in self.places.caches:
            cache.move(end - keep, keep)
        self.places.drop(end - keep)

    def move(self, row: int, rows: int) -> None:
        """Move rows to the beginning."""
        if self._moving is not None:
            self._moving()
        for array in self.arrays:
            array[:rows] = array[row : row + rows].copy()
        if self._moved is not None:
            self._moved()

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
            if self._has_no_room(rows):
                raise ValueError(f"{rows} rows of keys and values")
            array[:rows] = new.reshape(rows, array.shape[1])
        self.share(RowPlaces())
        self.places.begin(rows)


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
