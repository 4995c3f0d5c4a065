"""Reductions of rows and blocks by sub-groups (GPUs), in the canonical order of `ir.reduction_order`.

A work-item holds every n-th canonical lane in registers, where n is the size of the sub-group, or every n-th vector of
neighbouring lanes. A block of 1024 numbers thus issues many loads at once. Lanes are added as a tree: first those of a
work-item's vectors, then between work-items, at last inside of a vector. Where 32 neighbours can read each other's
registers, they form the sub-group, and no barrier is needed. Elsewhere a whole work-group may take its place.
"""

from __future__ import annotations

import copy

from flowcompute.imports import dataclass
from flowcompute.ir import (
    LANES,
    LID,
    Below,
    ConditionLike,
    Exchange,
    IndexLike,
    WorkGroupBarrier,
    index_min,
    row_lanes,
)
from flowcompute.lower.emit import Scope
from flowcompute.lower.reduction import Parts, Reduction, assign, combined_all, selected
from flowcompute.spec import BOOL

WARP = 32


def subgroup_size(group: int, *, shuffle: bool) -> int:
    """Return the most work-items of a sub-group in work-groups of `group`."""
    return WARP if shuffle else min(group, LANES)


@dataclass(frozen=True)
class Slot:
    """Column of each work-item of a sub-group, or a vector of columns.

    Attributes:
        scope: values that are known at this column.
        column: its number, or the first one's; an existing one even where `valid` is false.
        lane: which of the work-item's canonical lanes, or vectors of them, it belongs to.
        valid: condition under which it exists, where that differs between work-items.
    """

    scope: Scope
    column: IndexLike
    lane: int
    valid: ConditionLike | None


class Subgroup:
    """Reductions of up to 1024 columns, whose number is known now, or bounded and known at run time.

    Args:
        scope: where statements go.
        columns: most columns.
        group: work-items in a work-group.
        shuffle: whether the device has an instruction for exchanges.
        lanes: canonical lanes, if not those of a row of `columns`.
        vector: neighbouring columns that a work-item holds together; whole vectors, shared evenly, make a row.
    """

    def __init__(
        self, scope: Scope, columns: int, *, group: int, shuffle: bool, lanes: int | None = None, vector: int = 1
    ) -> None:
        self.scope = scope
        self.columns = columns
        self.lanes = lanes or row_lanes(columns)
        self.vector = vector
        self.size = min(self.lanes // vector, subgroup_size(group, shuffle=shuffle))
        self.shuffle = shuffle
        self.place = scope.narrow(LID % self.size)

    def at(self, scope: Scope) -> Subgroup:
        """Return the same sub-group, with statements that go elsewhere."""
        subgroup = copy.copy(self)
        subgroup.scope = scope
        return subgroup

    def slots(self, base: IndexLike, limit: IndexLike | None = None) -> list[Slot]:
        """Return the columns of a work-item from `base` on, of `limit` columns in all (default: `columns`)."""
        made, wide = [], self.size * self.vector
        for position in range(-(-self.columns // wide)):
            begin = position * wide
            scope = self.scope.beside(self.vector)
            inside = scope.narrow(self.place * self.vector + begin)
            valid: ConditionLike | None = None
            if limit is not None or begin + wide > self.columns:
                assert self.vector == 1, "vectors make whole rows"
                most = self.columns if limit is None else limit
                valid = scope.flag(inside < most, narrow=True)
                inside = scope.narrow(index_min(inside, most - 1))
            made.append(Slot(scope, scope.integer(base + inside), position % (self.lanes // wide), valid))
        return made

    def accumulate(self, reductions: list[Reduction], totals: list[list[Parts]], slots: list[Slot]) -> None:
        """Add the columns of the slots, in order, to `totals`: for each reduction those of each lane."""
        for slot in slots:
            for reduction, total in zip(reductions, totals, strict=True):
                own = total[slot.lane]
                operands = reduction.given(slot.scope, slot.column, None)
                after = reduction.combined(slot.scope, own, operands, fused=True)
                if slot.valid is not None:
                    mask = slot.scope.let(Below(slot.valid), BOOL, 1, reduction.dtypes[0].itemsize)
                    after = selected(slot.scope, mask, after, own)
                assign(slot.scope, own, after)

    def start(self, reductions: list[Reduction]) -> list[list[Parts]]:
        """Declare accumulators of every lane, or vector of lanes, of a work-item."""
        per = self.lanes // (self.size * self.vector)
        return [[reduction.start(self.scope, self.vector) for _ in range(per)] for reduction in reductions]

    def finish(self, reductions: list[Reduction], totals: list[list[Parts]], *, spread: bool) -> list[Parts]:
        """Combine the lanes in a tree; the first work-item has the results, or with `spread` every one."""
        scope, results = self.scope, []
        for reduction, total in zip(reductions, totals, strict=True):
            while (half := len(total) // 2) > 0:
                total = [reduction.combined(scope, total[i], total[i + half]) for i in range(half)]
            results.append(total[0])
        distance, turn = self.size // 2, 0
        while distance:
            rights = self._exchanged(results, distance, turn)
            results = combined_all(scope, reductions, results, rights)
            distance, turn = distance // 2, turn + 1
        results = [one.across(scope, result) for one, result in zip(reductions, results, strict=True)]
        return self._ended(results, turn, spread=spread and self.size > 1)

    def merge(self, reductions: list[Reduction], parts: list[Parts], count: int) -> list[Parts]:
        """Merge `count` blocks of a row in an aligned binary tree; every work-item gets the results.

        There are up to 32 blocks, one in each work-item.
        """
        scope, merged, distance, turn = self.scope, parts, 1, 0
        while distance < count:
            rights = self._exchanged(merged, distance, turn)
            there = scope.let(Below(count - distance - self.place), BOOL, 1, 1)
            merged = [
                selected(scope, there, reduction.combined(scope, own, right), own)
                for reduction, own, right in zip(reductions, merged, rights, strict=True)
            ]
            distance, turn = distance * 2, turn + 1
        return self._ended(merged, turn, spread=True)

    def _ended(self, results: list[Parts], turn: int, *, spread: bool) -> list[Parts]:
        """Return the results once the exchange memory of the first step may be written again."""
        if spread:
            results, turn = self._exchanged(results, None, turn), turn + 1
        if turn % 2 and not self.shuffle:
            self.scope.add(WorkGroupBarrier())
        return results

    def _exchanged(self, values: list[Parts], distance: int | None, turn: int) -> list[Parts]:
        """Return the values of another work-item of the sub-group."""
        sources = tuple(part for parts in values for part in parts)
        variables = tuple(self.scope.fresh(part.dtype, part.lanes, part.mask_bytes) for part in sources)
        self.scope.add(Exchange(variables, sources, self.size, distance, self.shuffle, turn % 2))
        found = iter(variables)
        return [tuple(next(found) for _ in parts) for parts in values]
