"""Products with numbers that are decoded from blocks, by tensor cores: terms of rows times whole numbers of blocks.

A number of these formats is a scale times a small whole number (`Factors`), which bfloat16 holds exactly. A number of a
row is the sum of three numbers of bfloat16, which are its significand in pieces of eight bits. So tensor cores multiply
without rounding, and sum in float32. Terms of a row are columns of the instruction, which has eight of them: two rows
cost what one costs.

The order of the sum: tensor cores add up the products of whole numbers that have one scale, in steps of 16 of k. Such
sums times their scale are added in order, for each term and each of `SLICES` parts of k. Parts are added in order, then
the least term, the next one and the greatest. Nothing else enters it, so one row has the bits that many have.

Each sub-group has a ring of chunks of its columns in local memory, filled by asynchronous copies. Where columns are few
its sub-groups share them, and each has a part of k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np

from flowcompute.elements.quantized import factors_of
from flowcompute.fuse import Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    ROLLED,
    RUN_NUMBERS,
    Array,
    ArrayItem,
    Assign,
    AwaitCopies,
    BlockRun,
    Combine,
    ConstantValue,
    Copy,
    EndCopies,
    For,
    FragmentMultiply,
    HalvesOfRun,
    If,
    IndexLike,
    Kernel,
    Load,
    LowerRest,
    MultiplyAdd,
    Name,
    Picked,
    PutItem,
    SetInteger,
    Splat,
    Stmt,
    SubGroupBarrier,
    UpperHalves,
    Var,
    WorkGroupBarrier,
    all_of,
    index_min,
    views_of,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, block_format
from flowcompute.lower.matmul.panel_sums import K, sum_in_panels, zeros
from flowcompute.lower.matmul.tensor_cores.block_term_tiles import SLICES, Geometry, chunks_of
from flowcompute.lower.matmul.tensor_cores.tensor_tile import SUBGROUP
from flowcompute.lower.matmul.tiled_matmul import TILE, TilePosition, place_of_tile
from flowcompute.spec import BFLOAT16, FLOAT32

GROUP = 128
"""Work-items in a work-group."""
SUBGROUPS = GROUP // SUBGROUP
"""Sub-groups in a work-group."""
TERMS = 3
"""Numbers of bfloat16 whose sum a float32 is."""
EDGE, WIDTH = 16, 8
"""Columns of weights, and of terms, of an instruction."""
STEP = 16
"""Numbers of k of an instruction."""
PAIR = 2 * STEP
"""Numbers of k whose terms a work-item loads at once."""
PAD = 16
"""Words between terms, so that neighbours lie in different banks."""
_Fetch = Callable[[Scope, IndexLike], list[Var]]
_Put = Callable[[Scope, list[Var], IndexLike], None]
_UINT32 = np.dtype(np.uint32)
_WORD = _UINT32.itemsize
_BLOCK, _PART = Name("b"), Name("p")
_RESULT = Name("r", narrow=True)
_LANE, _SUBGROUP = LID % SUBGROUP, LID // SUBGROUP
_QUAD, _WITHIN = LID % SUBGROUP // RUN_NUMBERS, LID % RUN_NUMBERS
"""Column of the work-item, and which numbers of `STEP` it has."""


class TermLowering:
    """Lowering of a region with such a product, for tiles of some rows.

    Attributes:
        parts, tall, stages, slots: see `Geometry`.
        columns: that a work-group computes, of which a sub-group has `own`.
        lines: terms of all rows, which are `wide` instructions.
    """

    def __init__(self, graph: Graph, region: Region, rows: int, geometry: Geometry) -> None:
        self.region = region
        self.rows = rows
        self.parts, self.tall = geometry.parts, geometry.tall
        self.stages, self.slots = geometry.stages, geometry.slots
        self.one = one = MatmulAnchor(graph, region)
        chunks = chunks_of(graph, one, geometry.chunk)
        assert chunks is not None
        self.chunks = chunks
        self.format = block_format(graph, one.node.inputs[1])
        factors = factors_of(self.format)
        assert factors is not None
        self.factors = factors
        root, _ = views_of(graph, one.node.inputs[1])
        self.words = one.arguments.get("input", _UINT32, graph.nodes[root].inputs[0])
        self.numbers = chunks.blocks * self.format.numbers
        self.own = EDGE * self.tall
        self.columns = self.own * SUBGROUPS // self.parts
        self.lines = TERMS * rows
        self.wide = -(-self.lines // WIDTH)
        size = chunks.blocks * self.format.block_bytes
        self.multiple = math.gcd(_WORD, size)
        self.together = self.multiple // math.gcd(self.multiple, self.format.block_bytes)
        self.line = size // _WORD
        self.stage = self.own * self.line
        self.pitch = self.numbers // 2 + PAD
        self.slot = self.lines * self.pitch
        self.results = self.wide * WIDTH + 1
        self.kept = 1 if self.parts == 1 else SLICES

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows."""
        one = self.one
        scope = Scope(one.names, lanes=1)
        place = place_of_tile(scope, one, self.rows, self.columns)
        self._tile(scope, place)
        left = self.parts * self.slots * self.slot
        arrays = (
            Array("right", _UINT32, 1, SUBGROUPS * self.stages * self.stage, local=True, alignment=16),
            Array("left", _UINT32, 1, left, local=True, alignment=16),
            Array("sums", FLOAT32, 1, self.kept * self.columns * self.results, local=True),
        )
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (*arrays, For(TILE, GID, place.many, GSIZE, tuple(scope.statements))),
            work="matmul",
            work_group=GROUP,
            units=one.units,
            tile=(self.rows, place.across),
        )

    def _tile(self, scope: Scope, place: TilePosition) -> None:
        """Compute some columns of some rows. Those behind the last ones repeat these."""
        one, shared = self.one, self.parts > 1
        each = SLICES // self.parts
        first: IndexLike = scope.narrow(_SUBGROUP % self.parts * (each * self.chunks.slice)) if shared else 0
        stop: IndexLike = one.inner
        if shared:
            stop = scope.narrow(index_min(one.inner, first + each * self.chunks.slice))
        ring = scope.narrow(_SUBGROUP * (self.stages * self.stage))
        send = self._sender(scope, place, ring, first)
        for stage in range(self.stages - 1):
            ahead = scope.inner()
            send(ahead, first // self.numbers + stage)
            scope.add(If(first + stage * self.numbers < stop, tuple(ahead.statements)), EndCopies())
        fetch, put = self._of_left(scope, place)
        brought = fetch(scope, index_min(first, one.inner - self.numbers) if shared else first)
        add = self._adder(send, ring, stop, (brought, fetch, put))
        if shared:
            part = scope.inner()
            totals = zeros(one, part.beside(4), self.tall, self.wide)
            begin = part.narrow(first + _PART * self.chunks.slice)
            add(part, totals, begin, index_min(stop, begin + self.chunks.slice))
            self._keep(part, totals, _SUBGROUP % self.parts * each + _PART)
            scope.add(For(_PART, 0, each, 1, tuple(part.statements), unroll=ROLLED))
        else:
            totals = zeros(one, scope.beside(4), self.tall, self.wide)
            sum_in_panels(one, scope.beside(4), totals, add, length=self.chunks.slice)
            self._keep(scope, totals, 0)
        self._store(scope, place)

    def _adder(
        self,
        send: Callable[[Scope, IndexLike], None],
        ring: IndexLike,
        stop: IndexLike,
        rows: tuple[list[Var], _Fetch, _Put],
    ) -> Callable[[Scope, list[list[Var]], IndexLike, IndexLike], None]:
        """Return what adds to a scope the statements that add products of a range of k to sums.

        Args:
            send: starts the copies of a chunk.
            ring: place of the first stage of the sub-group.
            stop: end of what the sub-group sums.
            rows: numbers of the next chunk of rows, what loads them, and what puts their terms into a slot.
        """
        brought, fetch, put = rows
        meet: Stmt = SubGroupBarrier() if self.parts == SUBGROUPS else WorkGroupBarrier()

        def add(inner: Scope, sums: list[list[Var]], start: IndexLike, end: IndexLike) -> None:
            step = inner.inner()
            left = step.narrow(K // self.numbers % self.slots * self.slot)
            step.add(*([meet] if self.slots == 1 else []))
            put(step, brought, left)
            step.add(AwaitCopies(self.stages - 2), meet)
            ahead = step.inner()
            following = K + (self.stages - 1) * self.numbers
            send(ahead, following // self.numbers)
            step.add(If(following < stop, tuple(ahead.statements)), EndCopies())
            after = step.inner()
            for var, value in zip(brought, fetch(after, K + self.numbers), strict=True):
                after.add(Assign(var, Splat(value)))
            step.add(If(K + self.numbers < stop, tuple(after.statements)))
            right = ring * _WORD + K // self.numbers % self.stages * (self.stage * _WORD)
            self._multiply(step, sums, step.narrow(right), step.narrow(left + self._slots()))
            inner.add(For(K, start, end, self.numbers, tuple(step.statements), unroll=ROLLED))

        return add

    # -- columns --------------------------------------------------------------------------------------

    def _sender(
        self, scope: Scope, place: TilePosition, ring: IndexLike, first: IndexLike
    ) -> Callable[[Scope, IndexLike], None]:
        """Return what starts the copies of a work-item's pieces of a chunk of some number, and moves on by a chunk.

        Args:
            scope: where places are declared.
            place: of the tile.
            ring: place of the first stage of the sub-group.
            first: number of k of its first chunk.
        """
        one, piece = self.one, self.chunks.piece // _WORD
        base = one.of_b(scope, one.row(scope, place.row))
        begin = place.column + _SUBGROUP // self.parts * self.own
        pieces: list[tuple[IndexLike, Name, bool]] = []
        for start in range(0, self.stage // piece, SUBGROUP):
            is_full = start + SUBGROUP <= self.stage // piece
            number = scope.narrow(_LANE + start)
            there = number if is_full else scope.narrow(index_min(self.stage // piece - 1, number))
            column = index_min(one.columns - 1, begin + there * piece // self.line)
            block = (base + column * one.b.columns.stride + first) // self.format.numbers
            at = scope.integer(block * self.format.block_bytes // _WORD + there * piece % self.line)
            assert isinstance(at, Name), "it depends on the work-item"
            pieces.append((number, at, is_full))

        def send(inner: Scope, chunk: IndexLike) -> None:
            for number, at, is_full in pieces:
                to = ring + chunk % self.stages * self.stage + number * piece
                copy = Copy("right", to, self.words, at, piece)
                inner.add(copy if is_full else If(number < self.stage // piece, (copy,)))
            inner.add(*(_moved(at, self.line) for _, at, _ in pieces))

        return send

    # -- rows -----------------------------------------------------------------------------------------

    def _slots(self) -> IndexLike:
        """Return the place of the slots of the sub-group."""
        return _SUBGROUP % self.parts * (self.slots * self.slot) if self.parts > 1 else 0

    def _of_left(self, scope: Scope, place: TilePosition) -> tuple[_Fetch, _Put]:
        """Return what loads a work-item's numbers of a chunk of rows, and what puts their terms into a slot."""
        one = self.one
        each, many = self.numbers // RUN_NUMBERS, self.rows * self.numbers // RUN_NUMBERS
        workers, own = self._workers()
        runs: list[tuple[IndexLike, IndexLike, IndexLike]] = []
        at_line: dict[str, IndexLike] = {}
        for start in range(0, many, workers):
            number = own + start if start + workers <= many else index_min(many - 1, own + start)
            line, within = number // each, number % each
            if each % workers == 0:
                line, within = start // each, own + start % each
            elif workers % each == 0 and start + workers <= many:
                line, within = own // each + start // each, own % each
            if str(line) not in at_line:
                row = scope.integer(index_min(place.until - 1, place.row + line))
                at_line[str(line)] = one.of_a(scope, one.row(scope, row))
            k = scope.narrow(within * RUN_NUMBERS)
            runs.append((line, k, at_line[str(line)]))

        def fetch(inner: Scope, k: IndexLike) -> list[Var]:
            return [self._numbers(inner, at, k + within) for _, within, at in runs]

        def put(inner: Scope, numbers: list[Var], slot: IndexLike) -> None:
            for (line, k, _), var in zip(runs, numbers, strict=True):
                self._put_terms(inner, slot + self._slots() + line * (TERMS * self.pitch) + _place_of(k), var)

        return fetch, put

    def _workers(self) -> tuple[int, IndexLike]:
        """Return how many work-items make rows of one part of k, and the number of the work-item among them."""
        if self.parts == 1:
            return GROUP, LID
        return GROUP // self.parts, _SUBGROUP // self.parts * SUBGROUP + _LANE

    def _numbers(self, scope: Scope, at: IndexLike, k: IndexLike) -> Var:
        """Load `RUN_NUMBERS` of a row from some k on, or compute them."""
        stride = self.one.a.columns.stride
        load = Load(self.one.a.argument, at + k * stride, stride, aligned=self._is_plain)
        return self.one.factor(scope.beside(RUN_NUMBERS), load)

    @property
    def _is_plain(self) -> bool:
        """True where runs of a row begin at multiples of their size."""
        one = self.one
        lies, stride = one.a.lies, one.a.columns.stride
        begins = (lies.offset, lies.record, one.a.rows.stride * (one.height > 1), *lies.strides[: one.a.stack])
        return stride == 1 and not one.is_computed(one.a) and all(each % RUN_NUMBERS == 0 for each in begins)

    def _put_terms(self, scope: Scope, place: IndexLike, numbers: Var) -> None:
        for term in range(TERMS):
            words = scope.let(UpperHalves(numbers), _UINT32, 2)
            scope.add(PutItem("left", place + term * self.pitch, words, vector=True))
            if term < TERMS - 1:
                numbers = scope.let(LowerRest(numbers), FLOAT32, RUN_NUMBERS)

    # -- products -------------------------------------------------------------------------------------

    def _multiply(self, scope: Scope, sums: list[list[Var]], right: IndexLike, left: IndexLike) -> None:
        """Add the products of a chunk to the sums of columns and terms.

        Args:
            scope: where the statements go.
            sums: of each instruction.
            right: place of the chunk of the sub-group's columns, in bytes.
            left: place of that of the first term, in words.
        """
        block = scope.inner(lanes=1)
        for number, first in product(range(self.together), range(0, self.format.numbers, PAIR)):
            parts = [self._weights(block, right, tile, number, first) for tile in range(self.tall)]
            for column in range(self.wide):
                line: IndexLike = _QUAD + column * WIDTH
                if self.lines < (column + 1) * WIDTH:
                    line = index_min(self.lines - 1, line)
                behind = (_BLOCK + number) * (self.format.numbers // 2) + first // 2
                place = left + line * self.pitch + behind + _WITHIN * 4
                terms = block.let(ArrayItem("left", place, vector=True), _UINT32, 4)
                for (fragments, scales), line_of_sums in zip(parts, sums, strict=True):
                    self._add(block, line_of_sums[column], fragments, scales, terms)
        scope.add(For(_BLOCK, 0, self.chunks.blocks, self.together, tuple(block.statements), unroll=1))

    @staticmethod
    def _add(scope: Scope, total: Var, fragments: list[Var], scales: list[Var], terms: Var) -> None:
        """Add products of whole numbers and terms, times their scales, to a sum."""
        for number, scale in enumerate(scales):
            made = scope.let(ConstantValue(0.0), FLOAT32, 4)
            steps = range(2) if len(scales) == 1 else [number]
            for step in steps:
                made = scope.let(FragmentMultiply(fragments[step], terms, step, made, BFLOAT16), FLOAT32, 4)
            scope.add(Assign(total, Splat(scope.let(MultiplyAdd(made, scale, total), FLOAT32, 4))))

    def _weights(
        self, scope: Scope, right: IndexLike, tile: int, number: int, first: int
    ) -> tuple[list[Var], list[Var]]:
        """Return whole numbers of columns as two fragments, and their scales, of a pair of steps of k."""
        size = self.format.block_bytes

        def run(half: int, begin: int, *, scale: bool) -> BlockRun:
            line = right + (_QUAD + (tile * EDGE + half * WIDTH)) * (self.line * _WORD)
            return BlockRun(
                lanes=2 if scale else RUN_NUMBERS,
                array="right",
                block=line + _BLOCK * size + number * size,
                known=number * size % self.multiple,
                multiple=self.multiple,
                place=0 if scale else _WITHIN * RUN_NUMBERS,
                begin=begin,
                span=2 if scale else STEP,
                blocks=self.factors.scale if scale else self.factors.whole,
                native=True,
            )

        fragments, scales = [], []
        for begin in range(first, first + PAIR, STEP):
            halves = [scope.let(HalvesOfRun(run(half, begin, scale=False)), _UINT32, 2) for half in range(2)]
            fragments.append(scope.let(Picked(tuple(halves), (0, 2, 1, 3)), _UINT32, 4))
        for begin in range(first, first + PAIR, self.factors.shared):
            both = [scope.let(run(half, begin, scale=True), FLOAT32, 2) for half in range(2)]
            scales.append(scope.let(Picked(tuple(both), (0, 1, 2, 3)), FLOAT32, 4))
        return fragments, scales

    # -- results --------------------------------------------------------------------------------------

    def _keep(self, scope: Scope, totals: list[list[Var]], part: IndexLike) -> None:
        """Put the sums of a part of k into local memory."""
        scope = scope.beside(1)
        start = _SUBGROUP // self.parts * self.own
        line = scope.narrow((part * self.columns + start + _QUAD) * self.results + _WITHIN * 2)
        for (tile, column), lane in product(product(range(self.tall), range(self.wide)), range(4)):
            number = scope.let(Picked((totals[tile][column],), (lane,)), FLOAT32, 1)
            at = (tile * EDGE + lane // 2 * WIDTH) * self.results + column * WIDTH + lane % 2
            scope.add(PutItem("sums", line + at, number))

    def _store(self, outer: Scope, place: TilePosition) -> None:
        """Add up parts of k and terms, and store the results."""
        one = self.one
        scope = outer.beside(1)
        scope.add(WorkGroupBarrier())
        own = scope.inner()
        row = own.integer(place.row + _RESULT // self.columns)
        column = own.integer(place.column + _RESULT % self.columns)
        at = own.narrow(_RESULT % self.columns * self.results + _RESULT // self.columns * TERMS)
        by_term = []
        for term in reversed(range(TERMS)):
            places = (at + part * self.columns * self.results + term for part in range(self.kept))
            by_term.append(_added(own, [own.let(ArrayItem("sums", each), FLOAT32) for each in places]))
        total = _added(own, by_term)
        stored = own.inner()
        one.store(stored, one.row(stored, row), column, None, total)
        own.add(If(all_of(row < place.until, column < one.columns), tuple(stored.statements)))
        many = self.rows * self.columns
        scope.add(For(_RESULT, LID, many, GROUP, tuple(own.statements), unroll=2), WorkGroupBarrier())


def _added(scope: Scope, numbers: list[Var]) -> Var:
    """Add numbers in their order."""
    total, *others = numbers
    for one in others:
        total = scope.let(Combine("sum", (total,), (one,), 0), FLOAT32)
    return total


def _moved(at: Name, by: int) -> Stmt:
    return SetInteger(at, at + by, new=False)


def _place_of(k: IndexLike) -> IndexLike:
    """Return the word of a term at which four numbers of k lie: a work-item loads those of two steps together."""
    return k // PAIR * STEP + k % STEP // RUN_NUMBERS * 4 + k % PAIR // STEP * 2
