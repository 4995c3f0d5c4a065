"""Functions written by hand in OpenCL C, called lane by lane."""

from __future__ import annotations

from flowcompute.elements.functions import SourceOp
from flowcompute.gpu.render.opencl_types import var_type
from flowcompute.gpu.render.render_expressions import ExpressionRenderer
from flowcompute.ir import CallFunction, Var, index_text
from flowcompute.spec import BOOL


def hand_written_call(statement: CallFunction, op: SourceOp, expressions: ExpressionRenderer) -> str:
    """Return the value of the statement's single variable, before it is rounded. Lanes that do not exist are 0."""
    expressions.helpers.setdefault(op.entry, op.source)
    var, name = statement.vars[0], f"{op.entry}_{statement.vars[0].lanes}"
    if var.dtype == BOOL:
        name += f"_{var.mask_bytes}"
    name = "_".join([name, *(f"{one.dtype.name}{one.mask_bytes or ''}" for one in statement.operands)])
    words = [operand.name for operand in statement.operands]
    if name not in expressions.helpers:
        letters = [f"a{i}" for i in range(len(words))]
        parameters = [f"{var_type(one)} {letter}" for one, letter in zip(statement.operands, letters, strict=True)]
        lanes = ", ".join(_lane(op, lane, var, statement.operands) for lane in range(var.lanes))
        value = f"({var_type(var)})({lanes})" if var.lanes > 1 else lanes
        head = f"static inline {var_type(var)} {name}(long count, {', '.join(parameters)})"
        expressions.helpers[name] = f"{head} {{\n    return {value};\n}}\n"
    count = str(var.lanes) if statement.count is None else index_text(statement.count)
    return f"{name}({count}, {', '.join(words)})"


def _lane(op: SourceOp, lane: int, var: Var, operands: tuple[Var, ...]) -> str:
    words = []
    for i, operand in enumerate(operands):
        word = f"a{i}" if operand.lanes == 1 else f"a{i}.s{lane:x}"
        words.append(f"({word} != 0)" if operand.dtype == BOOL else word)
    value = f"{op.entry}({', '.join(words)})"
    if var.dtype == BOOL:
        value = f"({value} ? {-1 if var.lanes > 1 else 1} : 0)"
    return f"({lane} < count ? {value} : 0)"
