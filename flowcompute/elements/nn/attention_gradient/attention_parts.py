"""Parts of the gradient of attention in half formats, which tensor cores multiply (Dao, "FlashAttention-2", 2023).

With weights P = exp(scale Q K^T - L), where L are the logarithms of their sums, cotangent G and sums D of rows of
G * O, a part is one of

    log:      L
    queries:  dQ = scale dS K        where dS = P * (G V^T - D)
    keys:     [dK | dV] = [scale dS^T Q | P^T G]

Each is one kernel that stores no weights, so weights are computed three times. No sum crosses a work-group.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from flowcompute.elements.alignment import common_length
from flowcompute.elements.compute import Compute
from flowcompute.elements.nn.dot_product_attention import visible_keys
from flowcompute.elements.op import KeptOp, Kind, Op, by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, Spec, Stream, format_shape

PART_SIZE = 128
"""Largest size of queries, keys and values."""

Part = Literal["log", "queries", "keys"]
"""Parts of a gradient."""

_COUNTS = {"log": 2, "queries": 6, "keys": 6}
"""Operands beside a mask."""


def attention_part_of(
    q: np.ndarray, k: np.ndarray, *others: np.ndarray, part: Part, causal: bool, window: int | None, scale: float
) -> np.ndarray:
    """Compute a part on arrays, in float32.

    Args:
        q, k: queries (..., queries, d) and keys (..., keys, d).
        others: values (..., keys, dv), the cotangent (..., queries, dv), -L and -D (..., queries, 1), none of them for
            "log"; and perhaps a mask.
        part, causal, window, scale: see `attention_part`.
    """
    q, k, *wide = (one.astype(FLOAT32, copy=False) for one in (q, k, *others))
    seen = visible_keys(q.shape[-2], k.shape[-2], causal=causal, window=window)
    mask = wide.pop() if len(wide) % 4 else 0
    scores = np.where(seen, q @ np.swapaxes(k, -1, -2) * FLOAT32.type(scale) + mask, -np.inf)
    if part == "log":
        highest = scores.max(axis=-1, keepdims=True, initial=np.finfo(FLOAT32).min)
        with np.errstate(divide="ignore"):
            return np.asarray(highest + np.log(np.exp(scores - highest).sum(axis=-1, keepdims=True)))
    v, cotangent, less, shift = wide
    weights = np.exp(scores + less)
    slopes = np.where(seen, weights * (cotangent @ np.swapaxes(v, -1, -2) + shift), 0) * FLOAT32.type(scale)
    if part == "queries":
        return np.asarray(slopes @ k)
    turned, weights = np.swapaxes(slopes, -1, -2), np.swapaxes(weights, -1, -2)
    return np.concatenate([turned @ q, weights @ cotangent], axis=-1)


def _rebuild(kept: KeptOp) -> Any:
    part: Any = kept.attrs.choice("part", get_args(Part))
    window = kept.attrs.maybe("window", kept.attrs.whole)
    count = _COUNTS[part]
    operands = kept.operands(count, count + 1)
    return attention_part(
        part,
        *operands[:count],
        mask=operands[count] if len(operands) > count else None,
        causal=kept.attrs.flag("causal"),
        window=window,
        scale=kept.attrs.real("scale"),
    )


ATTENTION_PART = Op(
    "attention_part", 6, Kind.CONTRACT, attention_part_of, by_ufunc(np.matmul), cost=1000,
    doc="A part of the gradient of attention.", rebuild=_rebuild,
)  # fmt: skip


def attention_part(
    part: Part, *operands: Any, causal: bool, window: int | None, scale: float, mask: Any = None
) -> Compute:
    """Return a part of the gradient of attention.

    Args:
        part: which one.
        operands: q (..., queries, d), k (..., keys, d), v (..., keys, dv) and the cotangent g (..., queries, dv), of
            one half format; and -L and -D (..., queries, 1) of float32, -inf in place of -L where no key is seen.
            All are streams of one length, or all residents. "log" takes q and k alone.
        causal, window, scale: those of the attention; the scale is positive.
        mask: of float32, which is added to scores; broadcasts to (..., queries, keys). None for none.

    Returns:
        An element of float32: (..., queries, 1), (..., queries, d) or (..., keys, d + dv).

    Raises:
        SpecError: if operands do not fit each other, d or dv is above 128 or 0, `window` is not with `causal`, or the
            scale is not positive.
    """
    specs = [one.spec for one in operands]
    stack, (queries, size), keys = specs[0].shape[:-2], specs[0].shape[-2:], specs[1].shape[-2]
    columns = size if part == "log" else specs[2].shape[-1]
    shapes = [(queries, size), (keys, size)]
    shapes += [] if part == "log" else [(keys, columns), (queries, columns), (queries, 1), (queries, 1)]
    dtypes = [specs[0].dtype] * 4 + [FLOAT32] * 2
    fits = [one.shape == (*stack, *own) for one, own in zip(specs, shapes, strict=True)]
    fits += [one.dtype == dtype for one, dtype in zip(specs, dtypes, strict=False)]
    streams = [one for one in operands if one.spec.is_stream]
    fits += [len(streams) in (0, len(operands)), specs[0].dtype in (FLOAT16, BFLOAT16)]
    fits += [min(queries, keys, size, columns) > 0, max(size, columns) <= PART_SIZE]
    fits += [
        window is None or (causal and window > 0),
        scale > 0,
        mask is None or _broadcasts(mask, (*stack, queries, keys)),
    ]
    if not all(fits):
        raise SpecError(
            "cannot make a part of attention's gradient",
            element="attention_part",
            site=user_site(),
            expected=f"half operands of one stack, up to {PART_SIZE} numbers in each row, and a scale above 0",
            got=", ".join(f"{one.dtype} {format_shape(one.shape)}" for one in specs),
        )
    inputs = operands if mask is None else (*operands, mask)
    streams = [one for one in inputs if one.spec.is_stream]
    stream = Stream(common_length("attention_part", streams)) if streams else None
    shape = {"log": (queries, 1), "queries": (queries, size), "keys": (keys, size + columns)}[part]
    attrs = {"part": part, "causal": causal, "window": window, "scale": scale}
    return Compute(ATTENTION_PART, tuple(inputs), Spec(FLOAT32, (*stack, *shape), stream), attrs)


def _broadcasts(mask: Any, scores: tuple[int, ...]) -> bool:
    """Check whether a mask has an axis of queries and one of keys, and is added to scores of this shape."""
    own = mask.spec.shape
    fits = len(own) <= len(scores) and all(one in (1, size) for one, size in zip(own[::-1], scores[::-1], strict=False))
    return fits and len(own) > 1 and mask.dtype == FLOAT32
