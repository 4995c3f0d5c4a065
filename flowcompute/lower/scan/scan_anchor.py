"""What kernels of scans have in common: numbers of a region around a scan, and the order's sizes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowcompute.elements import Kind
from flowcompute.elements.functions import UserOp
from flowcompute.elements.streams import KernelScan
from flowcompute.fuse import Access, Reason, Region
from flowcompute.graph import Graph, Node
from flowcompute.ir import (
    Assign,
    CallFunction,
    Combine,
    ConstantValue,
    Convert,
    Expr,
    Load,
    PutItem,
    Splat,
    Stmt,
    Var,
    identity,
    merge_dtype,
    register_dtype,
    scan_tile,
    storage,
)
from flowcompute.lower.emit import Arguments, Point, Scope, loaded
from flowcompute.lower.form import LoweringTask
from flowcompute.spec import is_float

REDUCTIONS = {"cumulative_sum": "sum", "cumulative_prod": "prod", "cumulative_max": "max", "cumulative_min": "min"}
"""Scans by an associative operation, and the reduction whose step they take."""


@dataclass(frozen=True)
class Numbers:
    """Numbers of a batch, counted through records and items: one for each lane.

    Attributes:
        at: the first one.
        stride: from one lane to the next, where that is the same for all.
        each: otherwise that of each lane, with `{lane}` in it.
        count: how many of them exist, where that may be fewer than lanes.
        aligned: whether the first one's index is a multiple of the lanes.
    """

    at: str
    stride: int = 1
    each: str | None = None
    count: str | None = None
    aligned: bool = False

    @property
    def of_lane(self) -> str:
        """The number of each lane."""
        step = "{lane}" if self.stride == 1 else f"{{lane}} * {self.stride}"
        return self.each or (f"{self.at} + {step}" if self.stride else self.at)


class ScanPoint(Point):
    """A place in the loops of a scan's kernel, which has these numbers in hand."""

    def __init__(self, graph: Graph, region: Region, arguments: Arguments, scope: Scope, numbers: Numbers) -> None:
        super().__init__(graph, region, arguments, scope)
        self.numbers = numbers
        self.count = numbers.count

    def load(self, access: Access) -> Var:
        """Load from wherever these numbers lie."""
        spec, numbers = self.graph.nodes[access.value].spec, self.numbers
        lies = storage(self.graph, access.value, self.region.entered)
        argument = self.arguments.get("input", spec.dtype, lies.base)
        strides = [0] * len(self.region.domain)
        for axis, size, stride in zip(access.layout, spec.shape, lies.strides, strict=True):
            if axis is not None and size != 1:
                strides[axis] = stride
        sizes, steps = merged_axes((2, *self.region.domain), (lies.record, *strides))
        if len(sizes) == 1 and (numbers.each is None or not steps[0]):
            index = with_offset(times(f"({numbers.at})", steps[0]), lies.offset)
            stride = numbers.stride * steps[0]
            aligned = numbers.aligned and stride == 1 and lies.offset % self.scope.lanes == 0
            return loaded(self.scope, Load(argument, index, stride, self.count if stride else None, aligned=aligned))
        each = with_offset(offset_text(f"({numbers.of_lane})", sizes, steps), lies.offset)
        return loaded(self.scope, Load(argument, each, 1, self.count, each))

    def position(self, node: Node) -> tuple[str, int, str | None]:
        """The same numbers, counted from the first record of the stream."""
        before, numbers = f"first * {node.spec.item_numbers} + ", self.numbers
        return before + numbers.at, numbers.stride, None if numbers.each is None else before + numbers.each

    def store_all(self) -> None:
        """Store what the region makes of these numbers."""
        numbers = self.numbers
        for output in self.region.outputs:
            self.store(output, numbers.at, numbers.stride, numbers.count, numbers.each, aligned=numbers.aligned)


def merged_axes(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """As few axes as say the same; the size of the first one does not count."""
    found: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if found and found[-1][1] == size * stride:
            size *= found.pop()[0]
        found.append((size, stride))
    found = found or [(1, 0)]
    return [size for size, _ in found], [stride for _, stride in found]


def offset_text(index: str, sizes: list[int], strides: list[int]) -> str:
    """Where the number at an index that counts through all axes lies."""
    terms = []
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        if not stride:
            continue
        below = math.prod(sizes[axis + 1 :])
        whole = index if below == 1 else f"{index} / {below}"
        terms.append(times(f"({whole})" if axis == 0 else f"({whole} % {size})", stride))
    return " + ".join(terms) or "0"


def times(text: str, factor: int) -> str:
    """The product of an index and a stride."""
    return "0" if factor == 0 else text if factor == 1 else f"{text} * {factor}"


def with_offset(text: str, offset: int) -> str:
    """An index that begins later."""
    return text if not offset else str(offset) if text == "0" else f"{text} + {offset}"


class TileScan:
    """What lowerings of a scan by an associative operation along the stream must know.

    Attributes:
        columns: numbers in an item, each scanned by itself.
        records: records in a tile.
        runs: runs of a tile.
        dtype: that of the numbers that are scanned.
        wide: that in which results of runs and tiles are put together.
        exclusive: whether each result leaves out its own number: inside a run it is then what came before it.
    """

    def __init__(self, graph: Graph, region: Region) -> None:
        assert region.anchor is not None
        self.graph = graph
        self.region = region
        self.node = graph.nodes[region.anchor]
        assert self.node.op is not None
        self.op = operation_of(self.node)
        self.columns = self.node.spec.item_numbers
        self.records = scan_tile(self.columns)
        self.dtype = register_dtype(self.node.spec.dtype)
        self.wide = scan_wide(self.node)
        self.exclusive = bool(self.node.attrs.get("exclusive", False))
        self.arguments = Arguments()
        self.names = itertools.count()

    def operand(self, scope: Scope, at: str, count: str | None) -> Var:
        """What is scanned, at these numbers of the batch."""
        point = ScanPoint(self.graph, self.region, self.arguments, scope, Numbers(at, count=count))
        return point.value(self.region.reads[self.node.id][0])

    def store(self, scope: Scope, at: str, count: str | None, result: Var) -> None:
        """Store what follows from the scan's result, in its wide dtype, at these numbers of the batch."""
        point = ScanPoint(self.graph, self.region, self.arguments, scope, Numbers(at, count=count))
        point.scope.known[self.node.id] = self.narrow(scope, result)
        point.store_all()

    def nothing(self, dtype: np.dtype) -> ConstantValue:
        """The number that changes nothing."""
        return ConstantValue(identity_of(self.node, dtype))

    def combined(self, scope: Scope, left: Var, right: Var, count: str | None = None) -> Var:
        """`left` and then `right`, of which `count` lanes exist."""
        return put_together(scope, self.op, left, right, count)

    def take_in(self, scope: Scope, total: Var, place: str, number: Var, *, vector: bool = False) -> None:
        """Let `total` take in a number, and leave its result inside the run in its place of `stage`."""
        after = Assign(total, Splat(self.combined(scope, total, number)))
        result = PutItem("stage", place, total, vector)
        scope.add(*((result, after) if self.exclusive else (after, result)))

    def before_all(self, scope: Scope, place: str) -> tuple[Stmt, ...]:
        """What comes before the very first record, in its place of `stage`: there zero has no sign."""
        if not self.exclusive or self.op != "sum" or not is_float(self.dtype):
            return ()
        scope.add(PutItem("stage", place, scope.let(ConstantValue(scan_initial(self.node, self.dtype)), self.dtype)))
        return tuple(scope.statements)

    def widened(self, scope: Scope, var: Var) -> Var:
        """In the wide dtype."""
        return converted(scope, var, self.wide)

    def narrow(self, scope: Scope, var: Var) -> Var:
        """In the dtype of the numbers."""
        return converted(scope, var, self.dtype)


def converted(scope: Scope, var: Var, dtype: np.dtype) -> Var:
    """A value in another dtype."""
    expr: Expr = Convert(var, var.dtype, dtype)
    return var if var.dtype == dtype else scope.let(expr, dtype, var.lanes)


def operation_of(node: Node) -> str | UserOp:
    """By what a scan puts numbers together: the step of a reduction, or a user's function."""
    assert node.op is not None
    return node.element.step if isinstance(node.element, KernelScan) else REDUCTIONS[node.op.name]


def put_together(scope: Scope, op: str | UserOp, left: Var, right: Var, count: str | None = None) -> Var:
    """`left` and then `right`, of which `count` lanes exist."""
    if isinstance(op, str):
        return scope.let(Combine(op, (left,), (right,), 0), left.dtype, left.lanes)
    result = scope.fresh(left.dtype, left.lanes)
    scope.add(CallFunction((result,), op, (left, right), count))
    return result


def identity_of(node: Node, dtype: np.dtype) -> Any:
    """The number that changes nothing in a scan, as a Python number."""
    if isinstance(node.element, KernelScan):
        return node.element.inits[0].item()
    assert node.op is not None
    value = identity(REDUCTIONS[node.op.name], dtype)
    return value.item() if isinstance(value, np.generic) else value


def scan_initial(node: Node, dtype: np.dtype) -> Any:
    """What comes before the first number: zero without a sign, where `identity_of` has one."""
    assert node.op is not None
    return 0 if node.op.name == "cumulative_sum" else identity_of(node, dtype)


def scan_wide(node: Node) -> np.dtype:
    """The dtype in which results of runs and tiles are put together.

    Floats in float64, unless that changes nothing, or the operation is a user's, which has its own.
    """
    assert node.op is not None
    dtype = register_dtype(node.spec.dtype)
    kept = node.op.name in ("cumulative_max", "cumulative_min") or isinstance(node.element, KernelScan)
    return dtype if kept else merge_dtype(dtype)


def is_scan(node: Node) -> bool:
    """Whether a node carries along an axis."""
    return node.kind is Kind.SCAN


def is_walked(node: Node) -> bool:
    """Whether a scan is walked number by number, not in tiles."""
    assert node.op is not None
    associative = node.op.name in REDUCTIONS or node.attrs.get("associative", False)
    return node.attrs["axis"] is not None or not associative


def why_no_serial_scan(task: LoweringTask) -> Reason | None:
    """Return why a region is none around a scan that is walked."""
    if task.anchor is None or not is_scan(task.anchor):
        return task.refuse("its anchor is no scan")
    return None if is_walked(task.anchor) else task.refuse("its scan takes tiles that look back")


def why_no_look_back(task: LoweringTask) -> Reason | None:
    """Return why a region is none around a scan in tiles that look back."""
    if task.anchor is None or not is_scan(task.anchor):
        return task.refuse("its anchor is no scan")
    return task.refuse("its scan is walked number by number") if is_walked(task.anchor) else None


def why_no_gpu_look_back(task: LoweringTask) -> Reason | None:
    """Return why a region is none around a scan in tiles of work-groups that look back."""
    return why_no_look_back(task) if task.is_gpu else task.refuse("a work-item of a CPU scans a tile by itself")
