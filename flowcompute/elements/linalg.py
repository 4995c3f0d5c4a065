"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.compute import (
    Compute,
    Operand,
    align_resident,
    as_element,
    broadcast,
    cast,
    common_length,
    resolve_dtypes,
)
from flowcompute.elements.op import Kind, Op, by_ufunc
from flowcompute.elements.reduce import DOT, DOT_FOLD, fold_stream, normalise_axes, reduce_items, split_axes
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, Spec, Stream, format_shape

_VECDOT = Op("vecdot", 2, Kind.REDUCE, np.vecdot, by_ufunc(np.vecdot))
MATMUL = Op("matmul", 2, Kind.CONTRACT, np.matmul, by_ufunc(np.matmul), cost=1000, doc="Product of matrices.")


def _operands(op: Op, x1: Operand, x2: Operand) -> tuple[Any, Any, np.dtype]:
    """Both operands in their common dtype (float32 for half formats), and the dtype of the result."""
    left, right = as_element(x1, op.name), as_element(x2, op.name)
    *_, result = resolve_dtypes(op, [left.dtype, right.dtype])
    if result == BOOL:
        raise SpecError("is not defined for bool", element=op.name, site=user_site(), hint="cast to an integer dtype")
    wide = FLOAT32 if result in (FLOAT16, BFLOAT16) else result
    return cast(left, wide), cast(right, wide), result


def vecdot(x1: Operand, x2: Operand, axis: int = -1) -> Compute:
    """Dot product of vectors along `axis`, fused multiply-add inside.

    Two resident vectors give a number; streams of vectors a stream of numbers; two long
    streams of numbers one number (a fold).

    Raises:
        SpecError: if lengths differ or the operands do not align.
    """
    left, right, result = _operands(_VECDOT, x1, x2)
    for one in (left, right):
        if one.ndim == 0:
            raise SpecError("needs vectors", element="vecdot", site=user_site(), got="a number")
    (aligned_left, aligned_right), shape, stream = broadcast("vecdot", [left, right])
    longest = max((aligned_left, aligned_right), key=lambda element: element.ndim)
    folded, axes = split_axes(longest, normalise_axes("vecdot", longest, axis))
    if folded:
        total = fold_stream(DOT_FOLD, (aligned_left, aligned_right), shape, left.dtype, False)
        return cast(total, result)  # type: ignore[return-value]
    sizes = {one.spec.shape[axes[0] - len(shape)] for one in (aligned_left, aligned_right) if one.spec.shape}
    if len(sizes) != 1 or not all(one.spec.shape for one in (aligned_left, aligned_right)):
        raise SpecError(
            "vectors of different length",
            element="vecdot",
            site=user_site(),
            expected="equal sizes on the contracted axis",
            got=f"{format_shape(left.shape)} and {format_shape(right.shape)}",
        )
    inputs = (aligned_left, aligned_right)
    total = reduce_items(DOT, inputs, shape, axes, left.dtype, False)
    if not inputs[0].spec.is_stream and stream is not None:
        total = Compute(DOT, inputs, Spec(left.dtype, total.spec.shape, stream), total.attrs)
    return cast(total, result)  # type: ignore[return-value]


def matmul(x1: Operand, x2: Operand) -> Compute:
    """Matrix product with NumPy's rules for stacks, the stream counting as axis 0.

    A stream of rows `(N, k)` times a resident `(k, m)` is a stream of rows `(N, m)`;
    streams of matrices multiply item by item. Sums run over k in panels of fixed size, in
    order, with fused multiply-add.

    Raises:
        SpecError: if inner sizes differ, or the product would contract the stream axis.
    """
    left, right, result = _operands(MATMUL, x1, x2)
    left, right = _along_stream(left, right)
    shape, stream = _matmul_shape(left, right)
    if right.ndim == 1:
        return vecdot(x1, x2)
    product = Compute(MATMUL, (left, right), Spec(left.dtype, shape, stream))
    return cast(product, result)  # type: ignore[return-value]


def _along_stream(left: Any, right: Any) -> tuple[Any, Any]:
    """A resident stack of matrices as long as a stream of matrices is cut along it."""
    for stream, resident in ((left, right), (right, left)):
        if stream.spec.is_stream and not resident.spec.is_stream and stream.ndim > 2 and resident.ndim >= stream.ndim:
            aligned = align_resident("matmul", resident, stream, stream.spec.length)
            return (aligned, right) if resident is left else (left, aligned)
    return left, right


def _matmul_shape(left: Any, right: Any) -> tuple[tuple[int, ...], Stream | None]:
    """Item shape and stream of the product."""
    both = f"{format_shape(left.shape)} @ {format_shape(right.shape)}"
    if left.ndim == 0 or right.ndim == 0:
        raise SpecError("needs matrices or vectors, not numbers", element="matmul", site=user_site(), got=both)
    left_stream, right_stream = left.spec.is_stream, right.spec.is_stream
    if (right_stream and right.ndim < 3) or (left_stream and left.ndim == 1):
        raise SpecError(
            "the product would contract the stream axis, which is not supported",
            element="matmul",
            site=user_site(),
            got=both,
            hint="fc.vecdot contracts two streams of numbers; a stream multiplies from the left: X @ W",
        )
    if left_stream and right_stream and left.ndim != right.ndim:
        raise SpecError("streams of unequal rank do not align", element="matmul", site=user_site(), got=both)
    a, b = left.shape, right.shape
    inner_b = b[-2] if right.ndim > 1 else b[0]
    if a[-1] != inner_b:
        raise SpecError(
            "inner sizes differ",
            element="matmul",
            site=user_site(),
            expected=f"{a[-1]} rows on the right, as there are columns on the left",
            got=both,
        )
    rows = a[:-1] if left.ndim == 1 else a[-2:-1]
    columns = b[-1:] if right.ndim > 1 else ()
    if not (left_stream or right_stream):
        return (*_stacks(both, left.shape[:-2], right.shape[:-2]), *(rows if left.ndim > 1 else ()), *columns), None
    streams = [one for one in (left, right) if one.spec.is_stream]
    stream = Stream(common_length("matmul", streams))
    if left_stream and left.ndim == 2:
        if right.ndim > 2:
            raise SpecError(
                "a stream of rows multiplies one matrix, not a stack", element="matmul", site=user_site(), got=both
            )
        return tuple(columns), stream
    left_stack = left.spec.shape[:-2] if left_stream else left.shape[:-2]
    right_stack = right.spec.shape[:-2] if right_stream else right.shape[:-2]
    stack = _stacks(both, left_stack, right_stack)
    return (*stack, *(rows if left.ndim > 1 else ()), *columns), stream


def _stacks(both: str, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(left, right)
    except ValueError as error:
        raise SpecError("stacks of matrices do not broadcast", element="matmul", site=user_site(), got=both) from error
