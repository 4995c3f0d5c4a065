"""What folds over the stream compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowcompute.ir.reduction_order import fold_block, merge_dtype
from flowcompute.spec import INT64, Spec

CANONICAL_FOLDS = frozenset(
    ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "vecdot", "mean", "var"),
)
"""Folds whose blocks a kernel may reduce; the others take their records on the host."""


@dataclass(frozen=True)
class FoldSpec:
    """What a fold computes.

    Attributes:
        op: name of the reduction.
        dtype: dtype of the folded values (of the accumulators).
        item: shape of an item.
        result_dtype: dtype of the result.
        result_shape: shape of the result (`item`, or `(1, *item)` with keepdims).
        inner: numbers that each value already stands for (means of items, indices inside items).
        correction: of a variance.
        inputs: operands of the fold.
        fused: whether products are added with one rounding, as kernels do; for a dot product of numbers.
        selected: whether records that count as nothing are among them, so that a sum of zero may be one of none.
    """

    op: str
    dtype: np.dtype
    item: tuple[int, ...]
    result_dtype: np.dtype
    result_shape: tuple[int, ...]
    inner: int = 1
    correction: float = 0.0
    inputs: int = 1
    selected: bool = False
    fused: bool = False

    @property
    def numbers(self) -> int:
        """Numbers in an item."""
        return math.prod(self.item)

    @property
    def block(self) -> int:
        """Records in a canonical block."""
        return fold_block(self.numbers)

    def parts(self) -> tuple[np.dtype, ...]:
        """Dtypes of a block's partial result, one array each."""
        if self.op == "var":
            return (self.dtype,) * (2 + self.inputs)
        return (self.dtype, INT64) if self.op in ("argmin", "argmax") else (self.dtype,)

    def node_parts(self) -> tuple[np.dtype, ...]:
        """Dtypes of what blocks are merged into, one array each."""
        parts = self.parts()[1:] if self.op == "var" else self.parts()
        return tuple(map(merge_dtype, parts))

    def bytes_of_blocks(self) -> int:
        """Bytes of block results for each record, rounded up."""
        width = sum(dtype.itemsize for dtype in self.parts())
        return -(-self.numbers * width // self.block)


@dataclass(frozen=True)
class HostFold:
    """A fold whose state is kept on the host, by its name and the values that it takes and gives.

    Attributes:
        op: name of the fold.
        operands: the values it takes; resident ones come whole with every batch.
        attrs: its attributes, sorted.
        result: the value it gives.
    """

    op: str
    operands: tuple[Spec, ...]
    attrs: tuple[tuple[str, Any], ...]
    result: Spec

    @property
    def item(self) -> tuple[int, ...]:
        """Shape of an item of the first operand."""
        return self.operands[0].shape

    @property
    def numbers(self) -> int:
        """Numbers in an item of the first operand."""
        return self.operands[0].item_numbers

    def attr(self, name: str) -> Any:
        """An attribute."""
        return dict(self.attrs)[name]


def host_fold(op: str, operands: Sequence[Spec], attrs: Mapping[str, Any], result: Spec) -> HostFold:
    """Describe a fold that is not one of `CANONICAL_FOLDS`."""
    return HostFold(op, tuple(operands), tuple(sorted(attrs.items())), result)


SLICE_NUMBERS = 1 << 16
"""Numbers taken at a time where the work on a batch needs memory for each."""
