"""Gradients that users give to their functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr

Gradient = Callable[..., Any]
"""Takes the operands as elements, then the cotangent of each result; gives one cotangent for each operand."""


def checked_gradient(gradient: Any, name: str) -> Gradient:
    """Return a gradient that a user gave.

    Args:
        gradient: what was given.
        name: of the function.

    Raises:
        SpecError: if it cannot be called.
    """
    if callable(gradient):
        return gradient  # type: ignore[no-any-return]
    raise SpecError(
        "cannot take this as a gradient",
        element=name,
        site=user_site(),
        expected="a function of the operands and the cotangents of the results",
        got=short_repr(gradient),
    )
