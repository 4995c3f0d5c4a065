"""Gradients of attention: by kernels that make weights again tile by tile, or by products that store them.

With weights P of values, results O and their cotangent G, the gradients are (Dao et al., "FlashAttention", 2022)

    dV = P^T G,   dS = P * (G V^T - D),   D = sums of rows of G * O,   dQ = scale dS K,   dK = scale dS^T Q

By kernels each is attention whose weights are multiplied by a gate, G V^T - D, before they weigh. For dV and dK keys
take the place of queries. Then weights are exp(score - L), where L is the logarithm of the sum of a query's weights.
D and L are further numbers of queries and keys, so that a gate or a score is one product.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute.elements import Compute, cast
from flowcompute.elements.axes import concat, matrix_transpose, repeat, reshape
from flowcompute.elements.creation import ones_like, stop_gradient
from flowcompute.elements.math import add, divide, exp, log, matmul, maximum, multiply, subtract, sum, where
from flowcompute.elements.math import max as max_along
from flowcompute.elements.nn import (
    PART_SIZE,
    WEIGHED_SIZE,
    as_weighed,
    attention_part,
    key_gradient,
    negated_logarithms,
    query_gradient,
    value_gradient,
    vector_padded,
    visible_keys,
    weighed,
)
from flowcompute.gradients.backward import pulled
from flowcompute.gradients.cotangents import Term, full, summed_to, wide
from flowcompute.gradients.product_rules import as_factor
from flowcompute.gradients.rules import Contribution, Equivalent, rule

_STORED_BYTES = 1 << 22
"""Scores of one record that are stored at a time, where they are more than these for a run of queries."""

_MOST_RUNS = 8
"""Runs of queries: each has kernels of its own."""


@rule("contract.attention")
def _attention(node: Compute, g: Any) -> Equivalent | tuple[Contribution, ...]:
    """Choose kernels where weights are too many to be stored."""
    if "result" in node.attrs:
        q, k, v, *mask = node.inputs
        return Equivalent(_as_products(node, q, k, v, mask, 0, node.spec.shape[-2]))
    q, k, v = node.inputs[:3]
    heads, kv_heads = (one.spec.shape[-3] if len(one.spec.shape) > 2 else 1 for one in (q, k))
    scores_bytes = math.prod(node.spec.shape[:-1]) * k.spec.shape[-2] * node.dtype.itemsize
    sharing = heads // kv_heads
    if not _are_alike(node, q, k, v, sharing):
        return _stored(node, scores_bytes)
    if scores_bytes <= _STORED_BYTES and {one.dtype for one in (q, k, v)} == {wide(node.dtype)}:
        return _by_weights(node, g, sharing)
    if scores_bytes > _STORED_BYTES and _fits(node, q, k, v):
        return _by_kernels(node, g, sharing)
    return _stored(node, scores_bytes)


def _are_alike(node: Compute, q: Any, k: Any, v: Any, sharing: int) -> bool:
    """Check whether operands are of one stack, and all or none of them streams."""
    lead = node.spec.shape[:-2]
    shared = (*lead[:-1], lead[-1] // sharing) if sharing > 1 else lead
    streams = {one.spec.is_stream for one in (q, k, v)} == {node.spec.is_stream}
    return streams and q.spec.shape[:-2] == lead and k.spec.shape[:-2] == v.spec.shape[:-2] == shared


# -- by kernels -------------------------------------------------------------------------------------------------------


def _fits(node: Compute, q: Any, k: Any, v: Any) -> bool:
    """Check whether kernels take operands of one stack: causal ones with as many keys as queries."""
    width = vector_padded(q.spec.shape[-1] + 1) + vector_padded(v.spec.shape[-1] + 1)
    square = k.spec.shape[-2] == node.spec.shape[-2] or not node.attrs["causal"]
    return square and width <= WEIGHED_SIZE and 0 not in (*q.spec.shape, *v.spec.shape)


def _by_kernels(node: Compute, g: Any, sharing: int) -> tuple[Contribution, ...]:
    seen = {"causal": node.attrs["causal"], "window": node.attrs["window"]}
    cotangent, scale = full(node, g), node.attrs["scale"]
    shift = multiply(sum(multiply(cotangent, node), -1, keepdims=True), -1.0)
    q, k, v, *mask = node.inputs
    if sharing > 1:
        k, v = (repeat(one, sharing, axis=one.ndim - 3) for one in (k, v))
    half = as_factor(q, v, cotangent)
    added = cast(mask[0], node.dtype) if mask else None
    if half is not cotangent and _are_parts(node, q, v):
        attrs = {**seen, "scale": scale, "mask": added}
        made = _by_parts(q, k, v, half, shift, sharing, attrs)
        return (*made, *_of_mask(node, g))
    q, k, v = (cast(one, node.dtype) for one in (q, k, v))
    scaled = multiply(q, scale)
    sums = weighed(scaled, k, ones_like(k[..., :1]), added, **seen, gate=0, result="log")
    less, turned = negated_logarithms(sums), None if added is None else matrix_transpose(added)
    of_q = query_gradient(scaled, k, v, cotangent, shift, added, **seen)
    of_v = value_gradient(scaled, k, cotangent, less, turned, **seen)
    of_k = key_gradient(scaled, k, v, cotangent, less, shift, turned, **seen)
    of_k, of_v = (_of_shared(one, sharing) for one in (of_k, of_v))
    return multiply(of_q, scale), of_k, of_v, *_of_mask(node, g)


def _of_mask(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Return the gradient of the mask, if there is one. A mask that is learnt is as large as all scores."""
    if len(node.inputs) < 4:
        return ()
    terms = pulled(_stored(node, 0).value, [Term(None, g)], node.inputs[3:]).get(id(node.inputs[3]), [])
    parts = [one.value if one.scale is None else multiply(one.value, one.scale) for one in terms]
    return (functools.reduce(add, parts) if parts else None,)


def _are_parts(node: Compute, q: Any, v: Any) -> bool:
    """Check whether tensor cores take heads of this size, and the scale."""
    return bool(max(q.spec.shape[-1], v.spec.shape[-1]) <= PART_SIZE and node.attrs["scale"] > 0)


def _by_parts(
    q: Any, k: Any, v: Any, cotangent: Any, shift: Any, sharing: int, attrs: dict[str, Any]
) -> tuple[Contribution, ...]:
    """Return the gradients of halves whose result was rounded, by kernels that multiply halves."""
    less = negated_logarithms(attention_part("log", q, k, **attrs))
    operands = q, k, v, cotangent, less, shift
    both: Any = attention_part("keys", *operands, **attrs)
    # Rounded by the kernel that makes both. Views of what others round would be stored in float32.
    both = both if sharing > 1 else cast(both, k.dtype)
    size = k.spec.shape[-1]
    of_k, of_v = (_of_shared(one, sharing) for one in (both[..., :size], both[..., size:]))
    return attention_part("queries", *operands, **attrs), of_k, of_v


@rule("contract.attention_part")
def _attention_part(node: Compute, g: Any) -> Equivalent:
    """Differentiate a part as the one in float32, whose own gradient is made of products."""
    del g
    return Equivalent(as_weighed(node))


def _of_shared(cotangent: Any, sharing: int) -> Any:
    """Add the cotangents of heads that share keys and values."""
    if sharing == 1:
        return cotangent
    lead = (-1,) if cotangent.spec.is_stream else ()
    *above, heads, rows, columns = cotangent.spec.shape
    parted = reshape(cotangent, (*lead, *above, heads // sharing, sharing, rows, columns))
    return sum(parted, axis=parted.ndim - 3)


# -- by products ------------------------------------------------------------------------------------------------------


def _by_weights(node: Compute, g: Any, sharing: int) -> tuple[Contribution, ...]:
    """Store the weights of all keys, and their slopes, each once."""
    scale, cotangent = node.attrs["scale"], full(node, g)
    q, k, v, *mask = node.inputs
    if sharing > 1:
        k, v = (repeat(one, sharing, axis=one.ndim - 3) for one in (k, v))
    seen = visible_keys(q.spec.shape[-2], k.spec.shape[-2], causal=node.attrs["causal"], window=node.attrs["window"])
    made, total, _ = _weights(_scores(q, k, mask, seen, scale))
    weights = divide(made, total)
    shift = sum(multiply(cotangent, node), -1, keepdims=True)
    slopes = multiply(weights, subtract(matmul(cotangent, matrix_transpose(v)), shift))
    of_k, of_v = matmul(matrix_transpose(slopes), q), matmul(matrix_transpose(weights), cotangent)
    shared = (_of_shared(one, sharing) for one in (multiply(of_k, scale), of_v))
    of_mask = (summed_to(one, slopes, slopes.spec.shape, slopes.spec.is_stream, slopes) for one in mask)
    return multiply(matmul(slopes, k), scale), *shared, *of_mask


def _stored(node: Compute, scores_bytes: int) -> Equivalent:
    """Compute the weights of keys again, for a run of queries at a time where there are many."""
    q, k, v, *mask = node.inputs
    heads, kv_heads = (one.spec.shape[-3] if len(one.spec.shape) > 2 else 1 for one in (q, k))
    if heads != kv_heads:
        k, v = (repeat(one, heads // kv_heads, axis=one.ndim - 3) for one in (k, v))
    queries = q.spec.shape[-2]
    runs = min(_MOST_RUNS, queries, max(1, -(-scores_bytes // _STORED_BYTES)))
    ends = [queries * run // runs for run in range(runs + 1)]
    parts = [_as_products(node, q, k, v, mask, begin, end) for begin, end in itertools.pairwise(ends)]
    return Equivalent(concat(parts, axis=parts[0].ndim - 2) if runs > 1 else parts[0])


def _as_products(node: Compute, q: Any, k: Any, v: Any, mask: Sequence[Any], begin: int, end: int) -> Any:
    """Return the attention of a run of queries as products, whose weights are stored."""
    seen = visible_keys(q.spec.shape[-2], k.spec.shape[-2], causal=node.attrs["causal"], window=node.attrs["window"])[
        begin:end
    ]
    # Keys that no query of the run sees have no part in it.
    last = max(1, int(np.flatnonzero(seen.any(axis=0)).max(initial=0)) + 1)
    own = [one if one.spec.shape[-2] == 1 else _part(one, -2, begin, end) for one in mask]
    own = [one if one.spec.shape[-1] == 1 else _part(one, -1, 0, last) for one in own]
    q, k, v, seen = _part(q, -2, begin, end), _part(k, -2, 0, last), _part(v, -2, 0, last), seen[:, :last]
    size, gate, result = q.spec.shape[-1], node.attrs.get("gate", 0), node.attrs.get("result", "mean")
    sides = [(_part(one, -1, 0, size - gate), _part(one, -1, size - gate, size)) for one in (q, k)]
    scores = _scores(sides[0][0], sides[1][0], own, seen, node.attrs["scale"])
    gates = matmul(sides[0][1], matrix_transpose(sides[1][1])) if gate else None
    if result == "sum":
        return matmul(_gated(exp(scores), gates), v)
    weights, total, highest = _weights(scores)
    if result == "log":
        return highest + log(total)
    return matmul(_gated(divide(weights, total), gates), v)


def _scores(q: Any, k: Any, mask: Sequence[Any], seen: np.ndarray, scale: float) -> Any:
    """Return the scores of all pairs, -inf of those that are not seen."""
    scores = matmul(q, matrix_transpose(k)) * scale
    if mask:
        scores = scores + mask[0]
    return scores if seen.all() else where(seen, scores, -np.inf)


def _weights(scores: Any) -> tuple[Any, Any, Any]:
    """Return the weights before they are divided, what they are divided by, and the highest scores."""
    # The shares do not depend on what is subtracted.
    highest = stop_gradient(max_along(scores, axis=-1, keepdims=True))
    weights = where(highest == -np.inf, 0.0, exp(subtract(scores, where(highest == -np.inf, 0.0, highest))))
    return weights, maximum(sum(weights, axis=-1, keepdims=True), np.finfo(np.float32).tiny), highest


def _gated(weights: Any, gates: Any) -> Any:
    return weights if gates is None else multiply(weights, gates)


def _part(x: Any, axis: int, begin: int, end: int) -> Any:
    """Return a part of one of the last two axes."""
    if (begin, end) == (0, x.spec.shape[axis]):
        return x
    return x[(..., slice(begin, end), *[slice(None)] * (-1 - axis))]
