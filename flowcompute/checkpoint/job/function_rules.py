"""The rules that typing a user's function ensures, checked of one that was kept; see `function_ir.py`.

Names become names in C, so they are names and nothing else. An index that is known lies inside. A variable has a value
wherever it is read. Each way through ends with a return.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.checkpoint.job.fields import Fields, refuse
from flowcompute.checkpoint.store import DTYPES
from flowcompute.elements.functions import MOST_ITEMS, OPERATIONS
from flowcompute.spec import is_float

_COMPUTED = frozenset(DTYPES) - {"float16", "bfloat16"}
"""Dtypes inside a function."""

_MOST_VARIABLES = 1 << 12
_MOST_NUMBERS = 1 << 10
_MOST_COUNT = 1 << 62


def require(sound: bool, what: str) -> None:
    """Raise CheckpointError unless it is so."""
    if not sound:
        refuse(f"cannot rebuild a kernel's function: {what}")


def computed(dtype: str) -> str:
    """Return the dtype in which a stored dtype is computed."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


class Frame:
    """Parameters, variables and results of one function, against which its parts are checked.

    Attributes:
        parameters, results: dtypes, as stored.
        variables: what its statements set.
        bits: a bit for each variable.
        reads: for each expression, by identity, the bits of the variables that it reads.
    """

    def __init__(self, data: Fields) -> None:
        self.parameters = _dtypes(data, "parameters")
        self.results = _dtypes(data, "results")
        self.variables = tuple(_variable(one) for one in data.items("variables", _MOST_VARIABLES))
        self._known = {one.name: one for one in self.variables}
        require(len(self._known) == len(self.variables), "a variable is named twice")
        self.bits = {name: 1 << place for place, name in enumerate(self._known)}
        self.reads: dict[int, int] = {}

    def number(self, name: str) -> ir.Variable:
        """Return a variable that holds one number."""
        variable = self._known.get(name)
        if variable is None or variable.size:
            refuse("cannot rebuild a kernel's function: a variable", expected="a variable of one number", got=name)
        return variable

    def array(self, name: str, index: Any) -> ir.Variable:
        """Return an array, at a place that is an integer, and inside it where it is known."""
        variable = self._known.get(name)
        if variable is None or not variable.size:
            refuse("cannot rebuild a kernel's function: an array", expected="a local array", got=name)
        require(index.dtype == "int64", "an index is an integer")
        require(
            not isinstance(index, ir.NumberLiteral) or 0 <= index.value < variable.size, "an index outside an array"
        )
        return variable

    def check(self, part: Any, held: int) -> None:
        """Raise CheckpointError unless a part fits what it holds, which fits already.

        Args:
            part: an expression or a statement.
            held: the bits of variables that the expressions in it read.
        """
        if isinstance(part, ir.Expr):
            self._check_expression(part)
            if isinstance(part, ir.Local):
                held |= self.bits[part.name]
            elif isinstance(part, ir.ItemAt):
                held |= self.bits[part.array]
        else:
            self._check_statement(part)
        self.reads[id(part)] = held

    def _check_expression(self, part: ir.Expr) -> None:
        require(part.dtype in _COMPUTED, "a dtype")
        match part:
            case ir.NumberLiteral(value, dtype):
                require(_fits(value, np.dtype(dtype)), "a number")
            case ir.Parameter(index, dtype):
                require(index < len(self.parameters) and computed(self.parameters[index]) == dtype, "a parameter")
            case ir.Local(name, dtype):
                require(self.number(name).dtype == dtype, "a variable's dtype")
            case ir.Operation(op, operands, dtype):
                found = _operation(op, tuple(one.dtype for one in operands))
                require(found == dtype, f"{op} of these dtypes")
            case ir.Choose(condition, yes, no, dtype):
                require(condition.dtype == "bool" and yes.dtype == no.dtype == dtype, "a choice")
            case ir.ItemAt(array, index, dtype):
                require(self.array(array, index).dtype == dtype, "an array's dtype")
            case ir.Call(function, operands, dtype):
                given = [computed(one) for one in function.parameters]
                require([one.dtype for one in operands] == given, "what a function is called with")
                require(computed(function.results[0]) == dtype, "what a function gives")

    def _check_statement(self, part: ir.Stmt) -> None:
        match part:
            case ir.Set(name, value):
                require(not self.number(name).counter and self.number(name).dtype == value.dtype, "a variable's dtype")
            case ir.SetAll(names, call):
                require(isinstance(call, ir.Call) and len(set(names)) == len(names), "what a call sets")
                held = [self.number(name) for name in names]
                given = [computed(one) for one in call.function.results]
                require(
                    [one.dtype for one in held] == given and not any(one.counter for one in held), "a call's dtypes"
                )
            case ir.Fill(array, value):
                require(self.array(array, ir.NumberLiteral(0, "int64")).dtype == value.dtype, "an array's dtype")
            case ir.PutAt(array, index, value):
                require(self.array(array, index).dtype == value.dtype, "an array's dtype")
            case ir.Branch(condition) | ir.WhileLoop(condition):
                require(condition.dtype == "bool", "a condition")
            case ir.ForRange(counter, start, stop, step):
                bounded = all(-_MOST_COUNT < one < _MOST_COUNT for one in (start, stop, step))
                require(self.number(counter).counter and bounded and step != 0, "a loop")
                require(bool(range(start, stop, step)), "a loop")
            case ir.Return(values):
                given = [computed(one) for one in self.results]
                require([one.dtype for one in values] == given, "what is returned")


def _dtypes(data: Fields, key: str) -> tuple[str, ...]:
    names = tuple(data.items(key, _MOST_NUMBERS))
    if not names or not all(isinstance(name, str) and name in DTYPES for name in names):
        data.wrong(key, "names of dtypes")
    return names


def _variable(data: Any) -> ir.Variable:
    row: tuple[Any, ...] = tuple(data) if isinstance(data, list | tuple) and len(data) == 4 else (None,) * 4
    name, dtype, size, counter = row
    require(isinstance(name, str) and name.isidentifier() and isinstance(dtype, str) and dtype in _COMPUTED, "a name")
    require(type(size) is int and 0 <= size <= MOST_ITEMS and type(counter) is bool, "a variable")
    require(not counter or (size == 0 and dtype == "int64"), "a counter")
    return ir.Variable(name, dtype, size, counter)


def _fits(value: Any, dtype: np.dtype) -> bool:
    """Check whether a number is one of the dtype; of 64 bits also what is still to be cast to an unsigned one."""
    if dtype.kind == "b":
        return type(value) is bool
    if is_float(dtype):
        return type(value) is float
    info = np.iinfo(np.uint64 if dtype == np.int64 else dtype)
    least = np.iinfo(dtype).min
    return type(value) is int and int(least) <= value <= int(info.max)


@functools.lru_cache(maxsize=1 << 12)
def _operation(name: str, dtypes: tuple[str, ...]) -> str | None:
    """Return the dtype of an operation's result; None where it has none for these operands."""
    op = OPERATIONS.get(name)
    if op is None or op.arity != len(dtypes) or name == "where":
        return None
    given = [np.dtype(dtype) for dtype in dtypes]
    try:
        *wanted, result = op.dtypes(*given)
    except TypeError:
        return None
    return np.dtype(result).name if wanted == given else None


class Body:
    """Walks the statements of a function as control does, with the variables that have a value for sure."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._left: list[list[int]] = []
        """For each loop around, what has a value at each `break`."""

    def check(self, body: Sequence[ir.Stmt]) -> None:
        """Raise CheckpointError where a variable is read too early, or the end is reached without a return."""
        require(self._block(body, 0) is None, "a way without a return")

    def _block(self, body: Sequence[ir.Stmt], assigned: int) -> int | None:
        """Return the bits of variables that have a value after statements; None where nothing comes after them."""
        after: int | None = assigned
        for statement in body:
            if after is None:
                refuse("cannot rebuild a kernel's function: statements that are never reached")
            require(not self._frame.reads[id(statement)] & ~after, "a variable without a value")
            after = self._statement(statement, after)
        return after

    def _statement(self, statement: ir.Stmt, assigned: int) -> int | None:
        bits = self._frame.bits
        match statement:
            case ir.Set(name) | ir.Fill(name) | ir.PutAt(name):
                return assigned | bits[name]
            case ir.SetAll(names):
                return assigned | sum(bits[name] for name in names)
            case ir.Branch(_, body, otherwise):
                ends = [self._block(one, assigned) for one in (body, otherwise)]
                alive = [one for one in ends if one is not None]
                return None if not alive else alive[0] & alive[-1]
            case ir.WhileLoop(condition, body, step):
                left = self._looped(body, assigned)
                require(self._block(step, assigned) is not None, "a step that leaves its loop")
                if not isinstance(condition, ir.NumberLiteral):
                    return assigned
                return functools.reduce(int.__and__, left) if left else None
            case ir.ForRange(counter, _, _, _, body):
                require(not assigned & bits[counter], "a counter of two loops")
                self._looped(body, assigned | bits[counter])
                # It runs at least once, so what it begins with is done.
                for first in body:
                    if not isinstance(first, ir.Set):
                        break
                    assigned |= bits[first.name]
                return assigned
            case ir.Leave():
                require(bool(self._left), "a break outside of a loop")
                self._left[-1].append(assigned)
                return None
            case ir.Next():
                require(bool(self._left), "a continue outside of a loop")
                return None
        return None

    def _looped(self, body: Sequence[ir.Stmt], assigned: int) -> list[int]:
        self._left.append([])
        self._block(body, assigned)
        return self._left.pop()
