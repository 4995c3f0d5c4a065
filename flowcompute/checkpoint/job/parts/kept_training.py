"""Training as data: its schedule, and the graphs of its steps, each described as a job is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowcompute.checkpoint.job.fields import Fields, refuse
from flowcompute.checkpoint.job.parts.part import Describing, KeptNode, Part, Rebuilding
from flowcompute.elements import Element, Source
from flowcompute.elements.random import SEED_BITS
from flowcompute.elements.training import (
    MOST_EPOCHS,
    MOST_MEASURES,
    Evaluation,
    Given,
    GivenStream,
    StepSchedule,
    Training,
)
from flowcompute.graph import build_graph
from flowcompute.rewrite import source_of
from flowcompute.spec import BOOL, Spec

_MOST_NAMES = 1 << 20


def _describe_training(training: Training, describing: Describing) -> dict[str, Any]:
    schedule, evaluation = training.schedule, training.evaluation
    kept: dict[str, Any] = {
        "names": list(training.names),
        "sources": len(training.sources),
        "records": schedule.records,
        "batch": schedule.batch,
        "epochs": schedule.epochs,
        "seed": schedule.seed,
        "steps": [describing.graph(build_graph(roots)) for roots in training.steps],
    }
    if evaluation is not None:
        # Trainings without one have no such entries.
        kept |= {"measures": list(evaluation.names), "every": evaluation.every, "held": len(evaluation.sources)}
        kept["steps"].append(describing.graph(build_graph(evaluation.roots)))
    return kept


def _rebuild_training(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    names = fields.items("names", _MOST_NAMES)
    count = fields.whole("sources", 1, len(node.inputs))
    evaluated = "measures" in fields
    held = fields.whole("held", 0, len(node.inputs) - count) if evaluated else 0
    first, last = len(node.inputs) - count - held, len(node.inputs) - held
    values, sources = node.inputs[:first], node.inputs[first:last]
    if not all(isinstance(one, str) for one in names) or len(names) > len(values):
        fields.wrong("names", "a name for each parameter")
    records = fields.whole("records", 1)
    schedule = StepSchedule(
        records,
        fields.whole("batch", 1, records),
        fields.whole("epochs", 1, MOST_EPOCHS),
        fields.maybe("seed", lambda key: fields.whole(key, most=(1 << SEED_BITS) - 1)),
    )
    sound = all(source_of(one) is not None and one.spec.length == records for one in sources)
    if not sound or any(one.spec.is_stream for one in values):
        refuse("cannot make a training again of these operands", expected="values, then sources of equal length")
    graphs = fields.items("steps")
    if len(graphs) != len(schedule.sizes) + evaluated:
        fields.wrong("steps", f"{len(schedule.sizes) + evaluated} graphs")
    steps = [rebuilding.roots(one) for one in graphs]
    evaluation = _evaluation(fields, values, node.inputs[last:], schedule, steps.pop()) if evaluated else None
    state = () if evaluation is None else evaluation.state
    specs = tuple(one.spec for one in values)
    updated = specs[: len(specs) - len(state)]
    if len(names) > len(updated) or (state and specs[len(updated) :] != state):
        refuse("cannot make a training again of these operands", expected="values, then the state of its criterion")
    for roots, size in zip(steps, schedule.sizes, strict=True):
        same = [one.spec for one in roots[1:]] == list(updated) and not roots[0].spec.shape
        if not same or roots[0].spec != steps[0][0].spec:
            refuse("cannot make a step of a training again", expected="a loss, and the values after it")
        _check_leaves(roots, specs, sources, [size] * len(sources))
    return Training(values, sources, schedule, steps, names, evaluation)


def _evaluation(
    fields: Fields,
    values: tuple[Element, ...],
    sources: tuple[Element, ...],
    schedule: StepSchedule,
    roots: Sequence[Element],
) -> Evaluation:
    """Make an evaluation again.

    Raises:
        CheckpointError: if it is none, or takes anything else than values that are carried on and these sources.
    """
    names = fields.items("measures", MOST_MEASURES)
    every = fields.whole("every", 1, schedule.steps)
    if not all(isinstance(one, str) for one in names) or not 0 < len(names) <= len(roots):
        fields.wrong("measures", "a name for each measure")
    numbers, told = roots[: len(names)], roots[len(names) :]
    sound = all(not one.spec.is_stream for one in roots) and all(not one.ndim for one in (*numbers, *told[:1]))
    if not sound or (told and told[0].dtype != BOOL) or any(source_of(one) is None for one in sources):
        refuse("cannot make an evaluation again", expected="resident numbers, and whether to stop")
    _check_leaves(roots, tuple(one.spec for one in values), sources, [one.spec.length for one in sources])
    return Evaluation(tuple(roots), tuple(names), every, sources)


def _check_leaves(
    roots: Sequence[Element], values: tuple[Spec, ...], sources: Sequence[Element], lengths: Sequence[int | None]
) -> None:
    """Check that a graph takes values that are carried on, and reads so many records of these sources.

    Raises:
        CheckpointError: if it does anything else.
    """
    for one in (each.element for each in build_graph(roots).nodes):
        if isinstance(one, GivenStream):
            source = sources[one.place] if one.place < len(sources) else None
            same = source is not None and (source.dtype, source.spec.shape, lengths[one.place]) == (
                one.dtype, one.spec.shape, one.spec.length
            )  # fmt: skip
        elif isinstance(one, Given):
            same = one.is_known(values)
        else:
            same = not isinstance(one, Source)
        if not same:
            refuse("cannot make a step of a training again", expected="leaves that it is given", got=one.label)


def _describe_given(given: Given, _: Describing) -> dict[str, Any]:
    return {"key": given.key, "seed": given.seed}


def _rebuild_given(fields: Fields, node: KeptNode, _: Rebuilding) -> Element:
    seed = fields.maybe("seed", lambda key: fields.whole(key, most=(1 << SEED_BITS) - 1))
    return Given(fields.printable("key"), node.spec, seed=seed, name=node.given)


def _describe_records(records: GivenStream, _: Describing) -> dict[str, Any]:
    return {"place": records.place}


def _rebuild_records(fields: Fields, node: KeptNode, _: Rebuilding) -> Element:
    return GivenStream(fields.whole("place"), node.spec, name=node.given)


TRAININGS: dict[type[Element], Part] = {
    Training: Part("training", _describe_training, _rebuild_training),
    Given: Part("given", _describe_given, _rebuild_given),
    GivenStream: Part("records", _describe_records, _rebuild_records),
}
