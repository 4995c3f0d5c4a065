"""Streams seen with axis 0 in another place: `x.T`. Few operations take them."""

from __future__ import annotations

from typing import Any, NoReturn, Unpack

import numpy as np

from flowcompute.elements.element import Element
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import format_shape
from flowcompute.strategy import StartOptions

_HINT = "compute before transposing, as in (x + 1).T, or transpose what was resolved"


class TransposedStream:
    """A stream whose axis 0 stands elsewhere, as in `x.T`. It is no element: `matmul` and `resolve` take it.

    Attributes:
        base: the stream.
        axes: which axis of the stream stands where.
    """

    def __init__(self, base: Element, axes: tuple[int, ...]) -> None:
        self.base = base
        self.axes = axes

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the value."""
        return self.base.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Its shape, with the stream's length (None while unknown) where axis 0 went."""
        return tuple(self.base.shape[axis] for axis in self.axes)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        """Axes in reversed order: of `x.T` the stream itself."""
        return permuted(self.base, self.axes[::-1])

    @property
    def mT(self) -> Any:  # noqa: N802 - NumPy's name
        """The last two axes exchanged."""
        return permuted(self.base, (*self.axes[:-2], self.axes[-1], self.axes[-2]))

    def resolve(self, **options: Unpack[StartOptions]) -> Any:
        """Run and give the value, transposed."""
        return np.transpose(self.base.resolve(**options), self.axes)

    def __matmul__(self, other: Any) -> Any:
        return Element.apply("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return Element.apply("matmul", other, self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **kwargs: Any) -> Any:
        if ufunc is not np.matmul or method != "__call__" or kwargs:
            self._refuse()
        return Element.apply("matmul", *operands)

    def __repr__(self) -> str:
        return f"<transposed {self.base!r}: {format_shape(self.shape)}>"

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise SpecError(
            f"cannot use a transposed stream but in matmul and resolve: {_HINT}",
            element=f"{self.base.name or self.base.label}.T",
            site=user_site(),
            got=format_shape(self.shape),
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a transposed stream has no {name}: {_HINT}")

    __array__ = __iter__ = __len__ = __bool__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __getitem__ = _refuse


def permuted(x: Element, axes: tuple[int, ...]) -> Any:
    """Permute the axes of `x`: the result is a transposed stream where axis 0 of a stream moves."""
    if axes == tuple(range(x.ndim)):
        return x
    if x.spec.is_stream and axes[0] != 0:
        return TransposedStream(x, axes)
    return Element.apply("permute_dims", x, axes)


def transposed(x: Element) -> Any:
    """Return `x.T`, all axes in reversed order."""
    return permuted(x, tuple(range(x.ndim))[::-1])


def matrix_transposed(x: Element) -> Any:
    """Return `x.mT`, the last two axes exchanged.

    Raises:
        SpecError: with fewer than two axes.
    """
    if x.ndim < 2:
        raise SpecError(
            "cannot transpose fewer than two axes",
            element="mT",
            site=user_site(),
            expected="two axes or more",
            got=format_shape(x.shape),
            hint="a vector has no mT",
        )
    leading = tuple(range(x.ndim - 2))
    return permuted(x, (*leading, x.ndim - 1, x.ndim - 2))
