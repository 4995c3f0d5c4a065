"""Item types: shape and, if wanted, dtype of one item under a name that says what it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from flowcompute.elements.arguments import whole, wholes
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError, short_repr
from flowcompute.imports import dataclass
from flowcompute.spec import parse_dtype

MOST_AXES = 63
"""Axes of an item: NumPy's 64 less the stream's own."""


class ItemType(ABC):
    """The type of one item of a stream. Accepted wherever `shape=` means an item shape.

    Attributes:
        dtype: of a number, or None where that is said elsewhere.
    """

    dtype: np.dtype | None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The item shape."""

    def _set_dtype(self, dtype: npt.DTypeLike | None) -> None:
        object.__setattr__(self, "dtype", None if dtype is None else _parse_dtype(dtype, type(self).__name__))

    def __repr__(self) -> str:
        words = [str(size) for size in self.shape] + ([] if self.dtype is None else [repr(self.dtype.name)])
        return f"{type(self).__name__}({', '.join(words)})"


@dataclass(frozen=True, init=False, repr=False)
class Number(ItemType):
    """Items are single numbers. `shape=fc.Number` without a call means the same.

    Args:
        dtype: of the numbers.

    Raises:
        SpecError: for a dtype that is not supported.
    """

    dtype: np.dtype | None

    def __init__(self, dtype: npt.DTypeLike | None = None) -> None:
        self._set_dtype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The item shape: no axes."""
        return ()


@dataclass(frozen=True, init=False, repr=False)
class Vector(ItemType):
    """Items are vectors of `n` numbers.

    Args:
        n: numbers in a vector, 0 or more.
        dtype: of a number.

    Raises:
        SpecError: if `n` is no size, or the dtype is not supported.
    """

    n: int
    dtype: np.dtype | None

    def __init__(self, n: int, dtype: npt.DTypeLike | None = None) -> None:
        object.__setattr__(self, "n", _parse_size(n, "Vector"))
        self._set_dtype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The item shape `(n,)`."""
        return (self.n,)


@dataclass(frozen=True, init=False, repr=False)
class Matrix(ItemType):
    """Items are matrices of `m` rows and `n` columns.

    Args:
        m: rows, 0 or more.
        n: columns, 0 or more.
        dtype: of a number.

    Raises:
        SpecError: if `m` or `n` is no size, or the dtype is not supported.
    """

    m: int
    n: int
    dtype: np.dtype | None

    def __init__(self, m: int, n: int, dtype: npt.DTypeLike | None = None) -> None:
        object.__setattr__(self, "m", _parse_size(m, "Matrix"))
        object.__setattr__(self, "n", _parse_size(n, "Matrix"))
        self._set_dtype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The item shape `(m, n)`."""
        return (self.m, self.n)


ItemShape = int | Iterable[int] | ItemType | type[Number]
"""The values that `shape=` takes where it means the shape of an item."""


def parse_item_shape(shape: ItemShape, name: str | None) -> tuple[int, ...]:
    """Return an item shape as a tuple: whole numbers from 0 on, at most 63 of them.

    Raises:
        SpecError: if it is not one.
    """
    if shape is Number:
        return ()
    if isinstance(shape, ItemType):
        return shape.shape
    try:
        parsed = tuple(wholes(name, "shape", shape, 0))
        if len(parsed) > MOST_AXES:
            raise ValueError
    except ValueError:
        raise SpecError(
            "cannot take shape=",
            element=name,
            site=user_site(),
            expected=f"at most {MOST_AXES} whole numbers from 0 on, or fc.Number, fc.Vector(n), fc.Matrix(m, n)",
            got=short_repr(shape),
        ) from None
    return parsed


def item_dtype(shape: object, dtype: npt.DTypeLike | None, name: str | None) -> npt.DTypeLike | None:
    """Return the dtype that `dtype=` or an item type says; None when neither does.

    Raises:
        SpecError: when both do and differ.
    """
    said = shape.dtype if isinstance(shape, ItemType) else None
    if said is None or dtype is None:
        return dtype if said is None else said
    try:
        same = parse_dtype(dtype) == said
    except TypeError as error:
        raise SpecError(str(error), element=name, site=user_site()) from None
    if not same:
        raise SpecError(
            "cannot take dtype= beside the item type's own",
            element=name,
            site=user_site(),
            expected=f"{said.name}, as in {shape!r}, or no dtype=",
            got=short_repr(dtype),
        )
    return dtype


def _parse_size(size: int, name: str) -> int:
    return whole(name, "size", size, expected="a whole number from 0 on")


def _parse_dtype(dtype: npt.DTypeLike, name: str | None) -> np.dtype:
    """Return a dtype in this machine's byte order; another one belongs to a file, not to an item."""
    try:
        parsed = parse_dtype(dtype)
        native = (isinstance(dtype, str) and dtype == "bfloat16") or np.dtype(dtype).isnative
    except TypeError as error:
        raise SpecError(str(error), element=name, site=user_site()) from None
    if not native:
        raise SpecError(
            "cannot give an item type a byte order",
            element=name,
            site=user_site(),
            expected="a dtype of native byte order",
            got=short_repr(dtype),
            hint="give dtype= to fc.open, which reads any byte order",
        )
    return parsed
