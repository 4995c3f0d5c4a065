"""The table of comparisons, tests, logic and bits.

In a kernel a bool is a mask: -1 or 0 in each lane of a vector, 1 or 0 in a scalar.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import ml_dtypes
import numpy as np

from flowcompute.elements.alignment import broadcast
from flowcompute.elements.arguments import real
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, cast, truth
from flowcompute.elements.element import Element
from flowcompute.elements.elementwise_functions import Function, elementwise, is_weak
from flowcompute.elements.op import KeptOp, Kind, Op, by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import BOOL, INT64, UINT64, Spec, is_float


class ComparisonFunction(Function):
    """A comparison; integers compare by value whatever their dtypes, as in NumPy 2."""

    def __call__(self, *operands: Operand) -> Compute:
        """Build the Compute."""
        if len(operands) == 2:
            comparable = (_comparable(self.op, *pair) for pair in (operands, operands[::-1]))
            left, right = (one if is_weak(one) else as_element(one, self.op.name) for one in comparable)
            if isinstance(left, Element) and isinstance(right, Element) and _mixed(left, right):
                return self._mixed_signs(left, right)
            return super().__call__(left, right)
        return super().__call__(*operands)

    def _mixed_signs(self, left: Element, right: Element) -> Compute:
        """Compare signed numbers with uint64 exactly: a negative number is below every unsigned one."""
        signed_first = left.dtype != UINT64
        signed = left if signed_first else right
        as_unsigned = cast(signed, UINT64)
        within = elementwise(self.op, as_unsigned if signed_first else left, right if signed_first else as_unsigned)
        below_all = {"less": signed_first, "less_equal": signed_first, "greater": not signed_first}
        below_all |= {"greater_equal": not signed_first, "equal": False, "not_equal": True}
        return where(elementwise(LESS, signed, 0), below_all[self.op.name], within)


def _mixed(left: Element, right: Element) -> bool:
    """Check whether one is uint64 and the other signed, which no integer dtype holds both."""
    return {left.dtype == UINT64, right.dtype == UINT64} == {True, False} and "i" in (left.dtype.kind, right.dtype.kind)


def _comparable(op: Op, operand: Any, other: Any) -> Any:
    """Return `operand`, or a strong 64-bit constant where a Python integer does not fit its partner's dtype."""
    if not (is_weak(operand) and isinstance(operand, int) and not isinstance(operand, bool)) or is_weak(other):
        return operand
    dtype = as_element(other, op.name).dtype
    if dtype.kind not in "iu" or _holds(dtype, operand):
        return operand
    for wide in (INT64, UINT64):
        if _holds(wide, operand):
            return Constant(np.asarray(operand, wide))
    raise SpecError(
        "cannot hold a Python integer in 64 bits",
        element=op.name,
        site=user_site(),
        expected="an integer of 64 bits",
        got=short_repr(operand),
    )


def _holds(dtype: np.dtype, number: int) -> bool:
    """Check whether a dtype of integers holds a number."""
    least, most = _bounds(dtype)
    return least <= number <= most


@functools.lru_cache(16)
def _bounds(dtype: np.dtype) -> tuple[int, int]:
    bounds = np.iinfo(dtype)
    return int(bounds.min), int(bounds.max)


def _comparison(name: str, ufunc: np.ufunc, symbol: str, of_bools: str, doc: str) -> ComparisonFunction:
    text = {"any": f"({{a}} {symbol} {{b}})", "bool": of_bools}
    return ComparisonFunction(
        Op(name, 2, Kind.ELEMENTWISE, ufunc, by_ufunc(ufunc), text=text, arithmetic=False, doc=doc,
           commutes=name in ("equal", "not_equal"))
    )  # fmt: skip


equal = _comparison("equal", np.equal, "==", "(!({a} ^ {b}))", "Whether both numbers are equal.")
not_equal = _comparison("not_equal", np.not_equal, "!=", "({a} ^ {b})", "Whether the numbers differ.")
less = _comparison("less", np.less, "<", "((!{a}) & {b})", "Whether the first number is smaller.")
less_equal = _comparison("less_equal", np.less_equal, "<=", "((!{a}) | {b})", "Whether the first number is not larger.")
greater = _comparison("greater", np.greater, ">", "({a} & (!{b}))", "Whether the first number is larger.")
greater_equal = _comparison(
    "greater_equal", np.greater_equal, ">=", "({a} | (!{b}))", "Whether the first is not smaller."
)
LESS = less.op


def _test(name: str, ufunc: np.ufunc, of_float: str, otherwise: bool, doc: str) -> Function:
    never, always = "({a} != {a})", "({a} == {a})"
    text = {"float": of_float, "int": always if otherwise else never, "uint": always if otherwise else never}
    text["bool"] = "(!({a} ^ {a}))" if otherwise else "({a} ^ {a})"
    return Function(Op(name, 1, Kind.ELEMENTWISE, ufunc, by_ufunc(ufunc), text=text, arithmetic=False, doc=doc))


isnan = _test("isnan", np.isnan, "({a} != {a})", False, "Whether the number is NaN.")
isinf = _test("isinf", np.isinf, "(fabs({a}) == ({T})(INFINITY))", False, "Whether the number is infinite.")
isfinite = _test("isfinite", np.isfinite, "(fabs({a}) < ({T})(INFINITY))", True, "Whether the number is finite.")
signbit = Function(
    Op("signbit", 1, Kind.ELEMENTWISE, np.signbit, by_ufunc(np.signbit), text={"float": "(as_{I}({a}) < ({I})(0))"},
       arithmetic=False, reads_sign=True,
       doc="Whether the sign bit is set, also of -0. A NaN that an operation made has none.")
)  # fmt: skip

QUIET_NAN = Op(
    "quiet_nan", 1, Kind.ELEMENTWISE, np.positive, by_ufunc(np.positive),
    text={"float": "({a} == {a} ? {a} : as_{T}(({U})({W} == 64 ? 0x7ff8000000000000UL : 0x7fc00000UL)))"},
    doc="The number, with the bits that a NaN has in memory.",
)  # fmt: skip
"""Operation that kernels put before one that reads the sign of NaNs. Users' graphs never hold it."""

FMAX = Op("fmax", 2, Kind.ELEMENTWISE, np.fmax, by_ufunc(np.fmax))
"""The larger number, without NaN, for kernels alone: NaN reaches a result all the same, by the weights of its query."""

NATIVE_EXP2 = Op("native_exp2", 1, Kind.ELEMENTWISE, np.exp2, by_ufunc(np.exp2))
"""A power of two by the device's own instruction, for kernels alone."""


class Logical(Function):
    """A logical function: operands count as true where they are not zero."""

    def __call__(self, *operands: Operand) -> Compute:
        """Build the Compute."""
        return super().__call__(*(truth(as_element(operand, self.op.name)) for operand in operands))


def _logical(name: str, ufunc: np.ufunc, text: str, arity: int, doc: str) -> Logical:
    def dtypes(*_: object) -> tuple[np.dtype, ...]:
        return (BOOL,) * (arity + 1)

    return Logical(Op(name, arity, Kind.ELEMENTWISE, ufunc, dtypes, text={"bool": text}, arithmetic=False, doc=doc))


logical_and = _logical("logical_and", np.logical_and, "({a} & {b})", 2, "Whether both are true.")
logical_or = _logical("logical_or", np.logical_or, "({a} | {b})", 2, "Whether either is true.")
logical_xor = _logical("logical_xor", np.logical_xor, "({a} ^ {b})", 2, "Whether exactly one is true.")
logical_not = _logical("logical_not", np.logical_not, "(!{a})", 1, "Whether it is false.")


def _bits(name: str, ufunc: np.ufunc, symbol: str, doc: str) -> Function:
    text = {"any": f"({{T}})({{a}} {symbol} {{b}})", "bool": f"({{a}} {symbol} {{b}})"}
    return Function(Op(name, 2, Kind.ELEMENTWISE, ufunc, by_ufunc(ufunc), text=text, commutes=True, doc=doc))


bitwise_and = _bits("bitwise_and", np.bitwise_and, "&", "The bits set in both integers.")
bitwise_or = _bits("bitwise_or", np.bitwise_or, "|", "The bits set in either integer.")
bitwise_xor = _bits("bitwise_xor", np.bitwise_xor, "^", "The bits set in exactly one integer.")
bitwise_invert = Function(
    Op("bitwise_invert", 1, Kind.ELEMENTWISE, np.invert, by_ufunc(np.invert),
       text={"any": "({T})(~{a})", "bool": "(!{a})"}, doc="The integer with all bits changed.")
)  # fmt: skip

# OpenCL takes shifts modulo the width; here the width or more shifts everything out.
bitwise_left_shift = Function(
    Op(
        "bitwise_left_shift", 2, Kind.ELEMENTWISE, np.left_shift, by_ufunc(np.left_shift),
        text={
            "any": "(as_{U}({b}) < ({U})({W})"
            " ? as_{T}(({U})(as_{U}({a}) << (as_{U}({b}) & ({U})({W} - 1)))) : ({T})(0))"
        },
        cost=3, doc="The integer shifted left; 0 for shifts by the width or more.",
    )
)  # fmt: skip
bitwise_right_shift = Function(
    Op(
        "bitwise_right_shift", 2, Kind.ELEMENTWISE, np.right_shift, by_ufunc(np.right_shift),
        text={
            "int": "({T})({a} >> (as_{U}({b}) < ({U})({W}) ? {b} : ({T})({W} - 1)))",
            "uint": "({b} < ({U})({W}) ? ({T})({a} >> ({b} & ({U})({W} - 1))) : ({T})(0))",
        },
        cost=3, doc="The integer shifted right; 0 or -1 (the sign) for shifts by the width or more.",
    )
)  # fmt: skip


def _never_called(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("where promotes its two values itself")


def _rebuild_where(kept: KeptOp) -> Compute:
    return where(*kept.operands(3))


WHERE = Op(
    "where", 3, Kind.ELEMENTWISE, np.where, _never_called, text={"any": "({a} ? {b} : {c})"}, cost=2, arithmetic=False,
    doc="The second value where the first is true, else the third.", rebuild=_rebuild_where,
)  # fmt: skip


_PROMOTED = by_ufunc(np.maximum)


@public
def where(condition: Operand, x1: Operand, x2: Operand) -> Compute:
    """Choose `x1` where `condition` is true, else `x2`, element-wise.

    Args:
        condition: an element of bool.
        x1, x2: values, which promote as NumPy's and broadcast with the condition.

    Raises:
        SpecError: if the condition is not boolean or the shapes do not broadcast.
    """
    chosen = as_element(condition, "where")
    if chosen.dtype != BOOL:
        raise SpecError(
            "cannot choose by a condition that is not boolean",
            element="where",
            site=user_site(),
            expected="bool",
            got=chosen.dtype.name,
            hint="compare it first: x != 0",
        )
    # Values promote as in addition, which keeps weak scalars weak; bools stay bools.
    pair = [operand if is_weak(operand) else as_element(operand, "where") for operand in (x1, x2)]
    if all(is_weak(operand) for operand in pair):
        dtype = np.result_type(*(np.asarray(operand) for operand in pair))
    else:
        dtype = _PROMOTED(*(one.dtype if isinstance(one, Element) else type(one) for one in pair))[-1]
    values = [cast(one, dtype) if isinstance(one, Element) else _value_constant(one, dtype) for one in pair]
    inputs, shape, stream = broadcast("where", [chosen, *values])
    return Compute(WHERE, tuple(inputs), Spec(dtype, shape, stream))


@public
def nan_to_num(x: Operand, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """Put numbers in the places of NaN and infinities, as `numpy.nan_to_num`.

    Args:
        x: any element. Integers and bools stay as they are.
        nan: in the place of NaN.
        posinf, neginf: in the places of infinities; None for the largest and the least number of the dtype.

    Raises:
        SpecError: if one of them is no number.
    """
    element = as_element(x, "nan_to_num")
    in_place = real("nan_to_num", "nan", nan)
    above = None if posinf is None else real("nan_to_num", "posinf", posinf)
    below = None if neginf is None else real("nan_to_num", "neginf", neginf)
    if not is_float(element.dtype):
        return element
    limits = ml_dtypes.finfo(element.dtype)  # type: ignore[no-untyped-call]
    finite = where(equal(element, math.inf), float(limits.max) if above is None else above, element)
    finite = where(equal(element, -math.inf), float(limits.min) if below is None else below, finite)
    return where(isnan(element), in_place, finite)


def _value_constant(value: Any, dtype: np.dtype) -> Constant:
    try:
        return Constant(np.asarray(value, dtype))
    except (OverflowError, ValueError) as error:
        raise SpecError(
            "cannot hold a Python number in the dtype of its partner",
            element="where",
            site=user_site(),
            expected=dtype.name,
            got=short_repr(value),
        ) from error
