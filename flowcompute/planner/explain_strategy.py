"""What a plan says of its knobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowcompute.planner.kernel import Kernel
from flowcompute.planner.knob_table import candidates
from flowcompute.planner.region import Region
from flowcompute.planner.steps import RegionStep

if TYPE_CHECKING:
    from flowcompute.planner.plan import Plan


def explain_strategy(plan: Plan) -> str:
    """The knobs of the run and of each kernel, with what was tried of each and what came of it."""
    origin = {"defaults": "defaults", "stored": "stored by an earlier run", "tuned": "found by this run"}
    lines = [f"strategy on {plan.backend.traits.name}: {origin[plan.tuning.origin]}"]
    lines.append(f"run: batch of {plan.batch_items} records, depth {plan.depth}, {_origin_of_run(plan)}")
    lines += _tried(plan, "run")
    for step in plan.steps:
        if isinstance(step, RegionStep) and step.kernel is not None:
            lines += _kernel(plan, step.region, step.kernel)
    lines += [str(reason) for reason in plan.reasons if reason.kind == "knob"]
    lines += plan.tuning.notes
    return "\n".join(lines)


def _origin_of_run(plan: Plan) -> str:
    names = ("batch_bytes", "depth", "input", "reader_threads")
    set_ = [f"{name}={value}" for name in names if (value := getattr(plan.strategy, name)) is not None]
    pinned = [name for name in names if getattr(plan.pinned, name) is not None]
    told = ", ".join(f"{text} (yours)" if text.split("=")[0] in pinned else text for text in set_)
    return told or "all by default"


def _kernel(plan: Plan, region: Region, kernel: Kernel) -> list[str]:
    head = f"kernel {kernel.name} ({kernel.region}, {kernel.family}{_traffic(plan, region)}): "
    knobs = kernel.knobs.plain()
    if not knobs:
        return [f"{head}has no knobs"]
    pinned = plan.pinned.of_kernel(kernel.name)
    texts = []
    for name, values in candidates(kernel.family, plan.backend.traits).items():
        others = ", ".join(str(value) for value in values if value != knobs[name])
        yours = " (yours)" if getattr(pinned, name) == knobs[name] else ""
        texts.append(f"{name}={knobs[name]}{yours} of {others or 'no other'}")
    return [head + "; ".join(texts), *_tried(plan, kernel.name)]


def _traffic(plan: Plan, region: Region) -> str:
    """What passes between a kernel and memory for each record: the least that it can take."""
    if not region.stream:
        return ""
    specs = [[plan.graph.nodes[i].spec for i in side] for side in (region.inputs, region.outputs)]
    takes, gives = (sum(spec.item_bytes for spec in side if spec.is_stream) for side in specs)
    return f", takes {takes} and gives {gives} bytes a record"


def _tried(plan: Plan, where: str) -> list[str]:
    return [f"  tried {trial}" for trial in plan.tuning.tried if trial.where == where]
