"""Readers of arguments. Whatever a user gives, the answer is a plain value or a SpecError that names the argument."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import wraps
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from flowcompute.elements.op import MOST
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import parse_dtype

MOST_VALUES = 1 << 16
"""Values that one argument may list. What lists more, or never ends, is refused before memory fills."""


F = TypeVar("F", bound=Callable[..., Any])


def meant(**others: str) -> Callable[[F], F]:
    """Return a decorator that answers arguments of other libraries' names with the name that is meant.

    Args:
        others: for each such name the one that the function has.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for other, own in others.items():
                if other in kwargs:
                    raise SpecTypeError(
                        f"cannot take {other}=",
                        element=function.__name__,
                        site=user_site(),
                        expected=f"{own}=",
                        got=f"{other}={short_repr(kwargs[other])}",
                        hint=f"is {own}= meant?",
                    )
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def _refused(op: str | None, what: str, expected: str, value: object, *, typed: bool = False) -> SpecError:
    kind = SpecTypeError if typed else SpecError
    return kind(f"cannot take {what}=", element=op, site=user_site(), expected=expected, got=short_repr(value))


def is_whole(value: object) -> bool:
    """Check whether a value is a whole number: of Python, of NumPy or of what counts as one, but no bool."""
    if isinstance(value, bool | np.bool_):
        return False
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def whole(
    op: str | None, what: str, value: Any, least: int = 0, most: int = MOST - 1, expected: str | None = None
) -> int:
    """Return a whole number.

    Args:
        op: the function that takes it, for errors.
        what: the name of the argument.
        value: what was given.
        least, most: bounds, both included.
        expected: words for the range, where there are better ones.

    Raises:
        SpecTypeError: if it is no whole number; a bool is none.
        SpecError: if it is out of range.
    """
    if not (is_number := is_whole(value)) or not least <= operator.index(value) <= most:
        bounds = f"a whole number from {least} to {most}" if most < MOST - 1 else f"{least} or more"
        words = expected or (bounds if least > -MOST else "a whole number")
        raise _refused(op, what, words, value, typed=not is_number)
    return operator.index(value)


def several(op: str | None, what: str, values: Any, expected: str, most: int = MOST_VALUES) -> list[Any]:
    """Return the values that an argument lists, at most `most` of them.

    Raises:
        SpecTypeError: if it lists none: text, a mapping and an element do not count as lists.
        SpecError: if there are more.
    """
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable) or hasattr(values, "spec"):
        raise _refused(op, what, expected, values, typed=True)
    try:
        listed = [] if is_longer(values, most) else list(islice(values, most + 1))
    except TypeError:  # an array without axes
        raise _refused(op, what, expected, values, typed=True) from None
    if len(listed) > most or is_longer(values, most):
        raise _refused(op, what, f"{expected}, at most {most} in number", values)
    return listed


def is_longer(values: object, most: int) -> bool:
    """Check whether a value says that it holds more than `most` things; one without a length does not say."""
    try:
        return isinstance(values, Sized) and len(values) > most
    except OverflowError:
        return True
    except TypeError:  # an array without axes
        return False


def array_of(
    op: str | None, what: str, value: Any, expected: str, dtype: np.dtype | None = None, most: int = 1 << 24
) -> np.ndarray:
    """Return what NumPy makes of a value, which is no array of objects unless it is one.

    Raises:
        SpecTypeError: if NumPy makes nothing of it.
        SpecError: if it lists more than `most` things, or needs more memory than there is.
    """
    if not isinstance(value, np.ndarray) and is_longer(value, most):
        raise _refused(op, what, expected, value)
    try:
        return np.asarray(value, dtype)
    except (MemoryError, OverflowError):
        raise _refused(op, what, expected, value) from None
    except (TypeError, ValueError):
        raise _refused(op, what, expected, value, typed=True) from None


def wholes(
    op: str | None, what: str, values: Any, least: int = -MOST, most: int = MOST - 1, expected: str | None = None
) -> list[int]:
    """Return the whole numbers that an argument lists, or the only one that it is.

    Raises:
        SpecTypeError, SpecError: as `whole`, and for more than 64 of them.
    """
    words = expected or "integers"
    few = type(values) is tuple and len(values) <= 2 * 64
    listed = values if few else [values] if is_whole(values) else several(op, what, values, words, 2 * 64)
    if not all(map(is_whole, listed)):
        raise _refused(op, what, words, values, typed=True)
    numbers = [operator.index(one) for one in listed]
    if not all(least <= number <= most for number in numbers):
        raise _refused(op, what, words, values)
    return numbers


def real(op: str | None, what: str, value: Any, expected: str = "a number") -> float:
    """Return a number as a float, infinities and NaN among them.

    Raises:
        SpecTypeError: if it is no number; text and a bool are none.
        SpecError: if no float holds it.
    """
    if isinstance(value, str | bytes | bool | np.bool_) or hasattr(value, "spec"):
        raise _refused(op, what, expected, value, typed=True)
    try:
        return float(value)
    except OverflowError:
        raise _refused(op, what, expected, value) from None
    except (TypeError, ValueError):
        raise _refused(op, what, expected, value, typed=True) from None


def flag(op: str | None, what: str, value: Any) -> bool:
    """Return True or False; 1 and 0 count as these.

    Raises:
        SpecTypeError: for anything else.
    """
    if isinstance(value, bool | np.bool_ | int | np.integer) and value in (0, 1):
        return bool(value)
    raise _refused(op, what, "True or False", value, typed=True)


def one_of(op: str | None, what: str, value: Any, words: Sequence[str]) -> Any:
    """Return one of these words.

    Raises:
        SpecError: for anything else.
    """
    if isinstance(value, str) and value in words:
        return value
    *others, last = map(repr, words)
    raise _refused(op, what, f"{', '.join(others)} or {last}" if others else last, value)


def dtype_of(op: str | None, dtype: npt.DTypeLike) -> np.dtype:
    """Return a supported dtype, in native byte order.

    Raises:
        SpecTypeError: if it is none.
    """
    try:
        return parse_dtype(dtype)
    except TypeError as error:
        raise SpecTypeError(str(error), element=op, site=user_site()) from error
