"""Products of one row with numbers decoded from blocks, by rings of sub-groups, on GPUs with asynchronous copies.

Each sub-group of a work-group has columns of its own, and a ring of chunks of them in local memory, which asynchronous
copies fill with blocks as they lie (`cp.async` of the PTX ISA). Its work-items wait for each other alone, so that
sub-groups compute while others wait for memory. The whole row lies in local memory. Sums and their order are those of
`staged_matmul.py`, and so are all bits.

Scale and bias of a number are one multiply-add where the format allows it (`has_exact_bias`). That changes signs of
zeros, and infinite scales make NaN. Zeros change no sum but one that is zero. So a work-group whose results contain
zero or NaN computes these once more, with one operation for each step of the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from flowcompute.elements.quantized import has_exact_bias
from flowcompute.fuse import Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    LID,
    ROLLED,
    RUN_NUMBERS,
    Argument,
    Array,
    ArrayItem,
    AwaitCopies,
    ConstantValue,
    Copy,
    DeviceCapabilities,
    EndCopies,
    For,
    If,
    IndexLike,
    IsNan,
    IsSet,
    IsZero,
    Kernel,
    Load,
    Name,
    PutItem,
    SetInteger,
    Stmt,
    SubGroupBarrier,
    Var,
    WorkGroupBarrier,
    all_of,
    any_of,
    index_min,
    views_of,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import LoweringTask
from flowcompute.lower.joined import aliases, parameters
from flowcompute.lower.matmul.lane_sums import LANES, RUN, stored_sum
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, block_format
from flowcompute.lower.matmul.panel_sums import K, sum_in_panels, zeros
from flowcompute.lower.matmul.staged_matmul import (
    GROUP,
    PIECES,
    PITCH,
    WORD,
    StagedLowering,
    chunk_of,
    is_narrow,
    local_bytes,
)
from flowcompute.lower.matmul.tensor_cores import SUBGROUP
from flowcompute.lower.matmul.tiled_matmul import TilePosition
from flowcompute.spec import FLOAT32

STAGES, FEW_STAGES, LONG_STAGES = 4, 3, 2
"""Chunks of a ring: one is multiplied while the others are on their way. Fewer leave room for more work-groups.
Of long chunks two take as much memory as four others."""
TOGETHER = 8
"""Pieces of the row that a work-item loads before it stores the first."""
GROUPS = 2
"""Work-groups that the local memory of a unit holds at least: while one begins, another computes."""
RESERVED = 1024
"""Bytes of local memory that a work-group takes beside its arrays, on NVIDIA's GPUs of compute capability 8.0 on."""
MOST_GROUPS = 2048 // GROUP
"""Work-groups whose work-items a unit holds at most."""
FINAL = "final"
"""An array of one number: 0 where results of the work-group are computed once more."""
AGAIN = Name("again", narrow=True)
"""Flag that the work-item's result is computed once more."""


class _RingLowering(StagedLowering):
    """Lowering of a region with such a product, or of two that follow each other in the same work-groups.

    Attributes:
        sides: the products. Each has its own sub-groups of a work-group.
        stages: the chunks of a ring.
        again: whether results are computed once more.
    """

    def __init__(
        self, graph: Graph, regions: Sequence[Region], capabilities: DeviceCapabilities, stages: int, own: int | None
    ) -> None:
        super().__init__(graph, regions[0], 1, capabilities, long=_is_raised(graph, regions[0]), own=own)
        self.sides = [self.contraction, *(MatmulAnchor(graph, region) for region in regions[1:])]
        self.sources = [_blocks_of(graph, one) for one in self.sides]
        self.stages = stages
        self.raised = _is_raised(graph, regions[0])
        self.again = False

    @property
    def slots(self) -> int:
        """Chunks of all columns that local memory holds."""
        return self.stages

    @property
    def left_numbers(self) -> int:
        """Numbers of the row that local memory holds."""
        return self.contraction.inner

    @property
    def tile_columns(self) -> int:
        """Columns of each product that a work-group computes at once."""
        return self.columns // len(self.sides)

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows."""
        kernel = super().lower(name)
        own = [one.arguments.ordered() for one in self.sides]
        final = (Array(FINAL, FLOAT32, 1, 1, local=True),) if self.raised else ()
        read = [alias for place, one in enumerate(own) for alias in aliases(one, [a for b in own[:place] for a in b])]
        return replace(kernel, arguments=parameters(own), body=(*read, *final, *kernel.body))

    def tile(self, scope: Scope, place: TilePosition) -> None:
        """Compute some columns of a row. Those behind the last ones repeat these."""
        words = self.slot_words * SUBGROUP // GROUP
        ring = scope.narrow(LID // SUBGROUP * (self.stages * words))
        send = self._sender(scope, place, ring, words)
        column = self.line % (self.columns * SUBGROUP // GROUP)
        own = scope.narrow(ring * WORD + column * (self.chunk.blocks * self.format.block_bytes))
        if not self.raised:
            self._sum(scope, place, send, own)
            return
        self.again = False
        scope.add(SetInteger(AGAIN, 0))
        self._sum(scope, place, send, own)
        final = scope.beside(1).let(ArrayItem(FINAL, 0), FLOAT32)
        other = scope.inner()
        # What is seldom needed is not unrolled, so that it takes no registers.
        self.raised, self.again, self.unroll = False, True, ROLLED
        self._sum(other, place, self._sender(other, place, ring, words), own)
        self.raised, self.unroll = True, 1
        scope.add(If(IsZero(final.name), tuple(other.statements)))

    def add_up(self, outer: Scope, place: TilePosition, first: int) -> None:  # noqa: ARG002 - there is one row
        """Add up the lanes of the results as a tree by halves; store them, or note that they are computed once more."""
        scope, columns = outer.inner(lanes=1), self.tile_columns
        totals = [stored_sum(scope, "left", (LID + side * columns) * PITCH, LANES) for side in range(len(self.sides))]
        column = scope.integer(place.column + LID)
        stored = scope.inner()
        for one, total in zip(self.sides, totals, strict=True):
            one.store(stored, one.row(stored, place.row), column, None, total)
        if self.again:
            scope.add(If(IsSet(AGAIN), tuple(stored.statements)))
        elif self.raised:
            noted = scope.inner()
            self._put_final(noted, 0.0)
            doubtful = any_of(*(kind(total.name) for total in totals for kind in (IsZero, IsNan)))
            scope.add(If(doubtful, (SetInteger(AGAIN, 1, new=False), *noted.statements), tuple(stored.statements)))
        else:
            scope.add(*stored.statements)
        outer.add(If(all_of(LID < columns, place.column + LID < self.contraction.columns), tuple(scope.statements)))

    @staticmethod
    def _put_final(scope: Scope, value: float) -> None:
        scope.add(PutItem(FINAL, 0, scope.let(ConstantValue(value), FLOAT32)))

    def _sum(self, scope: Scope, place: TilePosition, send: Callable[[Scope, IndexLike], None], own: IndexLike) -> None:
        """Compute the results of a tile, and store them."""
        one, stages = self.contraction, self.stages
        words = self.slot_words * SUBGROUP // GROUP
        for stage in range(stages - 1):
            ahead = scope.inner(lanes=1)
            send(ahead, stage)
            scope.add(If(stage * self.numbers < one.inner, tuple(ahead.statements)), EndCopies())
        self._copy_row(scope, place)
        scope.add(WorkGroupBarrier())
        if self.raised:
            # All have read that of the tile before.
            first = scope.inner(lanes=1)
            self._put_final(first, 1.0)
            scope.add(If(LID < 1, tuple(first.statements)))
        wide = scope.beside(self.own)
        totals = zeros(one, wide, 1, 1)

        def add(inner: Scope, sums: list[list[Var]], start: IndexLike, stop: IndexLike) -> None:
            step = inner.inner()
            # What the copies of others brought is there, and all have read the stage that is filled next.
            step.add(AwaitCopies(stages - 2), SubGroupBarrier())
            ahead = step.inner(lanes=1)
            following = K + (stages - 1) * self.numbers
            send(ahead, following // self.numbers)
            step.add(If(following < one.inner, tuple(ahead.statements)), EndCopies())
            stage = step.narrow(K // self.numbers % stages)
            self.multiply_chunk(step, sums, stage * (words * WORD) + own, K, 1)
            inner.add(For(K, start, stop, self.numbers, tuple(step.statements), unroll=ROLLED))

        sum_in_panels(one, wide, totals, add, length=RUN * LANES)
        self.store_sums(scope, place, totals)

    def _sender(
        self, scope: Scope, place: TilePosition, ring: IndexLike, words: int
    ) -> Callable[[Scope, IndexLike], None]:
        """Return what starts the copies of a work-item's pieces of a chunk of some number, into the stage that it has.

        Args:
            scope: where places are declared.
            place: of the tile.
            ring: place of the first stage of the sub-group.
            words: of a stage.
        """
        one, piece = self.contraction, self.chunk.piece // WORD
        columns, groups = self.columns * SUBGROUP // GROUP, GROUP // SUBGROUP // len(self.sides)
        length = words // columns
        base = one.of_b(scope, one.row(scope, place.row))
        team = LID // SUBGROUP
        begin = place.column + (team % groups if len(self.sides) > 1 else team) * columns
        pieces: list[tuple[IndexLike, Name, bool]] = []
        for first in range(0, words // piece, SUBGROUP):
            whole = first + SUBGROUP <= words // piece
            number = scope.narrow(LID % SUBGROUP + first)
            there = number if whole else scope.narrow(index_min(words // piece - 1, number))
            column = index_min(one.columns - 1, begin + there * piece // length)
            block = (base + column * one.b.columns.stride) // self.format.numbers
            at = scope.integer(block * self.format.block_bytes // WORD + there * piece % length)
            assert isinstance(at, Name), "it depends on the work-item"
            pieces.append((number, at, whole))

        def copies(side: int, chunk: IndexLike) -> Iterator[Stmt]:
            apart = self.sides[side].b.lies.offset - one.b.lies.offset
            behind = apart // self.format.numbers * self.format.block_bytes // WORD
            for number, at, whole in pieces:
                to = ring + chunk % self.stages * words + number * piece
                copy = Copy("right", to, self.sources[side], at + behind, piece)
                yield copy if whole else If(number < words // piece, (copy,))

        def send(inner: Scope, chunk: IndexLike) -> None:
            chosen = tuple(copies(len(self.sides) - 1, chunk))
            for side in reversed(range(len(self.sides) - 1)):
                chosen = (If(LID < (side + 1) * groups * SUBGROUP, tuple(copies(side, chunk)), chosen),)
            inner.add(*chosen)
            # Places move on, so that no work-item multiplies for each piece.
            inner.add(*(SetInteger(at, at + length, new=False) for _, at, _ in pieces))

        return send

    def _copy_row(self, scope: Scope, place: TilePosition) -> None:
        """Bring the whole row to local memory. Work-items behind its end repeat its last numbers."""
        one = self.contraction
        together, stride, plain = self.left_run()
        count = 1 if self.again else TOGETHER
        row = one.of_a(scope, one.row(scope, place.row))
        for first in range(0, one.inner, count * GROUP * together):
            loaded: list[tuple[IndexLike, Var]] = []
            for begin in range(first, min(one.inner, first + count * GROUP * together), GROUP * together):
                whole = begin + GROUP * together <= one.inner
                number = LID * together + begin
                at = scope.narrow(number if whole else index_min(one.inner - together, number))
                load = Load(one.a.argument, row + at * stride, stride, aligned=plain)
                loaded.append((at, one.factor(scope.beside(together), load)))
            scope.add(*(PutItem("left", at, var, vector=together > 1) for at, var in loaded))


def _blocks_of(graph: Graph, one: MatmulAnchor) -> Argument:
    """Return the parameter of the blocks of a right factor, as words."""
    root, _ = views_of(graph, one.node.inputs[1])
    return one.arguments.get("input", np.dtype(np.uint32), graph.nodes[root].inputs[0])


def ring_matmul(task: LoweringTask) -> Kernel | None:
    """Return the kernel of a product of one row with decoded numbers, on a GPU with asynchronous copies.

    Where it follows another one in the same work-groups, `Kernel.both` is the kernel of the two.

    Return None where `staged_matmul` does, where pieces of columns have less than 16 bytes, and where rows are so long
    that a compute unit has no room for `GROUPS` of them.
    """
    kernel = _kernel(task, [task.region])
    if kernel is None or task.before is None or not _are_alike(task, task.before):
        return kernel
    return replace(kernel, both=_kernel(task, [task.before, task.region]))


def _are_alike(task: LoweringTask, before: Region) -> bool:
    """Check whether a product and the one that it follows have blocks that lie alike, and are decoded in few steps."""
    units = task.style.capabilities.units
    one, other = (MatmulAnchor(task.graph, region) for region in (before, task.region))
    first, second = (chunk_of(task.graph, each, 1, units, long=True) for each in (one, other))
    placed = replace(other.b, argument=one.b.argument, lies=replace(other.b.lies, base=one.b.lies.base, offset=0))
    same = placed == replace(one.b, lies=replace(one.b.lies, offset=0))
    return same and first == second and has_exact_bias(block_format(task.graph, other.node.inputs[1]))


def _kernel(task: LoweringTask, regions: Sequence[Region]) -> Kernel | None:
    """Return the kernel of one product, or of two whose results have one shape and whose blocks have one format."""
    graph, capabilities = task.graph, task.style.capabilities
    anchor = MatmulAnchor(graph, regions[0])
    if capabilities.host_memory or not anchor.is_computed(anchor.b) or not capabilities.tensor_cores:
        return None
    raised = _is_raised(graph, regions[0])
    chunk = chunk_of(graph, anchor, 1, capabilities.units, long=raised)
    if chunk is None or chunk.piece < max(PIECES):
        return None
    # Two products have as many columns as one of twice their size.
    is_long = len(regions) > 1 or (raised and not is_narrow(anchor, capabilities.units))
    own = RUN_NUMBERS if is_long else None
    stages = LONG_STAGES if is_long else STAGES
    kernel = _RingLowering(graph, regions, capabilities, stages, own).lower(task.name)
    if not is_long and not _begin_at_once(kernel, capabilities):
        fewer = _RingLowering(graph, regions, capabilities, FEW_STAGES, own).lower(task.name)
        kernel = fewer if _begin_at_once(fewer, capabilities) else kernel
    return kernel if GROUPS * local_bytes(kernel) <= capabilities.local_bytes else None


def _is_raised(graph: Graph, region: Region) -> bool:
    """Check whether scale and bias are one multiply-add. Numbers of a whole byte wait for memory anyway."""
    found = block_format(graph, MatmulAnchor(graph, region).node.inputs[1])
    return has_exact_bias(found) and found.block_bytes < found.numbers


def _begin_at_once(kernel: Kernel, capabilities: DeviceCapabilities) -> bool:
    """Check whether compute units have room for all work-groups of a launch over one row.

    A unit has `RESERVED` bytes more than one work-group may take. Registers are not counted, as the device's compiler
    shares them out.
    """
    room = (capabilities.local_bytes + RESERVED) // (local_bytes(kernel) + RESERVED)
    assert kernel.tile is not None
    return kernel.tile[1] <= capabilities.units * min(room, MOST_GROUPS)
