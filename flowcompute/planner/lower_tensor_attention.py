"""Attention by tensor cores: half formats, scores and sums in float32 (the order of FlashAttention-2, Dao, 2023).

Each team of 32 work-items takes 16 or 32 queries of a head. Keys and values come tile by tile
through local memory, the next ones while these are multiplied; scores become weights in the
registers where the next multiplication wants them.

What is added to what belongs to attention of half formats on such devices: keys in tiles of
`KEYS`, in order; scores over d and weighted values over keys in steps of 16, within which the
device has an order of its own; weights in 8 classes by the key's number modulo 8, in order, the
classes pairwise. Weights are powers of two to about 2 ulp of float32, rounded to the half format
before they multiply values. No size of a work-group changes a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from flowcompute.elements.arithmetic import multiply
from flowcompute.graph.graph import Graph
from flowcompute.planner.anchor import Operand, Row, times
from flowcompute.planner.attention import KEYS, Attention
from flowcompute.planner.backend import Traits
from flowcompute.planner.emit import Scope
from flowcompute.planner.kernel import (
    Array,
    Assign,
    Barrier,
    Below,
    For,
    Half,
    If,
    Kernel,
    Load,
    MultiplyAdd,
    Number,
    Select,
    Var,
)
from flowcompute.planner.kernel_tensor import AwaitCopies, EndCopies, FragmentMultiply, FragmentOf, Join
from flowcompute.planner.region import Region
from flowcompute.planner.tensor_results import LANES, Results
from flowcompute.planner.tensor_tile import (
    EDGE,
    TEAM,
    TILES,
    Feed,
    Reader,
    TensorTile,
    copied_together,
    lines_along_k,
)
from flowcompute.planner.tensor_unseen import Unseen
from flowcompute.planner.tensor_weights import HALVES, Weights, in_powers
from flowcompute.spec import BFLOAT16, BOOL, FLOAT16, FLOAT32

TEAMS = 4
FEW = 64
"""Of so many queries or fewer a team takes 16."""
WIDE = 128
"""Of longer queries or values, too: 255 registers are all there are."""
STAGES = 2


def lower_tensor_attention(graph: Graph, region: Region, traits: Traits, name: str) -> Kernel | None:
    """The kernel of attention; None where it is not for tensor cores."""
    one = Attention(graph, region)
    operands = (one.q, one.k, one.v)
    dtype = one.q.argument.dtype
    if dtype not in (FLOAT16, BFLOAT16) or any(side.argument.dtype != dtype for side in operands):
        return None
    if one.scale <= 0 or not one.size or any(side.argument.value in region.nodes for side in operands):
        return None
    if not all(axes.single for side in operands for axes in (side.rows, side.columns)):
        return None
    lowering = _Lowering(one, region)
    return lowering.lower(name) if lowering.fits(traits.local_bytes) else None


def _whole(numbers: int) -> int:
    """As many as fill lines of 64 or of 128 bytes."""
    return 32 if numbers <= 32 else -(-numbers // 64) * 64


@dataclass(frozen=True)
class _Unit:
    """One step of k and one 16 columns of a multiplication."""

    step: int
    part: int


class _Lowering:
    def __init__(self, one: Attention, region: Region) -> None:
        self.one, self.region = one, region
        self.dtype = one.q.argument.dtype
        team_rows = EDGE if one.queries <= FEW or max(one.size, one.columns) > WIDE else 2 * EDGE
        self.rows, self.group, self.edges = TEAMS * team_rows, TEAMS * TEAM, team_rows // EDGE
        self.blocks = -(-one.queries // self.rows)
        self.along = (
            lines_along_k(one.q.columns, one.q.rows),
            lines_along_k(one.k.columns, one.k.rows),
            lines_along_k(one.v.rows, one.v.columns),
        )
        size, columns = _whole(one.size), _whole(one.columns)
        begin, tiles = 0, []
        for along_k, other, k, stages in (
            (self.along[0], self.rows, size, 1),
            (self.along[1], KEYS, size, STAGES),
            (self.along[2], columns, KEYS, STAGES),
        ):
            lines, width = (other, k) if along_k else (k, other)
            tiles.append(TensorTile(begin, self.dtype, lines, width, bool(along_k)))
            begin += stages * lines * width
        self.q_tile, self.k_tile, self.v_tile = tiles
        results = self.rows * (columns + 8) * FLOAT32.itemsize
        self.local_bytes = max(begin * self.dtype.itemsize, results)

    def fits(self, local_bytes: int) -> bool:
        """Whether operands lie as they must, and local memory is enough."""
        room = self.local_bytes + self.rows * FLOAT32.itemsize
        return None not in self.along and room <= local_bytes

    def lower(self, name: str) -> Kernel:
        """The kernel; its work counts blocks of queries."""
        one = self.one
        scope = Scope(one.names, lanes=LANES)
        self._block(scope)
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (
                Array(TILES, FLOAT32, 1, self.local_bytes // FLOAT32.itemsize, local=True),
                *(() if self.unseen is None else (self.unseen.array(),)),
                For("b", "gid", "n", "gsize", tuple(scope.statements)),
            ),
            work="matmul",
            work_group=self.group,
            units=one.units // one.queries * self.blocks,
            lanes=LANES,
        )

    # -- a block of queries -------------------------------------------------------------------------------

    def _block(self, scope: Scope) -> None:
        one = self.one
        many = one.units // one.queries
        if one.causal:
            # The longest blocks first, so that work-groups end together.
            heads = scope.integer(f"n / {self.blocks}")
            number, block = scope.integer(f"b % {heads}"), f"({self.blocks - 1} - b / {heads})"
        else:
            number, block = scope.integer(f"b / {self.blocks}"), f"b % {self.blocks}"
        self.record, self.matrix = scope.integer(f"{number} / {many}"), scope.integer(f"{number} % {many}")
        self.first = scope.integer(f"{block} * {self.rows}")
        self.last = scope.integer(f"min({self.first} + {self.rows}, (long){one.queries}) - 1")
        self.top = scope.narrow(f"lid / {TEAM} * {self.edges * EDGE}")
        mine = scope.integer(f"{self.first} + {self.top} + lid % {TEAM} / 4")
        # As texts, since numbers of 64 bits that wait for their use in a few tiles would take many registers.
        self.own = [[f"({mine} + {edge * EDGE + 8 * lower})" for lower in HALVES] for edge in range(self.edges)]
        self.at_mask = "0" if one.mask is None else one.base(scope, one.mask, self.record, self.matrix)
        self._feeds(scope)
        self._state(scope)
        start, stop = scope.integer(one.sees_from(self.first)), scope.integer(one.sees_to(self.last))
        start = start if start == "0" else scope.integer(f"{start} / {KEYS} * {KEYS}")
        self.q_feed.bring(scope, "0", "0")
        self._bring(scope, self.k_feed, start, stop)
        self._bring(scope, self.v_feed, start, stop)
        self._bring(scope, self.k_feed, f"{start} + {KEYS}", stop)
        tile = scope.inner()
        self._tile(tile, stop)
        scope.add(For("t", start, stop, str(KEYS), tuple(tile.statements)), AwaitCopies(0))
        self._end(scope)

    def _state(self, scope: Scope) -> None:
        """What goes on from tile to tile, for each 16 queries of the team."""
        one, edges = self.one, range(self.edges)
        self.weights = [Weights(scope, one) for _ in edges]
        self.totals = [[scope.let(Number(0.0), FLOAT32, 4) for _ in range(-(-one.columns // 8))] for _ in edges]

    # -- operands into local memory -----------------------------------------------------------------------

    def _feeds(self, scope: Scope) -> None:
        one = self.one
        at_q = one.base(scope, one.q, self.record, self.matrix)
        at_block = f"{at_q} + {times(self.first, one.q.rows.stride)}"
        self.q_feed = self._feed(scope, one.q, self.q_tile, at_block, one.queries)
        at_k, at_v = (one.base(scope, side, self.record, self.matrix) for side in (one.k, one.v))
        self.k_feed = self._feed(scope, one.k, self.k_tile, at_k, one.keys)
        self.v_feed = self._feed(scope, one.v, self.v_tile, at_v, one.keys)
        self.readers = (
            Reader(scope, self.q_tile, self.top, right=False),
            Reader(scope, self.k_tile, "0", right=True),
            Reader(scope, self.v_tile, "0", right=True),
        )
        self.unseen = Unseen(one, self.record, self.matrix, self.rows) if one.causal else None

    def _feed(self, scope: Scope, operand: Operand, tile: TensorTile, origin: str, count: int) -> Feed:
        """A feed of rows of an operand (queries, keys or values), of which there are `count`."""
        origin = scope.integer(origin)
        rows_are_lines = operand.columns.stride == 1
        numbers = math.prod(operand.columns.sizes)
        stride = operand.rows.stride if rows_are_lines else operand.columns.stride
        extent = numbers if rows_are_lines else count
        width = tile.width if rows_are_lines else tile.lines

        def exists(line: str, at: str) -> str | None:
            row, column = (line, at) if rows_are_lines else (at, line)
            conditions = [f"{self.first} + {row} < {count}"] if operand is self.one.q else []
            conditions += [f"{column} < {numbers}"] if numbers < width else []
            return " && ".join(conditions) or None

        together = copied_together(operand, stride, extent)
        return Feed(
            scope,
            tile,
            operand.argument,
            together,
            self.group,
            lambda _, line: f"{origin} + {times(f'(long){line}', stride)}",
            stride,
            exists,
        )

    def _bring(self, scope: Scope, feed: Feed, key: str, stop: str) -> None:
        """Begin to bring keys or values from `key` on, as a group of copies."""
        one = self.one
        operand = one.k if feed is self.k_feed else one.v
        rows_are_lines = operand.columns.stride == 1
        inner = scope.inner()
        first = inner.integer(key)

        def limit(line: str, at: str) -> str:
            return f"{first} + {line if rows_are_lines else at} < {one.keys}"

        stage = inner.narrow(f"(int)({first} / {KEYS} % {STAGES})")
        feed.bring(inner, stage, times(first, operand.rows.stride), limit if one.partial else None)
        scope.add(If(f"{key} < {stop}", tuple(inner.statements)), EndCopies())

    # -- a tile of keys -------------------------------------------------------------------------------------

    def _tile(self, scope: Scope, stop: str) -> None:
        """Scores, weights and sums of a tile of keys."""
        self.stage = scope.narrow(f"(int)(t / {KEYS} % {STAGES})")
        scope.add(AwaitCopies(2), Barrier())
        self._bring(scope, self.v_feed, f"t + {KEYS}", stop)
        scores = self._scores(scope)
        self._hide(scope, scores)
        weights = [
            of_edge.next(scope, line, sums)
            for of_edge, line, sums in zip(self.weights, scores, self.totals, strict=True)
        ]
        scope.add(AwaitCopies(2), Barrier())
        self._bring(scope, self.k_feed, f"t + {2 * KEYS}", stop)
        self._add(scope, weights)

    def _scores(self, scope: Scope) -> list[list[Var]]:
        """For each 16 queries the products with each 8 keys, with the mask added where there is one."""
        one, (of_q, of_k, _) = self.one, self.readers
        scores = [[scope.let(Number(0.0), FLOAT32, 4) for _ in range(KEYS // 8)] for _ in range(self.edges)]
        parts = KEYS // EDGE
        units = [_Unit(step, part) for step in range(-(-one.size // EDGE)) for part in range(parts)]
        queries = [of_q.read(scope, "0", edge, 0) for edge in range(self.edges)]
        for unit, keys in _ahead(units, lambda unit: of_k.read(scope, self.stage, unit.part, unit.step)):
            if unit.part == 0 and unit.step:
                queries = [of_q.read(scope, "0", edge, unit.step) for edge in range(self.edges)]
            for half in range(2):
                for fragment, line in zip(queries, scores, strict=True):
                    score = line[2 * unit.part + half]
                    scope.add(Assign(score, FragmentMultiply(fragment, keys, half, score, self.dtype)))
        if one.mask is not None:
            self._add_mask(scope, scores)
        return scores

    def _key(self, part: int) -> str:
        """The first of the work-item's keys in a part of 8."""
        return f"(t + lid % 4 * 2 + {part * 8})"

    def _add_mask(self, scope: Scope, scores: list[list[Var]]) -> None:
        """Scores in powers of two, with their mask."""
        one = self.one
        assert one.mask is not None
        pairs = scope.inner(2)
        scale, to_power = (pairs.let(Number(in_powers(factor)), FLOAT32, 4) for factor in (one.scale, 1.0))
        for two, line in zip(self.own, scores, strict=True):
            for part, score in enumerate(line):
                added = []
                for query in two:
                    own = pairs.integer(f"min({query}, {self.last})")
                    column = f"{self._key(part)} + {{lane}}"
                    column = f"min({column}, {one.keys - 1}L)" if one.partial else f"({column})"
                    each = f"{self.at_mask} + {one.mask_offset(own, column)}"
                    added.append(one.factor(pairs, Load(one.mask.argument, self.at_mask, each=each)))
                both = pairs.let(Join(*added), FLOAT32, 4)
                both = one.apply(pairs, multiply.op, both, to_power)
                pairs.add(Assign(score, MultiplyAdd(score, scale, both)))
        scope.add(*pairs.statements)

    def _hide(self, scope: Scope, scores: list[list[Var]]) -> None:
        """Give keys that are not seen the score -inf, in tiles where there are such."""
        one = self.one
        if not (one.causal or one.partial):
            return
        inner = scope.inner(2)
        hidden = inner.let(Number(-math.inf), FLOAT32)
        for two, line in zip(self.own, scores, strict=True):
            # How many keys from the work-item's first one on are before those that are seen, and up to their end.
            ends = [
                [inner.narrow(f"{end} - {self._key(0)}") for end in (one.sees_from(q), one.sees_to(q))] for q in two
            ]
            for part, score in enumerate(line):
                halves = []
                for lower, (before, until) in zip(HALVES, ends, strict=True):
                    half = inner.let(Half(score, lower), FLOAT32)
                    halves.append(self._visible(inner, half, hidden, f"{before} - {part * 8}", f"{until} - {part * 8}"))
                inner.add(Assign(score, Join(*halves)))
        from_last, to_first = scope.integer(one.sees_from(self.last)), scope.integer(one.sees_to(self.first))
        scope.add(If(f"t < {from_last} || t + {KEYS} > {to_first}", tuple(inner.statements)))

    def _visible(self, scope: Scope, score: Var, hidden: Var, before: str, until: str) -> Var:
        in_time = scope.let(Below(until), BOOL, mask_bytes=4)
        score = scope.let(Select(in_time, score, hidden), FLOAT32)
        if self.one.window is not None:
            too_early = scope.let(Below(before), BOOL, mask_bytes=4)
            score = scope.let(Select(too_early, hidden, score), FLOAT32)
        return score

    # -- values ---------------------------------------------------------------------------------------------

    def _add(self, scope: Scope, weights: list[list[Var]]) -> None:
        """Add the weighted values."""
        of_v = self.readers[2]
        parts = -(-self.one.columns // EDGE)
        units = [_Unit(step, part) for step in range(KEYS // EDGE) for part in range(parts)]
        left: list[Var] = []
        for unit, values in _ahead(units, lambda unit: of_v.read(scope, self.stage, unit.part, unit.step)):
            if unit.part == 0:
                pairs = [(line[2 * unit.step], line[2 * unit.step + 1]) for line in weights]
                left = [scope.let(FragmentOf(*pair, self.dtype), np.dtype(np.uint32), 4) for pair in pairs]
            for half in range(2):
                for fragment, line in zip(left, self.totals, strict=True):
                    if 2 * unit.part + half < len(line):
                        total = line[2 * unit.part + half]
                        scope.add(Assign(total, FragmentMultiply(fragment, values, half, total, self.dtype)))

    # -- results --------------------------------------------------------------------------------------------

    def _end(self, scope: Scope) -> None:
        """Divide by the sum of weights, and store with what follows."""
        one = self.one
        sums = [[of_edge.whole(scope, lower) for lower in HALVES] for of_edge in self.weights]
        if self.unseen is not None:
            place = scope.narrow(f"{self.top} + (int)lid % {TEAM} / 4")
            for edge, two in enumerate(sums):
                for lower, total in zip(HALVES, two, strict=True):
                    self.unseen.keep(scope, f"{place} + {edge * EDGE + 8 * lower}", total)

        def exists(row: str, column: str) -> str:
            return f"{self.first} + {row} <= {self.last} && {column} < {one.columns}"

        def store(inner: Scope, row: str, column: str, made: Var) -> None:
            own, column = inner.integer(f"{self.first} + {row}"), inner.integer(f"(long){column}")
            count = None if one.columns % LANES == 0 else inner.integer(f"min((long){LANES}, {one.columns} - {column})")
            if self.unseen is not None:
                self.unseen.corrected(inner, row, own, column, count, made)
            one.store(inner, Row(own, self.record, self.matrix, own), column, count, made)

        results = Results(self.rows, -(-one.columns // 8) * 8, self.group, store, exists)
        results.add(
            scope, self.totals, self.top, "0", lambda edge, lower, pair: one.share(scope, pair, sums[edge][lower])
        )


def _ahead(units: list[_Unit], read: Callable[[_Unit], Var]) -> Iterator[tuple[_Unit, Var]]:
    """Each unit with its fragment, after the next one's was asked for."""
    coming = read(units[0])
    for unit, following in zip(units, [*units[1:], None], strict=True):
        now = coming
        if following is not None:
            coming = read(following)
        yield unit, now
