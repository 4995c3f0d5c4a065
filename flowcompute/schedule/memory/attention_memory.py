"""Memory for the keys and values that self-attention looks back on."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.elements.nn import SELF_ATTENTION
from flowcompute.graph import Graph, Node
from flowcompute.ir import row_bytes, rows_kept, slots_of
from flowcompute.schedule.memory.batch_buffers import BatchBuffers
from flowcompute.schedule.plan import Clock
from flowcompute.schedule.steps import Step, scan_in

ATTENTION_STATE = "(keys and values)"
"""End of its name in the memory plan."""


def attention_state(graph: Graph, steps: Sequence[Step], clock: int) -> list[BatchBuffers]:
    """Return the rows of keys and values that the steps of a clock keep, beside those of a batch."""
    return [
        BatchBuffers(f"{node.name} {ATTENTION_STATE}", row_bytes(node), slots_of(node), clock, rows_kept(node))
        for node in _attending(graph, steps)
    ]


def attention_growth(graph: Graph, clocks: Sequence[Clock]) -> list[BatchBuffers]:
    """Return what a device takes beside that while it makes room for more rows, of one operation at a time.

    They are copied from at most half as many; see `rows_taken`.
    """
    every = [(node, clock.id) for clock in clocks for node in _attending(graph, clock.steps)]
    if not every:
        return []
    largest, clock = max(every, key=lambda one: row_bytes(one[0]) * slots_of(one[0]) * rows_kept(one[0]))
    half, rows = row_bytes(largest) * slots_of(largest) // 2, rows_kept(largest) + 1
    return [BatchBuffers(f"{largest.name} (while its keys and values grow)", half, 1, clock, rows)]


def _attending(graph: Graph, steps: Sequence[Step]) -> list[Node]:
    scans = (graph.nodes[i] for i in map(scan_in, steps) if i >= 0)
    return [node for node in scans if node.op is SELF_ATTENTION]
