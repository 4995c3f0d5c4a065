"""The table of element-wise functions that no device rounds correctly.

`ulp` bounds follow the OpenCL 3.0 specification (section 7.4) with room for one rounding;
tests hold every device to them.
"""

from __future__ import annotations

import numpy as np

from flowcompute.elements.elementwise_functions import Function
from flowcompute.elements.op import Kind, Op, by_ufunc


def _unary(name: str, ufunc: np.ufunc, ulp: float, cost: int, doc: str) -> Function:
    text = {"float": f"{name}({{a}})"}
    return Function(Op(name, 1, Kind.ELEMENTWISE, ufunc, by_ufunc(ufunc), text=text, ulp=ulp, cost=cost, doc=doc))


exp = _unary("exp", np.exp, 4, 20, "e to the power of the number.")
exp2 = _unary("exp2", np.exp2, 4, 20, "2 to the power of the number.")
expm1 = _unary("expm1", np.expm1, 4, 30, "exp(x) - 1, accurate near 0.")
log = _unary("log", np.log, 4, 20, "The natural logarithm.")
log1p = _unary("log1p", np.log1p, 4, 30, "log(1 + x), accurate near 0.")
log2 = _unary("log2", np.log2, 4, 20, "The logarithm to base 2.")
log10 = _unary("log10", np.log10, 4, 20, "The logarithm to base 10.")
sin = _unary("sin", np.sin, 5, 30, "The sine of an angle in radians.")
cos = _unary("cos", np.cos, 5, 30, "The cosine of an angle in radians.")
tan = _unary("tan", np.tan, 6, 40, "The tangent of an angle in radians.")
asin = _unary("asin", np.arcsin, 5, 30, "The inverse sine, in radians.")
acos = _unary("acos", np.arccos, 5, 30, "The inverse cosine, in radians.")
atan = _unary("atan", np.arctan, 6, 30, "The inverse tangent, in radians.")
sinh = _unary("sinh", np.sinh, 5, 40, "The hyperbolic sine.")
cosh = _unary("cosh", np.cosh, 5, 40, "The hyperbolic cosine.")
tanh = _unary("tanh", np.tanh, 6, 40, "The hyperbolic tangent.")
asinh = _unary("asinh", np.arcsinh, 5, 40, "The inverse hyperbolic sine.")
acosh = _unary("acosh", np.arccosh, 5, 40, "The inverse hyperbolic cosine.")
atanh = _unary("atanh", np.arctanh, 6, 40, "The inverse hyperbolic tangent.")

atan2 = Function(
    Op("atan2", 2, Kind.ELEMENTWISE, np.arctan2, by_ufunc(np.arctan2), text={"float": "atan2({a}, {b})"}, ulp=7,
       cost=40, doc="The angle of the point (second, first) in radians, in [-pi, pi].")
)  # fmt: skip
hypot = Function(
    Op("hypot", 2, Kind.ELEMENTWISE, np.hypot, by_ufunc(np.hypot), text={"float": "hypot({a}, {b})"}, ulp=5, cost=20,
       commutes=True, doc="The length of the vector (first, second) without overflow.")
)  # fmt: skip
logaddexp = Function(
    Op(
        "logaddexp", 2, Kind.ELEMENTWISE, np.logaddexp, by_ufunc(np.logaddexp), text={"float": "{F}({a}, {b})"},
        helper={
            "float": """
    {T} gap = a - b;
    {T} larger = gap > ({T})(0) ? a : b;
    {T} result = larger + log1p(exp(-fabs(gap)));
    return a == b ? a + log(({T})(2)) : result;"""
        },
        ulp=8, cost=50, commutes=True, doc="log(exp(first) + exp(second)) without overflow.",
    )
)  # fmt: skip
