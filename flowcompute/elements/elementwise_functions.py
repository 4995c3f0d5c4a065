"""Element-wise operations: dtypes by their records, Python numbers in the dtype of their partners, operands aligned."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from flowcompute.elements.alignment import broadcast
from flowcompute.elements.calls import of_operands
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.op import DtypeRule, KeptOp, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import Spec, parse_dtype


class Function:
    """A public element-wise function: calling it with operands builds a Compute of its record."""

    def __init__(self, op: Op) -> None:
        self.op = op if op.rebuild is not None else dataclasses.replace(op, rebuild=rebuild_elementwise)
        self.__name__ = op.name
        self.__doc__ = f"{op.doc} Element-wise; operands broadcast and promote as NumPy's."

    def __call__(self, *operands: Operand) -> Compute:
        """Build the Compute; raises SpecError when operands do not fit."""
        if len(operands) != self.op.arity:
            raise SpecError(
                "cannot take so many operands",
                element=self.op.name,
                site=user_site(),
                expected=f"{self.op.arity} operand{'s' if self.op.arity > 1 else ''}",
                got=str(len(operands)),
            )
        return of_operands(self.op.name, elementwise, self.op, *operands)

    def __repr__(self) -> str:
        return f"<function fc.{self.op.name}>"


def is_weak(operand: object) -> bool:
    """Check whether `operand` is a Python number, whose dtype follows its partners (NEP 50)."""
    return isinstance(operand, (bool, int, float)) and not isinstance(operand, np.generic)


def elementwise(op: Op, *operands: Operand) -> Compute:
    """Build an element-wise Compute: find dtypes, cast operands, broadcast, share an operand's Spec that is equal."""
    elements: list[Element | None] = [
        operand if type(operand) is Compute else None if is_weak(operand) else as_element(operand, op.name)
        for operand in operands
    ]
    if all(element is None for element in elements):
        elements = [as_element(operand, op.name) for operand in operands]
    keys = [type(one) if element is None else element.dtype for one, element in zip(operands, elements, strict=True)]
    *wanted, result = resolve_dtypes(op, keys)
    inputs = [
        scalar_constant(op, operand, dtype) if element is None else cast(element, dtype)
        for operand, element, dtype in zip(operands, elements, wanted, strict=True)
    ]
    aligned, shape, stream = broadcast(op.name, inputs)
    for one in aligned:
        # Most operations have an operand of their own Spec.
        if one.spec.shape is shape and one.spec.stream is stream and one.spec.dtype is result:
            return Compute(op, tuple(aligned), one.spec)
    spec = Spec(result, shape, stream)
    return Compute(op, tuple(aligned), next((one.spec for one in aligned if one.spec == spec), spec))


def rebuild_elementwise(kept: KeptOp) -> Compute:
    """Make an operation again by its record's rule of dtypes: the default of element-wise operations."""
    return elementwise(kept.op, *kept.operands(kept.op.arity))


def resolve_dtypes(op: Op, keys: Iterable[Any]) -> tuple[np.dtype, ...]:
    """Return the dtypes that operands are cast to and that of the result.

    Raises:
        SpecError: if the op is not defined for them, or the result would be of an unsupported dtype.
    """
    keys = tuple(keys)
    try:
        return _resolved(op.dtypes, keys)
    except TypeError as error:
        names = ", ".join(key.name if isinstance(key, np.dtype) else f"Python {key.__name__}" for key in keys)
        raise SpecTypeError(
            "cannot compute with these dtypes",
            element=op.name,
            site=user_site(),
            expected="dtypes that it is defined for",
            got=names,
            hint=str(error).split("\n", 1)[0],
        ) from error


@functools.lru_cache(4096)
def _resolved(rule: DtypeRule, keys: tuple[Any, ...]) -> tuple[np.dtype, ...]:
    return tuple(map(parse_dtype, rule(*keys)))


def scalar_constant(op: Op, value: Any, dtype: np.dtype) -> Constant:
    """Return a weak Python number in the dtype of its partners."""
    try:
        return Constant(value, dtype)
    except (OverflowError, ValueError) as error:
        raise SpecError(
            "cannot hold a Python number in the dtype of its partner",
            element=op.name,
            site=user_site(),
            expected=f"a value that {dtype.name} can hold",
            got=short_repr(value),
            hint="cast the other operand with .astype(...)",
        ) from error
