"""Products of narrow integers on GPUs, by dot products of packed words.

Tiles hold words of four numbers that are neighbours along k; one instruction multiplies them. Integers wrap
at 32 bits in any order of summation, so the result is that of every other kernel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flowcompute.fuse import Reason, Region
from flowcompute.graph import Graph
from flowcompute.ir import Assign, ConstantValue, DotAdd, Expr, If, IndexLike, Kernel, Load, Packed, Splat, Var
from flowcompute.ir.launches import by_tiles
from flowcompute.lower.anchor_point import Axes, Operand
from flowcompute.lower.emit import Scope, loaded
from flowcompute.lower.form import Form, LoweringTask
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.lower.matmul.matmul_anchor import MatmulAnchor
from flowcompute.lower.matmul.tiled_matmul import TILED_MATMUL, Side, TiledMatmulLowering, why_no_tiles

WORD = 4
"""Numbers in a word."""
LEAST = 16
"""Shortest sum; shorter ones would leave most of a tile empty."""

_INT32 = np.dtype(np.int32)


class _DotMatmulLowering(TiledMatmulLowering):
    """Lowering of a product that counts k in words."""

    def __init__(self, graph: Graph, region: Region, style: KernelStyle) -> None:
        super().__init__(graph, region, style)
        one = self.contraction
        self.native = style.capabilities.shuffles
        self.numbers, one.inner = one.inner, -(-one.inner // WORD)

    def _side(
        self,
        scope: Scope,
        operand: Operand,
        width: int,
        depth: Axes,
        place: Callable[[IndexLike], IndexLike],
        origin: IndexLike | None,
        *,
        by_depth: bool,
    ) -> Side:
        words = Axes((self.contraction.inner,), (WORD * depth.stride,))
        return super()._side(scope, operand, width, words, place, origin, by_depth=by_depth)

    def _number(self, scope: Scope, side: Side, at: IndexLike, k: IndexLike) -> Var:
        """Load a word, with zeros behind the last number."""
        argument, stride = side.operand.argument, side.depth.stride // WORD
        whole = self.numbers % WORD == 0
        if whole and stride == 1:
            return scope.let(Packed((loaded(scope.beside(WORD), Load(argument, at)),)), _INT32)
        base, numbers = scope.integer(at), []
        for position in range(WORD):
            reading = scope if whole or not position else scope.inner(1)
            number = loaded(reading, Load(argument, base + position * stride))
            if reading is not scope:
                kept = scope.let(ConstantValue(0), argument.dtype)
                reading.add(Assign(kept, Splat(number)))
                scope.add(If(k * WORD + position < self.numbers, tuple(reading.statements)))
                number = kept
            numbers.append(number)
        return scope.let(Packed(tuple(numbers)), _INT32)

    def _added(self, a: Var, b: Var, c: Var) -> Expr:
        one = self.contraction
        return DotAdd(a, b, c, (one.a.argument.dtype, one.b.argument.dtype), self.native)


def _why_not(task: LoweringTask) -> Reason | None:
    if (reason := why_no_tiles(task)) is not None:
        return reason
    one = MatmulAnchor(task.graph, task.region)
    sides = (one.a, one.b)
    if one.dtype != _INT32 or any(side.argument.dtype.itemsize > 1 or one.is_computed(side) for side in sides):
        return task.refuse("its numbers have more than a byte, or are computed where they are loaded")
    if one.inner < LEAST or not (one.a.columns.single and one.b.rows.single):
        return task.refuse(f"its sums have fewer than {LEAST} products, or no single stride")
    return None


def _lower(task: LoweringTask) -> Kernel:
    return _DotMatmulLowering(task.graph, task.region, task.style).lower(task.name)


PACKED_MATMUL = Form(
    name="packed matmul", accepts=_why_not, lower=_lower, geometry=by_tiles, knobs=TILED_MATMUL.knobs, family="matmul"
)
"""Products of narrow integers on GPUs."""
