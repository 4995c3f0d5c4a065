"""Training as data: its schedule, and the graphs of its steps, each described as a job is."""

from __future__ import annotations

from typing import Any

from flowcompute.checkpoint.job.fields import Fields, refuse
from flowcompute.checkpoint.job.parts.part import Describing, KeptNode, Part, Rebuilding
from flowcompute.elements import Element, Source
from flowcompute.elements.random import SEED_BITS
from flowcompute.elements.training import MOST_EPOCHS, Given, GivenStream, StepSchedule, Training
from flowcompute.graph import build_graph
from flowcompute.rewrite import source_of

_MOST_NAMES = 1 << 20


def _describe_training(training: Training, describing: Describing) -> dict[str, Any]:
    schedule = training.schedule
    return {
        "names": list(training.names),
        "sources": len(training.sources),
        "records": schedule.records,
        "batch": schedule.batch,
        "epochs": schedule.epochs,
        "seed": schedule.seed,
        "steps": [describing.graph(build_graph(roots)) for roots in training.steps],
    }


def _rebuild_training(fields: Fields, node: KeptNode, rebuilding: Rebuilding) -> Element:
    names = fields.items("names", _MOST_NAMES)
    count = fields.whole("sources", 1, len(node.inputs))
    values, sources = node.inputs[: len(node.inputs) - count], node.inputs[len(node.inputs) - count :]
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
    if len(graphs) != len(schedule.sizes):
        fields.wrong("steps", f"{len(schedule.sizes)} graphs")
    steps = [rebuilding.roots(one) for one in graphs]
    for roots, size in zip(steps, schedule.sizes, strict=True):
        _check_step(roots, values, sources, size, node)
    return Training(values, sources, schedule, steps, names)


def _check_step(
    roots: list[Element], values: tuple[Element, ...], sources: tuple[Element, ...], size: int, node: KeptNode
) -> None:
    """Check that a step takes and gives the values that are carried on, and reads records of these sources.

    Raises:
        CheckpointError: if it does anything else.
    """
    after = [one.spec for one in values]
    if [one.spec for one in roots[1:]] != after or roots[0].spec.shape or roots[0].dtype != node.spec.dtype:
        refuse("cannot make a step of a training again", expected="a loss, and the values after it")
    for one in (each.element for each in build_graph(roots).nodes):
        if isinstance(one, GivenStream):
            source = sources[one.place] if one.place < len(sources) else None
            same = source is not None and (source.dtype, source.spec.shape, size) == (
                one.dtype, one.spec.shape, one.spec.length
            )  # fmt: skip
        elif isinstance(one, Given):
            same = one.is_known(after)
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
