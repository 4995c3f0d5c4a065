"""Sums of the lanes of vectors, also of stored ones, as trees by halves."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.ir import ArrayItem, Combine, Half, IndexLike, Picked, Var
from flowcompute.lower.emit import Scope
from flowcompute.spec import FLOAT32

LANES = 16
"""Partial sums of a number of a product's result. They are part of the order of the sum."""
RUN = 512
"""Products that a partial sum adds up in order before it is added to that of earlier panels."""
JOINED_LANES = 8
"""Most lanes of vectors of which halves are joined: as many numbers as AVX2 adds at once."""
MOST_LANES = 16
"""Most lanes of a vector of OpenCL C."""


def added_up(scope: Scope, sums: Sequence[Var], rows: int, lanes: int) -> list[Var]:
    """Return the sum of the lanes of each vector, as a tree by halves: for each of `rows` rows a vector of its sums.

    Halves of two vectors are joined, so that as many lanes are added at once as processors have.
    """
    each = len(sums) // rows
    if rows > 1 and (len(sums) > MOST_LANES or rows & (rows - 1)):
        some = 1 << (rows - 1).bit_length() - 1
        upper = added_up(scope, sums[some * each :], rows - some, lanes)
        return [*added_up(scope, sums[: some * each], some, lanes), *upper]
    parts = list(sums)
    width = lanes
    while width > 1:
        width //= 2
        step = 2 if len(parts) > 1 and parts[0].lanes <= JOINED_LANES else 1
        parts = [_folded(scope, parts[i : i + step], width) for i in range(0, len(parts), step)]
    joined = parts[0] if len(parts) == 1 else _picked(scope, parts, range(len(sums)))
    return [_picked(scope, [joined], range(row * each, (row + 1) * each)) for row in range(rows)]


def stored_sum(scope: Scope, array: str, begin: IndexLike, lanes: int) -> Var:
    """Return the sum of `lanes` numbers of an array of float32 from `begin` on, as a tree by halves."""
    parts = [scope.let(ArrayItem(array, begin + lane), FLOAT32) for lane in range(lanes)]
    while len(parts) > 1:
        half = len(parts) // 2
        pairs = zip(parts[:half], parts[half:], strict=True)
        parts = [scope.let(Combine("sum", (a,), (b,), 0), FLOAT32) for a, b in pairs]
    return parts[0]


def _folded(scope: Scope, parts: Sequence[Var], width: int) -> Var:
    """Add the upper half of each run of 2 * `width` lanes to its lower half."""
    lanes = sum(part.lanes for part in parts)
    lower = [lane for lane in range(lanes) if lane % (2 * width) < width]
    a, b = _picked(scope, parts, lower), _picked(scope, parts, [lane + width for lane in lower])
    return scope.let(Combine("sum", (a,), (b,), 0), FLOAT32, len(lower))


def _picked(scope: Scope, parts: Sequence[Var], lanes: Sequence[int]) -> Var:
    """Return lanes of some vectors."""
    if len(parts) == 1:
        (part,) = parts
        if list(lanes) == list(range(part.lanes)):
            return part
        for upper in (False, True):
            if list(lanes) == [lane + upper * part.lanes // 2 for lane in range(part.lanes // 2)]:
                return scope.let(Half(part, upper), FLOAT32, len(lanes))
    return scope.let(Picked(tuple(parts), tuple(lanes)), FLOAT32, len(lanes))
