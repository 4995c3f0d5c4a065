"""Merge of the blocks of a fold of columns on CPUs, in the order and with the roundings of `engine.folds.fold`."""

from __future__ import annotations

import itertools

from flowcompute.elements import Op
from flowcompute.elements.math import add, multiply, subtract
from flowcompute.imports import dataclass
from flowcompute.ir import (
    BLOCKS,
    CHUNK,
    FIRST,
    GID,
    GSIZE,
    Apply,
    Combine,
    ConstantValue,
    Convert,
    FoldSpec,
    For,
    Kernel,
    Load,
    N,
    Name,
    SetInteger,
    Store,
    Var,
    choose,
    equal,
    index_min,
    merge_dtype,
)
from flowcompute.lower.emit import Arguments, Scope, loaded
from flowcompute.lower.reduction import Parts, Reduction
from flowcompute.lower.rows.item_reduce import Merging
from flowcompute.spec import FLOAT64

_AT, _COLUMN, _END = Name("at"), Name("c"), Name("end")
"""The next columns of a work-item, the first one of a vector, and the end of the work-item's columns."""
_BLOCK = Name("b")


def lower_merge(spec: FoldSpec, fold: int, lanes: int) -> Kernel:
    """Return the kernel that merges a power of two of a fold's blocks, from `first` on, into one node of its tree.

    A work-item takes `chunk` of the item's `n` numbers, a multiple of `lanes`; the last one takes the rest
    as well. The kernel text is the same for items of any size whose blocks have as many records.

    Args:
        spec: the fold; its items have `lanes` numbers or more.
        fold: id of its node.
        lanes: numbers in a vector.
    """
    arguments, scope = Arguments(), Scope(itertools.count(), lanes=lanes)
    wide = tuple(merge_dtype(dtype) for dtype in spec.parts())
    kind = _Moments if spec.op == "var" else Reduction
    merging = Merging(scope, [kind("fold", spec.op, wide, lambda *_: ())], lanes)
    body = scope.inner()
    narrow = [
        loaded(body, Load(arguments.get("partial", dtype, fold, part), (FIRST + _BLOCK) * N + _COLUMN))
        for part, dtype in enumerate(spec.parts())
    ]
    block = tuple(
        one if one.dtype == dtype else body.let(Convert(one, one.dtype, dtype), dtype)
        for one, dtype in zip(narrow, wide, strict=True)
    )
    merging.push(body, [_moments(body, block, spec.block) if spec.op == "var" else block], _BLOCK)
    scope.add(For(_BLOCK, 0, BLOCKS, 1, tuple(body.statements)))
    (node,) = merging.newest(scope)
    for part, dtype in enumerate(spec.node_parts()):
        scope.add(Store(arguments.get("merged", dtype, fold, part), _COLUMN, node[part]))
    # The last vector begins as much earlier as it lacks, and makes some numbers twice.
    place = SetInteger(_COLUMN, index_min(_AT, N - lanes))
    end = SetInteger(_END, choose(equal(GID, GSIZE - 1), N, (GID + 1) * CHUNK))
    loop = For(_AT, GID * CHUNK, _END, lanes, (place, *scope.statements))
    kinds = "_".join(dtype.name for dtype in spec.parts())
    name = f"merge_{spec.op}_{kinds}_{spec.block}"
    return Kernel(name, "", arguments.ordered(), (end, loop), work="flat", block=spec.block, lanes=lanes)


@dataclass(frozen=True)
class _Moments(Reduction):
    """Merge of means, squared deviations, parts inside items, and half of the records of either side."""

    def combined(self, scope: Scope, left: Parts, right: Parts, fused: bool = False) -> Parts:
        """Merge two nodes of as many records, as `Fold.merge_nodes` does."""
        del fused
        gap = _apply(scope, subtract.op, right[0], left[0])
        mean = _apply(scope, add.op, left[0], _apply(scope, multiply.op, gap, scope.let(ConstantValue(0.5), FLOAT64)))
        between = _apply(scope, multiply.op, _apply(scope, multiply.op, gap, gap), left[-1])
        deviations = _apply(scope, add.op, _apply(scope, add.op, between, left[1]), right[1])
        return (mean, deviations, *(_apply(scope, add.op, a, b) for a, b in zip(left[2:], right[2:], strict=True)))


def _moments(scope: Scope, block: Parts, records: int) -> Parts:
    """Return the moments of a block as `Fold._moments` does, and half of the block's records."""
    shift, first, second, *inside = block
    # The number of records is a power of two, so this product equals the quotient.
    mean = _apply(scope, multiply.op, first, scope.let(ConstantValue(1 / records), FLOAT64))
    squares = _apply(scope, subtract.op, second, _apply(scope, multiply.op, first, mean))
    deviations = scope.let(Combine("max", (squares,), (scope.let(ConstantValue(0.0), FLOAT64),), 0), FLOAT64)
    return (_apply(scope, add.op, shift, mean), deviations, *inside, scope.let(ConstantValue(records / 2), FLOAT64))


def _apply(scope: Scope, op: Op, left: Var, right: Var) -> Var:
    return scope.let(Apply(op, (left, right), FLOAT64), FLOAT64)
