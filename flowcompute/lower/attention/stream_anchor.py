"""Anchor of self-attention along the stream: keys and values are rows of its state, which each batch extends.

A kernel is launched twice. The first launch adds the keys and values of the batch to the state, the second one attends.
Where all records of a batch are one block, whoever attends with a head adds its keys before, in one launch.
Key 0 of a text is its first record, whose row may be gone: what a window does not see is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from flowcompute.elements.nn import SELF_ATTENTION
from flowcompute.elements.streams import COUNT, POSITION, SLOT
from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import (
    CHUNK,
    FIRST,
    Argument,
    ArrayNumber,
    ConditionLike,
    ConstantValue,
    For,
    If,
    IndexLike,
    Load,
    N,
    Name,
    SetInteger,
    Stmt,
    Store,
    Var,
    all_of,
    any_of,
    c_strides,
    equal,
    index_max,
    index_min,
    slots_of,
    storage,
)
from flowcompute.lower.anchor_point import Anchor, Axes, Operand, Row
from flowcompute.lower.attention.attention_anchor import AttentionAnchor
from flowcompute.lower.emit import Scope, loaded
from flowcompute.lower.form import LoweringTask
from flowcompute.spec import INT64

RECORD, LATER, END = Name("r0"), Name("r1"), Name("end")
"""A record of a block that may be the first one of a run, a later one, and the end of the run."""
MOST_HEADS = 64
"""Most heads of a block; others of the same keys are another block."""
COLUMN, HEAD = Name("c"), Name("h")
STAGES = 2
"""Launches: one adds, one attends."""


class TextRun(NamedTuple):
    """Records of a block that belong to one text: the first one, their end, and the position of the first one."""

    first: IndexLike
    stop: IndexLike
    position: IndexLike


class StreamAttentionAnchor(AttentionAnchor):
    """Facts about a region with self-attention along the stream.

    Attributes:
        new_k, new_v: keys and values of the batch.
        has_slots: whether several texts may be open at once.
        sharing: heads of the queries that share a head of the keys.
        group: those of them that are computed together.
        matrices: groups of heads in a record.
        k, v: keys and values in the state.
    """

    def __init__(self, graph: Graph, region: Region) -> None:
        assert region.anchor is not None
        node = graph.nodes[region.anchor]
        Anchor.__init__(self, graph, region, stack=(), height=node.spec.shape[0], column_axes=1, dtype=node.spec.dtype)
        self.q, self.new_k, self.new_v = (self.operand(i, 1, 1) for i in node.inputs[:3])
        self.mask = None
        self.queries, self.size = self.q.spec.shape
        kv_heads, self.columns = self.new_v.spec.shape
        self.sharing = self.queries // kv_heads
        self.group = max(n for n in range(1, MOST_HEADS + 1) if self.sharing % n == 0)
        self.matrices = self.queries // self.group
        # Queries of a block are counted record by record.
        self.q = replace(self.q, rows=Axes((2, self.group), (self.q.lies.record, self.q.rows.stride)))
        self.k, self.v = (self._kept(part, one) for part, one in enumerate((self.new_k, self.new_v)))
        self.causal, self.partial = True, False
        self.window: int | None = node.attrs["window"]
        self.scale: float = node.attrs["scale"]
        self.gate, self.result = 0, "mean"
        self.lowest = ConstantValue(float(np.finfo(self.dtype).min))
        self._at: tuple[Argument, IndexLike, int] | None = None
        self._column = 0
        self.has_slots = slots_of(node) > 1
        if len(node.inputs) > 3:
            lies = storage(graph, node.inputs[3], region.entered)
            spec = graph.nodes[node.inputs[3]].spec
            self._at = self.arguments.get("input", spec.dtype, lies.base), lies.offset, lies.record
            (self._column,) = lies.strides or (0,)
        if self.has_slots:
            self._base = self.arguments.get("state", INT64, node.id, 2)

    def _kept(self, part: int, new: Operand) -> Operand:
        """Describe the rows of the state that belong to one head of keys or values."""
        argument = self.arguments.get("state", self.dtype, self.node.id, part)
        groups, size = new.spec.shape
        lies = type(new.lies)(self.node.id, 0, groups * size, c_strides(new.spec.shape))
        return Operand(argument, new.spec, lies, Axes((1,), (groups * size,)), Axes((size,), (1,)), 1)

    def is_computed(self, operand: Operand) -> bool:
        """Check whether an operand is computed as it is loaded; the state never is."""
        return operand.argument.kind != "state" and super().is_computed(operand)

    def factor(self, scope: Scope, load: Load) -> Var:
        """Load numbers of an operand, or of the state; see `Anchor.factor`."""
        return loaded(scope, load) if load.argument.kind == "state" else super().factor(scope, load)

    @property
    def is_alone(self) -> bool:
        """True if no two groups of heads share keys, so that whoever attends with keys may be who adds them."""
        return self.group == self.sharing

    # -- records --------------------------------------------------------------------------------------

    def append(self, record: IndexLike, lanes: int, first: IndexLike, step: IndexLike) -> list[Stmt]:
        """Add keys and values of a record of the batch to the state: those of every `step`-th head from `first` on."""
        scope = Scope(self.names, lanes=lanes)
        row = scope.integer(self.state_row(record))
        for new, kept in ((self.new_k, self.k), (self.new_v, self.v)):
            groups, size = new.spec.shape
            inner = Scope(self.names, scope, lanes)
            at = inner.integer(new.lies.offset + record * new.lies.record + HEAD * new.rows.stride)
            to = inner.integer((row * groups + HEAD) * size)
            whole = size // lanes * lanes
            body = inner.inner()
            self._copy(body, new, kept, at, to, COLUMN, None)
            inner.add(For(COLUMN, 0, whole, lanes, tuple(body.statements)))
            if whole < size:
                self._copy(inner, new, kept, at, to, whole, size - whole)
            scope.add(For(HEAD, first, groups, step, tuple(inner.statements)))
        return scope.statements

    def _copy(
        self,
        scope: Scope,
        new: Operand,
        kept: Operand,
        at: IndexLike,
        to: IndexLike,
        column: IndexLike,
        count: int | None,
    ) -> None:
        stride = new.columns.stride
        together = self.together(new, scope.lanes)
        numbers = self.factor(scope, Load(new.argument, at + column * stride, stride, count, together=together))
        scope.add(Store(kept.argument, to + column, numbers, 1, count))

    def runs(self, scope: Scope, first: IndexLike, stop: IndexLike, each: Callable[[Scope, TextRun], None]) -> None:
        """Emit statements for each run of records from `first` to `stop` of the batch that belong to one text."""
        if self._at is None:
            each(scope, TextRun(first, stop, scope.integer(FIRST + first)))
            return
        begins = scope.inner()
        begins.add(SetInteger(END, stop))
        earlier = all_of(self._begins(LATER), LATER < END)
        begins.add(For(LATER, RECORD + 1, stop, 1, (If(earlier, (SetInteger(END, LATER, new=False),)),)))
        each(begins, TextRun(RECORD, END, begins.integer(self._position(RECORD))))
        is_first = any_of(equal(RECORD, first), self._begins(RECORD))
        scope.add(For(RECORD, first, stop, 1, (If(is_first, tuple(begins.statements)),)))

    def state_row(self, record: IndexLike) -> IndexLike:
        """Return the row of a record of the batch in the state."""
        if not self.has_slots:
            return CHUNK + record
        return ArrayNumber(self._base.name, self._place(record, SLOT)) + self._place(record, COUNT)

    def _begins(self, record: IndexLike) -> ConditionLike:
        """Check whether a record that is not the first one of its block begins a run."""
        is_first = equal(self._position(record), 0)
        if not self.has_slots:
            return is_first
        slot, before = self._place(record, SLOT), self._place(record - 1, SLOT)
        return any_of(is_first, slot < before, slot > before)

    def _position(self, record: IndexLike) -> IndexLike:
        return self._place(record, POSITION)

    def _place(self, record: IndexLike, column: int) -> IndexLike:
        assert self._at is not None
        argument, offset, stride = self._at
        at = offset + record * stride + column * self._column
        return ArrayNumber(argument.name, at, narrow=argument.dtype.itemsize < 8)

    def enter(self, scope: Scope, run: TextRun) -> None:
        """Turn to a run of records: what is asked for is that of its queries, counted record by record."""
        self.run = run
        # Negative where the first record of the text is gone.
        self.text = scope.integer(self.state_row(run.first) - run.position)

    def kept_base(self, scope: Scope, operand: Operand, matrix: IndexLike) -> IndexLike:
        """Declare the offset of key 0 of the text in the state."""
        return scope.integer(
            self.text * operand.lies.record + matrix * self.group // self.sharing * operand.spec.shape[1]
        )

    def query_base(self, matrix: IndexLike) -> IndexLike:
        """Return the offset of the first query of the run in q."""
        lies, head = self.q.lies, matrix * self.group
        return lies.offset + self.run.first * lies.record + head * self.q.rows.stride

    def row_of(self, scope: Scope, query: IndexLike, matrix: IndexLike) -> Row:
        """Declare the row of the result of a query of the run."""
        record = scope.integer(self.run.first + query // self.group)
        head = scope.integer(matrix * self.group + query % self.group)
        return Row(head, record, 0, head)

    # -- what a query sees ----------------------------------------------------------------------------

    def seen(self, scope: Scope, first: IndexLike, last: IndexLike) -> tuple[IndexLike, IndexLike]:
        """See `AttentionAnchor.seen`; queries are counted in the run."""
        begin: IndexLike = 0
        if self.window is not None:
            begin = scope.integer(index_max(0, self.run.position + first // self.group + (1 - self.window)))
        return begin, scope.integer(self.run.position + last // self.group + 1)


def blocks_of(records: int) -> IndexLike:
    """Return the blocks of so many records in a batch."""
    return (N + (records - 1)) // records


def block_end(first: IndexLike, records: int) -> IndexLike:
    """Return the end of a block of records of the batch."""
    return index_min(first + records, N)


def why_no_stream_attention(task: LoweringTask) -> Reason | None:
    """Return why a region is none around self-attention along the stream."""
    if task.anchor is not None and task.anchor.op is SELF_ATTENTION:
        return None
    return task.refuse("its anchor is no attention along the stream")
