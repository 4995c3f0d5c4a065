"""What a report of a run needs beside its numbers."""

from __future__ import annotations

from typing import Any

from flowcompute.planner.explain import plan_svg
from flowcompute.planner.plan import Plan
from flowcompute.runtime.chosen import Chosen
from flowcompute.runtime.record import RunRecord


def about_run(plan: Plan, chosen: Chosen, record: RunRecord) -> dict[str, Any]:
    """The graph coloured by work, the device, and how the strategy was found, as plain data."""
    rows = record.metrics({})
    whole = sum(row.busy_s for row in rows.values())
    shares = {name: row.busy_s / whole for name, row in rows.items()} if whole else {}
    return {
        "svg": plan_svg(plan, shares),
        "device": plan.backend.traits.name,
        "strategy": str(chosen.strategy),
        "tuning": chosen.tuning.plain(),
    }
