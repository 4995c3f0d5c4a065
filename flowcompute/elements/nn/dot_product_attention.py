"""Scaled dot-product attention (Vaswani et al., 2017), in memory that grows with the length alone.

The kernel runs over the keys in tiles with a running maximum and a running sum, so that no matrix of scores is ever
stored. This is the online softmax of Milakov and Gimelshein (2018); Dao et al. (2022) call such attention flash. The
order of its sums belongs to it: scores over d in order, weights and values key by key in tiles of 64. So answers depend
on nothing but the values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from flowcompute.elements.alignment import align_resident, common_dtype, common_length
from flowcompute.elements.arguments import flag, real, whole
from flowcompute.elements.axes import permute_dims, reshape, take
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Constant, Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.elementwise_functions import resolve_dtypes
from flowcompute.elements.math import exp, matmul, where
from flowcompute.elements.math import max as largest_of
from flowcompute.elements.math import sum as sum_of
from flowcompute.elements.op import KeptOp, Kind, Op, by_ufunc
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32, Spec, Stream, format_shape

HEAD_SIZE = 256
"""Largest d of queries, keys and values."""
WEIGHED_SIZE = 2 * HEAD_SIZE
"""Largest size of queries and keys with gates."""

Result = Literal["mean", "sum", "log"]
"""Results that attention makes of weights: the mean of values, their sum, or the logarithm of the weights' sum."""


def attention_of(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: Any = 0,
    *,
    causal: bool,
    window: int | None,
    scale: float,
    gate: int = 0,
    result: Result = "mean",
) -> np.ndarray:
    """Compute attention on arrays of one dtype, whose leading axes broadcast but for shared heads.

    For `gate` and `result` see `weighed`.
    """
    heads = max(map(_heads, (q, k, v)))
    k, v = (np.repeat(one, heads // _heads(one), axis=-3) if 1 < _heads(one) < heads else one for one in (k, v))
    visible = visible_keys(q.shape[-2], k.shape[-2], causal=causal, window=window)
    q = q * q.dtype.type(scale)
    own = q.shape[-1] - gate
    scores = q[..., :own] @ np.swapaxes(k[..., :own], -1, -2) + mask
    scores = np.where(visible, scores, -np.inf)
    # No key has a score below the lowest finite number but one that is out of sight.
    highest = scores.max(axis=-1, keepdims=True, initial=np.finfo(q.dtype).min)
    weights = np.exp(scores - highest)
    total = weights.sum(axis=-1, keepdims=True)
    if result == "log":
        with np.errstate(divide="ignore"):
            return np.asarray(highest + np.log(total)).astype(q.dtype, copy=False)
    if gate:
        weights = weights * np.where(visible, q[..., own:] @ np.swapaxes(k[..., own:], -1, -2), 0)
    if visible.all() or np.isfinite(v).all():
        made = weights @ v
    else:
        # 0 times an infinity is NaN, but what is out of sight has no part in the sum.
        parts = np.where(visible[..., None], weights[..., None] * v[..., None, :, :], 0)
        made = parts.sum(axis=-2)
    if result == "sum":
        return np.asarray(made * np.exp(highest)).astype(q.dtype, copy=False)
    return np.where(total == 0, 0, made / total).astype(q.dtype, copy=False)


def _heads(array: np.ndarray) -> int:
    return array.shape[-3] if array.ndim > 2 else 1


def visible_keys(queries: int, keys: int, *, causal: bool, window: int | None) -> np.ndarray:
    """Return a mask: True where a query (row) sees a key (column)."""
    last = np.arange(queries)[:, None] + (keys - queries)
    key = np.arange(keys)
    seen = (key <= last) if causal else np.ones((queries, keys), bool)
    return seen if window is None else seen & (key > last - window)


def _rebuild_attention(kept: KeptOp) -> Any:
    """Make attention again, before its result is rounded."""
    q, k, v, *mask = kept.operands(3, 4)
    attrs = kept.attrs
    if "result" in attrs:
        result: Any = attrs.choice("result", get_args(Result))
        gate = attrs.whole("gate", 0, q.spec.shape[-1] if q.spec.shape else 0)
        window = attrs.maybe("window", attrs.whole)
        given = mask[0] if mask else None
        kept.require(result != "log" or v.spec.shape[-1:] == (1,), "values of one number")
        kept.require(attrs.real("scale") == 1, "queries that are scaled")
        return weighed(q, k, v, given, causal=attrs.flag("causal"), window=window, gate=gate, result=result)
    made: Any = attention(
        q,
        k,
        v,
        causal=attrs.flag("causal"),
        window=attrs.maybe("window", attrs.whole),
        mask=mask[0] if mask else None,
        scale=attrs.real("scale"),
    )
    return made if made.op is ATTENTION else made.inputs[0]


ATTENTION = Op(
    "attention", 3, Kind.CONTRACT, attention_of, by_ufunc(np.matmul), cost=1000, doc="Attention of queries to keys.",
    rebuild=_rebuild_attention,
)  # fmt: skip


@public
def attention(
    q: Operand,
    k: Operand,
    v: Operand,
    *,
    causal: bool = False,
    window: int | None = None,
    mask: Operand | None = None,
    scale: float | None = None,
) -> Compute:
    """Compute softmax(scale * q @ k.T + mask) @ v for each head, in one kernel that stores no scores.

    Element-wise operations on the result are computed in the same kernel. A key that a query does
    not see (`causal`, `window`) has no part in its result, whatever numbers it holds.

    A query that sees no key, or gives all of them the weight 0, has the result 0, as in PyTorch. So it is where its row
    of the mask is -inf. A score of NaN or +inf makes the query's whole row NaN. So does a value of NaN or infinity that
    a mask gives the weight 0.

    Args:
        q: queries, a stream of items (..., heads, queries, d) or a resident value of that shape.
        k: keys (..., kv_heads, keys, d). Heads share keys and values where there are fewer of
            them: `heads` is a multiple of `kv_heads`, and head h uses h * kv_heads // heads.
        v: values (..., kv_heads, keys, dv). Axes before the heads, and residents beside streams,
            broadcast as in `matmul`. The axis of heads may be missing.
        causal: query i sees keys j <= i + keys - queries only: the last query sees all.
        window: with `causal`, a query sees the last `window` of these keys only.
        mask: added to the scores; broadcasts to (..., heads, queries, keys). A bool mask is True
            where a key takes part.
        scale: 1 / sqrt(d) if None.

    Returns:
        An element of items (..., heads, queries, dv), in the float dtype that q, k and v promote
        to. Half formats are computed in float32 and rounded once.

    Raises:
        SpecError: if shapes do not fit each other, d or dv is above 256, or `window` is not with `causal`.
    """
    inputs, spec, attrs, result = _prepared(q, k, v, mask, causal=causal, window=window, scale=scale)
    return cast(Compute(ATTENTION, inputs, spec, attrs), result)  # type: ignore[return-value]


def weighed(
    q: Any, k: Any, v: Any, mask: Any, *, causal: bool, window: int | None, gate: int, result: Result
) -> Compute:
    """Weigh values by exp(score) times a gate: the parts of attention's gradient, in one kernel each.

    Scores are the products of queries and keys without their last numbers, plus the mask. Gates are the products of
    their last numbers. No matrix of either is stored.

    Args:
        q, k, v: as for `attention`, of one float dtype that is no half format, and up to `WEIGHED_SIZE` numbers.
        mask: of that dtype, or None.
        causal, window: as for `attention`.
        gate: numbers at the end of queries and keys that belong to gates; 0 for gates of 1.
        result: "mean" divides by the sum of weights, as attention does. "sum" does not. "log" is the logarithm of the
            sum of weights and reads no values: of these it takes the number of columns, 1.

    Raises:
        SpecError: if shapes do not fit each other.
    """
    operands, stream = _beside([q, k, v] if mask is None else [q, k, v, mask])
    shape = _shape([one.spec.shape for one in operands], WEIGHED_SIZE)
    attrs = {"causal": causal, "window": _window(window, causal), "scale": 1.0, "gate": gate, "result": result}
    return Compute(ATTENTION, tuple(operands), Spec(operands[0].dtype, shape, stream), attrs)


def _naive_attention(
    q: Operand,
    k: Operand,
    v: Operand,
    *,
    causal: bool = False,
    window: int | None = None,
    mask: Operand | None = None,
    scale: float | None = None,
) -> Any:
    """Compute attention as a product, a softmax and a product: the oracle of the faster one, for finite values.

    All scores are stored: memory grows with queries times keys.
    """
    inputs, spec, attrs, result = _prepared(q, k, v, mask, causal=causal, window=window, scale=scale)
    queries, keys, values, *added = (cast(one, spec.dtype) for one in inputs)
    heads = spec.shape[-3] if len(spec.shape) > 2 else 1
    keys, values = _spread(keys, heads), _spread(values, heads)
    scores: Any = matmul(queries * attrs["scale"], permute_dims(keys, (*range(keys.ndim - 2), -1, -2)))
    scores = scores + added[0] if added else scores
    if causal:
        seen = visible_keys(queries.spec.shape[-2], keys.spec.shape[-2], causal=causal, window=window)
        scores = where(seen, scores, -math.inf)
    e = exp(scores - _finite(largest_of(scores, -1, keepdims=True)))
    total = sum_of(e, -1, keepdims=True)
    return cast(where(total == 0, 0, matmul(e / total, values)), result)


def _finite(largest: Any) -> Any:
    return where(largest == -math.inf, 0, largest)


def _spread(x: Any, heads: int) -> Any:
    """Return keys or values with a copy for each head."""
    own = x.spec.shape[-3] if len(x.spec.shape) > 2 else 1
    return x if own in (1, heads) else take(x, np.arange(heads) * own // heads, axis=x.ndim - 3)


# -- operands -----------------------------------------------------------------------------------------


def _prepared(
    q: Operand, k: Operand, v: Operand, mask: Operand | None, *, causal: bool, window: int | None, scale: float | None
) -> tuple[tuple[Element, ...], Spec, dict[str, Any], np.dtype]:
    """Return operands that line up, the spec and the attributes of the op, and the dtype of the result."""
    given = [as_element(one, "attention") for one in (q, k, v)]
    for one in given:
        if len(one.spec.shape) < 2:
            raise _refusal(
                "cannot attend along this axis", "a stream of (heads, n, d), or a resident of them", one.spec
            )
    result = common_dtype("attention", [cast(one, resolve_dtypes(exp.op, [one.dtype])[-1]) for one in given])
    inner = FLOAT32 if result in (FLOAT16, BFLOAT16) else result
    operands: list[Element] = [cast(one, result) for one in given]
    if mask is not None:
        operands.append(_as_matrix(_added(as_element(mask, "attention"), inner)))
    operands, stream = _beside(operands)
    shape = _shape([one.spec.shape for one in operands])
    seen = flag("attention", "causal", causal)
    attrs = {"causal": seen, "window": _window(window, seen), "scale": _scale(scale, operands[0])}
    return tuple(operands), Spec(inner, shape, stream), attrs, result


def _refusal(message: str, expected: str, got: Any, hint: str | None = None) -> SpecError:
    return SpecError(message, element="attention", site=user_site(), expected=expected, got=str(got), hint=hint)


def _added(mask: Element, dtype: np.dtype) -> Element:
    """Return the numbers that a mask adds to the scores."""
    if mask.dtype != BOOL:
        return cast(mask, dtype)
    seen, hidden = dtype.type(0), dtype.type(-math.inf)
    if isinstance(mask, Constant):
        return Constant(np.where(mask.value, seen, hidden))
    return where(mask, Constant(seen), Constant(hidden))


def _as_matrix(mask: Any) -> Any:
    """Return a resident mask with an axis of queries and one of keys."""
    missing = 2 - mask.ndim
    return reshape(mask, (*(1,) * missing, *mask.shape)) if missing > 0 and not mask.spec.is_stream else mask


def _beside(operands: Sequence[Element]) -> tuple[list[Element], Stream | None]:
    """Return operands with residents aligned to the streams, and the stream of the result."""
    streams = [one for one in operands if one.spec.is_stream]
    if not streams:
        return list(operands), None
    first = streams[0]
    for other in streams[1:]:
        if other.ndim != first.ndim:
            raise _refusal(
                "cannot align streams of unequal rank",
                f"{first.ndim} axes as in {format_shape(first.shape)}",
                format_shape(other.shape),
                "index with None where an axis is missing: mask[:, None]",
            )
    length = common_length("attention", streams)
    aligned = [one if one.spec.is_stream else align_resident("attention", one, first, length) for one in operands]
    return aligned, Stream(length)


def _shape(shapes: Sequence[tuple[int, ...]], most: int = HEAD_SIZE) -> tuple[int, ...]:
    """Return the item shape of the result.

    Raises:
        SpecError: if operands do not fit each other.
    """
    q, k, v, *rest = shapes
    got = ", ".join(
        f"{name} {format_shape(shape)}" for name, shape in zip(("q", "k", "v", "mask"), shapes, strict=False)
    )
    if q[-1] != k[-1]:
        raise _refusal("cannot compare queries with keys of another size", f"d = {q[-1]} for both", got)
    if k[-2] != v[-2]:
        raise _refusal("cannot weigh another number of values than keys", f"{k[-2]} of both", got)
    if not q[-1] <= most >= v[-1]:
        raise _refusal("cannot hold heads of this size", f"at most {most} numbers in a query and in a value", got)
    if any(len(mask) < 2 or mask[-2] not in (1, q[-2]) or mask[-1] not in (1, k[-2]) for mask in rest):
        raise _refusal("cannot broadcast the mask to the scores", f"(..., {q[-2]}, {k[-2]})", got)
    every = [_head_count(shape) for shape in shapes]
    heads = next((own for own in every if own != 1), 1)
    sharing = all(own in (1, heads) or (own and heads % own == 0) for own in every[1:3])
    if not sharing or any(own not in (1, heads) for own in every[3:]):
        raise _refusal(
            "cannot share heads", "q's heads to be a multiple of k's and v's, and one mask or one a head", got
        )
    try:
        lead = np.broadcast_shapes(*(shape[:-3] for shape in shapes))
    except ValueError as error:
        raise _refusal("cannot broadcast axes before the heads", "equal sizes, or 1", got) from error
    axis = (heads,) if any(len(shape) > 2 for shape in shapes) else ()
    return (*lead, *axis, q[-2], v[-1])


def _head_count(shape: Sequence[int]) -> int:
    return shape[-3] if len(shape) > 2 else 1


def _window(window: int | None, causal: bool) -> int | None:
    if window is None:
        return None
    words = "window >= 1, causal=True"
    size = whole("attention", "window", window, 1, expected=words)
    if not causal:
        raise _refusal("cannot take window=", words, f"window={size}, causal=False")
    return size


def _scale(scale: float | None, q: Element) -> float:
    if scale is None:
        return 1 / math.sqrt(q.spec.shape[-1] or 1)
    return real("attention", "scale", scale, "a float")
