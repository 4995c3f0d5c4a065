"""Memory and reasons of kernels that run in a worker process."""

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
    """Return the devices whose kernels run in worker processes, one each. NumPy has no kernels."""
    placements = enumerate(placement.capabilities for placement in backend.placements) if config.isolate else ()
    return [(number, capabilities) for number, capabilities in placements if capabilities.code_shape != "numpy"]


def shared_name(what: str) -> str:
    """Return the name, in the memory plan, of a value's copy in memory shared with the worker."""
    return f"{what} (shared with the worker)"


def not_isolated(graph: Graph, passes: Sequence[Pass]) -> list[Reason]:
    """Return a reason for each of the user's functions that is called in this process despite isolation."""
    text = "its function is called in this process: only kernels are isolated"
    called = [node for node in graph.nodes if isinstance(node.element, HostFunction | ScanFunction)]
    on_host = [step.node for one in passes for step in one.steps if isinstance(step, NodeStep)]
    called += [node for node in on_host if isinstance(node.element, KernelScan)]
    return [Reason("isolate", node.name, text) for node in called]
