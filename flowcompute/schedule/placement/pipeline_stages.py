"""Pipeline stages of a graph on several devices, and the values that they exchange.

A pipeline stage is a run of consecutive steps on one device. While the last stage computes one batch, earlier stages
may compute later batches, as long as they touch no state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowcompute.elements import Kind
from flowcompute.fuse import Reason
from flowcompute.imports import dataclass
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.placement.shared_passes import why_in_order
from flowcompute.schedule.placement.weight_residency import direct_inputs
from flowcompute.schedule.plan import Clock, Pass
from flowcompute.schedule.steps import RegionStep, Step, device_folds
from flowcompute.strategy import Config


@dataclass(frozen=True)
class PipelineStage:
    """Consecutive steps of a batch on one device.

    Attributes:
        placement: index of the device; None for the host.
        steps: in order.
    """

    placement: int | None
    steps: tuple[Step, ...]


def pipeline_stages_of(steps: Sequence[Step]) -> tuple[PipelineStage, ...]:
    """Divide steps into pipeline stages.

    Steps that only record the position of records or the inputs of folds start no stage of their own.
    """
    found: list[PipelineStage] = []
    for step in steps:
        beside = not isinstance(step, RegionStep) and step.node.kind in (Kind.ALONG, Kind.FOLD)
        placement = step.placement if isinstance(step, RegionStep) else None
        if found and (beside or found[-1].placement == placement):
            found[-1] = PipelineStage(found[-1].placement, (*found[-1].steps, step))
        else:
            found.append(PipelineStage(placement, (step,)))
    return tuple(found)


def count_early_steps(one_pass: Pass, config: Config, backend: BackendDescription) -> int:
    """Return the number of leading steps of the root clock that run in early pipeline stages.

    These are the stages before the last one, up to the first step that must process the records in order. The number is
    zero where the other steps need all of these devices too, and where no device is across a bus.
    """
    root = _root(one_pass)
    across = any(not placement.capabilities.host_memory for placement in backend.placements)
    if root is None or config.by_hand or config.isolate or len(backend.placements) == 1 or not across:
        return 0
    steps = root.steps
    in_order = next((i for i, step in enumerate(steps) if why_in_order(step) is not None), len(steps))
    ahead = min(in_order, len(steps) - len(pipeline_stages_of(steps)[-1].steps)) if steps else 0
    return ahead if placements_of(steps[:ahead]) - placements_of(steps[ahead:]) else 0


def not_pipelined(passes: Sequence[Pass], backend: BackendDescription) -> Iterator[Reason]:
    """Yield a reason for each pass with several devices that computes only one batch at a time."""
    across = any(not placement.capabilities.host_memory for placement in backend.placements)
    for number, one in enumerate(passes, 1):
        root = _root(one)
        if root is None or one.ahead or not across or len(placements_of(root.steps)) < 2:
            continue
        why = next(filter(None, map(why_in_order, root.steps)), None)
        if why is not None:
            yield Reason("device", f"pass {number}", f"one batch at a time on all devices: {why}")


def extra_batches(one_pass: Pass) -> int:
    """Return the additional batches in flight by default.

    Each early stage computes one batch while another is uploaded and a third is downloaded.
    """
    root = _root(one_pass)
    return (
        0
        if root is None
        else 3
        * sum(
            pipeline_stage.placement is not None for pipeline_stage in pipeline_stages_of(root.steps[: one_pass.ahead])
        )
    )


def placements_of(steps: Sequence[Step]) -> set[int]:
    """Return the devices that compute any of these steps, also as a fold whose state lies on the first one."""
    regions = {step.placement for step in steps if isinstance(step, RegionStep)}
    return regions | {0} if device_folds(steps) else regions


def early_outputs(one_pass: Pass) -> dict[int, int]:
    """Return the outputs of early pipeline stages, each with the device that computes it."""
    root = _root(one_pass)
    steps = root.steps[: one_pass.ahead] if root is not None else ()
    return {i: step.placement for step in steps if isinstance(step, RegionStep) for i in step.region.outputs}


def early_inputs(one_pass: Pass, placement: int) -> tuple[frozenset[int], frozenset[int]]:
    """Return the outputs of other early stages that a device reads: those of other devices, and its own."""
    root, makers = _root(one_pass), early_outputs(one_pass)
    if root is None or not makers:
        return frozenset(), frozenset()
    parts = [
        *(pipeline_stage.steps for pipeline_stage in pipeline_stages_of(root.steps[: one_pass.ahead])),
        root.steps[one_pass.ahead :],
    ]
    received: set[int] = set()
    kept: set[int] = set()
    for steps in parts:
        regions = [step for step in steps if isinstance(step, RegionStep)]
        here = {i for step in regions for i in step.region.outputs}
        for step in regions:
            if step.placement == placement and step.kernel is not None:
                read = (makers.keys() & direct_inputs(step.kernel)) - here
                received |= {i for i in read if makers[i] != placement}
                kept |= {i for i in read if makers[i] == placement}
    return frozenset(received), frozenset(kept)


def _root(one_pass: Pass) -> Clock | None:
    """Return the root clock of a pass, or None if there are several."""
    roots = [clock for clock in one_pass.clocks if clock.is_root]
    return roots[0] if len(roots) == 1 else None
