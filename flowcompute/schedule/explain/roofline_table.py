"""Rooflines of a run: the speed of each region relative to the limits of its device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from flowcompute.metrics import NodeMetrics
from flowcompute.schedule.steps import RegionStep
from flowcompute.schedule.work_estimate import work_of
from flowcompute.strategy import Limits, Roofline, load_limits

if TYPE_CHECKING:
    from flowcompute.schedule.plan import ExecutionPlan


def limits_of(plan: ExecutionPlan) -> tuple[Limits | None, ...]:
    """Load the measured limits of each of a plan's devices."""
    return tuple(load_limits(placement.capabilities.kind) for placement in plan.backend.placements)


def rooflines(
    plan: ExecutionPlan, rows: Mapping[str, NodeMetrics], limits: Sequence[Limits | None]
) -> tuple[Roofline, ...]:
    """Compute a roofline for each region that has processed batches, in the order of the plan.

    Args:
        plan: the plan that ran.
        rows: the metrics of its stages, by name.
        limits: of each of its devices; see `limits_of`.
    """
    found = {}
    for step in (step for one in plan.passes for step in one.steps if isinstance(step, RegionStep)):
        row, work = rows.get(step.name), work_of(plan.graph, step)
        if row is None or not row.items or not (work.bytes or work.operations):
            continue
        # Without times of the device, the host's times are used.
        seconds = row.device_s or row.busy_s
        bytes_ = float(row.bytes_in + row.bytes_out)
        done = Roofline(step.name, bytes_, work.operations * row.items, work.unit, seconds)
        found[step.name] = done.under(limits[step.placement])
    return tuple(found.values())
