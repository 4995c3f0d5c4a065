"""Facts that a report of a run needs beside its numbers."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flowcompute.metrics import NodeMetrics
from flowcompute.schedule.explain import Plan, limits_of, plan_svg, rooflines
from flowcompute.strategy import Strategy, Tuning

_MOST_DRAWN = 1_000
"""Nodes of a graph that a page draws while a run works."""


def about(plan: Plan, rows: Mapping[str, NodeMetrics], strategy: Strategy, tuning: Tuning) -> dict[str, Any]:
    """Return when and by which command it ran, the graph coloured by work, the device, and the strategy, as plain data.

    Args:
        plan: what ran.
        rows: what its stages did.
        strategy: all knobs.
        tuning: how they were found.
    """
    limits = limits_of(plan)
    # There is one figure, of one device.
    known = limits[0] if len(limits) == 1 else None
    return {
        "when": time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime()),
        "command": _command(sys.argv),
        "svg": plan_svg(plan, _shares(rows)),
        "device": plan.backend.capabilities.name,
        "strategy": str(strategy),
        "tuning": replace(tuning, rooflines=rooflines(plan, rows, limits)).plain(),
        "limits": None if known is None else known.plain(),
    }


def picture_of(plan: Plan, rows: Mapping[str, NodeMetrics]) -> str:
    """Return the graph coloured by work as SVG without inline styles; empty where it is too large for a page."""
    if len(plan.graph.nodes) > _MOST_DRAWN:
        return ""
    return plan_svg(plan, _shares(rows)).replace(' style="background:#fff"', "", 1)


def _shares(rows: Mapping[str, NodeMetrics]) -> dict[str, float]:
    """Return the share of each stage in the seconds of work."""
    whole = sum(row.busy_s for row in rows.values())
    return {name: row.busy_s / whole for name, row in rows.items()} if whole else {}


def _command(words: Sequence[str]) -> str:
    """Return the command line of this program as somebody would type it again."""
    program, *others = words or [""]
    name = os.path.basename(program)
    if name in ("", "-c") or "ipykernel" in program:
        return "typed in, or a notebook"
    own = ["flowcompute"] if name in ("flowcompute", "__main__.py") else ["python", program]
    return shlex.join([*own, *others])
