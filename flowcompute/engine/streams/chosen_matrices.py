"""Matrices that are larger than memory: the system reads them as soon as they are chosen, and lets some go again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from flowcompute.elements import Element
from flowcompute.elements.axes import LOOKUP
from flowcompute.elements.nn import EXPERTS
from flowcompute.graph import Node
from flowcompute.imports import dataclass
from flowcompute.model_files import Weight

MOST_BYTES = 1 << 24
"""Bytes that are read ahead for a product at most. More would push out what was read for it before."""


@dataclass
class ReadAhead:
    """Readings that begin when a choice is known.

    Attributes:
        chosen: stored matrices of the products that take the choice.
        others: what else is stored and read from there to the next choice, whole.
    """

    chosen: list[Weight] = field(default_factory=list)
    others: list[Weight] = field(default_factory=list)


class ChosenMatrices:
    """The stored matrices of products, by the choices of those that take a few of many.

    A page that a kernel misses brings megabytes beside it, most of them of matrices that nobody has chosen. Where the
    matrices of all products do not fit the memory, exactly those that come next are read, while kernels run. Those that
    were read here leave the system's cache again, the oldest first, where they outgrow what the memory has room for.
    Those that were cached before stay: somebody else has use for them.

    Args:
        nodes: of the graph, in the order in which they are computed.
        budget_bytes: the job's memory. Matrices that fit it stay in the system's cache, and are left alone.
    """

    def __init__(self, nodes: Sequence[Node], budget_bytes: int) -> None:
        products = [node for node in nodes if node.op is EXPERTS]
        found: dict[int, ReadAhead] = {node.inputs[2]: ReadAhead() for node in products}
        chosen = {id(one): one for node in products if (one := _stored(node.element.inputs[1])) is not None}
        every = dict(chosen)
        for node in products:
            one = _stored(node.element.inputs[1])
            found[node.inputs[2]].chosen += [] if one is None else [one]
        # What stands before the first choice comes after the last one of the batch before.
        last = max(found, default=-1)
        for node in nodes if found else ():
            last = node.id if node.id in found else last
            for value in node.element.inputs if node.op is not LOOKUP else ():
                one = _stored(value)
                if one is not None and id(one) not in every:
                    every[id(one)] = one
                    found[last].others.append(one)
        self._by_choice = found if sum(one.value.nbytes for one in every.values()) > budget_bytes else {}
        self._room_bytes = budget_bytes - sum(one.value.nbytes for key, one in every.items() if key not in chosen)
        self._brought: dict[tuple[int, int], Weight] = {}
        self._brought_bytes = 0

    def read_ahead(self, choice: int, numbers: np.ndarray) -> None:
        """Read what a batch has chosen, and what comes after it.

        Args:
            choice: value that holds the numbers of matrices.
            numbers: of matrices.
        """
        if choice not in self._by_choice or not numbers.size:
            return
        wanted, plan = np.unique(numbers).tolist(), self._by_choice[choice]
        few = [one for one in plan.chosen if len(wanted) * one.value.nbytes <= MOST_BYTES * one.spec.shape[0]]
        newest = self._bring([(one, number) for one in few for number in wanted])
        for stored in few:
            stored.read_ahead(wanted)
        for stored in plan.others:
            if stored.value.nbytes <= MOST_BYTES:
                stored.read_ahead(None)
        # The disk works meanwhile. The next choice has room when it is known: the system would look for it page by
        # page otherwise, while kernels wait for what is read.
        self._let_go(self._room_bytes - len(wanted) * sum(_matrix_bytes(one) for one in few), newest)

    def close(self) -> None:
        """Let all go that was read here. Calling it twice does nothing."""
        self._let_go(0, 0)

    def _bring(self, matrices: Sequence[tuple[Weight, int]]) -> int:
        """Note matrices that are about to be read, as the last ones; return how many of them may go again."""
        newest = 0
        for stored, number in matrices:
            key = id(stored), number
            brought = self._brought.pop(key, None) is not None
            if brought or not stored.is_cached(number):
                self._brought[key] = stored
                self._brought_bytes += 0 if brought else _matrix_bytes(stored)
                newest += 1
        return newest

    def _let_go(self, room_bytes: int, newest: int) -> None:
        """Let matrices go until the others have room, but for the newest ones."""
        while self._brought_bytes > room_bytes and len(self._brought) > newest:
            key = next(iter(self._brought))
            stored = self._brought.pop(key)
            self._brought_bytes -= _matrix_bytes(stored)
            stored.let_go(key[1])


def _matrix_bytes(stored: Weight) -> int:
    return stored.value.nbytes // stored.spec.shape[0]


def _stored(value: Element) -> Weight | None:
    """Return what is stored of a value that is read as it is, decoded or seen in another way."""
    while len(value.inputs) == 1:
        (value,) = value.inputs
    return value if isinstance(value, Weight) and value.spec.shape else None
