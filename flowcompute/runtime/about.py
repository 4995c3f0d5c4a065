"""What a report of a run needs beside its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flowcompute.planner.explain import plan_svg
from flowcompute.planner.plan import Plan
from flowcompute.planner.rooflines import rooflines
from flowcompute.runtime.chosen import Chosen
from flowcompute.runtime.record import RunRecord
from flowcompute.strategy import load_limits


def about_run(plan: Plan, chosen: Chosen, record: RunRecord) -> dict[str, Any]:
    """The graph coloured by work, the device, and how the strategy was found, as plain data."""
    rows = record.metrics({})
    whole = sum(row.busy_s for row in rows.values())
    limits = load_limits(plan.backend.traits.kind)
    shares = {name: row.busy_s / whole for name, row in rows.items()} if whole else {}
    return {
        "svg": plan_svg(plan, shares),
        "device": plan.backend.traits.name,
        "strategy": str(chosen.strategy),
        "tuning": replace(chosen.tuning, rooflines=rooflines(plan, rows, limits)).plain(),
        "limits": None if limits is None else limits.plain(),
    }
