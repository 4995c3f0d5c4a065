"""Columns with stride two on CPUs, as in a convolution with a stride of two.

Rows of B that interleave in memory are loaded together, since each uses the numbers that the other skips.
Their lanes keep the order in which one AVX instruction selects them. The order is restored when the sums
are stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from flowcompute.ir import IndexLike, Load, Picked, Var
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor

_OF_EIGHT = (0, 1, 4, 5, 2, 3, 6, 7)
"""Columns in the lanes of a 32-byte register that holds the even numbers of two; its halves never mix."""


def are_strided_columns(one: MatmulAnchor) -> bool:
    """Check whether the columns of B have stride two in memory."""
    return one.b.columns.stride == 2 and not one.is_computed(one.b)


def in_order(scope: Scope, var: Var) -> Var:
    """Permute the lanes of a vector from the order of `StridedColumns.rows` to that of columns."""
    return scope.let(Picked((var,), _order(var.lanes, var.dtype.itemsize)), var.dtype)


def _order(lanes: int, itemsize: int) -> tuple[int, ...]:
    """Return the column in each lane, which is also the lane of each column: the permutation is its own inverse."""
    if itemsize != 4 or lanes % 8:
        return tuple(range(lanes))
    return tuple(start + at for start in range(0, lanes, 8) for at in _OF_EIGHT)


class StridedColumns:
    """Loads of rows of B with stride two.

    Args:
        one: the product.
        lanes: numbers in a vector.
    """

    def __init__(self, one: MatmulAnchor, lanes: int) -> None:
        self.one = one
        self.lanes = lanes
        self.order = _order(lanes, one.dtype.itemsize)

    def rows(self, scope: Scope, starts: list[IndexLike]) -> Iterator[tuple[int, Scope, list[list[Var]]]]:
        """Yield for each row or pair of rows its number, an inner scope, and the vectors of the rows there.

        Args:
            scope: enclosing scope.
            starts: begin of each vector in row 0.
        """
        places = [self.one.b.rows.place(k) for k in range(self.one.inner)]
        k = 0
        while k < self.one.inner:
            turn = scope.inner()
            both = places[k : k + 2] == [places[k], places[k] + 1]
            vectors = [self._picked(turn, start + places[k], both=both) for start in starts]
            yield k, turn, [list(row) for row in zip(*vectors, strict=True)]
            k += 1 + both

    def _picked(self, scope: Scope, start: IndexLike, *, both: bool) -> list[Var]:
        """Load a vector of a row, and of the interleaved row if `both`; read nothing behind their last number."""
        ahead = self.lanes if both else self.lanes - 1
        loads = [Load(self.one.b.argument, start), Load(self.one.b.argument, start + ahead)]
        low, high = (self.one.factor(scope, load) for load in loads)
        # Number `x` of the second vector is in lane `lanes + x - ahead` of the pair of vectors.
        found = []
        for first in range(1 + both):
            numbers = (2 * column + first for column in self.order)
            lanes = tuple(x if x < self.lanes else self.lanes + x - ahead for x in numbers)
            found.append(scope.let(Picked((low, high), lanes), self.one.dtype))
        return found
