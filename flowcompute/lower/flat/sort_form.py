"""Sorting kernels of GPUs: a work-group sorts a row in local memory by a bitonic network.

Batcher, "Sorting networks and their applications" (1968). Numbers move together with their places, and of equal ones
the earlier place comes first. No two pairs are equal then, so that the network, which is not stable, gives the one
stable order. It descends, as the comparison of argmax does; an ascending order is that of the row read backwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from flowcompute.elements.search import ARGSORT, ORDERING, SCATTER, SORT
from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph, Node
from flowcompute.ir import (
    GID,
    GSIZE,
    LID,
    Array,
    ArrayItem,
    ArrayNumber,
    Combine,
    ConstantValue,
    DeviceCapabilities,
    For,
    If,
    IndexLike,
    Integer,
    Kernel,
    Load,
    N,
    PutItem,
    Stmt,
    Var,
    WorkGroupBarrier,
    names,
    register_dtype,
    unequal,
)
from flowcompute.ir.launches import by_rows
from flowcompute.lower.anchor_point import Anchor, Row
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.spec import BOOL, FLOAT64, INT64, is_float

LONGEST_ROW = 2048
"""Numbers of the longest row that a work-group sorts."""

GROUP = 256
"""Work-items of the largest work-group."""

_ROW, _ITEM = names("r t")
_KEYS, _PLACES = "keys", "places"


def why_sorted_by_host(node: Node, capabilities: DeviceCapabilities) -> str | None:
    """Return the reason why the host sorts or searches; None where a kernel sorts."""
    assert node.op in ORDERING
    if node.op not in (SORT, ARGSORT):
        return "the host scatters" if node.op is SCATTER else "the host searches"
    shape, dtype = node.spec.shape, node.element.inputs[0].dtype
    if capabilities.code_shape != "gpu" or not node.spec.is_stream:
        return "the host sorts"
    if 0 in shape or dtype == BOOL or (dtype == FLOAT64 and not capabilities.float64):
        return f"no kernel sorts {dtype.name}{shape}"
    if shape[-1] > LONGEST_ROW or _local_bytes(shape[-1], dtype) > capabilities.local_bytes:
        return f"rows of more than {LONGEST_ROW} numbers, or of local memory, are sorted on the host"
    return None


def _padded(length: int) -> int:
    """Return the next power of two."""
    return 1 << (length - 1).bit_length()


def _local_bytes(length: int, dtype: np.dtype) -> int:
    return _padded(length) * (register_dtype(dtype).itemsize + INT64.itemsize)


class SortedRows(Anchor):
    """Facts about a sort along the last axis."""

    def __init__(self, graph: Graph, region: Region) -> None:
        assert region.anchor is not None
        node = graph.nodes[region.anchor]
        spec = graph.nodes[node.inputs[0]].spec
        dtype = register_dtype(spec.dtype)
        super().__init__(graph, region, stack=spec.shape[:-1], height=1, column_axes=1, dtype=dtype)
        self.length = spec.shape[-1]
        self.padded = _padded(self.length)
        self.group = max(32, min(GROUP, self.padded // 2))
        self.source = self.operand(node.inputs[0], 0, 1)

    def mirrored(self, place: IndexLike) -> IndexLike:
        """Return a place in the order in which the network sees a row."""
        return place if self.node.attrs["descending"] else self.length - 1 - place

    def lowest(self) -> float | int:
        """Return a number that none is below."""
        return -math.inf if is_float(self.dtype) else int(np.iinfo(self.dtype).min)

    # -- steps of a row -------------------------------------------------------------------------------

    def load(self, scope: Scope, row: Row) -> None:
        """Put the row into local memory, and what comes behind all of it up to a power of two."""
        base = scope.integer(self.matrix_base(self.source, row.record, row.matrix))
        each, inside, outside = scope.inner(), scope.inner(), scope.inner()
        stride = self.source.columns.stride
        number = self.factor(inside, Load(self.source.argument, base + self.mirrored(_ITEM) * stride, stride))
        inside.add(PutItem(_KEYS, _ITEM, number))
        outside.add(PutItem(_KEYS, _ITEM, outside.let(ConstantValue(self.lowest()), self.dtype)))
        if self.padded > self.length:
            each.add(If(_ITEM < self.length, tuple(inside.statements), tuple(outside.statements)))
        else:
            each.add(*inside.statements)
        each.add(PutItem(_PLACES, _ITEM, each.let(Integer(_ITEM), INT64)))
        scope.add(For(_ITEM, LID, self.padded, self.group, tuple(each.statements)), WorkGroupBarrier())

    def sort(self, scope: Scope) -> None:
        """Sort local memory: runs of two, of four, and so on, each merged from its ends to its middle."""
        for low, high in self._steps():
            each = scope.inner()
            at, other = each.integer(low), each.integer(high)
            pairs = [self._pair(each, place) for place in (at, other)]
            before = each.integer(ArrayNumber(_PLACES, at))
            each.add(PutItem(_PLACES, at, each.let(Combine("argmax", pairs[0], pairs[1], 1), INT64)))
            swap = (
                PutItem(_KEYS, at, pairs[1][0]),
                PutItem(_KEYS, other, pairs[0][0]),
                PutItem(_PLACES, other, pairs[0][1]),
            )
            each.add(If(unequal(ArrayNumber(_PLACES, at), before), swap))
            scope.add(For(_ITEM, LID, self.padded // 2, self.group, tuple(each.statements)), WorkGroupBarrier())

    def _steps(self) -> Iterator[tuple[IndexLike, IndexLike]]:
        """Yield the two places that comparison `_ITEM` of each step compares."""
        run = 2
        while run <= self.padded:
            half = run // 2
            begin, within = _ITEM // half * run, _ITEM % half
            yield begin + within, begin + (run - 1) - within
            while half > 1:
                half //= 2
                low = _ITEM // half * (2 * half) + _ITEM % half
                yield low, low + half
            run *= 2

    def _pair(self, scope: Scope, place: IndexLike) -> tuple[Var, Var]:
        return scope.let(ArrayItem(_KEYS, place), self.dtype), scope.let(ArrayItem(_PLACES, place), INT64)

    def put(self, scope: Scope, row: Row) -> None:
        """Store the row, or the places of its numbers, with the epilogue."""
        each = scope.inner()
        at = each.integer(self.mirrored(_ITEM))
        if self.node.op is SORT:
            total = each.let(ArrayItem(_KEYS, at), self.dtype)
        else:
            total = each.let(Integer(self.mirrored(ArrayNumber(_PLACES, at))), INT64)
            self.dtype = INT64
        self.store(each, row, _ITEM, None, total)
        scope.add(For(_ITEM, LID, self.length, self.group, tuple(each.statements)), WorkGroupBarrier())


def _why_not(task: LoweringTask) -> Reason | None:
    if task.anchor is not None and task.anchor.op in (SORT, ARGSORT):
        return None
    return task.refuse("its anchor sorts nothing")


def _lower(task: LoweringTask) -> Kernel:
    one = SortedRows(task.graph, task.region)
    scope = Scope(one.names, lanes=1)
    arrays: tuple[Stmt, ...] = (
        Array(_KEYS, one.dtype, 1, one.padded, local=True),
        Array(_PLACES, INT64, 1, one.padded, local=True),
    )
    row = one.row(scope, _ROW)
    one.load(scope, row)
    one.sort(scope)
    one.put(scope, row)
    body = (*arrays, For(_ROW, GID, N, GSIZE, tuple(scope.statements)))
    return Kernel(
        task.name,
        task.region.name,
        one.arguments.ordered(),
        body,
        "rows",
        work_group=one.group,
        units=one.units,
        lanes=1,
        notes={"padded": one.padded},
    )


SORTED_ROWS = Form(name="sort", accepts=_why_not, lower=_lower, geometry=by_rows)
"""Rows that the work-groups of a GPU sort in local memory."""
