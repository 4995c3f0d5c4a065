"""Columns on CPUs that are every second number of a line, as in a convolution with a stride of two.

Rows that lie beside each other in memory are loaded together, for one reads what the other leaves out. Their
lanes stay in the order in which one instruction of AVX picks them, until what they are added up to is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from flowcompute.ir import Load, Picked, Var
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor

_OF_EIGHT = (0, 1, 4, 5, 2, 3, 6, 7)
"""Columns in the lanes of a register of 32 bytes, made of the even numbers of two: halves of it never meet."""


def are_strided_columns(one: MatmulAnchor) -> bool:
    """Whether the columns of B are every second number of what lies in memory."""
    return one.b.columns.stride == 2 and not one.is_computed(one.b)


def in_order(scope: Scope, var: Var) -> Var:
    """A vector whose lanes are in the order of `StridedColumns.rows` in that of columns."""
    return scope.let(Picked((var,), _order(var.lanes, var.dtype.itemsize)), var.dtype)


def _order(lanes: int, itemsize: int) -> tuple[int, ...]:
    """The column in each lane, and the lane of each column: the order is its own inverse."""
    if itemsize != 4 or lanes % 8:
        return tuple(range(lanes))
    return tuple(start + at for start in range(0, lanes, 8) for at in _OF_EIGHT)


class StridedColumns:
    """Loads rows of B.

    Args:
        one: the product.
        lanes: numbers in a vector.
    """

    def __init__(self, one: MatmulAnchor, lanes: int) -> None:
        self.one = one
        self.lanes = lanes
        self.order = _order(lanes, one.dtype.itemsize)

    def rows(self, scope: Scope, starts: list[str]) -> Iterator[tuple[int, Scope, list[list[Var]]]]:
        """For each row, or two of them, its number, a scope inside, and there their vectors.

        Args:
            scope: around them.
            starts: where the vectors of row 0 begin.
        """
        places = [self.one.b.rows.place(k) for k in range(self.one.inner)]
        k = 0
        while k < self.one.inner:
            turn = scope.inner()
            both = places[k : k + 2] == [places[k], places[k] + 1]
            vectors = [self._picked(turn, f"{start} + {places[k]}", both=both) for start in starts]
            yield k, turn, [list(row) for row in zip(*vectors, strict=True)]
            k += 1 + both

    def _picked(self, scope: Scope, start: str, *, both: bool) -> list[Var]:
        """A vector of a row, and of the one beside it if `both`: nothing is read behind their last number."""
        ahead = self.lanes if both else self.lanes - 1
        loads = [Load(self.one.b.argument, start), Load(self.one.b.argument, f"{start} + {ahead}")]
        low, high = (self.one.factor(scope, load) for load in loads)
        # Of the second vector the number at `x` is in lane `lanes + x - ahead` of both.
        found = []
        for first in range(1 + both):
            numbers = (2 * column + first for column in self.order)
            lanes = tuple(x if x < self.lanes else self.lanes + x - ahead for x in numbers)
            found.append(scope.let(Picked((low, high), lanes), self.one.dtype))
        return found
