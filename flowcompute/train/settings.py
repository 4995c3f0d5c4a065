"""Numbers that optimizers, schedules and criteria are set by, and how these print."""

from __future__ import annotations

import math
from collections.abc import Mapping

from flowcompute.elements import user_site
from flowcompute.elements.arguments import real
from flowcompute.errors import SpecError, short_repr

MOST_STEPS = 1 << 53
"""Updates that are counted; a float64 holds the number of each."""


def between(
    op: str, what: str, value: object, least: float, most: float = math.inf, *, open_at_most: bool = False
) -> float:
    """Return a finite number of a range.

    Args:
        op, what: the function and its argument, for errors.
        value: what was given.
        least, most: bounds, both included.
        open_at_most: whether the upper bound is left out.

    Raises:
        SpecTypeError: if it is no number.
        SpecError: if it is out of range, infinite or NaN.
    """
    number = real(op, what, value)
    if math.isfinite(number) and least <= number <= most and not (open_at_most and number == most):
        return number
    words = f"{least:g} or more" if most == math.inf else f"{least:g} or more, {'below' if open_at_most else 'at most'}"
    expected = words if most == math.inf else f"{words} {most:g}"
    raise SpecError(
        f"cannot take {what}=", element=op, site=user_site(), expected=f"a number, {expected}", got=short_repr(value)
    )


def as_call(name: str, settings: Mapping[str, object]) -> str:
    """Return the text of a call: "adam(rate=0.001, betas=(0.9, 0.999))"."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"
