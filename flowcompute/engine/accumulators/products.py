"""X.T @ Y of two streams: products of blocks, added in the aligned tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flowcompute.engine.accumulators.panel_products import multiply_blocks
from flowcompute.engine.folds import BlockedAccumulator
from flowcompute.ir import MOST_PRODUCTS, HostFold, Parts, ProductShape, canonical_nan, merge_dtype
from flowcompute.spec import is_float
from flowcompute.thread_pool import own_cores

Multiply = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Multiplies matrices that are C-contiguous; see `Products.by_kernels`."""


class Products(BlockedAccumulator):
    """The sum over the records of outer products.

    A block is one product of its two matrices in the operands' dtype; blocks are added in
    float64 (integers in their own dtype). With one operand it is multiplied with itself.

    Attributes:
        by_kernels: gives `left.T @ right` in version 2 of the order of products, for a fold that has it.
    """

    by_kernels: Multiply | None = None

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        self.spec = spec
        self._shape = ProductShape.of(spec)
        super().__init__(self._shape.block, start)
        self._node_dtype = merge_dtype(spec.operands[0].dtype)

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    @property
    def blocks_at_once(self) -> int:
        """One for each core that may multiply it, but few: a block's result is often larger than the block."""
        return min(MOST_PRODUCTS, len(own_cores()))

    def arrays(self, values: Sequence[np.ndarray]) -> Parts:
        """Return operands as matrices `(records, numbers)`."""
        return tuple(
            np.asarray(value).reshape(len(value), operand.item_numbers)
            for value, operand in zip(values, self.spec.operands, strict=True)
        )

    def reduce(self, arrays: Parts, records: int, first: int) -> Parts:
        """Compute the product of each block."""
        del first
        return (self._multiplied(arrays, records, self._node_dtype),)

    def _multiplied(self, arrays: Parts, records: int, dtype: np.dtype) -> np.ndarray:
        """Return the product of each block in a dtype that has all numbers of the operands'."""
        blocks = len(arrays[0]) // records
        # Which routine multiplies must not depend on how a batch lies in memory. So a matrix is always one piece, and
        # only the only operand is multiplied with itself.
        sizes = self._shape.left, self._shape.right
        parts = [
            np.ascontiguousarray(part).reshape(blocks, records * self._shape.rows, numbers)
            for part, numbers in zip(arrays, sizes, strict=False)
        ]
        left, right = parts[0], parts[-1]
        if len(parts) > 1 and np.may_share_memory(left, right):
            right = right.copy()
        made = np.empty((blocks, left.shape[2], right.shape[2]), dtype)
        multiply_blocks(left, right, made)
        return made

    def merge_nodes(self, a: Parts, a_records: int, b: Parts, b_records: int) -> Parts:
        """Add two products."""
        del a_records, b_records
        return (a[0] + b[0],)

    def result(self) -> np.ndarray:
        """Return the product over all records so far; 0 without any."""
        if self._is_by_kernels(self.records):
            return self._multiplied_by_kernels(self.cut.tail.records)
        total = self.total()
        return self._finish(None if total is None else total[0])

    def _is_by_kernels(self, records: int) -> bool:
        """Check whether so many records, where they are all there are, have version 2 of the order."""
        return self.spec.order == 2 and not self.start and self._shape.is_short(records)

    def _multiplied_by_kernels(self, arrays: Parts) -> np.ndarray:
        """Return the value of a fold of these records, which lie in rows."""
        assert self.by_kernels is not None, "a plan has such folds only where kernels of CPUs compute all"
        sizes = self._shape.left, self._shape.right
        left, right = (
            np.ascontiguousarray(part).reshape(-1, numbers) for part, numbers in zip(arrays, sizes, strict=True)
        )
        return self._finish((self.by_kernels(left, right),))

    def value_of(self, values: Sequence[np.ndarray]) -> np.ndarray | None:
        """Return the product over these records alone; see `Accumulator.value_of`."""
        if not self.is_one_block(len(values[0])):
            return None
        arrays, mine = self.arrays(values), self.spec.result.dtype
        if self._is_by_kernels(len(arrays[0])):
            return self._multiplied_by_kernels(arrays)
        # A node's dtype has all numbers of the operands': going through it changes none.
        dtype = mine if mine == arrays[0].dtype else self._node_dtype
        with np.errstate(all="ignore"):
            return self._finish((self._multiplied(arrays, len(arrays[0]), dtype)[0],))

    def _finish(self, total: Parts | None) -> np.ndarray:
        result = self.spec.result
        value = np.zeros(result.shape) if total is None else total[0]
        with np.errstate(all="ignore"):
            made = value.astype(result.dtype, copy=False).reshape(result.shape)
        return canonical_nan(made) if is_float(result.dtype) else made
