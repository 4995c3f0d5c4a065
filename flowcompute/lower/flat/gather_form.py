"""Gather kernels: each row is put together of runs of numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flowcompute.fuse import Reason
from flowcompute.ir import LANE, Assign, ConstantValue, If, IndexLike, Kernel, Load, Splat, Stmt, Var
from flowcompute.ir.launches import by_numbers_or_rows
from flowcompute.lower.anchor_point import Row
from flowcompute.lower.emit import Scope, loads_of
from flowcompute.lower.flat.gather import ColumnRun, Gather, RowChoice, is_together
from flowcompute.lower.flat.row_loop import in_vectors, lower_rows, row_indices
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import vectors_of


def _row(one: Gather, scope: Scope, row: Row) -> None:
    """Emit all columns of a row, run by run."""

    def columns(inner: Scope, choice: RowChoice) -> None:
        for run in choice.runs:
            in_vectors(inner, run.start, run.stop, partial(_store, one, row, choice, run))

    _choose(one, scope, row, columns)


def _store(
    one: Gather, row: Row, choice: RowChoice, run: ColumnRun, scope: Scope, column: IndexLike, count: int | None
) -> None:
    one.store(scope, row, column, count, _value(one, scope, row, choice, run, column, count))


def _number(one: Gather, scope: Scope, row: Row, column: IndexLike) -> None:
    """Emit one column of a row, from the run that it belongs to."""
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

    _choose(one, scope, row, runs)
    one.store(scope, row, column, None, total)


def _choose(one: Gather, scope: Scope, row: Row, emit: Callable[[Scope, RowChoice], None]) -> None:
    """Emit the first choice of a row whose condition holds."""
    rest: tuple[Stmt, ...] = ()
    for choice in reversed(one.choices(row_indices(one, scope, row), row.record)):
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
        index = base + from_start * axes.stride
        return one.factor(scope, Load(operand.argument, index, axes.stride, count, aligned=one.is_aligned))
    elif one.is_aligned:
        index = base + axes.offset(from_start)
        return one.factor(scope, Load(operand.argument, index, 1, count, aligned=True))
    else:
        each = base + axes.offset(lane)
    return one.factor(scope, Load(operand.argument, base, 1, count, each))


def _why_not(task: LoweringTask) -> Reason | None:
    if task.anchor is not None and is_together(task.anchor):
        return None
    return task.refuse("its anchor puts no values together")


def _lower(task: LoweringTask) -> Kernel:
    one = Gather(task.graph, task.region)
    capabilities = task.style.capabilities
    # In a GPU's own buffers, vectors begin at multiples of their size.
    lanes = _vector(one) if task.is_gpu and not capabilities.host_memory else 1
    one.is_aligned, is_narrow = lanes > 1, _is_narrow(task, one)
    return lower_rows(task, one, partial(_row, one), partial(_number, one), is_narrow=is_narrow, lanes=lanes)


def _vector(one: Gather) -> int:
    """Return the numbers that a work-item of a GPU moves together."""
    wide = vectors_of([one.node.spec.dtype])
    return next((vector for vector in wide if _is_in_vectors(one, vector)), 1)


def _is_in_vectors(one: Gather, vector: int) -> bool:
    """Check whether vectors of the result are vectors of one operand, and all begin at multiples of their size."""
    places = [one.columns]
    for choice in one.choices([0] * len(one.stack), 0):
        for run in choice.runs:
            if run.place is not None:
                return False
            places += [run.start, run.stop]
    for operand in one.operands:
        lies, axes = operand.lies, operand.columns
        # Numbers of a vector are neighbours in memory: no end of a run lies in the middle of one.
        if one.is_computed(operand) or axes.stride != 1 or not (axes.single or axes.sizes[-1] % vector == 0):
            return False
        places += [lies.offset, lies.record, *lies.strides[: operand.stack], *axes.strides[:-1]]
    return all(place % vector == 0 for place in places)


def _is_narrow(task: LoweringTask, one: Gather) -> bool:
    """Check whether 32 bits hold all places within a record of what a kernel reads and makes."""
    nodes = task.graph.nodes
    read = [(one.storage(access.value), nodes[access.value].spec) for access in loads_of(task.graph, task.region)]
    read += [(operand.lies, operand.spec) for operand in one.operands]
    most = [one.node.spec.item_numbers]
    for lies, spec in read:
        steps = zip(spec.shape, lies.strides, strict=True)
        most.append(lies.offset + sum((size - 1) * abs(stride) for size, stride in steps if size))
    return max(most) < 1 << 31


GATHER = Form(name="gather", accepts=_why_not, lower=_lower, geometry=by_numbers_or_rows)
"""Values that are put together of others."""
