"""Residency of weights that do not all fit a discrete device: which stay, and which are streamed, and in what tiles."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from flowcompute.fuse import WeightTiles
from flowcompute.graph import Graph
from flowcompute.imports import LateModule, dataclass
from flowcompute.ir import Argument, Kernel
from flowcompute.schedule.plan import Pass
from flowcompute.schedule.steps import RegionStep, Step

if TYPE_CHECKING:
    from flowcompute.lower import matmul
else:
    matmul = LateModule("flowcompute.lower.matmul")

VECTOR_NUMBERS = 16
"""Numbers that are repeated after a resident operand that is read cyclically."""

HEADROOM = 8 / 9
"""Fraction of a device's budget that the plan allocates. Buffer sizes are rounded up by an eighth at most."""

LAUNCH_COST_BYTES = 3 << 20
"""Cost of a batch or launch besides its bytes: the bytes that a bus transfers in 60 microseconds at 55 GB/s."""

USED = 0.9
"""Fraction of a device's memory that a run may use by default. Drivers and other processes need the rest."""


STAYING = 3 / 4
"""Fraction of a device's budget that given operands may take where kernels count on them to stay. Streams and the
state of scans have the rest."""


def device_budget(memory_bytes: int, asked_bytes: int | None) -> int:
    """Return the bytes that a run may allocate on a discrete device with `memory_bytes` of memory."""
    return min(int(memory_bytes * USED), memory_bytes if asked_bytes is None else asked_bytes)


def staying_bytes(memory_bytes: int, asked_bytes: int | None) -> float:
    """Return the bytes that operands which stay may take of a discrete device with `memory_bytes` of memory."""
    return STAYING * device_budget(memory_bytes, asked_bytes)


def all_stay(graph: Graph, memory_bytes: int, asked_bytes: int | None) -> bool:
    """Check whether a discrete device has room for all operands that a graph is given, beside batches."""
    given = sum(node.spec.item_bytes for node in graph.nodes if not node.inputs and not node.spec.is_stream)
    return given <= staying_bytes(memory_bytes, asked_bytes)


@dataclass(frozen=True)
class Residency:
    """Memory of a pass on a discrete device that does not depend on its batches.

    Attributes:
        lines: name and bytes of each buffer.
        streamed: values that are uploaded anew for each kernel that reads them.
        weight_tiles: the tiles of streamed values that are uploaded in tiles.
        ring: number of buffers for streamed values: one more than a kernel reads, for the next upload.
        uploaded_bytes: of each streamed value, the bytes that are uploaded for a batch.
        launches: additional launches of kernels for a batch, caused by tiles.
    """

    lines: tuple[tuple[str, int], ...]
    streamed: frozenset[int] = frozenset()
    weight_tiles: Mapping[int, WeightTiles] = field(default_factory=dict)
    ring: int = 0
    uploaded_bytes: Mapping[int, int] = field(default_factory=dict)
    launches: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of all buffers."""
        return sum(size for _, size in self.lines)

    @property
    def cost_bytes(self) -> int:
        """Cost added to a batch: uploaded bytes, and launches as the bytes transferred in their time."""
        return sum(self.uploaded_bytes.values()) + self.launches * LAUNCH_COST_BYTES


class Residents:
    """Resident operands of a pass, and their residency within a given memory size.

    The largest operands that fit stay, since each of them saves most; the others are streamed. Factors of products may
    be streamed in tiles, which leaves more room for other operands and takes more launches.

    Args:
        graph: the planned graph.
        one_pass: a pass of it.
    """

    def __init__(self, graph: Graph, one_pass: Pass) -> None:
        self._nodes = graph.nodes
        self._sizes = {value: graph.nodes[value].spec.item_bytes for value in _movable(graph, one_pass)}
        self._fixed = _lines(graph, one_pass, frozenset(self._sizes))
        self._order = sorted(self._sizes, key=lambda value: (-self._sizes[value], value))
        steps = [step for step in one_pass.steps if isinstance(step, RegionStep) and step.kernel is not None]
        self._readers = [self._sizes.keys() & direct_inputs(kernel) for kernel in kernels_of(steps)]
        self._boundaries = [matmul.cut_factor(graph, step.region) for step in steps]
        # Kernels that read the same operand must use the same tiles.
        uses = [(value, cut) for read, cut in zip(self._readers, self._boundaries, strict=True) for value in read]
        whole = {value for value, cut in uses if cut is None or cut[0] != value}
        # A factor that the device computes stays.
        factors = self._sizes.keys() - whole
        axes = {cut for _, cut in uses if cut is not None and cut[0] in factors}
        self._axes = {value: axis for value, axis in axes if (value, -3 - axis) not in axes}
        self._at: dict[int, tuple[dict[int, WeightTiles | None], dict[int, int]]] = {}
        self._limits = self._piece_limits()

    def _piece_limits(self) -> tuple[int, ...]:
        """Return the candidate sizes of streamed pieces in bytes: from whole operands to the smallest tiles."""
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
        """Return the tiles of each operand within a size limit, and the bytes that are streamed at a time."""
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
        """Name of the largest operand that is read as a whole; None if the largest piece is a tile."""
        weight_tiles, pieces = self._pieces(0)
        wholes = [(self._sizes[value], self._nodes[value].name) for value in self._order if weight_tiles[value] is None]
        wholes += [(size, name) for name, size in self._fixed]
        cut = [pieces[value] for value, own in weight_tiles.items() if own is not None]
        size, name = max(wholes, default=(0, None))
        return name if size > max(cut, default=0) else None

    @cached_property
    def least(self) -> Residency:
        """Residency of least memory.

        It uses the smallest tiles, and it streams no operand that needs less memory than the buffers for streaming.
        """
        _, pieces = self._pieces(0)
        order = sorted(self._order, key=lambda value: -pieces[value])
        staying = [0, *itertools.accumulate(self._sizes[value] for value in order)]

        def size(stay: int) -> int:
            rest = order[stay:]
            return staying[stay] + (self._ring(rest) * pieces[rest[0]] if rest else 0)

        return self._residency(order[min(range(len(staying)), key=size) :], 0, 0)

    def within(self, room_bytes: int) -> Residency:
        """Return the residency of least cost that fits, or `least` if none does."""
        best: Residency | None = None
        for limit in self._limits:
            one = self._residency(self._streamed(limit, room_bytes), limit, room_bytes)
            if not one.streamed:
                return one
            if one.size_bytes <= room_bytes and (best is None or one.cost_bytes < best.cost_bytes):
                best = one
            if best is not None and one.launches * LAUNCH_COST_BYTES >= best.cost_bytes:
                # Smaller tiles cost more in launches than they can save.
                break
        return best or self.least

    def _residency(self, streamed: Collection[int], limit_bytes: int, room: int) -> Residency:
        """Return the residency that streams these operands and stores as many of their tiles as fit."""
        streamed_values = frozenset(streamed)
        stay = [(self._nodes[value].name, self._sizes[value]) for value in self._order if value not in streamed_values]
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
                    lines.append((f"{self._nodes[value].name} ({kept} of {own.count} tiles)", kept * pieces[value]))
        lines.append((f"buffers of streamed operands x {ring}", ring * largest))
        return Residency(tuple(lines), streamed_values, cut, ring, *self._uploads(streamed, cut, pieces))

    def _ring(self, streamed: Collection[int]) -> int:
        """Return the number of buffers: as many as a kernel reads, and one for the next upload."""
        streamed_values = frozenset(streamed)
        return max(len(read & streamed_values) for read in self._readers) + 1

    def _streamed(self, limit_bytes: int, room: int) -> list[int]:
        """Return the operands to stream if the largest operands that fit stay."""
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

    def _uploads(
        self, streamed: Collection[int], weight_tiles: Mapping[int, WeightTiles], pieces: Mapping[int, int]
    ) -> tuple[dict[int, int], int]:
        """Return the bytes uploaded for a batch by streamed value, and the number of additional launches."""
        uploaded, more = dict.fromkeys(streamed, 0), 0
        for read, cut in zip(self._readers, self._boundaries, strict=True):
            own = None if cut is None else weight_tiles.get(cut[0])
            launches = 1 if own is None else own.count
            more += launches - 1
            for value in read.intersection(streamed):
                times = own.count - own.kept if own is not None and own.value == value else launches
                uploaded[value] += times * pieces[value]
        return uploaded, more


def _lines(graph: Graph, one_pass: Pass, without: frozenset[int]) -> list[tuple[str, int]]:
    """Return the names and bytes of operands that cannot be streamed, and of what kernels hand over."""
    kept: dict[tuple[int, str, bool], int] = {}
    room_bytes = 0
    for kernel in kernels_of((*one_pass.before, *one_pass.steps, *one_pass.after)):
        # One room serves all launches of a pass, which follow each other.
        arguments = kernel.arguments if kernel.of_few is None else kernel.of_few.arguments
        room_bytes = max([room_bytes, *(one.numbers * one.dtype.itemsize for one in arguments)])
        for one in _operands(graph, kernel):
            if one.period or one.value not in without:
                spec = graph.nodes[one.value].spec
                padding = VECTOR_NUMBERS if one.period else 0
                kept[one.value, one.kind, bool(one.period)] = (spec.item_numbers + padding) * spec.dtype.itemsize
    rooms = [("what work-groups hand over", room_bytes)] if room_bytes else []
    return [*((graph.nodes[value].name, size) for (value, _, _), size in kept.items()), *rooms]


def _movable(graph: Graph, one_pass: Pass) -> list[int]:
    """Return the operands that can be streamed.

    Kernels of batches read them directly, and no kernel outside of batches writes or reads them.
    """
    values = (value for kernel in kernels_of(one_pass.steps) for value in direct_inputs(kernel))
    read = {value for value in values if not graph.nodes[value].spec.is_stream}
    once = kernels_of((*one_pass.before, *one_pass.after))
    return sorted(read - {one.value for kernel in once for one in _operands(graph, kernel)})


def _operands(graph: Graph, kernel: Kernel) -> list[Argument]:
    """Return a kernel's arguments that are resident arrays."""
    arrays = [one for one in kernel.arguments if one.kind in ("input", "output")]
    return [one for one in arrays if not graph.nodes[one.value].spec.is_stream]


def direct_inputs(kernel: Kernel) -> list[int]:
    """Return the values that a kernel reads directly, not through cyclic copies, in argument order."""
    return [one.value for one in kernel.arguments if one.kind == "input" and not one.period]


def chosen_operands(graph: Graph, one_pass: Pass) -> dict[int, int]:
    """Return streamed operands of which a batch needs chosen matrices alone, and the streams of their numbers.

    What a second kernel reads, too, is needed whole.
    """
    steps = [step for step in one_pass.steps if isinstance(step, RegionStep) and step.kernel is not None]
    reading = [value for kernel in kernels_of(steps) for value in direct_inputs(kernel)]
    found = (matmul.chosen_matrices(graph, step.region) for step in steps)
    chosen = dict(pair for pair in found if pair is not None)
    return {value: chosen[value] for value in chosen if value in one_pass.streamed and reading.count(value) == 1}


def kernels_of(steps: Iterable[Step]) -> list[Kernel]:
    """Return the kernels of steps."""
    return [step.kernel for step in steps if isinstance(step, RegionStep) and step.kernel is not None]
