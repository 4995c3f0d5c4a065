"""The usual statistics of a table's columns, in one reading."""

from __future__ import annotations

from typing import Any, Unpack

from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element
from flowcompute.elements.element import Element
from flowcompute.elements.math import equal, max, mean, min, std
from flowcompute.elements.site import user_site
from flowcompute.elements.streams.quantiles import quantile
from flowcompute.elements.streams.statistics import count_nonzero
from flowcompute.errors import SpecError
from flowcompute.strategy import StartOptions


class Description(dict[str, Any]):
    """Statistics by name, each an element: "count", "mean", "std", "min", "25%", "50%", "75%" and "max"."""

    def resolve(self, **options: Unpack[StartOptions]) -> dict[str, Any]:
        """Run once and give the values by name; options as of `fc.resolve`."""
        return dict(zip(self, Element.verbs.resolve(*self.values(), **options), strict=True))


@public
def describe(x: Operand) -> Description:
    """Describe the columns of a table, axis 0 being its records: `x.describe().resolve()` reads it once.

    Args:
        x: any element with axes; a stream `(N, *item)`.

    Returns:
        A dict of resident values of shape `item`: "count" of what is no NaN, "mean", "std", "min", "max", and the
        quartiles "25%", "50%" and "75%". "std" divides by the number of records less 1. Quartiles are those of
        `fc.quantile`, with its bound. A NaN in a column makes all but its count NaN.

    Raises:
        SpecError: if `x` has no axes, or has no records as far as is known.
    """
    element: Any = as_element(x, "describe")
    if element.ndim == 0:
        raise SpecError(
            "cannot describe a number",
            element="describe",
            site=user_site(),
            expected="a stream, or a value with axes",
            got=str(element.spec),
        )
    quartiles = quantile(element, [0.25, 0.5, 0.75], axis=0)
    return Description(
        {
            "count": count_nonzero(equal(element, element), axis=0),
            "mean": mean(element, axis=0),
            "std": std(element, axis=0, correction=1),
            "min": min(element, axis=0),
            "25%": quartiles[0],
            "50%": quartiles[1],
            "75%": quartiles[2],
            "max": max(element, axis=0),
        }
    )
