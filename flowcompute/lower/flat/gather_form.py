"""Gather kernels: rows in vectors on CPUs, one number for each work-item on GPUs."""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.fuse import Reason
from flowcompute.ir import (
    Assign,
    ConstantValue,
    For,
    If,
    Kernel,
    Load,
    SetInteger,
    Splat,
    Stmt,
    Var,
)
from flowcompute.lower.anchor_point import Row, times
from flowcompute.lower.emit import Scope
from flowcompute.lower.flat.gather import Choice, ColumnRun, Gather, is_together
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.geometry import by_numbers_or_rows

GROUP = 256
"""Work-items of a GPU's work-group."""


def _rows(one: Gather, lanes: int) -> tuple[Stmt, ...]:
    """Distribute rows: each work-item takes a range of rows."""
    scope = Scope(one.names, lanes=lanes)
    row = one.row(scope, "r")

    def columns(inner: Scope, choice: Choice) -> None:
        for run in choice.runs:
            whole = run.start + (run.stop - run.start) // lanes * lanes
            if whole > run.start:
                body = inner.inner()
                one.store(body, row, "j", None, _value(one, body, row, choice, run, "j", None))
                inner.add(For("j", str(run.start), str(whole), str(lanes), tuple(body.statements)))
            if whole < run.stop:
                body, count = inner.inner(), str(run.stop - whole)
                one.store(body, row, str(whole), count, _value(one, body, row, choice, run, str(whole), count))
                inner.add(If("1", tuple(body.statements)))

    _choose(scope, one.choices([str(scope.integer(at)) for at in one.stack_indices(row.matrix)]), columns)
    loop = For("r", "start", "stop", "1", tuple(scope.statements))
    return SetInteger("start", "gid * chunk"), SetInteger("stop", "min(n, start + chunk)"), loop


def _numbers(one: Gather) -> tuple[Stmt, ...]:
    """Distribute numbers: neighbouring work-items take neighbouring numbers."""
    scope = Scope(one.names, lanes=1)
    row = one.row(scope, scope.integer(f"t / {one.columns}"))
    column = scope.integer(f"t % {one.columns}")
    total = scope.let(ConstantValue(one.fill), one.dtype)

    def runs(inner: Scope, choice: Choice) -> None:
        rest: tuple[Stmt, ...] = ()
        for run in reversed(choice.runs):
            body = inner.inner()
            if run.operand is not None:
                body.add(Assign(total, Splat(_value(one, body, row, choice, run, column, None))))
            last = run is choice.runs[-1]
            rest = tuple(body.statements) if last else (If(f"{column} < {run.stop}", tuple(body.statements), rest),)
        inner.add(*rest)

    _choose(scope, one.choices([str(scope.integer(at)) for at in one.stack_indices(row.matrix)]), runs)
    one.store(scope, row, column, None, total)
    return (For("t", "wid", "n", "wsize", tuple(scope.statements)),)


def _choose(scope: Scope, choices: list[Choice], emit: Callable[[Scope, Choice], None]) -> None:
    """Emit the first choice whose condition holds."""
    rest: tuple[Stmt, ...] = ()
    for choice in reversed(choices):
        inner = scope.inner()
        emit(inner, choice)
        body = tuple(inner.statements)
        rest = body if choice.condition is None else (If(choice.condition, body, rest),)
    scope.add(*rest)


def _value(one: Gather, scope: Scope, row: Row, choice: Choice, run: ColumnRun, column: str, count: str | None) -> Var:
    """Load the numbers of a run from a column on."""
    if run.operand is None:
        return scope.let(ConstantValue(one.fill), one.dtype)
    operand = one.operands[run.operand]
    lies, axes = operand.lies, operand.columns
    terms = [str(lies.offset)] if lies.offset else []
    terms += [times(row.record, lies.record)] if lies.record else []
    pairs = zip(choice.indices, lies.strides[: operand.stack], strict=True)
    terms += [times(at, stride) for at, stride in pairs if stride]
    base = scope.integer(" + ".join(terms) or "0")
    from_start = f"({column} - {run.start})" if run.start else f"({column})"
    if run.place is not None:
        lane = f"({from_start} + {{lane}})" if scope.lanes > 1 else from_start
        each = f"{base} + {times(run.place.replace('{0}', lane), axes.stride)}"
        return one.factor(scope, Load(operand.argument, base, 1, count, each))
    if axes.single:
        return one.factor(
            scope, Load(operand.argument, f"{base} + {times(from_start, axes.stride)}", axes.stride, count)
        )
    each = f"{base} + {axes.offset(f'({from_start} + {{lane}})' if scope.lanes > 1 else from_start)}"
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
