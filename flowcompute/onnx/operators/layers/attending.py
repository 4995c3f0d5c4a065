"""Attention in its forms, and positions that turn vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import Value, same_streams
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator, defined
from flowcompute.spec import BOOL, is_float

LARGEST_HEAD = 256
"""Numbers of a query that one kernel holds."""

FLOAT = 1


def _attention(call: NodeCall) -> Value | None:
    """Attend in one kernel, which stores no scores; None where the definition asks for more."""
    q, k, v = call[0], call[1], call[2]
    plain = len(call.given) == 3 + (call.get(3) is not None) and call.count == 1 and not call.attribute("softcap")
    if not plain or call.attribute("softmax_precision") not in (None, FLOAT) or q.ndim not in (3, 4):
        return None
    if not q.ndim == k.ndim == v.ndim or not is_float(q.dtype) or any(one.axis not in (None, 0) for one in (q, k, v)):
        return None
    heads, shared = call.attribute("q_num_heads"), call.attribute("kv_num_heads")
    by_width = q.ndim == 3
    if by_width and not (heads and shared):
        return None
    queries, keys = q.size(q.ndim - 2), k.size(k.ndim - 2)
    wide = [one.size(one.ndim - 1) // (own if by_width else 1) for one, own in ((q, heads), (v, shared))]
    if 0 in (queries, keys) or not 0 < min(wide) <= max(wide) <= LARGEST_HEAD:
        return None
    mask = call.get(3)
    if mask is not None and (
        mask.ndim < 1 or mask.ndim > 4 or mask.axis is not None or mask.size(mask.ndim - 1) != keys
    ):
        return None
    if mask is not None and mask.ndim == 4 and mask.size(0) != 1 and q.axis is not None:
        return None
    (q, k, v), layout = same_streams([q, k, v])
    parts = [
        _by_heads(one.element, own) if by_width else one.element for one, own in ((q, heads), (k, shared), (v, shared))
    ]
    added: Any = None
    if mask is not None:
        lead = mask.element.shape[1:] if mask.ndim == 4 and mask.size(0) == 1 else mask.element.shape
        added = fc_axes.reshape(mask.element, (*(1,) * (2 - len(lead)), *lead))
    causal, seen = _sight(call, queries, keys)
    if seen is not None and added is not None:
        added = fc.logical_and(added, seen) if added.dtype == BOOL else fc.where(seen, added, added.dtype.type(-np.inf))
    elif seen is not None:
        added = seen
    made = nn.attention(*parts, causal=causal, mask=added, scale=call.attribute("scale"))
    if by_width:
        turned = fc_axes.permute_dims(made, (0, 2, 1, 3))
        made = fc_axes.reshape(turned, (-1 if turned.spec.is_stream else turned.shape[0], queries, heads * wide[1]))
    return layout.value(made)


def _by_heads(x: Any, heads: int) -> Any:
    """Return (N, length, heads * size) as (N, heads, length, size)."""
    length, count, width = -1 if x.spec.is_stream else x.shape[0], x.shape[1], x.shape[2]
    return fc_axes.permute_dims(fc_axes.reshape(x, (length, count, heads, width // heads)), (0, 2, 1, 3))


def _sight(call: NodeCall, queries: int, keys: int) -> tuple[bool, np.ndarray | None]:
    """Return whether queries see earlier keys alone, and else a mask (queries, keys) of what they see, if any."""
    causal, left, right = (call.attribute(name) for name in ("is_causal", "left_window_size", "right_window_size"))
    if max(left, right) < 0 and (not causal or queries == keys):
        return bool(causal), None
    ahead = np.arange(keys) - np.arange(queries)[:, None]
    seen = np.ones((queries, keys), np.bool_)
    seen &= (ahead <= 0) if causal else True
    seen &= (ahead >= -left) if left >= 0 else True
    seen &= (ahead <= right) if right >= 0 else True
    return False, seen


_HEADS: dict[str, Any] = {"kv_num_heads": None, "q_num_heads": None}

OPERATORS: tuple[Operator, ...] = (
    defined(
        "Attention", 23, build=_attention, is_causal=0, qk_matmul_output_mode=0, scale=None, softcap=0.0,
        softmax_precision=None, left_window_size=-1, right_window_size=-1, **_HEADS,
    ),
    defined("RotaryEmbedding", 23, interleaved=0, num_heads=None, rotary_embedding_dim=0),
    defined(
        "LinearAttention", 27, chunk_size=64, kv_num_heads=REQUIRED, q_num_heads=REQUIRED, scale=0.0,
        update_rule="gated_delta",
    ),
    defined("CausalConvWithState", 27, activation="none"),
    defined(
        "FlexAttention", 1, domain="ai.onnx.preview", prob_mod=None, score_mod=None, scale=None, softmax_precision=None
    ),
)  # fmt: skip
