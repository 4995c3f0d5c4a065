"""Division of the work of a launch among work-items."""

from __future__ import annotations

from functools import partial

from flowcompute.ir import DeviceCapabilities, Kernel
from flowcompute.ir.launches import LaunchTask, divide
from flowcompute.schedule import ExecutionPlan


def division(
    plan: ExecutionPlan, capabilities: DeviceCapabilities, kernel: Kernel, items: int, blocks: int
) -> tuple[int, int, int]:
    """Return how many numbers or rows there are, how many a work-item takes (0: what is its turn), and the work-groups.

    Args:
        plan: of which the kernel is part.
        capabilities: of the device.
        kernel: what is launched.
        items: records of the batch.
        blocks: canonical blocks or tiles that they lie in.
    """
    total, chunk, groups = divide(
        LaunchTask(kernel, capabilities, items, blocks, plan.folds, partial(_record_numbers, plan, kernel))
    )
    return total, chunk, max(groups, kernel.parts)


def _record_numbers(plan: ExecutionPlan, kernel: Kernel) -> int:
    return plan.record_numbers[kernel.name]
