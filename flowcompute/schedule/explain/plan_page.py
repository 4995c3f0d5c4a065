"""A plan as a notebook shows it: a table of its steps, and the rest to be opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowcompute.graph import names_of
from flowcompute.html import folded, heading, preformatted, table
from flowcompute.metrics import counted
from flowcompute.schedule.explain.explain_plan import format_bytes, plan_svg
from flowcompute.schedule.steps import NodeStep, RegionStep, Step

if TYPE_CHECKING:
    from flowcompute.schedule.plan import ExecutionPlan, Pass

MOST_ROWS = 60
"""Steps in the table."""

_MOST_DRAWN = 400
"""Kernels of a plan that is drawn."""


def summarize_plan(plan: ExecutionPlan) -> str:
    """Describe a plan in a line: device, passes, kernels and memory."""
    kernels = sum(len(one.kernels) for one in plan.passes)
    passes = counted(len(plan.passes), "pass")
    memory = f"{format_bytes(plan.memory.host_bytes)} of {format_bytes(plan.memory.budget_bytes)}"
    return f"on {plan.backend.capabilities.name}: {passes}, {counted(kernels, 'kernel')}, {memory} on the host"


def plan_html(plan: ExecutionPlan) -> str:
    """Return a plan as HTML: its steps, and to be opened its memory, its reasons and its picture."""
    places, rows = plan.places, []
    for number, one in enumerate(plan.passes, 1):
        rows += _rows(plan, one, f"{number} of {len(plan.passes)}", places)
    parts = [heading("Plan", summarize_plan(plan)), table(("pass", "when", "what", "by", "where"), rows[:MOST_ROWS])]
    if len(rows) > MOST_ROWS:
        parts.append(f"<div>and {len(rows) - MOST_ROWS:,} more steps</div>")
    memory = [(format_bytes(size), what) for what, size in (*plan.memory.items, *plan.memory.device_items)]
    parts.append(folded(f"memory: {counted(len(memory), 'buffer')}", table(("size", "what"), memory[:MOST_ROWS])))
    reasons = "\n".join(str(reason) for reason in plan.reasons[:MOST_ROWS])
    parts.append(folded(counted(len(plan.reasons), "reason"), preformatted(reasons)))
    if len(rows) <= _MOST_DRAWN:
        parts.append(folded("picture", plan_svg(plan)))
    return "".join(parts)


def _rows(plan: ExecutionPlan, one: Pass, name: str, places: dict[str, str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    rows += [(name, "read", source.name, source.element.origin, places[source.name]) for source in one.sources]
    for when, steps in (("before", one.before), ("each batch", one.steps), ("after", one.after)):
        rows += [(name, when, *_step(plan, step), places[step.name]) for step in steps]
    return rows + [(name, "write", sink.name, sink.element.origin, places[sink.name]) for sink in one.sinks]


def _step(plan: ExecutionPlan, step: Step) -> tuple[str, str]:
    if isinstance(step, RegionStep):
        names = " ".join(names_of([plan.graph.nodes[i] for i in step.region.nodes]))
        return names, "NumPy" if step.kernel is None else f"kernel {step.kernel.name} ({step.kernel.work})"
    assert isinstance(step, NodeStep)
    return step.name, step.node.kind.value if step.node.kind else "node"
