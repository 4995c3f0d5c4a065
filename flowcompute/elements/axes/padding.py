"""Items made larger at their edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from flowcompute.elements.arguments import array_of, is_whole, one_of, several, wholes
from flowcompute.elements.axes.shape import is_known_view, lazily, make_view
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Constant, Operand, as_element
from flowcompute.elements.op import KeptOp, Kind, Op
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import is_float

Mode = Literal["constant", "edge", "reflect", "wrap"]
PadWidth = int | Sequence[int] | Sequence[Sequence[int]]
"""Numbers before and after, as NumPy takes them: one for all, one pair for all, or a pair for each axis."""

_MODES = ("constant", "edge", "reflect", "wrap")


def _kept(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return dtype, dtype


@lazily
def _rebuild_pad(kept: KeptOp) -> Any:
    mode: Any = kept.attrs.choice("mode", _MODES)
    widths: Any = kept.attrs.items("widths")
    return pad(kept.one(), widths, mode, kept.attrs.take("fill"))


PAD = Op("pad", 1, Kind.VIEW, np.pad, _kept, arithmetic=False, rebuild=_rebuild_pad)


@public
def pad(x: Operand, pad_width: PadWidth, mode: Mode = "constant", constant_values: float = 0) -> Any:
    """Pad the value with numbers before and after it along its axes, by NumPy's rules; the stream is not padded.

    Items are put together by a kernel, with what is computed beside it; by the host where that is nothing.

    Args:
        x: any element.
        pad_width: `n`, `(before, after)` or a pair for each axis, as for `numpy.pad`. Of a stream a
            pair for each axis may begin with (0, 0) for axis 0 or leave it out. A single number or pair is for all item
            axes.
        mode: "constant" for `constant_values`, "edge" for the last number, "wrap" for those of the other end. "reflect"
            is for the numbers seen in a mirror that stands on the last.
        constant_values: one number for all sides, in the dtype of `x`.

    Returns:
        An element of the dtype of `x`.

    Raises:
        SpecError: for negative or missing widths, padding of the stream, or an unknown mode. Also for a number that the
            dtype cannot hold, or an empty axis with nothing to repeat.
    """
    element = as_element(x, "pad")
    mode = one_of("pad", "mode", mode, _MODES)
    widths = _widths(element, pad_width)
    shape = element.spec.shape
    if mode != "constant" and any(size == 0 and sum(pair) for size, pair in zip(shape, widths, strict=True)):
        raise SpecError(
            "cannot repeat numbers of an empty axis",
            element="pad",
            site=user_site(),
            expected="an axis that holds numbers",
            got=str(element.spec),
            hint='mode="constant" adds a number',
        )
    fill = _fill(element.dtype, constant_values) if mode == "constant" else 0
    if not any(map(sum, widths)):
        return element
    made = tuple(before + size + after for size, (before, after) in zip(shape, widths, strict=True))
    if is_known_view(element, made):
        return Constant(padded(element.value, widths, mode, fill))
    return make_view(PAD, (element,), made, widths=widths, mode=mode, fill=fill)


def padded(array: np.ndarray, widths: Sequence[tuple[int, int]], mode: str, fill: float) -> np.ndarray:
    """Pad an array, with a pair of widths for each of its axes: the meaning of the operation."""
    if mode == "constant":
        return np.pad(array, widths, constant_values=np.asarray(fill).astype(array.dtype))
    return np.pad(array, widths, mode=mode)  # type: ignore[call-overload, no-any-return]


def _widths(element: Any, pad_width: PadWidth) -> tuple[tuple[int, int], ...]:
    """Return a pair for each item axis (each axis of a resident value)."""
    axes = len(element.spec.shape)
    try:
        rows: Any = [pad_width] if is_whole(pad_width) else several("pad", "pad_width", pad_width, "widths")
        flat = not any(isinstance(row, Sequence | np.ndarray) for row in rows)
        pairs = [rows] if flat else rows
        whole = [tuple(wholes("pad", "pad_width", pair, 0)) for pair in pairs]
        if not all(len(pair) in (1, 2) for pair in whole):
            raise TypeError
    except (TypeError, ValueError):
        raise SpecError(
            "cannot take pad_width=",
            element="pad",
            site=user_site(),
            expected="n, (before, after) or a pair for each axis, from 0 on",
            got=short_repr(pad_width),
        ) from None
    if element.spec.is_stream and not flat and len(whole) == axes + 1:
        if any(whole[0]):
            raise SpecError(
                "cannot pad the stream",
                element="pad",
                site=user_site(),
                expected="(0, 0) for axis 0",
                got=str(whole[0]),
                hint="fc.concat plays streams one after the other; fc.window(pad=) pads windows of it",
            )
        whole = whole[1:]
    if len(whole) not in (1, axes):
        raise SpecError(
            "cannot pad with as many pairs",
            element="pad",
            site=user_site(),
            expected=f"{axes} pairs for {element.spec}",
            got=f"{len(whole)} pairs",
        )
    # As NumPy: a single width is for both sides.
    return tuple((pair[0], pair[-1]) for pair in (whole * axes if len(whole) == 1 else whole))


def _fill(dtype: np.dtype, value: float) -> float | int | bool:
    """Return the number that is added, as plain data.

    Raises:
        SpecError: if the dtype cannot hold it.
    """
    try:
        number = array_of("pad", "constant_values", value, dtype.name, most=0)
        if number.ndim or number.dtype.kind not in "biuf":
            raise TypeError
        plain: float | int | bool = number.item()
        whole = is_float(dtype) or (math.isfinite(plain) and plain == int(plain))
        if not whole or (not is_float(dtype) and int(np.array(int(plain)).astype(dtype)) != int(plain)):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise SpecError(
            "cannot take constant_values=",
            element="pad",
            site=user_site(),
            expected=dtype.name,
            got=short_repr(value),
        ) from None
    return plain if is_float(dtype) else int(plain)
