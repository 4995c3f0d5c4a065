"""Sizes of the state of self-attention along the stream, and of tiles of attention's gradient."""

from __future__ import annotations

from flowcompute.graph import Node
from flowcompute.spec import FLOAT16

ATTENTION_KEYS = 64
"""Keys of a tile, which count from the first record of a text."""

PART_ROWS = 64
"""Rows of a tile that passes by a work-group, of a part of attention's gradient."""
PART_STAGES = 2
"""Tiles in local memory at a time."""

FIRST_ROWS = 256
"""Rows of keys and values of a text that a device with memory of its own takes first: whole tiles."""

_UNBOUNDED = 1 << 62


def rows_seen(node: Node) -> int:
    """Return how many records before its own a record may need: whole tiles of the window, or all of its text."""
    window, context = node.attrs["window"], node.attrs["context"]
    limits: list[int | None] = [context, node.spec.length, None if window is None else window + ATTENTION_KEYS - 2]
    return max(0, min(limit for limit in (*limits, _UNBOUNDED) if limit is not None))


def rows_kept(node: Node) -> int:
    """Return how many rows of keys and values are kept beside those of a batch.

    A tile may be read behind the last row. With a window, rows are moved once in as many records as stay.
    """
    return rows_seen(node) * (1 if node.attrs["window"] is None else 2) + ATTENTION_KEYS - 1


def rows_taken(rows: int, most: int) -> int:
    """Return how many rows a device takes where so many are needed: all of them, halved as often as these fit.

    Args:
        rows: of a text that are needed, `most` at most.
        most: rows that a text may ever need; see `rows_kept`.
    """
    while (half := -(-most // 2)) >= max(rows, FIRST_ROWS):
        most = half
    return most


def slots_of(node: Node) -> int:
    """Return how many texts may be open at once; each has rows of its own."""
    slots: int = node.attrs.get("slots", 1)
    return slots


def row_bytes(node: Node) -> int:
    """Count the bytes of the keys and values of a record."""
    return sum(one.spec.item_numbers for one in node.element.inputs[1:3]) * node.spec.dtype.itemsize


def part_width(numbers: int) -> int:
    """Return the halves of a row in local memory: 64 bytes, or a multiple of 128."""
    return 32 if numbers <= 32 else -(-numbers // 64) * 64


def part_bytes(size: int, columns: int, edges: int = 1) -> int:
    """Count the bytes of local memory in which tensor cores multiply a part of the gradient of attention.

    Args:
        size: numbers of a query and of a key.
        columns: numbers of a value.
        edges: a work-group has so many times 64 rows.
    """
    return (edges + PART_STAGES) * PART_ROWS * (part_width(size) + part_width(columns)) * FLOAT16.itemsize
