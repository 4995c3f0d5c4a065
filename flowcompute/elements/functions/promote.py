"""Types of expressions while a function is typed, and how they meet.

Python's own numbers are weak, as everywhere: literals, counters, what `int()` and `float()`
give. A weak int is held as int64, a weak float in the function's own float dtype, and both
take the dtype of whatever they meet. A bool counts as a Python int in arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.elements.op import Op, by_ufunc
from flowcompute.imports import dataclass
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, UINT64, is_float, parse_dtype


@dataclass(frozen=True, slots=True)
class Type:
    """A dtype; a weak one gives way to others."""

    dtype: np.dtype
    weak: bool = False

    @property
    def computed(self) -> str:
        """The name of the dtype that it is computed in: float32 for half formats."""
        return "float32" if self.dtype in (FLOAT16, BFLOAT16) else self.dtype.name

    @property
    def key(self) -> Any:
        """The key that a dtype rule is asked with."""
        if not self.weak:
            return self.dtype
        return float if is_float(self.dtype) else int

    def __str__(self) -> str:
        return f"Python {self.key.__name__}" if self.weak else self.dtype.name


BOOLEAN = Type(BOOL)
WHOLE = Type(INT64, weak=True)


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression with its type."""

    expr: ir.Expr
    type: Type

    @property
    def known(self) -> bool | int | float | None:
        """Its number, where that is known and Python's own."""
        if isinstance(self.expr, ir.NumberLiteral) and (self.type.weak or self.type == BOOLEAN):
            return self.expr.value
        return None


def own_float(types: Sequence[Type]) -> np.dtype:
    """Return the dtype of Python floats inside a function: float64, or float32 where no argument's are wider."""
    floats = [one.dtype for one in types if is_float(one.dtype) and not one.weak]
    return FLOAT64 if not floats or FLOAT64 in floats else FLOAT32


def join(one: Type, other: Type, weak_float: np.dtype) -> Type:
    """Return the type of a variable that is given both.

    Raises:
        TypeError: if they have none in common.
    """
    if one == other:
        return one
    one, other = (WHOLE if value == BOOLEAN else value for value in (one, other))
    if one.weak and other.weak:
        return Type(weak_float, weak=True) if is_float(one.dtype) or is_float(other.dtype) else WHOLE
    return Type(parse_dtype(by_ufunc(np.maximum)(one.key, other.key)[-1]))


def operand_types(op: Op, types: Sequence[Type], weak_float: np.dtype) -> tuple[list[Type], Type]:
    """Return the types that operands are cast to, and that of the result.

    Raises:
        TypeError: if the operation is not defined for them.
    """
    *wanted, result = (parse_dtype(dtype) for dtype in op.dtypes(*(one.key for one in types)))
    if not all(one.weak for one in types):
        return [Type(dtype) for dtype in wanted], Type(result)
    held = [Type(weak_float if is_float(dtype) else INT64, weak=True) for dtype in wanted]
    if result == BOOL:
        return held, BOOLEAN
    return held, Type(weak_float if is_float(result) else INT64, weak=True)


def compared_types(left: Typed, right: Typed, weak_float: np.dtype) -> tuple[Type, Type]:
    """Return the types that two numbers are compared in; they differ only where no integer dtype holds both.

    Raises:
        TypeError: if there are none.
    """
    one, other = (WHOLE if side.type == BOOLEAN else side.type for side in (left, right))
    if one.weak and other.weak:
        held = Type(weak_float if is_float(one.dtype) or is_float(other.dtype) else INT64)
        return held, held
    for near, far in ((left, other), (right, one)):
        value = near.known
        if isinstance(value, int) and not far.weak and far.dtype.kind in "iu":
            info = np.iinfo(far.dtype)
            if info.min <= value <= info.max:
                return far, far
            if value > np.iinfo(INT64).max:
                one, other = (Type(UINT64) if near is left else one), (Type(UINT64) if near is right else other)
    # A variable that holds a Python int may hold more than its partner's dtype does.
    floats = is_float(one.dtype) or is_float(other.dtype)
    one, other = (Type(INT64) if side == WHOLE and not floats else side for side in (one, other))
    if mixed_signs(one, other):
        return one, other
    both = Type(parse_dtype(by_ufunc(np.maximum)(one.key, other.key)[-1]))
    return both, both


def mixed_signs(left: Type, right: Type) -> bool:
    """Check whether one is uint64 and the other signed, which no integer dtype holds both."""
    dtypes = (left.dtype, right.dtype)
    return UINT64 in dtypes and any(dtype.kind == "i" for dtype in dtypes)
