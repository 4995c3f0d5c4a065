"""What running kernels in a worker process means for a plan: what is in memory twice, and what stays outside."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.elements import HostFunction
from flowcompute.elements.streams import KernelScan, ScanFunction
from flowcompute.fuse import Reason
from flowcompute.graph import Graph
from flowcompute.ir import DeviceCapabilities
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.steps import NodeStep
from flowcompute.strategy import Config


def isolated_placements(config: Config, backend: BackendDescription) -> list[tuple[int, DeviceCapabilities]]:
    """The seats whose kernels run in a worker process, each in its own. NumPy has no kernels."""
    placements = enumerate(placement.capabilities for placement in backend.placements) if config.isolate else ()
    return [(number, capabilities) for number, capabilities in placements if capabilities.code_shape != "numpy"]


def shared(what: str) -> str:
    """What the memory plan calls a value's copy that the worker sees."""
    return f"{what} (shared with the worker)"


def not_isolated(graph: Graph, passes: Sequence[Pass]) -> list[Reason]:
    """A reason for each of the user's functions that is called in this process all the same."""
    text = "its function is called in this process: only kernels are isolated"
    called = [node for node in graph.nodes if isinstance(node.element, HostFunction | ScanFunction)]
    alone = [step.node for one in passes for step in one.steps if isinstance(step, NodeStep)]
    called += [node for node in alone if isinstance(node.element, KernelScan)]
    return [Reason("isolate", node.name, text) for node in called]
