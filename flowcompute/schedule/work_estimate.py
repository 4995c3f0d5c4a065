"""Lower bounds of the work of a region per record: bytes through memory and arithmetic operations.

The counts come from the graph alone and do not depend on how a kernel is written. Values that a kernel computes or
loads several times count once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from flowcompute.elements import CAST, Kind
from flowcompute.elements.math import exp
from flowcompute.elements.nn import ATTENTION, ATTENTION_PART, SELECTIVE_SCAN, SELF_ATTENTION
from flowcompute.graph import Graph, Node
from flowcompute.imports import dataclass
from flowcompute.ir import below_views, register_dtype, rows_seen
from flowcompute.schedule.steps import RegionStep, Step
from flowcompute.spec import FLOAT64, Spec, is_float
from flowcompute.strategy import Unit

_OPERATIONS_OF_NUMBER: Mapping[str, int] = {
    "vecdot": 2,
    "mean": 1,
    # The difference from the block's first record, its sum, and the sum of its squares.
    "var": 4,
    "argmin": 2,
    "argmax": 2,
    "ema": 3,
    "linear_recurrence": 2,
}
"""Operations for each number of the longest operand of a reduction or scan; 1 if it is not named."""

_SOFTMAX_OPERATIONS = 4
"""Operations on a score besides its exponential: scale, maximum, difference, sum."""


TEXT_RECORDS = 1024
"""Records of a text along which attention looks back, where it may be longer."""


@dataclass(frozen=True)
class WorkEstimate:
    """The work of a region for one record.

    Attributes:
        bytes_in, bytes_out: bytes of streams that are read from memory and written to it.
        operations: arithmetic operations.
        unit: the unit that executes most of them.
    """

    bytes_in: int
    bytes_out: int
    operations: float
    unit: Unit

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.bytes_in + self.bytes_out


def work_of(graph: Graph, step: RegionStep) -> WorkEstimate:
    """Estimate the work of a region for one record."""
    by_unit: dict[Unit, float] = {}
    for node in (graph.nodes[i] for i in step.region.nodes):
        unit = _unit(graph, node, step)
        by_unit[unit] = by_unit.get(unit, 0.0) + operations_of(graph, node)
    most: Unit = max(by_unit, key=lambda unit: by_unit[unit], default="float32")
    return WorkEstimate(*bytes_of_record(graph, step), sum(by_unit.values()), most)


def operations_of(graph: Graph, node: Node) -> float:
    """Count the operations of a node for one record, or for the whole value if it is resident."""
    inputs = [graph.nodes[i].spec for i in node.inputs]
    numbers = node.spec.item_numbers
    if node.op is None or node.op is CAST or node.kind is Kind.VIEW:
        return 0.0
    if node.op is ATTENTION:
        return _attention_operations(node, inputs[0].shape[-1], inputs[1].shape[-2])
    if node.op is ATTENTION_PART:
        return _part_operations(node, inputs)
    if node.op is SELF_ATTENTION:
        (heads, width), size = node.spec.shape, inputs[0].shape[-1]
        seen = min(rows_seen(node), TEXT_RECORDS) / 2
        return heads * seen * (2 * size + 2 * width + exp.op.cost + _SOFTMAX_OPERATIONS)
    if node.op is SELECTIVE_SCAN:
        # exp(delta a) h + (delta u) b, and its term of the result, for each state.
        return float(numbers * (1 + inputs[2].shape[-1] * (6 + exp.op.cost)))
    if node.kind is Kind.CONTRACT:
        return 2.0 * numbers * (inputs[0].shape[-1] if inputs[0].shape else 1)
    if node.kind in (Kind.REDUCE, Kind.FOLD, Kind.SCAN):
        return float(_OPERATIONS_OF_NUMBER.get(node.op.name, 1) * max(spec.item_numbers for spec in inputs))
    return float(node.op.cost * numbers)


def _attention_operations(node: Node, size: int, keys: int) -> float:
    *heads, queries, values = node.spec.shape
    pairs = math.prod(heads) * _pairs(node, queries, keys)
    return float(pairs * (2 * size + 2 * values + exp.op.cost + _SOFTMAX_OPERATIONS))


def _part_operations(node: Node, inputs: list[Spec]) -> float:
    """Count the operations of a part of attention's gradient: scores, slopes of weights, and sums of either."""
    (*heads, queries, size), part = inputs[0].shape, node.attrs["part"]
    columns = 0 if part == "log" else inputs[2].shape[-1]
    products = {"log": size, "queries": 2 * size + columns, "keys": 2 * size + 2 * columns}[part]
    pairs = math.prod(heads) * _pairs(node, queries, inputs[1].shape[-2])
    return float(pairs * (2 * products + exp.op.cost + _SOFTMAX_OPERATIONS))


def _pairs(node: Node, queries: int, keys: int) -> int:
    """Count the pairs of a query and a key that it sees."""
    last = np.arange(queries) + (keys - queries)
    seen = np.full(queries, keys)
    if node.attrs["causal"]:
        first = 0 if node.attrs["window"] is None else np.clip(last + 1 - node.attrs["window"], 0, keys)
        seen = np.clip(last + 1, 0, keys) - first
    return int(seen.sum())


def _unit(graph: Graph, node: Node, step: RegionStep) -> Unit:
    if step.kernel is not None and step.kernel.tensor and node.kind is Kind.CONTRACT:
        return "tensor"
    dtypes = [register_dtype(graph.nodes[i].spec.dtype) for i in node.inputs] or [register_dtype(node.spec.dtype)]
    floats = [dtype for dtype in dtypes if is_float(dtype)]
    if not floats:
        return "integer"
    return "float64" if FLOAT64 in floats else "float32"


def bytes_of_record(graph: Graph, step: Step) -> tuple[int, int]:
    """Count the bytes of streams that a step reads and writes for one record.

    Resident operands and folds are not counted.
    """
    inputs = step.region.inputs if isinstance(step, RegionStep) else step.node.inputs
    outputs = step.region.outputs if isinstance(step, RegionStep) else (step.node.id,)
    made = sum(graph.nodes[i].spec.item_bytes for i in outputs if graph.nodes[i].spec.is_stream)
    read: dict[int, int] = {}
    for node in (graph.nodes[i] for i in inputs if graph.nodes[i].spec.is_stream):
        size, base = node.spec.item_bytes, node
        while (base := graph.nodes[below_views(graph, base.id)]).kind is Kind.WINDOW:
            # Windows overlap: each brings the records of one step.
            size = size * base.attrs["step"] // base.attrs["size"]
            base = graph.nodes[base.inputs[0]]
        read[base.id] = read.get(base.id, 0) + size
    # Views of one value lie in the same memory.
    return sum(min(size, graph.nodes[i].spec.item_bytes) for i, size in read.items()), made
