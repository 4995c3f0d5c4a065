"""X.T @ Y of two streams: products of blocks, added in the aligned tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np

from flowcompute.engine.accumulators.blas_threads import one_blas_thread, one_blas_thread_here
from flowcompute.engine.folds import BlockedAccumulator
from flowcompute.ir import HostFold, Parts, canonical_nan, merge_dtype, product_block
from flowcompute.spec import is_float

_Panel = Callable[[np.ndarray, np.ndarray, np.ndarray, slice], None]

_PANEL_COLUMNS = 64
"""Fewest columns of a factor that a thread multiplies at once."""

_MOST_PANELS = 16

_SHARED = 1 << 26
"""Products of two numbers from which panels of one matrix are shared out among threads: some milliseconds of one."""


class Products(BlockedAccumulator):
    """The sum over the records of outer products.

    A block is one product of its two matrices in the operands' dtype; blocks are added in
    float64 (integers in their own dtype). With one operand it is multiplied with itself.
    """

    def __init__(self, spec: HostFold, start: int = 0) -> None:
        self.spec = spec
        super().__init__(_block(spec), start)
        self._node_dtype = merge_dtype(spec.operands[0].dtype)

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self.spec

    @property
    def blocks_at_once(self) -> int:
        """One: a block's result is often larger than the block."""
        return 1

    def arrays(self, values: Sequence[np.ndarray]) -> Parts:
        """Return operands as matrices `(records, numbers)`."""
        return tuple(
            np.asarray(value).reshape(len(value), operand.item_numbers)
            for value, operand in zip(values, self.spec.operands, strict=True)
        )

    def reduce(self, arrays: Parts, records: int, first: int) -> Parts:
        """Compute the product of each block."""
        del first
        blocks = len(arrays[0]) // records
        # Which routine multiplies must not depend on how a batch lies in memory. So a matrix is always one piece, and
        # only the only operand is multiplied with itself.
        parts = [np.ascontiguousarray(part).reshape(blocks, records, part.shape[1]) for part in arrays]
        left, right = parts[0], parts[-1]
        if len(parts) > 1 and np.may_share_memory(left, right):
            right = right.copy()
        made = np.empty((blocks, left.shape[2], right.shape[2]), self._node_dtype)
        with one_blas_thread():
            for out, a, b in zip(made, left, right, strict=True):
                _multiply(a, b, out)
        return (made,)

    def merge_nodes(self, a: Parts, a_records: int, b: Parts, b_records: int) -> Parts:
        """Add two products."""
        del a_records, b_records
        return (a[0] + b[0],)

    def result(self) -> np.ndarray:
        """Return the product over all records so far; 0 without any."""
        total = self.total()
        result = self.spec.result
        value = np.zeros(result.shape) if total is None else total[0][0]
        with np.errstate(all="ignore"):
            made = value.astype(result.dtype).reshape(result.shape)
        return canonical_nan(made) if is_float(result.dtype) else made


def _multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Put `a.T @ b` into `out`. Panels are a function of the shapes, so threads change no bit."""
    is_square, mine, others = np.may_share_memory(a, b), a.shape[1], b.shape[1]
    wide = max(mine, others)
    if mine * others * len(a) < _SHARED or wide < 2 * _PANEL_COLUMNS:
        out[...] = a.T @ b
        return
    count = min(_MOST_PANELS, wide // _PANEL_COLUMNS)
    edges = [wide * panel // count for panel in range(count + 1)]
    parts = [slice(*pair) for pair in pairwise(edges)]
    one = _lower if is_square else _left if mine == wide else _right
    # The last panels of a triangle are the longest.
    calls = [partial(_in_thread, one, a, b, out, part) for part in reversed(parts)]
    with ThreadPoolExecutor(min(len(calls), _cores()), thread_name_prefix="flowcompute-product") as threads:
        for done in [threads.submit(call) for call in calls]:
            done.result()


def _in_thread(one: _Panel, a: np.ndarray, b: np.ndarray, out: np.ndarray, part: slice) -> None:
    with one_blas_thread_here():
        one(a, b, out, part)


def _left(a: np.ndarray, b: np.ndarray, out: np.ndarray, part: slice) -> None:
    out[part] = a[:, part].T @ b


def _right(a: np.ndarray, b: np.ndarray, out: np.ndarray, part: slice) -> None:
    out[:, part] = a.T @ b[:, part]


def _lower(a: np.ndarray, b: np.ndarray, out: np.ndarray, part: slice) -> None:
    """Multiply a matrix with itself: rows of the lower triangle, and what mirrors them."""
    del b
    out[part, : part.stop] = a[:, part].T @ a[:, : part.stop]
    out[: part.start, part] = out[part, : part.start].T


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _block(spec: HostFold) -> int:
    return product_block(spec.operands[0].item_numbers + spec.operands[-1].item_numbers)
