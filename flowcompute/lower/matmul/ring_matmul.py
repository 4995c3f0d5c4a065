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

from collections.abc import Callable
from dataclasses import replace

from flowcompute.elements.quantized import has_exact_bias
from flowcompute.fuse import Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    LID,
    ROLLED,
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
    SubGroupBarrier,
    Var,
    WorkGroupBarrier,
    any_of,
    index_min,
)
from flowcompute.lower.anchor_point import Row
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import LoweringTask
from flowcompute.lower.matmul.lane_sums import LANES, RUN
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, block_format
from flowcompute.lower.matmul.panel_sums import K, sum_in_panels, zeros
from flowcompute.lower.matmul.staged_matmul import (
    GROUP,
    PIECES,
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
    """Lowering of a region with such a product.

    Attributes:
        stages: the chunks of a ring.
        again: whether results are computed once more.
    """

    def __init__(self, graph: Graph, region: Region, capabilities: DeviceCapabilities, stages: int) -> None:
        super().__init__(graph, region, 1, capabilities, long=_is_raised(graph, region))
        self.stages = stages
        self.raised = _is_raised(graph, region)
        self.again = False

    @property
    def slots(self) -> int:
        """Chunks of all columns that local memory holds."""
        return self.stages

    @property
    def left_numbers(self) -> int:
        """Numbers of the row that local memory holds."""
        return self.contraction.inner

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts rows."""
        kernel = super().lower(name)
        return replace(kernel, body=(Array(FINAL, FLOAT32, 1, 1, local=True), *kernel.body)) if self.raised else kernel

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
        self._sum(other, place, send, own)
        self.raised, self.unroll = True, 1
        scope.add(If(IsZero(final.name), tuple(other.statements)))

    def store(self, scope: Scope, row: Row, column: IndexLike, total: Var) -> None:
        """Store a result, or note that it is computed once more."""
        stored = scope.inner()
        super().store(stored, row, column, total)
        if self.again:
            scope.add(If(IsSet(AGAIN), tuple(stored.statements)))
        elif self.raised:
            noted = scope.inner()
            self._put_final(noted, 0.0)
            doubtful = any_of(IsZero(total.name), IsNan(total.name))
            scope.add(If(doubtful, (SetInteger(AGAIN, 1, new=False), *noted.statements), tuple(stored.statements)))
        else:
            scope.add(*stored.statements)

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

        def send(inner: Scope, chunk: IndexLike) -> None:
            for number, at, whole in pieces:
                to = ring + chunk % self.stages * words + number * piece
                copy = Copy("right", to, self.words, at + chunk * length, piece)
                inner.add(copy if whole else If(number < words // piece, (copy,)))

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


def ring_matmul(task: LoweringTask) -> Kernel | None:
    """Return the kernel of a product of one row with decoded numbers, on a GPU with asynchronous copies.

    Return None where `staged_matmul` does, where pieces of columns have less than 16 bytes, and where rows are so long
    that a compute unit has no room for `GROUPS` of them.
    """
    anchor, capabilities = MatmulAnchor(task.graph, task.region), task.style.capabilities
    if capabilities.host_memory or not anchor.is_computed(anchor.b) or not capabilities.tensor_cores:
        return None
    raised = _is_raised(task.graph, task.region)
    chunk = chunk_of(task.graph, anchor, 1, capabilities.units, long=raised)
    if chunk is None or chunk.piece < max(PIECES):
        return None
    is_long = raised and not is_narrow(anchor, capabilities.units)
    stages = LONG_STAGES if is_long else STAGES
    kernel = _RingLowering(task.graph, task.region, capabilities, stages).lower(task.name)
    if not is_long and not _begin_at_once(kernel, capabilities):
        fewer = _RingLowering(task.graph, task.region, capabilities, FEW_STAGES).lower(task.name)
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
