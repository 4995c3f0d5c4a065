"""Keys and values of several texts that are open at once: a part of the rows for each slot."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from flowcompute.elements.streams import POSITION
from flowcompute.engine.scans.cache_places import BEHIND, PlacedCache, SlotPlaces
from flowcompute.engine.scans.key_value_cache import Moves, refuse_longer, row_arrays
from flowcompute.graph import Node
from flowcompute.ir import rows_kept, rows_seen, slots_of


class SlotCache(PlacedCache[SlotPlaces]):
    """Rows of keys and values. The rows of a slot are side by side, in the order of its records.

    Rows that nobody sees any more are dropped where a text begins, and when the part of a slot is full.

    Args:
        node: the attention.
        records: of a batch at most.
        moves, grows: see `KeyValueCache`.

    Attributes:
        arrays: rows of keys, and rows of values.
        places: of records among the rows; see `PlacedCache`.
    """

    def __init__(self, node: Node, records: int, moves: Moves | None = None, *, grows: bool = False) -> None:
        self._node, self._moves, self._grows = node, moves, grows
        self._slots, self._most = slots_of(node), rows_seen(node)
        super().__init__(SlotPlaces(self._slots, rows_kept(node) + records, self._most, grows=grows))
        self.arrays = row_arrays(node, self._slots * self.places.most)

    def alike(self) -> Hashable:
        """Return the key of caches that give the same records the same places from now on."""
        at = self.places
        # The batch that was placed last counts among the records before.
        at.add()
        own = self._slots, self._most, self._node.attrs["context"]
        return *own, at.most, at.room, at.rows.tobytes(), at.seen.tobytes()

    def widen(self, records: int) -> None:
        """Make room for batches of so many records, where the places are its own."""
        before, part = self.places.most, rows_kept(self._node) + records
        if part <= before:
            return
        self.places.add()
        old, self.arrays = self.arrays, row_arrays(self._node, self._slots * part)
        for new, rest in zip(self.arrays, old, strict=True):
            for slot, used in enumerate(self.places.rows):
                new[slot * part : slot * part + used] = rest[slot * before : slot * before + used]
        self.places.widen(part)

    def place(self, start: int, places: np.ndarray) -> None:
        """Place the records of a batch, of which there is one at least. Where there is no room, rows are dropped.

        Args:
            start: record index of the first one.
            places: of the records in their texts; see `text_places`.

        Raises:
            RunError: if a text is longer than the context.
        """
        refuse_longer(self._node, start, int(places[:, POSITION].max()))
        moves = self.places.place(places, start)
        for cache in self.places.caches if moves else ():
            cache.move(moves)

    def move(self, moves: Sequence[tuple[int, int, int]]) -> None:
        """Move rows to the beginning of their slot: those of each from one on."""
        if self._moves is not None and self._moves(moves):
            return
        for array in self.arrays:
            for slot, row, rows in moves:
                to = slot * self.places.most
                array[to : to + rows] = array[to + row : to + row + rows].copy()

    def snapshot(self) -> dict[str, Any]:
        """Return the rows that the next records may see, slot after slot, and how many each has."""
        at = self.places
        at.add()
        seen = np.minimum(at.seen, at.rows)
        ends = np.arange(self._slots) * at.most + at.rows
        kept = []
        for array, one in zip(self.arrays, self._node.element.inputs[1:3], strict=True):
            parts = [array[end - rows : end] for end, rows in zip(ends, seen, strict=True)]
            kept.append(np.concatenate(parts).reshape(-1, *one.spec.shape))
        return {"keys": kept[0], "values": kept[1], "seen": seen}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot, with places of its own.

        Raises:
            ValueError: if it holds other rows than this attention has.
        """
        seen, part = np.asarray(state["seen"]), self.places.most
        if seen.dtype != np.int64 or seen.shape != (self._slots,) or seen.min() < 0 or seen.max() > part - BEHIND:
            raise ValueError(f"rows {seen.dtype}{seen.shape} of slots")
        kept, every = [np.asarray(state[name]) for name in ("keys", "values")], self._node.element.inputs[1:3]
        for new, one in zip(kept, every, strict=True):
            if (new.dtype, new.shape) != (self._node.spec.dtype, (int(seen.sum()), *one.spec.shape)):
                raise ValueError(f"rows {new.dtype}{new.shape} of keys or values")
        ends = np.cumsum(seen)
        for array, new in zip(self.arrays, kept, strict=True):
            numbers = new.reshape(len(new), array.shape[1])
            for slot, (end, rows) in enumerate(zip(ends, seen, strict=True)):
                array[slot * part : slot * part + rows] = numbers[end - rows : end]
        self.share(SlotPlaces(self._slots, part, self._most, grows=self._grows))
        self.places.begin(seen.copy())
