"""Products with numbers that are decoded from blocks, on discrete GPUs: blocks go through local memory as they lie.

The numbers of a column of B are neighbours in its blocks, as in `x @ w.T` of a file's weights. A work-group copies
chunks of its columns to local memory, in pieces of up to 16 bytes, whatever the size of a block. So reading from memory
does not depend on the format. Some work-items share a column: each decodes `RUN_NUMBERS` neighbouring numbers of every
`LANES`, which are four bytes of most formats, or `PAIR` where there are few columns. The next chunk is on its way in
registers meanwhile.

A single row has a kernel of its own. For several rows a work-item multiplies what it has decoded by up to `TILE_ROWS`
of them. The order of the sum is that of `dequantized_matmul.py`, so CPUs and GPUs add alike, and so do one row and
many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from flowcompute.fuse import Region
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
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
from flowcompute.lower.matmul.lane_sums import LANES, RUN, stored_sum
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, block_format
from flowcompute.lower.matmul.panel_sums import K, sum_in_panels, zeros
from flowcompute.lower.matmul.tensor_cores import SUBGROUP
from flowcompute.lower.matmul.tiled_matmul import TILE, TilePosition, place_of_tile
from flowcompute.spec import FLOAT32

GROUP = 128
"""Work-items in a work-group."""
PAIR = 2
"""Numbers of `LANES` that a work-item decodes where a unit has few work-groups: twice as many of them share columns."""
LINES = GROUP * RUN_NUMBERS // LANES
"""Columns that a work-group sums at once where a work-item decodes `RUN_NUMBERS` of them."""
WIDE = 2
"""Columns of a work-item, which load rows once, where there are several rows."""
TILE_ROWS = 8
"""Most rows whose sums a work-item keeps in registers."""
FEW_ROWS = 16
"""Rows up to which tiles of so many are faster than larger ones."""
CHUNK = 256
"""Most numbers of a column in a chunk, where two blocks have no more."""
LONG_CHUNK, LONG_CHUNK_BYTES = 512, 288
"""Numbers, or bytes, of a column in a chunk of one row at most, where a unit has few work-groups."""
FEW_GROUPS = 4
"""Work-groups of a unit up to which chunks are long: each waits for memory while few others compute."""
SLOTS = 2
"""Chunks that local memory holds: one is written while others read the one before."""
PIECES = (16, 8, 4)
"""Bytes that are copied at once; columns begin and end at multiples of them."""
PITCH = LANES + RUN_NUMBERS
"""Distance of the sums of two columns in local memory."""

_UINT32 = np.dtype(np.uint32)
WORD = _UINT32.itemsize
"""Bytes of a number of local memory that holds blocks."""

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


def chunk_of(graph: Graph, one: MatmulAnchor, rows: int, units: int, long: bool = False) -> _Chunk | None:
    """Return the chunks of columns; None where columns are not whole blocks that begin at multiples of a piece.

    Args:
        graph: the graph.
        one: the product.
        rows: of a tile.
        units: compute units of the device.
        long: whether chunks of one row are long even where a unit has many work-groups.
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
    is_long = 2 * most * numbers <= LONG_CHUNK or 2 * most * size <= LONG_CHUNK_BYTES
    if rows == 1 and (long or is_narrow(one, units)) and is_long:
        most *= 2
    for blocks in range(1, most + 1):
        piece = next((each for each in PIECES if math.gcd(apart, blocks * size) % each == 0), None)
        whole = count % blocks == 0 and not (in_panels and RUN * LANES % (blocks * numbers))
        if whole and piece is not None and (best is None or (piece, blocks) > (best.piece, best.blocks)):
            best = _Chunk(blocks, piece)
    return best


def is_narrow(one: MatmulAnchor, units: int) -> bool:
    """Check whether a compute unit has few work-groups of `LINES` columns."""
    return one.columns <= FEW_GROUPS * units * LINES


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


class StagedLowering:
    """Lowering of a region with such a product."""

    def __init__(
        self,
        graph: Graph,
        region: Region,
        rows: int,
        capabilities: DeviceCapabilities,
        long: bool = False,
        own: int | None = None,
    ) -> None:
        self.region = region
        self.rows = rows
        self.native = capabilities.shuffles
        self.raised = False
        self.unroll = 1
        self.contraction = one = MatmulAnchor(graph, region)
        chunk = chunk_of(graph, one, rows, capabilities.units, long)
        assert chunk is not None
        self.chunk = chunk
        self.format = block_format(graph, one.node.inputs[1])
        root, _ = views_of(graph, one.node.inputs[1])
        (raw,) = graph.nodes[root].inputs
        self.words = one.arguments.get("input", _UINT32, raw)
        self.wide = 1 if rows == 1 else WIDE
        self.own = own or (PAIR if rows == 1 and is_narrow(one, capabilities.units) else RUN_NUMBERS)
        team = LANES // self.own
        self.lines = GROUP // team
        # The work-item's first number of `LANES`, and its column. Neighbours read the same numbers of rows, so that
        # local memory answers half as many requests.
        across = SUBGROUP // team
        self.first = LID % SUBGROUP // across * self.own
        self.line = LID // SUBGROUP * across + LID % across
        self.columns = self.lines * self.wide
        self.stored = min(rows, GROUP // self.columns)
        self.numbers = chunk.blocks * self.format.numbers
        # Bytes that chunks begin at multiples of, and blocks whose places are known up to them.
        self.multiple = math.gcd(WORD, chunk.blocks * self.format.block_bytes)
        self.together = self.multiple // math.gcd(self.multiple, self.format.block_bytes)
        self.slot_words = self.columns * chunk.blocks * self.format.block_bytes // WORD

    @property
    def slots(self) -> int:
        """Chunks that local memory holds."""
        return SLOTS

    @property
    def left_numbers(self) -> int:
        """Numbers of rows that local memory holds."""
        return SLOTS * self.rows * self.numbers

    @property
    def tile_columns(self) -> int:
        """Columns of a result that a work-group computes at once."""
        return self.columns

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows."""
        one, rows = self.contraction, self.rows
        scope = Scope(one.names, lanes=1)
        place = place_of_tile(scope, one, rows, self.tile_columns)
        self.tile(scope, place)
        summed = self.stored * self.columns * PITCH
        arrays = (
            Array("right", _UINT32, 1, self.slots * self.slot_words, local=True),
            Array("left", FLOAT32, 1, max(self.left_numbers, summed), local=True),
        )
        return Kernel(
            name,
            self.region.name,
            one.arguments.ordered(),
            (*arrays, For(TILE, GID, place.many, GSIZE, tuple(scope.statements))),
            work="matmul",
            work_group=GROUP,
            units=one.units,
            tile=(rows, place.across),
        )

    def tile(self, scope: Scope, place: TilePosition) -> None:
        """Compute some columns of some rows. Those behind the last ones repeat these."""
        one = self.contraction
        copies = [*self._of_left(scope, place), *self._of_right(scope, one.row(scope, place.row), place.column)]
        brought = [copy.load(scope, 0) for copy in copies]
        wide = scope.beside(self.own)
        totals = zeros(one, wide, self.rows, self.wide)

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
            begin = slot * self.slot_words * WORD + self.line * self.chunk.blocks * self.format.block_bytes
            self.multiply_chunk(step, sums, begin, slot * (self.rows * self.numbers), place.until - place.row)
            # Loops without a hint would be unrolled as far as the compiler likes.
            inner.add(For(K, start, stop, self.numbers, tuple(step.statements), unroll=ROLLED))

        sum_in_panels(one, wide, totals, add, length=RUN * LANES)
        self.store_sums(scope, place, totals)

    # -- copies ---------------------------------------------------------------------------------------

    def left_run(self) -> tuple[int, int, bool]:
        """Return how many numbers of a row are loaded at once, their distance, and whether they lie in one vector."""
        one = self.contraction
        lies, stride = one.a.lies, one.a.columns.stride
        begins = (lies.offset, lies.record, one.a.rows.stride * (one.height > 1), *lies.strides[: one.a.stack])
        plain = stride == 1 and not one.is_computed(one.a) and all(each % RUN_NUMBERS == 0 for each in begins)
        return RUN_NUMBERS if plain else 1, stride, plain

    def _of_left(self, scope: Scope, place: TilePosition) -> list[_ChunkCopy]:
        """Return the numbers of a chunk of the rows that a work-item loads, or computes, for the others."""
        one, numbers = self.contraction, self.numbers
        together, stride, plain = self.left_run()

        def copy(run: IndexLike, exists: ConditionLike) -> _ChunkCopy:
            number = scope.narrow(run * together)
            row: IndexLike = place.row
            if self.rows > 1:
                row = scope.integer(index_min(place.until - 1, place.row + number // numbers))
            within = number % numbers if self.rows > 1 else number
            at = scope.integer(one.of_a(scope, one.row(scope, row)) + within * stride)

            def load(inner: Scope, k: IndexLike) -> Var:
                return one.factor(inner.beside(together), Load(one.a.argument, at + k * stride, stride, aligned=plain))

            return _ChunkCopy("left", number, self.rows * numbers, load, exists)

        return [copy(*each) for each in _shared_out(scope, self.rows * numbers // together)]

    def _of_right(self, scope: Scope, row: Row, column: IndexLike) -> list[_ChunkCopy]:
        """Return the pieces of a chunk of each column that a work-item copies."""
        one, words = self.contraction, self.chunk.piece // WORD
        base, length = one.of_b(scope, row), self.slot_words // self.columns
        each = length // words

        def copy(number: IndexLike, exists: ConditionLike) -> _ChunkCopy:
            own = index_min(one.columns - 1, column + number // each)
            block = (base + own * one.b.columns.stride) // self.format.numbers
            at = scope.integer(block * self.format.block_bytes // WORD + number % each * words)

            def load(inner: Scope, k: IndexLike) -> Var:
                place = at + k // self.numbers * length
                return inner.let(Load(self.words, place, aligned=words > 1), _UINT32, words)

            return _ChunkCopy("right", number * words, self.slot_words, load, exists)

        return [copy(*place) for place in _shared_out(scope, self.columns * each)]

    # -- sums -----------------------------------------------------------------------------------------

    def multiply_chunk(
        self, scope: Scope, sums: list[list[Var]], right: IndexLike, left: IndexLike, rows: IndexLike
    ) -> None:
        """Add the products of a chunk to the sums of rows and columns of the work-item.

        Args:
            scope: where the statements go.
            sums: one for each row and column.
            right: place of the chunk of the work-item's first column in local memory, in bytes.
            left: place of the numbers of the first row.
            rows: that exist.
        """
        block = scope.inner()
        for number, first in product(range(self.together), range(0, self.format.numbers, LANES)):
            self._multiply(block, sums, right, left, number, first, rows)
        scope.add(For(BLOCK, 0, self.chunk.blocks, self.together, tuple(block.statements), unroll=self.unroll))

    def _multiply(
        self,
        scope: Scope,
        sums: list[list[Var]],
        right: IndexLike,
        left: IndexLike,
        number: int,
        first: int,
        rows: IndexLike,
    ) -> None:
        """Add the products of the work-item's numbers among `LANES` of a block to the sums of rows and columns.

        Args:
            scope: where the statements go, inside of a loop over `BLOCK`.
            sums, right, left: see `multiply_chunk`.
            number: of the block behind `BLOCK`.
            first: of the numbers.
            rows: that exist. Others take no time, in steps of powers of two.
        """
        size = self.format.block_bytes
        decoded = []
        for column in range(self.wide):
            line = right + column * self.lines * self.chunk.blocks * size
            run = BlockRun(
                lanes=self.own,
                array="right",
                block=line + BLOCK * size + number * size,
                known=number * size % self.multiple,
                multiple=self.multiple,
                place=self.first,
                begin=first,
                span=LANES,
                blocks=self.format,
                native=self.native,
                raised=self.raised,
            )
            decoded.append(scope.let(run, FLOAT32, self.own))
        at = left + BLOCK * self.format.numbers + self.first
        begin, end = 0, min(2, self.rows)
        while begin < self.rows:
            some = scope.inner()
            for row in range(begin, end):
                place = at + (row * self.numbers + number * self.format.numbers + first)
                factor = some.let(ArrayItem("left", place, vector=True), FLOAT32, self.own)
                for total, numbers in zip(sums[row], decoded, strict=True):
                    made = some.let(MultiplyAdd(factor, numbers, total), FLOAT32, self.own)
                    some.add(Assign(total, Splat(made)))
            scope.add(*([If(begin < rows, tuple(some.statements))] if begin else some.statements))
            begin, end = end, min(2 * end, self.rows)

    def store_sums(self, scope: Scope, place: TilePosition, totals: list[list[Var]]) -> None:
        """Store the results of the tile, whose lanes `totals` has, by way of the memory of `left`."""
        for first in range(0, self.rows, self.stored):
            scope.add(WorkGroupBarrier())
            for row, column in product(range(self.stored), range(self.wide)):
                at = (row * self.columns + column * self.lines + self.line) * PITCH + self.first
                scope.add(PutItem("left", at, totals[first + row][column], vector=True))
            scope.add(WorkGroupBarrier())
            self.add_up(scope, place, first)
        scope.add(WorkGroupBarrier())

    def add_up(self, outer: Scope, place: TilePosition, first: int) -> None:
        """Add up the lanes of the results of some rows from `first` on as a tree by halves, and store them."""
        one, scope = self.contraction, outer.inner(lanes=1)
        own = LID % self.columns if self.stored > 1 else LID
        exists: list[ConditionLike] = [LID < self.stored * self.columns] if self.stored * self.columns < GROUP else []
        number: IndexLike = place.row
        if self.rows > 1:
            number = scope.integer(place.row + (first + LID // self.columns))
            exists.append(place.row + (first + LID // self.columns) < place.until)
        total = stored_sum(scope, "left", LID * PITCH, LANES)
        one.store(scope, one.row(scope, number), scope.integer(place.column + own), None, total)
        outer.add(If(all_of(*exists, place.column + own < one.columns), tuple(scope.statements)))


def _shared_out(scope: Scope, many: int) -> Iterator[tuple[IndexLike, ConditionLike]]:
    """Yield the numbers below `many` that are a work-item's, and whether they are; some repeat the last one."""
    for first in range(0, many, GROUP):
        whole = first + GROUP <= many
        number = LID + first if whole else index_min(many - 1, LID + first)
        yield scope.narrow(number), True if whole else LID + first < many


def staged_matmul(task: LoweringTask, rows: int) -> Kernel | None:
    """Return the kernel of a product with decoded numbers for few rows on a discrete GPU, in tiles of some rows.

    Return None where numbers are in the host's memory and may begin anywhere, where columns are not whole blocks that
    begin at multiples of four bytes, and where chunks do not fit into local memory.
    """
    anchor, capabilities = MatmulAnchor(task.graph, task.region), task.style.capabilities
    if capabilities.host_memory or not anchor.is_computed(anchor.b):
        return None
    if chunk_of(task.graph, anchor, rows, capabilities.units) is None:
        return None
    kernel = StagedLowering(task.graph, task.region, rows, capabilities).lower(task.name)
    return kernel if local_bytes(kernel) <= capabilities.local_bytes else None


def local_bytes(kernel: Kernel) -> int:
    """Return the bytes of the local arrays of a kernel of this file, or of `ring_matmul.py`."""
    return sum(one.size * one.dtype.itemsize for one in kernel.body if isinstance(one, Array))
