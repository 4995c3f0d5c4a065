"""Memory of the devices of a run other than its main one.

They hold all operands of their kernels, as weights are streamed through the main device only.
"""

from __future__ import annotations

import sys

from flowcompute.errors import PlanError
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import FoldSpec
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.memory.batch_buffers import BatchBuffers
from flowcompute.schedule.memory.transfer_plan import TransferPlan, device_edges
from flowcompute.schedule.placement import HEADROOM, Residents, device_budget
from flowcompute.schedule.plan import Pass
from flowcompute.strategy import Config

Lines = tuple[tuple[str, int], ...]
"""Names and bytes."""


@dataclass(frozen=True)
class OtherDevices:
    """A device other than the main one, with memory of its own.

    Attributes:
        name: of the device.
        budget_bytes: the most bytes that a run may allocate there.
        fixed: buffers whose size does not depend on batches.
        edges: buffers that grow with the batch.
    """

    name: str
    budget_bytes: int
    fixed: Lines
    edges: tuple[BatchBuffers, ...]

    def lines(self, batch_sizes: list[int]) -> Lines:
        """Return the name and the bytes of each buffer for the given batch size of each clock."""
        return (*self.fixed, *(edge.line(batch_sizes) for edge in self.edges))

    def fits(self, batch_sizes: list[int]) -> bool:
        """Check whether all buffers fit the budget for the given batch size of each clock."""
        return sum(size for _, size in self.lines(batch_sizes)) <= int(self.budget_bytes * HEADROOM)

    def check(self, least: list[int]) -> None:
        """Check that the smallest batches fit the budget.

        Raises:
            PlanError: if they do not; the error names the largest buffer.
        """
        if self.fits(least):
            return
        lines = self.lines(least)
        needed, (what, size) = sum(size for _, size in lines), max(lines, key=lambda one: one[1])
        raise PlanError(
            f"cannot fit the operations placed on {self.name} into its memory",
            element=what,
            expected=f"at least {int(needed / HEADROOM) + 1} bytes",
            got=f"{self.budget_bytes} bytes; {what} alone takes {size}",
            hint="pin less to it with on(), or raise device_memory=",
        )


def find_other_devices(
    graph: Graph, one_pass: Pass, folds: dict[int, FoldSpec], config: Config, backend: BackendDescription, depth: int
) -> tuple[OtherDevices, ...]:
    """Return the other devices that have memory of their own, for the given number of batches in flight."""
    found = []
    for number, placement in enumerate(backend.placements):
        if placement.capabilities.host_memory or number == backend.main:
            continue
        mine = one_pass.on_placement(number)
        edges = device_edges(
            graph, mine, folds, TransferPlan.of(one_pass, by_hand=config.by_hand, placement=number), depth
        )
        budget = device_budget(placement.capabilities.memory_bytes, config.device_memory_bytes)
        fixed = Residents(graph, mine).within(sys.maxsize).lines
        found.append(OtherDevices(placement.capabilities.name, budget, fixed, tuple(edges)))
    return tuple(found)
