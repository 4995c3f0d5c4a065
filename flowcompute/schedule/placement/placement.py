"""Where each operation is computed, where a run has several places to compute: its *seats*, best first.

Three questions decide, as in ggml's scheduler: can a seat compute this, where does what it reads lie, and is it worth
bringing there. First, what a user has pinned stays where it is pinned, with what the same line made for it alone.
Second, what the first seat cannot compute goes to the first that can. Third, what is neither goes to the first seat,
unless it is cheaper beside something of the first two kinds: for each other seat a smallest cut is found between what
is fixed there and what is fixed elsewhere. It weighs the bytes of each value that would cross against what computing
away from the first seat costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowcompute.elements import PLACED, Kind
from flowcompute.elements.functions import SourceOp, UserOp
from flowcompute.errors import PlanError
from flowcompute.fuse import Reason
from flowcompute.graph import Graph, Node
from flowcompute.ir import DeviceCapabilities
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.placement.min_cut import FlowNetwork
from flowcompute.schedule.step_maker import FUSED
from flowcompute.schedule.work_estimate import operations_of
from flowcompute.spec import FLOAT64

OPERATION_BYTES = 0.5
"""Bytes that a bus carries while a CPU computes one operation: 55 GB/s beside 10^11 operations a second."""

RESIDENT_SHARE = 1 / 1024
"""What crosses once for all records counts so much of its bytes: a stream has more than a thousand records."""


@dataclass(frozen=True)
class _Obstacle:
    """Why a device cannot compute an operation, and what its user can do."""

    why: str
    hint: str


def _obstacle(graph: Graph, node: Node, capabilities: DeviceCapabilities) -> _Obstacle | None:
    if capabilities.code_shape == "numpy":
        if not isinstance(node.op, SourceOp):
            return None
        hint = 'leave device= to "auto", or write it in Python with @fc.kernel, which every backend runs'
        return _Obstacle("is written in OpenCL C, which NumPy cannot run", hint)
    if capabilities.float64 or node.kind not in FUSED:
        return None
    hint = 'cast with .astype("float32"), or name another device, also beside this one: device=["gpu", "cpu"]'
    if isinstance(node.op, UserOp | SourceOp) and node.op.float64:
        return _Obstacle(f"computes in float64, which {capabilities.name} does not have", hint)
    if FLOAT64 in (node.spec.dtype, *(graph.nodes[i].spec.dtype for i in node.inputs)):
        return _Obstacle(f"is float64, which {capabilities.name} does not have", hint)
    return None


class _Placer:
    def __init__(self, graph: Graph, placements: Sequence[DeviceCapabilities], pins: Mapping[str, int]) -> None:
        self.graph = graph
        self.placements = placements
        self.pins = pins
        self.users = graph.users()
        self.placement: dict[int, int] = {}
        self.reasons: list[Reason] = []

    def place(self) -> tuple[int, ...]:
        """The seat of each node; that of one that is computed on the host means nothing."""
        computed = [node for node in self.graph.nodes if node.kind in PLACED]
        for node in computed:
            if node.pin is not None and len(self.placements) > 1:
                self._pin(node)
        for node in computed:
            if node.id not in self.placement and _obstacle(self.graph, node, self.placements[0]) is not None:
                self._move(node)
        if any(placement != 0 for placement in self.placement.values()):
            for placement in range(1, len(self.placements)):
                self._attract(placement, [node for node in computed if node.id not in self.placement])
        return tuple(self.placement.get(node.id, 0) for node in self.graph.nodes)

    def _pin(self, node: Node) -> None:
        """Place a pinned node, and what its line made for it alone.

        Raises:
            PlanError: if its device cannot compute it.
        """
        pin = node.pin
        assert pin is not None
        placement = self.pins[pin.device]
        self._put(node, placement, f"pinned by on({pin.device!r}) at {pin.site}")
        todo = [node]
        while todo:
            user = todo.pop()
            for operand in (self.graph.nodes[i] for i in user.inputs):
                free = operand.kind in PLACED and operand.pin is None and operand.id not in self.placement
                alone = all(self.placement.get(i) == placement for i in self.users[operand.id])
                if free and alone and operand.element.site == node.element.site:
                    self._put(operand, placement, f"pinned with {node.name}, for which its line made it")
                    todo.append(operand)

    def _put(self, node: Node, placement: int, cause: str) -> None:
        obstacle = _obstacle(self.graph, node, self.placements[placement])
        if obstacle is not None:
            raise PlanError(
                obstacle.why,
                element=node.name,
                site=node.element.site,
                expected="a device that can compute it",
                got=f"{self.placements[placement].name}, {cause}",
                hint="pin it to another device, or to none",
            )
        self.placement[node.id] = placement
        self._say(node, placement, cause)

    def _say(self, node: Node, placement: int, cause: str) -> None:
        if node.kind is not Kind.VIEW:
            self.reasons.append(Reason("device", node.name, f"on {self.placements[placement].name}: {cause}"))

    def _move(self, node: Node) -> None:
        """Place what the first seat cannot compute on the first that can.

        Raises:
            PlanError: if there is none.
        """
        found = [_obstacle(self.graph, node, capabilities) for capabilities in self.placements]
        first = found[0]
        assert first is not None
        if None not in found:
            names = ", ".join(capabilities.name for capabilities in self.placements)
            raise PlanError(
                first.why,
                element=node.name,
                site=node.element.site,
                expected="a device that can compute it",
                got=names,
                hint=first.hint,
            )
        placement = found.index(None)
        self.placement[node.id] = placement
        self._say(node, placement, f"it {first.why}")

    def _attract(self, placement: int, free: Sequence[Node]) -> None:
        """Place beside what is fixed on a seat what costs less there."""
        if placement not in self.placement.values() or not free:
            return
        network = FlowNetwork()
        places: dict[int, int] = {}
        for node in free:
            places[node.id] = place = network.place()
            if _obstacle(self.graph, node, self.placements[placement]) is not None:
                network.join(place, FlowNetwork.SINK)
            network.join(place, FlowNetwork.SINK, max(operations_of(self.graph, node) * OPERATION_BYTES, 1e-6))
        for i, where in self.placement.items():
            places[i] = FlowNetwork.SOURCE if where == placement else FlowNetwork.SINK
        for node in self.graph.nodes:
            if node.id in places:
                self._price(network, places, node)
        beside = network.beside_source()
        for node in free:
            if places[node.id] in beside:
                self.placement[node.id] = placement
                self._say(node, placement, "fewer bytes cross where it is computed beside what is there")

    def _price(self, network: FlowNetwork, places: Mapping[int, int], node: Node) -> None:
        """What it costs where a value is made on one side of the cut and taken on the other, once for all takers."""
        takers = {places[i] for i in self.users[node.id] if i in places} - {places[node.id]}
        if not takers:
            return
        size = node.spec.item_bytes * (1 if node.spec.is_stream else RESIDENT_SHARE)
        out, back = network.place(), network.place()
        network.join(places[node.id], out, size)
        network.join(back, places[node.id], size)
        for taker in takers:
            network.join(out, taker)
            network.join(taker, back)


def place_nodes(graph: Graph, backend: BackendDescription) -> tuple[tuple[int, ...], tuple[Reason, ...]]:
    """The seat of each node of a job, and the cause where it is not the first.

    Raises:
        PlanError: if a pinned operation cannot be computed where it is pinned, or another one nowhere.
    """
    placer = _Placer(graph, [placement.capabilities for placement in backend.placements], backend.pins)
    return placer.place(), tuple(placer.reasons)


def only_placement(graph: Graph, placements: Sequence[int]) -> int | None:
    """The seat that computes everything, if there is one."""
    used = {placements[node.id] for node in graph.nodes if node.kind in PLACED} or {0}
    return used.pop() if len(used) == 1 else None
