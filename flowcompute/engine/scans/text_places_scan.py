"""Places of records in their texts, counted on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements.streams import OpenTexts
from flowcompute.engine.scans.carry import Scan
from flowcompute.graph import Node
from flowcompute.ir import slots_of

_PARTS = ("numbers", "next", "counts")


class TextPlacesScan(Scan):
    """The places of records in their texts, of which several may be open; see `OpenTexts`."""

    def __init__(self, node: Node) -> None:
        self._open = OpenTexts(slots_of(node), node.element.inputs[0].dtype)

    def advance(self, arrays: Sequence[np.ndarray], start: int, out: np.ndarray) -> None:
        """Place the next records; see `Scan.advance`."""
        del start
        self._open.place(arrays[0], out)

    def snapshot(self) -> dict[str, Any]:
        """Return what is known of each slot."""
        return {name: getattr(self._open, name).copy() for name in _PARTS}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot.

        Raises:
            ValueError: if it is that of other slots.
        """
        for name in _PARTS:
            own, kept = getattr(self._open, name), np.asarray(state[name])
            if (kept.dtype, kept.shape) != (own.dtype, own.shape):
                raise ValueError(f"{name} {kept.dtype}{kept.shape} of open texts")
            own[...] = kept
