"""Attention on GPUs: a work-group takes a block of queries of one head, its keys tile by tile in local memory.

Work-items stand in rows of `ACROSS`. Each has a few queries, of which it computes the scores of
every 16th key and the sums of some columns, in registers; weights pass between the work-items
of a row through local memory. While one slab of operands is multiplied the next is on its way
from global memory. What follows is computed before the result is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flowcompute.elements.arithmetic import multiply
from flowcompute.graph.graph import Graph
from flowcompute.planner.anchor import Row, times
from flowcompute.planner.attention import KEYS, LANES, Attention
from flowcompute.planner.attention_slab import TILES, Slab, Space
from flowcompute.planner.emit import Scope
from flowcompute.planner.kernel import (
    Array,
    Assign,
    Barrier,
    Below,
    For,
    If,
    Item,
    Kernel,
    Load,
    MultiplyAdd,
    Number,
    Picked,
    Put,
    Select,
    Splat,
    Stmt,
    Var,
)
from flowcompute.planner.knob_table import KernelStyle
from flowcompute.planner.region import Region
from flowcompute.planner.tiles import PAD
from flowcompute.spec import BOOL
from flowcompute.strategy import KernelKnobs

ACROSS = LANES
"""Work-items side by side: each has one class of keys."""
PER_ITEM = KEYS // ACROSS
SLAB_BYTES = 18 << 10
"""Local memory of two slabs of values."""


@dataclass(frozen=True)
class Shape:
    """Of a work-group: queries of a work-item, rows of work-items, and numbers of a query in a slab.

    `queries * depth` is a multiple of `ACROSS`, so that all work-items bring as many numbers of a slab.
    """

    queries: int
    down: int
    depth: int

    @property
    def rows(self) -> int:
        """Queries of the work-group."""
        return self.queries * self.down

    @property
    def group(self) -> int:
        """Work-items."""
        return self.down * ACROSS


def choose_shape(queries: int, columns: int, itemsize: int, style: KernelStyle) -> Shape:
    """As wanted, else a block not much larger than there are queries; local memory stays below 48 KiB."""
    most = 64 if itemsize <= 4 else 32
    rows = 16 if queries <= 16 and itemsize <= 4 else 32 if queries <= 32 else most
    group = 128 if rows > 32 and columns <= 128 else 256
    knobs = style.settled("attention", work_group=group, block_rows=rows)
    down, rows = (knobs.work_group or group) // ACROSS, min(knobs.block_rows or rows, most)
    each = rows // down
    return Shape(each, down, 8 if itemsize > 4 and each > 1 else 16)


class TiledAttentionLowering:
    """Lowers one region with attention for a GPU."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        self.region = region
        self.one = one = Attention(graph, region)
        self.dtype = one.dtype
        itemsize = one.dtype.itemsize
        self.shape = choose_shape(one.queries, one.columns, itemsize, style)
        self.wide = 4 if one.columns > 32 else 2 if one.columns > 16 else 1
        self.parts = -(-one.columns // (ACROSS * self.wide))
        self.spread = ACROSS * self.wide * self.parts
        self.value_pitch = self.spread + PAD
        # Shallower slabs of wide values leave room for more work-groups; on an H200 a tenth faster.
        depths = (
            depth
            for depth in ((16, 8, 4) if self.spread <= 64 else (8, 4))
            if 2 * depth * self.value_pitch * itemsize <= SLAB_BYTES
        )
        self.value_depth = next(depths, 4)
        self.query_pitch = self.shape.rows + max(PAD, self.shape.queries)
        self.key_pitch = KEYS + PAD

    def lower(self, name: str) -> Kernel:
        """The kernel; its work counts blocks of queries."""
        one = self.one
        scope = Scope(one.names, lanes=PER_ITEM)
        self._block(scope)
        slabs = max(
            2 * self.shape.depth * (self.query_pitch + self.key_pitch),
            2 * self.value_depth * self.value_pitch,
        )
        sizes = {TILES: slabs, "weights": KEYS * self.query_pitch, "exchange": self.shape.rows * ACROSS}
        arrays = [Array(array, self.dtype, 1, size, local=True) for array, size in sizes.items()]
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (*arrays, For("b", "gid", "n", "gsize", tuple(scope.statements))),
            work="matmul",
            work_group=self.shape.group,
            units=one.block_count(self.shape.rows),
            lanes=PER_ITEM,
            family="attention",
            knobs=KernelKnobs(work_group=self.shape.group, block_rows=self.shape.rows),
        )

    # -- a block of queries -----------------------------------------------------------------------------

    def _block(self, scope: Scope) -> None:
        one, rows = self.one, range(self.shape.queries)
        self.record, self.matrix, self.first, self.last = one.block(scope, self.shape.rows)
        self.y, self.x = scope.narrow(f"lid / {ACROSS}"), scope.narrow(f"lid % {ACROSS}")
        mine = scope.integer(f"{self.first} + {self.y} * {self.shape.queries}")
        self.own = [scope.integer(f"min({mine} + {row}, {self.last})") for row in rows]
        self.seen = [(scope.integer(one.sees_from(own)), scope.integer(one.sees_to(own))) for own in self.own]
        self.at_k, self.at_v = (one.base(scope, side, self.record, self.matrix) for side in (one.k, one.v))
        self.at_mask = "0" if one.mask is None else one.base(scope, one.mask, self.record, self.matrix)
        at_q = one.base(scope, one.q, self.record, self.matrix)
        self.at_q = scope.integer(f"{at_q} + {times(self.first, one.q.rows.stride)}")
        self.scale = scope.let(Number(one.scale), self.dtype, 1)
        self.highest = [scope.let(one.lowest, self.dtype, 1) for _ in rows]
        self.sums = [scope.let(Number(0.0), self.dtype, 1) for _ in rows]
        self.totals = [[scope.let(Number(0.0), self.dtype, self.wide) for _ in range(self.parts)] for _ in rows]
        from_key, to_key = scope.integer(one.sees_from(self.first)), scope.integer(one.sees_to(self.last))
        start = from_key if from_key == "0" else f"{from_key} / {KEYS} * {KEYS}"
        tile = scope.inner()
        self._tile(tile)
        scope.add(For("t", start, to_key, str(KEYS), tuple(tile.statements)))
        self._end(scope, mine)

    def _tile(self, scope: Scope) -> None:
        """Scores, weights and sums of a tile of keys."""
        scores = self._scores(scope)
        values = self._values_slab(scope)
        scope.add(*values.bring(scope, "0"))
        shrinks = self._weights(scope, scores)
        scope.add(*values.put("0"), Barrier())
        for line, shrink in zip(self.totals, shrinks, strict=True):
            for total in line:
                wide = scope.let(Splat(shrink), self.dtype, self.wide)
                scope.add(Assign(total, Splat(self.one.apply(scope, multiply.op, total, wide))))
        body = scope.inner()
        self._sweep(body, [values], KEYS // self.value_depth, self._add)
        scope.add(*body.statements)

    def _sweep(self, scope: Scope, slabs: list[Slab], steps: int, multiply_: Callable[[Scope], None]) -> None:
        """Multiply slab by slab; the first is in local memory already."""
        body = scope.inner()
        more = f"s + 1 < {steps}"
        for slab in slabs:
            body.add(If(more, tuple(slab.bring(body, "(s + 1)"))))
        multiply_(body)
        body.add(If(more, tuple(stmt for slab in slabs for stmt in slab.put("(s + 1) % 2"))), Barrier())
        scope.add(For("s", "0", str(steps), "1", tuple(body.statements)))

    # -- operands into local memory -----------------------------------------------------------------------

    def _query_slab(self, scope: Scope) -> Slab:
        one, shape = self.one, self.shape
        space = Space(0, shape.depth, shape.rows, self.query_pitch)
        return Slab(one, scope, one.q, self.at_q, space, shape.group, f"{self.last} - {self.first}", factor=self.scale)

    def _key_slab(self, scope: Scope) -> Slab:
        """Every 16th key of a tile is the work-item's: they stand side by side in local memory."""
        one, shape = self.one, self.shape
        origin = scope.integer(f"{self.at_k} + {times('t', one.k.rows.stride)}")
        last = f"min({KEYS - 1}L, {one.keys - 1} - t)" if one.partial else str(KEYS - 1)
        space = Space(2 * shape.depth * self.query_pitch, shape.depth, KEYS, self.key_pitch)
        place = f"{{0}} % {ACROSS} * {PER_ITEM} + {{0}} / {ACROSS}"
        return Slab(one, scope, one.k, origin, space, shape.group, last, place)

    def _values_slab(self, scope: Scope) -> Slab:
        one = self.one
        origin = scope.integer(f"{self.at_v} + {times('t', one.v.rows.stride)}")
        space = Space(0, self.value_depth, self.spread, self.value_pitch)
        return Slab(one, scope, one.v, origin, space, self.shape.group, str(one.columns - 1))

    def _read(self, scope: Scope, array: str, index: str, lanes: int) -> Var:
        return scope.let(Item(array, index, vector=lanes > 1), self.dtype, lanes)

    def _lane(self, scope: Scope, var: Var, lane: int, lanes: int) -> Var:
        return scope.let(Picked((var,), (lane,)) if var.lanes > 1 else Splat(var), self.dtype, lanes)

    # -- scores and weights ---------------------------------------------------------------------------------

    def _scores(self, scope: Scope) -> list[Var]:
        """For each of the work-item's queries the scores of its keys, -inf of those that are not seen."""
        one, shape = self.one, self.shape
        scores = [scope.let(Number(-0.0 if one.size else 0.0), self.dtype) for _ in self.own]
        if one.size:
            slabs = [self._query_slab(scope), self._key_slab(scope)]
            for slab in slabs:
                scope.add(*slab.bring(scope, "0"), *slab.put("0"))
            scope.add(Barrier())
            self._sweep(scope, slabs, -(-one.size // shape.depth), lambda inner: self._multiply(inner, slabs, scores))
        key = scope.integer(f"t + {self.x}")
        made = []
        for score, own, (from_key, to_key) in zip(scores, self.own, self.seen, strict=True):
            if one.mask is not None:
                column = f"{key} + {{lane}} * {ACROSS}"
                column = f"min({column}, {one.keys - 1}L)" if one.partial else column
                each = f"{self.at_mask} + {one.mask_offset(own, column)}"
                score = one.added(scope, score, one.factor(scope, Load(one.mask.argument, self.at_mask, each=each)))
            made.append(self._visible(scope, score, key, from_key, to_key))
        return made

    def _multiply(self, scope: Scope, slabs: list[Slab], scores: list[Var]) -> None:
        inner = scope.inner()
        at_q, at_k = (scope.narrow(f"{slab.space.begin} + s % 2 * {slab.space.length}") for slab in slabs)
        left = self._read(inner, TILES, f"{at_q} + k * {self.query_pitch} + {self.y} * {len(scores)}", len(scores))
        right = self._read(inner, TILES, f"{at_k} + k * {self.key_pitch} + {self.x} * {PER_ITEM}", PER_ITEM)
        for row, score in enumerate(scores):
            factor = self._lane(inner, left, row, PER_ITEM)
            inner.add(Assign(score, Splat(inner.let(MultiplyAdd(factor, right, score), self.dtype))))
        scope.add(For("k", "0", str(self.shape.depth), "1", tuple(inner.statements), unroll=True))

    def _visible(self, scope: Scope, score: Var, key: str, from_key: str, to_key: str) -> Var:
        one, size = self.one, self.dtype.itemsize
        if not (one.causal or one.partial):
            return score
        hidden = scope.let(Number(-float("inf")), self.dtype)
        before_end = scope.let(Below(f"({to_key} - {key} + {ACROSS - 1}) / {ACROSS}"), BOOL, mask_bytes=size)
        score = scope.let(Select(before_end, score, hidden), self.dtype)
        if one.window is not None:
            too_early = scope.let(Below(f"({from_key} - {key} + {ACROSS - 1}) / {ACROSS}"), BOOL, mask_bytes=size)
            score = scope.let(Select(too_early, hidden, score), self.dtype)
        return score

    def _weights(self, scope: Scope, scores: list[Var]) -> list[Var]:
        """From scores to weights in local memory; what sums so far are multiplied by."""
        one = self.one
        row = scope.narrow(f"{self.y} * {len(scores)}")
        for i, score in enumerate(scores):
            scope.add(Put("exchange", f"({row} + {i}) * {ACROSS} + {self.x}", one.tree(scope, "max", score)))
        scope.add(Barrier())
        shrinks = []
        for i, (score, before, total) in enumerate(zip(scores, self.highest, self.sums, strict=True)):
            largest = one.tree(scope, "max", self._all_across(scope, row, i, "max"))
            highest = one.larger(scope, largest, before)
            shrink = one.weight(scope, before, highest)
            shrinks.append(shrink)
            weights = one.weight(scope, score, scope.let(Splat(highest), self.dtype))
            summed = one.apply(scope, multiply.op, total, shrink)
            for lane in range(PER_ITEM):
                weight = self._lane(scope, weights, lane, 1)
                summed = one.added(scope, summed, weight)
                place = f"({self.x} + {lane * ACROSS}) * {self.query_pitch} + {row} + {i}"
                scope.add(Put("weights", place, weight))
            scope.add(Assign(total, Splat(summed)), Assign(before, Splat(highest)))
        return shrinks

    def _all_across(self, scope: Scope, row: str, i: int, op: str) -> Var:
        """What the work-items of a row gave for a query, combined down to four lanes by halves."""
        one = self.one
        parts = [self._read(scope, "exchange", f"({row} + {i}) * {ACROSS} + {lane}", 4) for lane in range(0, ACROSS, 4)]
        combine = one.larger if op == "max" else one.added
        return combine(scope, combine(scope, parts[0], parts[2]), combine(scope, parts[1], parts[3]))

    # -- values ---------------------------------------------------------------------------------------------

    def _add(self, scope: Scope) -> None:
        """Add the weighted values of a slab; in tiles that are not seen as a whole only such as are."""
        one = self.one
        whole = self._add_keys(scope)
        if not (one.causal or one.partial):
            scope.add(whole)
            return
        # One answer for the whole work-group.
        from_last, to_first = scope.integer(one.sees_from(self.last)), scope.integer(one.sees_to(self.first))
        some = scope.inner()
        for row in range(len(self.own)):
            self._add_seen(some, row)
        scope.add(If(f"t >= {from_last} && t + {KEYS} <= {to_first}", (whole,), tuple(some.statements)))

    def _add_keys(self, scope: Scope) -> Stmt:
        rows = len(self.own)
        inner = scope.inner()
        weights = self._read(inner, "weights", self._weight_of("0"), rows)
        values = self._values(inner)
        for row, line in enumerate(self.totals):
            self._multiply_add(inner, self._lane(inner, weights, row, self.wide), values, line)
        return For("k", "0", str(self.value_depth), "1", tuple(inner.statements), unroll=True)

    def _add_seen(self, scope: Scope, row: int) -> None:
        """As `_add_keys` for one query and what it sees."""
        depth = self.value_depth
        inner = scope.inner()
        weight = self._read(inner, "weights", self._weight_of(str(row)), 1)
        wide = inner.let(Splat(weight), self.dtype, self.wide)
        self._multiply_add(inner, wide, self._values(inner), self.totals[row])
        ends = (scope.integer(f"{end} - t - s * {depth}") for end in self.seen[row])
        from_key, to_key = ends
        stop = scope.integer(f"min({depth}L, {to_key})")
        scope.add(For("k", f"max(0L, {from_key})", stop, "1", tuple(inner.statements)))

    def _weight_of(self, row: str) -> str:
        return f"(s * {self.value_depth} + k) * {self.query_pitch} + {self.y} * {len(self.own)} + {row}"

    def _values(self, scope: Scope) -> list[Var]:
        """The work-item's columns of value `k` of slab `s`."""
        half, pitch = self.value_depth * self.value_pitch, self.value_pitch
        at = f"s % 2 * {half} + k * {pitch} + {self.x} * {self.wide}"
        parts = range(0, self.spread, ACROSS * self.wide)
        return [self._read(scope, TILES, f"{at} + {part}", self.wide) for part in parts]

    def _multiply_add(self, scope: Scope, weight: Var, values: list[Var], totals: list[Var]) -> None:
        for total, value in zip(totals, values, strict=True):
            scope.add(Assign(total, Splat(scope.let(MultiplyAdd(weight, value, total), self.dtype, self.wide))))

    # -- results --------------------------------------------------------------------------------------------

    def _end(self, scope: Scope, mine: str) -> None:
        """Divide by the sum of weights, and store with what follows."""
        one = self.one
        row = scope.narrow(f"{self.y} * {len(self.sums)}")
        for i, total in enumerate(self.sums):
            scope.add(Put("exchange", f"({row} + {i}) * {ACROSS} + {self.x}", total))
        scope.add(Barrier())
        for i, line in enumerate(self.totals):
            total = one.tree(scope, "sum", self._all_across(scope, row, i, "sum"))
            storing = scope.inner(self.wide)
            own = storing.integer(f"{mine} + {i}")
            for part, values in enumerate(line):
                column = storing.integer(f"{self.x} * {self.wide} + {part * ACROSS * self.wide}")
                inside = storing.inner()
                count = None if one.columns % self.wide == 0 else f"min({self.wide}L, {one.columns} - {column})"
                count = None if count is None else inside.integer(count)
                one.store(
                    inside, Row(own, self.record, self.matrix, own), column, count, one.share(inside, values, total)
                )
                storing.add(If(f"{column} < {one.columns}", tuple(inside.statements)))
            scope.add(If(f"{mine} + {i} < {one.queries}", tuple(storing.statements)))
        scope.add(Barrier())
