"""Resident operands that do not fit into a discrete device together: what stays, and what passes through, and how."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from flowcompute.fuse import WeightTiles
from flowcompute.graph import Graph
from flowcompute.ir import Argument, Kernel
from flowcompute.lower.matmul import cut_factor
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.steps import RegionStep, Step

VECTOR_NUMBERS = 16
"""Numbers that are repeated behind a resident operand that is read cyclically."""

HEADROOM = 8 / 9
"""Of a device's budget what the plan gives away: sizes of buffers are rounded up by an eighth at most."""

LAUNCH_COST_BYTES = 3 << 20
"""What a batch or launch costs beside its bytes, as what a bus carries in that time: 60 microseconds at 55 GB/s."""

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
        streamed: values that are uploaded anew for each kernel that reads them.
        weight_tiles: of those that pass part by part.
        ring: buffers that these go through: one more than a kernel reads, which the next is uploaded into.
        transfer_plan: of each value that passes, the bytes that cross the bus with a batch.
        launches: of kernels with a batch, beside one of each: those for panels.
    """

    lines: tuple[tuple[str, int], ...]
    streamed: frozenset[int] = frozenset()
    weight_tiles: Mapping[int, WeightTiles] = field(default_factory=dict)
    ring: int = 0
    transfer_plan: Mapping[int, int] = field(default_factory=dict)
    launches: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all of it."""
        return sum(size for _, size in self.lines)

    @property
    def cost_bytes(self) -> int:
        """What it adds to a batch: bytes that cross the bus, and launches as what it carries meanwhile."""
        return sum(self.transfer_plan.values()) + self.launches * LAUNCH_COST_BYTES


class Residents:
    """The resident operands of a pass, and where they are when they have so much room.

    As much as fits stays, the largest operands first, since each of them saves most; the others pass through. Factors
    of products may pass in panels, which leaves more room for the rest and takes more launches.

    Args:
        graph: what is planned.
        one_pass: of it.
    """

    def __init__(self, graph: Graph, one_pass: Pass) -> None:
        self._nodes = graph.nodes
        self._sizes = {value: graph.nodes[value].spec.item_bytes for value in _movable(graph, one_pass)}
        self._fixed = _lines(graph, one_pass, frozenset(self._sizes))
        self._order = sorted(self._sizes, key=lambda value: (-self._sizes[value], value))
        steps = [step for step in one_pass.steps if isinstance(step, RegionStep) and step.kernel is not None]
        self._readers = [self._sizes.keys() & read_as_they_are(kernel) for kernel in kernels_of(steps)]
        self._boundaries = [cut_factor(graph, step.region) for step in steps]
        # Of what several kernels read all must take the same panels.
        uses = [(value, cut) for read, cut in zip(self._readers, self._boundaries, strict=True) for value in read]
        whole = {value for value, cut in uses if cut is None or cut[0] != value}
        axes = {cut for _, cut in uses if cut is not None and cut[0] not in whole}
        self._axes = {value: axis for value, axis in axes if (value, -3 - axis) not in axes}
        self._at: dict[int, tuple[dict[int, WeightTiles | None], dict[int, int]]] = {}
        self._limits = self._steps()

    def _steps(self) -> tuple[int, ...]:
        """Bytes that what passes may take in one piece: from whole operands down to the smallest panels."""
        limit = max(self._sizes.values(), default=0)
        least = max([self._piece(value, self._weight_tiles(value, 0)) for value in self._axes], default=limit)
        steps = []
        while limit > least:
            steps.append(limit)
            limit = limit * 3 // 4
        return (*steps, least)

    def _weight_tiles(self, value: int, limit_bytes: int) -> WeightTiles | None:
        if value not in self._axes:
            return None
        return WeightTiles.within(value, self._nodes[value].spec, self._axes[value], limit_bytes)

    def _pieces(self, limit_bytes: int) -> tuple[dict[int, WeightTiles | None], dict[int, int]]:
        """Of each operand its panels within a limit, and the bytes of what passes at a time."""
        if limit_bytes not in self._at:
            weight_tiles = {value: self._weight_tiles(value, limit_bytes) for value in self._order}
            self._at[limit_bytes] = (
                weight_tiles,
                {value: self._piece(value, weight_tiles[value]) for value in self._order},
            )
        return self._at[limit_bytes]

    def _piece(self, value: int, weight_tiles: WeightTiles | None) -> int:
        return self._sizes[value] if weight_tiles is None else weight_tiles.part(self._nodes[value].spec).item_bytes

    @property
    def largest_whole(self) -> str | None:
        """The name of the operand that takes most as a whole; None where panels take more."""
        weight_tiles, pieces = self._pieces(0)
        wholes = [(self._sizes[value], self._nodes[value].name) for value in self._order if weight_tiles[value] is None]
        wholes += [(size, name) for name, size in self._fixed]
        cut = [pieces[value] for value, own in weight_tiles.items() if own is not None]
        size, name = max(wholes, default=(0, None))
        return name if size > max(cut, default=0) else None

    @cached_property
    def least(self) -> Residency:
        """What takes least room: the smallest panels, and no buffers to pass through for what takes less than these."""
        _, pieces = self._pieces(0)
        order = sorted(self._order, key=lambda value: -pieces[value])
        staying = [0, *itertools.accumulate(self._sizes[value] for value in order)]

        def size(stay: int) -> int:
            rest = order[stay:]
            return staying[stay] + (self._ring(rest) * pieces[rest[0]] if rest else 0)

        return self._placed(order[min(range(len(staying)), key=size) :], 0, 0)

    def within(self, room_bytes: int) -> Residency:
        """What costs least of all that fits; `least` where nothing does."""
        best: Residency | None = None
        for limit in self._limits:
            one = self._placed(self._streamed(limit, room_bytes), limit, room_bytes)
            if not one.streamed:
                return one
            if one.size_bytes <= room_bytes and (best is None or one.cost_bytes < best.cost_bytes):
                best = one
            if best is not None and one.launches * LAUNCH_COST_BYTES >= best.cost_bytes:
                # Smaller panels take more launches than they can save.
                break
        return best or self.least

    def _placed(self, streamed: Collection[int], limit_bytes: int, room: int) -> Residency:
        """With these operands passing, of which as many panels within a limit stay as there is room for."""
        passes = frozenset(streamed)
        stay = [(self._nodes[value].name, self._sizes[value]) for value in self._order if value not in passes]
        lines = [*self._fixed, *stay]
        if not streamed:
            return Residency(tuple(lines))
        weight_tiles, pieces = self._pieces(limit_bytes)
        ring, largest = self._ring(streamed), max(pieces[value] for value in streamed)
        free = max(0, room - sum(size for _, size in lines) - ring * largest)
        cut: dict[int, WeightTiles] = {}
        for value in streamed:
            if (own := weight_tiles[value]) is not None:
                kept = min(free // pieces[value], own.count - 1)
                free -= kept * pieces[value]
                cut[value] = replace(own, kept=kept)
                if kept:
                    lines.append((f"{self._nodes[value].name} ({kept} of {own.count} panels)", kept * pieces[value]))
        lines.append((f"operands that pass through x {ring}", ring * largest))
        return Residency(tuple(lines), passes, cut, ring, *self._transfer_plan(streamed, cut, pieces))

    def _ring(self, streamed: Collection[int]) -> int:
        """Buffers: as many as a kernel reads, and one that the next operand is uploaded into."""
        passes = frozenset(streamed)
        return max(len(read & passes) for read in self._readers) + 1

    def _streamed(self, limit_bytes: int, room: int) -> list[int]:
        """What passes with so much room, where the largest operands stay as far as they fit."""
        free = room - sum(size for _, size in self._fixed)
        streamed: list[int] = []
        if not self._order or sum(self._sizes.values()) <= free:
            return streamed
        _, pieces = self._pieces(limit_bytes)
        for ring in range(2, self._ring(self._order) + 1):
            streamed, left, largest = [], free, 0
            for value, after in itertools.zip_longest(self._order, self._order[1:]):
                beside = max(largest, 0 if after is None else pieces[after])
                if self._sizes[value] + ring * beside <= left:
                    left -= self._sizes[value]
                else:
                    streamed.append(value)
                    largest = max(largest, pieces[value])
            if self._ring(streamed) <= ring:
                break
        return streamed

    def _transfer_plan(
        self, streamed: Collection[int], weight_tiles: Mapping[int, WeightTiles], pieces: Mapping[int, int]
    ) -> tuple[dict[int, int], int]:
        """Of each value that passes the bytes of a batch, and how many more launches there are than kernels."""
        transfer_plan, more = dict.fromkeys(streamed, 0), 0
        for read, cut in zip(self._readers, self._boundaries, strict=True):
            own = None if cut is None else weight_tiles.get(cut[0])
            launches = 1 if own is None else own.count
            more += launches - 1
            for value in read.intersection(streamed):
                times = own.count - own.kept if own is not None and own.value == value else launches
                transfer_plan[value] += times * pieces[value]
        return transfer_plan, more


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
    values = (value for kernel in kernels_of(one_pass.steps) for value in read_as_they_are(kernel))
    read = {value for value in values if not graph.nodes[value].spec.is_stream}
    once = kernels_of((*one_pass.before, *one_pass.after))
    return sorted(read - {one.value for kernel in once for one in _operands(graph, kernel)})


def _operands(graph: Graph, kernel: Kernel) -> list[Argument]:
    """A kernel's arguments that are resident arrays."""
    arrays = [one for one in kernel.arguments if one.kind in ("input", "output")]
    return [one for one in arrays if not graph.nodes[one.value].spec.is_stream]


def read_as_they_are(kernel: Kernel) -> list[int]:
    """Values that a kernel reads where they lie, in the order of its arguments."""
    return [one.value for one in kernel.arguments if one.kind == "input" and not one.period]


def kernels_of(steps: Iterable[Step]) -> list[Kernel]:
    """The kernels of steps."""
    return [step.kernel for step in steps if isinstance(step, RegionStep) and step.kernel is not None]
