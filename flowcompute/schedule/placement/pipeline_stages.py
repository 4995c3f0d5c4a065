"""Which steps of a batch are computed ahead where a graph is on several devices, and what passes from one to another.

Neighbouring steps that one seat computes are a leg. While the last leg of a batch is computed, other batches may be in
their legs before it, as far as these touch no state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flowcompute.elements import Kind
from flowcompute.fuse import Reason
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.placement.shared_passes import why_in_order
from flowcompute.schedule.placement.weight_residency import read_as_they_are
from flowcompute.schedule.plan import Clock, Pass
from flowcompute.schedule.steps import RegionStep, Step
from flowcompute.strategy import Config


@dataclass(frozen=True)
class PipelineStage:
    """Steps of a batch, one after the other.

    Attributes:
        placement: which computes them; None for the host.
        steps: in order.
    """

    placement: int | None
    steps: tuple[Step, ...]


def pipeline_stages_of(steps: Sequence[Step]) -> tuple[PipelineStage, ...]:
    """Steps by who computes them. What only notes where records are, or what folds will be given, divides no leg."""
    found: list[PipelineStage] = []
    for step in steps:
        beside = not isinstance(step, RegionStep) and step.node.kind in (Kind.ALONG, Kind.FOLD)
        placement = step.placement if isinstance(step, RegionStep) else None
        if found and (beside or found[-1].placement == placement):
            found[-1] = PipelineStage(found[-1].placement, (*found[-1].steps, step))
        else:
            found.append(PipelineStage(placement, (step,)))
    return tuple(found)


def steps_ahead(one_pass: Pass, config: Config, backend: BackendDescription) -> int:
    """How many steps of the root clock, from the first on, are computed ahead.

    These are the legs before the last one, up to the first step that has to go through the records in order. Where
    what follows needs all of their devices too, nothing is gained, nor where no device is across a bus.
    """
    root = _root(one_pass)
    across = any(not placement.capabilities.host_memory for placement in backend.placements)
    if root is None or config.by_hand or config.isolate or len(backend.placements) == 1 or not across:
        return 0
    steps = root.steps
    in_order = next((i for i, step in enumerate(steps) if why_in_order(step) is not None), len(steps))
    ahead = min(in_order, len(steps) - len(pipeline_stages_of(steps)[-1].steps)) if steps else 0
    return ahead if placements_of(steps[:ahead]) - placements_of(steps[ahead:]) else 0


def not_ahead(passes: Sequence[Pass], backend: BackendDescription) -> Iterator[Reason]:
    """Which passes go through their devices one batch at a time, though there are several, and why."""
    across = any(not placement.capabilities.host_memory for placement in backend.placements)
    for number, one in enumerate(passes, 1):
        root = _root(one)
        if root is None or one.ahead or not across or len(placements_of(root.steps)) < 2:
            continue
        why = next(filter(None, map(why_in_order, root.steps)), None)
        if why is not None:
            yield Reason("device", f"pass {number}", f"one batch at a time on all devices: {why}")


def batches_ahead(one_pass: Pass) -> int:
    """Batches more that are in flight by default: of each leg ahead one is computed, one leaves and one comes."""
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
    """Who computes some of these steps."""
    return {step.placement for step in steps if isinstance(step, RegionStep)}


def made_ahead(one_pass: Pass) -> dict[int, int]:
    """The values that regions make ahead, and the seat of each."""
    root = _root(one_pass)
    steps = root.steps[: one_pass.ahead] if root is not None else ()
    return {i: step.placement for step in steps if isinstance(step, RegionStep) for i in step.region.outputs}


def passed_on(one_pass: Pass, placement: int) -> tuple[frozenset[int], frozenset[int]]:
    """What a seat reads of what was made ahead in another leg: by others, and by itself."""
    root, makers = _root(one_pass), made_ahead(one_pass)
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
                read = (makers.keys() & read_as_they_are(step.kernel)) - here
                received |= {i for i in read if makers[i] != placement}
                kept |= {i for i in read if makers[i] == placement}
    return frozenset(received), frozenset(kept)


def _root(one_pass: Pass) -> Clock | None:
    """The clock of all that is read; None where there are several."""
    roots = [clock for clock in one_pass.clocks if clock.is_root]
    return roots[0] if len(roots) == 1 else None
