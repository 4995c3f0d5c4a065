"""Rounding to whole numbers, and to decimals."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.arguments import whole
from flowcompute.elements.compute import Compute, Operand, as_element, as_operation, cast
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.math.arithmetic import divide, multiply
from flowcompute.elements.op import Kind, Op, by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BOOL, is_float

MOST_DECIMALS = 300
"""Powers of ten beyond it are no floats."""


class Rounding(Function):
    """The function `round`: with `decimals` by a product, a rounding and a quotient, as NumPy's."""

    def __call__(self, *operands: Operand, decimals: int = 0) -> Compute:
        """Build the Compute; `decimals` may be the second argument, too."""
        x, places = operands[:1], operands[1:] or (decimals,)
        if len(x) != 1 or len(places) != 1:
            return super().__call__(*operands)
        number = whole(self.op.name, "decimals", places[0], -MOST_DECIMALS, MOST_DECIMALS)
        made: Any = _to_decimals(as_element(x[0], self.op.name), number) if number else super().__call__(x[0])
        return made  # type: ignore[no-any-return]


def _to_decimals(x: Any, decimals: int) -> Any:
    if x.dtype == BOOL:
        raise SpecError(
            "cannot round bools to decimals",
            element="round",
            site=user_site(),
            expected="a dtype of numbers",
            got=str(x.spec),
        )
    scale = 10.0 ** abs(decimals)
    if not is_float(x.dtype):
        # Integers have no decimals; tens and hundreds are rounded as float64.
        return as_operation(x, x.dtype) if decimals > 0 else cast(multiply(round(divide(x, scale)), scale), x.dtype)
    factor = np.asarray(scale).astype(x.dtype)
    first, then = (multiply, divide) if decimals > 0 else (divide, multiply)
    return then(round(first(x, factor)), factor)


def _round_dtypes(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return (dtype, dtype) if dtype.kind in "iub" else by_ufunc(np.rint)(dtype)


round = Rounding(
    Op("round", 1, Kind.ELEMENTWISE, np.round, _round_dtypes,
       text={"float": "rint({a})", "int": "{a}", "uint": "{a}", "bool": "{a}"},
       doc="The nearest integer, halves to even; or the nearest number of so many `decimals`, as NumPy's.")
)  # fmt: skip
