"""Reduction in a kernel: its accumulators and its step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flowcompute.elements.math import multiply, subtract
from flowcompute.imports import dataclass
from flowcompute.ir import (
    Apply,
    Assign,
    Below,
    Combine,
    ConstantValue,
    Half,
    IndexLike,
    Integer,
    MultiplyAdd,
    Select,
    Splat,
    Var,
    identity,
)
from flowcompute.lower.emit import Scope
from flowcompute.spec import BOOL, INT64, is_float

Parts = tuple[Var, ...]


@dataclass(frozen=True)
class Reduction:
    """Reduction that may share a loop with others.

    Attributes:
        name: prefix of its arrays and variables.
        op: name of the reduction ("var" sums its parts).
        dtypes: dtypes of the accumulator parts.
        operands: returns the operands in a scope at column `column`, of which only `count` exist; two for a
            dot product.
        position: index of column 0, for argmin and argmax.
    """

    name: str
    op: str
    dtypes: tuple[np.dtype, ...]
    operands: Callable[[Scope, IndexLike, IndexLike | None], Parts]
    position: IndexLike = 0

    @property
    def finds(self) -> bool:
        """True for argmin and argmax, whose accumulators are (value, index)."""
        return self.op in ("argmin", "argmax")

    @property
    def commutes(self) -> bool:
        """True if any order gives the same bits, except for which NaN, which is promised nowhere."""
        return self.op in ("min", "max", "any", "all") or (not self.finds and not is_float(self.dtypes[0]))

    def given(self, scope: Scope, column: IndexLike, count: IndexLike | None) -> Parts:
        """Return the operands of a step, and the index for argmin and argmax."""
        operands = self.operands(scope, column, count)
        return (*operands, index_operand(scope, self.position + column)) if self.finds else operands

    def identity(self, part: int) -> object:
        """Return the identity of an accumulator part."""
        if self.finds and part == 1:
            return int(np.iinfo(np.int64).max)
        value = identity(self.op, self.dtypes[part])
        return value.item() if isinstance(value, np.generic) else value

    def start(self, scope: Scope, lanes: int) -> Parts:
        """Declare accumulators that hold the identity."""
        return tuple(
            scope.let(ConstantValue(self.identity(part)), dtype, lanes, dtype.itemsize)
            for part, dtype in enumerate(self.dtypes)
        )

    def step(self, scope: Scope, total: Parts, column: IndexLike, count: IndexLike | None) -> None:
        """Accumulate the operands at `column` into `total`, in place."""
        after = self.combined(scope, total, self.given(scope, column, count), fused=True)
        if count is not None:
            mask = scope.let(Below(count), BOOL, total[0].lanes, self.dtypes[0].itemsize)
            after = selected(scope, mask, after, total)
        assign(scope, total, after)

    def combined(self, scope: Scope, left: Parts, right: Parts, fused: bool = False) -> Parts:
        """Combine two states as new values; with `fused`, `right` is the two operands of a dot product."""
        if self.op == "vecdot" and fused:
            return (scope.let(MultiplyAdd(right[0], right[1], left[0]), left[0].dtype, left[0].lanes),)
        op = "sum" if self.op in ("vecdot", "var", "mean") else self.op
        return tuple(
            scope.let(Combine(op, left, right, part), old.dtype, old.lanes, old.mask_bytes)
            for part, old in enumerate(left)
        )

    def across(self, scope: Scope, parts: Parts) -> Parts:
        """Combine the lanes of a vector in a tree of halves."""
        while (lanes := parts[0].lanes // 2) > 0:
            low, high = (
                tuple(scope.let(Half(var, upper), var.dtype, lanes, var.mask_bytes) for var in parts)
                for upper in (False, True)
            )
            parts = self.combined(scope, low, high)
        return parts

    def of_no_columns(self, scope: Scope) -> Parts:
        """Declare the result of a row without columns."""
        value, dtype = 0 if self.op in ("sum", "vecdot") else self.identity(0), self.dtypes[0]
        return (scope.let(ConstantValue(value), dtype, 1, dtype.itemsize),)


def combined_all(scope: Scope, reductions: list[Reduction], left: list[Parts], right: list[Parts]) -> list[Parts]:
    """Combine two states of each reduction as new values."""
    return [one.combined(scope, a, b) for one, a, b in zip(reductions, left, right, strict=True)]


def tree_of(
    scope: Scope,
    reductions: list[Reduction],
    leaf: Callable[[int], list[Parts]],
    leaves: int,
    first: int = 0,
    apart: int = 1,
) -> list[Parts]:
    """Combine the states `leaf(first)`, `leaf(first + apart)`, ... in a tree of halves.

    The tree is evaluated depth first, so that few states live at a time.

    Args:
        scope: where they are combined.
        reductions: at least one.
        leaf: emits a state of each reduction.
        leaves: number of leaves of the whole tree, a power of two.
        first: the first leaf of this tree.
        apart: distance of its leaves.
    """
    if apart == leaves:
        return leaf(first)
    left = tree_of(scope, reductions, leaf, leaves, first, 2 * apart)
    right = tree_of(scope, reductions, leaf, leaves, first + apart, 2 * apart)
    return combined_all(scope, reductions, left, right)


def selected(scope: Scope, mask: Var, yes: Parts, no: Parts) -> Parts:
    """Declare `yes` where a mask is true, otherwise `no`."""
    return tuple(
        scope.let(Select(mask, new, old), old.dtype, old.lanes, old.mask_bytes)
        for new, old in zip(yes, no, strict=True)
    )


def assign(scope: Scope, old: Parts, new: Parts) -> None:
    """Assign new values to the parts of a state."""
    scope.add(*(Assign(before, Splat(after)) for before, after in zip(old, new, strict=True)))


def index_operand(scope: Scope, column: IndexLike) -> Var:
    """Return the column's index in each lane."""
    return scope.let(Integer(column, 1), INT64)


def moved(scope: Scope, value: Var, shift: Var) -> Parts:
    """Return the operands of a variance: the value minus its block's shift, and the square of that."""
    spread = shift if shift.lanes == value.lanes else scope.let(Splat(shift), shift.dtype, value.lanes)
    gap = scope.let(Apply(subtract.op, (value, spread), value.dtype), value.dtype, value.lanes)
    return gap, scope.let(Apply(multiply.op, (gap, gap), value.dtype), value.dtype, value.lanes)
