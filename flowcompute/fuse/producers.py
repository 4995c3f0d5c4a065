"""Producer fusion: the operands of anchors that are computed where they are loaded, and reasons to store the others.

An anchor (a matrix product, attention) reads each number of its operands several times. The element-wise operations
that produce an operand can be computed at each load, which needs no memory, or once, with the result stored. Storing
and reloading a number of eight bytes takes a CPU or GPU about as long as `STORE_COST` plain instructions. This is the
whole rule; see `_ProducerSearch._why_costly`.

The fused producers of an operand are element-wise operations on values that are in memory anyway. Views may lie between
the producers and the anchor, so the windows of a convolution are views of computed values.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from flowcompute.elements import Kind
from flowcompute.elements.axes import LOOKUP, TAKE
from flowcompute.elements.generated import Generator
from flowcompute.elements.math import MATMUL
from flowcompute.elements.nn import SELF_ATTENTION
from flowcompute.elements.quantized import Dequantize
from flowcompute.elements.search import ORDERING
from flowcompute.fuse.anchors import ATTENDING, anchor_name
from flowcompute.fuse.groups import MAX_NODES
from flowcompute.fuse.reasons import Reason
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import is_copied, register_dtype, seen_as, views_of

STORE_COST = 64
"""Instructions that take as long as storing a number and reading it back."""
TILE = 128
"""Rows or columns that share one load of a number. For attention it is `QUERIES`."""
QUERIES = 64
CHEAP = 8
"""Instructions that a resident operand may cost at each load. Stored, it would cost them once for all batches."""
ROW_BYTES = 128 << 10
"""Longest row of a left factor that is computed where it is loaded. CPUs keep four of them in cache."""
MOST_READ = 10
"""Values that the producers of an anchor may read, since a kernel takes few pointers."""
SPREAD_COST = 4
"""Instructions for the index of a broadcast value."""

_COMPUTED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT)


@dataclass(frozen=True)
class FusedProducers:
    """The operations that compute an operand where it is loaded.

    Attributes:
        anchor: the node that loads it.
        operand: the operand: `root`, or a view of it.
        root: the last of the element-wise operations.
        nodes: all operations and views, in topological order.
    """

    anchor: int
    operand: int
    root: int
    nodes: tuple[int, ...]


class _StoredError(Exception):
    """An exception with the reason why an operand is stored."""


def find_producers(
    graph: Graph,
    places: Mapping[int, int],
    placements: Sequence[int],
    gathered: Collection[int] = (),
    attending: Collection[int] = (),
    *,
    siblings: bool = False,
) -> tuple[list[FusedProducers], list[Reason]]:
    """Find the fused producers of all anchors, and the reasons why other computed operands are stored.

    Args:
        graph: the graph.
        places: the clock of each node of a pass; streams of other clocks are in memory. The decision for a resident
            operand does not depend on it, so it holds for all passes.
        placements: the device of each node; results of other devices are read from memory.
        gathered: values that kernels gather, which are anchors too.
        attending: attention along the stream that kernels compute.
        siblings: whether products of one left factor share a launch; see `siblings`.
    """
    return _ProducerSearch(graph, places, placements, gathered, attending, siblings=siblings).find()


class _ProducerSearch:
    def __init__(
        self,
        graph: Graph,
        places: Mapping[int, int],
        placements: Sequence[int],
        gathered: Collection[int],
        attending: Collection[int],
        *,
        siblings: bool,
    ) -> None:
        self.graph = graph
        self.placements = placements
        self.gathered = gathered
        self.attending = attending
        self.siblings = siblings
        self.places = places
        self.users = graph.users()
        self.reasons: dict[Reason, None] = {}

    def find(self) -> tuple[list[FusedProducers], list[Reason]]:
        own = {*self.gathered, *self.attending}
        anchors = [node for node in self.graph.nodes if node.kind is Kind.CONTRACT or node.id in own]
        fused_producers = [producers for anchor in anchors for producers in self._producers_of(anchor)]
        while refused := self._refused(fused_producers):
            for producers in fused_producers:
                if producers.root in refused:
                    self._record(self.graph.nodes[producers.anchor], producers.operand, refused[producers.root])
            fused_producers = [producers for producers in fused_producers if producers.root not in refused]
        return fused_producers, [*self.reasons]

    def _producers_of(self, anchor: Node) -> Iterator[FusedProducers]:
        read: set[int] = set()
        # The host reads the places of records, which stand behind queries, keys and values.
        operands = anchor.inputs[:3] if anchor.op is SELF_ATTENTION else anchor.inputs
        for operand in dict.fromkeys(operands):
            stream = self.graph.nodes[operand].spec.is_stream
            here = anchor.id in self.places
            if stream and not here:
                continue
            try:
                producers, leaves = self._producers(anchor, operand)
                if producers is None:
                    continue
                if len(read | leaves) > MOST_READ:
                    raise _StoredError("the kernel would take too many pointers")
            except _StoredError as error:
                self._record(anchor, operand, str(error))
                continue
            read |= leaves
            yield producers

    def _record(self, anchor: Node, operand: int, why: str) -> None:
        """Record why an operand is stored, once for the nodes of this pass."""
        if anchor.id in self.places:
            root, _ = views_of(self.graph, operand)
            self.reasons[Reason("cut", anchor.name, f"{self.graph.nodes[root].name} is stored: {why}")] = None

    # -- one operand ----------------------------------------------------------------------------------

    def _producers(self, anchor: Node, operand: int) -> tuple[FusedProducers | None, set[int]]:
        """Return the producers of an operand and the values that they read; None if it is in memory anyway.

        Raises:
            _StoredError: if it is computed, but elsewhere.
        """
        nodes = self.graph.nodes
        root, views = views_of(self.graph, operand)
        top = nodes[root]
        if not self._is_here(anchor, top):
            return None, set()
        name = anchor_name(anchor)
        if root in self.gathered:
            if top.op in ORDERING:
                raise _StoredError(self._rows_for(anchor))
            if anchor.kind is Kind.CONTRACT:
                raise _StoredError("its index would be computed at each load")
            raise _StoredError("a kernel holds one gather")
        if top.kind is Kind.SCAN:
            raise _StoredError(f"{anchor_name(top)} computes it, and {name} reads it in another order")
        if top.kind not in _COMPUTED:
            return None, set()
        if top.spec.is_stream and any(self.places.get(view) != self.places[anchor.id] for view in views):
            return None, set()
        if any(is_copied(self.graph, view) for view in views if top.spec.is_stream):
            raise _StoredError("no strides describe its views")
        if anchor.op is LOOKUP:
            # What can be computed for the rows asked for only stands behind the lookup; see `rewrite/lookups.py`.
            raise _StoredError("it is computed once for all batches")
        if top.kind is Kind.CONTRACT:
            raise _StoredError("a kernel holds one matrix product or attention")
        if top.kind is Kind.REDUCE:
            raise _StoredError(self._rows_for(anchor))
        if 0 in nodes[operand].spec.shape or seen_as(self.graph, root, views) is None:
            raise _StoredError("no strides describe its views")
        if anchor.kind is Kind.CONTRACT and register_dtype(top.spec.dtype) != top.spec.dtype:
            raise _StoredError("tensor cores load half formats as they are stored")
        members, leaves = self._collect(anchor, top)
        producers = FusedProducers(anchor.id, operand, root, (*sorted(members), *reversed(views)))
        if anchor.kind is Kind.CONTRACT and anchor.op not in ATTENDING and operand == anchor.inputs[0]:
            row = nodes[operand].spec.shape[-1] * top.spec.dtype.itemsize
            if row > ROW_BYTES and not self._decodes(producers):
                raise _StoredError("its rows are too long for the cache")
        if not top.spec.is_stream and (anchor.spec.is_stream or self._decodes(producers)):
            self._check_resident(producers, leaves)
        elif (why := self._why_costly(producers, self._times(producers), name)) is not None:
            raise _StoredError(why)
        return producers, leaves

    @staticmethod
    def _rows_for(anchor: Node) -> str:
        loaded = "tiles" if anchor.kind is Kind.CONTRACT else "single numbers"
        return f"it is made of whole rows, and {anchor_name(anchor)} loads {loaded}"

    def _is_here(self, anchor: Node, node: Node) -> bool:
        """Check whether the anchor's device computes a value, in the anchor's clock or once before it."""
        if self.placements[node.id] != self.placements[anchor.id]:
            return False
        if not node.spec.is_stream:
            return True
        return self.places.get(node.id) == self.places.get(anchor.id)

    def _collect(self, anchor: Node, top: Node) -> tuple[set[int], set[int]]:
        """Collect the element-wise operations that produce a value, and the values in memory that they read."""
        if self.siblings and self._unites_siblings(anchor, top):
            return {top.id}, set(top.inputs)
        members, leaves, todo = {top.id}, set[int](), [top]
        while todo:
            node = todo.pop()
            if isinstance(node.op, Generator):
                raise _StoredError("it depends on random numbers, which are generated only once")
            if len(members) > MAX_NODES:
                raise _StoredError(f"the kernel would hold more than {MAX_NODES} operations")
            if isinstance(node.op, Dequantize):
                # Blocks are read from memory.
                leaves.update(node.inputs)
                continue
            for operand in (self.graph.nodes[i] for i in node.inputs):
                if operand.id in members:
                    continue
                base, _ = views_of(self.graph, operand.id)
                # Values computed once for all batches stay so.
                computed = self.graph.nodes[base].kind in _COMPUTED and self._is_here(anchor, self.graph.nodes[base])
                if not computed or operand.spec.is_stream != top.spec.is_stream:
                    leaves.add(operand.id)
                elif anchor.op is SELF_ATTENTION and operand.spec.item_numbers < top.spec.item_numbers:
                    # Such as the angles of all heads, which all layers share.
                    leaves.add(operand.id)
                elif operand.kind is Kind.ELEMENTWISE:
                    members.add(operand.id)
                    todo.append(operand)
                elif operand.kind is Kind.CONTRACT:
                    raise _StoredError("it follows another product in its kernel")
                elif operand.kind is Kind.REDUCE:
                    raise _StoredError(self._rows_for(anchor))
                elif anchor.kind is not Kind.CONTRACT and not is_copied(self.graph, operand.id):
                    # Another kernel would read the view from memory as well.
                    leaves.add(operand.id)
                else:
                    raise _StoredError("it depends on a view of a computed value")
        return members, leaves

    def _unites_siblings(self, anchor: Node, top: Node) -> bool:
        """Check whether an operation unites results of sibling products for a product with decoded numbers.

        As the epilogue of one of them it would make that one wait for the others.
        """
        if not self._reads_blocks(anchor):
            return False
        behind = [self._products_behind(i, top.spec.shape) for i in dict.fromkeys(top.inputs)]
        products = set[int]().union(*behind)
        if len(products) < 2 or any(len(one) > 1 for one in behind) or not all(behind):
            return False
        nodes = [self.graph.nodes[i] for i in products]
        return len({node.inputs[0] for node in nodes}) == 1 and all(map(self._reads_blocks, nodes))

    def _reads_blocks(self, node: Node) -> bool:
        """Check whether a node is a product with a resident factor that is decoded from blocks."""
        if node.op is not MATMUL:
            return False
        root, _ = views_of(self.graph, node.inputs[1])
        return isinstance(self.graph.nodes[root].op, Dequantize) and not self.graph.nodes[root].spec.is_stream

    def _products_behind(self, value: int, shape: tuple[int, ...]) -> set[int]:
        """Return the products that element-wise operations of one shape make a value of."""
        found, seen, todo = set[int](), {value}, [value]
        while todo:
            node = self.graph.nodes[todo.pop()]
            if node.op is MATMUL and node.spec.shape == shape:
                found.add(node.id)
            elif node.kind is Kind.ELEMENTWISE and node.spec.shape == shape and node.spec.is_stream:
                todo += [i for i in node.inputs if i not in seen]
                seen.update(node.inputs)
        return found

    # -- costs ----------------------------------------------------------------------------------------

    def _cost(self, producers: FusedProducers) -> int:
        """Count the instructions for one number."""
        nodes, shape = self.graph.nodes, self.graph.nodes[producers.root].spec.shape
        cost = 0
        for i in producers.nodes:
            op = nodes[i].op
            if op is None or nodes[i].kind is not Kind.ELEMENTWISE:
                continue
            spread = [o for o in nodes[i].inputs if nodes[o].spec.item_numbers > 1 and nodes[o].spec.shape != shape]
            cost += op.cost + SPREAD_COST * len(spread)
        return cost

    def _times(self, producers: FusedProducers) -> float:
        """Return how often a number is computed: the tiles that load it times the windows that contain it."""
        nodes = self.graph.nodes
        anchor, operand = nodes[producers.anchor], nodes[producers.operand].spec
        result = anchor.spec.shape
        numbers = nodes[producers.root].spec.item_numbers
        if anchor.id in self.gathered:
            return (anchor.spec if anchor.op is TAKE else operand).item_numbers / numbers
        if anchor.op in ATTENDING:
            return self._loads_of_attention(anchor, producers.operand) / numbers
        if anchor.op is SELF_ATTENTION:
            # A query is kept while it attends; keys and values are added to the state.
            return operand.item_numbers / numbers
        seen = operand.item_numbers / numbers
        columns = math.prod(result[len(result) - anchor.attrs.get("columns", 1) :])
        rows = math.prod(result) // max(columns, 1)
        if producers.operand == anchor.inputs[0]:
            height = max(1, operand.item_numbers // max(operand.shape[-1], 1))
            return seen * (rows / height) * -(-columns // TILE)
        inner = nodes[anchor.inputs[0]].spec.shape[-1]
        matrices = max(1, operand.item_numbers // max(columns * inner, 1))
        return seen * -(-(rows // matrices) // TILE)

    def _loads_of_attention(self, anchor: Node, operand: int) -> int:
        """Count the numbers of an operand that attention loads for an item."""
        nodes, heads = self.graph.nodes, math.prod(anchor.spec.shape[:-2])
        queries, matrix = anchor.spec.shape[-2], nodes[operand].spec.shape[-2:]
        if operand in anchor.inputs[1:3]:
            return heads * -(-queries // QUERIES) * math.prod(matrix)
        if operand == anchor.inputs[0]:
            return heads * math.prod(matrix)
        return heads * queries * nodes[anchor.inputs[1]].spec.shape[-2]

    def _why_costly(self, producers: FusedProducers, times: float, name: str) -> str | None:
        """Return why to store an operand; None if computing it at each load is cheaper.

        It is stored if the repeated computations take longer than storing and reloading it.
        """
        cost = self._cost(producers)
        if cost * (times - 1) <= STORE_COST:
            return None
        return f"{name} would compute it {round(times)} times, {cost} instructions each"

    def _decodes(self, producers: FusedProducers) -> bool:
        """Check whether a resident operand is decoded from blocks, which are there to save its memory."""
        nodes = self.graph.nodes
        return not nodes[producers.root].spec.is_stream and any(
            isinstance(nodes[i].op, Dequantize) for i in producers.nodes
        )

    def _check_resident(self, producers: FusedProducers, leaves: set[int]) -> None:
        """Check that a resident operand is cheap to compute and reads at most half of its bytes.

        What decoding costs does not count, nor do the bytes of blocks as long as they are no more than the operand's.

        Raises:
            _StoredError: if it is better computed once for all batches.
        """
        nodes = self.graph.nodes
        read = sum(nodes[i].spec.item_bytes for i in leaves)
        decoding = [op for i in producers.nodes if isinstance(op := nodes[i].op, Dequantize)]
        cost = self._cost(producers) - sum(op.cost for op in decoding)
        if cost > CHEAP or (1 if decoding else 2) * read > nodes[producers.root].spec.item_bytes:
            raise _StoredError("it is computed once for all batches")

    # -- shared operands ------------------------------------------------------------------------------

    def _refused(self, fused_producers: list[FusedProducers]) -> dict[int, str]:
        """Return why to store operands with other readers, by their roots."""
        covered = {(one.operand, one.anchor) for one in fused_producers}
        sharing: dict[int, list[FusedProducers]] = {}
        for one in fused_producers:
            # What they read from memory is no operand that they compute.
            covered |= {(i, user) for user in one.nodes for i in self.graph.nodes[user].inputs if i in one.nodes}
            sharing.setdefault(one.root, []).append(one)
        whys = ((one.root, self._why_shared(one, covered, sharing[one.root])) for one in fused_producers)
        return {root: why for root, why in whys if why is not None}

    def _why_shared(
        self, producers: FusedProducers, covered: set[tuple[int, int]], sharing: list[FusedProducers]
    ) -> str | None:
        """Return why to store an operand with other readers, each of which would have to compute it.

        Args:
            producers: those of the operand.
            covered: operands and users where the operand is computed at each load.
            sharing: all producers with the same root.
        """
        for i in producers.nodes:
            for user in self.users[i]:
                if (i, user) not in covered:
                    return f"{self.graph.nodes[user].name} needs it too"
        if len(sharing) > 1 and self.graph.nodes[producers.root].spec.is_stream:
            return self._why_costly(producers, sum(map(self._times, sharing)), "its anchors")
        return None
