"""What devices hold that a run has beside its main one: all that their kernels read, as nothing passes through them."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from flowcompute.errors import PlanError
from flowcompute.graph import Graph
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
    """One of the other devices that have memory of their own.

    Attributes:
        name: of the device.
        budget_bytes: what a run may take there.
        fixed: what is there whatever the batches are.
        edges: what grows with the batches.
    """

    name: str
    budget_bytes: int
    fixed: Lines
    edges: tuple[BatchBuffers, ...]

    def lines(self, rooms: list[int]) -> Lines:
        """What it holds when clocks have batches of so many records."""
        return (*self.fixed, *(edge.line(rooms) for edge in self.edges))

    def fits(self, rooms: list[int]) -> bool:
        """Whether there is room for it."""
        return sum(size for _, size in self.lines(rooms)) <= int(self.budget_bytes * HEADROOM)

    def check(self, least: list[int]) -> None:
        """Refuse what does not fit with the smallest batches.

        Raises:
            PlanError: naming what takes most.
        """
        if self.fits(least):
            return
        lines = self.lines(least)
        needed, (what, size) = sum(size for _, size in lines), max(lines, key=lambda one: one[1])
        raise PlanError(
            f"the memory of {self.name} is too small for what is placed there",
            element=what,
            expected=f"at least {int(needed / HEADROOM) + 1} bytes",
            got=f"{self.budget_bytes} bytes; {what} alone takes {size}",
            hint="pin less to it with on(), or raise device_memory=",
        )


def devices_beside(
    graph: Graph, one_pass: Pass, folds: dict[int, FoldSpec], config: Config, backend: BackendDescription, depth: int
) -> tuple[OtherDevices, ...]:
    """The other devices that have memory of their own, with so many batches in flight."""
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
