"""Prefixes of the tiles of wide items along the stream on GPUs, and the state after a batch.

One work-item for each column of a panel adds the totals of the tiles of a stretch in order. It publishes one prefix for
all of them.
"""

from __future__ import annotations

import math

from flowcompute.ir import (
    BLOCKS,
    LID,
    PHASE,
    RUN,
    ArrayItem,
    Assign,
    Await,
    For,
    If,
    IndexLike,
    Load,
    N,
    Publish,
    PutItem,
    Splat,
    Stmt,
    Store,
    Var,
    all_of,
    equal,
    names,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.scan.column_sizes import ADDED
from flowcompute.lower.scan.scan_anchor import TileScan

STRETCH, T, W = names("stretch t w")
BEGIN, C, COLUMN, STOP, TEAM = names("begin c column stop team", narrow=True)
"""Integers of a work-item, which its lowering declares: see there."""


class ColumnPrefixes(TileScan):
    """Part of the lowering of a scan by columns that adds up tiles.

    Attributes:
        across: columns of a panel.
        parts: tiles of a work-item, one after the other; 1 where a tile has several runs.
        runs: runs of a tile.
        tiles: tiles of a stretch.
    """

    across: int
    parts: int
    runs: int
    tiles: int

    def place(self, part: IndexLike) -> IndexLike:
        """Return the place of a part among the tiles of the stretch, and its column."""
        return (TEAM * self.parts + part) * self.across + COLUMN

    # -- what comes before --------------------------------------------------------------------------

    def add_runs(self) -> Stmt:
        """Add up the runs of each tile, and set `adds` to the prefix of each run in its tile."""
        scope = Scope(self.names, lanes=1)
        tile = STRETCH * self.tiles + TEAM
        total = scope.let(self.nothing(self.wide), self.wide)
        scope.add(If(equal(tile, 0), (Assign(total, Load(self.state, self.columns + C)),)))
        before = total
        for run in range(self.runs):
            place = (TEAM * self.runs + run) * self.across + COLUMN
            own = scope.let(ArrayItem("adds", place), self.wide)
            scope.add(PutItem("adds", place, before))
            before = self.combined(scope, before, own)
        scope.add(PutItem("totals", LID, before))
        return If(all_of(LID < self.tiles * self.across, C < self.columns, tile < BLOCKS), tuple(scope.statements))

    def chain(self) -> Stmt:
        """Set `before` to the prefix of each tile, and publish the prefix behind all of them."""
        d, first, scope = self.columns, STRETCH * self.tiles, Scope(self.names, lanes=1)
        begins, later, whole, some = (scope.inner() for _ in range(4))
        # Later stretches wait for this wait, and nobody for these reads. More of them take too many registers.
        ready = self._totals(scope, 0, self.tiles) if self.tiles <= ADDED else []
        carry, end = scope.let(self.nothing(self.wide), self.wide), later.fresh(self.wide, 1)
        begins.add(Assign(carry, Load(self.state, C)))
        later.add(Await(end, self.words, (STRETCH - 1) * d + C), Assign(carry, Splat(end)))
        scope.add(If(equal(STRETCH, 0), tuple(begins.statements), tuple(later.statements)))
        if ready:
            self._chain_tiles(whole, carry, 0, ready)
        else:
            together, inner = math.gcd(ADDED, self.tiles), whole.inner()
            self._chain_tiles(inner, carry, W, self._totals(inner, W, together))
            whole.add(For(W, 0, self.tiles, together, tuple(inner.statements)))
        self._chain_tiles(some, carry, W, self._totals(some, W, 1))
        partly = For(W, 0, BLOCKS - first, 1, tuple(some.statements))
        scope.add(If(first + self.tiles <= BLOCKS, tuple(whole.statements), (partly,)))
        publish = Publish(self.words, STRETCH * d + C, carry, prefix=True)
        scope.add(If(first + self.tiles < BLOCKS, (publish,)))
        return If(all_of(self.across > LID, d > C), tuple(scope.statements))

    def _totals(self, scope: Scope, first: IndexLike, count: int) -> list[Var]:
        """Read the totals of `count` tiles of the stretch, from number `first` on."""
        totals = "adds" if self.runs == 1 else "totals"
        return [scope.let(ArrayItem(totals, (first + i) * self.across + COLUMN), self.wide) for i in range(count)]

    def _chain_tiles(self, scope: Scope, carry: Var, first: IndexLike, totals: list[Var]) -> None:
        """Add these totals to `carry`, and set `before` of their tiles."""
        before = carry
        for i, own in enumerate(totals):
            scope.add(PutItem("before", (first + i) * self.across + COLUMN, before))
            before = self.combined(scope, before, own)
        scope.add(Assign(carry, Splat(before)))

    # -- state after the batch ------------------------------------------------------------------------

    def leave(self, runs: Var, total: Var) -> Stmt:
        """Store the state after the batch: the carries between tiles, between runs, and inside the run."""
        scope = Scope(self.names, lanes=1)
        part = scope.narrow(BLOCKS - 1 - T)
        carry = scope.let(ArrayItem("before", self.place(part)), self.wide)
        nothing = scope.let(self.nothing(self.wide), self.wide)
        ended, still = scope.inner(), scope.inner()
        after = self.combined(ended, carry, ended.let(ArrayItem("adds", self.place(part)), self.wide))
        ended.add(*self._store_parts(after, nothing, nothing))
        # The first tile of the batch alone goes on with runs of an earlier one.
        before = still.let(Splat(nothing), self.wide)
        still.add(If(equal(BLOCKS, 1), (Assign(before, Splat(runs)),)))
        still.add(*self._store_parts(carry, before, self.widened(still, total)))
        scope.add(If(equal(PHASE + N, BLOCKS * self.records), tuple(ended.statements), tuple(still.statements)))
        return If(all_of(T < BLOCKS, BLOCKS <= T + self.parts, C < self.columns), tuple(scope.statements))

    def store_run_state(self, outer: Scope, carry: Var, runs: Var, total: Var) -> Stmt:
        """Store it in the work-items that have the last record of the batch."""
        scope = outer.inner()
        nothing = scope.let(self.nothing(self.wide), self.wide)
        last = self.widened(scope, total)
        adds = self.combined(scope, runs, last)
        parts = {
            equal(BEGIN + STOP, self.records): (self.combined(scope, carry, adds), nothing, nothing),
            equal(STOP, RUN): (carry, adds, nothing),
        }
        otherwise = self._store_parts(carry, runs, last)
        for condition, left in reversed(parts.items()):
            otherwise = (If(condition, self._store_parts(*left), otherwise),)
        scope.add(*otherwise)
        return If(all_of(equal(T + 1, BLOCKS), STOP > 0, STOP <= RUN), tuple(scope.statements))

    def _store_parts(self, *parts: Var) -> tuple[Stmt, ...]:
        return tuple(Store(self.state, part * self.columns + C, var) for part, var in enumerate(parts))
