"""Bytes that wait where values enter a clock."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.graph import Graph, Node
from flowcompute.rewrite import Entry


def span(node: Node | None) -> tuple[int, int]:
    """Records that one record of the new clock is made of, and by how many the next one lies further."""
    if node is not None and node.op is not None:
        if node.op.name == "window":
            return int(node.attrs["size"]), int(node.attrs["step"])
        if node.op.name == "cut":
            return int(node.attrs["every"]), int(node.attrs["every"])
    return 1, 1


def padding(node: Node) -> tuple[int, int]:
    """Records that a window adds before and after the stream."""
    return int(node.attrs["before"]), int(node.attrs["after"])


def most_records(entry: Entry, rooms: Sequence[int]) -> int:
    """The most records that enter when the clocks they come from take `rooms` records at a time."""
    node, room = entry.node, max(rooms)
    if node is None or node.op is None:
        return room
    name, attrs = node.op.name, node.attrs
    if name == "section":
        return room // int(attrs["step"]) + 1
    if name == "repeat":
        return room * int(attrs["count"])
    if name == "flatten":
        return room * int(attrs["numbers"])
    if name in ("cut", "each"):
        return room // int(attrs["every"]) + 1
    if name == "window":
        return (room + sum(padding(node))) // int(attrs["step"]) + 1
    return room


def base_item_bytes(graph: Graph, entry: Entry) -> int:
    """Bytes that an inlet holds for each record of the new clock."""
    spec = graph.nodes[entry.value].spec
    if entry.node is None or entry.node.op is None or entry.node.op.name != "window":
        return spec.item_bytes
    _, step = span(entry.node)
    return spec.item_bytes // int(entry.node.attrs["size"]) * step


def extra_items(entry: Entry) -> int:
    """Records of the new clock that an inlet holds beside those of a batch."""
    size, step = span(entry.node)
    return -(-size // step) + 1
