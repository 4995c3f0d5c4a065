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
from flowcompute.schedule.memory.attention_memory import attention_growth
from flowcompute.schedule.memory.batch_buffers import BatchBuffers
from flowcompute.schedule.memory.transfer_plan import TransferPlan, device_edges
from flowcompute.schedule.placement import HEADROOM, Residents, device_budget
from flowcompute.schedule.plan import Pass
from flowcompute.strategy import Config

Lines = tuple[tuple[str, int], ...]
"""Names and bytes."""


class RecordTooLargeError(PlanError):
    """An error of planning: host or device cannot hold even the smallest batch.

    Attributes:
        one_pass: of which it is a batch. It becomes None where that is a step of a training inside of a job.
        missing_bytes: by which the memory is too small.
    """

    one_pass: Pass | None = None
    missing_bytes = 0


class DeviceTooSmallError(RecordTooLargeError):
    """An error of planning: a device with memory of its own cannot hold the smallest batch.

    Args:
        one_pass: of which it is a batch.
        message: what does not fit.
        lines: names and bytes of all that the device would hold.
        budget_bytes: that a run may allocate there.
        hint: what to do.
    """

    def __init__(self, one_pass: Pass, message: str, lines: Lines, budget_bytes: int, *, hint: str) -> None:
        (what, size), least_bytes = max(lines, key=lambda one: one[1]), sum(size for _, size in lines)
        super().__init__(
            message,
            element=what,
            expected=f"at least {int(least_bytes / HEADROOM) + 1} bytes",
            got=f"{budget_bytes} bytes; {what} alone takes {size}",
            hint=hint,
        )
        self.one_pass = one_pass
        self.missing_bytes = least_bytes - int(budget_bytes * HEADROOM)


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

    def check(self, one_pass: Pass, least: list[int]) -> None:
        """Check that the smallest batches of a pass fit the budget.

        Raises:
            DeviceTooSmallError: if they do not; the error names the largest buffer.
        """
        if not self.fits(least):
            message = f"cannot fit the operations placed on {self.name} into its memory"
            hint = "pin less to it with on(), or raise device_memory="
            raise DeviceTooSmallError(one_pass, message, self.lines(least), self.budget_bytes, hint=hint)


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
        edges += attention_growth(graph, mine.clocks)
        budget = device_budget(placement.capabilities.memory_bytes, config.device_memory_bytes)
        fixed = Residents(graph, mine).within(sys.maxsize).lines
        found.append(OtherDevices(placement.capabilities.name, budget, fixed, tuple(edges)))
    return tuple(found)
