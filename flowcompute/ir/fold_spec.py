"""Descriptions of folds over the stream."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.imports import dataclass
from flowcompute.ir.reduction_order import fold_block, merge_dtype, product_block
from flowcompute.spec import FLOAT32, FLOAT64, INT64, Spec

CANONICAL_FOLDS = frozenset(
    ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "vecdot", "mean", "var"),
)
"""Folds whose blocks a kernel may reduce. The others read their records on the host."""


ORDER = "order"
"""The attribute of a fold of products that has version 2 of their order; see `by_kernels`."""


@dataclass(frozen=True)
class FoldSpec:
    """Description of a canonical fold.

    Attributes:
        op: name of the reduction.
        dtype: dtype of the folded values (of the accumulators).
        item: shape of an item.
        result_dtype: dtype of the result.
        result_shape: shape of the result (`item`, or `(1, *item)` with keepdims).
        inner: numbers that each value represents (means of items, indices inside items).
        correction: of a variance.
        inputs: number of operands.
        fused: whether a dot product of numbers adds each product with one rounding, as kernels do.
        selected: whether masked records count as the identity, so that a sum of zero may be a sum of none.
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
        """Return the dtypes of a block's partial result, one array each."""
        if self.op == "var":
            return (self.dtype,) * (2 + self.inputs)
        return (self.dtype, INT64) if self.op in ("argmin", "argmax") else (self.dtype,)

    def node_parts(self) -> tuple[np.dtype, ...]:
        """Return the dtypes of merged blocks, one array each."""
        parts = self.parts()[1:] if self.op == "var" else self.parts()
        return tuple(map(merge_dtype, parts))

    def bytes_of_blocks(self) -> int:
        """Return the bytes of block results per record, rounded up."""
        width = sum(dtype.itemsize for dtype in self.parts())
        return -(-self.numbers * width // self.block)


@dataclass(frozen=True)
class HostFold:
    """Description of a fold whose state is kept on the host.

    Attributes:
        op: name of the fold.
        operands: specs of its operands; resident ones are passed whole with every batch.
        attrs: its attributes, sorted.
        result: spec of its result.
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

    @property
    def order(self) -> int:
        """Version of the order of its sums: 2 for products of `by_kernels`."""
        return int(dict(self.attrs).get(ORDER, 1))

    def attr(self, name: str) -> Any:
        """Return an attribute."""
        return dict(self.attrs)[name]


MOST_TOGETHER = 16
"""Blocks of a fold of products that a device multiplies in one launch. More of them hide no more of the host's time."""

TOGETHER_NUMBERS = 1 << 26
"""Numbers that the products of such blocks have at most, before they are added together."""


@dataclass(frozen=True)
class ProductShape:
    """Sizes of a fold of products, `X.T @ Y` of two streams.

    Attributes:
        rows: that a record has; 1 where it is a row itself.
        left, right: numbers of a row of either operand.
    """

    rows: int
    left: int
    right: int

    @classmethod
    def of(cls, fold: HostFold) -> ProductShape:
        """Return the sizes of a fold with one operand or two."""
        one, other = fold.operands[0].shape, fold.operands[-1].shape
        rows = one[0] if len(one) == 2 else 1
        return cls(rows, math.prod(one[-1:]), math.prod(other[-1:]))

    @property
    def block(self) -> int:
        """Records in a block."""
        return max(1, product_block(self.left + self.right) // max(1, self.rows))

    def together(self, length: int | None) -> int:
        """Return the most blocks that a device multiplies in one launch: a power of two.

        Args:
            length: records of the stream; None if unknown.
        """
        most = 1
        while 2 * most <= MOST_TOGETHER and 2 * most * self.numbers <= TOGETHER_NUMBERS:
            most *= 2
        while length is not None and most > max(1, length // self.block):
            most //= 2
        return most

    def padded(self, records: int) -> int:
        """Return the rows that a device multiplies for some records of a block: a power of two, or the whole block.

        So there are few kernels. Rows behind the last one are zeros.
        """
        return min(1 << max(0, records * self.rows - 1).bit_length(), self.block * self.rows)

    def opened_rows(self, length: int | None) -> int:
        """Return the most rows of a block that a device multiplies, zeros included.

        Args:
            length: records of the stream; None if unknown.
        """
        return self.padded(self.block if length is None else min(self.block, max(1, length)))

    def is_short(self, records: int | None) -> bool:
        """Check whether so many records are all of a short stream: some, and fewer than a block."""
        return records is not None and 0 < records < self.block

    @property
    def numbers(self) -> int:
        """Numbers of the result."""
        return self.left * self.right


@dataclass(frozen=True)
class SegmentShape:
    """Sizes of a sum of rows by key.

    Attributes:
        rows: that a record has, each with a key; 1 where it is a row itself.
        width: numbers of a row.
        segments: keys.
    """

    rows: int
    width: int
    segments: int

    @classmethod
    def of(cls, fold: HostFold) -> SegmentShape:
        """Return the sizes of a fold of items by keys, whose shape is how an item's begins."""
        segments, *row = fold.result.shape
        return cls(math.prod(fold.operands[1].shape), math.prod(row), segments)

    @property
    def numbers(self) -> int:
        """Numbers of the result."""
        return self.segments * self.width

    def places(self, items: int) -> int:
        """Return the integers that say which rows of so many records belong to which key."""
        return 3 * items * self.rows + 1


def host_fold(op: str, operands: Sequence[Spec], attrs: Mapping[str, Any], result: Spec) -> HostFold:
    """Describe a fold that is not one of `CANONICAL_FOLDS`."""
    return HostFold(op, tuple(operands), tuple(sorted(attrs.items())), result)


def by_kernels(fold: HostFold) -> HostFold:
    """Return a fold with version 2 of the order of products, where it has one: of two streams of rows of floats.

    A short stream, of fewer records than a block, is then one product in the order of kernels: records in order, in
    panels, each product added with one rounding. Longer ones are blocks of BLAS, as in version 1. Only the length that
    a stream has at its end decides.
    """
    operands, dtype = fold.operands, fold.result.dtype
    if fold.op != "matmul" or len(operands) != 2 or dtype not in (FLOAT32, FLOAT64):
        return fold
    are_rows = all(one.is_stream and one.shape and one.item_numbers and one.dtype == dtype for one in operands)
    return replace(fold, attrs=(*fold.attrs, (ORDER, 2))) if are_rows else fold


MOST_PRODUCTS = 4
"""Blocks of a fold of products that the host multiplies at a time."""

SLICE_NUMBERS = 1 << 16
"""Numbers processed at a time by folds that need memory for each number of a batch."""
