"""What devices hold that a run has beside its main one: all that their kernels read, as nothing passes through them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from flowcompute.errors import PlanError
from flowcompute.graph.graph import Graph
from flowcompute.planner.backend import Backend
from flowcompute.planner.crossing import Crossing, device_edges
from flowcompute.planner.edge import Edge
from flowcompute.planner.fold import FoldSpec
from flowcompute.planner.plan import Pass
from flowcompute.planner.residency import HEADROOM, Residents, device_budget
from flowcompute.strategy import Config

Lines = tuple[tuple[str, int], ...]
"""Names and bytes."""


def lines_beside(
    graph: Graph,
    one_pass: Pass,
    folds: dict[int, FoldSpec],
    config: Config,
    backend: Backend,
    depth: int,
    line: Callable[[Edge], tuple[str, int]],
) -> Lines:
    """The bytes of the other devices that have memory of their own.

    Args:
        depth: batches in flight.
        line: the bytes of what grows with the batch, at the size that was chosen.

    Raises:
        PlanError: naming what takes most, where that does not fit one of them.
    """
    found: Lines = ()
    for number, seat in enumerate(backend.seats):
        if seat.traits.host_memory or number == backend.main:
            continue
        mine = one_pass.on_seat(number)
        edges = device_edges(graph, mine, folds, Crossing.of(one_pass, by_hand=config.by_hand, seat=number), depth)
        lines = (*Residents(graph, mine).within(sys.maxsize).lines, *map(line, edges))
        _check(lines, device_budget(seat.traits.memory_bytes, config.device_memory_bytes))
        found += tuple((f"{what} on {seat.traits.name}", size) for what, size in lines)
    return found


def _check(lines: Sequence[tuple[str, int]], budget_bytes: int) -> None:
    needed = sum(size for _, size in lines)
    if needed > int(budget_bytes * HEADROOM):
        what, size = max(lines, key=lambda one: one[1])
        raise PlanError(
            "the device's memory is too small for what is placed there",
            element=what,
            expected=f"at least {int(needed / HEADROOM) + 1} bytes",
            got=f"{budget_bytes} bytes; {what} alone takes {size}",
            hint="pin less to it with on(), or choose smaller batches with strategy=",
        )
