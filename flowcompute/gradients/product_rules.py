"""Gradients of products of matrices and of windows."""

from __future__ import annotations

import math
from typing import Any

from flowcompute.elements import CAST, Compute
from flowcompute.elements.axes import (
    PERMUTE,
    expand_dims,
    flip,
    matrix_transpose,
    pad,
    permute_dims,
    reshape,
)
from flowcompute.elements.math import matmul, multiply, product_of_rows, product_of_windows, sum, vecdot
from flowcompute.elements.nn import WINDOWS, implicit_convolution
from flowcompute.gradients.cotangents import full, summed_to, wide
from flowcompute.gradients.rules import Contribution, Through, refused, rule


@rule("contract.matmul")
def _matmul(node: Compute, g: Any) -> tuple[Contribution, ...]:
    left, right = node.inputs
    cotangent = full(node, g)
    if "depth" in node.attrs:
        return _of_windows(node, left, right, cotangent)
    factor = as_factor(left, right, cotangent)
    if len(left.spec.shape) > 1:
        return _stacked(left, right, factor)
    if len(right.spec.shape) > 2:
        # One vector times stacks of matrices.
        of_left, of_right = _stacked(expand_dims(left, 0), right, expand_dims(factor, -2))
        return reshape(of_left, left.spec.shape), of_right
    rows = left.spec.is_stream
    turned = matrix_transpose(right)
    if right.spec.is_stream and not rows:
        # One vector times a stream of matrices.
        of_left = sum(vecdot(expand_dims(cotangent, 1), right), 0, dtype=wide(node.dtype))
        return of_left, multiply(expand_dims(left, 1), expand_dims(cotangent, 1))
    of_right = (
        matmul(left.T, cotangent, dtype=wide(node.dtype))
        if rows
        else multiply(expand_dims(left, 1), expand_dims(cotangent, 0))
    )
    return matmul(factor, turned, dtype=cotangent.dtype), of_right


def as_factor(left: Any, right: Any, cotangent: Any) -> Any:
    """Return the value of a half format that a cotangent was widened from, where both operands have that format.

    A product of halves is summed in float32 and rounded. So its cotangent has been rounded, too, and widened again.
    Products of two halves have the same numbers, and tensor cores multiply them.
    """
    if not isinstance(cotangent, Compute) or cotangent.op is not CAST or wide(left.dtype) != cotangent.dtype:
        return cotangent
    narrow = cotangent.inputs[0]
    return narrow if left.dtype == right.dtype == narrow.dtype else cotangent


def _stacked(left: Any, right: Any, cotangent: Any) -> tuple[Any, ...]:
    if _is_shared(left, right) and wide(left.dtype) == left.dtype == cotangent.dtype:
        # One matrix for all records: nothing is stored of each.
        return matmul(cotangent, matrix_transpose(right)), product_of_rows(left, cotangent)
    made = []
    dtype = wide(cotangent.dtype)
    both = (
        matmul(cotangent, matrix_transpose(right), dtype=dtype),
        matmul(matrix_transpose(left), cotangent, dtype=dtype),
    )
    for one, product in zip((left, right), both, strict=True):
        made.append(summed_to(one, product, product.spec.shape, product.spec.is_stream, product))
    return tuple(made)


def _is_shared(left: Any, right: Any) -> bool:
    """Check whether a stream of matrices is multiplied by one matrix."""
    return left.spec.is_stream and left.ndim == 3 and not right.spec.is_stream and right.ndim == 2


def _of_windows(node: Compute, left: Any, right: Any, cotangent: Any) -> tuple[Contribution, ...]:
    """Read the windows where they lie, once with places as the inner axes."""
    depth, columns = node.attrs["depth"], node.attrs["columns"]
    lead = (-1,) if node.spec.is_stream else ()
    seen = right.spec.shape
    own = len(seen) - depth - columns
    places = math.prod(seen[own + depth :])
    flat = reshape(cotangent, (*lead, *cotangent.spec.shape[: len(cotangent.spec.shape) - columns], places))
    first = int(right.spec.is_stream)
    turned = [*range(own), *range(own + depth, len(seen)), *range(own, own + depth)]
    by_place = permute_dims(right, (*range(first), *(axis + first for axis in turned)))
    product: Any = product_of_windows(flat, by_place, columns, depth)
    of_left = reshape(product, (*lead, *product.spec.shape[:-depth], math.prod(seen[own : own + depth])))
    of_left = summed_to(left, of_left, of_left.spec.shape, of_left.spec.is_stream, of_left)
    viewed = _convolved_back(left, right, cotangent, depth, columns)
    if viewed is not None:
        return of_left, viewed
    matrix = reshape(right, (*lead, *seen[:own], math.prod(seen[own : own + depth]), places))
    made = matmul(matrix_transpose(left), flat)
    of_right = summed_to(matrix, made, made.spec.shape, made.spec.is_stream, made)
    return of_left, reshape(of_right, (*lead, *seen))


def _convolved_back(left: Any, right: Any, cotangent: Any, depth: int, columns: int) -> Through | None:
    """Return the cotangent of what windows at step 1 are read from: that of the result, convolved with turned weights.

    No windows are stored for it. At larger steps most of what is multiplied would be 0; then None.
    """
    view = right.inputs[0] if isinstance(right, Compute) and right.op is PERMUTE else None
    if not isinstance(view, Compute) or view.op is not WINDOWS or depth != columns + 1:
        return None
    if left.spec.is_stream or not right.spec.is_stream:
        return None
    windows = view.attrs["windows"]
    axes = len(view.inputs[0].spec.shape) - columns
    expected = tuple(axes + i for i in range(columns))
    if tuple(one[0] for one in windows) != expected or any(step != 1 for _, _, step, _ in windows):
        return None
    items, sizes = view.inputs[0], [size for _, size, _, _ in windows]
    spreads = [spread for _, _, _, spread in windows]
    stack, rows = left.spec.shape[:-2], left.spec.shape[-2]
    groups = math.prod(stack)
    channels = items.spec.shape[axes - 1]
    if items.spec.shape[: axes - 1] != stack or len(stack) > 1:
        return None
    weights = reshape(left, (groups, rows, channels, *sizes))
    weights = permute_dims(weights, (0, 2, 1, *range(3, 3 + columns)))
    weights = flip(reshape(weights, (groups * channels, rows, *sizes)), axis=tuple(range(2, 2 + columns)))
    images = reshape(cotangent, (-1, groups * rows, *cotangent.spec.shape[-columns:]))
    edges = [((size - 1) * spread,) * 2 for size, spread in zip(sizes, spreads, strict=True)]
    padded = pad(images, [*[(0, 0)] * (len(images.spec.shape) - columns), *edges])
    made = implicit_convolution("grad", padded, weights, None, (1,) * columns, spreads, groups)
    return Through(items, reshape(made, (-1, *items.spec.shape)))


refused(
    "contract",
    "experts",
    "products with matrices that all records share",
    "fc.where(chosen == i, x @ w[i], 0) for each i",
)
