"""Numbers that optimizers, schedules and criteria are set by, and how these print."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from flowcompute.elements import user_site
from flowcompute.elements.arguments import real
from flowcompute.errors import FlowError, SpecError, short_repr

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


def called(op: str, what: str, function: Callable[..., Any], *operands: Any, takes: str = "") -> Any:
    """Call a function of the user's over elements.

    Args:
        op: for errors.
        what: the argument that the function was given as, or which of several it is.
        function: is called when a training is composed, and not in its steps.
        operands: of it.
        takes: their names, for errors.

    Raises:
        SpecError: if it raises anything, with what it raised as the cause; an error of ours is passed on.
    """
    try:
        return function(*operands)
    except FlowError:
        raise
    except Exception as error:
        raise SpecError(
            f"cannot take {what}=: the function raised {type(error).__name__}",
            element=op,
            site=user_site(),
            expected=f"a function over elements{takes}, which is called once and gives elements",
            got=short_repr(error),
            hint="write it with fc's own operations, such as fc.where for if",
        ) from error
