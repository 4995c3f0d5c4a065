"""Products with few rows per matrix, on GPUs: each work-item computes one number, straight from global memory.

Depthwise convolutions are such products: one row of weights times the windows of a channel. A tile in local
memory would hold a single useful row. Neighbouring windows are in the cache.
"""

from __future__ import annotations

from flowcompute.fuse import Reason
from flowcompute.ir import (
    WID,
    WSIZE,
    Assign,
    Combine,
    For,
    IndexLike,
    Kernel,
    Load,
    MultiplyAdd,
    N,
    Name,
    Splat,
    Var,
    index_min,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.geometry import by_numbers
from flowcompute.lower.matmul.matmul_anchor import PANEL, MatmulAnchor, why_no_product

THIN = 2
"""Most rows of a matrix; each row reads all of the other factor again."""
GROUP = 256
"""Work-items in a work-group."""
SHORT = 32
"""Longest sum that is unrolled."""
NUMBER, FIRST_K, K = Name("t"), Name("panel"), Name("k")
"""Number of the result; first k of a panel; k."""


def _add(
    one: MatmulAnchor,
    scope: Scope,
    total: Var,
    at_a: IndexLike,
    at_b: IndexLike,
    start: IndexLike,
    stop: IndexLike,
) -> None:
    """Add products in order of k."""
    inner = scope.inner()
    left = one.factor(inner, Load(one.a.argument, at_a + K * one.a.columns.stride))
    right = one.factor(inner, Load(one.b.argument, at_b + one.b.rows.offset(K)))
    inner.add(Assign(total, Splat(inner.let(MultiplyAdd(left, right, total), one.dtype))))
    scope.add(For(K, start, stop, 1, tuple(inner.statements), unroll=1 if one.inner <= SHORT else 4))


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_product(task)) is not None:
        return reason
    if not task.is_gpu:
        return task.refuse("on CPUs rows are multiplied by vectors of columns")
    one = MatmulAnchor(task.graph, task.region)
    if one.shared or one.height > THIN or not one.columns:
        return task.refuse(f"its matrices have more than {THIN} rows, or no columns, or share the other factor")
    return None


def _lower(task: LoweringTask) -> Kernel:
    one = MatmulAnchor(task.graph, task.region)
    scope = Scope(one.names, lanes=1)
    row = one.row(scope, scope.integer(NUMBER // one.columns))
    column = scope.integer(NUMBER % one.columns)
    at_a = one.of_a(scope, row)
    at_b = scope.integer(one.of_b(scope, row) + one.b.columns.offset(column))
    total = scope.let(one.zero(), one.dtype)
    if one.inner > PANEL:
        panel = scope.inner()
        own = panel.let(one.zero(), one.dtype)
        _add(one, panel, own, at_a, at_b, FIRST_K, index_min(one.inner, FIRST_K + PANEL))
        panel.add(Assign(total, Splat(panel.let(Combine("sum", (total,), (own,), 0), one.dtype))))
        scope.add(For(FIRST_K, 0, one.inner, PANEL, tuple(panel.statements)))
    else:
        _add(one, scope, total, at_a, at_b, 0, one.inner)
    one.store(scope, row, column, None, total)
    body = For(NUMBER, WID, N, WSIZE, tuple(scope.statements))
    units = one.units * one.columns
    return Kernel(task.name, task.region.name, one.arguments.ordered(), (body,), "flat", work_group=GROUP, units=units)


THIN_MATMUL = Form(name="thin matmul", accepts=_why_not, lower=_lower, geometry=by_numbers)
"""Products with few rows to a matrix, on GPUs."""
