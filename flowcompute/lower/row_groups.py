"""Rows of a block in groups of one number each, such as the matrix that a row chooses, inside of a work-item.

Groups stand in the order of their first rows, and rows of a group in their own order.
"""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.ir import (
    Array,
    ArrayNumber,
    For,
    If,
    Index,
    IndexLike,
    Integer,
    Name,
    PutItem,
    SetInteger,
    While,
    all_of,
    equal,
    unequal,
)
from flowcompute.lower.emit import Scope
from flowcompute.spec import INT64

_NUMBERS, _ROWS, _ENDS = "numbers", "grouped", "ends"
"""Arrays of the number of each row, of the rows by groups, and of the end of the group that begins at a place."""
_ROW, _OTHER, _FILLED, _PLACE = Name("row"), Name("other"), Name("filled"), Name("place")


def group_arrays(rows: int) -> list[Array]:
    """Return the private arrays that groups of so many rows take."""
    return [Array(name, INT64, 1, rows) for name in (_NUMBERS, _ROWS, _ENDS)]


def row_at(place: IndexLike) -> Index:
    """Return the row, counted in the block, that stands at a place of the groups."""
    return ArrayNumber(_ROWS, place)


def group_end(place: IndexLike) -> Index:
    """Return the end of the group that begins at a place."""
    return ArrayNumber(_ENDS, place)


def group_rows(scope: Scope, rows: IndexLike, number: Callable[[Scope, IndexLike], IndexLike]) -> None:
    """Fill the arrays for a block.

    A row looks for its number among the first rows of the groups that there are. If there is none, it begins a group,
    and takes the rows behind it that have its number. So it takes rows times groups comparisons.

    Args:
        scope: takes the statements.
        rows: of the block; at most as many as the arrays hold.
        number: gives the number of a row of the block, and declares in a scope what that takes.
    """
    own = scope.inner(1)
    own.add(PutItem(_NUMBERS, _ROW, own.let(Integer(number(own, _ROW)), INT64)))
    each = scope.inner(1)
    unlike = unequal(ArrayNumber(_NUMBERS, row_at(_PLACE)), ArrayNumber(_NUMBERS, _ROW))
    each.add(
        SetInteger(_PLACE, 0),
        While(all_of(_PLACE < _FILLED, unlike), (SetInteger(_PLACE, group_end(_PLACE), new=False),)),
    )
    alike, made = each.inner(), each.inner()
    alike.add(PutItem(_ROWS, _FILLED, alike.let(Integer(_OTHER), INT64)), SetInteger(_FILLED, _FILLED + 1, new=False))
    same = equal(ArrayNumber(_NUMBERS, _OTHER), ArrayNumber(_NUMBERS, _ROW))
    made.add(For(_OTHER, _ROW, rows, 1, (If(same, tuple(alike.statements)),)))
    made.add(PutItem(_ENDS, _PLACE, made.let(Integer(_FILLED), INT64)))
    each.add(If(equal(_PLACE, _FILLED), tuple(made.statements)))
    scope.add(
        For(_ROW, 0, rows, 1, tuple(own.statements)),
        SetInteger(_FILLED, 0),
        For(_ROW, 0, rows, 1, tuple(each.statements)),
    )
