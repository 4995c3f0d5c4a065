"""Text that explains the knobs of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowcompute.imports import LateModule
from flowcompute.ir import Kernel
from flowcompute.schedule.explain.roofline_table import limits_of
from flowcompute.schedule.steps import RegionStep
from flowcompute.schedule.work_estimate import work_of
from flowcompute.strategy import Limits, Roofline, scaled

if TYPE_CHECKING:
    from flowcompute import lower
    from flowcompute.schedule.plan import ExecutionPlan
else:
    lower = LateModule("flowcompute.lower")


def explain_strategy(plan: ExecutionPlan) -> str:
    """Describe the knobs of the run and of each kernel, with the trials of each and their results."""
    origin = {"defaults": "defaults", "stored": "stored by an earlier run", "tuned": "found by this run"}
    limits = limits_of(plan)
    lines = [f"strategy on {plan.backend.capabilities.name}: {origin[plan.tuning.origin]}"]
    lines.append(f"run: batch of {plan.batch_items} records, depth {plan.depth}, {_origin_of_run(plan)}")
    lines += _tried(plan, "run")
    for step in plan.steps:
        if isinstance(step, RegionStep) and step.kernel is not None:
            lines += _kernel(plan, step, step.kernel, limits[step.placement])
    lines += [str(reason) for reason in plan.reasons if reason.kind == "knob"]
    used = {step.placement for step in plan.steps if isinstance(step, RegionStep) and step.kernel is not None}
    for name in dict.fromkeys(plan.backend.placements[i].capabilities.name for i in sorted(used) if limits[i] is None):
        lines.append(f"the limits of {name} were not measured: run flowcompute devices --measure")
    lines += plan.tuning.notes
    return "\n".join(lines)


def _origin_of_run(plan: ExecutionPlan) -> str:
    names = ("batch_bytes", "depth", "joined_batches", "input", "reader_threads")
    set_ = [f"{name}={value}" for name in names if (value := getattr(plan.strategy, name)) is not None]
    pinned = [name for name in names if getattr(plan.pinned, name) is not None]
    told = ", ".join(f"{text} (yours)" if text.split("=")[0] in pinned else text for text in set_)
    return told or "all by default"


def _kernel(plan: ExecutionPlan, step: RegionStep, kernel: Kernel, limits: Limits | None) -> list[str]:
    head = f"kernel {kernel.name} ({kernel.region}, {kernel.family}): "
    knobs, work = kernel.knobs.plain(), _work(plan, step, limits)
    if not knobs:
        return [f"{head}has no knobs", *work]
    pinned = plan.pinned.of_kernel(kernel.name)
    texts = []
    for name, values in lower.candidates(kernel, plan.backend.placements[step.placement].capabilities).items():
        others = ", ".join(str(value) for value in values if value != knobs[name])
        yours = " (yours)" if getattr(pinned, name) == knobs[name] else ""
        texts.append(f"{name}={knobs[name]}{yours} of {others or 'no other'}")
    return [head + "; ".join(texts), *_tried(plan, kernel.name), *work]


def _work(plan: ExecutionPlan, step: RegionStep, limits: Limits | None) -> list[str]:
    """Describe a kernel's work per record, the resulting speed limit, and its speed when it was tuned."""
    if not step.region.stream:
        return []
    work = work_of(plan.graph, step)
    least = Roofline(step.name, work.bytes, work.operations, work.unit, 0.0).under(limits)
    text = f"  takes {work.bytes_in} and gives {work.bytes_out} bytes a record, with {work.operations:,.0f} operations"
    text += f" ({work.unit})"
    if least.least_s:
        text += f": at most {scaled(1 / least.least_s, 'records/s')}, as {least.bound} allows"
    return [text, *(f"  when tuned, {one}" for one in plan.tuning.rooflines if one.region == step.name)]


def _tried(plan: ExecutionPlan, where: str) -> list[str]:
    return [f"  tried {trial}" for trial in plan.tuning.tried if trial.where == where]
