"""Matrices that are larger than memory: the system reads them as soon as they are chosen, and lets some go again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

import numpy as np

from flowcompute.elements.axes import LOOKUP
from flowcompute.elements.nn import EXPERTS
from flowcompute.engine.streams.passing_matrices import PassingMatrices
from flowcompute.graph import Node
from flowcompute.imports import dataclass
from flowcompute.model_files import Weight
from flowcompute.strategy import spare_memory_bytes

MOST_BYTES = 1 << 24
"""Bytes that are read ahead for a product at most. More would push out what was read for it before."""

PASSING_PARTS = 4
"""Parts of the memory for chosen matrices, one of which is for those that pass."""

COUNTED = 8
"""Choices a matrix, on average, after which all counts of them are halved."""


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
    matrices of all products do not fit the memory, exactly those that come next are read, while kernels run.

    Those that are chosen most often stay in the system's cache, as many as the memory has room for. The others pass;
    see `PassingMatrices`. Where they cannot, they enter the cache as well, and the one that was chosen least often
    goes first, of equals the oldest. Those that were cached before stay: somebody else has use for them.

    Args:
        nodes: all of the graph, in the order in which they are computed.
        budget_bytes: the job's memory. Matrices that fit it stay in the system's cache, and are left alone.
        sharing: how many of these share the memory, one for each batch in flight.
    """

    def __init__(self, nodes: Sequence[Node], budget_bytes: int, sharing: int = 1) -> None:
        products = [node for node in nodes if node.op is EXPERTS]
        found: dict[int, ReadAhead] = {node.inputs[2]: ReadAhead() for node in products}
        self._of_product = {node.id: one for node in products if (one := _chosen(nodes, node)) is not None}
        chosen = {id(one): one for one in self._of_product.values()}
        every = dict(chosen)
        for node in products:
            one = self._of_product.get(node.id)
            if one is not None and all(one is not other for other in found[node.inputs[2]].chosen):
                found[node.inputs[2]].chosen.append(one)
        # What stands before the first choice comes after the last one of the batch before.
        last = max(found, default=-1)
        for node in nodes if found else ():
            last = node.id if node.id in found else last
            for value in node.inputs if node.op is not LOOKUP else ():
                one = _stored(nodes, value)
                if one is not None and id(one) not in every:
                    every[id(one)] = one
                    found[last].others.append(one)
        self._by_choice = found if sum(one.value.nbytes for one in every.values()) > budget_bytes else {}
        others_bytes = sum(one.value.nbytes for key, one in every.items() if key not in chosen)
        room_bytes = (budget_bytes - others_bytes) // sharing
        passing_bytes = max(room_bytes, 0) // PASSING_PARTS
        self._least_bytes = others_bytes + passing_bytes * sharing
        self._passing = PassingMatrices(chosen.values() if self._by_choice else (), passing_bytes)
        self._room_bytes = room_bytes - (passing_bytes if self._passing.works else 0)
        self._kept: dict[tuple[int, int], Weight] = {}
        self._kept_bytes = 0
        self._times: dict[tuple[int, int], int] = {}
        self._counted = 0

    def read_ahead(self, choice: int, numbers: np.ndarray) -> None:
        """Read what a batch has chosen, and what comes after it. What was chosen before is not read any more.

        Args:
            choice: value that holds the numbers of matrices.
            numbers: of matrices.
        """
        if choice not in self._by_choice or not numbers.size:
            return
        wanted, plan = np.unique(numbers).tolist(), self._by_choice[choice]
        if choice == next(iter(self._by_choice)) and self._passing.works and spare_memory_bytes() < self._least_bytes:
            # A compiler leaves much behind. The system cannot take back the memory of those that pass, and what all
            # records read would leave its cache for that.
            self._passing.stop()
        few = [one for one in plan.chosen if len(wanted) * one.value.nbytes <= MOST_BYTES * one.spec.shape[0]]
        self._passing.begin_choice(len(few) * len(wanted))
        least = min((self._times[key] for key in self._kept), default=1)
        newest = set[tuple[int, int]]()
        for stored in few:
            cached = [number for number in wanted if not self._let_pass(stored, number, least)]
            self._passing.begin(stored)
            stored.read_ahead(cached)
            newest.update((id(stored), number) for number in cached)
        for stored in plan.others:
            if stored.value.nbytes <= MOST_BYTES:
                stored.read_ahead(None)
        # The disk works meanwhile. The next choice has room when it is known: the system would look for it page by
        # page otherwise, while kernels wait for what is read.
        coming = 0 if self._passing.works else len(wanted) * sum(one.entry_bytes for one in few)
        self._let_go(self._room_bytes - coming, newest)
        if self._counted > COUNTED * len(self._times):
            # What was wanted long ago counts less and less.
            self._times = {key: times // 2 for key, times in self._times.items() if times > 1 or key in self._kept}
            self._counted = sum(self._times.values())

    def wait(self, nodes: Sequence[int]) -> None:
        """Wait for the chosen matrices of products among some nodes, which are about to be computed."""
        for node in nodes if self._by_choice else ():
            if node in self._of_product:
                self._passing.wait(self._of_product[node])

    def close(self) -> None:
        """Let all go that was read here. Calling it twice does nothing."""
        self._passing.close()
        self._let_go(0, set())

    def _let_pass(self, stored: Weight, number: int, least: int) -> bool:
        """Count a choice, and let the matrix pass where it may: True. It is read by the system's cache otherwise.

        Args:
            stored, number: which matrix.
            least: how often the one was chosen that stays and was chosen least often.
        """
        key = id(stored), number
        if key not in self._times and stored.is_cached(number):
            return False
        times = self._times[key] = self._times.get(key, 0) + 1
        self._counted += 1
        stays = self._kept.pop(key, None) is not None
        is_full = self._kept_bytes + stored.entry_bytes > self._room_bytes
        if not stays and is_full and (times <= least or not self._kept) and self._passing.add(stored, number):
            return True
        self._kept[key] = stored
        self._kept_bytes += 0 if stays else stored.entry_bytes
        return False

    def _let_go(self, room_bytes: int, newest: Collection[tuple[int, int]]) -> None:
        """Let matrices leave the cache until the others have room, but for the newest ones."""
        if self._kept_bytes <= room_bytes:
            return
        for key in sorted((key for key in self._kept if key not in newest), key=self._times.__getitem__):
            if self._kept_bytes <= room_bytes:
                return
            stored = self._kept.pop(key)
            self._kept_bytes -= stored.entry_bytes
            stored.let_go(key[1])


def _chosen(nodes: Sequence[Node], product: Node) -> Weight | None:
    """Return what is stored of the matrices of a product, where they are entries of axis 0 there."""
    one, matrices = _stored(nodes, product.inputs[1]), nodes[product.inputs[1]].spec.shape
    return one if one is not None and one.spec.shape[0] == matrices[0] else None


def _stored(nodes: Sequence[Node], value: int) -> Weight | None:
    """Return what is stored of a value that is read as it is, decoded or seen in another way."""
    # Of several equal weights kernels read the one that the graph kept, and each has a mapping of its own.
    while len(nodes[value].inputs) == 1:
        (value,) = nodes[value].inputs
    stored = nodes[value].element
    return stored if isinstance(stored, Weight) and stored.spec.shape else None
