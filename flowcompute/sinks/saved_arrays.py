"""Several values in one file, by their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flowcompute.elements import Compute, Element, as_element
from flowcompute.elements.arguments import several
from flowcompute.elements.creation import MOST_PACKED
from flowcompute.errors import SpecError
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class SavedArray:
    """An array of a file: its name, dtype and shape."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of its numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def named_values(
    given: Any, label: str, check_name: Callable[[object], None], refused: Callable[[str, str, str], SpecError]
) -> dict[str, Element]:
    """Return values by name, of a mapping or of elements that have names.

    Args:
        given: what was given to a destination.
        label: what the destination is called.
        check_name: raises SpecError for a name that the format has not.
        refused: makes an error of what is refused, what was expected, and what was given.

    Raises:
        SpecError: for none, a name that is not one, or two values of a name.
    """
    if isinstance(given, Mapping):
        names = several(label, "values", list(given), "values by name", MOST_PACKED)
        pairs = [(name, given[name]) for name in names]
    else:
        listed = several(label, "values", given, "values by name, or elements with names", MOST_PACKED)
        pairs = [(name_of(one), one) for one in listed]
    if not pairs:
        raise refused("nothing", "at least one value", "none")
    values: dict[str, Element] = {}
    for name, one in pairs:
        check_name(name)
        assert name is not None
        if name in values:
            raise refused(f"two values of the name {name!r}", "a name for each", "one for two")
        values[name] = as_element(one, label)
    return values


def name_of(element: Any) -> str | None:
    """Return the name of an element, that of a parameter included."""
    while isinstance(element, Compute) and element.name is None and element.op.transparent:
        element = element.inputs[0]
    return element.name if isinstance(element, Element) else None
