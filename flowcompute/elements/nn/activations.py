"""Activation functions, element by element."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from flowcompute.elements.arguments import one_of, real
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.math import abs, clip, exp, expm1, log1p, maximum, minimum, multiply, tanh, where
from flowcompute.elements.nn.floating import as_floats
from flowcompute.elements.op import Kind, Op, by_ufunc


def _sigmoid(x: Any) -> Any:
    one = x.dtype.type(1)
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, one) / (one + e)


sigmoid = Function(
    Op(
        "sigmoid", 1, Kind.ELEMENTWISE, _sigmoid, by_ufunc(np.exp),
        text={"float": "{F}({a})"},
        helper={
            "float": """
    {T} e = exp(-fabs(a));
    return (a < ({T})(0) ? e : ({T})(1)) / (({T})(1) + e);"""
        },
        ulp=6, cost=30, doc="The logistic function 1 / (1 + exp(-x)), without overflow.",
    )
)  # fmt: skip

_one_erf = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Any) -> Any:
    return np.asarray(_one_erf(x)).astype(x.dtype)


erf = Function(
    Op(
        "erf", 1, Kind.ELEMENTWISE, _erf, by_ufunc(np.exp), text={"float": "erf({a})"}, ulp=16, cost=40,
        doc="The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to the number.",
    )
)  # fmt: skip


@public
def relu(x: Operand) -> Compute:
    """Return max(x, 0), element-wise, in the dtype of `x`; NaN stays NaN, and -0 becomes +0."""
    return maximum(x, 0)


@public
def leaky_relu(x: Operand, slope: float = 0.01) -> Compute:
    """Return x above 0, slope * x elsewhere, element-wise; in a float dtype.

    Integers become floats as in NumPy's `exp`. Raises SpecError for what is no element and no array.
    """
    (value,), result = as_floats("leaky_relu", x)
    slope = real("leaky_relu", "slope", slope)
    return _as(where(value > 0, value, value * slope), result)


@public
def elu(x: Operand, alpha: float = 1.0) -> Compute:
    """Return x above 0, alpha * (exp(x) - 1) elsewhere, accurate near 0, element-wise; in a float dtype.

    Clevert, Unterthiner and Hochreiter, "Fast and accurate deep network learning by exponential
    linear units" (2015).

    Integers become floats as in NumPy's `exp`. Raises SpecError for what is no element and no array.
    """
    (value,), result = as_floats("elu", x)
    alpha = real("elu", "alpha", alpha)
    return _as(where(value > 0, value, expm1(minimum(value, 0)) * alpha), result)


@public
def silu(x: Operand) -> Compute:
    """Return x * sigmoid(x), also called swish, element-wise; in a float dtype. NaN at minus infinity.

    Integers become floats as in NumPy's `exp`. Raises SpecError for what is no element and no array.
    """
    (value,), result = as_floats("silu", x)
    return _as(value * sigmoid(value), result)


@public
def gelu(x: Operand, *, approximate: Literal["tanh"] | None = None) -> Compute:
    """Return x times the normal distribution's mass below x, element-wise; in a float dtype.

    Hendrycks and Gimpel, "Gaussian error linear units" (2016).

    Args:
        x: any element.
        approximate: None for x/2 * (1 + erf(x / sqrt 2)); "tanh" for
            x/2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), which is off by up to 0.0005.

    The sum cancels below 0, so that an error is small beside x, not beside the result: at
    most 2 eps |x| of the dtype. NaN at minus infinity.

    Raises:
        SpecError: for another `approximate`.
    """
    (value,), result = as_floats("gelu", x)
    if approximate is None:
        mass = erf(value * math.sqrt(0.5)) + 1.0
    else:
        one_of("gelu", "approximate", approximate, ("tanh",))
        mass = tanh((value + value * value * value * 0.044715) * math.sqrt(2 / math.pi)) + 1.0
    return _as(value * 0.5 * mass, result)


def _softplus(value: Any) -> Any:
    return maximum(value, 0) + log1p(exp(-abs(value)))


@public
def softplus(x: Operand) -> Compute:
    """Return log(1 + exp(x)) without overflow, as max(x, 0) + log(1 + exp(-|x|)), element-wise; in a float dtype.

    Integers become floats as in NumPy's `exp`. Raises SpecError for what is no element and no array.
    """
    (value,), result = as_floats("softplus", x)
    return _as(_softplus(value), result)


@public
def mish(x: Operand) -> Compute:
    """Return x * tanh(softplus(x)), element-wise; in a float dtype. NaN at minus infinity.

    Misra, "Mish: a self regularized non-monotonic activation function" (2019).

    Integers become floats as in NumPy's `exp`. Raises SpecError for what is no element and no array.
    """
    (value,), result = as_floats("mish", x)
    return _as(value * tanh(_softplus(value)), result)


@public
def hardswish(x: Operand) -> Compute:
    """Return x * clip(x + 3, 0, 6) / 6, element-wise; in a float dtype. NaN at minus infinity.

    Howard and others, "Searching for MobileNetV3" (2019).

    Integers become floats as in NumPy's `exp`. Raises SpecError for what is no element and no array.
    """
    (value,), result = as_floats("hardswish", x)
    return _as(multiply(value, clip(value + 3.0, 0, 6)) / 6.0, result)


def _as(value: Any, dtype: np.dtype) -> Compute:
    made: Any = cast(as_element(value, "astype"), dtype)
    return made  # type: ignore[no-any-return]


ACTIVATIONS = (sigmoid, erf)
"""Those that are operations of their own; the others are made of several."""
