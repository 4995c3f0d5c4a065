"""Calls of users' functions in kernels, and their definitions for single numbers."""

from __future__ import annotations

from collections.abc import Sequence

from flowcompute import function_ir as user
from flowcompute import ir
from flowcompute.elements.functions import SourceOp
from flowcompute.gpu.render.functions.hand_written import hand_written_call
from flowcompute.gpu.render.functions.user_vectors import VectorWriter
from flowcompute.gpu.render.functions.user_writer import FunctionWriter, mask_bytes
from flowcompute.gpu.render.opencl_types import var_type
from flowcompute.gpu.render.render_expressions import ExpressionRenderer, literal
from flowcompute.ir import Var, register_dtype
from flowcompute.spec import BOOL


def call_lines(statement: ir.CallFunction, expressions: ExpressionRenderer) -> list[str]:
    """Return the statements that declare and compute all results of a function in a kernel."""
    if isinstance(statement.op, SourceOp):
        var = statement.vars[0]
        value = hand_written_call(statement, statement.op, expressions)
        if statement.rounds is not None:
            value = f"{expressions.helper('round', statement.rounds, var.lanes)}({value})"
        return [f"{var_type(var)} {var.name} = {value};"]
    function, lanes = statement.op.function, statement.vars[0].lanes
    name = _defined(function, lanes, expressions)
    width = mask_bytes(function)
    words = [
        expressions.mask(operand, width) if operand.dtype == BOOL else operand.name for operand in statement.operands
    ]
    if user.loops(function):
        there = Var("", BOOL, lanes, width)
        count = statement.count
        words.insert(0, literal(True, there) if count is None else expressions.expression(ir.Below(count), there))
    own = [_Result(var, dtype, width, expressions) for var, dtype in zip(statement.vars, function.results, strict=True)]
    lines = [f"{var_type(result.held)} {result.held.name};" for result in own[1:]]
    words += [f"&{result.held.name}" for result in own[1:]]
    lines.append(f"{var_type(own[0].held)} {own[0].held.name} = {name}({', '.join(words)});")
    return lines + [line for result in own for line in result.lines()]


class _Result:
    """A result in the form of the function, and in the form that the kernel needs."""

    def __init__(self, var: Var, dtype: str, width: int, expressions: ExpressionRenderer) -> None:
        self.var = var
        self.stored = user.stored(dtype)
        self.expressions = expressions
        held_width = width if var.dtype == BOOL else 0
        differs = register_dtype(self.stored) != self.stored or held_width != var.mask_bytes
        self.held = Var(f"{var.name}_as_given" if differs else var.name, var.dtype, var.lanes, held_width)

    def lines(self) -> list[str]:
        if self.held.name == self.var.name:
            return []
        if self.var.dtype == BOOL:
            value = self.expressions.mask(self.held, self.var.mask_bytes)
        else:
            value = f"{self.expressions.helper('round', self.stored, self.var.lanes)}({self.held.name})"
        return [f"{var_type(self.var)} {self.var.name} = {value};"]


def _defined(function: user.TypedFunction, lanes: int, expressions: ExpressionRenderer) -> str:
    """Return the name of a function in OpenCL C, defined on first use."""
    plain = "".join(letter if letter.isascii() else "_" for letter in function.name)
    # Equal functions may differ in how they are rendered, and so may those that they call.
    turns = "".join(f"_{one.unroll}" if one.unroll else "" for one in user.functions(function))
    name = f"fc_user_{plain}_{function.digest}_{lanes}{turns}"
    if name not in expressions.helpers:
        text = (_Scalar if lanes == 1 else VectorWriter)(function, lanes, expressions, _defined).text(name)
        expressions.helpers[name] = text
    return name


class _Scalar(FunctionWriter):
    """Writer of plain statements, for functions of single numbers."""

    def body(self) -> None:
        """Write the statements. A number that does not exist gives 0 at once."""
        if self.loops:
            self.open("if (!live)")
            self._return([Var(literal(0, result), result.dtype, 1, result.mask_bytes) for result in self.results])
            self.close()
        self.steps: list[Sequence[user.Stmt]] = []
        self._block(self.function.body)

    def _block(self, body: Sequence[user.Stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: user.Stmt) -> None:
        match statement:
            case user.Set(name, value):
                self.line(f"{self._name(name)} = {self.value(value, None).name};")
            case user.SetAll(names, call):
                for name, result in zip(names, self.call(call, None), strict=True):
                    self.line(f"{self._name(name)} = {result.name};")
            case user.Fill(array, value):
                filled = self.value(value, None).name
                size = self.variables[array].size
                self.line(f"for (int place = 0; place < {size}; place++) {self._name(array)}[place] = {filled};")
            case user.PutAt(array, index, value):
                new = self.value(value, None).name
                self.line(f"{self._name(array)}[{self.place(array, index, None)[0]}] = {new};")
            case user.Branch(condition, body, otherwise):
                self.open(f"if ({self.value(condition, None).name})")
                self._block(body)
                if otherwise:
                    self.depth -= 1
                    self.open("} else")
                    self._block(otherwise)
                self.close()
            case user.WhileLoop(condition, body, step):
                self.open("while (1)")
                self.line(f"if (!{self.value(condition, None).name}) break;")
                self.steps.append(step)
                self._block((*body, *step))
                self.steps.pop()
                self.close()
            case user.ForRange():
                self.open_counted(statement)
                self.steps.append(())
                self._block(statement.body)
                self.steps.pop()
                self.close()
            case user.Leave():
                self.line("break;")
            case user.Next():
                self._block(self.steps[-1])
                self.line("continue;")
            case user.Return(values):
                self._return([self.value(value, None) for value in values])

    def _return(self, values: Sequence[Var]) -> None:
        for i, value in enumerate(values[1:], 1):
            self.line(f"*p{i} = {value.name};")
        self.line(f"return {values[0].name};")
