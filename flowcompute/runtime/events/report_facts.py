"""What a report of a run needs beside its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flowcompute.metrics import NodeMetrics
from flowcompute.schedule.explain import Plan, limits_of, plan_svg, rooflines
from flowcompute.strategy import Strategy, Tuning


def about(plan: Plan, rows: Mapping[str, NodeMetrics], strategy: Strategy, tuning: Tuning) -> dict[str, Any]:
    """Return the graph coloured by work, the device, and how the strategy was found, as plain data.

    Args:
        plan: what ran.
        rows: what its stages did.
        strategy: all knobs.
        tuning: how they were found.
    """
    whole = sum(row.busy_s for row in rows.values())
    limits = limits_of(plan)
    # There is one figure, of one device.
    known = limits[0] if len(limits) == 1 else None
    shares = {name: row.busy_s / whole for name, row in rows.items()} if whole else {}
    return {
        "svg": plan_svg(plan, shares),
        "device": plan.backend.capabilities.name,
        "strategy": str(strategy),
        "tuning": replace(tuning, rooflines=rooflines(plan, rows, limits)).plain(),
        "limits": None if known is None else known.plain(),
    }
