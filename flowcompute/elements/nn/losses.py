"""Losses: how far predictions are from what was to be predicted; one kernel each, and folds where they are reduced."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from flowcompute.elements.arguments import real, whole
from flowcompute.elements.axes import broadcast_to, expand_dims
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.math import (
    abs,
    equal,
    exp,
    greater_equal,
    less,
    log,
    log1p,
    logical_and,
    maximum,
    mean,
    square,
    subtract,
    sum,
    where,
)
from flowcompute.elements.nn.floating import as_floats, checked_axes
from flowcompute.elements.nn.softmax import below_largest
from flowcompute.elements.op import MOST
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import INT64, format_shape

Reduction = Literal["mean", "sum"] | None
"""The fate of losses: None leaves them, "mean" and "sum" take all of them together, the stream too."""


@public
def cross_entropy(logits: Operand, labels: Operand, axis: int = -1, reduction: Reduction = None) -> Compute:
    """Return -log(softmax(logits))[label], computed as log(sum(exp(y))) - y[label] with y = logits - max(logits).

    Args:
        logits: scores of the classes along `axis`, of any float or integer dtype.
        labels: which class is right: integers from 0, of the shape of `logits` without `axis`.
        axis: of the classes; not the stream.
        reduction: see `Reduction`; the mean of nothing is NaN.

    Returns:
        Losses of the shape of `labels`, or one resident number; dtypes as for `softmax`. The loss of a label that is no
        class is NaN. So is that of scores with NaN or plus infinity, or of nothing but minus infinity.

    Raises:
        SpecError: if labels are no integers or of another shape, or `axis` is the stream or empty.
    """
    (value,), result = as_floats("cross_entropy", logits)
    right = as_element(labels, "cross_entropy")
    axes = checked_axes("cross_entropy", value, whole("cross_entropy", "axis", axis, -MOST))
    if value.spec.is_stream and axes == (0,):
        raise SpecError(
            "cannot find classes inside items",
            element="cross_entropy",
            site=user_site(),
            expected="an axis of items",
            got="axis 0, the stream",
        )
    rest = tuple(size for at, size in enumerate(value.shape) if at != axes[0])
    # Lengths of streams are compared where they meet: one may be unknown.
    inner = slice(1 if value.spec.is_stream else 0, None)
    alike = right.spec.is_stream == value.spec.is_stream and right.ndim == len(rest)
    if right.dtype.kind not in "iu" or not alike or right.shape[inner] != rest[inner]:
        raise SpecError(
            "cannot take these labels",
            element="cross_entropy",
            site=user_site(),
            expected=f"int64{format_shape(rest)}",
            got=str(right.spec),
            hint="of one number a class take fc.argmax(labels, axis=1)" if right.ndim == value.ndim else None,
        )
    count = value.shape[axes[0]]
    places = np.arange(count).reshape(-1, *(1,) * (value.ndim - axes[0] - 1))
    # Spread by strides of 0 first: labels of fewer numbers than the scores would be computed in a kernel of their own.
    lead = -1 if value.spec.is_stream else value.shape[0]
    label = cast(broadcast_to(expand_dims(right, axes[0]), (lead, *value.shape[1:])), INT64)
    known = logical_and(greater_equal(label, 0), less(label, count))
    y = below_largest(value, axes)
    chosen = where(known, where(equal(label, places), y, 0), math.nan)
    loss = subtract(log(sum(exp(y), axes)), sum(chosen, axes))
    return _reduced("cross_entropy", loss, reduction, result)


@public
def binary_cross_entropy(logits: Operand, labels: Operand, reduction: Reduction = None) -> Compute:
    """Return -(p log sigmoid(x) + (1 - p) log(1 - sigmoid(x))) for scores x and labels p in [0, 1], element by element.

    Computed as max(x, 0) - x p + log(1 + exp(-|x|)), which does not overflow; infinite scores
    give NaN or infinity. Operands broadcast and promote.

    Args:
        logits: scores before the sigmoid.
        labels: 0, 1, or probabilities between.
        reduction: see `Reduction`.
    """
    (x, p), result = as_floats("binary_cross_entropy", logits, labels)
    return _reduced("binary_cross_entropy", maximum(x, 0) - x * p + log1p(exp(-abs(x))), reduction, result)


@public
def mse(x: Operand, target: Operand, reduction: Reduction = None) -> Compute:
    """Return (x - target)^2, element by element; its "mean" is the mean squared error. Operands broadcast.

    Args:
        x, target: elements of numbers.
        reduction: see `Reduction`.

    Raises:
        SpecError: for another reduction, or operands that do not fit.
    """
    (value, wanted), result = as_floats("mse", x, target)
    return _reduced("mse", square(subtract(value, wanted)), reduction, result)


@public
def huber(x: Operand, target: Operand, delta: float = 1.0, reduction: Reduction = None) -> Compute:
    """Return d^2 / 2 where d = |x - target| is at most delta, else delta (d - delta / 2). Operands broadcast.

    Huber, "Robust estimation of a location parameter" (1964).
    """
    (value, wanted), result = as_floats("huber", x, target)
    delta = real("huber", "delta", delta)
    d = abs(subtract(value, wanted))
    loss = where(d <= delta, square(d) * 0.5, (d - delta * 0.5) * delta)
    return _reduced("huber", loss, reduction, result)


def _reduced(name: str, loss: Any, reduction: Reduction, result: np.dtype) -> Compute:
    if reduction is not None and not (isinstance(reduction, str) and reduction in ("mean", "sum")):
        raise SpecError(
            "cannot take reduction=",
            element=name,
            site=user_site(),
            expected='None, "mean" or "sum"',
            got=short_repr(reduction),
        )
    over = {"mean": mean, "sum": sum}
    return cast(loss if reduction is None else over[reduction](loss), result)  # type: ignore[return-value]
