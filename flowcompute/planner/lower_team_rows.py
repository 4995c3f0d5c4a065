"""Rows on GPUs that stay in registers: each is walked by a team, or by a work-group with a team for each block.

What is loaded or computed for one reduction is still there for the next and for what is stored,
so that softmax reads its rows once.
"""

from __future__ import annotations

import itertools

from flowcompute.graph.graph import Graph
from flowcompute.planner.canonical import BLOCK
from flowcompute.planner.emit import Arguments, Scope
from flowcompute.planner.group_blocks import GroupBlocks
from flowcompute.planner.kernel import For, If, Kernel, SetInteger, Stmt
from flowcompute.planner.knob_table import KernelStyle
from flowcompute.planner.reduction import Parts, Reduction
from flowcompute.planner.region import Region
from flowcompute.planner.row_shape import RowShape
from flowcompute.planner.row_walk import ColumnPoint, RowPoint, RowWalk
from flowcompute.planner.teams import WARP, Slot, Team
from flowcompute.strategy import KernelKnobs

WRITTEN_OUT = 1500
"""Most operations that a work-item is written out for: those of all its columns."""


def lower_team_rows(graph: Graph, region: Region, style: KernelStyle, name: str) -> Kernel | None:
    """The kernel of a region of rows; None for rows too long for registers, and where records are folded."""
    shape = RowShape(graph, region, style, {}, "team rows")
    blocks = -(-shape.columns // BLOCK)
    if region.folds or not shape.columns or not shape.rows or blocks > (WARP if shape.shuffles else 1):
        return None
    arguments = Arguments()
    scope = Scope(itertools.count(), lanes=1)
    team = Team(scope, min(shape.columns, BLOCK), group=shape.group, shuffle=shape.shuffles)
    if -(-team.columns // team.size) * len(region.nodes) > WRITTEN_OUT:
        return None
    if blocks > 1 and not shape.depth:
        return None
    walk = (GroupWalk if blocks > 1 else TeamWalk)(shape, arguments, scope, team)
    walk.emit()
    return Kernel(
        name,
        region.name,
        arguments.ordered(),
        (walk.rows(),),
        work="rows",
        work_group=walk.work_group,
        units=shape.rows,
        lanes=1,
        tile=(walk.together, 1),
        family=shape.family if blocks == 1 else "fixed",
        knobs=shape.knobs if blocks == 1 else KernelKnobs(),
        notes={"depth": shape.depth, "team": team.size, "blocks": blocks},
    )


class TeamWalk(RowWalk):
    """Emits the sweeps over one row, written out for the columns of a work-item.

    Attributes:
        work_group: work-items in a work-group.
        together: rows that a work-group walks at once.
    """

    def __init__(self, shape: RowShape, arguments: Arguments, scope: Scope, team: Team) -> None:
        super().__init__(shape, arguments, scope, None)
        self.team = team
        self.work_group, self.together = shape.group, shape.group // team.size
        self.slots: list[Slot] = []

    def emit(self) -> None:
        """All sweeps, then what is stored; teams without a row of their own store nothing."""
        shape = self.shape
        self.slots = self.columns()
        for phase in range(shape.depth):
            self.reduce(phase)
        storing = self.scope.inner(1)
        for slot in self.slots:
            inner = slot.scope.inner(1)
            point = ColumnPoint(RowPoint(self, storing), inner, slot.column, None, 2 * shape.depth)
            self._at(point)
            storing.add(*inner.statements if slot.valid is None else (If(slot.valid, tuple(inner.statements)),))
        storing.add(*self.stores_of_row(storing, self.is_first()))
        self.scope.add(*self.of_own_row(tuple(storing.statements)))

    def rows(self) -> For:
        """The loop over rows; teams for which there is none left repeat the last one."""
        row = SetInteger("r", f"min(turn + lid / {self.team.size}, n - 1)")
        return For("turn", f"gid * {self.together}", "n", f"gsize * {self.together}", (row, *self.one_row()))

    def columns(self) -> list[Slot]:
        """The columns of a work-item."""
        return self.team.slots("0")

    def is_first(self) -> str:
        """Whether it is the work-item that stores what the whole row has in common."""
        return f"{self.team.place} == 0"

    def of_own_row(self, storing: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Under the condition that the row is not one that another team walks too."""
        return (If(f"turn + lid / {self.team.size} < n", storing),)

    def results(self, reductions: list[Reduction]) -> list[Parts]:
        """What the reductions of a sweep give, known to every work-item."""
        totals = self.team.start(reductions)
        self.team.accumulate(reductions, totals, self.slots)
        return self.team.finish(reductions, totals, spread=True)


class GroupWalk(TeamWalk):
    """Emits the sweeps over one row of several blocks, each held by a team of the work-group."""

    def __init__(self, shape: RowShape, arguments: Arguments, scope: Scope, team: Team) -> None:
        super().__init__(shape, arguments, scope, team)
        self.blocks = -(-shape.columns // BLOCK)
        self.work_group, self.together = WARP * self.blocks, 1

    def rows(self) -> For:
        """The loop over rows, a row in each turn."""
        return self.loop("gid", "n", "gsize")

    def columns(self) -> list[Slot]:
        """The columns of a work-item in its team's block, of which the last may be shorter."""
        base = self.scope.narrow(f"lid / {WARP} * {BLOCK}")
        columns = self.shape.columns
        limit = None if columns % BLOCK == 0 else self.scope.narrow(f"min({BLOCK}, {columns} - {base})")
        return self.team.slots(base, limit)

    def is_first(self) -> str:
        """One of the whole work-group."""
        return "lid == 0"

    def of_own_row(self, storing: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Every work-group has a row of its own."""
        return storing

    def results(self, reductions: list[Reduction]) -> list[Parts]:
        """Of each block by its team, merged by every team."""
        totals = self.team.start(reductions)
        self.team.accumulate(reductions, totals, self.slots)
        made = self.team.finish(reductions, totals, spread=False)
        merging = GroupBlocks(self.scope, reductions, group=self.work_group, shuffle=self.team.shuffle)
        return merging.merged_of_teams(made, self.blocks)
