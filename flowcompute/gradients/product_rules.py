"""Gradients of products of matrices, of windows and of attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowcompute.elements import Compute
from flowcompute.elements.axes import expand_dims, matrix_transpose, repeat, reshape
from flowcompute.elements.math import divide, exp, matmul, maximum, multiply, subtract, sum, vecdot, where
from flowcompute.elements.math import max as max_along
from flowcompute.gradients.cotangents import full, summed_to
from flowcompute.gradients.rules import Contribution, Equivalent, refused, rule
from flowcompute.spec import BOOL


@rule("contract.matmul")
def _matmul(node: Compute, g: Any) -> tuple[Contribution, ...]:
    left, right = node.inputs
    cotangent = full(node, g)
    if "depth" in node.attrs:
        return _of_windows(node, left, right, cotangent)
    if len(left.spec.shape) > 1:
        return _stacked(left, right, cotangent)
    if len(right.spec.shape) > 2:
        # One vector times stacks of matrices.
        of_left, of_right = _stacked(expand_dims(left, 0), right, expand_dims(cotangent, -2))
        return reshape(of_left, left.spec.shape), of_right
    rows = left.spec.is_stream
    turned = matrix_transpose(right)
    if right.spec.is_stream and not rows:
        # One vector times a stream of matrices.
        of_left = sum(vecdot(expand_dims(cotangent, 1), right), 0)
        return of_left, multiply(expand_dims(left, 1), expand_dims(cotangent, 1))
    of_right = matmul(left.T, cotangent) if rows else multiply(expand_dims(left, 1), expand_dims(cotangent, 0))
    return matmul(cotangent, turned), of_right


def _stacked(left: Any, right: Any, cotangent: Any) -> tuple[Any, ...]:
    made = []
    both = (matmul(cotangent, matrix_transpose(right)), matmul(matrix_transpose(left), cotangent))
    for one, product in zip((left, right), both, strict=True):
        made.append(summed_to(one, product, product.spec.shape, product.spec.is_stream, product))
    return tuple(made)


def _of_windows(node: Compute, left: Any, right: Any, cotangent: Any) -> tuple[Contribution, ...]:
    depth, columns = node.attrs["depth"], node.attrs["columns"]
    lead = (-1,) if node.spec.is_stream else ()
    seen = right.spec.shape
    own = seen[: len(seen) - depth - columns]
    inner, places = math.prod(seen[len(own) : len(own) + depth]), math.prod(seen[len(own) + depth :])
    flat = reshape(cotangent, (*lead, *cotangent.spec.shape[: len(cotangent.spec.shape) - columns], places))
    matrix = reshape(right, (*lead, *own, inner, places))
    of_left = matmul(flat, matrix_transpose(matrix))
    of_right = matmul(matrix_transpose(left), flat)
    windows = reshape(
        summed_to(matrix, of_right, of_right.spec.shape, of_right.spec.is_stream, of_right), (*lead, *seen)
    )
    return summed_to(left, of_left, of_left.spec.shape, of_left.spec.is_stream, of_left), windows


@rule("contract.attention")
def _attention(node: Compute, g: Any) -> Equivalent:
    """Compute the weights of keys again; queries times keys of them are stored for each head."""
    q, k, v, *mask = node.inputs
    heads, kv_heads = (one.spec.shape[-3] if len(one.spec.shape) > 2 else 1 for one in (q, k))
    if heads != kv_heads:
        k, v = (repeat(one, heads // kv_heads, axis=one.ndim - 3) for one in (k, v))
    scores = matmul(q, matrix_transpose(k)) * node.attrs["scale"]
    queries, keys = q.spec.shape[-2], k.spec.shape[-2]
    seen = _seen(queries, keys, node.attrs["causal"], node.attrs["window"])
    if mask:
        scores = where(mask[0], scores, -np.inf) if mask[0].dtype == BOOL else scores + mask[0]
    scores = scores if seen.all() else where(seen, scores, -np.inf)
    highest = max_along(scores, axis=-1, keepdims=True)
    weights = where(highest == -np.inf, 0.0, exp(subtract(scores, where(highest == -np.inf, 0.0, highest))))
    total = sum(weights, axis=-1, keepdims=True)
    return Equivalent(matmul(divide(weights, maximum(total, np.finfo(np.float32).tiny)), v))


def _seen(queries: int, keys: int, causal: bool, window: int | None) -> np.ndarray:
    last = np.arange(queries)[:, None] + (keys - queries)
    key = np.arange(keys)
    seen = (key <= last) if causal else np.ones((queries, keys), bool)
    return seen if window is None else seen & (key > last - window)


refused(
    "contract",
    "experts",
    "products with matrices that all records share",
    "fc.where(chosen == i, x @ w[i], 0) for each i",
)
