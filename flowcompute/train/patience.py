"""When to stop: after so many evaluations without a better value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flowcompute.elements import Constant, Element, cast, user_site
from flowcompute.elements.arguments import flag, whole
from flowcompute.elements.math import where
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import FLOAT32, INT64, is_float
from flowcompute.train.settings import as_call, between

State = tuple[float, int]
"""The best value so far, and evaluations since then."""


class Patience:
    """A criterion to stop by: values of evaluations have not become better for some time.

    Attributes:
        evaluations: those in a row that are waited for.
        least: how much better a value must be to count.
        largest: whether larger values are better.
        measure: name of the measure that is looked at; None for the only one.
    """

    __slots__ = ("evaluations", "largest", "least", "measure")

    def __init__(self, evaluations: int, least: float, largest: bool, measure: str | None = None) -> None:
        self.evaluations = evaluations
        self.least = least
        self.largest = largest
        self.measure = measure

    def init(self) -> State:
        """Return the state before the first evaluation."""
        return (-math.inf if self.largest else math.inf, 0)

    def update(self, value: float, state: State) -> tuple[bool, State]:
        """Return whether to stop after an evaluation, and the state then.

        NaN is never better. The first value that is no NaN is better than nothing.
        """
        best, since = state
        better = value - best > self.least if self.largest else best - value > self.least
        state = (float(value), 0) if better else (best, since + 1)
        return state[1] >= self.evaluations, state

    # The same over elements, for a criterion that is part of a job.

    def watched(self, measures: Mapping[str, Element]) -> Element:
        """Return the measure that is looked at, as a float.

        Raises:
            SpecError: if it is none of these, or there are several and none is named.
        """
        name = next(iter(measures)) if self.measure is None and len(measures) == 1 else self.measure
        if name is None or name not in measures:
            raise SpecError(
                "cannot take stop=",
                element="fit",
                site=user_site(),
                expected=f"patience(measure=) to be one of {', '.join(measures)}",
                got=short_repr(self.measure),
            )
        value = measures[name]
        return value if is_float(value.dtype) and value.dtype.itemsize >= FLOAT32.itemsize else cast(value, FLOAT32)

    def begin(self, value: Element) -> tuple[Element, ...]:
        """Return the state before the first evaluation of a measure."""
        best, since = self.init()
        return Constant(best, value.dtype), Constant(since, INT64)

    def advance(self, value: Any, state: Sequence[Any]) -> tuple[Element, tuple[Element, ...]]:
        """Return whether to stop after an evaluation, and the state then, as `update` does."""
        best, since = state
        better = value - best > self.least if self.largest else best - value > self.least
        waited = where(better, 0, since + 1)
        return waited >= self.evaluations, (where(better, value, best), waited)

    def __repr__(self) -> str:
        named = ("evaluations", "least", "largest", *(() if self.measure is None else ("measure",)))
        return as_call("patience", {name: getattr(self, name) for name in named})


def patience(evaluations: int, *, least: float = 0.0, largest: bool = False, measure: str | None = None) -> Patience:
    """Return a criterion that stops after so many evaluations in a row without a better value.

    Prechelt, "Early stopping - but when?" (1998), UP criterion with a best value.

    Args:
        evaluations: 1 or more.
        least: how much better than the best a value must be to count; 0 or more.
        largest: whether larger values are better, as of an accuracy; by default smaller ones are, as of a loss.
        measure: name of the measure that `fit` looks at, where `evaluate=` names several.

    Raises:
        SpecError: for a number out of range, or a measure that is no name.
    """
    if measure is not None and not isinstance(measure, str):
        raise SpecError(
            "cannot take measure=", element="patience", site=user_site(), expected="a name", got=short_repr(measure)
        )
    return Patience(
        whole("patience", "evaluations", evaluations, 1),
        between("patience", "least", least, 0),
        flag("patience", "largest", largest),
        measure,
    )
