"""Positions of records in their texts, and the rotary embedding of positions.

The angle of a rotation is a whole number of steps of one frequency. Only its part of a whole turn counts, so steps are
integers of 2^-64 turns, and their products wrap around where a turn is whole. No float64 is needed. The error of an
angle is at most `position * 2^-64` turns before it is rounded to a float. With frequency factors it is at most
`position * (1 + 1 / factor) * 2^-64`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from flowcompute.elements.alignment import common_length
from flowcompute.elements.arguments import one_of, real, whole
from flowcompute.elements.axes import concat, flip, reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Constant, Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.generated import index
from flowcompute.elements.math import any, astype, cos, cut_along, multiply, sin, where
from flowcompute.elements.nn.floating import as_floats
from flowcompute.elements.site import user_site
from flowcompute.elements.streams import MOST_SLOTS, POSITION, cumulative_sum, text_places
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import FLOAT32, FLOAT64, INT32, INT64

Pairs = Literal["neighbours", "halves"]
Scaling = Literal["none", "linear", "yarn"]

_TURN = 1 << 64
_DIGITS = 60
_TWO_PI = Decimal("6.28318530717958647692528676655900576839433879875021164194988918461563281257242")
_MOST_DIMS = 1 << 16
_FACTOR_BITS = 32
"""Bits behind the point of a frequency factor that is known only when it runs."""


# -- positions --------------------------------------------------------------------------------------------------------


@public
def position(tokens: Operand, text: Operand | None = None, *, slots: int = 1) -> Any:
    """Return the position of each record in its text, 0, 1, 2, ..., as int64 `(N,)`.

    Args:
        tokens: a stream of items of any shape and dtype, of which only the number of records counts.
        text: a stream of integers beside it, or a resident vector with one for each record. Where it differs from the
            record before, a text begins, and counting starts at 0 again. None for one text.
        slots: how many texts may be open at once. Text t is kept in slot `t % slots`, and compared with the record
            before in its slot.

    Raises:
        SpecError: if `tokens` is no stream, or `text` is no stream of single integers of its length.
    """
    if text is not None:
        return places(tokens, text, slots)[:, POSITION]
    stream = _stream(tokens)
    length = stream.spec.length
    return _counted(stream) if length is None else index(length)


def places(tokens: Operand, text: Operand, slots: int) -> Any:
    """Return the places of records in their texts; see `text_places`.

    Raises:
        SpecError: if `text` is no stream of single integers beside the tokens, or there cannot be so many slots.
    """
    slots = whole("position", "slots", slots, 1, MOST_SLOTS)
    return text_places(_single_integers("position", "text", text, _stream(tokens)), slots)


def _stream(tokens: Operand) -> Any:
    """Return a stream.

    Raises:
        SpecError: if it is none.
    """
    stream: Any = as_element(tokens, "position")
    if stream.spec.is_stream:
        return stream
    raise SpecError(
        "cannot count the records of what is no stream",
        element="position",
        site=user_site(),
        expected="a stream",
        got=str(stream.spec),
    )


def _counted(stream: Any) -> Any:
    """Return the numbers of the records of a stream whose length is not known."""
    one = any(stream, axis=tuple(range(1, stream.ndim))) if stream.spec.shape else stream
    ones = where(one == one, np.int64(1), np.int64(1))  # noqa: PLR0124 - NaN or not: what it is does not matter
    return cumulative_sum(ones, exclusive=True)


def _single_integers(op: str, what: str, operand: Operand, stream: Any) -> Any:
    """Return a stream of single integers beside another stream.

    Raises:
        SpecError: if the operand is none, or has another length.
    """
    given: Any = as_element(operand, op)
    element = cut_along(op, given, stream)
    if element.spec.shape != () or element.dtype.kind not in "iu":
        raise SpecError(
            f"cannot take {what}=",
            element=op,
            site=user_site(),
            expected="a stream of single integers",
            got=str(given.spec),
            hint='cast it with .astype("int64")' if element.spec.shape == () else "x[:, 0] has one number a record",
        )
    common_length(op, [stream, element])
    return element


# -- frequencies ------------------------------------------------------------------------------------------------------


@functools.lru_cache(256)
def _plain_steps(base: float, dims: int, scaling: Scaling, yarn: tuple[float, ...]) -> tuple[int, ...]:
    """Return the turns of each pair from one position to the next, in 2^-64 turns.

    The mixture of frequencies is YaRN's (B. Peng, J. Quesnelle, H. Fan and E. Shippole, 2023), with the parameters
    that GGUF files name.
    """
    factor, context, extrapolated, fast, slow = yarn
    with localcontext(prec=_DIGITS):
        log = Decimal(base).ln()
        turns = [(-2 * pair * log / dims).exp() / _TWO_PI for pair in range(dims // 2)]
        if scaling == "none":
            return tuple(int(one * _TURN) for one in turns)
        shrunk = 1 / Decimal(factor)
        if scaling == "linear":
            return tuple(int(one * shrunk * _TURN) for one in turns)

        def pair_of(rotations: float) -> Decimal:
            """Return the pair, counted from 0, that turns so often in the original context."""
            return dims * (Decimal(context) / (Decimal(rotations) * _TWO_PI)).ln() / (2 * log)

        low = max(Decimal(0), pair_of(fast).to_integral_value(ROUND_FLOOR))
        high = min(Decimal(dims - 1), pair_of(slow).to_integral_value(ROUND_CEILING))
        steps = []
        for pair, one in enumerate(turns):
            along = (pair - low) / max(Decimal("0.001"), high - low)
            own = (1 - min(Decimal(1), max(Decimal(0), along))) * Decimal(extrapolated)
            steps.append(int(one * (shrunk * (1 - own) + own) * _TURN))
        return tuple(steps)


def _steps(plain: Sequence[int], factors: Element | None) -> Any:
    """Return the steps of all pairs, divided by their factors, as int64 that wraps around."""
    if factors is None or isinstance(factors, Constant):
        divisors = [Fraction(float(one)) for one in factors.value] if isinstance(factors, Constant) else []
        divided = [math.floor(one / by) for one, by in zip(plain, divisors, strict=True)] if divisors else plain
        return Constant(np.array([one % _TURN for one in divided], np.uint64).astype(np.int64))
    # The same quotients by long division, in digits of 16 bits. A step is less than a sixth of a turn, so that all
    # numbers stay below 2^63.
    whole_steps: Any = Constant(np.array(plain, np.int64))
    by = astype(multiply(factors, np.float32(2.0**_FACTOR_BITS)), INT64)
    quotient = whole_steps // by
    rest = whole_steps - quotient * by
    for _ in range(_FACTOR_BITS // 16):
        digit = (rest << 16) // by
        rest = (rest << 16) - digit * by
        quotient = (quotient << 16) + digit
    return quotient


def _checked_factors(factors: Operand | None, pairs: int) -> Element | None:
    """Return the frequency factors of all pairs.

    Raises:
        SpecError: if there is another number of them, or one that is known is not positive and finite.
    """
    if factors is None:
        return None
    element = as_element(factors, "rope")
    if element.spec.is_stream or element.shape != (pairs,) or element.dtype.kind in "b":
        raise SpecError(
            "cannot take frequency_factors=",
            element="rope",
            site=user_site(),
            expected=f"a resident vector of {pairs} numbers, one for each pair",
            got=str(element.spec),
        )
    known = element.value.astype(np.float64) if isinstance(element, Constant) else None
    if known is None and element.dtype != FLOAT32:
        raise SpecError(
            "cannot take frequency_factors= of this dtype, which are known only when it runs",
            element="rope",
            site=user_site(),
            expected="float32",
            got=str(element.spec),
            hint='cast them with .astype("float32")',
        )
    bad = [] if known is None else [float(one) for one in known if not 0 < one < math.inf]
    if bad:
        raise SpecError(
            "cannot take frequency_factors=",
            element="rope",
            site=user_site(),
            expected="positive, finite numbers",
            got=short_repr(bad[0]),
        )
    return element


def _positive(what: str, value: Any, least: float = 0.0) -> float:
    """Return a finite number above 0, and not below `least`.

    Raises:
        SpecError: for any other.
    """
    number = real("rope", what, value)
    if not (0 < number < math.inf and number >= least):
        raise SpecError(
            f"cannot take {what}=",
            element="rope",
            site=user_site(),
            expected=f"a finite number {f'from {least:g} on' if least else 'above 0'}",
            got=short_repr(value),
        )
    return number


# -- rotation ---------------------------------------------------------------------------------------------------------


@public
def rope(
    x: Operand,
    at: Operand,
    base: float = 10000.0,
    pairs: Pairs = "neighbours",
    dims: int | None = None,
    scaling: Scaling | None = None,
    *,
    factor: float | None = None,
    original_context: int | None = None,
    ext_factor: float = 1.0,
    attn_factor: float = 1.0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    frequency_factors: Operand | None = None,
) -> Any:
    """Rotate pairs of numbers by angles that grow with the position: the rotary embedding.

    Pair i of each vector is turned by `at * base^(-2i / dims)` radians. Angles are right to about 1e-7 of a turn in
    float32, and to 2e-16 + 6e-20 |at| of a turn in float64, however large positions are. Half formats are computed in
    float32 and rounded once.

    J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021).

    Args:
        x: a stream of items `(..., d)`, such as `(heads, d)`.
        at: a stream of single integers beside it, the positions, or a resident vector with one for each record.
        base: of the frequencies, above 1.
        pairs: "neighbours" turns numbers 2i and 2i + 1 (llama's order in GGUF files), "halves" numbers i and
            i + dims / 2 (that of GPT-NeoX).
        dims: how many numbers of each vector are turned, an even count; the others stay. All by default.
        scaling: as files name it. "linear" divides angles by `factor`; "yarn" does so for slow pairs only. None or
            "none" for neither.
        factor: how many times the original context the model sees, from 1 on; for both scalings.
        original_context: positions that the model was trained on, for "yarn".
        ext_factor: for "yarn", how much of the fast pairs' own frequency is kept, from 0 to 1.
        attn_factor: a factor of the result, for both scalings. For "yarn" it is multiplied by
            `1 + 0.1 ln(factor)` unless `ext_factor` is 0.
        beta_fast, beta_slow: for "yarn", turns in the original context from which a pair is fast, or up to which it
            is slow.
        frequency_factors: a resident vector of `dims / 2` numbers that angles are divided by (`rope_freqs.weight`).
            Where they are known only when it runs, they are float32, and of 2^-8 to 2^14.

    Returns:
        A stream of the shape of `x`.

    Raises:
        SpecError: if `x` is no stream of vectors, `at` is no stream of single integers, or an argument does not fit.
    """
    (value,), result = as_floats("rope", x)
    if not value.spec.is_stream or not value.spec.shape:
        raise SpecError(
            "cannot turn this",
            element="rope",
            site=user_site(),
            expected="a stream of items (..., d)",
            got=str(value.spec),
        )
    size = value.spec.shape[-1]
    turned = size if dims is None else whole("rope", "dims", dims, 2, min(size, _MOST_DIMS))
    if turned % 2 or not turned:
        raise SpecError(
            "cannot make pairs of an odd number of numbers",
            element="rope",
            site=user_site(),
            expected="an even number of dims, from 2 on",
            got=str(turned) if dims is not None else str(value.spec),
            hint="dims= says how many numbers of each vector are turned",
        )
    order = one_of("rope", "pairs", pairs, ("neighbours", "halves"))
    plain, scale = _scaled_steps(
        base, turned, scaling, factor, original_context, ext_factor, attn_factor, beta_fast, beta_slow
    )
    steps = _steps(plain, _checked_factors(frequency_factors, turned // 2))
    places = _single_integers("rope", "at", at, value)
    made = _rotated(value[..., :turned], places, steps, scale, halves=order == "halves")
    if turned < size:
        made = concat([made, value[..., turned:]], axis=-1)
    return cast(made, result)


def _scaled_steps(
    base: Any,
    dims: int,
    scaling: Any,
    factor: Any,
    original_context: Any,
    ext_factor: Any,
    attn_factor: Any,
    beta_fast: Any,
    beta_slow: Any,
) -> tuple[tuple[int, ...], float]:
    """Return the steps of all pairs, and the factor of the result.

    Raises:
        SpecError: for an argument that is out of range, missing, or not of this scaling.
    """
    kind: Scaling = "none" if scaling is None else one_of("rope", "scaling", scaling, ("none", "linear", "yarn"))
    root = _positive("base", base, 1.0)
    extrapolated, fast, slow = real("rope", "ext_factor", ext_factor), 1.0, 1.0
    needed = {"factor": factor, "original_context": original_context}
    wanted = {"none": (), "linear": ("factor",), "yarn": ("factor", "original_context")}[kind]
    for name, given in needed.items():
        if (given is None) == (name in wanted):
            raise SpecError(
                f"cannot take {name}={given}",
                element="rope",
                site=user_site(),
                expected=f"{name}= with scaling={kind!r}" if given is None else "scaling= that has it",
                got=f"scaling={kind!r}",
            )
    scale = _positive("attn_factor", attn_factor)
    if kind == "none" and scale != 1.0:
        raise SpecError(
            "cannot take attn_factor=", element="rope", site=user_site(), expected="scaling= that has it", got="none"
        )
    ratio = _positive("factor", factor, 1.0) if kind != "none" else 1.0
    context = 1
    if kind == "yarn":
        context = whole("rope", "original_context", original_context, 1)
        fast, slow = _positive("beta_fast", beta_fast), _positive("beta_slow", beta_slow)
        if not 0 <= extrapolated <= 1 or root == 1.0:
            raise SpecError(
                'cannot take these arguments with scaling="yarn"',
                element="rope",
                site=user_site(),
                expected="ext_factor= from 0 to 1, and a base above 1",
                got=f"ext_factor={extrapolated:g}, base={root:g}",
            )
        if extrapolated:
            scale *= 1.0 + 0.1 * math.log(ratio)
    return _plain_steps(root, dims, kind, (ratio, context, extrapolated, fast, slow)), scale


def _rotated(x: Any, at: Any, steps: Any, scale: float, *, halves: bool) -> Any:
    """Return vectors whose pairs are turned by `at * steps`, a pair's two numbers seen as an axis of their own."""
    *heads, size = x.spec.shape
    pair, axis = ((2, size // 2), -2) if halves else ((size // 2, 2), -1)
    seen = reshape(x, (-1, *heads, *pair))
    ones = (1,) * len(heads)
    angle = _angle(reshape(at, (-1, *ones, 1, 1)), reshape(steps, (1, -1) if halves else (-1, 1)), x.dtype)
    cosine, sine = (turn if scale == 1.0 else turn * scale for turn in (cos(angle), sin(angle)))
    signs = np.array([-1, 1], x.dtype).reshape((2, 1) if halves else (2,))
    # What the angles are multiplied by stands last, so that all but the angles is one kernel.
    made = cosine * seen + sine * (flip(seen, axis) * signs)
    return reshape(made, (-1, *heads, size))


def _angle(at: Any, steps: Any, dtype: np.dtype) -> Any:
    """Return the angles, from -pi to pi, of so many steps each."""
    turns = cast(at, INT64) * steps
    if dtype == FLOAT64:
        return astype(turns, FLOAT64) * (2 * math.pi / 2.0**64)
    # The upper half has all bits that float32 shows of an angle, and converts faster.
    return astype(astype(turns >> 32, INT32), FLOAT32) * np.float32(2 * math.pi / 2.0**32)
