"""Measures between steps of a training, and criteria that end it by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from flowcompute.elements import Element, as_element, user_site
from flowcompute.elements.arguments import whole
from flowcompute.elements.training import MOST_MEASURES, Evaluation, Given, GivenStream, StepSchedule
from flowcompute.errors import SpecError, short_repr
from flowcompute.rewrite import source_of
from flowcompute.spec import BOOL
from flowcompute.train.composing import Problem, check_leaf, is_parameter, ordered, with_others
from flowcompute.train.patience import Patience
from flowcompute.train.settings import called

Measures = Element | Mapping[str, Element]
"""What is measured: a resident number, or several by name."""

Stop = Patience | Callable[[Mapping[str, Any]], Any]
"""What ends a training: a criterion, or a function from the measures by name to whether to stop."""


def evaluation_of(
    problem: Problem,
    schedule: StepSchedule,
    updated: int,
    measures: Measures | None,
    every: int | None,
    stop: Stop | None,
) -> tuple[Evaluation | None, tuple[Element, ...]]:
    """Compose what is measured between steps.

    Args:
        problem: what is trained.
        schedule: of the steps.
        updated: values that a step updates, the parameters first.
        measures, every, stop: as `fit` takes them.

    Returns:
        The evaluation, None where there is none, and what the state of its criterion begins with.

    Raises:
        SpecError: if an argument makes no sense.
    """
    if measures is None:
        for what, value in (("every", every), ("stop", stop)):
            if value is not None:
                raise _refused(what, "evaluate=, which says what is measured", "evaluate=None")
        return None, ()
    steps = schedule.steps_an_epoch if every is None else whole("fit", "every", every, 1)
    if steps > schedule.steps:
        raise _refused("every", f"at most the {schedule.steps} steps of the training", str(steps))
    named = _named(measures)
    given: dict[int, Element] = {**problem.stands_in()}
    sources = _sources(problem, named)
    for place, one in enumerate(sources):
        given[id(one)] = GivenStream.of(place, one, one.spec.length or 0)
    made = {name: with_others(one, given) for name, one in named.items()}
    told, first = _criterion(made, updated, stop)
    return Evaluation((*made.values(), *told), tuple(made), steps, sources), first


def _named(measures: Measures) -> dict[str, Element]:
    """Return the measures by name."""
    if isinstance(measures, Element):
        named: dict[str, Any] = {measures.name or "measure": measures}
    elif isinstance(measures, Mapping) and 0 < len(measures) <= MOST_MEASURES:
        named = dict(measures)
    else:
        raise _refused("evaluate", f"a resident number, or 1 to {MOST_MEASURES} of them by name", short_repr(measures))
    for name, one in named.items():
        if not isinstance(name, str) or not name.isprintable() or not name:
            raise _refused("evaluate", "names that can be printed", short_repr(name))
        if not isinstance(one, Element) or one.spec.is_stream or one.ndim or one.dtype.kind == "c":
            got = str(one.spec) if isinstance(one, Element) else short_repr(one)
            raise _refused("evaluate", f"a resident number as {name!r}", got, "sum it, or take its mean")
    return named


def _sources(problem: Problem, named: Mapping[str, Element]) -> tuple[Element, ...]:
    """Return the streams whose records are measured, each once."""
    found: dict[int, Element] = {}
    trained = {id(one) for one in problem.parameters}
    for name, measure in named.items():
        order, _ = ordered(measure)
        if not any(id(one) in trained for one in order):
            raise _refused("evaluate", f"{name!r} to depend on a parameter that is trained", str(measure.spec))
        for one in order:
            if source_of(one) is not None:
                found[id(one)] = one
            elif not is_parameter(one):
                check_leaf("fit", one)
    return tuple(found.values())


def _criterion(
    measures: Mapping[str, Element], updated: int, stop: Stop | None
) -> tuple[Sequence[Element], tuple[Element, ...]]:
    """Return whether to stop with the criterion's state after that, and what the state begins with."""
    if stop is None:
        return (), ()
    if isinstance(stop, Patience):
        watched = stop.watched(measures)
        first = stop.begin(watched)
        state = [Given(f"value.{updated + i}", one.spec) for i, one in enumerate(first)]
        ends, after = stop.advance(watched, state)
        return (ends, *after), first
    if not callable(stop):
        raise _refused("stop", "fc.train.patience(), or a function of the measures by name", short_repr(stop))
    ends = as_element(called("fit", "stop", stop, MappingProxyType(dict(measures))), "fit")
    if ends.spec.is_stream or ends.spec.shape or ends.dtype != BOOL:
        raise _refused("stop", "a function that gives one resident truth value", str(ends.spec))
    return (ends,), ()


def _refused(what: str, expected: str, got: str, hint: str | None = None) -> SpecError:
    return SpecError(f"cannot take {what}=", element="fit", site=user_site(), expected=expected, got=got, hint=hint)
