"""Self-attention along the stream on CPUs: a work-item takes a block of records of one head of the keys.

The records of a block that belong to one text share tiles of keys. So do all heads of the queries that belong to that
head. The rest is that of `cpu_attention`.
"""

from __future__ import annotations

from flowcompute.fuse import Reason
from flowcompute.ir import (
    GID,
    GSIZE,
    PHASE,
    For,
    If,
    IndexLike,
    Kernel,
    N,
    Name,
    SetInteger,
    Stmt,
    choose,
    equal,
    index_min,
    unequal,
)
from flowcompute.ir.launches import by_records, dealt
from flowcompute.lower.anchor_point import Row
from flowcompute.lower.attention.attention_anchor import BLOCK_INDEX, QueryBlock
from flowcompute.lower.attention.cpu_attention import KNOBS, QUERY, AttentionLowering
from flowcompute.lower.attention.stream_anchor import (
    STAGES,
    StreamAttentionAnchor,
    TextRun,
    block_end,
    blocks_of,
    why_no_stream_attention,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask

GROUP = Name("group")
"""Number of a work-item. Later blocks have more keys, so those of each thread are apart."""
ADDED = Name("a")
"""A record whose key and value are added to the state."""
FIRST_HEAD, HEAD_STEP = Name("first_head"), Name("head_step")
"""The first head whose keys and values a work-item adds, and from each to the next."""


class StreamAttentionLowering(AttentionLowering):
    """Lowering of a region with self-attention along the stream for a CPU."""

    one: StreamAttentionAnchor

    def _sizes(self, together: int, rows: int) -> tuple[int, int]:
        """See `AttentionLowering`; a block has all queries of some records."""
        self.records = max(1, rows // self.one.group)
        return together, -(-self.records * self.one.group // together) * together

    def lower(self, name: str) -> Kernel:
        """Return the kernel; its work counts records."""
        one = self.one
        scope = Scope(one.names, lanes=self.lanes)
        self._block(scope)
        append = tuple(self._append())
        attend = For(BLOCK_INDEX, GROUP, blocks_of(self.records) * one.matrices, GSIZE, tuple(scope.statements))
        return Kernel(
            name,
            one.region.name,
            one.arguments.ordered(),
            (
                SetInteger(GROUP, dealt(GID, GSIZE)),
                *self._arrays(),
                If(unequal(PHASE, 1), append),
                If(PHASE > 0, (attend,)),
            ),
            work="attend",
            units=one.matrices,
            lanes=self.lanes,
            tile=(self.records, 1),
            stages=STAGES,
            at_once=self.records if one.is_alone else 0,
            knobs=self.knobs,
        )

    def _append(self) -> list[Stmt]:
        """Add keys and values to the state: all of some records, or at once those that it attends with."""
        one = self.one
        at_once = equal(PHASE, STAGES)
        steps = [
            SetInteger(FIRST_HEAD, choose(at_once, GROUP, 0)),
            SetInteger(HEAD_STEP, choose(at_once, GSIZE, 1)),
        ]
        records = one.append(ADDED, self.lanes, FIRST_HEAD, HEAD_STEP)
        return [*steps, For(ADDED, choose(at_once, 0, GROUP), N, choose(at_once, 1, GSIZE), tuple(records))]

    def _block(self, scope: Scope) -> None:
        self.matrix = scope.integer(BLOCK_INDEX % self.one.matrices)
        first = scope.integer(BLOCK_INDEX // self.one.matrices * self.records)
        self.one.runs(scope, first, scope.integer(block_end(first, self.records)), self._run)

    def _run(self, scope: Scope, run: TextRun) -> None:
        """Compute the queries of records of one text."""
        one = self.one
        one.enter(scope, run)
        last = scope.integer((run.stop - run.first) * one.group - 1)
        self.block = QueryBlock(run.first, self.matrix, 0, last)
        self._attend(scope)

    def _bases(self, scope: Scope) -> list[IndexLike]:
        return [self.one.kept_base(scope, operand, self.matrix) for operand in (self.one.k, self.one.v)]

    def _begin(self, scope: Scope) -> list[Stmt]:
        """Store scaled queries and initial sums; repeat the last query up to the end of its group."""
        one, last = self.one, self.block.last
        stop = scope.integer((last + self.together) // self.together * self.together)

        def query(body: Scope) -> IndexLike:
            return body.integer(one.query_base(self.matrix) + one.q.rows.offset(body.integer(index_min(QUERY, last))))

        return self._begin_queries(scope, query, stop)

    def _row(self, scope: Scope) -> Row:
        return self.one.row_of(scope, QUERY, self.matrix)


def _why_not(task: LoweringTask) -> Reason | None:
    return task.refuse("a work-item of a GPU has no such caches") if task.is_gpu else why_no_stream_attention(task)


def _lower(task: LoweringTask) -> Kernel:
    return StreamAttentionLowering(StreamAttentionAnchor(task.graph, task.region), task.style).lower(task.name)


CPU_STREAM_ATTENTION = Form(
    name="cpu stream attention", accepts=_why_not, lower=_lower, geometry=by_records, knobs=KNOBS, family="attention"
)
"""Self-attention along the stream on CPUs."""
