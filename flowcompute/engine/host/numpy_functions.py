"""Functions of users evaluated with NumPy, all numbers at once under masks, as vectors of a CPU do.

A mask says which numbers have come to a statement; None is all of them. A loop runs until no
number is left in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.elements import Op
from flowcompute.elements.functions import OPERATIONS
from flowcompute.engine.stopping import check_stopped

Mask = np.ndarray | None
Apply = Callable[[Op, np.dtype, list[np.ndarray]], np.ndarray]
Cast = Callable[[np.ndarray, np.dtype], np.ndarray]


def evaluate(
    function: ir.TypedFunction, arrays: Sequence[np.ndarray], apply: Apply, cast: Cast, live: Mask = None
) -> tuple[np.ndarray, ...]:
    """Compute all results of a function, in the dtypes that they are computed in.

    Args:
        function: what to compute.
        arrays: its arguments in the dtypes that they are computed in; they broadcast.
        apply: an operation with a given dtype of its result.
        cast: a cast.
        live: which numbers are asked for; the others may have any value.
    """
    return _Evaluation(function, np.broadcast_arrays(*arrays), apply, cast).results(live)


class _Evaluation:
    def __init__(self, function: ir.TypedFunction, arrays: Sequence[np.ndarray], apply: Apply, cast: Cast) -> None:
        self.function = function
        self.arguments = arrays
        self.apply = apply
        self.cast = cast
        self.shape = arrays[0].shape
        self.values: dict[str, np.ndarray] = {}
        for variable in function.variables:
            shape = (variable.size, *self.shape) if variable.size else self.shape
            self.values[variable.name] = np.zeros(shape, variable.dtype)
        self.returned: list[np.ndarray] = []
        self.left: list[np.ndarray] = []
        self.next: list[np.ndarray] = []

    def results(self, live: Mask) -> tuple[np.ndarray, ...]:
        """Run the body."""
        self._block(self.function.body, live)
        return tuple(self.returned)

    # -- statements ---------------------------------------------------------------------------

    def _block(self, body: Sequence[ir.Stmt], mask: Mask) -> Mask:
        """Run statements where the mask holds; which numbers come to the end of them."""
        for statement in body:
            mask = self._statement(statement, mask)
            if mask is not None and not mask.any():
                break
        return mask

    def _statement(self, statement: ir.Stmt, mask: Mask) -> Mask:
        match statement:
            case ir.Set(name, value):
                self._set(name, self._value(value, mask), mask)
            case ir.SetAll(names, call):
                for name, result in zip(names, self._call(call, mask), strict=True):
                    self._set(name, result, mask)
            case ir.Fill(array, value):
                self.values[array] = _merged(self.values[array], self._value(value, mask), mask)
            case ir.PutAt(array, index, value):
                self._put(array, index, value, mask)
            case ir.Branch(condition, body, otherwise):
                return self._branch(self._value(condition, mask), body, otherwise, mask)
            case ir.WhileLoop() | ir.ForRange():
                return self._loop(statement, mask)
            case ir.Leave():
                self.left[-1] = self.left[-1] | self._all(mask)
                return self._none()
            case ir.Next():
                self.next[-1] = self.next[-1] | self._all(mask)
                return self._none()
            case ir.Return(values):
                found = [self._value(value, mask) for value in values]
                earlier = self.returned or [np.zeros(self.shape, value.dtype) for value in found]
                self.returned = [_merged(old, new, mask) for old, new in zip(earlier, found, strict=True)]
                return self._none()
        return mask

    def _all(self, mask: Mask) -> np.ndarray:
        return np.ones(self.shape, bool) if mask is None else mask

    def _none(self) -> np.ndarray:
        return np.zeros(self.shape, bool)

    def _set(self, name: str, value: np.ndarray, mask: Mask) -> None:
        self.values[name] = _merged(self.values[name], value, mask)

    def _put(self, array: str, index: ir.Expr, value: ir.Expr, mask: Mask) -> None:
        values = self.values[array].copy()
        place = self._place(index, len(values), mask)[None]
        old = np.take_along_axis(values, place, 0)[0]
        np.put_along_axis(values, place, _merged(old, self._value(value, mask), mask)[None], 0)
        self.values[array] = values

    def _place(self, index: ir.Expr, size: int, mask: Mask) -> np.ndarray:
        """Return an index from the end where it is negative, the nearest inside where it is outside."""
        place = self._value(index, mask)
        return np.clip(np.where(place < 0, place + size, place), 0, size - 1)

    def _branch(self, condition: np.ndarray, body: Sequence[ir.Stmt], otherwise: Sequence[ir.Stmt], mask: Mask) -> Mask:
        came = self._all(mask)
        yes, no = came & condition, came & ~condition
        after = [self._all(self._block(part, at)) if at.any() else at for part, at in ((body, yes), (otherwise, no))]
        return np.asarray(np.logical_or(*after))

    def _loop(self, loop: ir.WhileLoop | ir.ForRange, mask: Mask) -> Mask:
        live, ended = self._all(mask), self._none()
        self.left.append(self._none())
        steps = iter(range(loop.start, loop.stop, loop.step)) if isinstance(loop, ir.ForRange) else None
        while live.any():
            check_stopped()
            if isinstance(loop, ir.WhileLoop):
                goes_on = self._value(loop.condition, live)
            else:
                assert steps is not None
                step = next(steps, None)
                goes_on = np.broadcast_to(np.bool_(step is not None), self.shape)
                self.values[loop.counter] = np.broadcast_to(np.int64(step or 0), self.shape)
            ended |= live & ~goes_on
            live = live & goes_on
            self.next.append(self._none())
            live = self._all(self._block(loop.body, live)) | self.next.pop()
            if isinstance(loop, ir.WhileLoop):
                self._block(loop.step, live)
        return np.asarray(np.logical_or(ended, self.left.pop()))

    # -- expressions --------------------------------------------------------------------------

    def _value(self, expr: ir.Expr, mask: Mask) -> np.ndarray:
        dtype = np.dtype(expr.dtype)
        match expr:
            case ir.NumberLiteral(value):
                return np.broadcast_to(np.asarray(value, dtype), self.shape)
            case ir.Parameter(index):
                return self.arguments[index]
            case ir.Local(name):
                return self.values[name]
            case ir.Operation(op, operands):
                return self.apply(OPERATIONS[op], dtype, self._operands(op, operands, mask))
            case ir.Cast(operand):
                return self.cast(self._value(operand, mask), dtype)
            case ir.Choose(condition, yes, no):
                chosen = self._value(condition, mask)
                come = self._all(mask)
                return np.where(chosen, self._value(yes, come & chosen), self._value(no, come & ~chosen))
            case ir.ItemAt(array, index):
                place = self._place(index, len(self.values[array]), mask)
                return np.asarray(np.take_along_axis(self.values[array], place[None], 0)[0])
            case ir.Call():
                return self._call(expr, mask)[0]

    def _operands(self, op: str, operands: Sequence[ir.Expr], mask: Mask) -> list[np.ndarray]:
        if op not in ("logical_and", "logical_or"):
            return [self._value(operand, mask) for operand in operands]
        # What stands behind `and` or `or` may call a loop that ends for those numbers only that come to it.
        first = self._value(operands[0], mask)
        return [first, self._value(operands[1], self._all(mask) & (first if op == "logical_and" else ~first))]

    def _call(self, call: ir.Call, mask: Mask) -> tuple[np.ndarray, ...]:
        operands = [self._value(operand, mask) for operand in call.operands]
        return evaluate(call.function, operands, self.apply, self.cast, mask)


def _merged(old: np.ndarray, new: np.ndarray, mask: Mask) -> np.ndarray:
    """Return `new` where the mask holds, else `old`."""
    return np.broadcast_to(new, old.shape) if mask is None else np.where(mask, new, old)
