"""Input buffers: the records of one value enter a clock there, and wait for those of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.rewrite import Entry
from flowcompute.schedule.memory import span
from flowcompute.spec import Spec


class InputBuffer:
    """Holds the records of one value on its way into a clock.

    Args:
        entry: which value, and what makes it.
        name: of the value, for errors.

    Attributes:
        ended: whether no more will come.
        taken: records of the new clock that were taken.
    """

    def __init__(self, entry: Entry, name: str) -> None:
        self.name = name
        self.ended = False
        self.taken = 0
        self._node = entry.node
        self._size, self._step = span(entry.node)
        self._pieces: list[np.ndarray] = []
        self._owned = 0
        self._pending = 0
        self._skip = 0

    # -- in ---------------------------------------------------------------------------------

    def wants(self, arm: int) -> bool:
        """Check whether it is the turn of this input."""
        del arm
        return True

    def feed(self, arm: int, arrays: Sequence[np.ndarray], start: int) -> None:
        """Take a batch: an array for each input of the node; only valid until `settle`."""
        del arm
        self._append(self._made(arrays, start))

    def end(self, arm: int, records: int) -> None:
        """End this input, of which `records` came."""
        del arm, records
        self.ended = True

    def _made(self, arrays: Sequence[np.ndarray], start: int) -> np.ndarray:
        del start
        return arrays[0]

    def _append(self, array: np.ndarray) -> None:
        if self._skip:
            dropped = min(self._skip, len(array))
            self._skip -= dropped
            array = array[dropped:]
        if len(array):
            self._pieces.append(array)
            self._pending += len(array)

    # -- out --------------------------------------------------------------------------------

    @property
    def available(self) -> int:
        """Records of the new clock that can be taken."""
        return 0 if self._pending < self._size else (self._pending - self._size) // self._step + 1

    def take(self, items: int) -> np.ndarray:
        """Return the next records, C-contiguous; of a window the `(items - 1) * step + size` below them."""
        needed = (items - 1) * self._step + self._size if items else 0
        array = self._gather(needed)
        self._drop(items * self._step)
        self.taken += items
        return array

    def _gather(self, records: int) -> np.ndarray:
        if self._pieces and len(self._pieces[0]) >= records:
            return np.ascontiguousarray(self._pieces[0][:records])
        parts, left = [], records
        for piece in self._pieces:
            parts.append(piece[:left])
            left -= len(parts[-1])
            if not left:
                break
        return np.concatenate(parts)

    def _drop(self, records: int) -> None:
        left = min(records, self._pending)
        self._skip += records - left
        self._pending -= left
        while left:
            piece = self._pieces[0]
            if len(piece) > left:
                self._pieces[0] = piece[left:]
                break
            left -= len(piece)
            del self._pieces[0]
            self._owned = max(0, self._owned - 1)

    def settle(self) -> None:
        """Copy what still waits: the arrays that came are about to be used again."""
        for position in range(self._owned, len(self._pieces)):
            self._pieces[position] = self._pieces[position].copy()
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate(self._pieces)]
        self._owned = len(self._pieces)

    @property
    def held_bytes(self) -> int:
        """Bytes that wait."""
        return sum(piece.nbytes for piece in self._pieces)

    # -- state ------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return what waits, as plain data and arrays; after `settle`."""
        return {
            "pieces": [piece.copy() for piece in self._pieces],
            "skip": self._skip,
            "taken": self.taken,
            "ended": self.ended,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._pieces = list(state["pieces"])
        self._owned = len(self._pieces)
        self._pending = sum(len(piece) for piece in self._pieces)
        self._skip, self.taken, self.ended = state["skip"], state["taken"], state["ended"]

    def check(self, start: int, spec: Spec) -> None:
        """Check a state that was restored: it may have come from outside.

        Args:
            start: the next record of the clock that takes from here.
            spec: of what waits.

        Raises:
            ValueError: if no stream can have come to it.
        """
        if self.taken != start:
            raise ValueError(f"{self.name}: record {self.taken} is next, and {start} of its clock")
        for piece in self._pieces:
            if not isinstance(piece, np.ndarray) or piece.dtype != spec.dtype or piece.shape[1:] != spec.shape:
                raise ValueError(f"{self.name}: something else than {spec.dtype}{spec.shape} waits")
