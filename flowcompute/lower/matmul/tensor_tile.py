"""Operands of tensor cores in local memory: how their tiles are brought there, and read as fragments.

A tile is lines of numbers that are neighbours in memory. Chunks of 16 bytes stand in another
order in each line, so that the eight rows of a matrix lie in different banks. There are several
stages of a tile, one behind the other: while one is multiplied, the next are on their way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flowcompute.ir import Argument, Copy, For, Fragment, Leading, Rest, Stmt, Var, Words
from flowcompute.lower.anchor_point import Axes, Operand
from flowcompute.lower.emit import Scope

TILES = "tiles"
"""The local array of all tiles."""
CHUNK_BYTES = 16
"""What one instruction brings for a work-item at most, and a row of a fragment's matrix."""
EDGE = 16
"""Rows of the left operand, or columns of the right one, in a fragment."""
SUBGROUP = 32
"""Work-items that have a fragment together."""
UNROLLED = 16
"""Copies of a work-item that are written out; more of them, of numbers that lie badly, are a loop."""

_UINT32 = np.dtype(np.uint32)


def copied_together(operand: Operand, lines: Axes, extent: int) -> int:
    """How many neighbours one copy may bring: 16 bytes, or as many as divide all places.

    Args:
        operand: what is copied.
        lines: the axis along which there are several.
        extent: neighbours in a line.
    """
    lies, shape = operand.lies, operand.spec.shape[: operand.stack]
    stacks = (stride for size, stride in zip(shape, lies.strides, strict=False) if size != 1)
    # The stride of one line says nothing.
    line = lines.stride if lines.sizes[-1] > 1 else 0
    together = math.gcd(lies.offset, lies.record, *stacks, line, extent)
    return math.gcd(together, CHUNK_BYTES // operand.argument.dtype.itemsize)


def lines_along_k(k: Axes, other: Axes) -> bool | None:
    """Whether neighbours in memory are neighbours along k, or along the other axis (False); None if neither."""
    if k.stride == 1:
        return True
    return False if other.stride == 1 else None


@dataclass(frozen=True)
class TensorTile:
    """A tile of an operand in local memory.

    Attributes:
        begin: its first stage, in numbers of `dtype`.
        dtype: of its numbers.
        lines, width: how many lines there are, and numbers in one: a multiple of 128 bytes, or 64.
        along_k: whether lines run along k; if not, along rows of the left operand or columns of the right one.
        paired: whether k is read in the order 0, 2, 4, 6, 1, 3, 5, 7; where lines of 32-bit numbers run across it.
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

    def turned(self, line: str) -> str:
        """What the number of a chunk is combined with in a line, by exclusive or."""
        chunks = self.width // self.chunk
        if self.dtype.itemsize == 4 and not self.along_k:
            # Words of four lines are read at once, two chunks of each.
            return f"{line} / 2 % 4 * 2" if self.paired else f"{line} % 4 * 2"
        # Two lines of 64 bytes are all banks once, and have one order.
        return f"{line} % 8" if chunks >= 8 else f"{line} / {8 // chunks} % {chunks}"


@dataclass(frozen=True)
class _Spot:
    """Where a work-item's copy goes to and comes from: `line` is a name, the copy's line `later` lines behind it."""

    line: str
    later: int
    at: str
    place: str
    start: str
    exists: str | None


class Feed:
    """How a work-group brings a tile: each work-item the same places of every stage."""

    def __init__(
        self,
        scope: Scope,
        tile: TensorTile,
        argument: Argument,
        numbers: int,
        group: int,
        line_at: Callable[[Scope, str], str],
        stride: int | None,
        exists: Callable[[str, str], str | None],
    ) -> None:
        """Declare the work-item's places.

        Args:
            scope: where to.
            tile: what is brought.
            argument: where from.
            numbers: how many one copy brings.
            group: work-items in the work-group.
            line_at: where a line of the first stage begins, as text.
            stride: from one line to the next; None if it varies.
            exists: the condition under which the number `at` of a line exists in any stage, if it may not.
        """
        self.tile, self.argument, self.numbers, self.group = tile, argument, numbers, group
        self.line_at, self.exists = line_at, exists
        self.per_line = tile.width // numbers
        self.turns = -(-tile.lines * self.per_line // group)
        assert self.turns * group == tile.lines * self.per_line, "all work-items bring as much"
        self.spots: list[_Spot] = []
        if self.turns > UNROLLED:
            return
        together = group // self.per_line if group % self.per_line == 0 else 0
        for turn in range(self.turns):
            if turn and together % 8 == 0 and together and stride is not None:
                first, later = self.spots[0], turn * together
                place, start = f"{first.place} + {later * tile.width}", f"{first.start} + {later * stride}"
                self.spots.append(self._checked(scope, _Spot(first.line, later, first.at, place, start, None)))
            else:
                self.spots.append(self._spot(scope, f"(lid + {turn * group})" if turn else "lid"))

    def _spot(self, scope: Scope, number: str) -> _Spot:
        tile, chunk = self.tile, self.tile.chunk
        line, at = scope.narrow(f"{number} / {self.per_line}"), scope.narrow(f"{number} % {self.per_line}")
        at = at if self.numbers == 1 else scope.narrow(f"{at} * {self.numbers}")
        chunks = f"(({at} / {chunk}) ^ ({tile.turned(line)})) * {chunk}"
        within = "" if self.numbers == chunk else f" + {at} % {chunk}"
        place = scope.narrow(f"{line} * {tile.width} + {chunks}{within}")
        start = scope.integer(f"{self.line_at(scope, line)} + {at}")
        return self._checked(scope, _Spot(line, 0, at, place, start, None))

    def _checked(self, scope: Scope, spot: _Spot) -> _Spot:
        exists = self.exists(_sum(spot.line, spot.later), spot.at)
        if exists is None:
            return spot
        return _Spot(spot.line, spot.later, spot.at, spot.place, spot.start, scope.narrow(exists))

    def bring(self, scope: Scope, stage: str, shift: str, limit: Callable[[str, str], str] | None = None) -> None:
        """Begin to bring a tile.

        Args:
            scope: where to.
            stage: where to in local memory, as an integer.
            shift: how far from the first tile it lies.
            limit: the condition under which the number `at` of a line exists in this very tile, if it may not.
        """
        for spot in self.spots:
            scope.add(self._copy(spot, stage, shift, limit))
        if not self.spots:
            body = scope.inner(1)
            spot = self._spot(body, f"(lid + u * {self.group})")
            body.add(self._copy(spot, stage, shift, limit))
            scope.add(For("u", "0", str(self.turns), "1", tuple(body.statements), unroll=UNROLLED))

    def _copy(self, spot: _Spot, stage: str, shift: str, limit: Callable[[str, str], str] | None) -> Stmt:
        conditions = [spot.exists] if spot.exists is not None else []
        conditions += [] if limit is None else [limit(_sum(spot.line, spot.later), spot.at)]
        place = f"{stage} * {self.tile.numbers} + {spot.place}" if stage != "0" else spot.place
        return Copy(
            TILES,
            _sum(place, self.tile.begin),
            self.argument,
            spot.start if shift == "0" else f"{spot.start} + {shift}",
            self.numbers,
            " && ".join(conditions) or "1",
        )


class FragmentReader:
    """How a team of work-items reads its part of a tile as fragments: those of 16 rows or columns, and 32 bytes of k.

    Of the left operand a fragment is four quarters of 16 rows; of the right one two halves for each
    of twice 8 columns.
    """

    def __init__(self, scope: Scope, tile: TensorTile, first: str, *, right: bool, depth: str = "0") -> None:
        """Declare the work-item's places.

        Args:
            scope: where to.
            tile: what is read.
            first: the team's first row or column, a multiple of what a team has.
            right: whether it is the right operand.
            depth: where the team's k begins; if that is not at 0, lines along k are read for one step only.
        """
        self.tile, self.right = tile, right
        if tile.dtype.itemsize == 4 and not tile.along_k:
            self._places_of_words(scope, first, depth)
            return
        # The second matrix is the next along k of the right operand, the next down of the left one.
        line, chunk = "lid % 16", "lid / 16 % 2"
        if tile.along_k == right:
            line, chunk = "(lid % 8 + lid / 16 % 2 * 8)", "lid / 8 % 2"
        line, chunk = scope.narrow(line), scope.narrow(chunk)
        if tile.along_k:
            base, chunk = f"({first} + {line}) * {tile.width}", f"{depth} / {tile.chunk} + {chunk}"
        else:
            base, chunk = f"({depth} + {line}) * {tile.width}", f"{first} / {tile.chunk} + {chunk}"
        self.base = scope.narrow(_sum(base, tile.begin))
        self.turned = scope.narrow(f"(({chunk}) ^ ({tile.turned(line)})) * {tile.chunk}")

    def read(self, scope: Scope, stage: str, part: int, step: int) -> Var:
        """The fragment of the `part`-th 16 rows or columns of the team, and the `step`-th 32 bytes of k."""
        tile = self.tile
        if tile.dtype.itemsize == 4 and not tile.along_k:
            return self._words(scope, stage, part, step)
        lines, chunks = (part * EDGE, step * 2) if tile.along_k else (step * EDGE, part * 2)
        at = f"({self.turned} ^ {chunks * tile.chunk})" if chunks else self.turned
        place = _sum(f"{self.base} + {at}", lines * tile.width)
        place = place if stage == "0" else f"{stage} * {tile.numbers} + {place}"
        return scope.let(Fragment(TILES, place, tile.dtype, transposed=not tile.along_k), _UINT32, 4)

    def _places_of_words(self, scope: Scope, first: str, depth: str) -> None:
        """As for fragments, but nothing turns 32-bit numbers: each work-item reads its own four."""
        tile = self.tile
        k, other = scope.narrow("lid % 4"), scope.narrow("lid / 4 % 8")
        line = f"({depth} + {k}{' * 2' if tile.paired else ''})"
        self.base = scope.narrow(_sum(f"{line} * {tile.width} + {other} % 4", tile.begin))
        self.turned = scope.narrow(f"(({first} / 4 + {other} / 4) ^ ({k} * 2)) * 4")

    def _words(self, scope: Scope, stage: str, part: int, step: int) -> Var:
        tile = self.tile
        # The quarters of the left operand stand one below the other first, the halves of the right one along k.
        quarters = [(0, 0), (0, 1), (1, 0), (1, 1)]
        places = []
        for one, two in quarters:
            along_k, across = (two, one) if self.right else (one, two)
            chunks = part * 4 + across * 2
            at = f"({self.turned} ^ {chunks * 4})" if chunks else self.turned
            place = _sum(f"{self.base} + {at}", (step * 8 + along_k * (1 if tile.paired else 4)) * tile.width)
            places.append(place if stage == "0" else f"{stage} * {tile.numbers} + {place}")
        first, second, third, last = places
        return scope.let(Words(TILES, (first, second, third, last)), _UINT32, 4)


def three_terms(scope: Scope, rows: list[Var], columns: list[Var]) -> list[tuple[list[Var], list[Var]]]:
    """Fragments of float32 whose products are added up: of leading parts and what they leave, small products first."""

    def parts(whole: list[Var]) -> tuple[list[Var], list[Var]]:
        leading = [scope.let(Leading(one), one.dtype, one.lanes) for one in whole]
        pairs = zip(whole, leading, strict=True)
        return leading, [scope.let(Rest(*pair), pair[0].dtype, pair[0].lanes) for pair in pairs]

    (a, rest_of_a), (b, rest_of_b) = parts(rows), parts(columns)
    return [(rest_of_a, b), (a, rest_of_b), (a, b)]


def _sum(text: str, more: int) -> str:
    return f"{text} + {more}" if more else text
