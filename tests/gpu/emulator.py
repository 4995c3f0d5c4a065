"""Runs kernel IR of GPUs in NumPy, all work-items of a work-group at once: what tensor cores do, without any.

Asynchronous copies arrive when they are waited for and not before; until then their places hold
NaN. So a place that is read too early, or overwritten too early, spoils the result. Work-items
run in step, but local memory notices where teams should have met and did not.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flowcompute import ir
from flowcompute.ir.index_nodes import in_lane
from flowcompute.ir.kernel import Kernel
from flowcompute.ir.nodes import Stmt, Var
from flowcompute.ir.tensor_nodes import (
    Across,
    AwaitCopies,
    Copy,
    EndCopies,
    Fragment,
    FragmentMultiply,
    FragmentOf,
    Join,
    Leading,
    Rest,
    Words,
    WordsOf,
)
from flowcompute.spec import FLOAT32
from tests.gpu.shared_memory import SharedMemory
from tests.support.index_values import condition_value, index_value

SUBGROUP = 32
LANE = np.arange(SUBGROUP)


def emulate(
    kernel: Kernel, arrays: Mapping[int, np.ndarray], n: int, groups: int, **integers: int
) -> dict[int, np.ndarray]:
    """The outputs of a launch, by value id, flat and as large as `arrays` says.

    Args:
        kernel: what to run.
        arrays: inputs and scalars, and outputs to be filled, by value id.
        n: numbers or rows, as the runtime passes them.
        groups: work-groups.
        integers: arguments that are integers, by name.
    """
    made = {a.value: np.full(arrays[a.value].size, 77, a.dtype) for a in kernel.arguments if a.kind == "output"}
    flat = {value: array.reshape(-1) for value, array in arrays.items()}
    for group in range(groups):
        _WorkGroup(kernel, {**flat, **made}, {"n": n, "gid": group, "gsize": groups, "first": 0, **integers}).run()
    return made


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


@dataclass(frozen=True)
class _Arriving:
    """What a copy brings: `data` a row for each work-item, and which rows of so many bytes these become."""

    memory: SharedMemory
    rows: np.ndarray
    data: np.ndarray
    lid: np.ndarray

    def put(self, data: np.ndarray) -> None:
        size = data.shape[1]
        self.memory.wrote(self.rows * size, size, self.lid)
        self.memory.bytes.reshape(-1, size)[self.rows] = data


@dataclass(frozen=True)
class _Step:
    """What fills a stage, with the names that it is known by; the step behind which it waits, or -1; what prepares."""

    array: str
    copies: list[ir.BoxCopy]
    names: dict[str, int]
    behind: int
    prepare: tuple[Stmt, ...]


class _WorkGroup:
    def __init__(self, kernel: Kernel, memory: Mapping[int, np.ndarray], integers: Mapping[str, int]) -> None:
        self.kernel, self.memory = kernel, memory
        self.lid = np.arange(kernel.work_group)
        self.names: dict[str, Any] = {"lid": self.lid, **integers}
        self.mask = np.ones(kernel.work_group, bool)
        self.values: dict[str, np.ndarray] = {}
        self.local: dict[str, SharedMemory] = {}
        self.begun: list[_Arriving] = []
        self.groups: list[list[_Arriving]] = []

    def run(self) -> None:
        self.block(self.kernel.body)

    def integer(self, value: ir.IndexLike | ir.ConditionLike) -> Any:
        names = ChainMap(self.names, _Scalars(self.values))
        if isinstance(value, bool | ir.Condition):
            return condition_value(value, names)
        return index_value(value, names)

    def each(self, value: ir.IndexLike | ir.ConditionLike) -> np.ndarray:
        return np.broadcast_to(self.integer(value), self.lid.shape)

    def block(self, body: Iterable[Stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def under(self, mask: np.ndarray, body: Iterable[Stmt]) -> None:
        outer, self.mask = self.mask, self.mask & mask
        if self.mask.any():
            self.block(body)
        self.mask = outer

    def statement(self, statement: Stmt) -> None:
        match statement:
            case ir.SetInteger(name, value, new):
                made, old = self.integer(value), self.names.get(name.name)
                self.names[name.name] = made if new or self.mask.all() else np.where(self.mask, made, old)
            case ir.Array(name, dtype, lanes, size):
                self.local.setdefault(name, SharedMemory(size * lanes * dtype.itemsize))
            case ir.Let(var, expr):
                self.values[var.name] = self.value(expr, var)
            case ir.Assign(var, expr):
                made = self.value(expr, var)
                self.values[var.name] = np.where(self.mask[:, None], made, self.values[var.name])
            case ir.For(index, start, stop, step, body, _):
                at = self.each(start)
                while (inside := at < self.each(stop)).any():
                    self.names[index.name] = at if len(set(at)) > 1 else int(at[0])
                    self.under(inside, body)
                    at = at + int(self.integer(step))
                    self.names[index.name] = at
            case ir.If(condition, body, otherwise):
                mask = self.each(condition).astype(bool)
                self.under(mask, body)
                self.under(~mask, otherwise)
            case ir.PutItem(array, index, var, vector):
                lanes = var.lanes if vector else 1
                at = self.each(index)[self.mask, None] + np.arange(lanes)
                memory, itemsize = self.local[array], var.dtype.itemsize
                memory.wrote(at[:, 0] * itemsize, lanes * itemsize, self.lid[self.mask])
                memory.bytes.view(var.dtype)[at] = self.values[var.name][self.mask, :lanes]
            case ir.Store():
                self.store(statement)
            case Copy():
                self.copy(statement)
            case EndCopies():
                self.groups.append(self.begun)
                self.begun = []
            case ir.OpenRing():
                assert self.mask.all(), "all meet"
                self.names[ir.RING_GROUP.name] = self.lid // 128
            case ir.RingRoles():
                self.roles(statement)
            case ir.FillStages():
                self.plan_copies(statement)
            case ir.PassSteps():
                self.passed += int(self.integer(statement.steps))
            case ir.RingGroupBarrier():
                for memory in self.local.values():
                    memory.meet_in_groups(self.lid[self.mask])
            case ir.RingLoop():
                self.ring(statement)
            case ir.AwaitStage():
                self.await_stage(statement)
            case ir.FreeStage():
                self.free_stage(statement)
            case ir.GroupMultiply():
                self.group_multiply(statement)
            case ir.OverlappedMultiply():
                self.overlapped(statement)
            case AwaitCopies(pending):
                while len(self.groups) > pending:
                    for arriving in self.groups.pop(0):
                        arriving.put(arriving.data)
            case ir.Exchange(variables, sources, subgroup, distance, shuffle, _):
                assert shuffle, "by registers"
                inside = self.lid % subgroup
                ahead = np.where(inside + (distance or 0) < subgroup, self.lid + (distance or 0), self.lid)
                others = self.lid - inside if distance is None else ahead
                for var, source in zip(variables, sources, strict=True):
                    self.values[var.name] = self.values[source.name][others]
            case ir.WorkGroupBarrier():
                assert self.mask.all() or not self.mask.any(), "all meet, or none"
                for memory in self.local.values():
                    memory.meet()
            case _:
                raise NotImplementedError(statement)

    # -- copies and fragments ---------------------------------------------------------------------------

    def copy(self, copy: Copy) -> None:
        source, numbers = self.memory[copy.argument.value], copy.numbers
        exists = self.each(copy.exists).astype(bool)[self.mask]
        places, indices = self.each(copy.place)[self.mask], np.where(exists, self.each(copy.index)[self.mask], 0)
        assert not (places % numbers).any(), "misaligned"
        assert not (indices % numbers).any(), "misaligned"
        at = indices[:, None] + np.arange(numbers)
        assert (at < len(source)).all(), "beyond the end"
        data = np.where(exists[:, None], source[at], source.dtype.type(0)).view(np.uint8)
        arriving = _Arriving(self.local[copy.array], places // numbers, data, self.lid[self.mask])
        arriving.put(np.full_like(data, 0xFF))
        self.begun.append(arriving)

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

    def work(self, ring: ir.OpenRing, body: tuple[Stmt, ...]) -> None:
        """As if copies were as far ahead of the work as the ring allows."""
        self.opened = ring
        self.fill()
        self.under(self.lid < ring.workers, body)
        assert self.filled == self.freed == self.passed == len(self.planned), "each stage is given back"

    def plan_copies(self, fill: ir.RingLoop | ir.FillStages, prepare: tuple[Stmt, ...] = ()) -> None:
        """Note the copies of all steps with their places; `fill` does them when their stages are free."""
        begin = len(self.planned)
        for step in range(int(self.integer(fill.steps))):
            names = {fill.step.name: step, fill.stage.name: (begin + step) % fill.ring.stages}
            self.names |= names
            copies = (fill.first if step == 0 else ()) + fill.fills[step % len(fill.fills)]
            placed = [
                replace(
                    copy, **{at: int(self.integer(getattr(copy, at))) for at in ("place", "column", "row", "matrix")}
                )
                for copy in copies
            ]
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

    def overlapped(self, both: ir.OverlappedMultiply) -> None:
        """The second product is done at the last moment, with what its operands are then."""
        second = both.second
        sums = {var.name: self.values[var.name] for var in second.sums}
        given = {var.name: self.values[var.name] for var in second.a} if isinstance(second.a, tuple) else {}
        for name, held in sums.items():
            self.values[name] = np.full_like(held, np.nan)
        self.group_multiply(both.first)
        self.block(both.between)
        for name, held in sums.items():
            assert np.isnan(self.values[name]).all(), "sums are touched while they are written"
            self.values[name] = held
        assert all(self.values[name] is held for name, held in given.items()), "fragments change too early"
        self.group_multiply(second)

    def copy_box(self, array: str, copy: ir.BoxCopy) -> None:
        view, dtype = copy.map, copy.map.argument.dtype
        width, height = view.box
        assert width * dtype.itemsize == 128, "lines of 128 bytes"
        assert height <= 256, "a box has no more rows"
        assert not view.pitch * dtype.itemsize % 16, "misaligned"
        assert not view.begin * dtype.itemsize % 16, "misaligned"
        assert not view.matrices * dtype.itemsize % 16, "misaligned"
        source, rows = self.memory[view.argument.value], int(self.integer(view.rows))
        row, column = (
            int(self.integer(index)) + np.arange(size) for index, size in ((copy.row, height), (copy.column, width))
        )
        exists = (row < rows)[:, None] & (column < view.width)
        matrix = int(self.integer(copy.matrix)) * view.matrices
        at = np.where(exists, view.begin + matrix + row[:, None] * view.pitch + column, 0)
        assert (at < len(source)).all(), "beyond the end"
        chunks = np.where(exists, source[at], source.dtype.type(0)).view(np.uint8).reshape(height, 8, 16)
        lines = np.empty_like(chunks)
        for r in range(height):
            lines[r, np.arange(8) ^ r % 8] = chunks[r]
        place = int(self.integer(copy.place)) * dtype.itemsize
        assert not place % 1024, "misaligned"
        self.local[array].bytes[place : place + lines.size] = lines.ravel()

    def group_multiply(self, multiply: ir.GroupMultiply) -> None:
        """As steps of 32 bytes in float64, rounded once each: devices round differently."""
        columns = 8 * len(multiply.sums)
        memory, each = self.local[multiply.array].bytes, 32 // multiply.dtype.itemsize
        pairs = [*multiply.before, (multiply.a, multiply.b)]
        rights = [self.right(memory, int(self.integer(place)), multiply, columns) for _, place in pairs]
        for group in np.unique(self.lid[self.mask] // 128):
            mine = self.lid // 128 == group
            lefts = [self.rows_of(memory, fragments, multiply, mine) for fragments, _ in pairs]
            lid = self.lid[mine] % 128
            top = lid // 32 * 16 + lid % 32 // 4
            steps = [(k, a, b) for k in range(0, multiply.depth, each) for a, b in zip(lefts, rights, strict=True)]
            for number, (k, a, b) in enumerate(steps):
                with np.errstate(all="ignore"):
                    made = a[:, k : k + each].astype("f8") @ b[k : k + each].astype("f8")
                for j, var in enumerate(multiply.sums):
                    left = 8 * j + lid % 4 * 2
                    own_sums = np.stack(
                        [made[top, left], made[top, left + 1], made[top + 8, left], made[top + 8, left + 1]], axis=-1
                    )
                    with np.errstate(all="ignore"):
                        total = np.array(np.broadcast_to(self.values[var.name], (len(self.lid), 4)))
                        before = 0 if multiply.fresh and number == 0 else total[mine]
                        total[mine] = (before + own_sums).astype(np.float32)
                        self.values[var.name] = total

    def right(self, memory: np.ndarray, place: int, multiply: ir.GroupMultiply, columns: int) -> np.ndarray:
        """The right operand of a product: numbers of k by columns."""
        itemsize, depth = multiply.dtype.itemsize, multiply.depth
        if multiply.along_k:
            return self.slabs(memory, place * itemsize, multiply.further[1] * itemsize, columns, multiply).T
        assert itemsize == 2, "tensor cores transpose 16-bit numbers only"
        begin = place * itemsize
        boxes = (self.lines(memory, begin + i * 64 * 128, depth, multiply.dtype) for i in range(-(-columns // 64)))
        return np.hstack(list(boxes))[:, :columns]

    def rows_of(
        self, memory: np.ndarray, a: ir.IndexLike | tuple[Var, ...], multiply: ir.GroupMultiply, mine: np.ndarray
    ) -> np.ndarray:
        """The left operand of a group: 64 rows by numbers of k."""
        dtype = multiply.dtype
        if isinstance(a, tuple):
            return np.hstack([self.left(self.values[var.name][mine], dtype) for var in a])
        (place,) = set(self.each(a)[mine] * dtype.itemsize)
        return self.slabs(memory, int(place), multiply.further[0] * dtype.itemsize, 64, multiply)

    def slabs(self, memory: np.ndarray, begin: int, further: int, count: int, multiply: ir.GroupMultiply) -> np.ndarray:
        """Lines along k, as many as are multiplied, from any step of the first 128 bytes on."""
        dtype, skipped = multiply.dtype, begin % 128 // multiply.dtype.itemsize
        assert not begin % 32, "misaligned"
        slabs = range(-(-(skipped + multiply.depth) * dtype.itemsize // 128))
        whole = np.hstack([self.lines(memory, begin // 128 * 128 + i * further, count, dtype) for i in slabs])
        return multiplied_bits(whole[:, skipped : skipped + multiply.depth])

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
        lines = np.stack([chunks[r, np.arange(8) ^ r % 8] for r in range(count)])
        return lines.reshape(count, 128).view(dtype)

    def fragment(self, expr: Fragment) -> np.ndarray:
        chunk = 16 // expr.dtype.itemsize
        places = self.each(expr.index)
        assert not (places % chunk).any(), "misaligned"
        self.local[expr.array].read(places * expr.dtype.itemsize, 16, self.lid)
        rows = self.local[expr.array].bytes.reshape(-1, 16)[places // chunk].reshape(-1, 4, 8, 16)
        if expr.transposed:
            rows = rows.view(np.uint16).swapaxes(-1, -2).copy().view(np.uint8)
        # (team, matrix, row, word) to (team, row, word, matrix): work-item 4 * row + word.
        return rows.view(np.uint32).transpose(0, 2, 3, 1).reshape(-1, 4)

    def multiply(self, expr: FragmentMultiply) -> np.ndarray:
        """As one step in float64, rounded once: devices round differently."""
        a, b, c = (self.values[var.name] for var in (expr.a, expr.b, expr.c))
        left = self.matrices(a, expr.dtype)
        left = np.concatenate([np.concatenate(left[:2], axis=1), np.concatenate(left[2:], axis=1)], axis=2)
        right = np.concatenate(self.matrices(b, expr.dtype)[2 * expr.part :][:2], axis=2)
        made = left @ right.swapaxes(1, 2)
        upper, lower = (made[:, half][:, LANE // 4] for half in (slice(0, 8), slice(8, 16)))
        columns = LANE % 4 * 2
        own = [part[:, LANE, columns + one] for part in (upper, lower) for one in (0, 1)]
        with np.errstate(all="ignore"):
            return (c + np.stack(own, axis=-1).reshape(-1, 4)).astype(np.float32)

    @staticmethod
    def matrices(registers: np.ndarray, dtype: np.dtype) -> list[np.ndarray]:
        """The four matrices of 8 rows that each team holds, in float64."""
        numbers = multiplied_bits(np.ascontiguousarray(registers.astype(np.uint32)).view(dtype))
        words = numbers.reshape(-1, 8, 4, 4, 4 // dtype.itemsize)
        return [words[:, :, :, matrix].reshape(len(words), 8, -1).astype("f8") for matrix in range(4)]

    # -- values -----------------------------------------------------------------------------------------

    def value(self, expr: ir.Expr, var: Var) -> np.ndarray:
        def of(one: Var) -> np.ndarray:
            return self.values[one.name]

        shape = (len(self.lid), var.lanes)
        with np.errstate(all="ignore"):
            match expr:
                case ir.ConstantValue(number):
                    return np.full(shape, number, var.dtype)
                case ir.ScalarArgument(argument):
                    return np.full(shape, self.memory[argument.value][0], var.dtype)
                case ir.Splat(operand):
                    return np.broadcast_to(of(operand) if operand.lanes == var.lanes else of(operand)[:, :1], shape)
                case ir.Half(operand, upper):
                    return of(operand)[:, var.lanes :] if upper else of(operand)[:, : var.lanes]
                case ir.Picked(operands, lanes):
                    return np.broadcast_to(np.hstack([of(one) for one in operands])[:, list(lanes)], shape)
                case ir.ArrayItem(array, index, _):
                    at = np.where(self.mask, self.each(index), 0)
                    memory, itemsize = self.local[array], var.dtype.itemsize
                    memory.read(at[self.mask] * itemsize, var.lanes * itemsize, self.lid[self.mask])
                    return memory.bytes.view(var.dtype)[at[:, None] + np.arange(var.lanes)]
                case ir.Load():
                    return self.load(expr, var)
                case Fragment():
                    return self.fragment(expr)
                case FragmentMultiply():
                    return self.multiply(expr)
                case FragmentOf(low, high, dtype):
                    both = np.concatenate([of(low), of(high)], axis=1).astype(dtype)
                    return both.view(np.uint32)
                case Words(array, indices):
                    for index in indices:
                        self.local[array].read(self.each(index) * 4, 4, self.lid)
                    words = self.local[array].bytes.view(np.uint32)
                    return np.stack([words[self.each(index)] for index in indices], axis=-1)
                case Leading(operand):
                    return (of(operand) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
                case Rest(operand, leading):
                    both = (np.ascontiguousarray(of(one)).view(np.float32) for one in (operand, leading))
                    return np.subtract(*both).view(np.uint32)
                case WordsOf(operand):
                    return np.ascontiguousarray(of(operand)[:, [0, 2, 1, 3]]).view(np.uint32)
                case Join(low, high):
                    return np.concatenate([of(low), of(high)], axis=1)
                case Across(operand, bit):
                    return of(operand)[self.lid ^ bit]
                case ir.NormalPower(operand):
                    made = np.exp2(of(operand))
                    return np.where(made < np.finfo(np.float32).tiny, np.float32(0), made)
                case ir.MultiplyAdd(a, b, c):
                    return (of(a).astype("f8") * of(b) + of(c)).astype(var.dtype)
                case ir.Below(count):
                    return np.arange(var.lanes) < self.each(count)[:, None]
                case ir.Apply(op, operands, _, rounds):
                    made = np.asarray(op.numpy(*map(of, operands)))
                    return made if rounds is None else made.astype(rounds).astype(np.float32)
                case ir.Combine(op, (left,), (right,), 0):
                    return {"sum": np.add, "max": np.maximum}[op](of(left), of(right))
                case ir.Select(mask, yes, no):
                    return np.where(of(mask), of(yes), of(no))
                case ir.Convert(operand, _, target):
                    return of(operand).astype(target).astype(var.dtype)
                case _:
                    raise NotImplementedError(expr)

    def places(self, access: ir.Load | ir.Store, lanes: int) -> tuple[np.ndarray, np.ndarray]:
        lane = np.arange(lanes)
        if access.each is not None:
            at = np.stack([self.each(in_lane(access.each, int(i))) for i in lane], axis=-1)
        else:
            at = self.each(access.index)[:, None] + access.stride * lane
        count = lanes if access.count is None else self.each(access.count)[:, None]
        return at, self.mask[:, None] & (lane < count)

    def load(self, load: ir.Load, var: Var) -> np.ndarray:
        at, exists = self.places(load, var.lanes)
        return self.memory[load.argument.value][np.where(exists, at, 0)].astype(var.dtype)

    def store(self, store: ir.Store) -> None:
        at, exists = self.places(store, store.var.lanes)
        target = self.memory[store.argument.value]
        target[at[exists]] = self.values[store.var.name][exists].astype(target.dtype)
