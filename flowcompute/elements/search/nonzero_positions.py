"""Positions of numbers that are not zero, as streams."""

from __future__ import annotations

import math
from typing import Any

from flowcompute.elements.axes import flatten, positions, reshape, select
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element, truth
from flowcompute.elements.element import Element
from flowcompute.elements.generated import index
from flowcompute.elements.math import floor_divide, remainder
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError


@public
def nonzero(x: Operand) -> tuple[Any, ...]:
    """Return the positions of all numbers that are not zero (NaN is not), in their order, as `numpy.nonzero`.

    How many there are is known only when it has run, so they are a selection: streams, also of a resident value.

    Args:
        x: any element with axes.

    Returns:
        For each axis a stream of int64 with the positions along it.

    Raises:
        SpecError: if `x` has no axes.
    """
    element: Any = as_element(x, "nonzero")
    if element.ndim == 0:
        raise SpecError(
            "cannot find positions in a number",
            element="nonzero",
            site=user_site(),
            expected="a value with axes",
            got=str(element.spec),
        )
    wanted = truth(element)
    chosen: Any
    if element.spec.is_stream:
        numbers = flatten(wanted)
        chosen = select(positions(numbers), numbers)
    else:
        chosen = Element.apply("index", index(math.prod(element.spec.shape)), reshape(wanted, (-1,)))
    made = []
    for axis in range(element.ndim):
        inner = math.prod(element.shape[axis + 1 :])
        place: Any = chosen if inner <= 1 else floor_divide(chosen, inner)
        made.append(place if axis == 0 else remainder(place, max(1, element.shape[axis])))
    return tuple(made)
