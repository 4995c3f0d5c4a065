"""How the work of a launch is divided among work-items."""

from __future__ import annotations

from flowcompute.ir import DeviceCapabilities, Kernel
from flowcompute.lower import GPU_PARTS_PER_UNIT, PARTS_PER_UNIT
from flowcompute.lower.matmul import ROWS_PER_ITEM
from flowcompute.schedule import ExecutionPlan, RegionStep

SCAN_GROUPS_PER_UNIT = 4
"""Work-groups that scan tiles at a time, for each compute unit of a GPU."""


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
    cpu, count = capabilities.code_shape == "cpu", items * kernel.units
    if kernel.work == "scan":
        # They take tiles by ticket: as many as run at once are enough.
        tasks = -(-blocks // kernel.tile[0]) * kernel.tile[1]
        return items, 0, min(tasks, capabilities.units * (1 if cpu else SCAN_GROUPS_PER_UNIT))
    if kernel.work == "walk":
        sequences = count if kernel.notes["along"] == "items" else kernel.units
        most = capabilities.units * (PARTS_PER_UNIT if cpu else GPU_PARTS_PER_UNIT)
        return items, 0, max(1, min(-(-sequences // (kernel.lanes * kernel.work_group)), most))
    if not cpu:
        most = capabilities.units * (kernel.knobs.fold_parts or GPU_PARTS_PER_UNIT)
        lanes = (kernel.knobs.items_per_work_item or kernel.lanes) * kernel.work_group
        tiles = -(-count // kernel.tile[0]) * kernel.tile[1]
        work = {"flat": -(-count // lanes), "rows": tiles, "matmul": tiles}
        groups = work.get(kernel.work, blocks)
        return (items if kernel.work in ("records", "columns") else count), 0, max(1, min(groups, most))
    if kernel.work in ("records", "columns"):
        units = blocks * (_tiles(plan, kernel) if kernel.columns else 1)
        # Neighbouring blocks to one work-item, but enough work-items for all compute units to end together.
        chunk = max(1, units // (capabilities.units * (kernel.knobs.fold_parts or PARTS_PER_UNIT)))
        return items, chunk, -(-units // chunk)
    chunk = _chunk(plan, capabilities, kernel, count)
    return count, chunk, max(1, -(-count // chunk))


def _tiles(plan: ExecutionPlan, kernel: Kernel) -> int:
    fold = next(argument.value for argument in kernel.arguments if argument.kind == "partial")
    return -(-plan.folds[fold].numbers // kernel.columns)


def _chunk(plan: ExecutionPlan, capabilities: DeviceCapabilities, kernel: Kernel, count: int) -> int:
    """Return numbers or rows for one work-item: of products a fair share, else as the kernel's knobs say."""
    if kernel.work == "matmul":
        share, together = -(-count // (2 * capabilities.units)), kernel.tile[0]
        return min(ROWS_PER_ITEM // together, -(-share // together)) * together
    items = kernel.knobs.items_per_work_item or 1
    if kernel.work == "flat":
        return max(16, items // 16 * 16)
    columns = max(1, _row_numbers(plan, kernel))
    return max(1, items // columns)


def _row_numbers(plan: ExecutionPlan, kernel: Kernel) -> int:
    regions = (step for step in plan.steps if isinstance(step, RegionStep) and step.kernel is not None)
    numbers = next(one.region.numbers for one in regions if one.kernel and one.kernel.name == kernel.name)
    return numbers // max(1, kernel.units)
