"""Keys and values of several texts that are open at once: a part of the rows for each slot."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from flowcompute.batch import aligned_array
from flowcompute.elements.streams import POSITION
from flowcompute.engine.scans.cache_places import PlacedCache, SlotPlaces
from flowcompute.engine.scans.key_value_cache import refuse_longer
from flowcompute.graph import Node
from flowcompute.ir import ATTENTION_KEYS, rows_kept, rows_seen, slots_of


class SlotCache(PlacedCache[SlotPlaces]):
    """Rows of keys and values. The rows of a slot are side by side, in the order of its records.

    Rows that nobody sees any more are dropped where a text begins, and when the part of a slot is full.

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
        self._slots, self._most = slots_of(node), rows_seen(node)
        super().__init__(SlotPlaces(self._slots, 0, self._most))
        self.arrays: tuple[np.ndarray, ...] = ()
        self.widen(records)

    def alike(self) -> Hashable:
        """Return the key of caches that give the same records the same places from now on."""
        at = self.places
        # The batch that was placed last counts among the records before.
        at.add()
        return self._slots, at.part, self._most, self._node.attrs["context"], at.rows.tobytes(), at.seen.tobytes()

    def widen(self, records: int) -> None:
        """Make room for batches of so many records, where the places are its own."""
        before, part = self.places.part, rows_kept(self._node) + records
        if part <= before:
            return
        self.places.add()
        old, every, rows = self.arrays, self._node.element.inputs[1:3], self._slots * part
        # Memory that was not written takes no room on the host.
        shapes, dtype = [(rows, one.spec.item_numbers) for one in every], self._node.spec.dtype
        self.arrays = tuple(aligned_array(shape, dtype, zeroed=True) for shape in shapes)
        for new, rest in zip(self.arrays, old, strict=False):
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
        """Move rows: each from one to another one, and those behind them."""
        if self._moving is not None:
            self._moving()
        for array in self.arrays:
            for row, to, rows in moves:
                array[to : to + rows] = array[row : row + rows].copy()
        if self._moved is not None:
            self._moved()

    def snapshot(self) -> dict[str, Any]:
        """Return the rows that the next records may see, slot after slot, and how many each has."""
        at = self.places
        at.add()
        seen = np.minimum(at.seen, at.rows)
        ends = np.arange(self._slots) * at.part + at.rows
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
        seen, part = np.asarray(state["seen"]), self.places.part
        most = part - (ATTENTION_KEYS - 1)
        if seen.dtype != np.int64 or seen.shape != (self._slots,) or seen.min() < 0 or seen.max() > most:
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
        self.share(SlotPlaces(self._slots, part, self._most))
        self.places.rows, self.places.seen = seen.copy(), seen.copy()
