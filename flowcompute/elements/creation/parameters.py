"""Values that composing tells apart and running does not: parameters, and ends of gradients."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from flowcompute.elements.compute import Compute, Constant, Operand, as_element
from flowcompute.elements.op import PARAMETER, STOP_GRADIENT
from flowcompute.elements.site import public, user_site
from flowcompute.errors import SpecError
from flowcompute.spec import is_float


@public
def parameter(value: npt.ArrayLike, name: str | None = None, dtype: npt.DTypeLike | None = None) -> Any:
    """Return a resident value that is itself and no other: two parameters of equal numbers stay two.

    Views of it are not computed when composed, so that `fc.grad` finds it in any formula.

    Args:
        value: an array or a number, which is copied.
        name: what plans, errors and files call it.
        dtype: a float dtype; that of the value by default.

    Raises:
        SpecError: if the numbers are no floats.
    """
    held = Constant(value, dtype, name=name)
    if not is_float(held.dtype):
        raise SpecError(
            "cannot make a parameter of this",
            element="parameter" if name is None else name,
            site=user_site(),
            expected="numbers of a float dtype",
            got=str(held.spec),
            hint='give dtype="float32"',
        )
    return Compute(PARAMETER, (held,), held.spec)


@public
def stop_gradient(x: Operand) -> Any:
    """Return the value as it is; for `fc.grad` it is a constant.

    Args:
        x: any element.
    """
    element = as_element(x, "stop_gradient")
    return Compute(STOP_GRADIENT, (element,), element.spec)
