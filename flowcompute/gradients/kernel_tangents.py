"""Derivatives of users' functions: forward mode on their typed statements, inside the same kernel.

Beside each float variable that depends on an argument stands one that holds its derivative (Griewank and Walther,
"Evaluating Derivatives", 2008, chapter 3). Loops and branches run as they do for the value, so they need no tape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute import function_ir as ir
from flowcompute.elements import Compute, user_site
from flowcompute.elements.functions import UserOp, user_op
from flowcompute.elements.math import ELEMENTWISE
from flowcompute.errors import SpecError
from flowcompute.gradients.cotangents import times
from flowcompute.gradients.rules import RULES, Contribution, NoGradient
from flowcompute.gradients.slopes import BINARY, UNARY, first_of
from flowcompute.spec import Spec, is_float

_END = "__slope"
"""Stands at the end of the names of derivatives; a user's name that ends so gets another one."""


def kernel_gradient(node: Compute, g: Any) -> tuple[Contribution, ...]:
    """Return the cotangents of the operands of a user's function.

    Raises:
        SpecError: if it calls what has no gradient.
    """
    op = node.op
    assert isinstance(op, UserOp)
    made: list[Contribution] = []
    for position, operand in enumerate(node.inputs):
        found = None if not is_float(operand.dtype) else derivative(op.function, op.result, position)
        if found is None:
            made.append(None)
            continue
        record = user_op(found, 0, f"The derivative of {op.name}.")
        spec = Spec(node.dtype, node.spec.shape, node.spec.stream)
        slope = Compute(record, node.inputs, spec, {"function": found.digest, "result": 0})
        made.append(times(g, slope))
    return tuple(made)


def derivative(function: ir.TypedFunction, result: int, argument: int) -> ir.TypedFunction | None:
    """Return the derivative of a result by an argument, as a function of the same arguments; None where it is 0."""
    one = ir.NumberLiteral(1.0, _computed(function.parameters[argument]))
    return _Tangents(function, {argument: one}).function((result,), ())


def _computed(dtype: str) -> str:
    """Return the dtype that a stored one is computed in."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _floats(dtype: str) -> bool:
    return is_float(ir.stored(dtype))


class _Tangents:
    """One function with the derivatives of its variables.

    Args:
        function: the function.
        seeds: derivatives of its arguments, by position; those of others are 0.
    """

    def __init__(self, function: ir.TypedFunction, seeds: Mapping[int, ir.Expr]) -> None:
        self._function = function
        self._seeds = seeds
        self._dtypes = {one.name: one.dtype for one in function.variables}
        end = _END
        while any(name.endswith(end) for name in self._dtypes):
            end += "_"
        self._end = end
        self._active: set[str] = set()
        while self._grows(function.body):
            pass

    def function(self, results: Iterable[int], tangents: tuple[str, ...]) -> ir.TypedFunction | None:
        """Return the function that gives derivatives of these results; None where all of them are 0.

        Args:
            results: their positions.
            tangents: dtypes of arguments behind the function's own.
        """
        self._results = tuple(results)
        if not self._returns(self._function.body):
            return None
        slopes = tuple(
            replace(one, name=one.name + self._end) for one in self._function.variables if one.name in self._active
        )
        return replace(
            self._function,
            name=f"d_{self._function.name}",
            parameters=(*self._function.parameters, *tangents),
            variables=(*self._function.variables, *slopes),
            body=self._block(self._function.body),
            results=tuple(self._function.results[one] for one in self._results),
        )

    # -- which variables depend on the arguments ----------------------------------------------------------------------

    def _grows(self, body: Iterable[ir.Stmt]) -> bool:
        """Find variables that depend on active values; return whether there was a new one."""
        before = len(self._active)
        for part in self._statements(body):
            if isinstance(part, ir.Set) and self._depends(part.value):
                self._add(part.name)
            elif isinstance(part, ir.Fill | ir.PutAt) and self._depends(part.value):
                self._add(part.array)
            elif isinstance(part, ir.SetAll) and any(map(self._depends, part.call.operands)):
                for name in part.names:
                    self._add(name)
        return len(self._active) > before

    def _add(self, name: str) -> None:
        if _floats(self._dtypes[name]):
            self._active.add(name)

    def _returns(self, body: Iterable[ir.Stmt]) -> bool:
        """Check whether a result depends on the arguments."""
        found = (part for part in self._statements(body) if isinstance(part, ir.Return))
        return any(self.of(part.values[one]) is not None for part in found for one in self._results)

    def _statements(self, body: Iterable[ir.Stmt]) -> Iterable[ir.Stmt]:
        for part in body:
            yield part
            if isinstance(part, ir.Branch):
                yield from self._statements((*part.body, *part.otherwise))
            elif isinstance(part, ir.WhileLoop):
                yield from self._statements((*part.body, *part.step))
            elif isinstance(part, ir.ForRange):
                yield from self._statements(part.body)

    def _depends(self, part: ir.Expr) -> bool:
        return self.of(part) is not None

    # -- statements -------------------------------------------------------------------------------------------------

    def _block(self, body: Iterable[ir.Stmt]) -> tuple[ir.Stmt, ...]:
        return tuple(made for part in body for made in self._statement(part))

    def _statement(self, part: ir.Stmt) -> list[ir.Stmt]:
        """Return a statement behind that of its derivative, which reads what variables hold before."""
        if isinstance(part, ir.Return):
            return [ir.Return(tuple(self._slope(part.values[one]) for one in self._results))]
        if isinstance(part, ir.Set):
            return [*([ir.Set(part.name + self._end, self._slope(part.value))] * (part.name in self._active)), part]
        if isinstance(part, ir.Fill):
            return [*([ir.Fill(part.array + self._end, self._slope(part.value))] * (part.array in self._active)), part]
        if isinstance(part, ir.PutAt):
            beside = [ir.PutAt(part.array + self._end, part.index, self._slope(part.value))]
            return [*(beside * (part.array in self._active)), part]
        if isinstance(part, ir.SetAll):
            return [*self._set_all(part), part]
        if isinstance(part, ir.Branch):
            return [replace(part, body=self._block(part.body), otherwise=self._block(part.otherwise))]
        if isinstance(part, ir.WhileLoop):
            return [replace(part, body=self._block(part.body), step=self._block(part.step))]
        if isinstance(part, ir.ForRange):
            return [replace(part, body=self._block(part.body))]
        return [part]

    def _set_all(self, part: ir.SetAll) -> list[ir.Stmt]:
        wanted = [i for i, name in enumerate(part.names) if name in self._active]
        if not wanted:
            return []
        called = self._called(part.call, wanted)
        names = tuple(part.names[i] + self._end for i in wanted)
        if called is None:
            return [
                ir.Set(name, ir.NumberLiteral(0.0, self._dtypes[part.names[i]]))
                for name, i in zip(names, wanted, strict=True)
            ]
        return [ir.SetAll(names, called) if len(names) > 1 else ir.Set(names[0], called)]

    def _slope(self, part: ir.Expr) -> ir.Expr:
        made = self.of(part)
        return ir.NumberLiteral(0.0, part.dtype) if made is None else made

    # -- expressions ------------------------------------------------------------------------------------------------

    def of(self, part: ir.Expr) -> ir.Expr | None:
        """Return the derivative of an expression; None for 0."""
        if not _floats(part.dtype):
            return None
        if isinstance(part, ir.Parameter):
            return self._seeds.get(part.index)
        if isinstance(part, ir.Local):
            return ir.Local(part.name + self._end, part.dtype) if part.name in self._active else None
        if isinstance(part, ir.ItemAt):
            return replace(part, array=part.array + self._end) if part.array in self._active else None
        if isinstance(part, ir.Cast):
            inner = self.of(part.operand)
            return None if inner is None else ir.Cast(inner, part.dtype)
        if isinstance(part, ir.Choose):
            return self._either(part.condition, self.of(part.yes), self.of(part.no), part.dtype)
        if isinstance(part, ir.Call):
            return self._called(part, (0,))
        return self._operation(part) if isinstance(part, ir.Operation) else None

    def _called(self, part: ir.Call, results: Iterable[int]) -> ir.Call | None:
        """Return the call of another function's derivatives."""
        slopes = [self.of(one) for one in part.operands]
        active = [i for i, one in enumerate(slopes) if one is not None]
        own = part.function.parameters
        dtypes = tuple(_computed(own[i]) for i in active)
        seeds = {i: ir.Parameter(len(own) + k, dtypes[k]) for k, i in enumerate(active)}
        made = _Tangents(part.function, seeds).function(results, dtypes) if active else None
        if made is None:
            return None
        return ir.Call(made, (*part.operands, *(one for one in slopes if one is not None)), part.dtype)

    @staticmethod
    def _either(condition: ir.Expr, yes: ir.Expr | None, no: ir.Expr | None, dtype: str) -> ir.Expr | None:
        if yes is None and no is None:
            return None
        zero = ir.NumberLiteral(0.0, dtype)
        return ir.Choose(condition, zero if yes is None else yes, zero if no is None else no, dtype)

    def _operation(self, part: ir.Operation) -> ir.Expr | None:
        slopes = [self.of(one) for one in part.operands]
        if all(one is None for one in slopes) or isinstance(RULES.get(f"elementwise.{part.op}"), NoGradient):
            return None
        if part.op == "where":
            return self._either(part.operands[0], slopes[1], slopes[2], part.dtype)
        if part.op in ("maximum", "minimum", "fmax", "fmin"):
            first = first_of(_F, part.op, *(_Traced(one) for one in part.operands))
            return self._either(first.part, slopes[0], slopes[1], part.dtype)
        if part.op in ("add", "subtract"):
            return self._sum(part, slopes)
        if part.op in ("positive", "quiet_nan", "negative"):
            (inner,) = slopes
            return inner if inner is None or part.op != "negative" else ir.Operation("negative", (inner,), part.dtype)
        traced, whole = [_Traced(one) for one in part.operands], _Traced(part)
        if part.op in UNARY:
            partials: list[Any] = [UNARY[part.op](_F, traced[0], whole)]
        elif part.op in BINARY:
            partials = [
                None if one is None or slope is None else slope(_F, traced[0], traced[1], whole)
                for slope, one in zip(BINARY[part.op], slopes, strict=True)
            ]
        else:
            raise SpecError(
                f"cannot find the gradient of {part.op} in {self._function.name}",
                element=self._function.name,
                site=user_site(),
                expected="operations that have a gradient",
                hint="give it one of its own: @f.vjp",
            )
        made: ir.Expr | None = None
        for partial, slope in zip(partials, slopes, strict=True):
            if partial is None or slope is None:
                continue
            one = partial.part if _is_one(slope) else ir.Operation("multiply", (slope, partial.part), part.dtype)
            made = one if made is None else ir.Operation("add", (made, one), part.dtype)
        return made

    @staticmethod
    def _sum(part: ir.Operation, slopes: list[ir.Expr | None]) -> ir.Expr | None:
        left, right = slopes
        if right is None:
            return left
        if left is not None:
            return ir.Operation(part.op, (left, right), part.dtype)
        return right if part.op == "add" else ir.Operation("negative", (right,), part.dtype)


def _is_one(part: ir.Expr) -> bool:
    return isinstance(part, ir.NumberLiteral) and part.value == 1


class _Traced:
    """An expression that Python's operators make larger ones of."""

    def __init__(self, part: ir.Expr) -> None:
        self.part = part

    def literal(self, other: Any) -> _Traced:
        """Return a number in the dtype of this expression."""
        return other if isinstance(other, _Traced) else _Traced(ir.NumberLiteral(float(other), self.part.dtype))

    def __add__(self, other: Any) -> _Traced:
        return _operation("add", self, self.literal(other))

    def __sub__(self, other: Any) -> _Traced:
        return _operation("subtract", self, self.literal(other))

    def __rsub__(self, other: Any) -> _Traced:
        return _operation("subtract", self.literal(other), self)

    def __mul__(self, other: Any) -> _Traced:
        return _operation("multiply", self, self.literal(other))

    def __truediv__(self, other: Any) -> _Traced:
        return _operation("divide", self, self.literal(other))


def _operation(name: str, *operands: _Traced) -> _Traced:
    parts = tuple(one.part for one in operands)
    if name in ELEMENTWISE:
        dtypes = ELEMENTWISE[name].op.dtypes(*(ir.stored(one.dtype) for one in parts))
        return _Traced(ir.Operation(name, parts, np.dtype(dtypes[-1]).name))
    return _Traced(ir.Operation(name, parts, parts[0].dtype))


class _Functions:
    """The operations of the tables on traced expressions."""

    def __getattr__(self, name: str) -> Any:
        def made(*operands: Any) -> _Traced:
            first = next(one for one in operands if isinstance(one, _Traced))
            return _operation(name, *(first.literal(one) for one in operands))

        return made

    @staticmethod
    def one(like: _Traced) -> _Traced:
        """Return the number 1."""
        return like.literal(1.0)

    @staticmethod
    def where(condition: _Traced, yes: Any, no: Any) -> _Traced:
        """Choose one of two expressions."""
        known = yes if isinstance(yes, _Traced) else no
        return _Traced(ir.Choose(condition.part, known.literal(yes).part, known.literal(no).part, known.part.dtype))


_F = _Functions()
