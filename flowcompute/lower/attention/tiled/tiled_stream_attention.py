"""Self-attention along the stream on GPUs: a work-group takes a block of records of heads that share keys.

The records of a block that belong to one text share tiles of keys. The rest is that of `tiled_attention`.

Where all records of a launch are one block, a work-group adds the keys and values of its heads, and attends with them
behind a barrier. So few records take one launch. Where they are fewer still, a discrete GPU has a second kernel for
them, which loads more of a tile at once. One record has a kernel of its own where copies are asynchronous.
"""

from __future__ import annotations

from dataclasses import replace

from flowcompute.fuse import Reason
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    PHASE,
    WID,
    WSIZE,
    ConditionLike,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    N,
    Name,
    SetInteger,
    Stmt,
    Store,
    WorkGroupBarrier,
    choose,
    equal,
    unequal,
)
from flowcompute.ir.launches import by_records
from flowcompute.lower.anchor_point import Row
from flowcompute.lower.attention.attention_anchor import BLOCK_INDEX, QueryBlock
from flowcompute.lower.attention.stream_anchor import (
    HEAD,
    STAGES,
    StreamAttentionAnchor,
    TextRun,
    block_end,
    blocks_of,
    why_no_stream_attention,
)
from flowcompute.lower.attention.tiled.attention_tiling import KNOBS, Shape, few_shape
from flowcompute.lower.attention.tiled.record_attention import RecordAttentionLowering, RecordShape
from flowcompute.lower.attention.tiled.tiled_attention import TiledAttentionLowering
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.strategy import KernelKnobs

ADDED = Name("a")
"""A number of a head of the batch's keys or values, which is added to the state."""
FIRST_HEAD, HEAD_STEP = Name("first_head"), Name("head_step")
"""The first head whose keys and values a work-group adds, and from each to the next."""
FIRST_ADDED, ADDED_STEP = Name("first_added"), Name("added_step")
"""The first number of a head that a work-item adds, and from each to the next."""


class TiledStreamAttentionLowering(TiledAttentionLowering):
    """Lowering of a region with self-attention along the stream for a GPU."""

    one: StreamAttentionAnchor

    def __init__(self, one: StreamAttentionAnchor, style: KernelStyle, shape: Shape | None = None) -> None:
        super().__init__(one, style, shape)
        chosen = {} if shape else {"work_group": self.shape.group, "block_rows": self.shape.rows}
        self.knobs = KernelKnobs(**chosen)
        self.ragged = True
        self.records = self.shape.rows // one.group

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts records."""
        one, shape = self.one, self.shape
        scope = Scope(one.names, lanes=shape.keys)
        self._block(scope)
        attend = For(BLOCK_INDEX, GID, blocks_of(self.records) * one.matrices, GSIZE, tuple(scope.statements))
        append = tuple(self._append())
        return Kernel(
            name,
            one.region.name,
            one.arguments.ordered(),
            (*self._arrays(), If(unequal(PHASE, 1), append), If(PHASE > 0, (WorkGroupBarrier(), attend))),
            work="attend",
            work_group=shape.group,
            units=one.matrices,
            lanes=shape.keys,
            tile=(self.records, 1),
            stages=STAGES,
            at_once=self.records if one.is_alone else 0,
            knobs=self.knobs,
        )

    def _append(self) -> list[Stmt]:
        """Add keys and values to the state: all work-items those of all heads, or at once a work-group its own."""
        one, at_once, heads = self.one, equal(PHASE, STAGES), Scope(self.one.names, lanes=1)
        for new, kept in ((one.new_k, one.k), (one.new_v, one.v)):
            scope = heads.inner()
            (count, size), lies = new.spec.shape, new.lies
            record, within = scope.integer(ADDED // size), scope.integer(ADDED % size)
            at = lies.offset + record * lies.record + HEAD * new.rows.stride + within * new.columns.stride
            number = one.factor(scope, Load(new.argument, scope.integer(at)))
            scope.add(Store(kept.argument, (one.state_row(record) * count + HEAD) * size + within, number))
            heads.add(For(ADDED, FIRST_ADDED, N * size, ADDED_STEP, tuple(scope.statements)))
        return [
            SetInteger(FIRST_HEAD, choose(at_once, GID, 0)),
            SetInteger(HEAD_STEP, choose(at_once, GSIZE, 1)),
            SetInteger(FIRST_ADDED, choose(at_once, LID, WID)),
            SetInteger(ADDED_STEP, choose(at_once, self.shape.group, WSIZE)),
            For(HEAD, FIRST_HEAD, one.new_k.spec.shape[0], HEAD_STEP, tuple(heads.statements)),
        ]

    def _block(self, scope: Scope) -> None:
        self.matrix = scope.integer(BLOCK_INDEX % self.one.matrices)
        first = scope.integer(BLOCK_INDEX // self.one.matrices * self.records)
        self._places(scope)
        self.one.runs(scope, first, scope.integer(block_end(first, self.records)), self._run)

    def _run(self, scope: Scope, run: TextRun) -> None:
        """Compute the queries of records of one text."""
        self.one.enter(scope, run)
        last = scope.integer((run.stop - run.first) * self.one.group - 1)
        self.block = QueryBlock(run.first, self.matrix, 0, last)
        self._attend(scope)

    def _bases(self, scope: Scope) -> list[IndexLike]:
        one = self.one
        kept = [one.kept_base(scope, operand, self.matrix) for operand in (one.k, one.v)]
        return [scope.integer(one.query_base(self.matrix)), *kept]

    def _row(self, scope: Scope, own: IndexLike) -> Row:
        return self.one.row_of(scope, own, self.matrix)

    def _exists(self, query: IndexLike) -> ConditionLike:
        return query <= self.block.last


def _why_not(task: LoweringTask) -> Reason | None:
    return why_no_stream_attention(task) if task.is_gpu else task.refuse("work-items of a CPU share no local memory")


def _lower(task: LoweringTask) -> Kernel:
    kernel = TiledStreamAttentionLowering(StreamAttentionAnchor(task.graph, task.region), task.style).lower(task.name)
    capabilities = task.style.capabilities
    if capabilities.host_memory:
        return kernel
    one, alone = (StreamAttentionAnchor(task.graph, task.region) for _ in range(2))
    shape = few_shape(one, one.group) if one.is_alone else None
    few = None if shape is None else TiledStreamAttentionLowering(one, task.style, shape).lower(task.name)
    layout = RecordShape.of(alone, capabilities) if capabilities.tensor_cores else None
    if layout is not None:
        record = RecordAttentionLowering(alone, layout).lower(task.name)
        if few is None:
            return replace(kernel, few=record, few_rows=kernel.units)
        few = replace(few, few=record, few_rows=few.units)
    return kernel if few is None else replace(kernel, few=few, few_rows=few.at_once * one.matrices)


TILED_STREAM_ATTENTION = Form(
    name="tiled stream attention",
    accepts=_why_not,
    lower=_lower,
    geometry=by_records,
    knobs=KNOBS,
    family="attention",
)
"""Self-attention along the stream on GPUs."""
