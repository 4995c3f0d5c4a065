"""Scans: operations that carry along the stream, or along an axis of each item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from flowcompute.elements.alignment import broadcast, common_dtype
from flowcompute.elements.arguments import dtype_of, flag, one_of, whole
from flowcompute.elements.axes import flip
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.elementwise_functions import is_weak
from flowcompute.elements.math import normalise_axes
from flowcompute.elements.op import MOST, KeptOp, Kind, Op, Rebuild
from flowcompute.elements.site import user_site
from flowcompute.elements.streams.scan_tree import blelloch_sum
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    UINT8,
    UINT64,
    Spec,
    is_float,
)


def _declared(*_: object) -> tuple[np.dtype, ...]:
    raise AssertionError("scans state their dtypes themselves")


def _kept_axis(kept: KeptOp) -> int:
    """Return the axis of a kept scan as users count it."""
    return kept.public_axis(kept.attrs.maybe("axis", kept.attrs.whole))


def _rebuild_accumulation(kept: KeptOp) -> Compute:
    scan = {"cumulative_sum": cumulative_sum, "cumulative_prod": cumulative_prod}[kept.op.name]
    exclusive = "exclusive" in kept.attrs and kept.attrs.flag("exclusive")
    return scan(kept.one(), _kept_axis(kept), dtype=kept.one().dtype, exclusive=exclusive)


def _rebuild_extreme(kept: KeptOp) -> Compute:
    scan = {"cumulative_max": cumulative_max, "cumulative_min": cumulative_min}[kept.op.name]
    return scan(kept.one(), _kept_axis(kept))


def _rebuild_ema(kept: KeptOp) -> Compute:
    kept.require(kept.attrs.take("axis") is None, "a scan along the stream")
    return ema(kept.one(), kept.attrs.take("alpha"))


def _rebuild_recurrence(kept: KeptOp) -> Compute:
    a, b = kept.operands(2)
    axis = kept.attrs.maybe("axis", kept.attrs.whole)
    lead = a.spec.is_stream or b.spec.is_stream
    return linear_recurrence(a, b, 0 if axis is None else axis + lead)


def _scan(name: str, numpy: Callable[..., Any], rebuild: Rebuild, arity: int = 1) -> Op:
    return Op(name, arity, Kind.SCAN, numpy, _declared, cost=10, rebuild=rebuild)


CUMULATIVE_SUM = _scan("cumulative_sum", np.cumulative_sum, _rebuild_accumulation)
CUMULATIVE_PROD = _scan("cumulative_prod", np.cumulative_prod, _rebuild_accumulation)
CUMULATIVE_MAX = _scan("cumulative_max", np.maximum.accumulate, _rebuild_extreme)
CUMULATIVE_MIN = _scan("cumulative_min", np.minimum.accumulate, _rebuild_extreme)
EMA = _scan("ema", np.asarray, _rebuild_ema)
LINEAR_RECURRENCE = _scan("linear_recurrence", np.asarray, _rebuild_recurrence, arity=2)


def scan_axis(op: str, element: Any, axis: int | None) -> int | None:
    """Return None for the stream, else the item axis."""
    if element.ndim == 0:
        raise SpecError(
            "cannot run along an axis of a number",
            element=op,
            site=user_site(),
            expected="a value with axes",
            got="a number",
        )
    if axis is None:
        if element.ndim > 1:
            raise SpecError(
                "cannot choose an axis to run along",
                element=op,
                site=user_site(),
                expected="axis= where there are several axes",
                got=str(element.spec),
                hint="axis=0 runs along the stream" if element.spec.is_stream else None,
            )
        axis = 0
    (normal,) = normalise_axes(op, element, whole(op, "axis", axis, -MOST))
    if not element.spec.is_stream:
        return normal
    return None if normal == 0 else normal - 1


def _build(op: Op, x: Any, axis: int | None, dtype: np.dtype, *, exclusive: bool = False) -> Compute:
    """Scan in `dtype`; half formats are scanned in float32 and rounded, bools as the numbers 0 and 1."""
    wide = FLOAT32 if dtype in (FLOAT16, BFLOAT16) else UINT8 if dtype == BOOL else dtype
    element = cast(x, wide)
    attrs = {"axis": axis, **({"exclusive": True} if exclusive else {})}
    made = Compute(op, (element,), Spec(wide, element.spec.shape, element.spec.stream), attrs)
    return cast(made, dtype)  # type: ignore[return-value]


def _accumulating(op: Op, x: Operand, axis: int | None, dtype: npt.DTypeLike | None, *, exclusive: bool) -> Compute:
    element, exclusive = as_element(x, op.name), flag(op.name, "exclusive", exclusive)
    along = scan_axis(op.name, element, axis)
    own = INT64 if element.dtype.kind in "bi" else UINT64 if element.dtype.kind == "u" else element.dtype
    result = own if dtype is None else dtype_of(op.name, dtype)
    if result == BOOL:
        raise SpecError(
            "cannot give a bool result",
            element=op.name,
            site=user_site(),
            expected="a dtype of numbers",
            hint="use cumulative_max of bools",
        )
    return _build(op, element, along, result, exclusive=exclusive)


def _backwards(scan: Callable[[Any, int], Any], op: str, x: Operand, axis: int | None) -> Any:
    """Scan an axis of items from its end to its beginning."""
    element: Any = as_element(x, op)
    along = scan_axis(op, element, axis)
    if along is None:
        raise SpecError(
            "cannot scan a stream from its end",
            element=op,
            site=user_site(),
            expected="reverse=False, or an axis of items",
            got="reverse=True along the stream",
        )
    place = along + element.spec.is_stream
    return flip(scan(flip(element, place), place), place)


@public
def cumulative_sum(
    x: Operand,
    axis: int | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    exclusive: bool = False,
    method: Literal["runs", "blelloch"] = "runs",
    reverse: bool = False,
) -> Compute:
    """Return running sums along `axis` (axis 0 of a stream is the stream), each item's own number included.

    Integers and bools add up in int64 or uint64, floats with the error of sums in float64 over short runs in their own
    dtype. Results keep their bits for any batch size.

    Args:
        x: any element.
        axis: may be left out where there is only one.
        dtype: of the result.
        exclusive: each item's own number left out, so the first result is 0. JAX's and TensorFlow's scans have this
            name. The Array API's `include_initial` would make the axis longer.
        method: "runs" is the canonical order; "blelloch" the textbooks' work-efficient tree, along axes
            of items, in the dtype of the result.
        reverse: whether an axis of items is scanned from its end on, so that the last result is its own number.

    Raises:
        SpecError: without `axis` where there are several, or for a tree along a stream or from its end.
    """
    if flag(CUMULATIVE_SUM.name, "reverse", reverse):
        how: dict[str, Any] = {"dtype": dtype, "exclusive": exclusive, "method": method}
        turned: Any = _backwards(lambda one, at: cumulative_sum(one, at, **how), CUMULATIVE_SUM.name, x, axis)
        return turned  # type: ignore[no-any-return]
    method = one_of(CUMULATIVE_SUM.name, "method", method, ("runs", "blelloch"))
    made = _accumulating(CUMULATIVE_SUM, x, axis, dtype, exclusive=exclusive)
    if method == "runs":
        return made
    along = scan_axis(CUMULATIVE_SUM.name, made, axis)
    if along is None:
        raise SpecError(
            "cannot scan by this method",
            element=CUMULATIVE_SUM.name,
            site=user_site(),
            expected="method='runs', or 'blelloch' along an axis of items",
            got=f"method={method!r} along the stream",
        )
    element = cast(as_element(x, CUMULATIVE_SUM.name), made.dtype)
    return blelloch_sum(element, along + element.spec.is_stream, exclusive=exclusive)


@public
def cumulative_prod(
    x: Operand,
    axis: int | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    exclusive: bool = False,
    reverse: bool = False,
) -> Compute:
    """Return running products along `axis`; see `cumulative_sum`. The first exclusive result is 1."""
    if flag(CUMULATIVE_PROD.name, "reverse", reverse):
        how: dict[str, Any] = {"dtype": dtype, "exclusive": exclusive}
        turned: Any = _backwards(lambda one, at: cumulative_prod(one, at, **how), CUMULATIVE_PROD.name, x, axis)
        return turned  # type: ignore[no-any-return]
    return _accumulating(CUMULATIVE_PROD, x, axis, dtype, exclusive=exclusive)


@public
def cumulative_max(x: Operand, axis: int | None = None) -> Compute:
    """Return the running maximum along `axis`; NaN from the first NaN on.

    The dtype is that of `x`.

    Args:
        x: any element.
        axis: may be left out where there is only one.

    Raises:
        SpecError: without `axis` where there are several.
    """
    element = as_element(x, "cumulative_max")
    return _build(CUMULATIVE_MAX, element, scan_axis("cumulative_max", element, axis), element.dtype)


@public
def cumulative_min(x: Operand, axis: int | None = None) -> Compute:
    """Return the running minimum along `axis`; NaN from the first NaN on.

    Arguments, dtypes and errors are those of `cumulative_max`.
    """
    element = as_element(x, "cumulative_min")
    return _build(CUMULATIVE_MIN, element, scan_axis("cumulative_min", element, axis), element.dtype)


@public
def linear_recurrence(a: Operand, b: Operand, axis: int | None = None) -> Compute:
    """Run the first-order recurrence `h[t] = a[t] * h[t-1] + b[t]` along `axis` from 0, and return every h.

    Each step is a fused multiply-add in the dtype of the numbers (half formats in float32). With |a| <= r < 1 an answer
    differs from the exact one by at most `eps / (1 - r)` of the largest h. That holds after any number of steps. There
    `eps` is half a unit in the last place.

    Args:
        a: factors; broadcast with `b`.
        b: what is added; both are promoted to one floating dtype.
        axis: may be left out where there is only one; axis 0 of a stream is the stream.

    Raises:
        SpecError: for integers, without `axis` where there are several, or shapes that do not fit.
    """
    name = LINEAR_RECURRENCE.name
    left, right = as_element(a, name), as_element(b, name)
    # Python's numbers take the dtype of what they stand beside.
    known = [one for one, operand in ((left, a), (right, b)) if not is_weak(operand)]
    dtype = common_dtype(name, known or [left, right])
    if not is_float(dtype):
        raise SpecError(
            "cannot run on this dtype",
            element=name,
            site=user_site(),
            expected="a floating dtype",
            got=dtype.name,
            hint='cast with .astype("float32")',
        )
    wide = FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype
    inputs, shape, stream = broadcast(name, [cast(left, wide), cast(right, wide)])
    whole = left if left.ndim >= right.ndim else right
    made = Compute(LINEAR_RECURRENCE, tuple(inputs), Spec(wide, shape, stream), {"axis": scan_axis(name, whole, axis)})
    return cast(made, dtype)  # type: ignore[return-value]


@public
def ema(x: Operand, alpha: float) -> Compute:
    """Average exponentially along the stream: `y[0] = x[0]`, `y[t] = (1 - alpha) * y[t-1] + alpha * x[t]`.

    Computed in float64; floats keep their dtype, integers give float64.

    Args:
        x: a stream.
        alpha: weight of the newest record, over 0 and at most 1.

    Raises:
        SpecError: for another `alpha`, or what is no stream.
    """
    element = as_element(x, "ema")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha <= 1:
        raise SpecError(
            "cannot take alpha=", element="ema", site=user_site(), expected="0 < alpha <= 1", got=short_repr(alpha)
        )
    if not element.spec.is_stream:
        raise SpecError(
            "cannot run along the stream of a resident value",
            element="ema",
            site=user_site(),
            expected="a stream",
            got=str(element.spec),
        )
    result = element.dtype if is_float(element.dtype) else FLOAT64
    spec = element.spec
    wide = FLOAT32 if result in (FLOAT16, BFLOAT16) else result
    made = Compute(EMA, (cast(element, wide),), Spec(wide, spec.shape, spec.stream), {"axis": None, "alpha": alpha})
    return cast(made, result)  # type: ignore[return-value]
