"""Products with numbers that are decoded from blocks, on discrete GPUs: blocks go through local memory as they lie.

The numbers of a column of B are neighbours in its blocks, as in `x @ w.T` of a file's weights. A work-group copies
chunks of its columns to local memory, in pieces of up to 16 bytes, whatever the size of a block. So reading from memory
does not depend on the format. `TEAM` work-items share a column: each decodes `RUN_NUMBERS` neighbouring numbers of
every `LANES`, which are four bytes of most formats. The next chunk is on its way in registers meanwhile.

Each work-group has one row. Neighbouring ones have the same columns of other rows, so caches read weights once for
`FEW_ROWS` rows. The order of the sum is that of `dequantized_matmul.py`, so CPUs and GPUs add alike, and so do one row
and many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

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
    BlockRun,
    ConditionLike,
    DeviceCapabilities,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    MultiplyAdd,
    Name,
    PutItem,
    Splat,
    Var,
    WorkGroupBarrier,
    all_of,
    index_min,
    views_of,
)
from flowcompute.lower.anchor_point import Row
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import LoweringTask
from flowcompute.lower.matmul.dequantized_matmul import LANES, RUN
from flowcompute.lower.matmul.lane_sums import stored_sum
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, block_format
from flowcompute.lower.matmul.panel_sums import K, sum_in_panels, zeros
from flowcompute.lower.matmul.tiled_matmul import TILE, place_of_tile
from flowcompute.spec import FLOAT32

GROUP = 128
"""Work-items in a work-group."""
TEAM = LANES // RUN_NUMBERS
"""Work-items that share a column."""
COLUMNS = GROUP // TEAM
"""Columns of a work-group."""
FEW_ROWS = 8
"""Rows up to which weights are read for each row, which caches share. More rows pay for tiles of several."""
ANY_ROWS = 1 << 62
"""As many rows as there may be, where each has a matrix of its own."""
CHUNK = 256
"""Most numbers of a column in a chunk, where two blocks have no more."""
LONG_CHUNK_BYTES = 288
"""Bytes of a column up to which a chunk has twice the numbers, where a compute unit has few work-groups."""
FEW_GROUPS = 2
"""Work-groups of a unit up to which chunks are long: each waits for memory while few others compute."""
SLOTS = 2
"""Chunks that local memory holds: one is written while others read the one before."""
PIECES = (16, 8, 4)
"""Bytes that are copied at once; columns begin and end at multiples of them."""
PITCH = LANES + RUN_NUMBERS
"""Distance of the sums of two columns in local memory."""

_UINT32 = np.dtype(np.uint32)
_WORD = _UINT32.itemsize

OWN, LINE = LID % TEAM * RUN_NUMBERS, LID // TEAM
"""The work-item's first number of `LANES`, and its column."""
BLOCK = Name("b")
"""A block of a chunk."""


@dataclass(frozen=True)
class _Chunk:
    """Blocks of each column that are copied at once.

    Attributes:
        blocks: how many.
        piece: bytes that a work-item copies at once.
    """

    blocks: int
    piece: int


def _chunk(graph: Graph, one: MatmulAnchor, units: int) -> _Chunk | None:
    """Return the chunks of columns; None where columns are not whole blocks that begin at multiples of a piece.

    Args:
        graph: the graph.
        one: the product.
        units: compute units of the device.
    """
    found = block_format(graph, one.node.inputs[1])
    numbers, size = found.numbers, found.block_bytes
    lies = one.b.lies
    begins = (lies.offset, lies.record, one.b.columns.stride, one.inner, *lies.strides[: one.b.stack])
    if numbers % LANES or not one.inner or any(place % numbers for place in begins):
        return None
    apart = math.gcd(*(place // numbers * size for place in begins))
    count = one.inner // numbers
    in_panels = one.inner > RUN * LANES
    best: _Chunk | None = None
    most = max(2, CHUNK // numbers)
    if one.columns <= FEW_GROUPS * units * COLUMNS and 2 * most * size <= LONG_CHUNK_BYTES:
        most *= 2
    for blocks in range(1, most + 1):
        piece = next((each for each in PIECES if math.gcd(apart, blocks * size) % each == 0), None)
        whole = count % blocks == 0 and not (in_panels and RUN * LANES % (blocks * numbers))
        if whole and piece is not None and (best is None or (piece, blocks) > (best.piece, best.blocks)):
            best = _Chunk(blocks, piece)
    return best


@dataclass(frozen=True)
class _ChunkCopy:
    """A work-item's part of the copy of each chunk to local memory.

    Attributes:
        array: where it goes.
        place: there, in the first slot.
        slot: numbers of a slot.
        load: declares its value, of the chunk that begins at some k.
        exists: whether it is another one than those of other work-items.
    """

    array: str
    place: IndexLike
    slot: int
    load: Callable[[Scope, IndexLike], Var]
    exists: ConditionLike


class _StagedLowering:
    """Lowering of a region with such a product."""

    def __init__(self, graph: Graph, region: Region, capabilities: DeviceCapabilities) -> None:
        self.region = region
        self.native = capabilities.shuffles
        self.contraction = one = MatmulAnchor(graph, region)
        chunk = _chunk(graph, one, capabilities.units)
        assert chunk is not None
        self.chunk = chunk
        self.format = block_format(graph, one.node.inputs[1])
        root, _ = views_of(graph, one.node.inputs[1])
        (raw,) = graph.nodes[root].inputs
        self.words = one.arguments.get("input", _UINT32, raw)
        self.numbers = chunk.blocks * self.format.numbers
        self.slot_words = COLUMNS * chunk.blocks * self.format.block_bytes // _WORD

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows."""
        one = self.contraction
        scope = Scope(one.names, lanes=1)
        place = place_of_tile(scope, one, 1, COLUMNS)
        self._row(scope, place.row, place.column)
        arrays = (
            Array("right", _UINT32, 1, SLOTS * self.slot_words, local=True),
            Array("left", FLOAT32, 1, max(SLOTS * self.numbers, COLUMNS * PITCH), local=True),
        )
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (*arrays, For(TILE, GID, place.many, GSIZE, tuple(scope.statements))),
            work="matmul",
            work_group=GROUP,
            units=one.units,
            tile=(1, place.across),
        )

    def _row(self, scope: Scope, number: IndexLike, column: IndexLike) -> None:
        """Compute some columns of a row. Columns behind the last one repeat it."""
        one = self.contraction
        row = one.row(scope, number)
        copies = [*self._of_left(scope, row), *self._of_right(scope, row, column)]
        brought = [copy.load(scope, 0) for copy in copies]
        wide = scope.beside(RUN_NUMBERS)
        totals = zeros(one, wide, 1, 1)

        def add(inner: Scope, sums: list[list[Var]], start: IndexLike, stop: IndexLike) -> None:
            step = inner.inner()
            slot = step.narrow(K // self.numbers % SLOTS)
            for copy, var in zip(copies, brought, strict=True):
                put = PutItem(copy.array, slot * copy.slot + copy.place, var, vector=var.lanes > 1)
                step.add(put if copy.exists is True else If(copy.exists, (put,)))
            step.add(WorkGroupBarrier())
            following = step.inner(lanes=1)
            for copy, var in zip(copies, brought, strict=True):
                following.add(Assign(var, Splat(copy.load(following, K + self.numbers))))
            step.add(If(K + self.numbers < one.inner, tuple(following.statements)))
            block = step.inner()
            for place in range(0, self.format.numbers, LANES):
                self._multiply(block, sums[0][0], slot, place)
            step.add(For(BLOCK, 0, self.chunk.blocks, 1, tuple(block.statements), unroll=1))
            # Loops without a hint would be unrolled as far as the compiler likes.
            inner.add(For(K, start, stop, self.numbers, tuple(step.statements), unroll=ROLLED))

        sum_in_panels(one, wide, totals, add, length=RUN * LANES)
        scope.add(WorkGroupBarrier(), PutItem("left", LINE * PITCH + OWN, totals[0][0], vector=True))
        scope.add(WorkGroupBarrier())
        self._store(scope, row, column)
        scope.add(WorkGroupBarrier())

    # -- copies ---------------------------------------------------------------------------------------

    def _of_left(self, scope: Scope, row: Row) -> list[_ChunkCopy]:
        """Return the numbers of a chunk of the row that a work-item loads, or computes, for the others."""
        one = self.contraction
        base, stride = one.of_a(scope, row), one.a.columns.stride

        def copy(number: IndexLike, exists: ConditionLike) -> _ChunkCopy:
            at = scope.integer(base + number * stride)

            def load(inner: Scope, k: IndexLike) -> Var:
                return one.factor(inner, Load(one.a.argument, at + k * stride))

            return _ChunkCopy("left", number, self.numbers, load, exists)

        return [copy(*each) for each in _shared_out(scope, self.numbers)]

    def _of_right(self, scope: Scope, row: Row, column: IndexLike) -> list[_ChunkCopy]:
        """Return the pieces of a chunk of each column that a work-item copies."""
        one, words = self.contraction, self.chunk.piece // _WORD
        base, length = one.of_b(scope, row), self.slot_words // COLUMNS
        each = length // words

        def copy(number: IndexLike, exists: ConditionLike) -> _ChunkCopy:
            own = index_min(one.columns - 1, column + number // each)
            block = (base + own * one.b.columns.stride) // self.format.numbers
            at = scope.integer(block * self.format.block_bytes // _WORD + number % each * words)

            def load(inner: Scope, k: IndexLike) -> Var:
                place = at + k // self.numbers * length
                return inner.let(Load(self.words, place, aligned=words > 1), _UINT32, words)

            return _ChunkCopy("right", number * words, self.slot_words, load, exists)

        return [copy(*place) for place in _shared_out(scope, COLUMNS * each)]

    # -- sums -----------------------------------------------------------------------------------------

    def _multiply(self, scope: Scope, total: Var, slot: IndexLike, place: int) -> None:
        """Add the products of the work-item's numbers among `LANES` of a block from `place` on."""
        numbers, size = self.format.numbers, self.format.block_bytes
        block = slot * self.slot_words * _WORD + LINE * self.chunk.blocks * size + BLOCK * size
        right = scope.let(BlockRun("right", block, OWN + place, self.format, self.native), FLOAT32, RUN_NUMBERS)
        at = slot * self.numbers + BLOCK * numbers + OWN + place
        left = scope.let(ArrayItem("left", at, vector=True), FLOAT32, RUN_NUMBERS)
        scope.add(Assign(total, Splat(scope.let(MultiplyAdd(left, right, total), FLOAT32, RUN_NUMBERS))))

    def _store(self, outer: Scope, row: Row, column: IndexLike) -> None:
        """Add up the lanes of each column as a tree by halves, and store it."""
        one, scope = self.contraction, outer.inner(lanes=1)
        total = stored_sum(scope, "left", LID * PITCH, LANES)
        one.store(scope, row, scope.integer(column + LID), None, total)
        outer.add(If(all_of(LID < COLUMNS, column + LID < one.columns), tuple(scope.statements)))


def _shared_out(scope: Scope, many: int) -> Iterator[tuple[IndexLike, ConditionLike]]:
    """Yield the numbers below `many` that are a work-item's, and whether they are; some repeat the last one."""
    for first in range(0, many, GROUP):
        whole = first + GROUP <= many
        number = LID + first if whole else index_min(many - 1, LID + first)
        yield scope.narrow(number), True if whole else LID + first < many


def staged_matmul(task: LoweringTask) -> Kernel | None:
    """Return the kernel of a product with decoded numbers for few rows on a discrete GPU.

    Return None where numbers are in the host's memory and may begin anywhere, where columns are not whole blocks that
    begin at multiples of four bytes, and where chunks do not fit into local memory.
    """
    product, capabilities = MatmulAnchor(task.graph, task.region), task.style.capabilities
    if capabilities.host_memory or not product.is_computed(product.b):
        return None
    if _chunk(task.graph, product, capabilities.units) is None:
        return None
    kernel = _StagedLowering(task.graph, task.region, capabilities).lower(task.name)
    arrays = (one for one in kernel.body if isinstance(one, Array))
    fits = sum(one.size * one.dtype.itemsize for one in arrays) <= capabilities.local_bytes
    return kernel if fits else None
