"""Loops over rows whose places are index arithmetic: in vectors on CPUs, a number for each work-item on GPUs."""

from __future__ import annotations

from collections.abc import Callable

from flowcompute.ir import WID, WSIZE, For, If, IndexLike, Kernel, N, names
from flowcompute.lower.anchor_point import Anchor, Row
from flowcompute.lower.emit import CHUNK_RANGE, START, STOP, Scope
from flowcompute.lower.form import LoweringTask

GROUP = 256
"""Work-items of a GPU's work-group."""

_ROW, _COLUMN, _NUMBER = names("r j t")
"""Number of a row, column in it, and number of the batch."""


def lower_rows(
    task: LoweringTask,
    one: Anchor,
    of_row: Callable[[Scope, Row], None],
    of_number: Callable[[Scope, Row, IndexLike], None],
    *,
    is_narrow: bool = False,
    lanes: int = 1,
) -> Kernel:
    """Return the kernel of an anchor; its work counts rows on CPUs, numbers on GPUs.

    Args:
        task: what is lowered.
        one: the anchor.
        of_row: emits all columns of a row, on CPUs.
        of_number: emits one column of a row, on GPUs.
        is_narrow: whether 32 bits hold all places within a record of what is read and made. GPUs divide 64 bits in many
            instructions.
        lanes: neighbours in a row that a work-item of a GPU takes together; they divide a row.
    """
    if task.is_gpu:
        scope, numbers = Scope(one.names, lanes=lanes), one.node.spec.item_numbers
        columns = numbers // one.units
        if is_narrow:
            of_number(scope, *_narrow_place(one, scope, columns))
        else:
            row = one.row(scope, scope.integer(_NUMBER // columns))
            of_number(scope, row, scope.integer(_NUMBER % columns))
        body = (For(_NUMBER, WID * lanes, N, WSIZE * lanes, tuple(scope.statements)),)
        arguments = one.arguments.ordered()
        return Kernel(
            task.name, task.region.name, arguments, body, "flat", work_group=GROUP, units=numbers, lanes=lanes
        )
    scope = Scope(one.names, lanes=task.style.capabilities.lanes)
    of_row(scope, one.row(scope, _ROW))
    rows = For(_ROW, START, STOP, 1, tuple(scope.statements))
    arguments = one.arguments.ordered()
    return Kernel(
        task.name, task.region.name, arguments, (*CHUNK_RANGE, rows), "rows", units=one.units, lanes=scope.lanes
    )


def _narrow_place(one: Anchor, scope: Scope, columns: int) -> tuple[Row, IndexLike]:
    """Declare row and column of a number; only its record takes 64 bits."""
    numbers, many = columns * one.units, one.units > one.height
    record = scope.integer(_NUMBER // numbers)
    inside = scope.narrow(_NUMBER - record * numbers)
    within = scope.narrow(inside // columns)
    matrix = scope.narrow(within // one.height) if many else 0
    own = scope.narrow(within % one.height) if many else within
    return Row(record * one.units + within, record, matrix, own), scope.narrow(inside % columns)


def in_vectors(scope: Scope, start: int, stop: int, emit: Callable[[Scope, IndexLike, int | None], None]) -> None:
    """Emit columns `start` to `stop` of a row, with `emit(inner, column, count)` for each vector."""
    whole = start + (stop - start) // scope.lanes * scope.lanes
    if whole > start:
        body = scope.inner()
        emit(body, _COLUMN, None)
        scope.add(For(_COLUMN, start, whole, scope.lanes, tuple(body.statements)))
    if whole < stop:
        body = scope.inner()
        emit(body, whole, stop - whole)
        scope.add(If(True, tuple(body.statements)))


def row_indices(one: Anchor, scope: Scope, row: Row) -> list[IndexLike]:
    """Declare the index of a row on each axis of the stack, in 32 bits where these hold the row's place."""
    is_narrow = isinstance(row.matrix, int) or row.matrix.narrow
    declare = scope.narrow if is_narrow else scope.integer
    return [declare(at) for at in one.stack_indices(row.matrix)]
