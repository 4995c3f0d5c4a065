"""Sums over k with accumulators in registers, panel by panel: the loops of kernels that keep no tiles in memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from flowcompute.ir import Assign, Combine, For, IndexLike, Name, Splat, Var, index_min
from flowcompute.lower.emit import Scope
from flowcompute.lower.matmul.matmul_anchor import PANEL, MatmulAnchor

K, FIRST_K = Name("k"), Name("panel")
"""A k, and the first k of a panel."""
SHORT = 32
"""Longest sum that is unrolled; the compiler then knows the offsets of windows."""
UNROLL = 4
"""Unroll factor of longer sums; without it they take up to half as long again."""


def zeros(one: MatmulAnchor, scope: Scope, rows: int, vectors: int) -> list[list[Var]]:
    """Declare the empty sums of a tile: `vectors` of each row."""
    return [[scope.let(one.zero(), one.dtype) for _ in range(vectors)] for _ in range(rows)]


def loop_over_k(one: MatmulAnchor, scope: Scope, start: IndexLike, stop: IndexLike, step: Scope) -> None:
    """Repeat the statements of `step` for each `K` from `start` to `stop`."""
    scope.add(For(K, start, stop, 1, tuple(step.statements), unroll=1 if one.inner <= SHORT else UNROLL))


def sum_in_panels(
    one: MatmulAnchor,
    scope: Scope,
    totals: list[list[Var]],
    add: Callable[[Scope, list[list[Var]], IndexLike, IndexLike], None],
    inner: int | None = None,
    length: int = PANEL,
) -> None:
    """Sum all of k, or the first `inner` of it, into `totals`: in order inside a panel, and panel by panel.

    Args:
        one: the product.
        scope: where the statements go.
        totals: sums of a tile, which are empty.
        add: adds to a scope the statements that add the products of a range of k to sums.
        inner: end of what is summed.
        length: of a panel.
    """
    inner = one.inner if inner is None else inner
    if inner <= length:
        add(scope, totals, 0, inner)
        return
    panel = scope.inner()
    sums = zeros(one, panel, len(totals), len(totals[0]))
    add(panel, sums, FIRST_K, index_min(inner, FIRST_K + length))
    for total, own in zip(chain(*totals), chain(*sums), strict=True):
        panel.add(Assign(total, Splat(panel.let(Combine("sum", (total,), (own,), 0), total.dtype))))
    scope.add(For(FIRST_K, 0, inner, length, tuple(panel.statements)))
