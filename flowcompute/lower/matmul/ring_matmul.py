"""Products of one row with numbers decoded from blocks, by rings of sub-groups, on GPUs with asynchronous copies.

Each sub-group of a work-group has columns of its own, and a ring of chunks of them in local memory, which asynchronous
copies fill with blocks as they lie (`cp.async` of the PTX ISA). Its work-items wait for each other alone, so that
sub-groups compute while others wait for memory. The whole row lies in local memory. Sums and their order are those of
`staged_matmul.py`, and so are all bits.
"""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.fuse import Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    LID,
    ROLLED,
    AwaitCopies,
    Copy,
    DeviceCapabilities,
    EndCopies,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    PutItem,
    SubGroupBarrier,
    Var,
    WorkGroupBarrier,
    index_min,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import LoweringTask
from flowcompute.lower.matmul.lane_sums import LANES, RUN
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor
from flowcompute.lower.matmul.panel_sums import K, sum_in_panels, zeros
from flowcompute.lower.matmul.staged_matmul import GROUP, PIECES, WORD, StagedLowering, chunk_of, local_bytes
from flowcompute.lower.matmul.tensor_cores import SUBGROUP
from flowcompute.lower.matmul.tiled_matmul import TilePosition

STAGES, FEW_STAGES = 4, 3
"""Chunks of a ring: one is multiplied while the others are on their way. Fewer leave room for more work-groups."""
TOGETHER = 8
"""Pieces of the row that a work-item loads before it stores the first."""
GROUPS = 2
"""Work-groups that the local memory of a unit holds at least: while one begins, another computes."""
RESERVED = 1024
"""Bytes of local memory that a work-group takes beside its arrays, on NVIDIA's GPUs of compute capability 8.0 on."""
MOST_GROUPS = 2048 // GROUP
"""Work-groups whose work-items a unit holds at most."""


class _RingLowering(StagedLowering):
    """Lowering of a region with such a product.

    Attributes:
        stages: the chunks of a ring.
    """

    def __init__(self, graph: Graph, region: Region, capabilities: DeviceCapabilities, stages: int) -> None:
        super().__init__(graph, region, 1, capabilities)
        self.stages = stages

    @property
    def slots(self) -> int:
        """Chunks of all columns that local memory holds."""
        return self.stages

    @property
    def left_numbers(self) -> int:
        """Numbers of the row that local memory holds."""
        return self.contraction.inner

    def tile(self, scope: Scope, place: TilePosition) -> None:
        """Compute some columns of a row. Those behind the last ones repeat these."""
        one, chunk, stages = self.contraction, self.chunk, self.stages
        words = self.slot_words * SUBGROUP // GROUP
        ring = scope.narrow(LID // SUBGROUP * (stages * words))
        send = self._sender(scope, place, ring, words)
        for stage in range(stages - 1):
            ahead = scope.inner(lanes=1)
            send(ahead, stage * self.numbers)
            scope.add(If(stage * self.numbers < one.inner, tuple(ahead.statements)), EndCopies())
        self._copy_row(scope, place)
        scope.add(WorkGroupBarrier())
        own = scope.narrow(LID % SUBGROUP // (LANES // self.own) * (chunk.blocks * self.format.block_bytes))
        wide = scope.beside(self.own)
        totals = zeros(one, wide, 1, 1)

        def add(inner: Scope, sums: list[list[Var]], start: IndexLike, stop: IndexLike) -> None:
            step = inner.inner()
            # What the copies of others brought is there, and all have read the stage that is filled next.
            step.add(AwaitCopies(stages - 2), SubGroupBarrier())
            ahead = step.inner(lanes=1)
            following = K + (stages - 1) * self.numbers
            send(ahead, following)
            step.add(If(following < one.inner, tuple(ahead.statements)), EndCopies())
            stage = step.narrow(K // self.numbers % stages)
            self.multiply_chunk(step, sums, (ring + stage * words) * WORD + own, K, 1)
            inner.add(For(K, start, stop, self.numbers, tuple(step.statements), unroll=ROLLED))

        sum_in_panels(one, wide, totals, add, length=RUN * LANES)
        self.store_sums(scope, place, totals)

    def _sender(
        self, scope: Scope, place: TilePosition, ring: IndexLike, words: int
    ) -> Callable[[Scope, IndexLike], None]:
        """Return what starts the copies of a work-item's pieces of the chunk at some k, into the stage that it has.

        Args:
            scope: where places are declared.
            place: of the tile.
            ring: place of the first stage of the sub-group.
            words: of a stage.
        """
        one, piece = self.contraction, self.chunk.piece // WORD
        columns = self.columns * SUBGROUP // GROUP
        length = words // columns
        base = one.of_b(scope, one.row(scope, place.row))
        begin = place.column + LID // SUBGROUP * columns
        pieces: list[tuple[IndexLike, IndexLike, bool]] = []
        for first in range(0, words // piece, SUBGROUP):
            whole = first + SUBGROUP <= words // piece
            number = scope.narrow(LID % SUBGROUP + first)
            there = number if whole else scope.narrow(index_min(words // piece - 1, number))
            column = index_min(one.columns - 1, begin + there * piece // length)
            block = (base + column * one.b.columns.stride) // self.format.numbers
            at = scope.integer(block * self.format.block_bytes // WORD + there * piece % length)
            pieces.append((number, at, whole))

        def send(inner: Scope, k: IndexLike) -> None:
            chunk = k // self.numbers
            for number, at, whole in pieces:
                to = ring + chunk % self.stages * words + number * piece
                copy = Copy("right", to, self.words, at + chunk * length, piece)
                inner.add(copy if whole else If(number < words // piece, (copy,)))

        return send

    def _copy_row(self, scope: Scope, place: TilePosition) -> None:
        """Bring the whole row to local memory. Work-items behind its end repeat its last numbers."""
        one = self.contraction
        together, stride, plain = self.left_run()
        row = one.of_a(scope, one.row(scope, place.row))
        for first in range(0, one.inner, TOGETHER * GROUP * together):
            loaded: list[tuple[IndexLike, Var]] = []
            for begin in range(first, min(one.inner, first + TOGETHER * GROUP * together), GROUP * together):
                whole = begin + GROUP * together <= one.inner
                number = LID * together + begin
                at = scope.narrow(number if whole else index_min(one.inner - together, number))
                load = Load(one.a.argument, row + at * stride, stride, aligned=plain)
                loaded.append((at, one.factor(scope.beside(together), load)))
            scope.add(*(PutItem("left", at, var, vector=together > 1) for at, var in loaded))


def ring_matmul(task: LoweringTask) -> Kernel | None:
    """Return the kernel of a product of one row with decoded numbers, on a GPU with asynchronous copies.

    Return None where `staged_matmul` does, where pieces of columns have less than 16 bytes, and where rows are so long
    that a compute unit has no room for `GROUPS` of them.
    """
    anchor, capabilities = MatmulAnchor(task.graph, task.region), task.style.capabilities
    if capabilities.host_memory or not anchor.is_computed(anchor.b) or not capabilities.tensor_cores:
        return None
    chunk = chunk_of(task.graph, anchor, 1, capabilities.units)
    if chunk is None or chunk.piece < max(PIECES):
        return None
    kernel = _RingLowering(task.graph, task.region, capabilities, STAGES).lower(task.name)
    if not _begin_at_once(kernel, capabilities):
        fewer = _RingLowering(task.graph, task.region, capabilities, FEW_STAGES).lower(task.name)
        kernel = fewer if _begin_at_once(fewer, capabilities) else kernel
    return kernel if GROUPS * local_bytes(kernel) <= capabilities.local_bytes else None


def _begin_at_once(kernel: Kernel, capabilities: DeviceCapabilities) -> bool:
    """Check whether compute units have room for all work-groups of a launch over one row.

    A unit has `RESERVED` bytes more than one work-group may take. Registers are not counted, as the device's compiler
    shares them out.
    """
    room = (capabilities.local_bytes + RESERVED) // (local_bytes(kernel) + RESERVED)
    assert kernel.tile is not None
    return kernel.tile[1] <= capabilities.units * min(room, MOST_GROUPS)
