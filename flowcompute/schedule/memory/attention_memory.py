"""Memory for the keys and values that self-attention looks back on."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.elements.nn import SELF_ATTENTION
from flowcompute.graph import Graph
from flowcompute.ir import row_bytes, rows_kept, slots_of
from flowcompute.schedule.memory.batch_buffers import BatchBuffers
from flowcompute.schedule.steps import Step, scan_in

ATTENTION_STATE = "(keys and values)"
"""End of its name in the memory plan."""


def attention_state(graph: Graph, steps: Sequence[Step], clock: int) -> list[BatchBuffers]:
    """Return the rows of keys and values that the steps of a clock keep, beside those of a batch."""
    scans = (graph.nodes[i] for i in map(scan_in, steps) if i >= 0)
    return [
        BatchBuffers(f"{node.name} {ATTENTION_STATE}", row_bytes(node), slots_of(node), clock, rows_kept(node))
        for node in scans
        if node.op is SELF_ATTENTION
    ]
