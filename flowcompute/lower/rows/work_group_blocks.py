"""Reductions of rows by a whole work-group (GPUs): its sub-groups take blocks in turn, in the canonical order."""

from __future__ import annotations

import numpy as np

from flowcompute.ir import (
    BLOCK,
    LANES,
    LID,
    Below,
    Convert,
    For,
    If,
    IndexLike,
    Splat,
    Var,
    WorkGroupBarrier,
    all_of,
    equal,
    index_min,
    merge_dtype,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.reduction import Parts, Reduction, selected
from flowcompute.lower.rows.item_reduce import Merging
from flowcompute.lower.rows.part_arrays import PartArrays
from flowcompute.lower.rows.subgroup_reduce import WARP, Subgroup, subgroup_size
from flowcompute.spec import BOOL


class GroupBlocks:
    """Reductions of rows of one length, known now; every work-item gets the results."""

    def __init__(self, scope: Scope, reductions: list[Reduction], *, group: int, shuffle: bool) -> None:
        self.scope = scope
        self.reductions = reductions
        self.shuffle = shuffle
        self.group = group
        self.subgroup = subgroup_size(group, shuffle=shuffle)

    def row(self, length: int) -> list[Parts]:
        """Reduce columns 0 to `length`; every sub-group reduces a row of one block."""
        if length == 0:
            return [reduction.of_no_columns(self.scope) for reduction in self.reductions]
        if length <= BLOCK:
            return self._block(self.scope, 0, length, None, spread=True)
        blocks = -(-length // BLOCK)
        arrays = self._arrays(blocks)
        self._blocks(length, arrays)
        self.scope.add(WorkGroupBarrier())
        results = self._merged(arrays, blocks) if blocks <= WARP else self._counted(arrays, blocks)
        # The arrays are written again for the next row.
        self.scope.add(WorkGroupBarrier())
        return results

    def merged_of_subgroups(self, results: list[list[Parts]], blocks: int) -> list[Parts]:
        """Merge the results of blocks, which each sub-group's first work-item has; every work-item gets the result.

        Args:
            results: those of the block with the sub-group's number, then those of blocks that follow it at
                multiples of the number of sub-groups.
            blocks: blocks of a row, up to two for each work-item of a sub-group.
        """
        subgroups = self.group // WARP
        arrays = self._arrays(subgroups * len(results))
        for turn, parts in enumerate(results):
            puts = arrays.puts(LID // WARP + turn * subgroups, parts)
            self.scope.add(If(equal(LID % WARP, 0), tuple(puts)))
        self.scope.add(WorkGroupBarrier())
        merged = self._merged(arrays, blocks)
        self.scope.add(WorkGroupBarrier())
        return merged

    def _block(self, scope: Scope, base: IndexLike, columns: int, lanes: int | None, *, spread: bool) -> list[Parts]:
        subgroup = Subgroup(scope, columns, group=self.group, shuffle=self.shuffle, lanes=lanes)
        totals = subgroup.start(self.reductions)
        subgroup.accumulate(self.reductions, totals, subgroup.slots(base))
        return subgroup.finish(self.reductions, totals, spread=spread)

    # -- rows of several blocks ------------------------------------------------------------------------

    def _arrays(self, blocks: int) -> PartArrays:
        """Declare local arrays for the results of all blocks."""
        return PartArrays(self.scope, self.reductions, "l", lanes=1, size=blocks, local=True)

    def _blocks(self, length: int, arrays: PartArrays) -> None:
        scope, whole = self.scope, length // BLOCK
        body, turn = scope.inner(1), scope.name("b")
        # All sub-groups iterate equally often, since exchanges may contain barriers. Some repeat the last block.
        block = body.integer(index_min(turn + LID // self.subgroup, whole - 1))
        results = self._block(body, body.integer(block * BLOCK), BLOCK, LANES, spread=False)
        first = all_of(equal(LID % self.subgroup, 0), turn + LID // self.subgroup < whole)
        body.add(If(first, tuple(arrays.puts(block, results))))
        scope.add(For(turn, 0, whole, self.group // self.subgroup, tuple(body.statements)))
        if rest := length % BLOCK:
            results = self._block(scope, whole * BLOCK, rest, LANES, spread=False)
            scope.add(If(equal(LID, 0), tuple(arrays.puts(whole, results))))

    def _merged(self, arrays: PartArrays, blocks: int) -> list[Parts]:
        """Merge in every sub-group, with one block or two neighbouring blocks in each work-item."""
        scope = self.scope
        subgroup = Subgroup(scope, WARP, group=self.group, shuffle=self.shuffle, lanes=WARP)
        if blocks <= WARP:
            wide, count = self._widened(arrays, scope.narrow(index_min(subgroup.place, blocks - 1))), blocks
        else:
            left, right = (self._widened(arrays, index_min(2 * subgroup.place + i, blocks - 1)) for i in (0, 1))
            there = scope.let(Below(blocks - 1 - 2 * subgroup.place), BOOL, 1, 1)
            wide = [
                selected(scope, there, reduction.combined(scope, one, other), one)
                for reduction, one, other in zip(self.reductions, left, right, strict=True)
            ]
            count = -(-blocks // 2)
        return [
            tuple(self._in(var, dtype) for var, dtype in zip(parts, reduction.dtypes, strict=True))
            for reduction, parts in zip(self.reductions, subgroup.merge(self.reductions, wide, count), strict=True)
        ]

    def _widened(self, arrays: PartArrays, block: IndexLike) -> list[Parts]:
        """Load the results of a block in the dtypes in which blocks are merged."""
        fetched = arrays.states(self.scope, block)
        return [tuple(self._in(var, merge_dtype(var.dtype)) for var in parts) for parts in fetched]

    def _in(self, var: Var, dtype: np.dtype) -> Var:
        expr = Splat(var) if dtype == var.dtype else Convert(var, var.dtype, dtype)
        return self.scope.let(expr, dtype, 1, var.mask_bytes)

    def _counted(self, arrays: PartArrays, blocks: int) -> list[Parts]:
        """Merge all blocks in every work-item, one after the other."""
        merged = Merging(self.scope, self.reductions)
        body, block = self.scope.inner(1), self.scope.name("b")
        merged.push(body, arrays.states(body, block), block)
        self.scope.add(For(block, 0, blocks, 1, tuple(body.statements)))
        return merged.finish(self.scope)
