"""Rings and products by groups of an emulated work-group: what copies bring, in which order stages are given back."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from flowcompute import ir
from flowcompute.ir.nodes import Stmt, Var
from flowcompute.spec import FLOAT32
from tests.gpu.shared_memory import SharedMemory
from tests.support.index_values import condition_value, index_value

_INDICES = ("place", "column", "row", "matrix", "plane")
"""Fields of a copy of a box that are indices."""


class _Scalars(dict[str, Any]):
    """Values of one lane, which conditions may ask whether they are NaN."""

    def __init__(self, values: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.values_by_name = values

    def __missing__(self, name: str) -> np.ndarray:
        if name not in self.values_by_name:
            raise KeyError(name)
        return self.values_by_name[name][:, 0]


def multiplied_bits(numbers: np.ndarray) -> np.ndarray:
    """What tensor cores multiply: of float32 no more than 11 bits of the significand."""
    if numbers.dtype != FLOAT32:
        return numbers
    return (np.ascontiguousarray(numbers).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _swizzled(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the chunks of so many lines lie, and what lies there: their order is its own inverse."""
    lines = np.arange(count)[:, None]
    return lines, np.arange(8) ^ lines % 8


@dataclass(frozen=True)
class _Step:
    """What fills a stage, with the names that it is known by; the step behind which it waits, or -1; what prepares."""

    array: str
    copies: list[ir.BoxCopy]
    names: dict[str, int]
    behind: int
    prepare: tuple[Stmt, ...]


class Rings:
    """What work-items know, and what they do together in rings."""

    def __init__(self, work_items: int, memory: Mapping[int, np.ndarray], integers: Mapping[str, int]) -> None:
        self.memory = memory
        self.lid = np.arange(work_items)
        self.names: dict[str, Any] = {"lid": self.lid, **integers}
        self.mask = np.ones(work_items, bool)
        self.values: dict[str, np.ndarray] = {}
        self.local: dict[str, SharedMemory] = {}

    def statement(self, statement: Stmt) -> None:
        """Run one statement, by all work-items of the mask."""
        raise NotImplementedError

    def integer(self, value: ir.IndexLike | ir.ConditionLike) -> Any:
        names = ChainMap(self.names, _Scalars(self.values))
        if isinstance(value, bool | ir.Condition):
            return condition_value(value, names)
        return index_value(value, names)

    def each(self, value: ir.IndexLike | ir.ConditionLike) -> np.ndarray:
        made = self.integer(value)
        # Most are of all work-items already, and a view of them costs more than a comparison.
        return made if np.shape(made) == self.lid.shape else np.broadcast_to(made, self.lid.shape)

    def block(self, body: Iterable[Stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def under(self, mask: np.ndarray, body: Iterable[Stmt]) -> None:
        outer, self.mask = self.mask, self.mask & mask
        if self.mask.any():
            self.block(body)
        self.mask = outer

    def ring(self, loop: ir.RingLoop) -> None:
        """A tile: its copies are planned, and workers begin."""
        self.open_roles()
        self.plan_copies(loop, loop.prepare)
        self.work(loop.ring, (*loop.work, ir.PassSteps(loop.ring, loop.steps)))

    def roles(self, roles: ir.RingRoles) -> None:
        self.open_roles()
        self.under(self.lid == roles.ring.workers, roles.copies)
        self.work(roles.ring, roles.work)

    def open_roles(self) -> None:
        assert self.mask.all(), "all meet"
        for memory in self.local.values():
            memory.meet()
        self.planned: list[_Step] = []
        self.filled = self.freed = self.passed = 0
        self.stages_of: dict[str, int] = {}
        self.early: set[int] = set()
        self.turns: dict[int, str] = {}

    def work(self, ring: ir.OpenRing, body: tuple[Stmt, ...]) -> None:
        """As if copies were as far ahead of the work as the ring allows."""
        self.opened = ring
        self.fill()
        self.under(self.lid < ring.workers, body)
        assert self.filled == self.freed == self.passed == len(self.planned), "each stage is given back"
        rounds = max((turns.count("take") for turns in self.turns.values()), default=0)
        for group, turns in self.turns.items():
            begin = "pass " if group == ring.workers // 128 - 1 else ""
            assert turns == begin + "take pass " * rounds, "each group takes the turn and passes it, as often as others"

    def turn(self, groups: int, done: str) -> None:
        """Note that groups of the mask take the turn, or pass it."""
        here, counts = np.unique(self.lid[self.mask] // 128, return_counts=True)
        assert set(counts) == {128}, "all of a group meet"
        for group in here:
            assert group < groups, "a group that has no turn"
            self.turns[group] = self.turns.get(group, "") + f"{done} "

    def plan_copies(self, fill: ir.RingLoop | ir.FillStages, prepare: tuple[Stmt, ...] = ()) -> None:
        """Note the copies of all steps with their places; `fill` does them when their stages are free."""
        begin = len(self.planned)
        for step in range(int(self.integer(fill.steps))):
            names = {fill.step.name: step, fill.stage.name: (begin + step) % fill.ring.stages}
            self.names |= names
            copies = (fill.first if step == 0 else ()) + fill.fills[step % len(fill.fills)]
            placed = []
            for copy in copies:
                where: dict[str, Any] = {name: int(self.integer(getattr(copy, name))) for name in _INDICES}
                placed.append(replace(copy, **where))
            behind = begin - fill.behind if isinstance(fill, ir.FillStages) and fill.behind and step == 0 else -1
            self.planned.append(_Step(fill.array, placed, names, behind, prepare))

    def fill(self) -> None:
        """Fill the stages that are free, and prepare them."""
        workers, mask = self.names.copy(), self.mask
        while self.filled < min(self.freed + self.opened.stages, len(self.planned)):
            step = self.planned[self.filled]
            if self.freed <= step.behind and step.behind not in self.early:
                break
            for copy in step.copies:
                self.copy_box(step.array, copy)
            self.names |= step.names
            self.mask = self.lid >= self.opened.workers
            self.block(step.prepare)
            self.filled += 1
        self.names, self.mask = workers, mask

    def await_stage(self, one: ir.AwaitStage) -> None:
        """Stages are given back nearly in order; one that is given back early is free when those before it are."""
        step = self.passed + int(self.integer(one.step))
        assert self.freed <= step < self.filled, "a stage that is never filled is waited for"
        self.stages_of[one.stage.name] = step
        self.names[one.stage.name] = step % self.opened.stages

    def free_stage(self, one: ir.FreeStage) -> None:
        self.early.add(self.stages_of.pop(one.stage.name))
        while self.freed in self.early:
            self.early.remove(self.freed)
            self.freed += 1
        self.fill()

    def overlapped(self, several: ir.OverlappedMultiply) -> None:
        """Each product is done when it is waited for, with what its operands are then."""
        products = several.products
        for one, following in pairwise(products):
            assert not set(one.sums) & set(following.sums), "two products under way have the same sums"
        begun = [self.begin(one) for one in products[:2]]
        for number, behind in enumerate(several.behind):
            self.end(*begun[number])
            self.block(behind)
            begun += [self.begin(one) for one in products[number + 2 : number + 3]]

    def begin(self, product: ir.GroupMultiply) -> tuple[ir.GroupMultiply, dict[str, Any], dict[str, Any]]:
        """Take its sums away while a product is under way; return it with its sums and fragments."""
        sums = {var.name: self.values[var.name] for var in product.sums}
        given = {var.name: self.values[var.name] for var in product.a} if isinstance(product.a, tuple) else {}
        for name, held in sums.items():
            self.values[name] = np.full_like(held, np.nan)
        return product, sums, given

    def end(self, product: ir.GroupMultiply, sums: dict[str, Any], given: dict[str, Any]) -> None:
        for name, held in sums.items():
            assert np.isnan(self.values[name]).all(), "sums are touched while they are written"
            self.values[name] = held
        assert all(self.values[name] is held for name, held in given.items()), "fragments change too early"
        self.group_multiply(product)

    def copy_box(self, array: str, copy: ir.BoxCopy) -> None:
        view, dtype = copy.map, copy.map.argument.dtype
        width, height = view.box
        planes = view.planes or ir.Planes(1, 0, 1)
        assert width * dtype.itemsize == 128, "lines of 128 bytes"
        assert max(height, planes.box) <= 256, "a box has no more rows"
        assert not planes.distance * dtype.itemsize % 16, "misaligned"
        assert not view.pitch * dtype.itemsize % 16, "misaligned"
        assert not view.begin * dtype.itemsize % 16, "misaligned"
        assert not view.matrices * dtype.itemsize % 16, "misaligned"
        source, rows = self.memory[view.argument.value], int(self.integer(view.rows))
        plane, row, column = np.ogrid[: planes.box, :height, :width]
        plane, row, column = plane + copy.plane, row + copy.row, column + copy.column
        exists = (row >= 0) & (row < rows) & (column >= 0) & (column < view.width) & (plane < planes.count)
        matrix = int(self.integer(copy.matrix)) * view.matrices
        if view.many is not None and int(self.integer(copy.matrix)) >= int(self.integer(view.many)):
            exists = np.zeros_like(exists)
        at = np.where(exists, view.begin + matrix + plane * planes.distance + row * view.pitch + column, 0)
        assert (at < len(source)).all(), "beyond the end"
        chunks = np.where(exists, source[at], source.dtype.type(0)).view(np.uint8).reshape(-1, 8, 16)
        lines = chunks[_swizzled(len(chunks))]
        place = int(self.integer(copy.place)) * dtype.itemsize
        assert not place % 1024, "misaligned"
        self.local[array].bytes[place : place + lines.size] = lines.ravel()

    def group_multiply(self, multiply: ir.GroupMultiply) -> None:
        """As steps of 32 bytes in float64, rounded once each: devices round differently. Whole numbers are exact."""
        wide, made_of = (np.int64, np.int32) if multiply.dtype.kind in "iu" else (np.float64, np.float32)
        columns = 8 * len(multiply.sums)
        memory, each = self.local[multiply.array].bytes, 32 // multiply.dtype.itemsize
        pairs = [*multiply.before, (multiply.a, multiply.b)]
        for group in np.unique(self.lid[self.mask] // 128):
            mine = self.lid // 128 == group
            places = [set(self.each(place)[mine]) for _, place in pairs]
            rights = [self.right(memory, int(place), multiply, columns) for (place,) in places]
            lefts = [self.rows_of(memory, fragments, multiply, mine) for fragments, _ in pairs]
            lid = self.lid[mine] % 128
            # Where each work-item's four numbers of each fragment of sums lie in the product.
            rows = (lid // 32 * 16 + lid % 32 // 4)[:, None] + [0, 0, 8, 8]
            places_of_sums = 8 * np.arange(len(multiply.sums))[:, None, None] + (lid % 4 * 2)[:, None] + [0, 1, 0, 1]
            every = [np.array(np.broadcast_to(self.values[var.name], (len(self.lid), 4))) for var in multiply.sums]
            sums: Any = 0 if multiply.fresh else np.stack([one[mine] for one in every])
            for k in range(0, multiply.depth, each):
                for a, b in zip(lefts, rights, strict=True):
                    made = a[:, k : k + each].astype(wide) @ b[k : k + each].astype(wide)
                    sums = (sums + made[rows, places_of_sums]).astype(made_of)
            for var, one, made in zip(multiply.sums, every, sums, strict=True):
                one[mine] = made
                self.values[var.name] = one

    def right(self, memory: np.ndarray, place: int, multiply: ir.GroupMultiply, columns: int) -> np.ndarray:
        """The right operand of a product: numbers of k by columns."""
        itemsize, depth, dtype = multiply.dtype.itemsize, multiply.depth, multiply.right_dtype or multiply.dtype
        if multiply.along_k:
            return self.slabs(memory, place * itemsize, multiply.further[1] * itemsize, columns, depth, dtype).T
        assert itemsize == 2, "tensor cores transpose 16-bit numbers only"
        begin = place * itemsize
        boxes = (
            self.lines(memory, begin + i * multiply.aside * itemsize, depth, multiply.dtype)
            for i in range(-(-columns // 64))
        )
        return np.hstack(list(boxes))[:, :columns]

    def rows_of(
        self, memory: np.ndarray, a: ir.IndexLike | tuple[Var, ...], multiply: ir.GroupMultiply, mine: np.ndarray
    ) -> np.ndarray:
        """The left operand of a group: 64 rows by numbers of k."""
        dtype = multiply.dtype
        if isinstance(a, tuple):
            return np.hstack([self.left(self.values[var.name][mine], dtype) for var in a])
        (place,) = set(self.each(a)[mine] * dtype.itemsize)
        if multiply.turned:
            assert dtype.itemsize == 2, "tensor cores transpose 16-bit numbers only"
            return self.lines(memory, int(place), multiply.depth, dtype).T
        return self.slabs(memory, int(place), multiply.further[0] * dtype.itemsize, 64, multiply.depth, dtype)

    def slabs(
        self, memory: np.ndarray, begin: int, further: int, count: int, depth: int, dtype: np.dtype
    ) -> np.ndarray:
        """Lines along k, as many as are multiplied, from any step of the first 128 bytes on."""
        skipped = begin % 128 // dtype.itemsize
        assert not begin % 32, "misaligned"
        slabs = range(-(-(skipped + depth) * dtype.itemsize // 128))
        whole = np.hstack([self.lines(memory, begin // 128 * 128 + i * further, count, dtype) for i in slabs])
        return multiplied_bits(whole[:, skipped : skipped + depth])

    def left(self, fragments: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """64 rows of 32 bytes of k that four teams hold as fragments of a left operand."""
        upper, lower, further_upper, further_lower = self.matrices(fragments, dtype)
        whole = np.concatenate(
            [np.concatenate([upper, lower], axis=1), np.concatenate([further_upper, further_lower], axis=1)], axis=2
        )
        return whole.reshape(64, -1)

    @staticmethod
    def lines(memory: np.ndarray, begin: int, count: int, dtype: np.dtype) -> np.ndarray:
        """Lines of 128 bytes with their chunks in order."""
        assert not begin % 1024, "misaligned"
        chunks = memory[begin : begin + count * 128].reshape(count, 8, 16)
        return chunks[_swizzled(count)].reshape(count, 128).view(dtype)

    @staticmethod
    def matrices(registers: np.ndarray, dtype: np.dtype) -> list[np.ndarray]:
        """The four matrices of 8 rows that each team holds, in float64."""
        numbers = multiplied_bits(np.ascontiguousarray(registers.astype(np.uint32)).view(dtype))
        words = numbers.reshape(-1, 8, 4, 4, 4 // dtype.itemsize)
        return [words[:, :, :, matrix].reshape(len(words), 8, -1).astype("f8") for matrix in range(4)]

    # -- values -----------------------------------------------------------------------------------------
