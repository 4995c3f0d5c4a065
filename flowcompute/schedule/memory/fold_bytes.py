"""Upper bounds on the bytes of the state of a fold over the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowcompute.ir import (
    MOST_PRODUCTS,
    SKETCH_RECORDS,
    SLICE_NUMBERS,
    FoldSpec,
    HostFold,
    ProductShape,
    SegmentShape,
    product_block,
    tree_levels,
    waiting_nodes,
)


def fold_state_bytes(fold: FoldSpec | HostFold, length: int | None) -> int:
    """Count the bytes that the state of a fold takes at most over a stream of `length` records (None: unknown)."""
    if isinstance(fold, HostFold):
        return HOST_FOLD_BYTES[fold.op](fold, length)
    width = sum(max(8, dtype.itemsize) for dtype in fold.parts())
    # Besides the tree's nodes: a partial result, and two blocks that the ends of a batch divide.
    kept = fold.numbers * width * (tree_levels(length, fold.block) + 4)
    return kept + (fold.block * width if fold.numbers == 1 else 0)


def _counts(fold: HostFold, length: int | None) -> int:
    """Count the result, its copy for a slice, and what a slice takes."""
    del length
    return 2 * fold.result.item_bytes + 40 * SLICE_NUMBERS


def _covariance(fold: HostFold, length: int | None) -> int:
    """Count the nodes of the tree, what merging takes, and the records of an unfinished block, also in float64."""
    block = product_block(2 * fold.numbers)
    node = (fold.numbers + fold.numbers**2) * 8
    return node * (tree_levels(length, block) + 5) + block * (2 * fold.operands[0].item_bytes + 16 * fold.numbers)


def _end(fold: HostFold, length: int | None) -> int:
    """Count one record, and the one that replaces it."""
    del length
    return 2 * fold.operands[0].item_bytes


def _products(fold: HostFold, length: int | None) -> int:
    """Count the nodes of the tree, what merging takes, and the records of an unfinished block."""
    shape = ProductShape.of(fold)
    block = shape.block
    waiting = block if length is None else min(block, length)
    kept = 2 * waiting * sum(operand.item_bytes for operand in fold.operands)
    together = MOST_PRODUCTS if length is None else max(1, min(MOST_PRODUCTS, length // block))
    return shape.numbers * 8 * (tree_levels(length, block) + 4 + together) + kept


def device_fold_bytes(fold: HostFold, length: int | None, parts: Sequence[int] = ()) -> int:
    """Count the bytes on a discrete device that hold a fold: a tree and an open block, or sums; and the result.

    Args:
        fold: the fold.
        length: records of its stream; None if unknown.
        parts: where the parts of these records begin that several devices have, if they do.
    """
    if fold.op != "matmul":
        return fold.result.item_numbers * (8 + fold.result.dtype.itemsize) + 8
    shape = ProductShape.of(fold)
    opened = shape.opened_rows(length) * sum(operand.item_bytes // shape.rows for operand in fold.operands)
    # Beside the nodes that wait: one that is made, and two that are merged.
    nodes = tree_levels(length, shape.block) + 3
    for begin, end in zip(parts, [*parts[1:], length or 0], strict=False):
        nodes = max(nodes, waiting_nodes(begin // shape.block, (end - begin) // shape.block) + 3)
    return shape.numbers * (8 * nodes + fold.result.dtype.itemsize) + opened


def products_bytes(fold: HostFold, length: int | None) -> tuple[int, ...]:
    """Count the bytes on a discrete device that hold blocks which are multiplied together, and their products.

    All folds of a pass take the same.
    """
    shape = ProductShape.of(fold)
    together = shape.together(length)
    gathered = (together * shape.block * one.item_bytes if together > 1 else 0 for one in fold.operands)
    return together * shape.numbers * fold.operands[0].dtype.itemsize, *gathered


def merged_fold_bytes(fold: FoldSpec, length: int | None) -> int:
    """Count the bytes on a discrete device that merges the blocks of a fold: a tree, an open block, and the result."""
    wide = 8 * tree_levels(length, fold.block) + fold.dtype.itemsize + fold.result_dtype.itemsize
    return fold.numbers * wide


def device_fold_item_bytes(fold: HostFold) -> int:
    """Count the bytes beside it for each record of a batch: which rows belong to which key."""
    return 0 if fold.op == "matmul" else 24 * SegmentShape.of(fold).rows


def _segments(fold: HostFold, length: int | None) -> int:
    """Count the rows, their counts, the result made of them, and what a slice takes."""
    del length
    return fold.result.item_numbers * 24 + fold.result.shape[0] * 8 + 40 * (SLICE_NUMBERS + fold.numbers)


def _sketch(fold: HostFold, length: int | None) -> int:
    """Count the nodes, an unfinished block, what a merge takes, and all of them in order for the result.

    Of items of several numbers blocks are reduced one by one, and results made number by number.
    """
    levels = tree_levels(length, SKETCH_RECORDS)
    columns = 0 if fold.item == () else fold.numbers * (2 * levels + 12)
    return SKETCH_RECORDS * 8 * (5 * levels + 40 + columns)


def _top_k(fold: HostFold, length: int | None) -> int:
    """Count what is kept, and what choosing from it and a slice takes."""
    del length
    return 64 * (fold.result.shape[0] + SLICE_NUMBERS)


def _different(fold: HostFold, length: int | None) -> int:
    """Count what is kept, and what a slice takes and is merged with."""
    del length
    return 96 * (fold.result.shape[0] + SLICE_NUMBERS + fold.numbers)


def _trained(fold: HostFold, length: int | None) -> int:
    """Count the value that the steps carry on, the next one, and that of a checkpoint being written."""
    del length
    return 3 * fold.result.item_bytes


def _all_records(fold: HostFold, length: int | None) -> int:
    """Count the records as they come, and as one array."""
    del length
    return 2 * fold.result.item_bytes


HOST_FOLD_BYTES: dict[str, Callable[[HostFold, int | None], int]] = {
    "all_records": _all_records,
    "bincount": _counts,
    "corrcoef": _covariance,
    "cov": _covariance,
    "first": _end,
    "histogram": _counts,
    "last": _end,
    "matmul": _products,
    "quantile": _sketch,
    "segment_max": _segments,
    "segment_mean": _segments,
    "segment_min": _segments,
    "segment_sum": _segments,
    "top_k_indices": _top_k,
    "top_k_values": _top_k,
    "trained": _trained,
    "unique_counts": _different,
    "unique_values": _different,
}
"""Functions that count the state bytes of each host fold, by name, for a stream length that may be None."""
