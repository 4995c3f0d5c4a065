"""Gather kernels: rows in vectors on CPUs, one number for each work-item on GPUs."""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.fuse import Reason
from flowcompute.ir import (
    LANE,
    WID,
    WSIZE,
    Assign,
    ConstantValue,
    For,
    If,
    IndexLike,
    Kernel,
    Load,
    N,
    Splat,
    Stmt,
    Var,
    names,
)
from flowcompute.lower.anchor_point import Row
from flowcompute.lower.emit import CHUNK_RANGE, START, STOP, Scope
from flowcompute.lower.flat.gather import ColumnRun, Gather, RowChoice, is_together
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.geometry import by_numbers_or_rows

GROUP = 256
"""Work-items of a GPU's work-group."""

_ROW, _COLUMN, _NUMBER = names("r j t")
"""Number of a row, column in it, and number of the batch."""


def _rows(one: Gather, lanes: int) -> tuple[Stmt, ...]:
    """Distribute rows: each work-item takes a range of rows."""
    scope = Scope(one.names, lanes=lanes)
    row = one.row(scope, _ROW)

    def columns(inner: Scope, choice: RowChoice) -> None:
        for run in choice.runs:
            whole = run.start + (run.stop - run.start) // lanes * lanes
            if whole > run.start:
                body = inner.inner()
                one.store(body, row, _COLUMN, None, _value(one, body, row, choice, run, _COLUMN, None))
                inner.add(For(_COLUMN, run.start, whole, lanes, tuple(body.statements)))
            if whole < run.stop:
                body, count = inner.inner(), run.stop - whole
                one.store(body, row, whole, count, _value(one, body, row, choice, run, whole, count))
                inner.add(If(True, tuple(body.statements)))

    _choose(scope, one.choices([scope.integer(at) for at in one.stack_indices(row.matrix)], row.record), columns)
    return *CHUNK_RANGE, For(_ROW, START, STOP, 1, tuple(scope.statements))


def _numbers(one: Gather) -> tuple[Stmt, ...]:
    """Distribute numbers: neighbouring work-items take neighbouring numbers."""
    scope = Scope(one.names, lanes=1)
    row = one.row(scope, scope.integer(_NUMBER // one.columns))
    column = scope.integer(_NUMBER % one.columns)
    total = scope.let(ConstantValue(one.fill), one.dtype)

    def runs(inner: Scope, choice: RowChoice) -> None:
        rest: tuple[Stmt, ...] = ()
        for run in reversed(choice.runs):
            body = inner.inner()
            if run.operand is not None:
                body.add(Assign(total, Splat(_value(one, body, row, choice, run, column, None))))
            last = run is choice.runs[-1]
            rest = tuple(body.statements) if last else (If(column < run.stop, tuple(body.statements), rest),)
        inner.add(*rest)

    _choose(scope, one.choices([scope.integer(at) for at in one.stack_indices(row.matrix)], row.record), runs)
    one.store(scope, row, column, None, total)
    return (For(_NUMBER, WID, N, WSIZE, tuple(scope.statements)),)


def _choose(scope: Scope, choices: list[RowChoice], emit: Callable[[Scope, RowChoice], None]) -> None:
    """Emit the first choice whose condition holds."""
    rest: tuple[Stmt, ...] = ()
    for choice in reversed(choices):
        inner = scope.inner()
        emit(inner, choice)
        body = tuple(inner.statements)
        rest = body if choice.condition is None else (If(choice.condition, body, rest),)
    scope.add(*rest)


def _value(
    one: Gather, scope: Scope, row: Row, choice: RowChoice, run: ColumnRun, column: IndexLike, count: IndexLike | None
) -> Var:
    """Load the numbers of a run from a column on."""
    if run.operand is None:
        return scope.let(ConstantValue(one.fill), one.dtype)
    operand = one.operands[run.operand]
    lies, axes = operand.lies, operand.columns
    begin = lies.offset + row.record * lies.record
    for at, stride in zip(choice.indices, lies.strides[: operand.stack], strict=True):
        begin += at * stride
    base = scope.integer(begin)
    from_start = column - run.start
    lane = from_start + LANE if scope.lanes > 1 else from_start
    if run.place is not None:
        each = base + run.place(lane) * axes.stride
    elif axes.single:
        return one.factor(scope, Load(operand.argument, base + from_start * axes.stride, axes.stride, count))
    else:
        each = base + axes.offset(lane)
    return one.factor(scope, Load(operand.argument, base, 1, count, each))


def _why_not(task: LoweringTask) -> Reason | None:
    if task.anchor is not None and is_together(task.anchor):
        return None
    return task.refuse("its anchor puts no values together")


def _lower(task: LoweringTask) -> Kernel:
    one = Gather(task.graph, task.region)
    name, region = task.name, task.region.name
    if task.is_gpu:
        body, units = _numbers(one), one.node.spec.item_numbers
        return Kernel(name, region, one.arguments.ordered(), body, "flat", work_group=GROUP, units=units)
    lanes = task.style.capabilities.lanes
    body = _rows(one, lanes)
    return Kernel(name, region, one.arguments.ordered(), body, "rows", units=one.units, lanes=lanes)


GATHER = Form(name="gather", accepts=_why_not, lower=_lower, geometry=by_numbers_or_rows)
"""Values that are put together of others."""
