"""Device placement: the choice of the device that computes each operation. Devices are ordered best first.

Three criteria decide, as in ggml's scheduler: whether a device can compute an operation, where its operands are, and
whether moving them pays. First, operations that a user has pinned stay where they are pinned. Operands that the same
line made for a pinned operation only are placed with it. Second, operations that the first device cannot compute go to
the first device that can.

Third, the other operations go to the first device, unless they are cheaper next to a fixed one. For each other device a
minimum cut separates the operations fixed there from those fixed elsewhere. It weighs the bytes of each transferred
value against the cost of not computing on the first device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowcompute.elements import PLACED, Kind
from flowcompute.elements.functions import SourceOp, UserOp
from flowcompute.errors import PlanError
from flowcompute.fuse import Reason
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import DeviceCapabilities
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.placement.min_cut import FlowNetwork
from flowcompute.schedule.steps import FUSED
from flowcompute.schedule.work_estimate import operations_of
from flowcompute.spec import FLOAT64

OPERATION_BYTES = 0.5
"""Bytes that a bus transfers while a CPU computes one operation, at 55 GB/s and 10^11 operations a second."""

RESIDENT_SHARE = 1 / 1024
"""Weight of bytes that are transferred once instead of per record. Streams have more than a thousand records."""


@dataclass(frozen=True)
class _Obstacle:
    """A reason why a device cannot compute an operation, and a hint for the user."""

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


class _PlacementSolver:
    def __init__(self, graph: Graph, placements: Sequence[DeviceCapabilities], pins: Mapping[str, int]) -> None:
        self.graph = graph
        self.placements = placements
        self.pins = pins
        self.users = graph.users()
        self.placement: dict[int, int] = {}
        self.reasons: list[Reason] = []

    def place(self) -> tuple[int, ...]:
        """Return the device of each node. It has no meaning for nodes that are computed on the host."""
        computed = [node for node in self.graph.nodes if node.kind in PLACED]
        for node in computed:
            if node.pin is not None and len(self.placements) > 1:
                self._pin(node)
        for node in computed:
            if node.id not in self.placement and _obstacle(self.graph, node, self.placements[0]) is not None:
                self._place_unsupported(node)
        if any(placement != 0 for placement in self.placement.values()):
            for placement in range(1, len(self.placements)):
                self._place_near(placement, [node for node in computed if node.id not in self.placement])
        return tuple(self.placement.get(node.id, 0) for node in self.graph.nodes)

    def _pin(self, node: Node) -> None:
        """Place a pinned node, and the operands that its line made for it only.

        Raises:
            PlanError: if its device cannot compute one of them.
        """
        pin = node.pin
        assert pin is not None
        placement = self.pins[pin.device]
        self._place_on_pin(node, placement, f"pinned by on({pin.device!r}) at {pin.site}")
        todo = [node]
        while todo:
            user = todo.pop()
            for operand in (self.graph.nodes[i] for i in user.inputs):
                free = operand.kind in PLACED and operand.pin is None and operand.id not in self.placement
                exclusive = all(self.placement.get(i) == placement for i in self.users[operand.id])
                if free and exclusive and operand.element.site == node.element.site:
                    self._place_on_pin(operand, placement, f"pinned with {node.name}, for which its line made it")
                    todo.append(operand)

    def _place_on_pin(self, node: Node, placement: int, cause: str) -> None:
        obstacle = _obstacle(self.graph, node, self.placements[placement])
        if obstacle is not None:
            raise PlanError(
                f"cannot be computed on its device: it {obstacle.why}",
                element=node.name,
                site=node.element.site,
                expected="a device that can compute it",
                got=f"{self.placements[placement].name}, {cause}",
                hint="pin it to another device, or to none",
            )
        self.placement[node.id] = placement
        self._record(node, placement, cause)

    def _record(self, node: Node, placement: int, cause: str) -> None:
        if node.kind is not Kind.VIEW:
            self.reasons.append(Reason("device", node.name, f"on {self.placements[placement].name}: {cause}"))

    def _place_unsupported(self, node: Node) -> None:
        """Place a node that the first device cannot compute on the first device that can.

        Raises:
            PlanError: if there is none.
        """
        found = [_obstacle(self.graph, node, capabilities) for capabilities in self.placements]
        first = found[0]
        assert first is not None
        if None not in found:
            names = ", ".join(capabilities.name for capabilities in self.placements)
            raise PlanError(
                f"cannot be computed: it {first.why}",
                element=node.name,
                site=node.element.site,
                expected="a device that can compute it",
                got=names,
                hint=first.hint,
            )
        placement = found.index(None)
        self.placement[node.id] = placement
        self._record(node, placement, f"it {first.why}")

    def _place_near(self, placement: int, free: Sequence[Node]) -> None:
        """Place free nodes on a device if they cost less next to the nodes that are fixed there."""
        if placement not in self.placement.values() or not free:
            return
        network = FlowNetwork()
        places: dict[int, int] = {}
        for node in free:
            places[node.id] = place = network.add_vertex()
            if _obstacle(self.graph, node, self.placements[placement]) is not None:
                network.add_edge(place, FlowNetwork.SINK)
            network.add_edge(place, FlowNetwork.SINK, max(operations_of(self.graph, node) * OPERATION_BYTES, 1e-6))
        for i, where in self.placement.items():
            places[i] = FlowNetwork.SOURCE if where == placement else FlowNetwork.SINK
        for node in self.graph.nodes:
            if node.id in places:
                self._add_transfer_cost(network, places, node)
        beside = network.source_side()
        for node in free:
            if places[node.id] in beside:
                self.placement[node.id] = placement
                self._record(node, placement, "fewer bytes are transferred than on the first device")

    def _add_transfer_cost(self, network: FlowNetwork, places: Mapping[int, int], node: Node) -> None:
        """Add the cost of transferring a value to other devices, once for all of its readers."""
        takers = {places[i] for i in self.users[node.id] if i in places} - {places[node.id]}
        if not takers:
            return
        size = node.spec.item_bytes * (1 if node.spec.is_stream else RESIDENT_SHARE)
        out, back = network.add_vertex(), network.add_vertex()
        network.add_edge(places[node.id], out, size)
        network.add_edge(back, places[node.id], size)
        for taker in takers:
            network.add_edge(out, taker)
            network.add_edge(taker, back)


def place_nodes(graph: Graph, backend: BackendDescription) -> tuple[tuple[int, ...], tuple[Reason, ...]]:
    """Place each node of a job on a device.

    Returns:
        The device of each node, and the reasons for devices other than the first.

    Raises:
        PlanError: if a pinned operation cannot be computed on its device, or another operation on none.
    """
    solver = _PlacementSolver(graph, [placement.capabilities for placement in backend.placements], backend.pins)
    return solver.place(), tuple(solver.reasons)


def single_placement(graph: Graph, placements: Sequence[int]) -> int | None:
    """Return the device that computes all operations, or None if there are several."""
    used = {placements[node.id] for node in graph.nodes if node.kind in PLACED} or {0}
    return used.pop() if len(used) == 1 else None
