"""Fourier transforms of items. Complex values are pairs of elements, their real and imaginary parts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flowcompute.elements.alignment import broadcast
from flowcompute.elements.arguments import dtype_of, one_of, real, whole, wholes
from flowcompute.elements.axes import expand_dims, moveaxis, stack, take
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Constant, Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.fft.roots_of_unity import MOST_LENGTH
from flowcompute.elements.fft.transform import transform
from flowcompute.elements.math import hypot, multiply, normalise_axes
from flowcompute.elements.op import MOST
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, SpecTypeError, short_repr
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, is_float

NORMS = ("backward", "ortho", "forward")


class ComplexPair(NamedTuple):
    """The real and the imaginary part of complex numbers, of one shape and dtype."""

    real: Element
    imag: Element

    def __abs__(self) -> Any:
        """Return the magnitudes, as `fc.hypot` of the parts."""
        return hypot(self.real, self.imag)


Complex = Operand | tuple[Operand, Operand]
"""Real numbers; or complex ones as the pair of their parts."""


@public
def fft(x: Complex, n: int | None = None, axis: int = -1, norm: str = "backward") -> ComplexPair:
    """Return the discrete Fourier transform along an axis of items: `sum(x[j] * exp(-2j * pi * j * k / n))`.

    Args:
        x: real numbers, or a pair `(real, imag)` of complex ones. Integers become float64, half formats float32.
        n: length of the transform, at most 32768; the axis is cut or filled up with zeros. By default its size.
        axis: an axis of items; any axis of a resident value.
        norm: which direction divides by `n`: "backward" or "forward"; with "ortho" both divide by its root.

    Returns:
        `(real, imag)`, float32 or float64. The relative error in the 2-norm is at most 16 eps.

    Raises:
        SpecError: for an axis that is none of items, a length out of range, or parts that do not fit each other.
    """
    return _complex("fft", x, n, axis, norm, -1)


@public
def ifft(x: Complex, n: int | None = None, axis: int = -1, norm: str = "backward") -> ComplexPair:
    """Return the inverse of `fft`: `sum(x[k] * exp(2j * pi * j * k / n)) / n`.

    Arguments, results and errors are those of `fft`.
    """
    return _complex("ifft", x, n, axis, norm, 1)


@public
def rfft(x: Operand, n: int | None = None, axis: int = -1, norm: str = "backward") -> ComplexPair:
    """Return the `n // 2 + 1` coefficients of `fft` of real numbers; the others are their conjugates.

    Arguments, results and errors are those of `fft`.
    """
    parts, place, length = _prepared("rfft", x, n, axis)
    if parts.spec.shape[-2] != 1:
        raise SpecError(
            "cannot transform complex numbers as real ones",
            element="rfft",
            site=user_site(),
            expected="an element of real numbers",
            got="a pair",
            hint="use fc.fft.fft",
        )
    return _pair(transform(parts, length, -1, length // 2 + 1, 2, _scale("rfft", norm, length, -1)), place)


@public
def irfft(x: Complex, n: int | None = None, axis: int = -1, norm: str = "backward") -> Element:
    """Return the inverse of `rfft`: real numbers.

    Args:
        x: a pair `(real, imag)` of `n // 2 + 1` coefficients, or real ones. What makes the result complex is ignored:
            the imaginary part of the first coefficient and, for an even `n`, of the last one.
        n: length of the result; by default `2 * (m - 1)` for m coefficients. They are cut or filled up with zeros.
        axis, norm: as of `fft`.

    Raises:
        SpecError: as `fft`.
    """
    parts, place, length = _prepared("irfft", x, n, axis, halved=True)
    present = parts.spec.shape[-1]
    weights = np.full((2, length // 2 + 1), 2.0)
    ends = [0, *([length // 2] if length % 2 == 0 else [])]
    weights[:, ends] = [[1.0], [0.0]]
    weighted = multiply(parts, Constant(weights[: parts.spec.shape[-2], :present], parts.dtype))
    made = transform(weighted, length, 1, length, 1, _scale("irfft", norm, length, 1))
    return _moved(made[..., 0, :], place)  # type: ignore[no-any-return]


def _complex(op: str, x: Complex, n: int | None, axis: int, norm: str, sign: int) -> ComplexPair:
    parts, place, length = _prepared(op, x, n, axis)
    return _pair(transform(parts, length, sign, length, 2, _scale(op, norm, length, sign)), place)


def _pair(made: Any, place: int) -> ComplexPair:
    return ComplexPair(_moved(made[..., 0, :], place), _moved(made[..., 1, :], place))


def _moved(part: Any, place: int) -> Any:
    """Return the last axis to where it came from."""
    return part if place == part.ndim - 1 else moveaxis(part, part.ndim - 1, place)


def _prepared(op: str, x: Complex, n: Any, axis: Any, *, halved: bool = False) -> tuple[Any, int, int]:
    """Return items `(..., parts, k)` with the axis last, the axis, and the length of the transform.

    Args:
        op, x, n, axis: as given by the user.
        halved: whether `x` has the `n // 2 + 1` coefficients of real numbers.
    """
    given = [as_element(one, op) for one in (x if isinstance(x, tuple) else (x,))]
    if len(given) not in (1, 2):
        raise SpecTypeError(
            "cannot take this as complex numbers",
            element=op,
            site=user_site(),
            expected="a pair (real, imag)",
            got=f"a tuple of {len(given)}",
        )
    if len({one.ndim for one in given}) > 1 or any(
        None not in sizes and len(set(sizes)) > 1 for sizes in _sizes(given)
    ):
        raise SpecError(
            "cannot join parts of different shape to complex numbers",
            element=op,
            site=user_site(),
            expected=str(given[0].spec),
            got=str(given[1].spec),
        )
    dtype = _dtype(given)
    parts, _, _ = broadcast(op, [cast(one, dtype) for one in given])
    first = parts[0]
    place = _item_axis(op, first, axis)
    size = first.shape[place]
    assert size is not None
    usual = 2 * (size - 1) if halved else size
    length = _usual(op, usual, first) if n is None else whole(op, "n", n, 1, MOST_LENGTH)
    moved = [moveaxis(one, place, one.ndim - 1) if place != one.ndim - 1 else one for one in parts]
    joined: Any = stack(moved, axis=first.ndim - 1) if len(moved) > 1 else expand_dims(moved[0], first.ndim - 1)
    present = min(size, length // 2 + 1 if halved else length)
    return joined[..., :present] if present < size else joined, place, length


def _sizes(parts: list[Any]) -> list[tuple[int | None, ...]]:
    """Return the sizes of all parts on each axis."""
    return list(zip(*(one.shape for one in parts), strict=True))


def _usual(op: str, length: int, x: Any) -> int:
    """Return the size of an axis as the length of a transform."""
    if not 1 <= length <= MOST_LENGTH:
        raise SpecError(
            "cannot transform an axis of this size",
            element=op,
            site=user_site(),
            expected=f"transforms of 1 to {MOST_LENGTH} numbers",
            got=f"{length} numbers of {x.spec}",
            hint="n= says how many numbers are transformed",
        )
    return length


def _dtype(parts: list[Any]) -> np.dtype:
    """Return the dtype of a transform: float32 for half formats, float64 for integers."""
    try:
        dtype = np.result_type(*(one.dtype for one in parts))
    except TypeError:
        return FLOAT64
    if dtype in (FLOAT16, BFLOAT16):
        return FLOAT32
    return dtype if is_float(dtype) else FLOAT64


def _item_axis(op: str, x: Any, axis: Any) -> int:
    (place,) = normalise_axes(op, x, whole(op, "axis", axis, -MOST)) if x.ndim else (0,)
    if not x.ndim or (x.spec.is_stream and place == 0):
        raise SpecError(
            "cannot transform along this axis",
            element=op,
            site=user_site(),
            expected="an axis of items",
            got=f"axis {short_repr(axis)} of {x.spec}",
            hint="fc.cut(x, n) makes items of a stream of numbers, and fc.window(x, n) overlapping ones",
        )
    return place


def _scale(op: str, norm: Any, n: int, sign: int) -> float:
    chosen = one_of(op, "norm", norm, NORMS)
    if chosen == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (chosen == "backward") == (sign > 0) else 1.0


# -- frequencies -------------------------------------------------------------------------------------

MOST_FREQUENCIES = 1 << 24


@public
def fftfreq(n: int, *, d: float = 1.0, dtype: npt.DTypeLike | None = None) -> Constant:
    """Return the frequencies of the coefficients of `fft`, in cycles per unit of the spacing, as `numpy.fft.fftfreq`.

    Args:
        n: length of the transform.
        d: from one number to the next.
        dtype: a dtype of floats; float64 by default.

    Raises:
        SpecError: for a length below 1, a spacing of 0, or another dtype.
    """
    count, spacing, wanted = _frequencies("fftfreq", n, d, dtype)
    return Constant(np.fft.fftfreq(count, spacing), wanted)


@public
def rfftfreq(n: int, *, d: float = 1.0, dtype: npt.DTypeLike | None = None) -> Constant:
    """Return the frequencies of the `n // 2 + 1` coefficients of `rfft`.

    Arguments and errors are those of `fftfreq`.
    """
    count, spacing, wanted = _frequencies("rfftfreq", n, d, dtype)
    return Constant(np.fft.rfftfreq(count, spacing), wanted)


def _frequencies(op: str, n: Any, d: Any, dtype: Any) -> tuple[int, float, np.dtype]:
    count, spacing = whole(op, "n", n, 1, MOST_FREQUENCIES), real(op, "d", d)
    wanted = FLOAT64 if dtype is None else dtype_of(op, dtype)
    if not is_float(wanted) or not math.isfinite(spacing) or not math.isfinite(1 / spacing if spacing else math.inf):
        raise SpecError(
            "cannot make frequencies",
            element=op,
            site=user_site(),
            expected="a finite spacing other than 0, and a dtype of floats",
            got=f"d={short_repr(d)}, dtype={wanted.name}",
        )
    return count, spacing, wanted


@public
def fftshift(x: Operand, axes: int | tuple[int, ...] | None = None) -> Element:
    """Move the coefficient of frequency 0 to the middle, along axes of items.

    Args:
        x: any element; of a pair shift both parts.
        axes: one axis or several; all of a resident value by default.

    Raises:
        SpecError: for an axis out of range, or that of the stream.
    """
    return _shifted("fftshift", x, axes, 1)  # type: ignore[no-any-return]


@public
def ifftshift(x: Operand, axes: int | tuple[int, ...] | None = None) -> Element:
    """Move the coefficient of frequency 0 from the middle to the front: the inverse of `fftshift`.

    Arguments and errors are those of `fftshift`.
    """
    return _shifted("ifftshift", x, axes, -1)  # type: ignore[no-any-return]


def _shifted(op: str, x: Operand, axes: Any, direction: int) -> Any:
    element: Any = as_element(x, op)
    given = None if axes is None else wholes(op, "axes", axes)
    places = normalise_axes(op, element, None if given is None else tuple(given))
    if element.spec.is_stream and 0 in places:
        raise SpecError(
            "cannot shift along the stream",
            element=op,
            site=user_site(),
            expected="axes of items",
            got=f"axes={short_repr(axes)} of {element.spec}",
            hint="give axes=",
        )
    for place in places:
        size = element.shape[place]
        if size > 1:
            element = take(element, np.roll(np.arange(size), direction * (size // 2)), axis=place)
    return element
