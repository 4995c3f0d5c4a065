"""When to stop: after so many evaluations without a better value."""

from __future__ import annotations

import math

from flowcompute.elements.arguments import flag, whole
from flowcompute.train.settings import as_call, between

State = tuple[float, int]
"""The best value so far, and evaluations since then."""


class Patience:
    """A criterion to stop by: values of evaluations have not become better for some time.

    Attributes:
        evaluations: those in a row that are waited for.
        least: how much better a value must be to count.
        largest: whether larger values are better.
    """

    __slots__ = ("evaluations", "largest", "least")

    def __init__(self, evaluations: int, least: float, largest: bool) -> None:
        self.evaluations = evaluations
        self.least = least
        self.largest = largest

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

    def __repr__(self) -> str:
        return as_call("patience", {name: getattr(self, name) for name in ("evaluations", "least", "largest")})


def patience(evaluations: int, *, least: float = 0.0, largest: bool = False) -> Patience:
    """Return a criterion that stops after so many evaluations in a row without a better value.

    Prechelt, "Early stopping - but when?" (1998), UP criterion with a best value.

    Args:
        evaluations: 1 or more.
        least: how much better than the best a value must be to count; 0 or more.
        largest: whether larger values are better, as of an accuracy; by default smaller ones are, as of a loss.

    Raises:
        SpecError: for a number out of range.
    """
    return Patience(
        whole("patience", "evaluations", evaluations, 1),
        between("patience", "least", least, 0),
        flag("patience", "largest", largest),
    )
