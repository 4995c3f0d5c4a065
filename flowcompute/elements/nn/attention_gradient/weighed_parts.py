"""Parts of the gradient of attention as attention whose weights are multiplied by a gate (see `weighed`).

D and L are further numbers of queries and keys, so that a gate or a score is one product. For keys and values keys take
the place of queries.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from flowcompute.elements.axes import broadcast_to, concat, flip, matrix_transpose
from flowcompute.elements.compute import Compute, cast
from flowcompute.elements.creation import ones_like, zeros_like
from flowcompute.elements.math import multiply, where
from flowcompute.elements.nn.dot_product_attention import weighed
from flowcompute.spec import FLOAT32

_VECTOR = 8
"""Numbers of scores and of gates are whole vectors, with zeros behind them."""


def as_weighed(node: Compute) -> Any:
    """Return a part of a gradient in half formats (`ATTENTION_PART`) as one in float32."""
    q, k, *others = (cast(one, FLOAT32) for one in node.inputs)
    mask = others.pop() if len(others) % 4 else None
    part, scale = node.attrs["part"], node.attrs["scale"]
    seen: dict[str, Any] = {"causal": node.attrs["causal"], "window": node.attrs["window"]}
    scaled = multiply(q, scale)
    if part == "log":
        return weighed(scaled, k, ones_like(k[..., :1]), mask, **seen, gate=0, result="log")
    v, cotangent, less, shift = others
    if part == "queries":
        return multiply(query_gradient(scaled, k, v, cotangent, shift, mask, **seen), scale)
    turned = None if mask is None else matrix_transpose(mask)
    slopes = key_gradient(scaled, k, v, cotangent, less, shift, turned, **seen)
    made = value_gradient(scaled, k, cotangent, less, turned, **seen)
    return concat([slopes, made], axis=made.ndim - 1)


def negated_logarithms(sums: Any) -> Any:
    """Return what is added to scores before weights are computed: minus the logarithms of the weights' sums.

    A query that sees nothing has weights of 0.
    """
    return where(sums == -np.inf, -np.inf, multiply(sums, -1.0))


def query_gradient(scaled: Any, k: Any, v: Any, cotangent: Any, shift: Any, mask: Any, **seen: Any) -> Any:
    """Return the gradient of queries that have been scaled, before it is scaled; `shift` is -D."""
    one = ones_like(k[..., :1])
    rows = _rows([scaled], [cotangent, shift]), _rows([k], [v, one])
    return weighed(*rows, k, mask, **seen, gate=vector_padded(v.spec.shape[-1] + 1), result="mean")


def value_gradient(scaled: Any, k: Any, cotangent: Any, less: Any, mask: Any, **seen: Any) -> Any:
    """Return the gradient of values; `less` is -L, and `mask` has an axis of keys before one of queries."""
    one = ones_like(k[..., :1])
    return _turned(_rows([k, one]), _rows([scaled, less]), cotangent, mask, gate=0, **seen)


def key_gradient(scaled: Any, k: Any, v: Any, cotangent: Any, less: Any, shift: Any, mask: Any, **seen: Any) -> Any:
    """Return the gradient of keys; `mask` as for `value_gradient`."""
    one = ones_like(k[..., :1])
    keys, queries = _rows([k, one], [v, one]), _rows([scaled, less], [cotangent, shift])
    return _turned(keys, queries, scaled, mask, gate=vector_padded(v.spec.shape[-1] + 1), **seen)


def vector_padded(numbers: int) -> int:
    """Round up to whole vectors."""
    return -(-numbers // _VECTOR) * _VECTOR


def _rows(*sides: list[Any]) -> Any:
    """Return numbers side by side on the last axis, those of each side with zeros up to a whole vector."""
    parts = []
    for side in sides:
        numbers = builtins.sum(one.spec.shape[-1] for one in side)
        parts += side
        if numbers < vector_padded(numbers):
            nothing = zeros_like(side[0][..., :1])
            lead = (-1,) if nothing.spec.is_stream else ()
            shape = (*lead, *nothing.spec.shape[:-1], vector_padded(numbers) - numbers)
            parts.append(broadcast_to(nothing, shape))
    return concat(parts, axis=parts[0].ndim - 1) if len(parts) > 1 else parts[0]


def _turned(q: Any, k: Any, v: Any, mask: Any, *, causal: bool, window: int | None, gate: int) -> Any:
    """Sum values of queries for each key: causal ones from the end, where a key is seen by the queries behind it."""
    if not causal:
        return weighed(q, k, v, mask, causal=False, window=None, gate=gate, result="sum")
    q, k, v = (flip(one, axis=one.ndim - 2) for one in (q, k, v))
    seen = None if mask is None else flip(mask, axis=(mask.ndim - 2, mask.ndim - 1))
    made = weighed(q, k, v, seen, causal=True, window=window, gate=gate, result="sum")
    return flip(made, axis=made.ndim - 2)
