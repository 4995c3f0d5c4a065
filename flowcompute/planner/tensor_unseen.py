"""Values that are no finite numbers, at keys that some queries of a tile see and others do not.

Tensor cores multiply such values by the weight 0 of a query that does not see them, and 0 times
infinity is NaN. So in tiles that are not seen as a whole these values are looked for; where there
are any, which is rare, zeros take their place and they are added number by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flowcompute.elements.arithmetic import add
from flowcompute.planner.anchor import times
from flowcompute.planner.attention import KEYS, Attention
from flowcompute.planner.emit import Scope
from flowcompute.planner.kernel import (
    Array,
    Assign,
    Barrier,
    For,
    Half,
    If,
    Item,
    Lane,
    Load,
    MultiplyAdd,
    Number,
    Put,
    SetInteger,
    Splat,
    Stmt,
    Var,
)
from flowcompute.planner.kernel_tensor import Across, FragmentMultiply, Join
from flowcompute.planner.tensor_tile import EDGE, TEAM, TILES, Reader, TensorTile
from flowcompute.planner.tensor_weights import HALVES
from flowcompute.spec import FLOAT32

FLAGS = "flags"
"""For each key of a tile two numbers, NaN if a value in its even or odd quadruples of columns is not finite."""
SHARES = "shares"
"""The weight of one key for each query."""
LANES = 4

_UINT32 = np.dtype(np.uint32)


@dataclass(frozen=True)
class Unseen:
    """What looks for such values.

    Attributes:
        one: the attention.
        at_v: where the values begin.
        tile: the values in local memory, where lines are keys.
        reader: of them.
        rows: queries of the work-group.
        top: the team's first query of these.
        seen: for each 16 queries of the team, of the work-item's upper and lower one the keys that it sees.
    """

    one: Attention
    at_v: str
    tile: TensorTile
    reader: Reader
    rows: int
    top: str
    seen: Sequence[Sequence[tuple[str, str]]]

    def arrays(self) -> list[Array]:
        """Its local memory."""
        return [Array(FLAGS, FLOAT32, 1, 2 * KEYS, local=True), Array(SHARES, FLOAT32, 1, self.rows, local=True)]

    def clear(self, scope: Scope, partial: str, stage: str) -> str:
        """Put zeros in the place of keys with such values if the tile is seen in part.

        Returns:
            An integer, the same for the work-group: whether there are any.
        """
        found = scope.narrow("(int)0")
        inner = scope.inner(1)
        # Nothing times all values is NaN if one of them is not finite, and the same for all teams.
        nothing = inner.let(Number(0), _UINT32, 4)
        total = inner.let(Number(0.0), FLOAT32, 4)
        for step in range(KEYS // EDGE):
            for part in range(-(-self.one.columns // EDGE)):
                values = self.reader.read(inner, stage, part, step)
                for half in range(2):
                    inner.add(Assign(total, FragmentMultiply(nothing, values, half, total, self.tile.dtype)))
        whole = self.one.tree(inner, "sum", total)
        for bit in (1, 2):
            whole = self.one.added(inner, whole, inner.let(Across(whole, bit), FLOAT32))
        inner.add(SetInteger(found, f"isnan({whole.name})", new=False, narrow=True))
        inner.add(If(found, (*self._look(inner), *self._zeros(inner, stage))))
        scope.add(If(partial, tuple(inner.statements)))
        return found

    def _look(self, scope: Scope) -> list[Stmt]:
        """Find the keys."""
        one, inner = self.one, scope.inner(LANES)
        key = inner.integer(f"min(t + lid / 2, {one.keys - 1}L)")
        zero, flags = (inner.let(Number(0.0), FLOAT32) for _ in range(2))
        body = inner.inner()
        count = None if one.columns % LANES == 0 else body.integer(f"min((long){LANES}, {one.columns} - c)")
        column = one.v.columns.stride
        at = f"{self.at_v} + {times(key, one.v.rows.stride)} + {times('c', column)}"
        value = one.factor(body, Load(one.v.argument, at, column, count))
        body.add(Assign(flags, MultiplyAdd(value, zero, flags)))
        step = str(2 * LANES)
        inner.add(For("c", f"lid % 2 * {LANES}", str(one.columns), step, tuple(body.statements)))
        inner.add(Put(FLAGS, "lid", one.tree(inner, "sum", flags)), Barrier())
        return inner.statements

    def _flag(self, scope: Scope, key: str) -> str:
        """The condition that a key has such values."""
        low, high = (scope.let(Item(FLAGS, f"{key} * 2 + {half}"), FLOAT32, 1) for half in range(2))
        return f"isnan({self.one.apply(scope, add.op, low, high).name})"

    def _zeros(self, scope: Scope, stage: str) -> list[Stmt]:
        tile, inner = self.tile, scope.inner(1)
        flag = self._flag(inner, "(lid / 2)")
        words = tile.width * tile.dtype.itemsize // 4
        line = inner.narrow(
            f"({tile.begin} + {stage} * {tile.numbers} + (int)lid / 2 * {tile.width}) / {4 // tile.dtype.itemsize}"
        )
        zero = inner.let(Number(0.0), FLOAT32)
        wipe = For("c", "lid % 2", str(words), "2", (Put(TILES, f"{line} + c", zero),))
        inner.add(If(flag, (wipe,)), Barrier())
        return inner.statements

    def add(self, scope: Scope, found: str, weights: list[list[Var]], totals: list[list[Var]]) -> None:
        """Add what was taken out to the sums of queries that see it."""
        keys = scope.inner(1)
        flag = self._flag(keys, "u")
        body = keys.inner()
        self._share_out(body, weights)
        body.add(Barrier())
        place = body.narrow(f"{self.top} + (int)lid % {TEAM} / 4")
        for edge, two in enumerate(self.seen):
            for lower, (from_key, to_key) in zip(HALVES, two, strict=True):
                share = body.let(Item(SHARES, f"{place} + {edge * EDGE + 8 * lower}"), FLOAT32)
                inner = body.inner(2)
                self._add_key(inner, share, totals[edge], lower)
                body.add(If(f"{from_key} <= t + u && t + u < {to_key}", tuple(inner.statements)))
        body.add(Barrier())
        keys.add(If(flag, tuple(body.statements)))
        scope.add(If(found, (For("u", "0", str(KEYS), "1", tuple(keys.statements)),)))

    def _share_out(self, scope: Scope, weights: list[list[Var]]) -> None:
        """Whoever has the weights of key `u` gives them to all."""
        mine = scope.inner()
        place = mine.narrow(f"{self.top} + (int)lid % {TEAM} / 4")
        for edge, line in enumerate(weights):
            for part, weight in enumerate(line):
                for odd in range(2):
                    one = mine.inner()
                    for lower in HALVES:
                        share = one.let(Lane(weight, 2 * lower + odd), FLOAT32)
                        one.add(Put(SHARES, f"{place} + {edge * EDGE + 8 * lower}", share))
                    mine.add(If(f"u == {part * 8 + odd} + lid % 4 * 2", tuple(one.statements)))
        scope.add(*mine.statements)

    def _add_key(self, scope: Scope, share: Var, totals: list[Var], lower: bool) -> None:
        one = self.one
        wide = scope.let(Splat(share), FLOAT32)
        key = f"{self.at_v} + {times('(t + u)', one.v.rows.stride)}"
        for part, total in enumerate(totals):
            column = f"min({part * 8} + lid % 4 * 2 + {{lane}}, {one.columns - 1}L)"
            value = one.factor(scope, Load(one.v.argument, key, each=f"{key} + {times(column, one.v.columns.stride)}"))
            halves = [scope.let(Half(total, half), FLOAT32) for half in HALVES]
            halves[lower] = scope.let(MultiplyAdd(wide, value, halves[lower]), FLOAT32)
            scope.add(Assign(total, Join(*halves)))
