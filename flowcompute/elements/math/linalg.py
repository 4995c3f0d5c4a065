"""Products of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from flowcompute.elements.alignment import ALONG, align_resident, broadcast, common_length
from flowcompute.elements.arguments import whole
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, cast, compute_again
from flowcompute.elements.elementwise_functions import resolve_dtypes
from flowcompute.elements.math.primitives import fold_stream, reduce_items, reduced_dtype
from flowcompute.elements.math.reductions import (
    normalise_axes,
    runs_of,
    split_axes,
)
from flowcompute.elements.math.transposition import TransposedStream, transposed
from flowcompute.elements.op import MOST, KeptOp, Kind, Op, by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, Spec, Stream, format_shape, is_float, parse_dtype


def _rebuild_dot(kept: KeptOp) -> Compute:
    left, right = kept.operands(2)
    (axis,) = kept.attrs.wholes("axes", length=1) or (0,)
    kept.require(not kept.attrs.flag("keepdims"), "keepdims=False")
    return vecdot(left, right, axis + (left.spec.is_stream or right.spec.is_stream))


def _rebuild_dot_fold(kept: KeptOp) -> Compute:
    left, right = kept.operands(2)
    (one, other), shape, stream = broadcast("vecdot", [left, right])
    kept.require(stream is not None and one is left and other is right, "streams, or a stream and what is cut along")
    kept.require(left.dtype == right.dtype and not kept.attrs.flag("keepdims"), "one dtype and keepdims=False")
    return fold_stream(kept.op, kept.inputs, shape, reduced_dtype(kept, "vecdot", left.dtype), False)


def _rebuild_product(kept: KeptOp) -> Any:
    """Make a product of matrices again, also one whose right factor is windows."""
    left, right = kept.operands(2)
    attrs = kept.attrs
    if "depth" in attrs:
        depth, columns = attrs.whole("depth", least=1, most=63), attrs.whole("columns", least=1, most=63)
        return product_of_windows(left, right, depth, columns)
    dtype = attrs.take("dtype") if "dtype" in attrs else None
    kept.require(dtype is None or isinstance(dtype, np.dtype), "a dtype")
    made: Any = matmul(left, right, dtype=dtype)
    return made if made.op is MATMUL else made.inputs[0]  # before it is rounded to a half format


def _rebuild_product_fold(kept: KeptOp) -> Compute:
    """Make `X.T @ Y` of two streams again."""
    streams = kept.streams(1, 2)
    left, right = streams[0], streams[-1]
    if left.ndim == right.ndim == 3:
        made: Any = product_of_rows(left, right)
    else:
        kept.require(left.ndim <= 2 >= right.ndim, "streams of numbers or rows, or two of matrices")
        made = matmul(left if left.ndim == 1 else left.T, right)
    # Of one operand it is where a user's formula has the same element twice, of two equal ones where it was made twice.
    return compute_again(kept, made.dtype, made.spec.shape) if len(streams) == 2 and left is right else made


DOT = Op("vecdot", 2, Kind.REDUCE, np.vecdot, by_ufunc(np.vecdot), cost=100, rebuild=_rebuild_dot)
DOT_FOLD = Op("vecdot", 2, Kind.FOLD, np.vecdot, by_ufunc(np.vecdot), cost=100, rebuild=_rebuild_dot_fold)
MATMUL = Op(
    "matmul", 2, Kind.CONTRACT, np.matmul, by_ufunc(np.matmul), cost=1000, doc="Product of matrices.",
    rebuild=_rebuild_product,
)  # fmt: skip
MATMUL_FOLD = Op(
    "matmul", 2, Kind.FOLD, np.matmul, by_ufunc(np.matmul), cost=1000,
    doc="X.T @ Y of two streams of rows, or of matrices whose rows count like records.", rebuild=_rebuild_product_fold,
)  # fmt: skip


def _operands(op: Op, x1: Operand, x2: Operand, *, halves: bool = False) -> tuple[Any, Any, np.dtype]:
    """Return both operands in the dtype in which they are multiplied, and the dtype of the result.

    Half formats become float32; if `halves`, operands of one half format stay as they are.
    """
    left, right = as_element(x1, op.name), as_element(x2, op.name)
    *_, result = resolve_dtypes(op, [left.dtype, right.dtype])
    if result == BOOL:
        raise SpecError(
            "cannot multiply bools",
            element=op.name,
            site=user_site(),
            expected="a dtype of numbers",
            hint="cast to an integer dtype",
        )
    if halves and left.dtype == right.dtype and _wide(left.dtype) != left.dtype:
        return left, right, result
    return cast(left, _wide(result)), cast(right, _wide(result)), result


def _operands_in(x1: Operand, x2: Operand, dtype: npt.DTypeLike | None) -> tuple[Any, Any, np.dtype]:
    """Return operands of a matrix product that gives this dtype, and that dtype; what is stored narrower stays so.

    Raises:
        SpecError: if it is no dtype for a product, or operands are of another kind.
    """
    if dtype is None:
        return _operands(MATMUL, x1, x2, halves=True)
    operands = [as_element(one, "matmul") for one in (x1, x2)]
    try:
        result = parse_dtype(dtype)
    except TypeError as error:
        raise SpecError(str(error), element="matmul", site=user_site()) from error
    floats = is_float(result)
    if result == BOOL or any(is_float(one.dtype) > floats or one.dtype == BOOL for one in operands):
        raise SpecError(
            "cannot multiply these in that dtype",
            element="matmul",
            site=user_site(),
            expected="an integer dtype for integers, or a float dtype",
            got=f"dtype={result.name} for {' and '.join(one.dtype.name for one in operands)}",
        )
    wide = _wide(result)
    narrow = [is_float(one.dtype) == floats and one.dtype.itemsize < wide.itemsize <= 4 for one in operands]
    left, right = (one if kept else cast(one, wide) for one, kept in zip(operands, narrow, strict=True))
    return left, right, result


def _wide(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which products are summed."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


@public
def vecdot(x1: Operand, x2: Operand, axis: int = -1) -> Compute:
    """Return the dot product of vectors along `axis`, by fused multiply-adds.

    Two resident vectors give a number; streams of vectors a stream of numbers; two long
    streams of numbers one number (a fold).

    Args:
        x1, x2: elements of one rank or broadcasting, not of bool.
        axis: the axis of the longer operand that is summed over; the stream is axis 0.

    Raises:
        SpecError: if lengths differ or the operands do not align.
    """
    left, right, result = _operands(DOT, x1, x2)
    for one in (left, right):
        if one.ndim == 0:
            raise SpecError(
                "cannot multiply a number as a vector",
                element="vecdot",
                site=user_site(),
                expected="vectors",
                got="a number",
            )
    (aligned_left, aligned_right), shape, stream = broadcast("vecdot", [left, right])
    longest = max((aligned_left, aligned_right), key=lambda element: element.ndim)
    folded, axes = split_axes(longest, normalise_axes("vecdot", longest, whole("vecdot", "axis", axis, -MOST)))
    if folded:
        total = fold_stream(DOT_FOLD, (aligned_left, aligned_right), shape, left.dtype, False)
        return cast(total, result)  # type: ignore[return-value]
    back = len(shape) - axes[0]
    items = (one.spec.shape for one in (aligned_left, aligned_right) if one.spec.shape)
    sizes = {item[-back] if back <= len(item) else 1 for item in items}
    if len(sizes) != 1 or not all(one.spec.shape for one in (aligned_left, aligned_right)):
        raise SpecError(
            "cannot multiply vectors of different length",
            element="vecdot",
            site=user_site(),
            expected="equal sizes on the contracted axis",
            got=f"{format_shape(left.shape)} and {format_shape(right.shape)}",
        )
    inputs = (aligned_left, aligned_right)
    if (runs := runs_of("vecdot", inputs, axes, left.dtype, False)) is not None:
        return cast(runs, result)  # type: ignore[return-value]
    total = reduce_items(DOT, inputs, shape, axes, left.dtype, False)
    if not inputs[0].spec.is_stream and stream is not None:
        total = Compute(DOT, inputs, Spec(left.dtype, total.spec.shape, stream), total.attrs)
    return cast(total, result)  # type: ignore[return-value]


@public
def matmul(
    x1: Operand | TransposedStream, x2: Operand | TransposedStream, *, dtype: npt.DTypeLike | None = None
) -> Compute:
    """Multiply matrices with NumPy's rules for stacks, the stream counting as axis 0.

    A stream of rows `(N, k)` times a resident `(k, m)` is a stream of rows `(N, m)`;
    streams of matrices multiply item by item. Sums run over k in panels of fixed size, in
    order, with fused multiply-add. Operands of one half format are summed in float32, by tensor
    cores where there are any. These take steps of 16 along k, within which a device has its own order.

    A product over the stream axis is a fold. That is `X.T @ Y` of two streams `(N, m)` and `(N, k)`, or a resident
    `(m, N)` times a stream `(N, k)`. Vectors may stand in place of matrices. Each block of records is one product, of
    4096 records or fewer when they are wide. Blocks are added in float64 (integers in their own dtype) in a fixed tree.

    Args:
        x1, x2: elements or arrays.
        dtype: as NumPy's: the dtype in which is multiplied and added up, and of the result; by default what
            the operands promote to. `matmul(a, b, dtype="int32")` of int8 is exact where int8 would wrap,
            and `dtype="float32"` of half formats does not round the result. Operands are read as they are stored.

    Raises:
        SpecError: if inner sizes differ, or operands are of another kind than `dtype`. Also if the result would be no
            stream and no matrix, as for `X @ Y.T`.
    """
    if isinstance(x2, TransposedStream):
        raise SpecError(
            "cannot multiply by a transposed stream from the right",
            element="matmul",
            site=user_site(),
            expected="a transposed stream on the left",
            got=f"... @ {format_shape(x2.shape)}",
            hint="X.T @ Y of two streams is a fold; of W @ X.T with W resident compute the transpose, X @ W.T",
        )
    if isinstance(x1, TransposedStream):
        return _transposed_matmul(x1, x2, dtype)
    left, right, result = _operands_in(x1, x2, dtype)
    if _contracts_stream(left, right):
        left, right = cast(left, _wide(result)), cast(right, _wide(result))
        _check_columns(left, right)
        if left.ndim == 2:
            left = Constant(left.value.T) if isinstance(left, Constant) else transposed(left)
        return _products(left, right, result)
    left, right = _along_stream(left, right)
    shape, stream = _matmul_shape(left, right)
    if right.ndim == 1:
        return vecdot(cast(left, result), cast(right, result))
    # Half formats stay as they are stored: kernels widen them as they load them, or multiply them on tensor cores.
    attrs = {} if left.dtype == right.dtype and _wide(left.dtype) == _wide(result) else {"dtype": result}
    product = Compute(MATMUL, (left, right), Spec(_wide(result), shape, stream), attrs)
    return cast(product, result)  # type: ignore[return-value]


def product_of_windows(left: Any, right: Any, depth: int, columns: int) -> Compute:
    """Return matrices times windows, which are read where they lie (implicit im2col).

    Args:
        left: a resident value (*stack, rows, k), or a stream of them beside a stream of windows.
        right: windows, items of (*stack, *inner, *places): `depth` axes of k numbers in all, then `columns` axes.
        depth: axes that are summed over.
        columns: axes of places.

    Returns:
        A product of items (*stack, rows, *places), of the dtype of both.

    Raises:
        SpecError: if operands do not fit each other.
    """
    seen, weights = right.spec.shape, left.spec.shape
    own = len(seen) - depth - columns
    inner = math.prod(seen[own : own + depth]) if own >= 0 else -1
    if (
        left.spec.is_stream > right.spec.is_stream
        or len(weights) < 2
        or weights[-1] != inner
        or left.dtype != right.dtype
    ):
        raise SpecError(
            "cannot multiply matrices and windows",
            element="matmul",
            site=user_site(),
            expected=f"matrices (..., rows, k) and windows of one dtype whose {depth} inner axes hold k numbers",
            got=f"{left.spec} and {right.spec}",
        )
    if left.dtype == BOOL or _wide(left.dtype) != left.dtype:
        raise SpecError(
            "cannot multiply windows in this dtype",
            element="matmul",
            site=user_site(),
            expected="integers, float32 or float64",
            got=left.dtype.name,
        )
    stack = _stacks(f"{format_shape(weights)} @ {format_shape(seen)}", weights[:-2], seen[:own])
    spec = Spec(left.dtype, (*stack, weights[-2], *seen[own + depth :]), right.spec.stream)
    return Compute(MATMUL, (left, right), spec, {"depth": depth, "columns": columns})


def _contracts_stream(left: Any, right: Any) -> bool:
    """Check whether the product runs over the stream axis."""
    if left.spec.is_stream:
        return bool(left.ndim == 1 and 1 <= right.ndim <= 2)
    return bool(right.spec.is_stream and right.ndim <= 2 and 1 <= left.ndim <= 2)


def _check_columns(left: Any, right: Any) -> None:
    """Refuse a left operand that has other columns than the right one has rows, where both are known."""
    columns, rows = left.shape[-1], right.shape[0]
    if None not in (columns, rows) and columns != rows:
        raise SpecError(
            "cannot multiply matrices whose inner sizes differ",
            element="matmul",
            site=user_site(),
            expected=f"{columns} rows on the right, as there are columns on the left",
            got=f"{format_shape(left.shape)} @ {format_shape(right.shape)}",
        )


def _transposed_matmul(x1: TransposedStream, x2: Operand, dtype: npt.DTypeLike | None) -> Compute:
    """Return `X.T @ Y`, a fold over the stream."""
    left, right, result = _operands_in(x1.base, x2, dtype)
    left, right = cast(left, _wide(result)), cast(right, _wide(result))
    if x1.ndim != 2 or not 1 <= right.ndim <= 2:
        raise SpecError(
            "cannot multiply a transposed stream by this",
            element="matmul",
            site=user_site(),
            expected="a transposed stream of rows times a matrix or a vector",
            got=f"{format_shape(x1.shape)} @ {format_shape(right.shape)}",
        )
    return _products(left, left if x2 is x1.base else right, result)


def _products(left: Any, right: Any, result: np.dtype) -> Compute:
    """Sum the products of the records of both over the stream: numbers, rows or matrices."""
    stream = left if left.spec.is_stream else right
    if left.ndim == right.ndim == 1:
        return cast(vecdot(left, right), result)  # type: ignore[return-value]
    inputs = (cut_along("matmul", left, stream), cut_along("matmul", right, stream))
    common_length("matmul", list(inputs))
    shape = (*inputs[0].spec.shape, *inputs[1].spec.shape)
    total = Compute(MATMUL_FOLD, inputs[:1] if left is right else inputs, Spec(left.dtype, shape))
    return cast(total, result)  # type: ignore[return-value]


def product_of_rows(left: Any, right: Any) -> Compute:
    """Return the sum over records of `A.T @ B`, whose rows count as if they were records of their own.

    Args:
        left, right: streams of matrices (rows, a) and (rows, b) of one dtype of numbers; may be the same.

    Returns:
        A resident matrix (a, b), of the dtype of both.

    Raises:
        SpecError: if they are something else.
    """
    shapes = [one.spec.shape for one in (left, right)]
    alike = left.dtype == right.dtype and shapes[0][:1] == shapes[1][:1]
    streams = left.spec.is_stream and right.spec.is_stream and left.ndim == right.ndim == 3
    if not (alike and streams) or left.dtype == BOOL or _wide(left.dtype) != left.dtype:
        raise SpecError(
            "cannot sum products of rows",
            element="matmul",
            site=user_site(),
            expected="two streams of matrices with as many rows, of integers, float32 or float64",
            got=f"{left.spec} and {right.spec}",
        )
    common_length("matmul", [left, right])
    spec = Spec(left.dtype, (shapes[0][1], shapes[1][1]))
    return Compute(MATMUL_FOLD, (left,) if left is right else (left, right), spec)


def cut_along(op: str, operand: Any, stream: Any) -> Any:
    """Return a stream as it is, and a resident value as the stream of its rows, beside `stream`.

    Raises:
        SpecError: if it has other rows than `stream` has records.
    """
    if operand.spec.is_stream:
        return operand
    length = stream.spec.length
    if operand.ndim and length in (None, operand.shape[0]):
        return Compute(ALONG, (operand,), Spec(operand.dtype, operand.shape[1:], Stream(operand.shape[0])))
    raise SpecError(
        "cannot align a resident operand with the stream",
        element=op,
        site=user_site(),
        expected=f"{length} rows, as the stream has records",
        got=format_shape(operand.shape),
    )


def _along_stream(left: Any, right: Any) -> tuple[Any, Any]:
    """Cut a resident stack of matrices along a stream of as many matrices."""
    for stream, resident in ((left, right), (right, left)):
        if stream.spec.is_stream and not resident.spec.is_stream and stream.ndim > 2 and resident.ndim >= stream.ndim:
            aligned = align_resident("matmul", resident, stream, stream.spec.length)
            return (aligned, right) if resident is left else (left, aligned)
    return left, right


def _matmul_shape(left: Any, right: Any) -> tuple[tuple[int, ...], Stream | None]:
    """Return item shape and stream of the product."""
    both = f"{format_shape(left.shape)} @ {format_shape(right.shape)}"
    if left.ndim == 0 or right.ndim == 0:
        raise SpecError(
            "cannot multiply numbers as matrices",
            element="matmul",
            site=user_site(),
            expected="matrices or vectors",
            got=both,
        )
    left_stream, right_stream = left.spec.is_stream, right.spec.is_stream
    if (right_stream and right.ndim < 3) or (left_stream and left.ndim == 1):
        raise SpecError(
            "cannot contract the stream axis with another one",
            element="matmul",
            site=user_site(),
            expected="a product that contracts axes of items, or the stream axis of both",
            got=both,
            hint="X.T @ Y contracts the stream axis of both; a stream of rows multiplies a resident matrix: X @ W",
        )
    if left_stream and right_stream and left.ndim != right.ndim:
        raise SpecError("cannot align streams of unequal rank", element="matmul", site=user_site(), got=both)
    a, b = left.shape, right.shape
    inner_b = b[-2] if right.ndim > 1 else b[0]
    if a[-1] != inner_b:
        raise SpecError(
            "cannot multiply matrices whose inner sizes differ",
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
                "cannot multiply a stream of rows by a stack of matrices",
                element="matmul",
                site=user_site(),
                expected="one matrix on the right",
                got=both,
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
        raise SpecError(
            "cannot broadcast stacks of matrices",
            element="matmul",
            site=user_site(),
            expected="stacks that broadcast",
            got=both,
        ) from error
