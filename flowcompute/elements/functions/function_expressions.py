"""Types of expressions: each part of the syntax tree becomes typed IR, or an error with its line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.elements.functions.callable_tables import OPERATIONS, PYTHON
from flowcompute.elements.functions.promote import (
    BOOLEAN,
    WHOLE,
    Type,
    Typed,
    compared_types,
    join,
    operand_types,
)
from flowcompute.elements.functions.read_source import FunctionSource
from flowcompute.errors import short_repr
from flowcompute.spec import BOOL, UINT64, is_float, parse_dtype

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_left_shift",
    ast.RShift: "bitwise_right_shift",
}
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
_BELOW_ALL = {"less": True, "less_equal": True, "greater": False, "greater_equal": False, "equal": False}
_BELOW_ALL["not_equal"] = True
"""The results of comparing a negative number with an unsigned one, the negative one first."""


class ExpressionTyper:
    """Types expressions of one function; what variables hold is found by the statements."""

    def __init__(self, source: FunctionSource, weak_float: np.dtype) -> None:
        self.source = source
        self.weak_float = weak_float
        self.locals: set[str] = set()
        self.types: dict[str, Type] = {}
        self.arrays: dict[str, tuple[Type, int]] = {}
        self.parameters: dict[str, Typed] = {}
        self.counters: dict[str, str] = {}
        self.assigned: set[str] | None = set()

    def call(self, node: ast.Call) -> Typed:
        """Translate a call; see `calls.py`."""
        raise NotImplementedError

    # -- values -------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Typed:
        """Translate an expression."""
        match node:
            case ast.Constant(value=value):
                return self.number(node, value)
            case ast.Name(id=name) if name in self.locals or name in self.parameters:
                return self._local(node, name)
            case ast.Name() | ast.Attribute():
                return self._captured(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(node, type(op), self.value(left), self.value(right))
            case ast.BoolOp(op=op, values=values):
                return self._logical(isinstance(op, ast.And), [self.value(one) for one in values], node)
            case ast.Compare():
                return self._comparison(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._choice(node, test, body, orelse)
            case ast.Call():
                return self.call(node)
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name in self.arrays:
                kind, size = self.arrays[name]
                self.check_assigned(node, name)
                return Typed(ir.ItemAt(name, self.index(node, index, size), kind.computed), kind)
            case ast.Subscript():
                raise self.source.error(
                    node,
                    f"cannot index {self.source.text(node)}, which is no local array",
                    expected="a local array, made as [0.0] * 4",
                    hint="to read neighbours, name index parameters: def f(x, *, i): return x[i - 1] + x[i + 1]",
                )
        raise self.source.error(node, f"cannot compute {self.source.text(node)}", expected="arithmetic of numbers")

    def number(self, node: ast.AST, value: Any) -> Typed:
        """Return a Python or NumPy number."""
        if isinstance(value, np.generic) and not isinstance(value, float):
            strong = Type(parse_dtype(value.dtype))
            return Typed(ir.NumberLiteral(value.item(), strong.computed), strong)
        if isinstance(value, bool):
            return Typed(ir.NumberLiteral(value, "bool"), BOOLEAN)
        if isinstance(value, np.float64):
            return Typed(ir.NumberLiteral(float(value), "float64"), Type(value.dtype))
        if isinstance(value, int):
            if not -(2**63) <= value < 2**64:
                raise self.source.error(node, "cannot hold an integer in 64 bits", got=short_repr(value))
            return Typed(ir.NumberLiteral(value, "int64"), WHOLE)
        if isinstance(value, float):
            return Typed(ir.NumberLiteral(value, self.weak_float.name), Type(self.weak_float, weak=True))
        what = "a string" if isinstance(value, str) else f"{type(value).__name__}"
        raise self.source.error(
            node,
            f"cannot use {self.source.text(node)} as a number",
            expected="numbers: int, float or bool",
            got=what,
            hint="a kernel captures numbers by value; pass anything that varies as an argument",
        )

    def _captured(self, node: ast.Name | ast.Attribute) -> Typed:
        value = self.source.outside(node)
        if not isinstance(value, bool | int | float | np.generic) or isinstance(value, complex | np.complexfloating):
            raise self.source.error(
                node,
                f"cannot use {self.source.text(node)}, which is not a number",
                expected="an int, float or bool outside the kernel, captured by value",
                got=type(value).__name__,
                hint="pass it as an argument, or use numbers",
            )
        return self.number(node, value)

    def check_assigned(self, node: ast.AST, name: str) -> None:
        """Raise unless a variable surely has a value here."""
        if self.assigned is not None and name not in self.assigned:
            raise self.source.error(
                node,
                f"cannot read {name!r}, which may have no value yet",
                hint=f"give {name!r} a value before the branch or loop that sets it",
            )

    def _local(self, node: ast.AST, name: str) -> Typed:
        if name in self.counters:
            return Typed(ir.Local(self.counters[name], "int64"), WHOLE)
        if name not in self.locals:
            return self.parameters[name]
        self.check_assigned(node, name)
        if name in self.arrays:
            raise self.source.error(
                node,
                f"cannot use {name!r}, which is an array, as a number",
                expected=f"one of its numbers: {name}[i]",
                hint=f"len({name}) is known",
            )
        kind = self.types[name]
        return Typed(ir.Local(name, kind.computed), kind)

    # -- casts --------------------------------------------------------------------------------

    def cast(self, node: ast.AST, value: Typed, to: Type) -> ir.Expr:
        """Convert a value to another type; numbers that are known are converted here."""
        expr, dtype = value.expr, np.dtype(to.computed)
        if not isinstance(expr, ir.NumberLiteral):
            return expr if expr.dtype == to.computed else ir.Cast(expr, to.computed)
        if dtype == BOOL:
            return ir.NumberLiteral(bool(expr.value), "bool")
        if is_float(dtype):
            with np.errstate(over="ignore"):
                return ir.NumberLiteral(float(dtype.type(expr.value)), dtype.name)
        if isinstance(expr.value, float):
            return ir.Cast(expr, dtype.name)
        info = np.iinfo(dtype)
        if not info.min <= expr.value <= info.max:
            raise self.source.error(
                node,
                "cannot hold a number in the dtype of what it meets",
                expected=f"{info.min} to {info.max}, what {dtype.name} can hold",
                got=str(expr.value),
                hint="convert the other number first: np.int64(x)",
            )
        return ir.NumberLiteral(int(expr.value), dtype.name)

    def truth(self, node: ast.AST, value: Typed) -> ir.Expr:
        """Check whether a value counts as true."""
        return self.cast(node, value, BOOLEAN)

    def joined(self, node: ast.AST, one: Type, other: Type) -> Type:
        """Return the type that holds both."""
        try:
            return join(one, other, self.weak_float)
        except TypeError:
            raise self.source.error(node, "cannot find a dtype that holds both", got=f"{one} and {other}") from None

    def index(self, node: ast.AST, index: ast.expr, size: int) -> ir.Expr:
        """Return the index of an array."""
        value = self.value(index)
        if value.type.dtype.kind not in "iu":
            raise self.source.error(
                node, "cannot index by what is no integer", got=str(value.type), hint="use int(...)"
            )
        known = value.known
        if isinstance(known, int):
            if not -size <= known < size:
                raise self.source.error(
                    node, "cannot index outside the array", expected=f"{-size} to {size - 1}", got=str(known)
                )
            return ir.NumberLiteral(known % size, "int64")
        return self.cast(node, value, WHOLE)

    # -- operations ---------------------------------------------------------------------------

    def operation(self, node: ast.AST, name: str, *operands: Typed) -> Typed:
        """Apply an operation of the tables; numbers that are known are computed here, as Python does."""
        known = [operand.known for operand in operands]
        if name in PYTHON and all(value is not None for value in known):
            return self.folded(node, PYTHON[name], known)
        op = OPERATIONS[name]
        try:
            wanted, result = operand_types(op, [operand.type for operand in operands], self.weak_float)
        except TypeError:
            raise self.source.error(
                node,
                f"cannot compute {name} of these",
                got=", ".join(str(operand.type) for operand in operands),
                hint="convert them first, with int(), float() or a numpy dtype such as np.float32()",
            ) from None
        cast = tuple(self.cast(node, operand, to) for operand, to in zip(operands, wanted, strict=True))
        return Typed(ir.Operation(name, cast, result.computed), result)

    def folded(self, node: ast.AST, function: Callable[..., Any], known: Sequence[Any]) -> Typed:
        """Compute an operation on numbers that are known, as Python does."""
        try:
            value = function(*known)
        except (ArithmeticError, ValueError) as error:
            raise self.source.error(node, f"cannot compute {self.source.text(node)}: {error}") from None
        return self.number(node, value)

    def binary(self, node: ast.AST, symbol: type[ast.operator], left: Typed, right: Typed) -> Typed:
        """Translate a binary operator."""
        if symbol not in _BINARY:
            raise self.source.error(node, f"cannot compute {self.source.text(node)}", hint="write sums of products out")
        name = _BINARY[symbol]
        if not (left.type == right.type == BOOLEAN and symbol in (ast.BitAnd, ast.BitOr, ast.BitXor)):
            left, right = self.counted(left), self.counted(right)
        if symbol is ast.Pow and left.known is None:
            power = right.known
            if power == 2 and (isinstance(power, int) or is_float(left.type.dtype)):
                return self.operation(node, "square", left)
            if isinstance(power, int) and power < 0 and left.type.dtype.kind in "iu":
                raise self.source.error(
                    node, "cannot raise an integer to a negative power", hint="use float(...) of the base"
                )
        return self.operation(node, name, left, right)

    def counted(self, value: Typed) -> Typed:
        """Return a bool as the Python int that it is in arithmetic."""
        if value.type != BOOLEAN:
            return value
        expr = value.expr
        return Typed(
            ir.NumberLiteral(int(expr.value), "int64")
            if isinstance(expr, ir.NumberLiteral)
            else ir.Cast(expr, "int64"),
            WHOLE,
        )

    def _unary(self, node: ast.UnaryOp) -> Typed:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return Typed(ir.Operation("logical_not", (self.truth(node, value),), "bool"), BOOLEAN)
        if isinstance(node.op, ast.UAdd):
            return self.counted(value)
        if isinstance(node.op, ast.USub):
            return self.operation(node, "negative", self.counted(value))
        if value.type == BOOLEAN:
            raise self.source.error(node, "cannot invert a bool by ~, which gives -1 or -2 in Python", hint="use `not`")
        return self.operation(node, "bitwise_invert", value)

    def _logical(self, both: bool, values: Sequence[Typed], node: ast.AST) -> Typed:
        """Translate `and` and `or`, which give one of their operands, as in Python."""
        result = values[-1]
        for value in reversed(values[:-1]):
            if value.type == result.type == BOOLEAN:
                pair = (value.expr, result.expr)
                result = Typed(ir.Operation("logical_and" if both else "logical_or", pair, "bool"), BOOLEAN)
            else:
                yes, no = (result, value) if both else (value, result)
                result = self.chosen(node, self.truth(node, value), yes, no)
        return result

    def chosen(self, node: ast.AST, condition: ir.Expr, yes: Typed, no: Typed) -> Typed:
        """Return one of two values."""
        kind = self.joined(node, yes.type, no.type)
        return Typed(ir.Choose(condition, self.cast(node, yes, kind), self.cast(node, no, kind), kind.computed), kind)

    def _choice(self, node: ast.AST, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Typed:
        condition = self.truth(node, self.value(test))
        if isinstance(condition, ir.NumberLiteral):
            return self.value(body if condition.value else orelse)
        return self.chosen(node, condition, self.value(body), self.value(orelse))

    def _comparison(self, node: ast.Compare) -> Typed:
        values = [self.value(one) for one in (node.left, *node.comparators)]
        pairs = zip(node.ops, values[:-1], values[1:], strict=True)
        tests = [self.compared(node, type(op), left, right) for op, left, right in pairs]
        return self._logical(True, tests, node)

    def compared(self, node: ast.AST, symbol: type[ast.cmpop], left: Typed, right: Typed) -> Typed:
        """Compare two numbers."""
        if symbol not in _COMPARED:
            raise self.source.error(
                node, f"cannot compute {self.source.text(node)}", expected="a comparison of numbers"
            )
        name = _COMPARED[symbol]
        try:
            one, other = compared_types(left, right, self.weak_float)
        except TypeError:
            raise self.source.error(node, "cannot be compared", got=f"{left.type} and {right.type}") from None
        if one != other:
            return self._mixed_signs(node, name, (left, one), (right, other))
        pair = self.cast(node, left, one), self.cast(node, right, other)
        return Typed(ir.Operation(name, pair, "bool"), BOOLEAN)

    def _mixed_signs(self, node: ast.AST, name: str, left: tuple[Typed, Type], right: tuple[Typed, Type]) -> Typed:
        """Compare a signed number with one of uint64 exactly: a negative number is below every unsigned one."""
        signed_first = left[1].dtype != UINT64
        signed = left if signed_first else right
        number = self.cast(node, *signed)
        unsigned = Type(UINT64)
        within = ir.Operation(name, (self.cast(node, left[0], unsigned), self.cast(node, right[0], unsigned)), "bool")
        negative = ir.Operation("less", (number, ir.NumberLiteral(0, number.dtype)), "bool")
        below = _BELOW_ALL[name] if signed_first or name in ("equal", "not_equal") else not _BELOW_ALL[name]
        return Typed(ir.Choose(negative, ir.NumberLiteral(below, "bool"), within, "bool"), BOOLEAN)
