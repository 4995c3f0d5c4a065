"""Plans of parts of a pass: streams that nothing joins, and the steps alone that some values need."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from flowcompute.distributed.entry_records import is_counted
from flowcompute.engine import PlannedJob, is_carried
from flowcompute.schedule import Clock, ExecutionPlan, Pass, RegionStep, Step


def parts_of(one: Pass) -> list[tuple[Clock, ...]]:
    """Return the clocks of a pass in groups that no value passes between, in the order of their first clocks."""
    groups: list[set[int]] = []
    for clock in one.clocks:
        joined = {clock.id, *(origin for entry in clock.entries for origin, _ in entry.inputs)}
        apart = []
        for group in groups:
            if group.isdisjoint(joined):
                apart.append(group)
            else:
                joined |= group
        groups = sorted([*apart, joined], key=min)
    return [tuple(one.clocks[i] for i in sorted(group)) for group in groups]


def part_of(job: PlannedJob, index: int, number: int) -> PlannedJob:
    """Return a job whose pass has the clocks of one of its parts alone."""
    one = job.plan.passes[index]
    parts = parts_of(one)
    if len(parts) == 1:
        return job
    places = {clock.id: place for place, clock in enumerate(parts[number])}
    clocks = tuple(
        replace(
            clock,
            id=places[clock.id],
            entries=tuple(
                replace(entry, inputs=tuple((places[origin], value) for origin, value in entry.inputs))
                for entry in clock.entries
            ),
        )
        for clock in parts[number]
    )
    return _with_pass(job, index, replace(one, clocks=clocks, after=(), ahead=0))


def for_entries(job: PlannedJob, index: int) -> PlannedJob:
    """Return a job whose pass computes what enters its clocks, and nothing else."""
    clocks = job.plan.passes[index].clocks
    return reduced(job, index, clocks, _entering(clocks))


def reduced(job: PlannedJob, index: int, clocks: Collection[Clock], wanted: Collection[int]) -> PlannedJob:
    """Return a job whose pass has these clocks, with the steps that some values need, and no destinations.

    Args:
        job: the job.
        index: which of its passes.
        clocks: of the pass, perhaps fewer.
        wanted: ids of the values.
    """
    needed, kept = set(wanted), []
    for clock in reversed(tuple(clocks)):
        steps = []
        for step in reversed(clock.steps):
            if needed.intersection(_nodes(step)):
                steps.append(step)
                needed.update(step.region.inputs if isinstance(step, RegionStep) else step.node.inputs)
        kept.append(_with_steps(clock, tuple(reversed(steps))))
    one = job.plan.passes[index]
    return _with_pass(job, index, replace(one, clocks=tuple(reversed(kept)), after=(), sinks=(), ahead=0))


def _with_pass(job: PlannedJob, index: int, one: Pass) -> PlannedJob:
    passes = list(job.plan.passes)
    passes[index] = one
    return PlannedJob(replace(job.plan, passes=tuple(passes)), job.backend)


def _with_steps(clock: Clock, steps: tuple[Step, ...]) -> Clock:
    values = {source.value for source in clock.sources} | {i for step in steps for i in _nodes(step)}
    values |= {entry.value for entry in clock.entries if entry.value in clock.values}
    blocks = [
        step.kernel.block
        for step in steps
        if isinstance(step, RegionStep) and step.kernel is not None and step.kernel.work == "records"
    ]
    return replace(clock, steps=steps, values=frozenset(values), granule=max(blocks, default=1))


def _nodes(step: Step) -> tuple[int, ...]:
    return step.region.nodes if isinstance(step, RegionStep) else (step.node.id,)


def count_clocks(one: Pass) -> tuple[Clock, ...]:
    """Return the clocks of a pass that selections begin, whose records are known by counting alone."""
    return tuple(clock for clock in one.clocks if any(is_counted(entry) for entry in clock.entries))


def for_counts(job: PlannedJob, index: int) -> PlannedJob:
    """Return a job whose pass selects of each mask itself, and computes nothing else: clocks after the first count."""
    one = job.plan.passes[index]
    clocks, masks = [one.clocks[0]], set()
    for clock in count_clocks(one):
        entry = next(entry for entry in clock.entries if is_counted(entry))
        mask = entry.inputs[1]
        masks.add(mask[1])
        alone = replace(entry, inputs=(mask, mask))
        clocks.append(
            replace(clock, id=len(clocks), entries=(alone,), steps=(), values=frozenset({entry.value}), length=None)
        )
    return reduced(job, index, clocks, masks)


def scans_of(plan: ExecutionPlan, index: int, clock: int | None = None) -> tuple[int, ...]:
    """Return the ids of the scans of a pass, or of one of its clocks, that carry something from record to record."""
    one = plan.passes[index]
    steps = one.steps if clock is None else one.clocks[clock].steps
    values = set().union(*(_nodes(step) for step in steps))
    return tuple(i for i in sorted(values) if is_carried(plan.graph.nodes[i]))


def for_totals(job: PlannedJob, index: int, clock: int) -> PlannedJob:
    """Return a job whose pass computes the scans of one clock; for those of the first clock, it has that alone."""
    clocks, scans = job.plan.passes[index].clocks, scans_of(job.plan, index, clock)
    return (
        reduced(job, index, clocks, {*scans, *_entering(clocks)}) if clock else reduced(job, index, clocks[:1], scans)
    )


def _entering(clocks: Collection[Clock]) -> set[int]:
    return {value for clock in clocks for entry in clock.entries for _, value in entry.inputs}
