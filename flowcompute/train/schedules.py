"""Schedules: rates of learning as functions of the number of the update.

The first update is number 1. A schedule takes that number as a resident number of a float dtype, and gives a resident
number of the same dtype. Any function that does so is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import flowcompute.elements.math as m
from flowcompute.elements import Element, as_element, cast, user_site
from flowcompute.elements.arguments import whole
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import FLOAT32, INT64
from flowcompute.train.settings import MOST_STEPS, as_call, between, called

Rate = float | Callable[[Any], Any]
"""A rate of learning: a number, or a function from the number of the update to the rate."""


class Schedule:
    """A rate that follows the number of the update; call it with that number to have the rate.

    Attributes:
        name: the function that made it.
        settings: what it was called with, by name.
    """

    name: str
    settings: Mapping[str, object]

    __slots__ = ("_rate", "name", "settings")

    def __init__(self, name: str, settings: Mapping[str, object], rate: Callable[[Element], Element]) -> None:
        self.name = name
        self.settings = dict(settings)
        self._rate = rate

    def __call__(self, step: Any) -> Any:
        """Return the rate of an update.

        Args:
            step: its number, from 1 on: a resident number of a float dtype, or a number, which counts as float32.
        """
        number = step if isinstance(step, Element) else cast(as_element(step, self.name), FLOAT32)
        return self._rate(number)

    def __repr__(self) -> str:
        return as_call(self.name, self.settings)


def cosine(rate: float, *, steps: int, warmup: int = 0, end: float = 0.0) -> Schedule:
    """Return a rate that rises in a line, then falls by half a turn of a cosine.

    Of update t up to `warmup` it is rate * t / warmup. Afterwards it is
    end + (rate - end) (1 + cos(pi p)) / 2, with p = (t - 1 - warmup) / (steps - warmup), at most 1.
    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017), without a restart.

    Args:
        rate: the highest rate, 0 or more.
        steps: updates until it is `end`.
        warmup: updates in which it rises; fewer than `steps`.
        end: the rate afterwards.

    Raises:
        SpecError: for a number out of range.
    """
    settings = _falling("cosine", rate, steps, warmup, end)

    def fall(p: Element) -> Element:
        return (1.0 + m.cos(math.pi * p)) * 0.5

    return Schedule("cosine", settings, _warmed(settings, fall))


def linear(rate: float, *, steps: int, warmup: int = 0, end: float = 0.0) -> Schedule:
    """Return a rate that rises in a line, then falls in one.

    Of update t up to `warmup` it is rate * t / warmup. Afterwards it is end + (rate - end) (1 - p), with
    p = (t - 1 - warmup) / (steps - warmup), at most 1.

    Args:
        rate: the highest rate, 0 or more.
        steps: updates until it is `end`.
        warmup: updates in which it rises; fewer than `steps`.
        end: the rate afterwards.

    Raises:
        SpecError: for a number out of range.
    """
    settings = _falling("linear", rate, steps, warmup, end)

    def fall(p: Element) -> Element:
        return 1.0 - p

    return Schedule("linear", settings, _warmed(settings, fall))


def step(rate: float, *, every: int, factor: float = 0.1) -> Schedule:
    """Return a rate that is multiplied by a factor again and again: rate * factor^floor((t - 1) / every) of update t.

    Args:
        rate: the rate of the first update, 0 or more.
        every: updates between two changes.
        factor: above 0.

    Raises:
        SpecError: for a number out of range.
    """
    settings = {
        "rate": between("step", "rate", rate, 0),
        "every": whole("step", "every", every, 1, MOST_STEPS),
        "factor": between("step", "factor", factor, 0),
    }
    if not settings["factor"]:
        raise SpecError("cannot take factor=", element="step", site=user_site(), expected="above 0", got="0")

    def at(number: Element) -> Element:
        changes = m.floor_divide(cast(number, INT64) - 1, settings["every"])
        return settings["rate"] * m.pow(settings["factor"], cast(changes, number.dtype))

    return Schedule("step", settings, at)


def rate_at(op: str, rate: Rate, number: Element) -> Any:
    """Return the rate of an update, in the dtype of its number; a plain number stays one.

    Args:
        op: the optimizer, for errors.
        rate: as `checked_rate` gave it.
        number: that of the update, a resident number of a float dtype.

    Raises:
        SpecError: if a function raises, or gives anything but a resident number.
    """
    if not callable(rate):
        return rate
    found = as_element(called(op, "rate", rate, number), op)
    if found.spec.is_stream or found.spec.shape != ():
        raise SpecError(
            "cannot take this rate", element=op, site=user_site(), expected="a resident number", got=str(found.spec)
        )
    return cast(found, number.dtype)


def checked_rate(op: str, rate: object) -> Rate:
    """Return a rate: a number of 0 or more, or a function of the number of the update.

    Raises:
        SpecError: for anything else.
    """
    if isinstance(rate, Element):
        raise SpecError(
            "cannot take rate=",
            element=op,
            site=user_site(),
            expected="a number, or a function of the number of the update",
            got=short_repr(rate),
            hint="give fc.train.cosine(...), or a function such as lambda step: 0.1 / step",
        )
    return rate if callable(rate) else between(op, "rate", rate, 0)


def _falling(op: str, rate: object, steps: object, warmup: object, end: object) -> dict[str, float]:
    most = whole(op, "steps", steps, 1, MOST_STEPS)
    return {
        "rate": between(op, "rate", rate, 0),
        "steps": most,
        "warmup": whole(op, "warmup", warmup, 0, most - 1, f"from 0 to steps - 1 = {most - 1}"),
        "end": between(op, "end", end, 0),
    }


def _warmed(settings: Mapping[str, float], fall: Callable[[Element], Element]) -> Callable[[Element], Element]:
    """Return the rate of a schedule that rises in a line, then falls from 1 to 0 as `fall` says of its progress."""
    rate, steps, warmup, end = settings["rate"], settings["steps"], settings["warmup"], settings["end"]

    def at(number: Element) -> Element:
        left = fall(m.clip((number - (1.0 + warmup)) / float(steps - warmup), 0.0, 1.0))
        falling = rate * left + end * (1.0 - left) if end else rate * left
        return m.where(number <= float(warmup), rate * (number / float(warmup)), falling) if warmup else falling

    return at
