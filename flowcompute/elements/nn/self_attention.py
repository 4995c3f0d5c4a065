"""Causal self-attention along the stream: its state is the keys and values of the records before (a KV cache).

The answer of a record is that of `attention` over all records of its text so far. Its order of sums is the same: tiles
of 64 keys count from the text's first record. It depends on no batch, so records may come one by one or all at once.
"""

from __future__ import annotations

import math
from typing import Any

from flowcompute.elements.alignment import common_dtype, common_length
from flowcompute.elements.arguments import real, whole
from flowcompute.elements.axes import reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.elementwise_functions import resolve_dtypes
from flowcompute.elements.math import exp
from flowcompute.elements.nn.dot_product_attention import HEAD_SIZE, attention_of
from flowcompute.elements.nn.positions import places
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.elements.streams import MOST_SLOTS, POSITION
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, INT32, INT64, Spec, Stream, format_shape

NAME = "self_attention"

MOST_CONTEXT = 1 << 24
"""Most records of a text that attention looks back on."""


def _declared(*_: object) -> Any:
    raise AssertionError("scans state their dtypes themselves")


def _rebuild(kept: KeptOp) -> Any:
    """Make self-attention again, before its result is rounded."""
    attrs = kept.attrs
    kept.require(attrs.take("axis") is None, "a scan along the stream")
    made = _attend(
        *kept.streams(3, 4),
        window=attrs.maybe("window", attrs.whole),
        context=attrs.maybe("context", attrs.whole),
        scale=attrs.real("scale"),
        slots=attrs.whole("slots", 2, MOST_SLOTS) if "slots" in attrs else 1,
    )
    return made if made.op is SELF_ATTENTION else made.inputs[0]


SELF_ATTENTION = Op(
    NAME, 3, Kind.SCAN, attention_of, _declared, cost=1000, doc="Attention of each record to those before it.",
    rebuild=_rebuild,
)  # fmt: skip


@public
def self_attention(
    q: Operand,
    k: Operand,
    v: Operand,
    *,
    text: Operand | None = None,
    window: int | None = None,
    context: int | None = None,
    scale: float | None = None,
    slots: int = 1,
) -> Any:
    """Let each record of a stream attend to itself and to the records of its text before it.

    The state of this operation is the keys and values of the text so far. It lasts from batch to batch. Checkpoints
    keep it, and the plan counts it. A new text begins with an empty state.

    Several texts may be open at once, their records in any order: a conversation is a text, and a batch takes the next
    record of each. The answer of a record has the bits that it has where its text is alone.

    Args:
        q: queries, a stream of items (heads, d), or (d,) for one head.
        k: keys (kv_heads, d), a stream of the same length. `heads` is a multiple of `kv_heads`, and head h uses keys
            and values h * kv_heads // heads.
        v: values (kv_heads, dv).
        text: integers, a stream of the same length. A text ends where the number changes. None: all is one text.
        window: a record sees the last `window` records of its text only, itself included. None: all of them.
        context: most records of a text. A longer text is an error while the job runs. None: the length of the
            stream, or no limit with `window`.
        scale: factor of the scores; 1 / sqrt(d) if None.
        slots: how many texts may be open at once. Text t is kept in slot `t % slots`, which begins anew where another
            number of that slot comes. Each slot has room for `context` records.

    Returns:
        A stream of items (heads, dv), or (dv,) for one head, in the float dtype that q, k and v promote to. Half
        formats are computed in float32 and rounded once.

    Raises:
        SpecError: if shapes or dtypes do not fit, or d or dv is above 256. Also if `context` is missing where neither
            the length nor `window` says how many records are kept. Also for several slots without `text`.
    """
    every = [as_element(one, NAME) for one in (q, k, v)]
    for one in every:
        if not one.spec.is_stream or len(one.spec.shape) not in (1, 2):
            raise _refusal(
                "cannot attend along these",
                "streams of items (heads, d), or (d,)",
                one.spec,
                "for whole sequences as items, or residents, take fc.nn.attention(..., causal=True)",
            )
    single = all(len(one.spec.shape) == 1 for one in every)
    every = [reshape(one, (-1, 1, *one.spec.shape)) if len(one.spec.shape) == 1 else one for one in every]
    slots = whole(NAME, "slots", slots, 1, MOST_SLOTS)
    at = None if text is None else places(text, text, slots)
    if at is not None and slots == 1:
        at = at[:, POSITION]
    q, k, v = every
    made = _attend(q, k, v, at, window=window, context=context, scale=scale, slots=slots)
    return reshape(made, (-1, made.spec.shape[-1])) if single else made


def _attend(
    q: Any,
    k: Any,
    v: Any,
    at: Any = None,
    *,
    window: int | None,
    context: int | None,
    scale: float | None,
    slots: int = 1,
) -> Any:
    """Attend with known positions `at` of the records in their texts, or places; None where all are one text."""
    given: list[Element] = [q, k, v]
    result = common_dtype(NAME, [cast(one, resolve_dtypes(exp.op, [one.dtype])[-1]) for one in given])
    inner = FLOAT32 if result in (FLOAT16, BFLOAT16) else result
    operands = [cast(one, result) for one in given]
    if slots > 1 and (at is None or at.spec.shape != (3,)):
        raise _refusal("cannot keep several texts apart", "text=, the number of each record's text", "slots= alone")
    if at is not None:
        # Positions that the host has counted stay as they are: it reads them, too.
        operands.append(at if at.dtype == INT64 else cast(at, INT32))
    length = common_length(NAME, operands)
    shape = _shape([one.spec.shape for one in given])
    if window is not None:
        window = whole(NAME, "window", window, 1, MOST_CONTEXT, expected="None or a whole number from 1")
    if context is not None:
        context = whole(NAME, "context", context, 1, MOST_CONTEXT, expected="None or a whole number from 1")
    elif length is None and window is None:
        raise _refusal(
            "cannot keep the keys of a text of any length",
            "context=, the most records of a text, where the stream's length is unknown",
            "a stream of unknown length",
        )
    factor = 1 / math.sqrt(q.spec.shape[-1] or 1) if scale is None else real(NAME, "scale", scale, "a float")
    attrs = {"axis": None, "window": window, "context": context, "scale": factor}
    if slots > 1:
        attrs["slots"] = slots
    return cast(Compute(SELF_ATTENTION, tuple(operands), Spec(inner, shape, Stream(length)), attrs), result)


def _shape(shapes: list[tuple[int, ...]]) -> tuple[int, int]:
    """Return the item shape of the result.

    Raises:
        SpecError: if operands do not fit each other.
    """
    q, k, v = shapes
    got = ", ".join(f"{name} {format_shape(shape)}" for name, shape in zip("qkv", shapes, strict=True))
    if any(len(shape) != 2 for shape in shapes) or q[1] != k[1] or k[0] != v[0]:
        raise _refusal("cannot compare these queries with these keys", "q (h, d), k (g, d), v (g, dv)", got)
    if not q[1] <= HEAD_SIZE >= v[1]:
        raise _refusal("cannot hold heads of this size", f"at most {HEAD_SIZE} numbers in a query and in a value", got)
    if not k[0] or q[0] % k[0]:
        raise _refusal("cannot share heads", "q's heads to be a multiple of k's", got)
    return q[0], v[1]


def _refusal(message: str, expected: str, got: Any, hint: str | None = None) -> SpecError:
    return SpecError(message, element=NAME, site=user_site(), expected=expected, got=str(got), hint=hint)
