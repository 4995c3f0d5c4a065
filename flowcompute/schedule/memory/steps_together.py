"""Bytes of steps of a training that are on their way together in the host's memory."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute.elements import Kind
from flowcompute.graph import Graph
from flowcompute.schedule.plan import NEXT_STEP, STEPS_TOGETHER, Pass
from flowcompute.schedule.steps import NodeStep, RegionStep

MOST = 16
"""Steps in one launch at most: by then the launch itself is a hundredth of them."""

MOST_BYTES = 64 << 20
"""Bytes that steps in one launch take at most beside the first. Those that read more are long without that."""

KERNEL_BYTES = 2 << 10
"""Bytes of a kernel in the tables of a launch, for each step: its arguments, phases and counters, at most."""


def room_for_steps(
    graph: Graph, passes: Sequence[Pass], largest: Pass, results_bytes: int, depth: int, room_bytes: int
) -> tuple[int, list[tuple[str, int]]]:
    """Return how many steps may be on their way beside the one in hand, with the lines of their bytes.

    More than one are launched together: there are two more sets of results, and for each step records, what folds read
    of them, and tables.

    Args:
        graph: of the step.
        passes: of the step.
        largest: the one whose records are held.
        results_bytes: what a step makes.
        depth: batches of records that there is room for.
        room_bytes: that nothing else takes.
    """
    clocks = largest.clocks
    read = sum(clock.batch_items * source.spec.item_bytes for clock in clocks for source in clock.sources)
    one = results_bytes + (read if depth == 1 else 0)
    if one > room_bytes:
        return 0, []
    steps = [(clock.batch_items, step) for clock in clocks for step in clock.steps]
    folds = [(items, step.node) for items, step in steps if isinstance(step, NodeStep) and step.node.kind is Kind.FOLD]
    folded = sum(items * graph.nodes[i].spec.item_bytes for items, node in folds for i in node.inputs)
    regions = [step for one in passes for step in (*one.before, *one.steps, *one.after) if isinstance(step, RegionStep)]
    tables = KERNEL_BYTES * sum(1 + len(step.region.folds) for step in regions)

    def bytes_of(count: int) -> int:
        return 2 * results_bytes + max(0, count - depth) * read + count * (folded + tables)

    room_bytes = min(room_bytes, MOST_BYTES)
    count = next((count for count in range(MOST, 1, -1) if bytes_of(count) <= room_bytes), 1)
    return (1, [(NEXT_STEP, one)]) if count == 1 or len(passes) > 1 else (count, [(STEPS_TOGETHER, bytes_of(count))])
