"""Operands of tensor cores in local memory: copies of their tiles, and reads of fragments.

A line of a tile holds numbers that are neighbours in memory. Chunks of 16 bytes are permuted in each line
(swizzled), so that the eight rows of a matrix lie in different banks. Local memory holds several stages of
a tile. While one stage is multiplied, the next ones are being copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flowcompute.imports import dataclass
from flowcompute.ir import (
    LID,
    Argument,
    ConditionLike,
    Copy,
    For,
    Fragment,
    IndexLike,
    Leading,
    Name,
    Rest,
    Stmt,
    Var,
    Words,
    all_of,
)
from flowcompute.lower.anchor_point import Axes, Operand
from flowcompute.lower.emit import Scope

TILES = "tiles"
"""Local array of all tiles."""
CHUNK_BYTES = 16
"""Most bytes that one copy instruction moves for a work-item, and bytes of a row of a fragment's matrix."""
EDGE = 16
"""Rows of the left operand, or columns of the right one, in a fragment."""
SUBGROUP = 32
"""Work-items of a sub-group, which share a fragment."""
UNROLLED = 16
"""Most copies of a work-item that are unrolled; more, where the layout allows small copies only, form a loop."""

_UINT32 = np.dtype(np.uint32)
_COPY = Name("u")
"""Number of a copy of a work-item."""


def copied_together(operand: Operand, lines: Axes, extent: int) -> int:
    """Return how many neighbouring numbers one copy may move: 16 bytes, or as many as divide all offsets.

    Args:
        operand: operand that is copied.
        lines: axis along which there are several lines.
        extent: neighbours in a line.
    """
    lies, shape = operand.lies, operand.spec.shape[: operand.stack]
    stacks = (stride for size, stride in zip(shape, lies.strides, strict=False) if size != 1)
    # The stride of a single line does not matter.
    line = lines.stride if lines.sizes[-1] > 1 else 0
    together = math.gcd(lies.offset, lies.record, *stacks, line, extent)
    return math.gcd(together, CHUNK_BYTES // operand.argument.dtype.itemsize)


def lines_along_k(k: Axes, other: Axes) -> bool | None:
    """Return True if neighbours in memory are neighbours along k, False along the other axis, else None."""
    if k.stride == 1:
        return True
    return False if other.stride == 1 else None


@dataclass(frozen=True)
class TensorTile:
    """Tile of an operand in local memory.

    Attributes:
        begin: offset of its first stage, in numbers of `dtype`.
        dtype: dtype of its numbers.
        lines, width: number of lines, and numbers in a line: 64 bytes or a multiple of 128 bytes.
        along_k: whether lines run along k; if not, along rows of the left operand or columns of the right
            one.
        paired: whether k is read in the order 0, 2, 4, 6, 1, 3, 5, 7. Only for 32-bit lines across k.
    """

    begin: int
    dtype: np.dtype
    lines: int
    width: int
    along_k: bool
    paired: bool = False

    @property
    def numbers(self) -> int:
        """Numbers of a stage."""
        return self.lines * self.width

    @property
    def chunk(self) -> int:
        """Numbers in a chunk."""
        return CHUNK_BYTES // self.dtype.itemsize

    def turned(self, line: IndexLike) -> IndexLike:
        """Return the swizzle of a line: the mask that is combined with chunk numbers by exclusive or."""
        chunks = self.width // self.chunk
        if self.dtype.itemsize == 4 and not self.along_k:
            # A read covers words of four lines, two chunks of each.
            return line // 2 % 4 * 2 if self.paired else line % 4 * 2
        # Two lines of 64 bytes cover all banks once, so they share a permutation.
        return line % 8 if chunks >= 8 else line // (8 // chunks) % chunks


@dataclass(frozen=True)
class _CopyIndices:
    """Indices of a work-item's copy, its source and its destination, and the condition under which it exists."""

    line: IndexLike
    at: IndexLike
    place: IndexLike
    start: IndexLike
    exists: ConditionLike


class Feed:
    """Asynchronous copies of an operand's tiles; each work-item copies to the same places of every stage."""

    def __init__(
        self,
        scope: Scope,
        tile: TensorTile,
        argument: Argument,
        numbers: int,
        group: int,
        line_at: Callable[[Scope, IndexLike], IndexLike],
        stride: int | None,
        exists: Callable[[IndexLike, IndexLike], ConditionLike],
        step: int = 1,
    ) -> None:
        """Declare the places of the work-item's copies.

        Args:
            scope: where the statements go.
            tile: destination in local memory.
            argument: source of the copies.
            numbers: numbers of one copy.
            group: work-items in the work-group.
            line_at: returns the begin of a line of the first stage.
            stride: distance from one line to the next; None if it varies.
            exists: condition under which number `at` of a line exists in any stage.
            step: distance from one number of a line to the next, if numbers are copied one by one.
        """
        self.tile, self.argument, self.numbers, self.group = tile, argument, numbers, group
        self.line_at, self.exists, self.step = line_at, exists, step
        self.per_line = tile.width // numbers
        self.turns = -(-tile.lines * self.per_line // group)
        assert self.turns * group == tile.lines * self.per_line, "all work-items bring as much"
        self.copies: list[_CopyIndices] = []
        if self.turns > UNROLLED:
            return
        together = group // self.per_line if group % self.per_line == 0 else 0
        for turn in range(self.turns):
            if turn and together % 8 == 0 and together and stride is not None:
                first, later = self.copies[0], turn * together
                line, at = first.line + later, first.at
                place, start = first.place + later * tile.width, first.start + later * stride
                self.copies.append(_CopyIndices(line, at, place, start, self._exists(scope, line, at)))
            else:
                self.copies.append(self._indices(scope, LID + turn * group))

    def _indices(self, scope: Scope, number: IndexLike) -> _CopyIndices:
        tile, chunk = self.tile, self.tile.chunk
        line, at = scope.narrow(number // self.per_line), scope.narrow(number % self.per_line)
        at = scope.narrow(at * self.numbers)
        chunks = (at // chunk ^ tile.turned(line)) * chunk
        within = 0 if self.numbers == chunk else at % chunk
        place = scope.narrow(line * tile.width + chunks + within)
        start = scope.integer(self.line_at(scope, line) + at * self.step)
        return _CopyIndices(line, at, place, start, self._exists(scope, line, at))

    def _exists(self, scope: Scope, line: IndexLike, at: IndexLike) -> ConditionLike:
        return scope.flag(self.exists(line, at), narrow=True)

    def bring(
        self,
        scope: Scope,
        stage: IndexLike,
        shift: IndexLike,
        limit: Callable[[IndexLike, IndexLike], ConditionLike] | None = None,
    ) -> None:
        """Start the copies of a tile.

        Args:
            scope: where the statements go.
            stage: stage in local memory.
            shift: offset from the first tile.
            limit: condition under which number `at` of a line exists in this tile, unless it always does.
        """
        for copy in self.copies:
            scope.add(self._copy(copy, stage, shift, limit))
        if not self.copies:
            body = scope.inner(1)
            copy = self._indices(body, LID + _COPY * self.group)
            body.add(self._copy(copy, stage, shift, limit))
            scope.add(For(_COPY, 0, self.turns, 1, tuple(body.statements), unroll=UNROLLED))

    def _copy(
        self,
        copy: _CopyIndices,
        stage: IndexLike,
        shift: IndexLike,
        limit: Callable[[IndexLike, IndexLike], ConditionLike] | None,
    ) -> Stmt:
        exists = copy.exists if limit is None else all_of(copy.exists, limit(copy.line, copy.at))
        place = stage * self.tile.numbers + copy.place + self.tile.begin
        return Copy(TILES, place, self.argument, copy.start + shift, self.numbers, exists)


class FragmentReader:
    """Reads of a sub-group's part of a tile as fragments of 16 rows or columns and 32 bytes of k.

    A fragment of the left operand is four quarters of 16 rows. A fragment of the right one is two halves
    for each of two blocks of 8 columns.
    """

    def __init__(self, scope: Scope, tile: TensorTile, first: IndexLike, *, right: bool, depth: IndexLike = 0) -> None:
        """Declare the work-item's places.

        Args:
            scope: where the statements go.
            tile: tile that is read.
            first: the sub-group's first row or column, a multiple of the number that it has.
            right: whether it is the right operand.
            depth: begin of the sub-group's k; if it is not 0, lines along k are read for one step only.
        """
        self.tile, self.right = tile, right
        if tile.dtype.itemsize == 4 and not tile.along_k:
            self._places_of_words(scope, first, depth)
            return
        # The second matrix is the next along k of the right operand, the next down of the left one.
        line, chunk = LID % 16, LID // 16 % 2
        if tile.along_k == right:
            line, chunk = LID % 8 + LID // 16 % 2 * 8, LID // 8 % 2
        line, chunk = scope.narrow(line), scope.narrow(chunk)
        if tile.along_k:
            base, chunk = (first + line) * tile.width, depth // tile.chunk + chunk
        else:
            base, chunk = (depth + line) * tile.width, first // tile.chunk + chunk
        self.base = scope.narrow(base + tile.begin)
        self.turned = scope.narrow((chunk ^ tile.turned(line)) * tile.chunk)

    def read(self, scope: Scope, stage: IndexLike, part: int, step: int) -> Var:
        """Read the fragment of the sub-group's block `part` of 16 rows or columns and block `step` of 32 bytes of k."""
        tile = self.tile
        if tile.dtype.itemsize == 4 and not tile.along_k:
            return self._words(scope, stage, part, step)
        lines, chunks = (part * EDGE, step * 2) if tile.along_k else (step * EDGE, part * 2)
        at = self.turned ^ chunks * tile.chunk if chunks else self.turned
        place = stage * tile.numbers + self.base + at + lines * tile.width
        return scope.let(Fragment(TILES, place, tile.dtype, transposed=not tile.along_k), _UINT32, 4)

    def _places_of_words(self, scope: Scope, first: IndexLike, depth: IndexLike) -> None:
        """Declare the places for 32-bit numbers, which no instruction transposes: each work-item reads its own four."""
        tile = self.tile
        k, other = scope.narrow(LID % 4), scope.narrow(LID // 4 % 8)
        line = depth + k * (2 if tile.paired else 1)
        self.base = scope.narrow(line * tile.width + other % 4 + tile.begin)
        self.turned = scope.narrow((first // 4 + other // 4 ^ k * 2) * 4)

    def _words(self, scope: Scope, stage: IndexLike, part: int, step: int) -> Var:
        tile = self.tile
        # Quarters of the left operand are ordered by rows first, halves of the right one by k first.
        quarters = [(0, 0), (0, 1), (1, 0), (1, 1)]
        places = []
        for one, two in quarters:
            along_k, across = (two, one) if self.right else (one, two)
            chunks = part * 4 + across * 2
            at = self.turned ^ chunks * 4 if chunks else self.turned
            lines = step * 8 + along_k * (1 if tile.paired else 4)
            places.append(stage * tile.numbers + self.base + at + lines * tile.width)
        first, second, third, last = places
        return scope.let(Words(TILES, (first, second, third, last)), _UINT32, 4)


def three_terms(scope: Scope, rows: list[Var], columns: list[Var]) -> list[tuple[list[Var], list[Var]]]:
    """Return the pairs of float32 fragments whose products are added, small products first.

    A factor is split into its leading part and the rest.
    """

    def parts(whole: list[Var]) -> tuple[list[Var], list[Var]]:
        leading = [scope.let(Leading(one), one.dtype, one.lanes) for one in whole]
        pairs = zip(whole, leading, strict=True)
        return leading, [scope.let(Rest(*pair), pair[0].dtype, pair[0].lanes) for pair in pairs]

    (a, rest_of_a), (b, rest_of_b) = parts(rows), parts(columns)
    return [(rest_of_a, b), (a, rest_of_b), (a, b)]
