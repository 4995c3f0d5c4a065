"""Runs kernel IR of GPUs in NumPy, all work-items of a work-group at once: what tensor cores do, without any.

Asynchronous copies arrive when they are waited for and not before; until then their places hold
NaN. So a place that is read too early, or overwritten too early, spoils the result. Work-items
run in step, but local memory notices where teams should have met and did not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowcompute import ir
from flowcompute.elements.quantized.numpy_decoding import decode
from flowcompute.ir.index_nodes import in_lane
from flowcompute.ir.kernel import Kernel
from flowcompute.ir.nodes import Stmt, Var
from flowcompute.ir.tensor_nodes import (
    Across,
    AwaitCopies,
    Copy,
    EarlyRead,
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
from tests.gpu.emulated_rings import Rings
from tests.gpu.shared_memory import SharedMemory

Handed = dict[int, list[np.ndarray]]
"""Variables that work-groups have handed over, by their places."""
SUBGROUP = 32
LANE = np.arange(SUBGROUP)


def emulate(
    kernel: Kernel, arrays: Mapping[int, np.ndarray], n: int, groups: int, **integers: Any
) -> dict[int, np.ndarray]:
    """The outputs of a launch, by value id, flat and as large as `arrays` says.

    Args:
        kernel: what to run.
        arrays: inputs and scalars, and outputs to be filled, by value id; the parts of a state by -1, -2 and so on.
        n: numbers or rows, as the runtime passes them.
        groups: work-groups.
        integers: arguments that are integers, by name, and arrays that indices depend on.
    """
    made = {a.value: np.full(arrays[a.value].size, 77, a.dtype) for a in kernel.arguments if a.kind == "output"}
    flat = {value: array.reshape(-1) for value, array in arrays.items()}
    handed: Handed = {}
    for group in range(groups):
        numbers = {"n": n, "gid": group, "gsize": groups, "first": 0, **integers}
        WorkGroup(kernel, {**flat, **made}, numbers, handed).run()
    assert not handed, "all that was handed over has been taken over"
    return made


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


class WorkGroup(Rings):
    def __init__(
        self, kernel: Kernel, memory: Mapping[int, np.ndarray], integers: Mapping[str, Any], handed: Handed
    ) -> None:
        super().__init__(kernel.work_group, memory, integers)
        self.handed = handed
        self.names["wid"] = integers["gid"] * kernel.work_group + self.lid
        self.names["wsize"] = integers["gsize"] * kernel.work_group
        self.kernel = kernel
        self.begun: list[_Arriving] = []
        self.groups: list[list[_Arriving]] = []
        self.decoded: dict[tuple[int, bytes], np.ndarray] = {}

    def run(self) -> None:
        with np.errstate(all="ignore"):
            self.block(self.kernel.body)

    def statement(self, statement: Stmt) -> None:
        match statement:
            case ir.SetInteger(name, value, new):
                made, old = self.integer(value), self.names.get(name.name)
                self.names[name.name] = made if new or self.mask.all() else np.where(self.mask, made, old)
            case ir.Array(name, dtype, lanes, size):
                self.local.setdefault(name, SharedMemory(size * lanes * dtype.itemsize))
                if dtype == np.int64:
                    self.names[name] = self.local[name].bytes.view(dtype)
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
            case ir.Alias(argument, (stored,)):
                assert argument.value == stored.value, "both are one array here"
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
            case ir.TakeTurn(groups):
                self.turn(groups, "take")
            case ir.PassTurn(groups):
                self.turn(groups, "pass")
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
            case ir.Ticket(name, _, _, 0, by):
                # Work-groups run one after another, and each draws once.
                assert self.mask.all(), "all are there"
                self.names[name.name] = np.where(self.lid == by, self.names["gid"], 0)
            case ir.HandOver():
                at = self.place_of(statement)
                assert at not in self.handed, "its place is free"
                self.handed[at] = [self.values[one.name].copy() for one in statement.variables]
            case ir.TakeOver():
                taken = self.handed.pop(self.place_of(statement))
                self.values |= {one.name: made for one, made in zip(statement.variables, taken, strict=True)}
            case ir.SubGroupBarrier():
                assert all(len(set(team)) == 1 for team in self.mask.reshape(-1, SUBGROUP)), "all of a team meet"
            case ir.WorkGroupBarrier():
                assert self.mask.all() or not self.mask.any(), "all meet, or none"
                for memory in self.local.values():
                    memory.meet()
            case _:
                raise NotImplementedError(statement)

    def place_of(self, one: ir.HandOver | ir.TakeOver) -> int:
        """The place of what is handed over, where all that do so meet."""
        assert self.mask[: one.work_items].all(), "all are there"
        self.block([ir.RingGroupBarrier() if one.groups else ir.WorkGroupBarrier()])
        return int(self.integer(one.place))

    # -- copies and fragments ---------------------------------------------------------------------------

    def array_of(self, argument: ir.Argument) -> np.ndarray:
        return self.memory[-1 - argument.part if argument.kind == "state" else argument.value]

    def copy(self, copy: Copy) -> None:
        source, numbers = self.array_of(copy.argument), copy.numbers
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

    def run_of_block(self, run: ir.BlockRun) -> np.ndarray:
        memory, size = self.local[run.array], run.blocks.block_bytes
        at = self.each(run.block)
        memory.read(at[self.mask], size, self.lid[self.mask])
        blocks, which = np.unique(at, return_inverse=True)
        raw = memory.bytes[blocks[:, None] + np.arange(size)]
        # Runs that follow each other are parts of the same blocks, which are decoded whole.
        known = id(run.blocks), raw.tobytes()
        if known not in self.decoded:
            self.decoded = {known: decode(run.blocks, raw)}
        numbers = self.decoded[known]
        if run.raised:
            numbers = np.where(np.isinf(numbers), np.float32(np.nan), numbers + np.float32(0))
        places = self.each(run.place)[:, None] + run.begin + np.arange(run.lanes)
        return np.asarray(numbers[which[:, None], places])

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
        return (c + np.stack(own, axis=-1).reshape(-1, 4)).astype(np.float32)

    def value(self, expr: ir.Expr, var: Var) -> np.ndarray:
        def of(one: Var) -> np.ndarray:
            return self.values[one.name]

        shape = (len(self.lid), var.lanes)
        match expr:
            case ir.ConstantValue(number):
                return np.full(shape, number, var.dtype)
            case ir.Integer(value, 0):
                return np.broadcast_to(self.each(value)[:, None], shape).astype(var.dtype)
            case ir.ScalarArgument(argument):
                return np.full(shape, self.array_of(argument)[0], var.dtype)
            case ir.Splat(operand):
                return of(operand) if operand.lanes == var.lanes else np.repeat(of(operand)[:, :1], var.lanes, axis=1)
            case ir.Half(operand, upper):
                return of(operand)[:, var.lanes :] if upper else of(operand)[:, : var.lanes]
            case ir.Picked(operands, lanes):
                return np.broadcast_to(np.hstack([of(one) for one in operands])[:, list(lanes)], shape)
            case ir.ArrayItem(array, index, _) | EarlyRead(array, index):
                at = np.where(self.mask, self.each(index), 0)
                memory, itemsize = self.local[array], var.dtype.itemsize
                memory.read(at[self.mask] * itemsize, var.lanes * itemsize, self.lid[self.mask])
                return memory.bytes.view(var.dtype)[at[:, None] + np.arange(var.lanes)]
            case ir.Load():
                return self.load(expr, var)
            case ir.BlockRun():
                return self.run_of_block(expr)
            case ir.HalvesOfRun(run):
                return _upper_halves(self.run_of_block(run))
            case ir.UpperHalves(numbers):
                return _upper_halves(of(numbers))
            case ir.LowerRest(numbers):
                leading = (np.ascontiguousarray(of(numbers)).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
                return of(numbers) - leading
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
            case ir.NoneZero(operands):
                zero = np.hstack([of(one).view(np.uint16) for one in operands]) == 0
                any_zero = (zero.any(axis=1) & self.mask).reshape(-1, 32).any(axis=1)
                return np.repeat(~any_zero, 32)[:, None].astype(np.uint32)
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
        return self.array_of(load.argument)[np.where(exists, at, 0)].astype(var.dtype)

    def store(self, store: ir.Store) -> None:
        at, exists = self.places(store, store.var.lanes)
        target = self.array_of(store.argument)
        target[at[exists]] = self.values[store.var.name][exists].astype(target.dtype)


def _upper_halves(numbers: np.ndarray) -> np.ndarray:
    words = np.ascontiguousarray(numbers).view(np.uint32)
    return words[:, :2] >> 16 | words[:, 2:] & np.uint32(0xFFFF0000)
