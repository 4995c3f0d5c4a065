"""Streamed weights: resident operands that do not fit a device together, uploaded shortly before use."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from flowcompute.gpu.memory.kernel_memory import Memory
from flowcompute.graph import Graph
from flowcompute.schedule import Pass, RegionStep
from flowcompute.schedule.placement import chosen_operands, direct_inputs

Part = tuple[int, int]
"""A value and the index of its weight tile, 0 where it is uploaded as a whole."""


class StreamedWeights:
    """Ring of buffers through which a pass's operands are uploaded, as wholes or in weight tiles.

    Of matrices that records choose, those that a batch has chosen are uploaded to their places, once it is known.

    Args:
        graph: the planned graph.
        one_pass: names these operands, their tiles, and the number of buffers.
        memory: of the device.
        array: returns the whole value of an operand.
        changing: operands that are others when the pass runs again; see `forget`.
    """

    def __init__(
        self,
        graph: Graph,
        one_pass: Pass,
        memory: Memory,
        array: Callable[[int], np.ndarray],
        changing: Collection[int] = (),
    ) -> None:
        self._memory = memory
        self._changing = changing
        self._choices = chosen_operands(graph, one_pass)
        self._array = array
        self._buffers = one_pass.ring
        self._weight_tiles = one_pass.weight_tiles
        self._order = self._parts_of_a_batch(one_pass)
        self._wholes: dict[int, np.ndarray] = {}
        self._seen: dict[Part, np.ndarray] = {}
        self._next = 0
        self._turn = self._ahead = 0

    def _parts_of_a_batch(self, one_pass: Pass) -> list[Part]:
        """Return the parts uploaded with each batch, in order. The next batch begins with the first part again."""
        parts = []
        for step in one_pass.steps:
            if not isinstance(step, RegionStep) or step.kernel is None:
                continue
            read = [value for value in direct_inputs(step.kernel) if value in one_pass.streamed]
            for launch in range(1 if step.region.weight_tiles is None else step.region.weight_tiles.count):
                parts += [self._part(value, launch) for value in read if not self._stays(value, launch)]
        return parts

    def _part(self, value: int, launch: int) -> Part:
        return (value, launch if value in self._weight_tiles else 0)

    def _stays(self, value: int, launch: int) -> bool:
        return value in self._weight_tiles and launch < self._weight_tiles[value].kept

    def _numbers(self, part: Part) -> np.ndarray:
        """Return the numbers of a part in host memory.

        Until it is forgotten it is always the same array, so that a prefetched one is recognised.
        """
        value, panel = part
        if value not in self._wholes:
            # A view is another object than before, also where new numbers lie in the same array.
            self._wholes[value] = np.ascontiguousarray(self._array(value)).view()
        whole = self._wholes[value]
        if value not in self._weight_tiles:
            return whole
        if part not in self._seen:
            self._seen[part] = self._weight_tiles[value].seen(whole, panel)
        return self._seen[part]

    def _memory_of(self, part: Part) -> np.ndarray:
        """Return contiguous memory that holds the numbers of a part."""
        numbers = self._numbers(part)
        return numbers if numbers.flags.c_contiguous else self._wholes[part[0]]

    def forget(self) -> None:
        """Forget the numbers of operands that have changed, since the pass runs again."""
        for value in self._wholes.keys() & set(self._changing):
            del self._wholes[value]
        for part in [one for one in self._seen if one[0] in self._changing]:
            del self._seen[part]
        tiles = self._weight_tiles.keys() & set(self._changing)
        self._memory.forget({("weight tile", i, launch) for i in tiles for launch in range(self._weight_tiles[i].kept)})

    def buffer(self, value: int, launch: int, array: Callable[[int], np.ndarray]) -> Any:
        """Return a buffer with the part of an operand that a launch reads.

        It is valid until as many others as the ring has buffers have been requested.

        Args:
            value: the operand.
            launch: number of the weight tile.
            array: gives the numbers of a stream in the batch in hand, for those of chosen matrices.
        """
        part = self._part(value, launch)
        if self._stays(value, launch):
            return self._memory.input(("weight tile", *part), self._numbers(part), fresh=False)
        if self._order[self._next] != part:
            # A batch that had no room is begun again in slices.
            self._next = self._order.index(part)
        self._next = (self._next + 1) % len(self._order)
        self._turn += 1
        if value in self._choices:
            return self._memory.input_parts(self._key(self._turn), self._numbers(part), array(self._choices[value]))
        if value not in self._changing:
            # What is pinned is held until the end.
            self._memory.pin(self._memory_of(part))
        return self._memory.input(self._key(self._turn), self._numbers(part), fresh=True)

    def prefetch(self) -> None:
        """Begin to upload the part that is needed next, while a kernel works that has all its operands."""
        coming = self._order[self._next]
        if self._ahead <= self._turn and coming[0] not in self._choices:
            following = self._order[(self._next + 1) % len(self._order)]
            numbers = self._numbers(coming)
            stays = following[0] not in self._choices and following[0] not in self._changing
            pinned = self._memory_of(following) if stays else None
            self._memory.prefetch(self._key(self._turn + 1), numbers, pinned)
            self._ahead = self._turn + 1

    def _key(self, turn: int) -> tuple[str, int]:
        return ("ring", turn % self._buffers)
