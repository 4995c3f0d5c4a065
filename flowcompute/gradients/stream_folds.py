"""Gradients of folds: what each record adds to a result."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements import Compute, Constant, cast
from flowcompute.elements.axes import expand_dims, matrix_transpose, take
from flowcompute.elements.math import (
    argmax,
    argmin,
    divide,
    equal,
    isnan,
    logical_or,
    matmul,
    maximum,
    mean,
    multiply,
    prod,
    reciprocal,
    sqrt,
    subtract,
    sum,
    vecdot,
    where,
)
from flowcompute.elements.products import outer
from flowcompute.elements.streams import bincount, cov, segment_min, top_k
from flowcompute.gradients.cotangents import beside, count_of, full, is_number, positions, summed_to, times
from flowcompute.gradients.rules import Contribution, Equivalent, Scaled, no_gradient, refused, rule


def _item(node: Compute, g: Any) -> Any:
    """Return the cotangent of a fold beside the items of the stream."""
    if is_number(g) or not node.attrs.get("keepdims", False):
        return g
    return full(node, g)[0]


@rule("fold.sum")
def _sum(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (_item(node, g),)


@rule("fold.mean")
def _mean(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    return (Scaled(reciprocal(count_of(x, node.dtype)), _item(node, g)),)


@rule("fold.var")
def _var(node: Compute, g: Any) -> tuple[Contribution, ...]:
    x, *rest = node.inputs
    inner = float(node.attrs["inner"])
    count = maximum(multiply(count_of(x, node.dtype), inner) - node.attrs["correction"], 0.0)
    centred = subtract(x, mean(x, 0))
    made = times(_item(node, g), centred * (2.0 * inner))
    return tuple(Scaled(reciprocal(count), one) for one in (made, *(_item(node, g) * inner for _ in rest)))


@rule("fold.max", "fold.min")
def _extreme(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Give all of it to the first of equal records."""
    (x,) = node.inputs
    at = (argmax if node.op.name == "max" else argmin)(x, 0)
    return (where(equal(beside(positions(x), x), at), _item(node, g), 0.0),)


@rule("fold.prod")
def _prod(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    zero = equal(x, 0.0)
    known = where(zero, 1.0, x)
    others, zeros = prod(known, 0), sum(zero, 0)
    alone = where(equal(zeros, 1), others, 0.0)
    slopes = where(zero, alone, where(equal(zeros, 0), divide(others, known), 0.0))
    return (times(_item(node, g), slopes),)


@rule("fold.first")
def _first(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    cut_off = isinstance(x, Compute) and x.op.kept_name == "rebatch.section" and x.attrs["stop"] == x.attrs["start"] + 1
    return (g if cut_off or x.spec.length == 1 else where(equal(beside(positions(x), x), 0), g, 0.0),)


@rule("fold.last")
def _last(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    return (where(equal(beside(positions(x), x), count_of(x, np.dtype("int64")) - 1), g, 0.0),)


@rule("fold.top_k_values")
def _top_k(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    _, at = top_k(x, node.spec.shape[0])
    hits = equal(expand_dims(positions(x), 1), at)
    return (sum(where(hits, g, np.zeros((), node.dtype)), axis=1),)


@rule("fold.cov")
def _cov(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    count = maximum(count_of(x, node.dtype) - node.attrs["correction"], 0.0)
    centred = subtract(cast(x, node.dtype), mean(cast(x, node.dtype), 0))
    cotangent = full(node, g)
    if x.ndim == 1:
        return (Scaled(reciprocal(count), centred * (cotangent * 2.0)),)
    return (Scaled(reciprocal(count), matmul(centred, cotangent + matrix_transpose(cotangent))),)


@rule("fold.corrcoef")
def _corrcoef(node: Compute, g: Any) -> tuple[Contribution, ...] | Equivalent:
    (x,) = node.inputs
    if x.ndim == 1:
        return (times(g, subtract(x, x)),)
    covariance = cov(x)
    scale = reciprocal(sqrt(sum(multiply(covariance, np.eye(x.spec.shape[0])), 1)))
    return Equivalent(multiply(covariance, outer(scale, scale)))


@rule("fold.vecdot")
def _vecdot(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    both = multiply(a, b)
    pairs = ((a, times(_item(node, g), b)), (b, times(_item(node, g), a)))
    return tuple(summed_to(one, made, both.spec.shape, True, both) for one, made in pairs)


@rule("fold.matmul")
def _matmul(node: Compute, g: Any) -> tuple[Contribution, ...]:
    cotangent = full(node, g)
    if len(node.inputs) == 1:
        (x,) = node.inputs
        return (_times_rows(x, cotangent + matrix_transpose(cotangent), x),)
    left, right = node.inputs
    turned = matrix_transpose(cotangent) if left.ndim == right.ndim >= 2 else cotangent
    return _times_rows(right, turned, left), _times_rows(left, cotangent, right)


def _times_rows(rows: Any, cotangent: Any, like: Any) -> Any:
    """Multiply the records of one operand by the cotangent, which gives records of the other."""
    if rows.ndim == 1:
        return multiply(rows if like.ndim == 1 else expand_dims(rows, 1), cotangent)
    return matmul(rows, cotangent) if like.ndim >= 2 else vecdot(rows, cotangent)


# -- by key -----------------------------------------------------------------------------------------------------------


@rule("fold.segment_sum")
def _segment_sum(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return take(full(node, g), node.inputs[1], 0), None


@rule("fold.segment_mean")
def _segment_mean(node: Compute, g: Any) -> tuple[Contribution, ...]:
    keys = node.inputs[1]
    counts = cast(maximum(bincount(keys, node.spec.shape[0]), 1), node.dtype)
    lined_up = expand_dims(counts, tuple(range(1, node.ndim))) if node.ndim > 1 else counts
    return take(divide(full(node, g), lined_up), keys, 0), None


@rule("fold.segment_max", "fold.segment_min")
def _segment_extreme(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Give all of it to the first record of a key that has the extreme."""
    x, keys = node.inputs
    number = node.spec.shape[0]
    extreme = take(node, keys, 0)
    here = logical_or(equal(x, extreme), isnan(x))
    at = beside(positions(x), x)
    first = segment_min(where(here, at, Constant(np.int64(np.iinfo(np.int64).max))), keys, number)
    return where(equal(take(first, keys, 0), at), take(full(node, g), keys, 0), 0.0), None


no_gradient("fold", "all any argmax argmin bincount histogram top_k_indices unique_counts")
refused("fold", "trained", "values that no training gives", "differentiate a loss of its own")
refused(
    "fold",
    "quantile unique_values",
    "folds that depend smoothly on their records",
    "fc.mean, or fc.segment_mean by key",
)
