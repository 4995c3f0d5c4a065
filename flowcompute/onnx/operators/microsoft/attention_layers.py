"""Attention with past keys, and positions that turn vectors, as onnxruntime fuses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import Constant, nn
from flowcompute.elements.search import take_along_axis
from flowcompute.onnx.logical_value import Value, element_of_length
from flowcompute.onnx.operators.microsoft.fused_layers import DOMAIN
from flowcompute.onnx.operators.record import REQUIRED, NodeCall, Operator
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.sizes import Length, is_decided

Extended = Callable[[Value | None, Value, Any], Value]
"""Makes keys or values after a node of those before it, of rows (batch, heads, rows, d), and of where these begin."""


def _heads(value: Value, count: int) -> Any:
    """Return (batch, rows, heads * d) as (batch, heads, rows, d)."""
    x = value.batch_first("split into heads")
    rows, width = x.spec.shape[-2:]
    if value.ndim != 3 or count < 1 or width % count:
        raise Refusal("invalid", f"{count} heads of {value.shape}", "correct the model")
    return fc_axes.permute_dims(fc_axes.reshape(x, (-1, rows, count, width // count)), (0, 2, 1, 3))


def _joined(x: Any) -> Any:
    """Return (batch, heads, rows, d) as (batch, rows, heads * d)."""
    heads, rows, width = x.spec.shape[-3:]
    return fc_axes.reshape(fc_axes.permute_dims(x, (0, 2, 1, 3)), (-1, rows, heads * width))


def _per_sequence(x: Any) -> Any:
    """Return one integer a sequence as (batch, 1, 1, 1)."""
    return fc_axes.reshape(fc.astype(x, "int64"), (-1, 1, 1, 1))


def _attended(
    q: Any, k: Any, v: Any, seen: Any, bias: Any, *, scale: float | None, softcap: float = 0.0, sink: Any = None
) -> Any:
    """Attend to what is seen: with a bool mask, an added bias, and a cap of the scores where there is one."""
    if not softcap and sink is None:
        mask = seen if bias is None else bias if seen is None else fc.where(seen, bias, -np.inf)
        return nn.attention(q, k, v, mask=mask, scale=scale)
    if sink is not None:
        raise Refusal("missing", "a sink of the heads", "export the model without")
    shared = q.spec.shape[-3] // k.spec.shape[-3]
    k, v = ((fc_axes.repeat(one, shared, 1) if shared > 1 else one) for one in (k, v))
    factor = q.spec.shape[-1] ** -0.5 if scale is None else scale
    scores = fc.multiply(fc.matmul(q, fc_axes.permute_dims(k, (0, 1, 3, 2))), factor)
    scores = fc.multiply(fc.tanh(fc.multiply(scores, 1 / softcap)), softcap)
    scores = scores if bias is None else fc.add(scores, bias)
    return fc.matmul(nn.softmax(scores if seen is None else fc.where(seen, scores, -np.inf), axis=-1), v)


def _scale(call: NodeCall) -> float | None:
    return call.attribute("scale") or None


# -- positions ----------------------------------------------------------------------------------------


def turned(x: Any, places: Any, cos: Any, sin: Any, *, interleaved: bool) -> Any:
    """Turn pairs of numbers by the angles of their positions.

    Args:
        x: (batch, heads, rows, d).
        places: positions (batch, rows), or (1, rows).
        cos, sin: a row of factors for each position, d / 2 of them or fewer; numbers behind those stay as they are.
        interleaved: whether pairs stand beside each other, not half of d apart.
    """
    width = x.spec.shape[-1]
    half = cos.spec.shape[-1]
    if 2 * half > width:
        raise Refusal("invalid", f"{half} angles for heads of {width}", "correct the model")
    factors = [fc_axes.expand_dims(fc_axes.take(one, places, 0), 1) for one in (cos, sin)]
    part, rest = x[..., : 2 * half], x[..., 2 * half :]
    first, second = (part[..., 0::2], part[..., 1::2]) if interleaved else (part[..., :half], part[..., half:])
    c, s = (fc.astype(one, x.dtype) if one.dtype != x.dtype else one for one in factors)
    made = [
        fc.subtract(fc.multiply(first, c), fc.multiply(second, s)),
        fc.add(fc.multiply(first, s), fc.multiply(second, c)),
    ]
    if interleaved:
        pairs = fc_axes.stack(made, axis=-1)
        turned_part = fc_axes.reshape(pairs, (-1, *x.spec.shape[-3:-1], 2 * half))
    else:
        turned_part = fc_axes.concat(made, axis=-1)
    return turned_part if 2 * half == width else fc_axes.concat([turned_part, rest], axis=-1)


def _rotary(call: NodeCall) -> Value:
    value, places = call[0], call[1]
    cos, sin = call[2].resident("cos_cache"), call[3].resident("sin_cache")
    if call.attribute("scale") != 1 or call.attribute("is_packed_batching"):
        raise Refusal("attribute", "scale or packed batches", "export the model without")
    x = value.batch_first("turn")
    split = value.ndim == 3
    if split:
        width = 2 * cos.spec.shape[-1]
        heads = call.attribute("num_heads") or x.spec.shape[-1] // width
        x = _heads(value, heads)
    rows = x.spec.shape[-2]
    at = fc.astype(places.batch_first("positions"), "int64")
    if places.ndim == 1:
        at = fc.add(fc_axes.reshape(at, (1, 1)), np.arange(rows).reshape(1, rows))
    made = turned(x, at, cos, sin, interleaved=bool(call.attribute("interleaved")))
    return value.like(_joined(made) if split else made)


# -- attention ----------------------------------------------------------------------------------------


def extended(past: Value | None, rows: Value, start: Any) -> Value:
    """Return keys or values with rows put behind those that each sequence has.

    Args:
        past: (batch, heads, rows, d), of which those before `start` count; None for none.
        rows: that are added.
        start: where they begin, for each sequence (batch, 1, 1, 1); None behind all of them.
    """
    if past is None or past.shape[2] == 0:
        return rows
    old, new = past.batch_first("extend"), rows.batch_first("extend")
    whole = fc_axes.concat([old, new], axis=2)
    if start is None:
        return rows.like(whole)
    count, total = new.spec.shape[-2], whole.spec.shape[-2]
    place = fc.subtract(np.arange(total).reshape(1, 1, total, 1), start)
    # Where a sequence has fewer rows, its new ones stand before the end.
    within = fc.minimum(fc.maximum(place, 0), count - 1)
    lead = -1 if new.spec.is_stream else new.spec.shape[0]
    padded = fc_axes.broadcast_to(within, (lead, new.spec.shape[-3], total, new.spec.shape[-1]))
    is_new = fc.logical_and(fc.greater_equal(place, 0), fc.less(place, count))
    return rows.like(fc.where(is_new, take_along_axis(new, padded, 2), whole))


def grouped_attention(call: NodeCall, extend: Extended = extended) -> tuple[Value, ...]:
    """Build `GroupQueryAttention`: causal attention whose heads share keys, with past keys and turned positions."""
    heads, shared = call.attribute("num_heads"), call.attribute("kv_num_heads")
    for name in ("smooth_softmax", "qk_output", "k_quant_type", "v_quant_type", "kv_cache_bit_width"):
        if call.attribute(name) not in (0, "NONE"):
            raise Refusal("attribute", f"{name}={call.attribute(name)!r}", "export the model without")
    query, bias = call[0], call.get(10)
    if call.get(1) is None:
        width = query.size(2) // (heads + 2 * shared)
        ends = (heads * width, (heads + shared) * width)
        x = query.batch_first("split")
        parts = [query.like(one) for one in (x[:, :, : ends[0]], x[:, :, ends[0] : ends[1]], x[:, :, ends[1] :])]
    else:
        parts = [query, call[1], call[2]]
    q, k, v = (_heads(one, count) for one, count in zip(parts, (heads, shared, shared), strict=True))
    rows = q.spec.shape[-2]
    counted = call[5].batch_first("count")
    begin = fc.maximum(fc.add(_per_sequence(counted), 1 - rows), 0)
    if call.attribute("do_rotary"):
        cos, sin = call[7].resident("cos_cache"), call[8].resident("sin_cache")
        given = call.get(9)
        at = fc.add(fc_axes.reshape(begin, (-1, 1)), np.arange(rows).reshape(1, rows))
        at = at if given is None else fc.astype(given.batch_first("positions"), "int64")
        interleaved = bool(call.attribute("rotary_interleaved"))
        q, k = (turned(one, at, cos, sin, interleaved=interleaved) for one in (q, k))
    past = call.get(3), call.get(4)
    present = [extend(old, query.like(new), begin) for old, new in zip(past, (k, v), strict=True)]
    # Numbers that nobody sees may be NaN, which no weight of 0 takes away.
    keys, values = (_counted(one.element, fc.add(begin, rows)) for one in present)
    key = np.arange(keys.spec.shape[-2]).reshape(1, 1, 1, -1)
    last = fc.add(begin, np.arange(rows).reshape(1, 1, rows, 1))
    seen = fc.less_equal(key, last)
    window = call.attribute("local_window_size")
    if window > 0:
        seen = fc.logical_and(seen, fc.greater(key, fc.subtract(last, window)))
    added = None if bias is None else bias.batch_first("add")
    sink = None if call.get(11) is None else call[11].element
    made = _attended(q, keys, values, seen, added, scale=_scale(call), softcap=call.attribute("softcap"), sink=sink)
    return query.like(_joined(made)), *present


def multi_head_attention(call: NodeCall, extend: Extended = extended) -> tuple[Value, ...]:
    """Build `MultiHeadAttention`, of oneself or of another sequence, with a bias, masks and past keys."""
    heads, query = call.attribute("num_heads"), call[0]
    if query.ndim != 3 or call.get(1) is None or call.get(2) is None or call.get(8) is not None or call.get(9):
        raise Refusal("missing", "packed keys and values, or a shared buffer", "export the model with three inputs")
    bias = None if call.get(3) is None else call[3].resident("bias")
    ends = (0, *np.cumsum([call[0].size(2)] * 2 + [call[2].shape[-1] if call[2].ndim == 3 else 0]).tolist())
    q, k, v = (_part(call[place], heads, bias, ends[place], ends[place + 1]) for place in range(3))
    present = [extend(old, query.like(new), None) for old, new in zip((call.get(6), call.get(7)), (k, v), strict=True)]
    keys, values = (one.element for one in present)
    rows, total, size = q.spec.shape[-2], keys.spec.shape[-2], present[0].shape[2]
    key, seen, count = np.arange(total).reshape(1, 1, 1, -1), None, Constant(np.int64(total))
    if isinstance(size, Length):
        count = element_of_length(size)
        keys, values = (_counted(one, count) for one in (keys, values))
        seen = fc.less(key, count)
    if call.attribute("unidirectional"):
        last = fc.add(count, np.arange(rows).reshape(1, 1, rows, 1) - rows)
        seen = fc.less_equal(key, last)
    mask, added = call.get(4), None if call.get(5) is None else call[5].batch_first("add")
    if mask is not None:
        own = mask.batch_first("mask")
        if mask.ndim == 1:
            there = fc.less(np.arange(total).reshape(1, 1, 1, -1), _per_sequence(own))
        elif mask.ndim == 2:
            there = fc.not_equal(fc_axes.reshape(own, (-1, 1, 1, total)), 0)
        else:
            there = fc.not_equal(fc_axes.reshape(own, (-1, 1, rows, total)), 0)
        # A key that is masked has a low score, no part of none: a query that sees no other sees all of them.
        low = fc.where(there, np.asarray(0, q.dtype), np.asarray(call.attribute("mask_filter_value"), q.dtype))
        added = low if added is None else fc.add(added, low)
    return query.like(_joined(_attended(q, keys, values, seen, added, scale=_scale(call)))), *present


def _counted(x: Any, count: Any) -> Any:
    """Return rows (batch, heads, rows, d), with 0 in place of those from `count` on."""
    place = np.arange(x.spec.shape[-2]).reshape(1, 1, -1, 1)
    return fc.where(fc.less(place, count), x, np.asarray(0, x.dtype))


def _part(value: Value, heads: int, bias: Any, begin: int, end: int) -> Any:
    """Return queries, keys or values by heads, with their part of the bias."""
    if value.ndim == 4:
        return value.batch_first("attend to")
    if bias is None:
        return _heads(value, heads)
    return _heads(value.like(fc.add(value.batch_first("add"), bias[begin:end])), heads)


def _grouped(call: NodeCall) -> tuple[Value, ...]:
    total = call.get(6)
    if total is not None and total.known is not None and is_decided(total.known):
        rows = call[0].size(1) + (0 if call.get(3) is None else call[3].size(2))
        if total.ints("total_sequence_length")[0] > rows:
            raise Refusal("invalid", f"{total.known} rows where there are {rows}", "correct the inputs")
    return grouped_attention(call)


OPERATORS: tuple[Operator, ...] = (
    Operator(
        "RotaryEmbedding", _rotary, domain=DOMAIN,
        attributes={"interleaved": 0, "is_packed_batching": 0, "num_heads": 0, "rotary_embedding_dim": 0,
                    "scale": 1.0},
    ),
    Operator(
        "GroupQueryAttention", _grouped, domain=DOMAIN,
        attributes={"num_heads": REQUIRED, "kv_num_heads": REQUIRED, "do_rotary": 0, "rotary_interleaved": 0,
                    "local_window_size": -1, "scale": 0.0, "softcap": 0.0, "smooth_softmax": 0, "qk_output": 0,
                    "k_quant_type": "NONE", "v_quant_type": "NONE", "kv_cache_bit_width": 0},
    ),
    Operator(
        "MultiHeadAttention", multi_head_attention, domain=DOMAIN,
        attributes={"num_heads": REQUIRED, "mask_filter_value": -10000.0, "scale": 0.0, "unidirectional": 0},
    ),
)  # fmt: skip
