"""Products with few rows per matrix, on GPUs: each work-item computes one number, straight from global memory.

Depthwise convolutions are such products: one row of weights times the windows of a channel. A tile in local
memory would hold a single useful row. Neighbouring windows are in the cache.
"""

from __future__ import annotations

from flowcompute.fuse import Reason
from flowcompute.ir import WID, WSIZE, Assign, For, IndexLike, Kernel, Load, MultiplyAdd, N, Name, Splat, Var
from flowcompute.ir.launches import by_numbers
from flowcompute.lower.emit import Scope
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor, why_no_product
from flowcompute.lower.matmul.panel_sums import K, loop_over_k, sum_in_panels, zeros

THIN = 2
"""Most rows of a matrix; each row reads all of the other factor again."""
GROUP = 256
"""Work-items in a work-group."""
NUMBER = Name("t")
"""Number of the result."""


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
    totals = zeros(one, scope, 1, 1)

    def add(inner: Scope, sums: list[list[Var]], start: IndexLike, stop: IndexLike) -> None:
        step, total = inner.inner(), sums[0][0]
        left = one.factor(step, Load(one.a.argument, at_a + K * one.a.columns.stride))
        right = one.factor(step, Load(one.b.argument, at_b + one.b.rows.offset(K)))
        step.add(Assign(total, Splat(step.let(MultiplyAdd(left, right, total), one.dtype))))
        loop_over_k(one, inner, start, stop, step)

    sum_in_panels(one, scope, totals, add)
    one.store(scope, row, column, None, totals[0][0])
    body = For(NUMBER, WID, N, WSIZE, tuple(scope.statements))
    units = one.units * one.columns
    return Kernel(task.name, task.region.name, one.arguments.ordered(), (body,), "flat", work_group=GROUP, units=units)


THIN_MATMUL = Form(name="thin matmul", accepts=_why_not, lower=_lower, geometry=by_numbers)
"""Products with few rows to a matrix, on GPUs."""
