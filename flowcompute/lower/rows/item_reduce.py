"""Reductions by one work-item of a CPU, in the canonical order of `ir.reduction_order`."""

from __future__ import annotations

from flowcompute.ir import (
    BLOCK,
    LANES,
    ROLLED,
    Combine,
    ConditionLike,
    Convert,
    Expr,
    For,
    Generate,
    If,
    IndexLike,
    IsSet,
    Let,
    SetInteger,
    Splat,
    Var,
    While,
    choose,
    index_min,
    merge_dtype,
    row_lanes,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.reduction import Parts, Reduction, assign, tree_of
from flowcompute.lower.rows.any_order import AnyOrder
from flowcompute.lower.rows.part_arrays import PartArrays
from flowcompute.spec import BOOL, is_float

UNROLLED_STATEMENTS = 640
"""Most statements of a block that is unrolled; longer blocks loop over arrays."""
LANE_BY_LANE = 10
"""Weight, in statements, of an expression that processors compute lane by lane."""


class VectorBlocks:
    """Reductions of rows by one work-item with vectors of `lanes` (CPUs): no barriers, no local memory."""

    def __init__(self, scope: Scope, reductions: list[Reduction], lanes: int) -> None:
        self.scope = scope
        self.reductions = reductions
        self.lanes = lanes

    def row(self, length: int) -> list[Parts]:
        """Reduce columns 0 to `length`, a number known now."""
        scope = self.scope
        if length == 0:
            return [reduction.of_no_columns(scope) for reduction in self.reductions]
        if length >= self.lanes and self._any_order():
            return AnyOrder(scope, self.reductions, self.lanes, 0).reduced(length)
        if length <= BLOCK:
            return self.block(scope, 0, length, row_lanes(length))
        merged = Merging(scope, self.reductions)
        body = scope.inner(self.lanes)
        block = scope.name("b")
        merged.push(body, self.block(body, block * BLOCK, BLOCK, LANES), block)
        whole = length // BLOCK
        scope.add(For(block, 0, whole, 1, tuple(body.statements)))
        if length % BLOCK:
            merged.push(scope, self.block(scope, whole * BLOCK, length % BLOCK, LANES), whole)
        return merged.finish(scope)

    def block(self, scope: Scope, base: IndexLike, length: int, lanes: int) -> list[Parts]:
        """Reduce `length` columns from `base` in `lanes` lanes; `length` is known now."""
        width = self.lanes
        if lanes < width:
            totals = [reduction.start(scope, width) for reduction in self.reductions]
            self._short(scope, totals, base, length, lanes)
            return self._across(scope, totals)
        groups, steps = lanes // width, max(1, -(-length // lanes))
        if self._position_statements(base) * groups * steps <= UNROLLED_STATEMENTS:
            tree = tree_of(
                scope, self.reductions, lambda group: self._lane_group(scope, base, length, lanes, group), groups
            )
            return self._across(scope, tree)
        full = max(0, min(groups, (length - (steps - 1) * lanes) // width))
        rest = (length - (steps - 1) * lanes) % width
        arrays = PartArrays(scope, self.reductions, "a", lanes=self.lanes, size=groups)
        group = scope.name("g")
        body = scope.inner(width)
        totals = [reduction.start(body, width) for reduction in self.reductions]
        last = steps if full == groups else choose(group < full, steps, steps - 1)
        self._steps(body, totals, base + group * width, lanes, last)
        body.add(*arrays.puts(group, totals))
        scope.add(For(group, 0, groups, 1, tuple(body.statements)))
        if rest:
            self._partial_vector(scope, arrays, full, base + ((steps - 1) * lanes + full * width), rest)
        return self._over_groups(scope, arrays, groups)

    def _any_order(self) -> bool:
        return all(reduction.commutes or reduction.finds for reduction in self.reductions)

    def _short(self, scope: Scope, totals: list[Parts], base: IndexLike, length: int, lanes: int) -> None:
        """Accumulate fewer canonical lanes than a vector has.

        Both steps of a lane happen at once, where that does not round differently.
        """
        dots = [reduction.op == "vecdot" and length > lanes for reduction in self.reductions]
        for first, count in ((0, lanes), (lanes, length - lanes)) if any(dots) else ():
            # These come first: the operands of the others are known in this scope at other columns.
            inner = scope.inner(self.lanes)
            column = inner.integer(base + first)
            for reduction, total, dot in zip(self.reductions, totals, dots, strict=True):
                if dot:
                    reduction.step(inner, total, column, count)
            scope.add(*inner.statements)
        for reduction, total, dot in zip(self.reductions, totals, dots, strict=True):
            if not dot:
                reduction.step(scope, total, base, None if length == self.lanes else length)

    def _position_statements(self, base: IndexLike) -> int:
        """Count the weighted statements of one vector, by emitting it into a scope that is dropped."""
        scope = self.scope.inner(self.lanes)
        for reduction in self.reductions:
            reduction.combined(
                scope, reduction.start(scope, self.lanes), reduction.given(scope, base, None), fused=True
            )
        lets = [one.expr for one in scope.statements if isinstance(one, Let)]
        return len(scope.statements) + sum(map(_weight, lets))

    def _lane_group(self, scope: Scope, base: IndexLike, length: int, lanes: int, group: int) -> list[Parts]:
        """Accumulate one vector of lanes, step by step."""
        totals: list[Parts] | None = None
        for first in range(group * self.lanes, max(length, 1), lanes):
            inner = scope.inner(self.lanes)
            column = inner.integer(base + first)
            there = length - first
            if totals is None and there >= self.lanes and all(r.op != "vecdot" for r in self.reductions):
                totals = [reduction.given(inner, column, None) for reduction in self.reductions]
            else:
                if totals is None:
                    totals = [reduction.start(inner, self.lanes) for reduction in self.reductions]
                # A step changes its totals in place, and the first operands may be known elsewhere.
                totals = [tuple(inner.let(Splat(v), v.dtype, v.lanes, v.mask_bytes) for v in total) for total in totals]
                self._at(inner, totals, column, None if there >= self.lanes else there)
            scope.add(*inner.statements)
        return totals or [reduction.start(scope, self.lanes) for reduction in self.reductions]

    def streamed_block(self, scope: Scope, base: IndexLike) -> list[Parts]:
        """Reduce a whole block of a long stream, loaded in the order of memory, which hardware prefetchers foresee.

        A depth-first tree keeps fewer accumulators, and is faster where the block is in a cache. But its
        loads jump, which from memory takes half as long again. The loops are not unrolled, since the
        compiler would put unrolled ones back into the order of the tree.
        """
        if self._any_order():
            return AnyOrder(scope, self.reductions, self.lanes, base).reduced(BLOCK)
        groups = LANES // self.lanes
        arrays = PartArrays(scope, self.reductions, "a", lanes=self.lanes, size=groups)
        begin, body = scope.inner(self.lanes), scope.inner(self.lanes)
        group, step = scope.name("g"), scope.name("t")
        begin.add(*arrays.puts(group, [reduction.start(begin, self.lanes) for reduction in self.reductions]))
        totals = arrays.states(body, group)
        column = body.integer(base + (step * groups + group) * self.lanes)
        self._at(body, totals, column, None)
        body.add(*arrays.puts(group, totals))
        scope.add(For(group, 0, groups, 1, tuple(begin.statements)))
        each = For(group, 0, groups, 1, tuple(body.statements), unroll=ROLLED)
        scope.add(For(step, 0, BLOCK // LANES, 1, (each,), unroll=ROLLED))
        return self._over_groups(scope, arrays, groups)

    def dynamic_block(self, scope: Scope, base: IndexLike, length: IndexLike) -> list[Parts]:
        """Reduce the last, shorter block, whose length is only known at run time."""
        width = self.lanes
        groups = LANES // width
        arrays = PartArrays(scope, self.reductions, "a", lanes=self.lanes, size=groups)
        group = scope.name("g")
        body = scope.inner(width)
        totals = [reduction.start(body, width) for reduction in self.reductions]
        step = scope.name("t")
        inner = body.inner(width)
        offset = inner.integer(step * LANES + group * width)
        inner_column = inner.integer(base + offset)
        self._at(inner, totals, inner_column, index_min(width, length - offset))
        # The guard skips empty vectors, so that loads never start past the end.
        guarded = If(step * LANES + group * width < length, tuple(inner.statements))
        body.add(For(step, 0, BLOCK // LANES, 1, (guarded,)))
        body.add(*arrays.puts(group, totals))
        scope.add(For(group, 0, groups, 1, tuple(body.statements)))
        return self._over_groups(scope, arrays, groups)

    def _steps(self, body: Scope, totals: list[Parts], base: IndexLike, lanes: int, steps: IndexLike) -> None:
        step = body.name("t")
        inner = body.inner(self.lanes)
        self._at(inner, totals, inner.integer(base + step * lanes), None)
        body.add(For(step, 0, steps, 1, tuple(inner.statements)))

    def _at(self, scope: Scope, totals: list[Parts], column: IndexLike, count: IndexLike | None) -> None:
        for reduction, total in zip(self.reductions, totals, strict=True):
            reduction.step(scope, total, column, count)

    def _partial_vector(
        self, scope: Scope, arrays: PartArrays, group: IndexLike, column: IndexLike, count: IndexLike
    ) -> None:
        """Accumulate the one vector that is only partly valid."""
        inner = scope.inner(self.lanes)
        place = inner.integer(column)
        totals = arrays.states(inner, group)
        self._at(inner, totals, place, count)
        inner.add(*arrays.puts(group, totals))
        scope.add(If(True, tuple(inner.statements)))

    def _over_groups(self, scope: Scope, arrays: PartArrays, groups: int) -> list[Parts]:
        """Combine the upper levels of the tree: halves of the groups."""
        half = groups // 2
        while half:
            group = scope.name("g")
            inner = scope.inner(self.lanes)
            for number, reduction in enumerate(self.reductions):
                left, right = (arrays.state(inner, number, at) for at in (group, group + half))
                inner.add(*arrays.puts_of(number, group, reduction.combined(inner, left, right)))
            scope.add(For(group, 0, half, 1, tuple(inner.statements)))
            half //= 2
        return self._across(scope, arrays.states(scope, 0))

    def _across(self, scope: Scope, totals: list[Parts]) -> list[Parts]:
        """Combine the lower levels of the tree: halves of one vector."""
        return [one.across(scope, total) for one, total in zip(self.reductions, totals, strict=True)]


def _weight(expr: Expr) -> int:
    """Return the statements, beyond one, that an expression costs a compiler."""
    if isinstance(expr, Generate):
        return expr.op.cost
    if isinstance(expr, Convert) and {expr.source.itemsize, expr.target.itemsize} & {8} and _changes_kind(expr):
        return LANE_BY_LANE
    return LANE_BY_LANE if isinstance(expr, Combine) and expr.op in ("argmin", "argmax") else 0


def _changes_kind(cast: Convert) -> bool:
    """Check whether a cast converts between floats and integers.

    With 64 bits, processors do that lane by lane before AVX-512.
    """
    return is_float(cast.source) != is_float(cast.target) and BOOL not in (cast.source, cast.target)


class Merging:
    """Merge of blocks, of a row or of vectors of columns, in an aligned binary tree driven by a counter.

    Floats are merged in float64.
    """

    DEPTH = 40

    def __init__(self, scope: Scope, reductions: list[Reduction], lanes: int = 1) -> None:
        self.reductions = reductions
        self.lanes = lanes
        self.top = scope.name("top")
        scope.add(SetInteger(self.top, 0))
        self.stacks = PartArrays(scope, reductions, "m", lanes=lanes, size=self.DEPTH, merging=True)

    def _wide(self, scope: Scope, part: Var) -> Var:
        wide = merge_dtype(part.dtype)
        if wide == part.dtype:
            # A copy: merging assigns to it.
            return scope.let(Splat(part), wide, self.lanes, part.mask_bytes)
        return scope.let(Convert(part, part.dtype, wide), wide, self.lanes)

    def _pop(
        self, scope: Scope, totals: list[Parts], condition: ConditionLike, before: tuple[SetInteger, ...] = ()
    ) -> None:
        inner = scope.inner(self.lanes)
        inner.add(SetInteger(self.top, self.top - 1, new=False))
        for number, (reduction, total) in enumerate(zip(self.reductions, totals, strict=True)):
            older = self.stacks.state(inner, number, self.top)
            assign(inner, total, reduction.combined(inner, older, total))
        inner.add(*before)
        scope.add(While(condition, tuple(inner.statements)))

    def push(self, scope: Scope, blocks: list[Parts], index: IndexLike) -> None:
        """Add block number `index` of the row."""
        count = scope.name("c")
        totals = [tuple(self._wide(scope, part) for part in parts) for parts in blocks]
        scope.add(SetInteger(count, index))
        self._pop(scope, totals, IsSet(count & 1), (SetInteger(count, count >> 1, new=False),))
        scope.add(*self.stacks.puts(self.top, totals))
        scope.add(SetInteger(self.top, self.top + 1, new=False))

    def newest(self, scope: Scope) -> list[Parts]:
        """Pop the node that was merged last, which after a power of two of blocks is the whole."""
        scope.add(SetInteger(self.top, self.top - 1, new=False))
        return self.stacks.states(scope, self.top)

    def finish(self, scope: Scope) -> list[Parts]:
        """Return the result of the row."""
        totals = self.newest(scope)
        self._pop(scope, totals, self.top > 0)
        return [
            tuple(
                var if var.dtype == dtype else scope.let(Convert(var, var.dtype, dtype), dtype, self.lanes)
                for var, dtype in zip(total, reduction.dtypes, strict=True)
            )
            for reduction, total in zip(self.reductions, totals, strict=True)
        ]
