"""The record that defines an operation. Adding an element-wise op is adding one of these to a table."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowcompute.spec import BFLOAT16, BOOL, Spec

Attrs = dict[str, Any]
"""Attributes of an operation: plain data (numbers, strings, tuples, dtypes, None)."""


class Kind(enum.Enum):
    """How an operation treats the stream axis, and so how it runs."""

    ELEMENTWISE = "elementwise"  # a map of numbers: batches may be cut anywhere, even inside items
    REDUCE = "reduce"  # a map that reduces item axes
    CONTRACT = "contract"  # a map that multiplies matrices
    FOLD = "fold"  # consumes the stream axis
    SCAN = "scan"  # carries along the stream axis
    WINDOW = "window"  # sees neighbours along the stream axis
    SELECT = "select"  # emits fewer items of the stream
    REBATCH = "rebatch"  # reshapes the stream axis, or joins streams end to end
    VIEW = "view"  # item axes seen in another way: index arithmetic, no copy
    ALONG = "along"  # a resident value cut along the stream
    HOST = "host"  # a Python function on batches


DtypeRule = Callable[..., tuple[np.dtype, ...]]
"""`rule(*operand dtypes or int/float/bool for weak scalars) -> (operand dtypes..., result dtype)`"""


@dataclass(frozen=True)
class Op:
    """An operation.

    Attributes:
        name: the Array API name where there is one; also what errors and drawings say.
        arity: number of operands.
        kind: how it treats the stream axis.
        numpy: its meaning, `numpy(*arrays, **attrs)`. For a fold see `reference/`.
        dtypes: which dtypes operands are cast to, and the dtype of the result.
        shape: spec of the result where broadcasting does not give it.
        text: OpenCL C of an element-wise op by class of operand dtype ("float", "int",
            "uint", "bool", or "any"); `{a} {b} {c}` are operands, `{T}` the operands' vector
            type, `{I}` and `{U}` the signed and unsigned integer types of the same width, `{W}`
            the bits of a number, `{F}` the name of the helper. A missing text means a call by the
            op's own name.
        helper: the body of a helper function `{T} {F}({T} a, {T} b)` by class, for longer texts.
        ulp: largest error on any device in units in the last place; 0 is exact or correctly rounded.
        cost: rough instructions per number; above 8 a value is worth keeping, not recomputing.
        arithmetic: whether a NaN in the result is made here (and so made canonical when stored).
        commutes: whether operands may be swapped without changing a bit.
        doc: one sentence for users.
    """

    name: str
    arity: int
    kind: Kind
    numpy: Callable[..., Any]
    dtypes: DtypeRule
    shape: Callable[..., Spec] | None = None
    text: dict[str, str] = field(default_factory=dict, hash=False, compare=False)
    helper: dict[str, str] = field(default_factory=dict, hash=False, compare=False)
    ulp: float = 0.0
    cost: int = 1
    arithmetic: bool = True
    commutes: bool = False
    doc: str = ""

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def by_ufunc(ufunc: np.ufunc) -> DtypeRule:
    """The dtype rule of a NumPy ufunc (NEP 50), weak Python scalars included."""

    def rule(*operands: Any) -> tuple[np.dtype, ...]:
        # ml_dtypes knows no weak scalars: a Python number takes bfloat16 beside it. A Python bool is never wider
        # than its partner, and NumPy knows no weak form of it.
        bfloat = any(isinstance(operand, np.dtype) and operand == BFLOAT16 for operand in operands)
        operands = tuple(
            operand if isinstance(operand, np.dtype) else BFLOAT16 if bfloat else BOOL if operand is bool else operand
            for operand in operands
        )
        return tuple(ufunc.resolve_dtypes((*operands, *[None] * ufunc.nout)))

    return rule
