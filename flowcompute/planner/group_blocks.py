"""Rows reduced by work-groups of GPUs, in the canonical order of `planner.canonical`."""

from __future__ import annotations

from flowcompute.planner.canonical import BLOCK, LANES, row_lanes
from flowcompute.planner.emit import Scope
from flowcompute.planner.kernel import Array, Barrier, For, If, Item, Number, Put
from flowcompute.planner.lower_reduce import Merging, Parts, Reduction


class GroupBlocks:
    """Rows reduced by a work-group of `LANES` work-items, one lane each (GPUs)."""

    def __init__(self, scope: Scope, reductions: list[Reduction]) -> None:
        self.scope = scope
        self.reductions = reductions
        self.arrays: dict[tuple[str, int], str] = {}
        for reduction in reductions:
            for part, dtype in enumerate(reduction.dtypes):
                name = f"l{next(scope.names)}"
                self.arrays[reduction.name, part] = name
                scope.add(Array(name, dtype, 1, LANES, local=True, mask_bytes=dtype.itemsize))

    def row(self, length: int) -> list[Parts]:
        """Reduce columns 0 to `length`, a number known now; every work-item gets the result."""
        scope = self.scope
        if length == 0:
            return [
                (
                    scope.let(
                        Number(0 if r.op in ("sum", "vecdot") else r.identity(0)),
                        r.dtypes[0],
                        1,
                        r.dtypes[0].itemsize,
                    ),
                )
                for r in self.reductions
            ]
        if length <= BLOCK:
            return self.block(scope, "0", str(length), row_lanes(length))
        merged = Merging(scope, self.reductions)
        body = scope.inner(1)
        block = f"b{next(scope.names)}"
        whole = -(-length // BLOCK)
        left = body.integer(f"min((long){BLOCK}, {length} - {block} * {BLOCK})")
        merged.push(body, self.block(body, f"{block} * {BLOCK}", left, LANES), block)
        scope.add(For(block, "0", str(whole), "1", tuple(body.statements)))
        return merged.finish(scope)

    def block(self, scope: Scope, base: str, length: str, lanes: int) -> list[Parts]:
        """Reduce `length` columns from `base` in `lanes` lanes."""
        totals = [reduction.start(scope, 1) for reduction in self.reductions]
        step = f"t{next(scope.names)}"
        inner = scope.inner(1)
        column = inner.integer(f"{base} + {step}")
        for reduction, total in zip(self.reductions, totals, strict=True):
            reduction.step(inner, total, column, None)
        scope.add(If(f"lid < {lanes}", (For(step, "lid", length, str(lanes), tuple(inner.statements)),)))
        for reduction, total in zip(self.reductions, totals, strict=True):
            for part, var in enumerate(total):
                scope.add(Put(self.arrays[reduction.name, part], "lid", var))
        scope.add(Barrier())
        half = lanes // 2
        while half:
            inner = scope.inner(1)
            for reduction in self.reductions:
                left, right = (
                    tuple(
                        inner.let(Item(self.arrays[reduction.name, part], index), dtype, 1, dtype.itemsize)
                        for part, dtype in enumerate(reduction.dtypes)
                    )
                    for index in ("lid", f"lid + {half}")
                )
                for part, var in enumerate(reduction.combined(inner, left, right)):
                    inner.add(Put(self.arrays[reduction.name, part], "lid", var))
            scope.add(If(f"lid < {half}", tuple(inner.statements)), Barrier())
            half //= 2
        results = [
            tuple(
                scope.let(Item(self.arrays[reduction.name, part], "0"), dtype, 1, dtype.itemsize)
                for part, dtype in enumerate(reduction.dtypes)
            )
            for reduction in self.reductions
        ]
        scope.add(Barrier())
        return results
