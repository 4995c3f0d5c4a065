"""Keys that only equal parts of graphs have, in all that planning and lowering look at."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import numpy as np

from flowcompute.elements import Op
from flowcompute.elements.functions import SourceOp, UserOp
from flowcompute.function_ir import functions
from flowcompute.imports import dataclass
from flowcompute.spec import Spec


class UnknownError(Exception):
    """Something that planning may look at, and that cannot be compared."""


@dataclass(frozen=True, slots=True, eq=False)
class TheVeryObject:
    """A key that only the very same object has, which it keeps alive."""

    held: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TheVeryObject) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


def operation_key(op: Op) -> object:
    """Return the record of an operation. Those of users' functions are made anew by each call."""
    if isinstance(op, SourceOp):
        return op.name, op.source, op.entry
    if not isinstance(op, UserOp):
        return TheVeryObject(op)
    unrolls = tuple(each.unroll for each in functions(op.function))
    return op.name, op.result, repr(op.function), unrolls


def exact(value: object) -> object:
    """Return a key that only equal values of one type have: 0.0 is neither -0.0 nor 0.

    Raises:
        UnknownError: for a value of another kind than attributes usually have.
    """
    kind = type(value)
    # These come most often, and asking `isinstance` for the others takes longer.
    if isinstance(value, Spec):
        return value.dtype, value.shape, value.stream
    if kind is dict and not value:
        return ()
    if value is None or isinstance(value, str | int | bytes | Enum | np.dtype):
        return kind, value
    if isinstance(value, float):
        return float, value.hex()
    if isinstance(value, np.generic):
        return value.dtype, value.tobytes()
    if isinstance(value, tuple | list):
        return kind, tuple(map(exact, value))
    if isinstance(value, Mapping):
        return tuple((key, exact(value[key])) for key in sorted(value))
    if isinstance(value, type):
        return value
    raise UnknownError
