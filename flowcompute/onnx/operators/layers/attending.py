"""Attention in its forms, and positions that turn vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import Value, lined_up
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator, defined
from flowcompute.spec import BOOL, is_float

LARGEST_HEAD = 256
"""Numbers of a query that one kernel holds."""

MOST_SEEN = 1 << 24
"""Numbers of a mask that is made when the graph is composed."""

FLOAT = 1


def _attention(call: NodeCall) -> Value | None:
    """Attend in one kernel, which stores no scores; None where the definition asks for more."""
    if not _is_plain(call):
        return None
    q, k = call[0], call[1]
    parts, layout = lined_up([q, k, call[2]])
    counts = (call.attribute("q_num_heads"), *[call.attribute("kv_num_heads")] * 2)
    if q.ndim == 3:
        parts = [_by_heads(one, own) for one, own in zip(parts, counts, strict=True)]
    queries, keys = q.size(q.ndim - 2), k.size(k.ndim - 2)
    causal, seen = _sight(call, queries, keys)
    mask, added = call.get(3), None
    if mask is not None:
        lead = mask.element.shape[1:] if mask.ndim == 4 and mask.size(0) == 1 else mask.element.shape
        added = fc_axes.reshape(mask.element, (*(1,) * (2 - len(lead)), *lead))
    if seen is not None and added is not None:
        added = fc.logical_and(added, seen) if added.dtype == BOOL else fc.where(seen, added, added.dtype.type(-np.inf))
    elif seen is not None:
        added = seen
    made = nn.attention(*parts, causal=causal, mask=added, scale=call.attribute("scale"))
    if q.ndim == 3:
        turned = fc_axes.permute_dims(made, (0, 2, 1, 3))
        length = -1 if turned.spec.is_stream else turned.shape[0]
        made = fc_axes.reshape(turned, (length, queries, turned.shape[2] * turned.shape[3]))
    return layout.value(made)


def _is_plain(call: NodeCall) -> bool:
    """Check whether queries, keys, values and a mask are all there is, in shapes that the kernel takes."""
    q, k, v, mask = call[0], call[1], call[2], call.get(3)
    plain = len(call.given) == 3 + (mask is not None) and call.count == 1 and not call.attribute("softcap")
    if not plain or call.attribute("softmax_precision") not in (None, FLOAT) or q.ndim not in (3, 4):
        return False
    if not q.ndim == k.ndim == v.ndim or not is_float(q.dtype) or any(one.axis not in (None, 0) for one in (q, k, v)):
        return False
    heads, shared = (call.attribute(name) if q.ndim == 3 else 1 for name in ("q_num_heads", "kv_num_heads"))
    if not heads or not shared:
        return False
    queries, keys = q.size(q.ndim - 2), k.size(k.ndim - 2)
    wide = [one.size(one.ndim - 1) // own for one, own in ((q, heads), (v, shared))]
    if 0 in (queries, keys) or not 0 < min(wide) <= max(wide) <= LARGEST_HEAD:
        return False
    if _is_narrow(call, queries, keys) and queries * keys > MOST_SEEN:
        return False
    if mask is None:
        return True
    fits = 1 <= mask.ndim <= 4 and mask.axis is None and mask.size(mask.ndim - 1) == keys
    return fits and not (mask.ndim == 4 and mask.size(0) != 1 and q.axis is not None)


def _by_heads(x: Any, heads: int) -> Any:
    """Return (..., length, heads * size) as (..., heads, length, size)."""
    *lead, count, width = x.shape
    lead = [-1] if x.spec.is_stream else lead
    made = fc_axes.reshape(x, (*lead, count, heads, width // heads))
    first = made.ndim - 3
    return fc_axes.permute_dims(made, (*range(first), first + 1, first, first + 2))


def _is_narrow(call: NodeCall, queries: int, keys: int) -> bool:
    """Check whether a mask has to say what queries see."""
    windows = max(call.attribute("left_window_size"), call.attribute("right_window_size")) >= 0
    return windows or bool(call.attribute("is_causal") and queries != keys)


def _sight(call: NodeCall, queries: int, keys: int) -> tuple[bool, np.ndarray | None]:
    """Return whether queries see earlier keys alone, and else a mask (queries, keys) of what they see, if any."""
    causal, left, right = (call.attribute(name) for name in ("is_causal", "left_window_size", "right_window_size"))
    if not _is_narrow(call, queries, keys):
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
    defined(
        "FlexAttention", 1, domain="ai.onnx.preview", prob_mod=None, score_mod=None, scale=None, softmax_precision=None
    ),
)  # fmt: skip
