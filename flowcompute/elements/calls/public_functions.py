"""Public functions: what they make remembers the user's call, and is copied where an equal call was made before."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from flowcompute.elements.calls.call_templates import call_key, copy_known, learn
from flowcompute.elements.element import Element
from flowcompute.elements.site import UserCall, current_call, set_current_call, user_site
from flowcompute.errors import SpecError

P = ParamSpec("P")
R = TypeVar("R")

_NAMES: set[str] = set()
"""Names of public functions, which errors of one that another calls may bear."""

_MOST_ENTRIES = 8
"""Entries of a tuple that is shown."""


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Let the elements that a public function makes remember the user's call of it.

    Of functions that call each other the outermost counts, which is the one that the user wrote. Elements of several
    primitives are thus shown as one, by its name.
    """
    name = function.__name__
    _NAMES.add(name)

    @functools.cache
    def defaults() -> dict[str, object]:
        # Most functions are not called in a process.
        return {one.name: one.default for one in inspect.signature(function).parameters.values()}

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if current_call() is not None:
            return function(*args, **kwargs)

        def given() -> tuple[tuple[str, object], ...]:
            usual = defaults()
            every = (*zip(usual, args, strict=False), *kwargs.items())
            return tuple((key, value) for key, value in every if _is_plain(value) and not _is_usual(key, value, usual))

        try:
            return cast("R", _made(name, given, function, args, kwargs))
        except SpecError as error:
            error.element = name if error.element in _NAMES else error.element
            raise

    return called


def of_operands(name: str, make: Callable[..., R], *operands: Any) -> R:
    """Make an element of operands alone, as a public function of that name; see `public`."""
    if current_call() is not None:
        return make(*operands)
    return cast("R", _made(name, _nothing, make, operands, {}))


def _nothing() -> None:
    """Return what a call of operands alone is given beside them."""


def _made(
    name: str,
    given: Callable[[], tuple[tuple[str, object], ...] | None],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Make what a user's call asks for, and mark it as what the call returned.

    Args:
        name: the function's name.
        given: returns the plain arguments that are shown.
        function, args, kwargs: the call.
    """
    operands: list[Element] = []
    key = call_key(function, args, kwargs, operands)
    if key is not None:
        made = copy_known(key, name, operands)
        if made is not None:
            return made
    call = UserCall(name, user_site(), given())
    set_current_call(call)
    try:
        if key is not None:
            learn(key, call, function, args, kwargs, operands)
        made = function(*args, **kwargs)
    finally:
        set_current_call(None)
    for one in made if isinstance(made, tuple) else made.values() if isinstance(made, dict) else (made,):
        if getattr(one, "call", None) is call:
            one.freeze_fields(is_step=False)
    return made


def _is_plain(value: object) -> bool:
    """Check whether an argument can be kept and shown: no element, no array, nothing that its user may change."""
    if isinstance(value, tuple):
        return len(value) <= _MOST_ENTRIES and all(map(_is_plain, value))
    return isinstance(value, bool | int | float | str | np.generic | np.dtype | type)


def _is_usual(name: str, value: object, usual: dict[str, object]) -> bool:
    """Check whether an argument is its default, which methods hand on with the others. An axis is always shown."""
    default = usual.get(name)
    return name != "axis" and type(value) is type(default) and bool(value == default)
