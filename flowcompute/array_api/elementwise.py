"""Element-wise functions of the standard: each is the function of the same name on elements."""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.array_api.array import LazyArray, binary, element_of, operands_of, unary
from flowcompute.array_api.promotion import Scalar
from flowcompute.elements import FUNCTIONS, creation

Unary = Callable[[LazyArray], LazyArray]
Binary = Callable[[LazyArray | Scalar, LazyArray | Scalar], LazyArray]


def _named(name: str, function: Callable[..., LazyArray], details: str) -> None:
    function.__name__ = function.__qualname__ = name
    said = (FUNCTIONS[name].__doc__ or "").split(" Element-wise; ")[0].split("\n")[0]
    function.__doc__ = f"{said} Element-wise{details}."


def _unary(name: str) -> Unary:
    def function(x: LazyArray, /) -> LazyArray:
        return unary(name, x)

    _named(name, function, "")
    return function


def _binary(name: str) -> Binary:
    def function(x1: LazyArray | Scalar, x2: LazyArray | Scalar, /) -> LazyArray:
        return binary(name, x1, x2)

    _named(name, function, "; one of both may be a Python number. Raises SpecTypeError where kinds of dtypes are mixed")
    return function


abs = _unary("abs")
acos = _unary("acos")
acosh = _unary("acosh")
add = _binary("add")
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atan2 = _binary("atan2")
atanh = _unary("atanh")
bitwise_and = _binary("bitwise_and")
bitwise_invert = _unary("bitwise_invert")
bitwise_left_shift = _binary("bitwise_left_shift")
bitwise_or = _binary("bitwise_or")
bitwise_right_shift = _binary("bitwise_right_shift")
bitwise_xor = _binary("bitwise_xor")
ceil = _unary("ceil")
copysign = _binary("copysign")
cos = _unary("cos")
cosh = _unary("cosh")
divide = _binary("divide")
equal = _binary("equal")
exp = _unary("exp")
expm1 = _unary("expm1")
floor = _unary("floor")
floor_divide = _binary("floor_divide")
greater = _binary("greater")
greater_equal = _binary("greater_equal")
hypot = _binary("hypot")
isfinite = _unary("isfinite")
isinf = _unary("isinf")
isnan = _unary("isnan")
less = _binary("less")
less_equal = _binary("less_equal")
log = _unary("log")
log1p = _unary("log1p")
log2 = _unary("log2")
log10 = _unary("log10")
logaddexp = _binary("logaddexp")
logical_and = _binary("logical_and")
logical_not = _unary("logical_not")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
maximum = _binary("maximum")
minimum = _binary("minimum")
multiply = _binary("multiply")
negative = _unary("negative")
nextafter = _binary("nextafter")
not_equal = _binary("not_equal")
positive = _unary("positive")
pow = _binary("pow")
reciprocal = _unary("reciprocal")
remainder = _binary("remainder")
round = _unary("round")
sign = _unary("sign")
signbit = _unary("signbit")
sin = _unary("sin")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
square = _unary("square")
subtract = _binary("subtract")
tan = _unary("tan")
tanh = _unary("tanh")
trunc = _unary("trunc")


def conj(x: LazyArray, /) -> LazyArray:
    """Return `x`, whose numbers are real; see `fc.conj`."""
    return LazyArray(creation.conj(element_of("conj", x)))


def imag(x: LazyArray, /) -> LazyArray:
    """Return zeros: the imaginary part of real numbers; see `fc.imag`."""
    return LazyArray(creation.imag(element_of("imag", x)))


def real(x: LazyArray, /) -> LazyArray:
    """Return `x`, whose numbers are real; see `fc.real`."""
    return LazyArray(creation.real(element_of("real", x)))


def clip(x: LazyArray, /, min: LazyArray | float | None = None, max: LazyArray | float | None = None) -> LazyArray:
    """Limit `x` to [min, max]; NaN in any of them gives NaN.

    Args:
        x: an array.
        min, max: arrays of the dtype of `x`, or Python numbers; None for no limit.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    limits = [None if limit is None else operands_of("clip", x, limit)[1] for limit in (min, max)]
    return LazyArray(FUNCTIONS["clip"](element_of("clip", x), *limits))
