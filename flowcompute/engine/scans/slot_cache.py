"""Keys and values of several texts that are open at once: a part of the rows for each slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.elements.streams import COUNT, POSITION, SLOT
from flowcompute.engine.scans.key_value_cache import refuse_longer
from flowcompute.graph import Node
from flowcompute.imports import dataclass
from flowcompute.ir import ATTENTION_KEYS, rows_kept, rows_seen, slots_of


@dataclass(slots=True)
class SlotRun:
    """Records of a slot in a batch.

    Attributes:
        position: of the first one in its text.
        before: how many records the slot had before it.
        items: how many there are.
        last: position of the last one in its text.
    """

    position: int
    before: int
    items: int
    last: int


def _runs(places: np.ndarray) -> dict[int, SlotRun]:
    """Return by slot the records of a batch with these places."""
    found: dict[int, SlotRun] = {}
    # A batch is decoded record by record more often than it is long, and NumPy takes longer for a few.
    for position, slot, before in places.tolist():
        run = found.get(slot)
        if run is None:
            found[slot] = SlotRun(position, before, 1, position)
        else:
            run.items += 1
            run.last = position
    return found


class SlotCache:
    """Rows of keys and values. The rows of a slot are side by side, in the order of its records.

    Rows that nobody sees any more are dropped where a text begins, and when the part of a slot is full.

    Args:
        node: the attention.
        records: of a batch at most.

    Attributes:
        arrays: rows of keys, and rows of values.
        base: for each slot what is added to the count of a record before it in its slot, for its row.
    """

    def __init__(self, node: Node, records: int) -> None:
        self._node = node
        self._slots, self._most = slots_of(node), rows_seen(node)
        self.arrays: tuple[np.ndarray, ...] = ()
        self.base = np.zeros(self._slots, np.int64)
        self._part = 0
        self._rows, self._seen, self._dropped = (np.zeros(self._slots, np.int64) for _ in range(3))
        self._runs: dict[int, SlotRun] = {}
        self.widen(records)

    def widen(self, records: int) -> None:
        """Make room for batches of so many records."""
        part = rows_kept(self._node) + records
        if part <= self._part:
            return
        old, before = self.arrays, self._part
        every = self._node.element.inputs[1:3]
        shape = self._slots * part
        # Memory that was not written takes no room on the host.
        self.arrays = tuple(np.zeros((shape, one.spec.item_numbers), self._node.spec.dtype) for one in every)
        for new, rest in zip(self.arrays, old, strict=False):
            for slot, rows in enumerate(self._rows):
                new[slot * part : slot * part + rows] = rest[slot * before : slot * before + rows]
        self.base = self.base + np.arange(self._slots) * (part - before)
        self._part = part

    def make_room(self, places: np.ndarray, start: int, fetch: Callable[[], object]) -> bool:
        """Make room for the records of a batch.

        Args:
            places: of the records in their texts; see `text_places`.
            start: record index of the first one.
            fetch: brings what kernels have made of the arrays, before rows of them are moved.

        Returns:
            Whether rows have moved. Where `base` changes, it is another array.

        Raises:
            RunError: if a text is longer than the context.
        """
        self._runs = _runs(places)
        refuse_longer(self._node, start, int(places[:, POSITION].max()))
        moved, changed = False, {}
        for slot, run in self._runs.items():
            rows = int(self._rows[slot])
            keep = 0 if run.position == 0 else rows
            if keep + run.items > self._part - (ATTENTION_KEYS - 1):
                keep = min(run.position, self._most, rows)
            if 0 < keep < rows:
                if not moved:
                    fetch()
                moved, begin = True, slot * self._part
                for array in self.arrays:
                    array[begin : begin + keep] = array[begin + rows - keep : begin + rows].copy()
            self._dropped[slot] += rows - keep
            self._rows[slot] = keep
            base = slot * self._part + keep - run.before
            if base != self.base[slot]:
                changed[slot] = base
        if changed:
            # A kernel in progress may read the one before.
            self.base = self.base.copy()
            self.base[[*changed]] = [*changed.values()]
        return moved

    def rows_of(self, places: np.ndarray) -> np.ndarray:
        """Return the rows of the records of a batch."""
        rows: np.ndarray = self.base[places[:, SLOT]] + places[:, COUNT]
        return rows

    def added(self) -> None:
        """Note that the records were added that there was room made for last."""
        for slot, run in self._runs.items():
            self._rows[slot] += run.items
            self._seen[slot] = min(run.last + 1, self._most)
        self._runs = {}

    def mark(self) -> Callable[[], None]:
        """Note where it stands; the result puts it back there. Rows that were dropped since were of no use."""
        rows, seen, dropped = (one.copy() for one in (self._rows, self._seen, self._dropped))

        def back() -> None:
            self._rows = np.maximum(0, rows - (self._dropped - dropped))
            self._seen = np.minimum(seen, self._rows)

        return back

    def snapshot(self) -> dict[str, Any]:
        """Return the rows that the next records may see, slot after slot, and how many each has."""
        seen = np.minimum(self._seen, self._rows)
        ends = np.arange(self._slots) * self._part + self._rows
        kept = []
        for array, one in zip(self.arrays, self._node.element.inputs[1:3], strict=True):
            parts = [array[end - rows : end] for end, rows in zip(ends, seen, strict=True)]
            kept.append(np.concatenate(parts).reshape(-1, *one.spec.shape))
        return {"keys": kept[0], "values": kept[1], "seen": seen}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot.

        Raises:
            ValueError: if it holds other rows than this attention has.
        """
        seen = np.asarray(state["seen"])
        most = self._part - (ATTENTION_KEYS - 1)
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
                array[slot * self._part : slot * self._part + rows] = numbers[end - rows : end]
        self._rows, self._seen = seen.copy(), seen.copy()
