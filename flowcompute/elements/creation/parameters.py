"""Values that composing tells apart and running does not: parameters, and ends of gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element
from flowcompute.elements.op import PARAMETER, RECOMPUTE, STOP_GRADIENT, Kind
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import is_float


class Trainable(Compute):
    """A resident value that is itself and no other. Training begins with it, and does not change it."""

    @property
    def value(self) -> np.ndarray:
        """The array that it was made of, read-only."""
        held = self.inputs[0]
        assert isinstance(held, Constant)
        return held.value


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
    return Trainable(PARAMETER, (held,), held.spec)


@public
def stop_gradient(x: Operand) -> Any:
    """Return the value as it is; for `fc.grad` it is a constant.

    Args:
        x: any element.
    """
    element = as_element(x, "stop_gradient")
    return Compute(STOP_GRADIENT, (element,), element.spec)


RECOMPUTED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT, Kind.VIEW)
"""Kinds of operations that are computed again: maps of records, which remember nothing of others."""


@public
def recompute(x: Operand) -> Any:
    """Return the value as it is; `fc.grad` computes again what it is made of, which need not be stored until then.

    What is marked is kept, and so are sources and whatever is no map of records: folds, scans, windows, selections and
    functions of Python. All maps between them and the mark are computed a second time where the gradient needs them.
    Marks one behind the other, such as one for each layer, keep a value for each layer alone. No bit changes; random
    numbers of `fc.nn.dropout` are the same ones.

    Args:
        x: a stream that is computed of others.

    Raises:
        SpecError: if there is nothing to compute again: `x` is resident, a source, or made by an operation that is no
            map of records.
    """
    element = as_element(x, "recompute")
    if not is_recomputed(element):
        raise SpecError(
            "cannot compute this again",
            element=element.name or element.base_name,
            site=user_site(),
            expected="a stream that element-wise operations, products, views or reductions of items give",
            got=str(element.spec),
            hint="mark what is computed of it",
        )
    return Compute(RECOMPUTE, (element,), element.spec)


def is_recomputed(element: Any) -> bool:
    """Check whether an element is computed again where a gradient asks for it."""
    if not isinstance(element, Compute) or not element.spec.is_stream or element.op is RECOMPUTE:
        return False
    return element.op.kind in RECOMPUTED
