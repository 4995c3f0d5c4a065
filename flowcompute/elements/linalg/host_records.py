"""Operations on matrices that the host computes by NumPy's LAPACK: their records, dtypes and operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowcompute.elements.alignment import align_resident, common_length
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.op import Kind, Op, Rebuild
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT64, Spec, Stream, format_shape, is_float

MatrixMap = Callable[..., np.ndarray]
"""`function(*stacks of matrices, **attrs)` gives a stack of results; each depends on its own matrices alone."""


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("operations of LAPACK state their dtypes themselves")


def lapack_op(name: str, numpy: MatrixMap, rebuild: Rebuild, doc: str, arity: int = 1) -> Op:
    """Return the record of an operation on matrices that the host computes."""
    return Op(name, arity, Kind.HOST, numpy, _declared, cost=1000, doc=doc, rebuild=rebuild)


def matrices(op: str, *operands: Operand, square: Sequence[int] = ()) -> list[Any]:
    """Return operands whose last two axes are matrices, in the dtype that LAPACK computes in.

    That is float32 or float64. Integers and bools become float64, as in NumPy.

    Args:
        op: the function that takes them.
        operands: elements or arrays.
        square: places of the operands whose matrices have to be square.

    Raises:
        SpecError: for half formats, or an operand without two axes of items.
    """
    elements = [as_element(operand, op) for operand in operands]
    for place, element in enumerate(elements):
        check_matrix(op, element, square=place in square)
    dtype = lapack_dtype(op, elements)
    return [cast(element, dtype) for element in elements]


def lapack_dtype(op: str, elements: Sequence[Any]) -> np.dtype:
    """Return float32 or float64, whichever these are computed in.

    Raises:
        SpecTypeError: for half formats.
    """
    halves = [element.dtype.name for element in elements if element.dtype in (FLOAT16, BFLOAT16)]
    if halves:
        raise SpecTypeError(
            "cannot compute with half formats",
            element=op,
            site=user_site(),
            expected="float32 or float64",
            got=", ".join(halves),
            hint='cast with .astype("float32")',
        )
    result = np.result_type(*(element.dtype for element in elements))
    return result if is_float(result) else FLOAT64


def check_matrix(op: str, element: Any, *, square: bool = False) -> None:
    """Refuse an operand without two axes of items, or with matrices that are not square where they have to be."""
    shape = element.spec.shape
    if len(shape) < 2:
        raise SpecError(
            "cannot take this as matrices",
            element=op,
            site=user_site(),
            expected="items of two axes or more" if element.spec.is_stream else "two axes or more",
            got=str(element.spec),
            hint="fold the stream to one matrix first, as x.T @ x does" if element.spec.is_stream else None,
        )
    if square and shape[-1] != shape[-2]:
        raise SpecError(
            "cannot take matrices that are not square",
            element=op,
            site=user_site(),
            expected="as many rows as columns",
            got=format_shape(element.shape),
        )


def aligned(op: str, left: Any, right: Any) -> tuple[Any, Any, Stream | None]:
    """Return two operands whose streams advance together, and their stream.

    A resident operand of fewer axes is the same for all records; one of as many is cut along the stream.

    Raises:
        SpecError: if lengths or ranks of streams differ.
    """
    streams = [one for one in (left, right) if one.spec.is_stream]
    if not streams:
        return left, right, None
    length = common_length(op, streams)
    if len({one.ndim for one in streams}) > 1:
        raise SpecError(
            "cannot align streams of unequal rank",
            element=op,
            site=user_site(),
            expected=f"{left.ndim} axes as in {format_shape(left.shape)}",
            got=format_shape(right.shape),
        )
    first = streams[0]
    left, right = (one if one.spec.is_stream else align_resident(op, one, first, length) for one in (left, right))
    return left, right, Stream(length)


def stacks(op: str, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """Return what the axes in front of matrices broadcast to.

    Raises:
        SpecError: if they do not.
    """
    try:
        return np.broadcast_shapes(left, right)
    except ValueError as error:
        raise SpecError(
            "cannot broadcast stacks of matrices",
            element=op,
            site=user_site(),
            expected="equal sizes, or 1, on each axis in front of the matrices",
            got=f"{format_shape(left)} and {format_shape(right)}",
        ) from error


def of_one(op: Op, x: Any, shape: tuple[int, ...], dtype: np.dtype | None = None, **attrs: Any) -> Compute:
    """Return an operation on each matrix of `x`, whose results have this shape behind the axes of the stack."""
    spec = Spec(x.dtype if dtype is None else dtype, (*x.spec.shape[:-2], *shape), x.spec.stream)
    return Compute(op, (x,), spec, attrs)
