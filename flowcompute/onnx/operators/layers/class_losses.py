"""Losses of classes: the score of the class that was right."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import APART, Value
from flowcompute.onnx.operators.record import NodeCall, Operator
from flowcompute.onnx.problems import Refusal

REDUCTIONS = ("none", "mean", "sum")


def _loss(call: NodeCall, scores: Value) -> Value:
    """Return minus the logarithms of (N, C, *sizes) at the targets (N, *sizes), weighted and reduced."""
    targets, weight = call[1], call.get(2)
    how = call.choice("reduction", REDUCTIONS)
    if scores.axis != targets.axis or scores.axis not in (None, 0):
        raise Refusal("batch axis", "scores and targets do not advance together", APART)
    if scores.axis is not None and how != "none":
        raise Refusal("batch axis", "a loss of all records together", 'use reduction="none", and reduce the result')
    x, wanted = scores.element, targets.element
    classes = np.arange(scores.size(1)).reshape(-1, *(1,) * (scores.ndim - 2)).astype(targets.dtype)
    is_own = fc.equal(fc_axes.expand_dims(wanted, 1), classes)
    made = fc.negative(fc.sum(fc.where(is_own, x, 0), 1, dtype=x.dtype))
    ignored = call.attribute("ignore_index")
    weights: Any = None
    if weight is not None:
        lined = fc_axes.reshape(weight.resident("weight"), (-1, *(1,) * (scores.ndim - 2)))
        weights = fc.sum(fc.where(is_own, lined, 0), 1, dtype=x.dtype)
    if ignored is not None:
        counts = fc.not_equal(wanted, ignored)
        weights = fc.where(counts, 1 if weights is None else weights, 0)
        weights = fc.astype(weights, x.dtype)
    if weights is not None:
        made = fc.multiply(made, weights)
    if how == "sum":
        return Value.of(fc.sum(made, dtype=x.dtype))
    if how == "mean" and weights is not None:
        return Value.of(fc.divide(fc.sum(made, dtype=x.dtype), fc.sum(weights, dtype=x.dtype)))
    return Value.of(fc.mean(made)) if how == "mean" else scores.like(made)


def _likelihood(call: NodeCall) -> Value:
    return _loss(call, call[0])


def _cross_entropy(call: NodeCall) -> Any:
    scores = call[0]
    scores.batch_first("compare")
    logarithms = scores.like(nn.log_softmax(scores.element, 1))
    made = _loss(call, logarithms)
    return (made, logarithms) if call.wants(1) else made


_LOSS = {"ignore_index": None, "reduction": "mean"}

OPERATORS: tuple[Operator, ...] = (
    Operator("NegativeLogLikelihoodLoss", _likelihood, 12, attributes=_LOSS),
    Operator("SoftmaxCrossEntropyLoss", _cross_entropy, 12, attributes=_LOSS),
)
