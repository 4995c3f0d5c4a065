"""Sizes of the state of self-attention along the stream."""

from __future__ import annotations

from flowcompute.graph import Node

ATTENTION_KEYS = 64
"""Keys of a tile, which count from the first record of a text."""

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


def slots_of(node: Node) -> int:
    """Return how many texts may be open at once; each has rows of its own."""
    slots: int = node.attrs.get("slots", 1)
    return slots


def row_bytes(node: Node) -> int:
    """Count the bytes of the keys and values of a record."""
    return sum(one.spec.item_numbers for one in node.element.inputs[1:3]) * node.spec.dtype.itemsize
