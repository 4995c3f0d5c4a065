"""Resident operands that do not fit into a discrete device together: which stay, and which pass through."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from flowcompute.graph.graph import Graph
from flowcompute.planner.kernel import Argument, Kernel
from flowcompute.planner.plan import Pass
from flowcompute.planner.steps import RegionStep, Step

VECTOR_NUMBERS = 16
"""Numbers that are repeated behind a resident operand that is read cyclically."""

HEADROOM = 8 / 9
"""Of a device's budget what the plan gives away: sizes of buffers are rounded up by an eighth at most."""

USED = 0.9
"""Of a device's memory what a run may take where the user does not say: drivers and others need some."""


def device_budget(memory_bytes: int, asked_bytes: int | None) -> int:
    """Bytes that a run may allocate on a discrete device of so much memory."""
    return min(int(memory_bytes * USED), memory_bytes if asked_bytes is None else asked_bytes)


@dataclass(frozen=True)
class Residency:
    """What of a pass lies on a discrete device whatever its batches are.

    Attributes:
        lines: name and bytes of each.
        passing: values that are uploaded anew for each kernel that reads them.
        ring: buffers that these go through: one more than a kernel reads, which the next is uploaded into.
        passing_bytes: bytes of these: what crosses the bus with each batch.
    """

    lines: tuple[tuple[str, int], ...]
    passing: frozenset[int] = frozenset()
    ring: int = 0
    passing_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all of it."""
        return sum(size for _, size in self.lines)


def residency(graph: Graph, one_pass: Pass, room_bytes: int) -> Residency:
    """As much as fits stays, the largest operands first, since each of them saves most; the others pass through."""
    movable, kernels = _movable(graph, one_pass), kernels_of(one_pass.steps)
    sizes = {value: graph.nodes[value].spec.item_bytes for value in movable}
    lines = _lines(graph, one_pass, frozenset(movable))
    together = [len({one.value for one in _operands(graph, kernel)} & sizes.keys()) for kernel in kernels]
    ring, taken = max(together, default=0) + 1, sum(size for _, size in lines)
    passing: list[int] = []
    order = sorted(movable, key=lambda value: (-sizes[value], value))
    for value, after in itertools.zip_longest(order, order[1:]):
        largest = passing[0] if passing else after
        beside = 0 if largest is None else ring * sizes[largest]
        if taken + sizes[value] + beside <= room_bytes:
            taken += sizes[value]
            lines.append((graph.nodes[value].name, sizes[value]))
        else:
            passing.append(value)
    if not passing:
        return Residency(tuple(lines))
    together = [len({one.value for one in _operands(graph, kernel)}.intersection(passing)) for kernel in kernels]
    ring = max(together) + 1
    lines.append((f"operands that pass through x {ring}", ring * sizes[passing[0]]))
    return Residency(tuple(lines), frozenset(passing), ring, sum(sizes[value] for value in passing))


def _lines(graph: Graph, one_pass: Pass, without: frozenset[int]) -> list[tuple[str, int]]:
    """What stays in any case: name and bytes."""
    kept: dict[tuple[int, str, bool], int] = {}
    for kernel in kernels_of((*one_pass.before, *one_pass.steps, *one_pass.after)):
        for one in _operands(graph, kernel):
            if one.period or one.value not in without:
                spec = graph.nodes[one.value].spec
                padding = VECTOR_NUMBERS if one.period else 0
                kept[one.value, one.kind, bool(one.period)] = (spec.item_numbers + padding) * spec.dtype.itemsize
    return [(graph.nodes[value].name, size) for (value, _, _), size in kept.items()]


def _movable(graph: Graph, one_pass: Pass) -> list[int]:
    """Operands that batches' kernels read as they are, and no other kernel of the pass makes or reads."""
    read = {
        one.value
        for kernel in kernels_of(one_pass.steps)
        for one in _operands(graph, kernel)
        if one.kind == "input" and not one.period
    }
    once = kernels_of((*one_pass.before, *one_pass.after))
    return sorted(read - {one.value for kernel in once for one in _operands(graph, kernel)})


def _operands(graph: Graph, kernel: Kernel) -> list[Argument]:
    """A kernel's arguments that are resident arrays."""
    arrays = [one for one in kernel.arguments if one.kind in ("input", "output")]
    return [one for one in arrays if not graph.nodes[one.value].spec.is_stream]


def kernels_of(steps: Iterable[Step]) -> list[Kernel]:
    """The kernels of steps."""
    return [step.kernel for step in steps if isinstance(step, RegionStep) and step.kernel is not None]
