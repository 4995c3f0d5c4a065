"""Knobs of a plan: the complete set in effect, and the ones that are not applied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from flowcompute.elements import Source
from flowcompute.fuse import Reason
from flowcompute.imports import LateModule
from flowcompute.ir import DeviceCapabilities, Kernel
from flowcompute.schedule.memory import plan_memory
from flowcompute.schedule.run_knobs import default_batch_bytes, joined_batches, with_defaults
from flowcompute.schedule.steps import RegionStep
from flowcompute.sources import StoredSource
from flowcompute.strategy import KERNEL_KNOBS, KernelKnobs, Strategy

if TYPE_CHECKING:
    from flowcompute import lower
    from flowcompute.schedule import passes
    from flowcompute.schedule.plan import ExecutionPlan
else:
    lower = LateModule("flowcompute.lower")
    passes = LateModule("flowcompute.schedule.passes")


def not_applied(
    strategy: Strategy, kernels: Sequence[Kernel], sources: Sequence[Source], capabilities: DeviceCapabilities
) -> Iterator[Reason]:
    """Yield a reason for each knob that is set but that no kernel or source has or supports."""
    mapped = with_defaults(strategy, capabilities).input == "mapped"
    if (strategy.reader_threads or 1) > 1 and not any(is_read_in_parts(source, mapped) for source in sources):
        yield Reason("knob", "reader_threads", "accepted, not applied: no file is read into buffers in its own order")
    if (strategy.joined_batches or 1) > 1 and capabilities.host_memory:
        yield Reason("knob", "joined_batches", "accepted, not applied: no device is across a bus")
    names = {kernel.name for kernel in kernels}
    for knob in KERNEL_KNOBS:
        wanted = getattr(strategy, knob)
        having = [kernel for kernel in kernels if getattr(kernel.knobs, knob) is not None]
        if wanted is not None and all(getattr(kernel.knobs, knob) != wanted for kernel in having):
            yield Reason("knob", knob, f"accepted, not applied: {_why(knob, wanted, having, capabilities)}")
    for name, own in strategy.by_kernel().items():
        if name not in names:
            yield Reason("knob", name, "accepted, not applied: the plan has no kernel of this name")
        for kernel in (kernel for kernel in kernels if kernel.name == name):
            for knob, wanted in own.plain().items():
                if getattr(kernel.knobs, knob) != wanted:
                    why = _why(knob, wanted, [kernel] if getattr(kernel.knobs, knob) else [], capabilities)
                    yield Reason("knob", f"{knob} of {name}", f"accepted, not applied: {why}")


def is_read_in_parts(source: Source, mapped: bool) -> bool:
    """Check whether several threads can read one batch of a source.

    They can if the source is a single file that is read into buffers in its own order.
    """
    if not isinstance(source, StoredSource) or source.layout.is_columns:
        return False
    return source.must_read(mapped=mapped) is not None


def _why(knob: str, wanted: int, having: Sequence[Kernel], capabilities: DeviceCapabilities) -> str:
    if not having:
        return f"no kernel here has it on {capabilities.name}"
    found = sorted({f"{getattr(kernel.knobs, knob)} in {kernel.name} ({kernel.family})" for kernel in having})
    return f"{wanted} is none of its values on {capabilities.name}; it is {', '.join(found)}"


def complete_strategy(plan: ExecutionPlan) -> Strategy:
    """Return all knobs of a plan with their values. A plan made with them is the same plan."""
    settled = with_defaults(plan.strategy, plan.backend.capabilities)
    return Strategy(
        batch_bytes=settled.batch_bytes or default_batch_bytes(plan.backend.capabilities, plan.passes),
        depth=plan.depth,
        joined_batches=joined_batches(plan.strategy, plan.backend.capabilities, by_hand=plan.config.by_hand),
        reader_threads=settled.reader_threads,
        input=settled.input,
        kernels={kernel.name: kernel.knobs for one in plan.passes for kernel in one.kernels},
    )


def batch_sizes(plan: ExecutionPlan, batch_bytes: int) -> list[int]:
    """Return the records per batch of each pass of a plan under another `batch_bytes`."""
    joined = complete_strategy(plan).joined_batches
    strategy = replace(plan.strategy, batch_bytes=batch_bytes, joined_batches=joined)
    made = plan_memory(plan.graph, plan.passes, plan.folds, plan.host_folds, plan.config, strategy, plan.backend, [])
    return [one.batch_items for one in made[1]]


def variant(plan: ExecutionPlan, step: RegionStep, knobs: KernelKnobs) -> Kernel:
    """Return the kernel of a step with other knobs. Knobs that are unset keep their values."""
    assert step.kernel is not None
    style = lower.KernelStyle(
        plan.backend.placements[step.placement].capabilities, knobs.over(step.kernel.knobs), plan.config.precision
    )
    kernel = passes.KERNELS.lower(plan.graph, step.region, style, plan.folds, step.kernel.name)
    return replace(kernel, contract=step.kernel.contract)
