"""Integer code for the arithmetic of shapes, in which the number of records may be a symbol.

Known numbers of a value are an array of dtype object. Each entry is a bool, an int, a float, or a `Records`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.imports import dataclass

MOST_KNOWN = 4096
"""Numbers of a value that is followed as part of a shape."""


class UndecidedError(Exception):
    """A number or a comparison that hangs on how many records there are."""


@dataclass(frozen=True, eq=False)
class Records:
    """A multiple of the number of records, which is not known and at least 0.

    Attributes:
        multiple: at least 1.
    """

    multiple: int = 1

    def __hash__(self) -> int:
        return hash(("records", self.multiple))

    def __repr__(self) -> str:
        return "N" if self.multiple == 1 else f"{self.multiple} N"

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Records):
            return other.multiple == self.multiple or self._undecided()
        if isinstance(other, int) and other < 0:
            return False
        raise UndecidedError

    def _compare(self, other: Any) -> int:
        """Return 1 or -1 if this is surely the larger or the smaller one; for equal ones 0."""
        if isinstance(other, Records) and other.multiple == self.multiple:
            return 0
        if not isinstance(other, Records) and other < 0:
            return 1
        raise UndecidedError

    def __lt__(self, other: Any) -> bool:
        return self._compare(other) < 0

    def __le__(self, other: Any) -> bool:
        return self._compare(other) <= 0

    def __gt__(self, other: Any) -> bool:
        return self._compare(other) > 0

    def __ge__(self, other: Any) -> bool:
        # N >= 0 holds without N > 0.
        if not isinstance(other, Records) and other == 0:
            return True
        return self._compare(other) >= 0

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Records):
            return Records(self.multiple + other.multiple)
        if other == 0:
            return self
        raise UndecidedError

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Records):
            return _multiple(self.multiple - other.multiple)
        return self + (-other)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int | np.integer) and not isinstance(other, bool) and other >= 0:
            return _multiple(self.multiple * int(other))
        raise UndecidedError

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, Records) and self.multiple % other.multiple == 0:
            return self.multiple // other.multiple
        if isinstance(other, int) and other > 0 and self.multiple % other == 0:
            return Records(self.multiple // other)
        raise UndecidedError

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int) and other > 0 and self.multiple % other == 0:
            return 0
        raise UndecidedError

    def _undecided(self, *_: Any) -> Any:
        raise UndecidedError

    __rsub__ = __rfloordiv__ = __rmod__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _undecided
    __neg__ = __abs__ = __bool__ = __index__ = __int__ = __float__ = _undecided


@dataclass(frozen=True, eq=False)
class Length(Records):
    """Number of rows that a state holds before a step, and some more. Both are known when a session takes the step.

    Attributes:
        rows: the number of rows, a resident element.
        more: a known number, at least 0.
    """

    rows: Any = None
    more: int = 0

    def __hash__(self) -> int:
        return hash(("length", self.more))

    def __repr__(self) -> str:
        return f"length + {self.more}" if self.more else "length"

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Length):
            return other.more == self.more
        if isinstance(other, int) and other < self.more:
            return False
        raise UndecidedError

    def _compare(self, other: Any) -> int:
        if isinstance(other, Length):
            return (self.more > other.more) - (self.more < other.more)
        if isinstance(other, int) and other < self.more:
            return 1
        raise UndecidedError

    def __ge__(self, other: Any) -> bool:
        return (isinstance(other, int) and other <= self.more) or self._compare(other) >= 0

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int) and self.more + other >= 0:
            return Length(1, self.rows, self.more + other)
        raise UndecidedError

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self.more - other.more if isinstance(other, Length) else self + (-other)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int) and other in (0, 1):
            return self if other else 0
        raise UndecidedError

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 1:
            return self
        if isinstance(other, Length) and other.more == self.more > 0:
            return 1
        raise UndecidedError

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 1:
            return 0
        raise UndecidedError


Size = int | Records
"""A size of an axis."""


def _multiple(multiple: int) -> Any:
    if multiple < 0:
        raise UndecidedError
    return Records(multiple) if multiple else 0


def known_array(values: Any) -> np.ndarray:
    """Return numbers as an array of dtype object."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return array.astype(object)
    return array if array.dtype == object else array.astype(np.float64).astype(object)


def is_decided(known: np.ndarray) -> bool:
    """Check whether none of the numbers hangs on how many records there are."""
    return not any(isinstance(one, Records) for one in known.flat)


def product_of(shape: tuple[Any, ...]) -> Any:
    """Multiply sizes, at most one of which is a `Records`.

    Raises:
        UndecidedError: if two are.
    """
    total: Any = 1
    for size in shape:
        total = total * size
    return total
