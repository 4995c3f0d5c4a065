"""The canonical order of additions in reductions, version 1.

The order depends on lengths and dtypes only, never on batch size, Strategy or device, so results keep their bits.
Checkpoints carry `ORDER_VERSION`.

* **Rows** (item axes, and streams of numbers in blocks of records): blocks of 1024 elements as 256 lanes of 4 steps.
  A lane adds its steps in order. The lanes are added as a tree by halves (lane l with l + 128, then l + 64, ...). A
  row shorter than a block has `row_lanes(length)` lanes. Missing elements are the identity.
* **Columns** (items of more than one number over the stream): blocks of `column_block` records. Each column is added
  in order inside a block.
* **Blocks** are merged in an aligned binary tree over the block index, floats in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowcompute.spec import FLOAT32, FLOAT64, is_float

ORDER_VERSION = 1
BLOCK = 1024
LANES = 256

ADDED = ("sum", "mean", "vecdot", "var")
"""Reductions whose steps are additions."""

Parts = tuple[np.ndarray, ...]


def row_lanes(length: int) -> int:
    """Return the number of lanes in which a row of this length is added."""
    return min(LANES, max(1, _power_of_two(length) // 2))


def column_block(numbers: int) -> int:
    """Return the records in a block of a fold over items of `numbers` numbers."""
    return min(max(_power_of_two_below((1 << 16) // max(numbers, 1)), 16), 4096)


def fold_block(item_numbers: int) -> int:
    """Return the records in a canonical block of a fold over the stream."""
    return BLOCK if item_numbers == 1 else column_block(item_numbers)


def _power_of_two(value: int) -> int:
    """Return the smallest power of two not below `value`."""
    return 1 << max(0, value - 1).bit_length()


def _power_of_two_below(value: int) -> int:
    return 1 << (max(1, value).bit_length() - 1)


def identity(op: str, dtype: np.dtype) -> Any:
    """Return the identity of a reduction. It is -0.0 for sums of floats, which keeps the sign of zero sums."""
    if op in ADDED:
        return dtype.type(-0.0) if is_float(dtype) else dtype.type(0)
    if op == "prod":
        return dtype.type(1)
    if op in ("any", "all"):
        return np.bool_(op == "all")
    lowest = op in ("max", "argmax")
    if is_float(dtype):
        return dtype.type(-math.inf if lowest else math.inf)
    if dtype.kind == "b":
        return np.bool_(not lowest)
    return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max


def canonical_nan(array: np.ndarray) -> np.ndarray:
    """Replace every NaN by the positive quiet one, in place, and return the array.

    The NaN that arithmetic produces depends on the compiler.
    """
    if array.dtype.kind == "f":
        nan = np.isnan(array)
    else:
        with np.errstate(invalid="ignore"):  # ml_dtypes finds signalling ones invalid
            nan = np.isnan(array)
    if nan.any():
        np.copyto(array, np.nan, where=nan, casting="unsafe")
    return array


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the larger number, or NaN if either is NaN. Of zeros of different sign it is +0, in any order."""
    result = np.maximum(a, b)
    return np.asarray(np.where((a == 0) & (b == 0), a + b, result) if is_float(result.dtype) else result)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the smaller number, or NaN if either is NaN. Of zeros of different sign it is -0, in any order."""
    result = np.minimum(a, b)
    return np.asarray(np.where((a == 0) & (b == 0), -(-a + -b), result) if is_float(result.dtype) else result)


def first_wins(op: str, a: Parts, b: Parts) -> Parts:
    """Return the (value, index) pair that argmin or argmax selects: the first NaN, otherwise the first optimum."""
    (value_a, index_a), (value_b, index_b) = a, b
    better = value_b > value_a if op == "argmax" else value_b < value_a
    if is_float(value_a.dtype):
        nan_a, nan_b = np.isnan(value_a), np.isnan(value_b)
        better = np.where(nan_a | nan_b, nan_b & ~nan_a, better)
        same = (value_a == value_b) | (nan_a & nan_b)
    else:
        same = value_a == value_b
    better = better | (same & (index_b < index_a))
    return np.where(better, value_b, value_a), np.where(better, index_b, index_a)


def combine(op: str, a: Parts, b: Parts) -> Parts:
    """Compute one step inside a block: accumulator parts `a`, then `b`."""
    if op in ("argmin", "argmax"):
        return first_wins(op, a, b)
    if op in ADDED:
        return tuple(x + y for x, y in zip(a, b, strict=True))
    if op == "prod":
        return (a[0] * b[0],)
    if op in ("any", "all"):
        return ((a[0] | b[0]) if op == "any" else (a[0] & b[0]),)
    return (maximum(a[0], b[0]) if op == "max" else minimum(a[0], b[0]),)


def reduce_rows(op: str, parts: Parts) -> Parts:
    """Reduce the last axis in canonical order, vectorised over the leading axes."""
    length = parts[0].shape[-1]
    lanes = row_lanes(length)
    blocks = max(1, -(-length // BLOCK))
    if blocks == 1:
        return reduce_block(op, parts, lanes)
    whole = tuple(part[..., : (blocks - 1) * BLOCK].reshape(*part.shape[:-1], blocks - 1, BLOCK) for part in parts)
    tail = tuple(part[..., (blocks - 1) * BLOCK :] for part in parts)
    done = tuple(
        np.concatenate([a, b[..., None]], axis=-1)
        for a, b in zip(reduce_block(op, whole), reduce_block(op, tail), strict=True)
    )
    wide = tuple(part.astype(merge_dtype(part.dtype)) for part in done)
    merged = _merge_aligned(op, wide)
    return tuple(part.astype(first.dtype) for part, first in zip(merged, parts, strict=True))


def merge_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which blocks are merged: float64 for float32."""
    return FLOAT64 if dtype == FLOAT32 else dtype


def _merge_aligned(op: str, parts: Parts) -> Parts:
    while parts[0].shape[-1] > 1:
        count = parts[0].shape[-1]
        even = tuple(part[..., 0 : count - count % 2 : 2] for part in parts)
        odd = tuple(part[..., 1::2] for part in parts)
        merged = combine(op, even, odd)
        if count % 2:
            merged = tuple(np.concatenate([m, part[..., -1:]], axis=-1) for m, part in zip(merged, parts, strict=True))
        parts = merged
    return tuple(part[..., 0] for part in parts)


def identities(op: str, parts: Parts) -> list[Any]:
    """Return the identity of each accumulator part.

    The index of (value, index) pairs is the largest integer, which loses to any other.
    """
    if op in ("argmin", "argmax"):
        return [identity(op, parts[0].dtype), np.iinfo(np.int64).max]
    return [identity(op, part.dtype) for part in parts]


def reduce_block(op: str, parts: Parts, lanes: int = LANES) -> Parts:
    """Reduce at most four steps in order, then the lanes as a tree by halves.

    Args:
        op: the reduction.
        parts: accumulators `(..., numbers)`, of at most `BLOCK` numbers.
        lanes: a power of two. Those without numbers, and steps, have the identity, which changes nothing.
    """
    length = parts[0].shape[-1]
    steps = max(1, -(-length // lanes))
    padded = []
    for part, fill in zip(parts, identities(op, parts), strict=True):
        room = np.empty((*part.shape[:-1], steps * lanes), part.dtype)
        room[..., :length], room[..., length:] = part, fill
        padded.append(room.reshape(*part.shape[:-1], steps, lanes))
    total = tuple(part[..., 0, :] for part in padded)
    for step in range(1, steps):
        total = combine(op, total, tuple(part[..., step, :] for part in padded))
    while lanes > 1:
        lanes //= 2
        if op in ADDED and len(total) == 1:
            # The loss of each step of a training: for few numbers the tuples of the general case take longer.
            total = (total[0][..., :lanes] + total[0][..., lanes:],)
            continue
        total = combine(op, tuple(t[..., :lanes] for t in total), tuple(t[..., lanes : 2 * lanes] for t in total))
    if length == 0 and op in ("sum", "vecdot", "mean"):
        return tuple(np.zeros(part.shape[:-1], part.dtype) for part in parts)
    return tuple(t[..., 0] for t in total)


LEVELS = 40
"""Levels of a tree over a stream of unknown length, enough for 2^40 blocks."""


def tree_levels(length: int | None, block: int) -> int:
    """Return the most nodes that wait in the tree over a stream of this length."""
    return LEVELS if length is None else min(LEVELS, max(1, (length // block).bit_length()))


def largest_nodes(first: int, count: int) -> Iterator[tuple[int, int]]:
    """Return the fewest nodes that `count` blocks from number `first` on make: first block and level of each."""
    place = 0
    while place < count:
        level = (count - place).bit_length() - 1
        if index := first + place:
            level = min(level, (index & -index).bit_length() - 1)
        yield place, level
        place += 1 << level


def waiting_nodes(first: int, blocks: int) -> int:
    """Return the most nodes that wait in the tree over so many blocks, the first of which has this index.

    Each level has one that waits for the right half, and one whose left half lies before the first block.
    """
    levels = max(1, blocks.bit_length())
    return levels + (max(0, levels - (first & -first).bit_length() + 1) if first else 0)


def product_block(numbers: int) -> int:
    """Return the records in a block of a product, from the numbers of all operands in a record.

    They are more than `column_block`, since a block's result is a matrix. One BLAS product over the records should cost
    more than adding that matrix.
    """
    return min(max(1 << (((1 << 20) // max(numbers, 1)) | 1).bit_length() - 1, 256), 4096)


SKETCH_RECORDS = 8192
"""Records in a block of the sketch, and numbers stored in a node."""
