"""Types of calls: Python's own functions of numbers, `math`, NumPy's, and other kernels."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.elements.functions.callable_tables import FLOAT_CALLS, INTEGER_CALLS, OPERATIONS, UFUNC_CALLS
from flowcompute.elements.functions.function_expressions import ExpressionTyper
from flowcompute.elements.functions.promote import BOOLEAN, WHOLE, Type, Typed
from flowcompute.elements.functions.read_source import FunctionSource
from flowcompute.elements.op import by_ufunc
from flowcompute.spec import is_float, parse_dtype

_CALLABLE = "math.* and numpy functions of numbers, abs, min, max, round, int, float, bool, and other kernels"


class Callee(Protocol):
    """A kernel that another one calls."""

    __name__: str

    @property
    def arity(self) -> int:
        """The number of arguments, None where any may be given."""


Nested = Callable[[Any, Sequence[Type]], tuple[ir.TypedFunction, tuple[Type, ...]]]
"""A called kernel for arguments of these types, with the types of its results."""


class Calls(ExpressionTyper):
    """Types calls; `nested` gives the functions that are called."""

    def __init__(self, source: FunctionSource, weak_float: np.dtype, nested: Nested) -> None:
        super().__init__(source, weak_float)
        self.nested = nested

    def call(self, node: ast.Call) -> Typed:
        """Translate a call that gives one number."""
        function = self.called(node)
        name = self.source.text(node.func)
        if function is len:
            return self._length(node)
        operands = [self.value(argument) for argument in node.args]
        if hasattr(function, "specialised"):
            call, kinds = self.user_call(node, function, operands)
            if len(kinds) != 1:
                raise self.source.error(
                    node,
                    f"cannot take one number from {name}, which gives {len(kinds)} results",
                    hint=f"unpack them: a, b = {self.source.text(node)}",
                )
            return Typed(call, kinds[0])
        if function in (min, max):
            return self._extreme(node, "less" if function is min else "greater", operands)
        if function is builtins.pow and len(operands) == 2:
            return self.binary(node, ast.Pow, *operands)
        if function is math.log and len(operands) == 2:
            quotient = [self._float_call(node, math.log, [operand]) for operand in operands]
            return self.operation(node, "divide", *quotient)
        arity = 1 if function in (abs, int, float, bool) else self._arity(function)
        if arity is None and not (isinstance(function, type) and issubclass(function, np.generic)):
            kernel = f"decorate {name} with @fc.kernel, or " if isinstance(function, FunctionType) else ""
            hint = "write a if test else b" if function is np.where else f"{kernel}do it outside, or with fc.host"
            raise self.source.error(node, f"cannot call {name} in a kernel", expected=_CALLABLE, hint=hint)
        if len(operands) != (arity or 1):
            raise self.source.error(
                node, f"cannot call {name} with so many arguments", expected=str(arity or 1), got=str(len(operands))
            )
        return self._simple_call(node, function, operands)

    def _simple_call(self, node: ast.Call, function: Any, operands: list[Typed]) -> Typed:
        if function is abs:
            return self.operation(node, "abs", self.counted(operands[0]))
        if function in FLOAT_CALLS:
            return self._float_call(node, function, operands)
        if function in INTEGER_CALLS:
            return self._integer_call(node, function, operands[0])
        if function in UFUNC_CALLS:
            return self.operation(node, UFUNC_CALLS[function], *operands)
        return self.converted(node, function, operands[0])

    def called(self, node: ast.Call) -> Any:
        """Find what a call calls."""
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.source.error(node, "cannot call with other than plain arguments", got=self.source.text(node))
        if isinstance(node.func, ast.Name) and (node.func.id in self.locals or node.func.id in self.parameters):
            raise self.source.error(node, f"cannot call {node.func.id!r}, which is a number")
        return self.source.outside(node.func)

    @staticmethod
    def _arity(function: Any) -> int | None:
        try:
            name = FLOAT_CALLS.get(function) or INTEGER_CALLS.get(function) or UFUNC_CALLS.get(function)
        except TypeError:
            return None
        return None if name is None else OPERATIONS[name].arity

    def _length(self, node: ast.Call) -> Typed:
        match node.args:
            case [ast.Name(id=name)] if name in self.arrays:
                return self.number(node, self.arrays[name][1])
        raise self.source.error(node, "cannot take len() of what is no local array", got=self.source.text(node))

    def user_call(self, node: ast.AST, function: Callee, operands: Sequence[Typed]) -> tuple[ir.Call, tuple[Type, ...]]:
        """Return a call of another kernel with the types of its results."""
        if len(operands) != function.arity:
            raise self.source.error(
                node,
                f"cannot call {function.__name__} with so many arguments",
                expected=str(function.arity),
                got=str(len(operands)),
            )
        inner, kinds = self.nested(function, [operand.type for operand in operands])
        cast = tuple(self.cast(node, operand, operand.type) for operand in operands)
        return ir.Call(inner, cast, kinds[0].computed), kinds

    def _extreme(self, node: ast.AST, test: str, operands: list[Typed]) -> Typed:
        """Translate Python's min and max: a later operand wins only where it is strictly better, so NaN seldom does."""
        if len(operands) < 2:
            raise self.source.error(
                node, "cannot take the min or max of fewer than two numbers", got=self.source.text(node)
            )
        symbol = ast.Lt if test == "less" else ast.Gt
        best = operands[0]
        for other in operands[1:]:
            best = self.chosen(node, self.compared(node, symbol, other, best).expr, other, best)
        return best

    def _float_call(self, node: ast.AST, function: Any, operands: list[Typed]) -> Typed:
        known = [operand.known for operand in operands]
        if all(value is not None for value in known):
            return self.folded(node, function, known)
        return self.operation(node, FLOAT_CALLS[function], *(self._as_float(operand) for operand in operands))

    def _as_float(self, value: Typed) -> Typed:
        if is_float(value.type.dtype):
            return value
        weak = value.type.weak or value.type == BOOLEAN
        kind = Type(self.weak_float, weak=True) if weak else Type(by_ufunc(np.sqrt)(value.type.dtype)[-1])
        known = value.known
        return Typed(
            ir.NumberLiteral(float(known), kind.computed) if known is not None else ir.Cast(value.expr, kind.computed),
            kind,
        )

    def _integer_call(self, node: ast.AST, function: Any, value: Typed) -> Typed:
        """Translate math.floor and its like, which give a Python int."""
        if value.known is not None:
            return self.folded(node, function, [value.known])
        if not is_float(value.type.dtype):
            return self.counted(value)
        whole = self.operation(node, INTEGER_CALLS[function], value)
        return Typed(ir.Cast(whole.expr, "int64"), WHOLE)

    def converted(self, node: ast.AST, to: Any, value: Typed) -> Typed:
        """Translate int(), float(), bool() and NumPy's dtypes."""
        if to is bool:
            return Typed(self.truth(node, value), BOOLEAN)
        if to is int:
            if not is_float(value.type.dtype):
                return self.counted(value)
            if value.known is not None:
                return self.folded(node, int, [value.known])
            return Typed(ir.Cast(value.expr, "int64"), WHOLE)
        if to is float:
            if is_float(value.type.dtype):
                return value
            kind = Type(self.weak_float, weak=True)
            return Typed(self.cast(node, self.counted(value), kind), kind)
        try:
            kind = Type(parse_dtype(to))
        except TypeError as error:
            raise self.source.error(node, str(error)) from None
        return Typed(self.cast(node, value, kind), kind)
