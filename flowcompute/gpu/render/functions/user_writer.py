"""Writer of expressions and declarations of users' functions in OpenCL C, for vectors and for single numbers.

Operations are those of the tables, so `math.exp` in a kernel and `fc.exp` give equal bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flowcompute import function_ir as user
from flowcompute import ir
from flowcompute.elements.functions import OPERATIONS
from flowcompute.gpu.render.opencl_types import mask_type, type_of, var_type
from flowcompute.gpu.render.render_expressions import ExpressionRenderer, literal
from flowcompute.ir import Var, register_dtype
from flowcompute.spec import BOOL, INT64

Mask = Var | None
"""Mask of the lanes that reach a statement; None is all of them."""

Defined = Callable[[user.TypedFunction, int, ExpressionRenderer], str]
"""Function that returns the name of a user's function for so many lanes, defined on first use."""

_LONG = 300
"""Number of parts from which a function is called on CPUs, not inlined."""

_SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*"}


def mask_bytes(function: user.TypedFunction) -> int:
    """Return the bytes of a bool inside a function, which are those of its widest argument."""
    named = (register_dtype(user.stored(name)) for name in function.parameters)
    return max((dtype.itemsize for dtype in named if dtype != BOOL), default=4)


def _is_long(function: user.TypedFunction) -> bool:
    """Check whether a call of a function costs little beside its body."""
    inside = list(user.parts(function))
    return len(inside) > _LONG or any(isinstance(part, user.WhileLoop | user.ForRange) for part in inside)


class FunctionWriter:
    """Base of both writers: expressions and declarations."""

    def __init__(
        self, function: user.TypedFunction, lanes: int, expressions: ExpressionRenderer, defined: Defined
    ) -> None:
        self.function = function
        self.lanes = lanes
        self.defined = defined
        self.expressions = expressions
        self.width = mask_bytes(function)
        self.lines: list[str] = []
        self.depth = 1
        self.temporaries = 0
        self.variables = {variable.name: variable for variable in function.variables}
        self.counters: dict[str, range] = {}
        self.results = [self._register(register_dtype(user.stored(name)), f"r{i}")
                        for i, name in enumerate(function.results)]  # fmt: skip
        self.loops = user.loops(function)

    # -- frame --------------------------------------------------------------------------------

    def text(self, name: str) -> str:
        """Return the definition of the function."""
        own = [self._register(register_dtype(user.stored(dtype)), f"a{i}")
               for i, dtype in enumerate(self.function.parameters)]  # fmt: skip
        parameters = [f"{var_type(var)} {var.name}" for var in own]
        if self.loops:
            parameters.insert(0, f"{mask_type(self.width, self.lanes)} live")
        parameters += [f"{var_type(var)} *p{i}" for i, var in enumerate(self.results) if i]
        for variable in self.function.variables:
            if not variable.counter:
                self._declare(variable)
        self.body()
        # Folds call it many times in one kernel. Copies of a loop would take long to compile, and a call costs little.
        outlined = self.expressions.cpu and _is_long(self.function)
        kept = "static __attribute__((noinline))" if outlined else "static inline"
        head = f"{kept} {var_type(self.results[0])} {name}({', '.join(parameters)}) {{"
        return "\n".join([head, *self.lines, "}"]) + "\n"

    def body(self) -> None:
        """Write the statements."""
        raise NotImplementedError

    def _declare(self, variable: user.Variable) -> None:
        kind = var_type(self._register(np.dtype(variable.dtype)))
        name = self._name(variable.name)
        self.line(f"{kind} {name}[{variable.size}];" if variable.size else f"{kind} {name} = ({kind})(0);")

    def _register(self, dtype: np.dtype, name: str = "") -> Var:
        return Var(name, dtype, self.lanes, self.width if dtype == BOOL else 0)

    def _name(self, name: str) -> str:
        """Return a variable's name in C, where it is neither a keyword nor a function."""
        return f"{name}_" if name.isascii() else f"local{list(self.variables).index(name)}"

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self.depth + text)

    def open(self, text: str) -> None:
        """Begin a block."""
        self.line(f"{text} {{")
        self.depth += 1

    def close(self) -> None:
        """End a block."""
        self.depth -= 1
        self.line("}")

    def open_counted(self, loop: user.ForRange) -> None:
        """Begin a loop over a known range, with the number of iterations to unroll."""
        self.counters[loop.counter] = range(loop.start, loop.stop, loop.step)
        own, sign = self._name(loop.counter), "<" if loop.step > 0 else ">"
        turns = self.function.unroll or self.expressions.unroll
        if turns > 1:
            self.line(f"#pragma unroll {turns}")
        self.open(f"for (long {own} = {loop.start}; {own} {sign} {loop.stop}; {own} += {loop.step})")

    def let(self, var: Var, text: str) -> Var:
        """Declare a value of the type of `var` and return it."""
        named = Var(f"t{self.temporaries}", var.dtype, var.lanes, var.mask_bytes)
        self.temporaries += 1
        self.line(f"{var_type(named)} {named.name} = {text};")
        return named

    # -- masks --------------------------------------------------------------------------------

    def words(self, mask: Var) -> str:
        """Return a mask in the function's own width."""
        return self.expressions.mask(mask, self.width)

    def everywhere(self) -> Var:
        """Return the mask of all lanes."""
        var = self._register(BOOL)
        return Var(literal(True, var), BOOL, var.lanes, var.mask_bytes)

    def both(self, one: Mask, other: Var, negated: bool = False) -> Var:
        """Return the lanes of a mask where another one holds, or does not."""
        if one is None and not negated:
            return other
        right = f"(!{self.words(other)})" if negated else self.words(other)
        return self.let(self._register(BOOL), right if one is None else f"({self.words(one)} & {right})")

    # -- expressions --------------------------------------------------------------------------

    def value(self, expr: user.Expr, mask: Mask) -> Var:
        """Return the value of an expression where the mask holds."""
        dtype = np.dtype(expr.dtype)
        var = self._register(dtype)
        match expr:
            case user.NumberLiteral(value):
                return Var(literal(value, var), dtype, self.lanes, var.mask_bytes)
            case user.Parameter(index):
                return self._register(dtype, f"a{index}")
            case user.Local(name):
                text = self._name(name)
                return self._register(dtype, f"(({var_type(var)})({text}))" if name in self.counters else text)
            case user.Operation():
                return self._operation(expr, mask)
            case user.Cast(operand):
                return self._cast(operand, var, mask)
            case user.Choose(condition, yes, no):
                chosen = self.value(condition, mask)
                wanted = any(user.loops(part.function) for part in user.parts(expr) if isinstance(part, user.Call))
                at = (self.both(mask, chosen), self.both(mask, chosen, negated=True)) if wanted else (mask, mask)
                select = ir.Select(chosen, self.value(yes, at[0]), self.value(no, at[1]))
                return self.let(var, self.expressions.expression(select, var))
            case user.ItemAt(array, index):
                return self.let(var, self._item(array, index, mask))
            case user.Call():
                return self.call(expr, mask)[0]

    def _operation(self, expr: user.Operation, mask: Mask) -> Var:
        op, dtype = OPERATIONS[expr.op], np.dtype(expr.dtype)
        operands = [self.value(expr.operands[0], mask)]
        for operand in expr.operands[1:]:
            if expr.op in ("logical_and", "logical_or") and any(isinstance(p, user.Call) for p in user.parts(operand)):
                mask = self.both(mask, operands[0], negated=expr.op == "logical_or")
            operands.append(self.value(operand, mask))
        source = operands[0].dtype
        width = (self.width if source == BOOL else source.itemsize) if dtype == BOOL else 0
        var = Var("", dtype, self.lanes, width)
        return self.let(var, self.expressions.expression(ir.Apply(op, tuple(operands), source), var))

    def _cast(self, operand: user.Expr, var: Var, mask: Mask) -> Var:
        same = self.uniform(operand)
        if same is not None and var.dtype != BOOL:
            one = type_of(var.dtype, 1, 0)
            return self._register(var.dtype, f"(({var_type(var)})(({one})({same})))")
        source = self.value(operand, mask)
        width = source.mask_bytes or source.dtype.itemsize
        result = Var("", var.dtype, self.lanes, width if var.dtype == BOOL else 0)
        return self.let(result, self.expressions.expression(ir.Convert(source, source.dtype, var.dtype), result))

    def call(self, expr: user.Call, mask: Mask) -> list[Var]:
        """Return all results of a function that this one calls."""
        inner = expr.function
        name, width = self.defined(inner, self.lanes, self.expressions), mask_bytes(inner)
        operands = [self.value(operand, mask) for operand in expr.operands]
        words = [self.expressions.mask(one, width) if one.dtype == BOOL else one.name for one in operands]
        if user.loops(inner):
            words.insert(0, self.expressions.mask(mask or self.everywhere(), width))
        others = []
        for dtype in inner.results[1:]:
            var = Var("", register_dtype(user.stored(dtype)), self.lanes, width if dtype == "bool" else 0)
            others.append(self.let(var, f"({var_type(var)})(0)"))
        words += [f"&{other.name}" for other in others]
        dtype = inner.results[0]
        var = Var("", register_dtype(user.stored(dtype)), self.lanes, width if dtype == "bool" else 0)
        return [self.let(var, f"{name}({', '.join(words)})"), *others]

    # -- arrays -------------------------------------------------------------------------------

    def uniform(self, expr: user.Expr) -> str | None:
        """Return the C text of an integer that is the same in all lanes, or None."""
        match expr:
            case user.NumberLiteral(value=int() as value) if not isinstance(value, bool) and abs(value) < 2**62:
                return f"{value}L"
            case user.Local(name) if name in self.counters:
                return self._name(name)
            case user.Operation(op, (left, right)) if op in _SYMBOLS and expr.dtype == "int64":
                one, other = self.uniform(left), self.uniform(right)
                return None if one is None or other is None else f"({one} {_SYMBOLS[op]} {other})"
        return None

    def place(self, array: str, index: user.Expr, mask: Mask) -> tuple[str, bool]:
        """Return the place of a number in an array, and whether it is the same in all lanes."""
        size = self.variables[array].size
        if isinstance(index, user.NumberLiteral) or (isinstance(index, user.Local) and self._inside(index.name, size)):
            return self.uniform(index) or "0", True
        same = self.uniform(index)
        given = self.value(index, mask).name if same is None else same
        at = Var("", INT64, self.lanes if same is None else 1)
        kind = var_type(at)
        raw = self.let(at, given).name
        whole = self.let(at, f"({raw} < ({kind})(0) ? {raw} + ({kind})({size}) : {raw})").name
        low = self.let(at, f"({whole} < ({kind})(0) ? ({kind})(0) : {whole})").name
        return self.let(at, f"({low} >= ({kind})({size}) ? ({kind})({size - 1}) : {low})").name, same is not None

    def _inside(self, counter: str, size: int) -> bool:
        steps = self.counters.get(counter)
        return steps is not None and min(steps) >= 0 and max(steps) < size

    def each(self, array: str, place: str) -> list[str]:
        """Return the numbers of an array at a separate place for each lane."""
        kind = type_of(np.dtype(self.variables[array].dtype), self.lanes, self.width)
        flat = f"(({kind.rstrip('0123456789')} *){self._name(array)})"
        return [f"{flat}[{place}.s{lane:x} * {self.lanes} + {lane}]" for lane in range(self.lanes)]

    def _item(self, array: str, index: user.Expr, mask: Mask) -> str:
        place, same = self.place(array, index, mask)
        if same or self.lanes == 1:
            return f"{self._name(array)}[{place}]"
        kind = type_of(np.dtype(self.variables[array].dtype), self.lanes, self.width)
        return f"({kind})({', '.join(self.each(array, place))})"

    def held(self, name: str) -> Var:
        """Return a variable."""
        return self._register(np.dtype(self.variables[name].dtype), self._name(name))

    def as_held(self, value: Var) -> str:
        """Return a value in the form in which variables hold it."""
        return self.words(value) if value.dtype == BOOL else value.name
