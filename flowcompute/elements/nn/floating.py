"""The dtypes in which functions of several operations are computed: once in, once out."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.alignment import common_dtype
from flowcompute.elements.compute import Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.elementwise_functions import resolve_dtypes
from flowcompute.elements.math import Axis, normalise_axes
from flowcompute.elements.op import Kind, Op, by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32

_FLOATS = by_ufunc(np.exp)


def as_floats(name: str, *operands: Operand) -> tuple[list[Any], np.dtype]:
    """Return operands in the dtype in which a function computes, and the dtype of its result.

    The result is what the operands promote to. An integer first becomes the float in which NumPy takes its `exp` (int8
    and bool: float16, int16: float32, wider ones: float64). Half formats are computed in float32 and rounded once, at
    the end.

    Raises:
        SpecError: if an operand is no array, or they have no common dtype.
    """
    elements = [as_element(operand, name) for operand in operands]
    like_exp = Op(name, 1, Kind.ELEMENTWISE, np.exp, _FLOATS)
    floats = [cast(element, resolve_dtypes(like_exp, [element.dtype])[-1]) for element in elements]
    result = common_dtype(name, floats)
    inner = FLOAT32 if result in (FLOAT16, BFLOAT16) else result
    return [cast(element, inner) for element in elements], result


def checked_axes(name: str, x: Element, axis: Axis) -> tuple[int, ...]:
    """Return axes, the stream being 0, none of them empty.

    Raises:
        SpecError: for an axis out of range, named twice, or without numbers.
    """
    axes = normalise_axes(name, x, axis)
    for one in axes:
        if x.shape[one] == 0:
            raise SpecError(
                "cannot reduce an empty axis",
                element=name,
                site=user_site(),
                expected="an axis that holds numbers",
                got=f"axis {one} of {x.spec}",
            )
    return axes
