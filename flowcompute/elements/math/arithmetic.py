"""The table of element-wise arithmetic: one record an operation.

OpenCL texts work on vectors and on scalars alike. Integers are computed unsigned, where
overflow wraps as in NumPy (signed overflow is undefined in C).
"""

from __future__ import annotations

import numpy as np

from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, as_operation
from flowcompute.elements.elementwise_functions import Function, elementwise, is_weak, rebuild_elementwise
from flowcompute.elements.op import Kind, Op, by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import BFLOAT16, FLOAT16, parse_dtype


def _wrapping(symbol: str) -> dict[str, str]:
    return {
        "float": f"({{a}} {symbol} {{b}})",
        "int": f"as_{{T}}(({{U}})(as_{{U}}({{a}}) {symbol} as_{{U}}({{b}})))",
        "uint": f"({{T}})({{a}} {symbol} {{b}})",
    }


def _rounding(name: str) -> dict[str, str]:
    return {"float": f"{name}({{a}})", "int": "{a}", "uint": "{a}", "bool": "{a}"}


def _integers(ufunc: np.ufunc) -> object:
    """Return the dtype rule of a function of integers."""

    def rule(*operands: object) -> tuple[np.dtype, ...]:
        dtypes = by_ufunc(ufunc)(*operands)
        if dtypes[0].kind not in "iu":
            raise TypeError("of floats it is fc.trunc(x1 / x2)")
        return dtypes

    return rule


def _trunc_divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Divide integers towards zero, as C does."""
    with np.errstate(all="ignore"):
        quotient = np.floor_divide(a, b)
        # The floor lies one below where signs differ and something remains.
        below = (quotient < 0) & (np.fmod(a, b) != 0)
    if quotient.dtype.kind not in "iu":
        raise TypeError("of floats it is fc.trunc(x1 / x2)")
    return np.asarray(quotient + below.astype(quotient.dtype))


def _whole_half(ufunc: np.ufunc) -> object:
    """Return the dtype rule of a function whose meaning hangs on the storage format: not for half formats."""

    def rule(*operands: object) -> tuple[np.dtype, ...]:
        dtypes = by_ufunc(ufunc)(*operands)
        if dtypes[0] in (FLOAT16, BFLOAT16):
            raise TypeError("half formats are computed in float32: cast to float32 first")
        return dtypes

    return rule


add = Function(
    Op("add", 2, Kind.ELEMENTWISE, np.add, by_ufunc(np.add), text=_wrapping("+") | {"bool": "({a} | {b})"},
       commutes=True, doc="Sum of two numbers.")
)  # fmt: skip
subtract = Function(
    Op("subtract", 2, Kind.ELEMENTWISE, np.subtract, by_ufunc(np.subtract), text=_wrapping("-"),
       doc="Difference of two numbers.")
)  # fmt: skip
multiply = Function(
    Op("multiply", 2, Kind.ELEMENTWISE, np.multiply, by_ufunc(np.multiply),
       text=_wrapping("*") | {"bool": "({a} & {b})"}, commutes=True, doc="Product of two numbers.")
)  # fmt: skip
divide = Function(
    Op("divide", 2, Kind.ELEMENTWISE, np.divide, by_ufunc(np.divide), text={"float": "({a} / {b})"}, cost=8,
       doc="Quotient of two numbers; of integers in float64.")
)  # fmt: skip

floor_divide = Function(
    Op(
        "floor_divide", 2, Kind.ELEMENTWISE, np.floor_divide, by_ufunc(np.floor_divide),
        text={"any": "{F}({a}, {b})"},
        helper={
            # CPython's float_divmod, as NumPy's npy_divmod: the quotient that belongs to the Python remainder.
            "float": """
    {T} mod = fmod(a, b);
    {T} quotient = (a - mod) / b;
    quotient = (mod != ({T})(0)) & ((b < ({T})(0)) != (mod < ({T})(0))) ? quotient - ({T})(1) : quotient;
    {T} whole = floor(quotient);
    whole = quotient - whole > ({T})(0.5f) ? whole + ({T})(1) : whole;
    whole = quotient == ({T})(0) ? copysign(({T})(0), a / b) : whole;
    return b == ({T})(0) ? a / b : whole;""",
            "int": """
    {T} safe = (b == ({T})(0)) | (b == ({T})(-1)) ? ({T})(1) : b;
    {T} quotient = a / safe;
    {T} rest = a - quotient * safe;
    quotient = (rest != ({T})(0)) & ((rest ^ safe) < ({T})(0)) ? quotient - ({T})(1) : quotient;
    quotient = b == ({T})(-1) ? as_{T}(({U})(({U})(0) - as_{U}(a))) : quotient;
    return b == ({T})(0) ? ({T})(0) : quotient;""",
            "uint": """
    {T} quotient = a / (b == ({T})(0) ? ({T})(1) : b);
    return b == ({T})(0) ? ({T})(0) : quotient;""",
        },
        cost=20, doc="Quotient rounded towards minus infinity; an integer divided by 0 gives 0.",
    )
)  # fmt: skip
remainder = Function(
    Op(
        "remainder", 2, Kind.ELEMENTWISE, np.remainder, by_ufunc(np.remainder), text={"any": "{F}({a}, {b})"},
        helper={
            "float": """
    {T} mod = fmod(a, b);
    mod = (mod != ({T})(0)) & ((b < ({T})(0)) != (mod < ({T})(0))) ? mod + b : mod;
    return mod == ({T})(0) ? copysign(({T})(0), b) : mod;""",
            "int": """
    {T} safe = (b == ({T})(0)) | (b == ({T})(-1)) ? ({T})(1) : b;
    {T} rest = a - (a / safe) * safe;
    rest = (rest != ({T})(0)) & ((rest ^ safe) < ({T})(0)) ? rest + safe : rest;
    return (b == ({T})(0)) | (b == ({T})(-1)) ? ({T})(0) : rest;""",
            "uint": """
    {T} rest = a % (b == ({T})(0) ? ({T})(1) : b);
    return b == ({T})(0) ? ({T})(0) : rest;""",
        },
        cost=20, doc="Remainder with the sign of the divisor; an integer modulo 0 gives 0.",
    )
)  # fmt: skip
trunc_divide = Function(
    Op(
        "trunc_divide", 2, Kind.ELEMENTWISE, _trunc_divided, _integers(np.floor_divide),  # type: ignore[arg-type]
        text={"any": "{F}({a}, {b})"},
        helper={
            "int": """
    {T} safe = (b == ({T})(0)) | (b == ({T})(-1)) ? ({T})(1) : b;
    {T} quotient = b == ({T})(-1) ? as_{T}(({U})(({U})(0) - as_{U}(a))) : a / safe;
    return b == ({T})(0) ? ({T})(0) : quotient;""",
            "uint": """
    {T} quotient = a / (b == ({T})(0) ? ({T})(1) : b);
    return b == ({T})(0) ? ({T})(0) : quotient;""",
        },
        cost=20, doc="Quotient of integers rounded towards zero, as C divides; divided by 0 it is 0.",
    )
)  # fmt: skip
fmod = Function(
    Op(
        "fmod", 2, Kind.ELEMENTWISE, np.fmod, by_ufunc(np.fmod),
        text={"float": "fmod({a}, {b})", "any": "{F}({a}, {b})"},
        helper={
            "int": """
    {T} safe = (b == ({T})(0)) | (b == ({T})(-1)) ? ({T})(1) : b;
    return (b == ({T})(0)) | (b == ({T})(-1)) ? ({T})(0) : a - (a / safe) * safe;""",
            "uint": """
    {T} rest = a % (b == ({T})(0) ? ({T})(1) : b);
    return b == ({T})(0) ? ({T})(0) : rest;""",
        },
        cost=20, doc="Remainder with the sign of the dividend, as C's; an integer modulo 0 gives 0.",
    )
)  # fmt: skip

_INTEGER_POWER = """
    {U} base = as_{U}(a);
    {U} rest = as_{U}(b);
    {U} result = ({U})(1);
    for (int bit = 0; bit < {W}; bit++) {{
        result = (rest & ({U})(1)) != ({U})(0) ? ({U})(result * base) : result;
        base = ({U})(base * base);
        rest = ({U})(rest >> ({U})(1));
    }}
"""
POW = Op(
    "pow", 2, Kind.ELEMENTWISE, np.power, by_ufunc(np.power),
    text={"float": "pow({a}, {b})", "any": "{F}({a}, {b})"},
    helper={
        "int": _INTEGER_POWER + """
    {T} sign = (b & ({T})(1)) != ({T})(0) ? ({T})(-1) : ({T})(1);
    {T} inverse = a == ({T})(1) ? ({T})(1) : (a == ({T})(-1) ? sign : ({T})(0));
    return b < ({T})(0) ? inverse : as_{T}(result);""",
        "uint": _INTEGER_POWER + """
    return result;""",
    },
    ulp=16, cost=40, doc="First number to the power of the second; integers to negative powers truncate to 0.",
    rebuild=rebuild_elementwise,
)  # fmt: skip

negative = Function(
    Op(
        "negative", 1, Kind.ELEMENTWISE, np.negative, by_ufunc(np.negative),
        text={"float": "(-{a})", "int": "as_{T}(({U})(({U})(0) - as_{U}({a})))", "uint": "({T})(({T})(0) - {a})"},
        doc="The number with its sign changed.",
    )
)  # fmt: skip
positive = Function(
    Op("positive", 1, Kind.ELEMENTWISE, np.positive, by_ufunc(np.positive), text={"any": "{a}"}, arithmetic=False,
       doc="The number itself.")
)  # fmt: skip
abs = Function(
    Op("abs", 1, Kind.ELEMENTWISE, np.abs, by_ufunc(np.absolute),
       text={"float": "fabs({a})",
             "int": "({a} < ({T})(0) ? as_{T}(({U})(({U})(0) - as_{U}({a}))) : {a})",
             "uint": "{a}", "bool": "{a}"}, doc="The absolute value.")
)  # fmt: skip
sign = Function(
    Op(
        "sign", 1, Kind.ELEMENTWISE, np.sign, by_ufunc(np.sign),
        text={
            "uint": "({a} > ({T})(0) ? ({T})(1) : ({T})(0))",
            "any": "({a} > ({T})(0) ? ({T})(1) : ({a} < ({T})(0) ? ({T})(-1) : ({a} == ({T})(0) ? ({T})(0) : {a})))",
        },
        doc="-1, 0 or 1; NaN for NaN.",
    )
)  # fmt: skip
square = Function(
    Op("square", 1, Kind.ELEMENTWISE, np.square, by_ufunc(np.square),
       text={"float": "({a} * {a})", "int": "as_{T}(({U})(as_{U}({a}) * as_{U}({a})))", "uint": "({T})({a} * {a})",
             "bool": "{a}"}, doc="The number times itself.")
)  # fmt: skip
reciprocal = Function(
    Op(
        "reciprocal", 1, Kind.ELEMENTWISE, np.reciprocal, by_ufunc(np.reciprocal),
        text={
            "float": "(({T})(1) / {a})",
            "int": "({a} == ({T})(1) ? ({T})(1) : ({a} == ({T})(-1) ? ({T})(-1) : ({T})(0)))",
            "uint": "({a} == ({T})(1) ? ({T})(1) : ({T})(0))",
            "bool": "{a}",
        },
        cost=8, doc="One divided by the number; of integers truncated, of 0 zero.",
    )
)  # fmt: skip
sqrt = Function(
    Op("sqrt", 1, Kind.ELEMENTWISE, np.sqrt, by_ufunc(np.sqrt), text={"float": "sqrt({a})"}, cost=10,
       doc="The square root; NaN below 0.")
)  # fmt: skip

# Where both are zero the signs decide: maximum(+0, -0) is +0 and minimum is -0 in either order.
maximum = Function(
    Op(
        "maximum", 2, Kind.ELEMENTWISE, np.maximum, by_ufunc(np.maximum),
        text={
            "float": "({a} == {b} ? as_{T}(as_{I}({a}) & as_{I}({b})) : (({a} > {b}) | ({a} != {a}) ? {a} : {b}))",
            "any": "({a} > {b} ? {a} : {b})", "bool": "({a} | {b})",
        },
        cost=2, commutes=True, doc="The larger number; NaN if either is NaN.",
    )
)  # fmt: skip
minimum = Function(
    Op(
        "minimum", 2, Kind.ELEMENTWISE, np.minimum, by_ufunc(np.minimum),
        text={
            "float": "({a} == {b} ? as_{T}(as_{I}({a}) | as_{I}({b})) : (({a} < {b}) | ({a} != {a}) ? {a} : {b}))",
            "any": "({a} < {b} ? {a} : {b})", "bool": "({a} & {b})",
        },
        cost=2, commutes=True, doc="The smaller number; NaN if either is NaN.",
    )
)  # fmt: skip

floor = Function(
    Op("floor", 1, Kind.ELEMENTWISE, np.floor, by_ufunc(np.floor), text=_rounding("floor"),
       doc="The largest integer not above the number.")
)  # fmt: skip
ceil = Function(
    Op("ceil", 1, Kind.ELEMENTWISE, np.ceil, by_ufunc(np.ceil), text=_rounding("ceil"),
       doc="The smallest integer not below the number.")
)  # fmt: skip
trunc = Function(
    Op("trunc", 1, Kind.ELEMENTWISE, np.trunc, by_ufunc(np.trunc), text=_rounding("trunc"),
       doc="The integer towards zero.")
)  # fmt: skip
copysign = Function(
    Op("copysign", 2, Kind.ELEMENTWISE, np.copysign, by_ufunc(np.copysign), text={"float": "copysign({a}, {b})"},
       arithmetic=False, reads_sign=True, doc="The first number with the sign of the second.")
)  # fmt: skip
nextafter = Function(
    Op("nextafter", 2, Kind.ELEMENTWISE, np.nextafter, _whole_half(np.nextafter),  # type: ignore[arg-type]
       text={"float": "nextafter({a}, {b})"}, cost=10,
       doc="The next representable number from the first towards the second.")
)  # fmt: skip


@public
def pow(x1: Operand, x2: Operand) -> Compute:
    """Raise the first number to the power of the second, element-wise; `x ** 2` is `fc.square(x)`, exactly.

    Args:
        x1: the bases.
        x2: the powers; both promote as NumPy's.

    Raises:
        SpecError: for an integer to a negative constant power, which NumPy refuses too.
    """
    if is_weak(x2) and not isinstance(x2, bool):
        base = as_element(x1, "pow")
        if x2 == 2 and base.dtype.kind != "b" and (isinstance(x2, int) or base.dtype.kind not in "iu"):
            return square(base)
        if isinstance(x2, int) and x2 < 0 and base.dtype.kind in "iu":
            raise SpecError(
                "cannot raise an integer to a negative power",
                element="pow",
                site=user_site(),
                expected="a power from 0 on, or a float base",
                got=short_repr(x2),
                hint="cast the base to a float dtype",
            )
    return elementwise(POW, x1, x2)


@public
def clip(x: Operand, min: Operand | None = None, max: Operand | None = None) -> Compute:
    """Limit `x` to [min, max], element-wise; NaN stays NaN, and max wins where min > max.

    The result has the dtype that `x` and the limits promote to.

    Args:
        x: any element.
        min, max: limits, which broadcast with `x`; None for no limit. A Python integer below all numbers of the dtype
            is no lower limit, and one above all is no upper one.

    Raises:
        SpecError: if shapes do not broadcast, or dtypes do not promote.
    """
    result = as_element(x, "clip")
    bounds = np.iinfo(result.dtype) if result.dtype.kind in "iu" else None
    if min is not None and not (bounds and type(min) is int and min < bounds.min):
        result = maximum(result, min)
    if max is not None and not (bounds and type(max) is int and max > bounds.max):
        result = minimum(result, max)
    return result if isinstance(result, Compute) else as_operation(result, result.dtype)


@public
def astype(x: Operand, dtype: object) -> Compute:
    """Cast `x` to `dtype`. Floats to integers saturate and NaN gives 0, on every backend.

    Args:
        x: any element.
        dtype: the dtype of the result.

    Raises:
        SpecError: if the dtype is not supported.
    """
    from_element = as_element(x, "astype")
    try:
        wanted = parse_dtype(dtype)  # type: ignore[arg-type]
    except TypeError as error:
        raise SpecError(str(error), element="astype", site=user_site()) from error
    return as_operation(from_element, wanted)
