"""Gradients of reductions and of scans along axes of items."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowcompute.elements import Compute
from flowcompute.elements.axes import concat, flip, permute_dims, reshape
from flowcompute.elements.creation import ones_like, zeros_like
from flowcompute.elements.math import argmax, argmin, equal, greater, multiply, where
from flowcompute.elements.math import less as less_than
from flowcompute.elements.streams import (
    cumulative_max,
    cumulative_min,
    cumulative_prod,
    cumulative_sum,
    linear_recurrence,
)
from flowcompute.gradients.cotangents import full, kept_axes, summed_to, times
from flowcompute.gradients.rules import Contribution, no_gradient, refusal, refused, rule

ALONG_THE_STREAM = "an operation along an axis of items: along the stream it would run backwards"
CUT = "fc.cut(x, every=T) makes items of T records, over which gradients run (truncated back-propagation)"


def _expanded(node: Compute, g: Any) -> Any:
    """Return the cotangent of a reduction with the axes that were reduced, of size 1."""
    return g if node.attrs["keepdims"] else kept_axes(g, node.attrs["axes"])


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """Return a value with these item axes as one, the last."""
    lead = int(x.spec.is_stream)
    rest = [axis for axis in range(len(x.spec.shape)) if axis not in axes]
    order = [*range(lead), *(axis + lead for axis in (*rest, *axes))]
    sizes = [x.spec.shape[axis] for axis in rest]
    length = math.prod(x.spec.shape[axis] for axis in axes)
    return reshape(permute_dims(x, order), (*[-1] * lead, *sizes, length))


def _from_rows(rows: Any, like: Any, axes: tuple[int, ...]) -> Any:
    """Undo `_rows`."""
    lead, shape = int(like.spec.is_stream), like.spec.shape
    order = [*(axis for axis in range(len(shape)) if axis not in axes), *axes]
    parted = reshape(rows, (*[-1] * lead, *(shape[axis] for axis in order)))
    return permute_dims(parted, [*range(lead), *(order.index(axis) + lead for axis in range(len(shape)))])


@rule("reduce.sum")
def _sum(node: Compute, g: Any) -> tuple[Contribution, ...]:
    return (_expanded(node, g),)


@rule("reduce.max", "reduce.min")
def _extreme(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Give all of it to the first of equal numbers."""
    (x,) = node.inputs
    axes = node.attrs["axes"]
    if not axes:
        return (g,)
    rows = _rows(x, axes)
    at = (argmax if node.op.name == "max" else argmin)(rows, axis=-1, keepdims=True)
    first = _from_rows(equal(np.arange(rows.spec.shape[-1]), at), x, axes)
    return (where(first, _expanded(node, g), 0.0),)


def _product_slopes(rows: Any) -> Any:
    """Return the products of all other numbers of rows.

    Those before times those behind: no division, so that numbers of 0 have second derivatives too.
    """
    axis = rows.ndim - 1
    before = cumulative_prod(rows, axis, exclusive=True)
    behind = flip(cumulative_prod(flip(rows, axis=axis), axis, exclusive=True), axis=axis)
    return multiply(before, behind)


@rule("reduce.prod")
def _prod(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    axes = node.attrs["axes"]
    if not axes:
        return (g,)
    slopes = _from_rows(_product_slopes(_rows(x, axes)), x, axes)
    return (times(_expanded(node, g), slopes),)


@rule("reduce.vecdot")
def _vecdot(node: Compute, g: Any) -> tuple[Contribution, ...]:
    expanded, (a, b) = _expanded(node, g), node.inputs
    both = multiply(a, b)
    shape, in_stream = both.spec.shape, both.spec.is_stream
    return tuple(summed_to(one, times(expanded, other), shape, in_stream, both) for one, other in ((a, b), (b, a)))


no_gradient("reduce", "all any argmax argmin")


# -- scans ------------------------------------------------------------------------------------------------------------


def _axis(node: Compute) -> int:
    """Return the axis of a scan along items.

    Raises:
        SpecError: if it runs along the stream.
    """
    if node.attrs["axis"] is None:
        raise refusal(node, ALONG_THE_STREAM, CUT)
    return int(node.attrs["axis"]) + node.spec.is_stream


def _shifted(x: Any, axis: int, first: Any) -> Any:
    """Move numbers one place on along an axis; `first` has the numbers that come in, with the axis of size 1."""
    keys = [slice(None)] * x.ndim
    keys[axis] = slice(0, -1)
    return concat([first, x[tuple(keys)]], axis=axis)


def _end(x: Any, axis: int) -> Any:
    keys = [slice(None)] * x.ndim
    keys[axis] = slice(0, 1)
    return x[tuple(keys)]


def _backwards(factors: Any, g: Any, axis: int) -> Any:
    """Run h[t] = g[t] + factors[t + 1] * h[t + 1] from the end."""
    turned = flip(factors, axis=axis)
    moved = _shifted(turned, axis, zeros_like(_end(turned, axis)))
    return flip(linear_recurrence(moved, flip(g, axis=axis), axis), axis=axis)


@rule("scan.cumulative_sum")
def _cumulative_sum(node: Compute, g: Any) -> tuple[Contribution, ...]:
    axis = _axis(node)
    exclusive = bool(node.attrs.get("exclusive", False))
    return (flip(cumulative_sum(flip(full(node, g), axis=axis), axis, exclusive=exclusive), axis=axis),)


@rule("scan.cumulative_prod")
def _cumulative_prod(node: Compute, g: Any) -> tuple[Contribution, ...]:
    (x,) = node.inputs
    axis = _axis(node)
    cotangent = full(node, g)
    if node.attrs.get("exclusive", False):
        # Result t + 1 is what result t of running products with x[t] would be.
        turned = flip(cotangent, axis=axis)
        cotangent = flip(_shifted(turned, axis, zeros_like(_end(turned, axis))), axis=axis)
    before = cumulative_prod(x, axis, exclusive=True)
    return (multiply(_backwards(x, cotangent, axis), before),)


@rule("scan.cumulative_max", "scan.cumulative_min")
def _cumulative_extreme(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Give all to the place at which the extreme was met first."""
    (x,) = node.inputs
    axis, largest = _axis(node), node.op.name == "cumulative_max"
    running = (cumulative_max if largest else cumulative_min)(x, axis)
    before = _shifted(running, axis, _end(running, axis))
    keys = np.arange(x.spec.shape[axis - x.spec.is_stream]).reshape(
        [-1 if i == axis else 1 for i in range(x.ndim)][int(x.spec.is_stream) :]
    )
    new = (greater if largest else less_than)(x, before) | equal(keys, 0)
    kept = where(new, zeros_like(x), ones_like(x))
    return (where(new, _backwards(kept, full(node, g), axis), 0.0),)


@rule("scan.linear_recurrence")
def _linear_recurrence(node: Compute, g: Any) -> tuple[Contribution, ...]:
    a, b = node.inputs
    axis = _axis(node)
    factors = full(node, a)
    adjoint = _backwards(factors, full(node, g), axis)
    before = _shifted(node, axis, zeros_like(_end(node, axis)))
    both = (multiply(adjoint, before), adjoint)
    shape, in_stream = node.spec.shape, node.spec.is_stream
    return tuple(summed_to(one, made, shape, in_stream, node) for one, made in zip((a, b), both, strict=True))


refused("scan", "ema kernel_scan scan selective_scan self_attention text_places", ALONG_THE_STREAM, CUT)
