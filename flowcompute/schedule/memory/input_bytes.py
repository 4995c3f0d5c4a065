"""Bytes of values that wait to enter a clock."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.graph import Graph, Node
from flowcompute.rewrite import Entry


def span(node: Node | None) -> tuple[int, int]:
    """Return the size and the step of the windows of records that make one record of the new clock."""
    if node is not None and node.op is not None:
        if node.op.name == "window":
            return int(node.attrs["size"]), int(node.attrs["step"])
        if node.op.name == "cut":
            return int(node.attrs["every"]), int(node.attrs["every"])
    return 1, 1


def padding(node: Node) -> tuple[int, int]:
    """Return the records that a window adds before and after the stream."""
    return int(node.attrs["before"]), int(node.attrs["after"])


def most_records(entry: Entry, batch_sizes: Sequence[int]) -> int:
    """Return the most records that enter if the clocks of origin advance by at most `batch_sizes` records."""
    node, most = entry.node, max(batch_sizes)
    if node is None or node.op is None:
        return most
    name, attrs = node.op.name, node.attrs
    if name == "section":
        return most // int(attrs["step"]) + 1
    if name == "repeat":
        return most * int(attrs["count"])
    if name == "flatten":
        return most * int(attrs["numbers"])
    if name in ("cut", "each"):
        return most // int(attrs["every"]) + 1
    if name == "window":
        return (most + sum(padding(node))) // int(attrs["step"]) + 1
    return most


def base_item_bytes(graph: Graph, entry: Entry) -> int:
    """Return the bytes that an input buffer holds for each record of the new clock."""
    spec = graph.nodes[entry.value].spec
    if entry.node is None or entry.node.op is None or entry.node.op.name != "window":
        return spec.item_bytes
    _, step = span(entry.node)
    return spec.item_bytes // int(entry.node.attrs["size"]) * step


def extra_items(entry: Entry) -> int:
    """Return the records of the new clock that an input buffer holds in addition to a batch."""
    size, step = span(entry.node)
    return -(-size // step) + 1
