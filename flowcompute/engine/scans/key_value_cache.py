"""Keys and values of the records that later ones attend to: the state of self-attention along the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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
        refuse_longer(self._node, start, last)

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
