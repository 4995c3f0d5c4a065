"""Regions evaluated node by node with NumPy, half formats in float32, reductions in canonical order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from flowcompute.elements import CAST, Kind
from flowcompute.elements.generated import Generator
from flowcompute.elements.nn import ATTENTION, EXPERTS, attention_of, experts_of
from flowcompute.engine import BatchSlice, PassState, PlacedBackend, RegionRunner, cast, elementwise
from flowcompute.fuse import makes_nan
from flowcompute.graph import Node
from flowcompute.imports import LateModule
from flowcompute.ir import DeviceCapabilities, Kernel, canonical_nan, reduce_rows, register_dtype, view_array
from flowcompute.schedule import BackendDescription, RegionStep
from flowcompute.spec import is_float
from flowcompute.strategy import default_memory_bytes

if TYPE_CHECKING:
    from flowcompute.lower import matmul
else:
    matmul = LateModule("flowcompute.lower.matmul")


class NumpyBackend(PlacedBackend):
    """Computes with NumPy in host memory.

    Args:
        reason: why it was chosen, in words.
    """

    def __init__(self, reason: str = 'asked for by device="numpy"') -> None:
        capabilities = DeviceCapabilities(
            name="numpy",
            kind=f"numpy {np.__version__}",
            code_shape="numpy",
            host_memory=True,
            float64=True,
            memory_bytes=2 * default_memory_bytes(),
            max_buffer_bytes=2 * default_memory_bytes(),
            local_bytes=0,
            units=1,
            reason=reason,
        )
        self.description = BackendDescription(capabilities, _source_text)

    def runner(self, state: PassState, placement: int = 0) -> RegionRunner:  # noqa: ARG002 - all that it is given
        """Make what runs the regions of a placement."""
        return NumpyRunner(state)


def _source_text(kernel: Kernel) -> str:
    """Refuse: NumPy has no kernels."""
    raise AssertionError(f"the NumPy backend has no kernels: {kernel}")


class NumpyRunner(RegionRunner):
    """Runs regions with NumPy."""

    def run(self, step: RegionStep, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
        """Evaluate each node over the records."""
        region, items, nodes = step.region, batch_slice.items, self.state.nodes
        values = _RegionValues(nodes, batch_slice)
        known = values.known
        batch_slice.launches += 1
        if self.log is not None:
            self.log.launched(step.name, 0.0, None)
        for i in region.nodes:
            node = nodes[i]
            if isinstance(node.op, Generator):
                known[i] = _generate(node, node.op, batch_slice)
                continue
            moves = i in region.exposed and not makes_nan(node)
            at = values.value_in_memory if moves or (node.op is not None and node.op.reads_sign) else values.value
            operands = [at(o) for o in node.inputs]
            if node.kind is Kind.VIEW:
                known[i] = view_array(node, operands, stream=node.spec.is_stream)
                continue
            if node.kind is Kind.FOLD:
                item = self.state.plan.folds[i].item
                spread = [np.broadcast_to(operand, (items, *item)) for operand in operands]
                batch_slice.push_later(step.name, partial(self.state.folds[i].push_records, spread))
                continue
            with np.errstate(all="ignore"):
                known[i] = _evaluate(node, [nodes[o] for o in node.inputs], operands, region.stream)
        for i, array in outputs.items():
            shape = (items, *nodes[i].spec.shape) if region.stream else nodes[i].spec.shape
            np.copyto(array, np.broadcast_to(known[i], shape), casting="no")
            if is_float(array.dtype) and makes_nan(nodes[i]):
                canonical_nan(array)


class _RegionValues:
    """Values of a region over the records of a slice.

    Nothing in it refers back to it, so that arrays are freed with the last reference to it.

    Args:
        nodes: of the graph, by value.
        batch_slice: gives what comes into the region.

    Attributes:
        known: what was computed here, by value.
    """

    def __init__(self, nodes: Sequence[Node], batch_slice: BatchSlice) -> None:
        self.known: dict[int, np.ndarray] = {}
        self._nodes = nodes
        self._batch_slice = batch_slice
        self._in_memory: dict[int, np.ndarray] = {}

    def value(self, i: int) -> np.ndarray:
        """Return a value that was computed here or comes in."""
        return self.known[i] if i in self.known else self._batch_slice.array(i)

    def value_in_memory(self, i: int) -> np.ndarray:
        """Return a value, whose NaNs have the bits that they would have if it were stored."""
        if i not in self.known or not is_float(self.known[i].dtype) or not makes_nan(self._nodes[i]):
            return self.value(i)
        if i not in self._in_memory:
            self._in_memory[i] = canonical_nan(self.known[i].copy())
        return self._in_memory[i]


def _generate(node: Node, op: Generator, batch_slice: BatchSlice) -> np.ndarray:
    spec, items = node.spec, batch_slice.items
    first, count = batch_slice.start * spec.item_numbers, items * spec.item_numbers
    made = op.numpy(first, count, spec.dtype, *(batch_slice.array(i) for i in node.inputs))
    return np.asarray(made).reshape(items, *spec.shape)


def _evaluate(node: Node, operands: list[Node], arrays: list[np.ndarray], stream: bool) -> np.ndarray:
    assert node.op is not None
    if node.op is CAST:
        return cast(arrays[0], node.spec.dtype)
    wide = [array.astype(register_dtype(array.dtype), copy=False) for array in arrays]
    if node.kind is Kind.ELEMENTWISE:
        return elementwise(node.op, node.spec.dtype, _lined_up(node, operands, wide) if stream else wide)
    if node.kind is Kind.REDUCE:
        return _reduce(node, operands, wide, stream)
    if node.op is ATTENTION:
        return np.asarray(attention_of(*wide, **node.attrs))
    if node.op is EXPERTS:
        x, weights, chosen = wide
        return experts_of(x, weights, chosen, product=_sum_of_panels)
    return _matmul(node, operands, wide)


def _lined_up(node: Node, operands: list[Node], arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Give streams of fewer item axes axes of size 1 after the stream, as a mask beside its items."""
    rank = len(node.spec.shape)
    return [
        array.reshape(array.shape[0], *(1,) * (rank - len(operand.spec.shape)), *array.shape[1:])
        if operand.spec.is_stream
        else array
        for operand, array in zip(operands, arrays, strict=True)
    ]


def _reduce(node: Node, operands: list[Node], arrays: list[np.ndarray], stream: bool) -> np.ndarray:
    assert node.op is not None
    name = node.op.name
    lead = 1 if stream else 0
    rank = max(len(operand.spec.shape) for operand in operands)
    shaped = []
    for operand, array in zip(operands, arrays, strict=True):
        own = array if operand.spec.is_stream or not stream else array[None]
        missing = rank - len(operand.spec.shape)
        shaped.append(own.reshape(*own.shape[:lead], *(1,) * missing, *own.shape[lead:]))
    whole = np.broadcast_arrays(*shaped)
    axes = tuple(axis + lead for axis in node.attrs["axes"])
    kept = [axis for axis in range(whole[0].ndim) if axis not in axes]
    shape = (*(whole[0].shape[axis] for axis in kept), math.prod(whole[0].shape[axis] for axis in axes))
    rows = tuple(part.transpose(*kept, *axes).reshape(shape) for part in whole)
    if name == "vecdot":
        rows = (rows[0] * rows[1],)
    elif name in ("argmin", "argmax"):
        index = np.broadcast_to(np.arange(rows[0].shape[-1], dtype=np.int64), rows[0].shape)
        rows = (rows[0], index)
    result = reduce_rows(name, rows)[-1]
    if node.attrs["keepdims"]:
        result = np.expand_dims(result, axes)
    return result.astype(node.spec.dtype, copy=False)


def _matmul(node: Node, operands: list[Node], arrays: list[np.ndarray]) -> np.ndarray:
    left, right = (array.astype(node.spec.dtype, copy=False) for array in arrays)
    columns = node.attrs.get("columns", 1)
    sizes = right.shape[right.ndim - columns :]
    if "depth" in node.attrs:
        right = right.reshape(*right.shape[: -columns - node.attrs["depth"]], left.shape[-1], math.prod(sizes))
    if operands[0].spec.is_stream and operands[0].spec.ndim == 2:
        left = left[:, None]
    total = _sum_of_panels(left, right)
    if operands[0].spec.is_stream and operands[0].spec.ndim == 2:
        total = total[:, 0]
    total = np.asarray(total).astype(node.spec.dtype, copy=False)
    return total.reshape(*total.shape[:-1], *sizes)


def _sum_of_panels(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Multiply matrices, or stacks of them, in panels along k."""
    total = left[..., : matmul.PANEL] @ right[..., : matmul.PANEL, :]
    for start in range(matmul.PANEL, left.shape[-1], matmul.PANEL):
        total = total + left[..., start : start + matmul.PANEL] @ right[..., start : start + matmul.PANEL, :]
    return np.asarray(total)
