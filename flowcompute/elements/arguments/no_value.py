"""Refusals of questions that Python asks of a value: an element has none yet, and nothing runs by accident."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.site import user_site
from flowcompute.errors import SpecTypeError


class NoValue:
    """Refuses each conversion that would need the value."""

    name: str | None

    @property
    def base_name(self) -> str:
        """The name in errors of an element without one."""
        raise NotImplementedError

    def refuse(self, what: str, instead: str = "") -> SpecTypeError:
        """Return the error that says that the value has not been computed, and what may be meant instead."""
        return SpecTypeError(
            f"cannot tell the {what} of a lazy value",
            element=self.name or self.base_name,
            site=user_site(),
            hint=f"{instead}call .resolve() to compute its value first",
        )

    def __bool__(self) -> bool:
        raise self.refuse("truth value", "use & for and, | for or, ~ for not, fc.where for if; or ")

    def __int__(self) -> int:
        raise self.refuse("integer value")

    def __float__(self) -> float:
        raise self.refuse("float value")

    def __complex__(self) -> complex:
        raise self.refuse("complex value")

    def __index__(self) -> int:
        raise self.refuse("integer value")

    def __iter__(self) -> Any:
        raise self.refuse("items", "x >> fc.callback(function) is given batch after batch; or ")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise SpecTypeError(
            "cannot put numbers into a lazy value: elements never change",
            element=self.name or self.base_name,
            site=user_site(),
            hint="x = fc.where(mask, value, x) makes another one",
        )

    def __contains__(self, item: object) -> bool:
        raise self.refuse("items")

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise self.refuse("numbers")
