"""Rows on GPUs that stay in registers: each is walked by a team, or by a work-group with a team for each block.

What is loaded or computed for one reduction is still there for the next and for what is stored,
so that softmax reads its rows once.
"""

from __future__ import annotations

import itertools

from flowcompute.graph.graph import Graph
from flowcompute.planner.backend import Traits
from flowcompute.planner.canonical import BLOCK
from flowcompute.planner.emit import Arguments, Scope
from flowcompute.planner.group_blocks import GroupBlocks
from flowcompute.planner.kernel import For, If, Kernel, SetInteger, Splat, Stmt, register_dtype
from flowcompute.planner.lower_reduce import Parts, Reduction
from flowcompute.planner.region import Region
from flowcompute.planner.row_shape import RowShape
from flowcompute.planner.row_walk import ColumnPoint, RowPoint, RowWalk
from flowcompute.planner.teams import GROUP, WARP, Slot, Team

WRITTEN_OUT = 1500
"""Most operations that a work-item is written out for: those of all its columns."""


def lower_team_rows(graph: Graph, region: Region, traits: Traits, name: str) -> Kernel | None:
    """The kernel of a region of rows; None for rows too long for registers, and where records are folded."""
    shape = RowShape(graph, region, traits, {})
    blocks = -(-shape.columns // BLOCK)
    if region.folds or not shape.columns or not shape.rows or blocks > (WARP if traits.shuffles else 1):
        return None
    arguments = Arguments()
    scope = Scope(itertools.count(), lanes=1)
    team = Team(scope, min(shape.columns, BLOCK), shuffle=traits.shuffles)
    if -(-team.columns // team.size) * len(region.nodes) > WRITTEN_OUT:
        return None
    if blocks > 1:
        if not shape.depth:
            return None
        return _lower_group_rows(shape, arguments, scope, team, name)
    walk = TeamWalk(shape, arguments, scope, team)
    walk.emit()
    teams = GROUP // team.size
    head = [
        SetInteger("r", f"min(turn + lid / {team.size}, n - 1)"),
        SetInteger("record", "r" if shape.rows == 1 else f"r / {shape.rows}"),
        *([] if shape.rows == 1 else [SetInteger("outer", f"r % {shape.rows}")]),
    ]
    loop = For("turn", f"gid * {teams}", "n", f"gsize * {teams}", (*head, *scope.statements))
    return Kernel(
        name,
        region.name,
        arguments.ordered(),
        (loop,),
        work="rows",
        work_group=GROUP,
        units=shape.rows,
        lanes=1,
        tile=(teams, 1),
        notes={"depth": shape.depth, "team": team.size},
    )


def _lower_group_rows(shape: RowShape, arguments: Arguments, scope: Scope, team: Team, name: str) -> Kernel:
    """The kernel of rows of several blocks: a team of a work-group holds each block."""
    walk = GroupWalk(shape, arguments, scope, team)
    walk.emit()
    head = [
        SetInteger("record", "r" if shape.rows == 1 else f"r / {shape.rows}"),
        *([] if shape.rows == 1 else [SetInteger("outer", f"r % {shape.rows}")]),
    ]
    return Kernel(
        name,
        shape.region.name,
        arguments.ordered(),
        (For("r", "gid", "n", "gsize", (*head, *scope.statements)),),
        work="rows",
        work_group=WARP * walk.blocks,
        units=shape.rows,
        lanes=1,
        notes={"depth": shape.depth, "team": team.size, "blocks": walk.blocks},
    )


class TeamWalk(RowWalk):
    """Emits the sweeps over one row, written out for the columns of a work-item."""

    def __init__(self, shape: RowShape, arguments: Arguments, scope: Scope, team: Team) -> None:
        super().__init__(shape, arguments, scope, None)
        self.team = team
        self.slots: list[Slot] = []

    def emit(self) -> None:
        """All sweeps, then what is stored; teams without a row of their own store nothing."""
        shape = self.shape
        self.slots = self.columns()
        for phase in range(shape.depth):
            self.reduce(phase)
        storing = self.scope.inner(1)
        for slot in self.slots:
            inner = storing.inner(1)
            # Beside what is known of this column, but under a condition.
            inner.parent = slot.scope
            point = ColumnPoint(RowPoint(self, storing), inner, slot.column, None, 2 * shape.depth)
            self._at(point)
            storing.add(*inner.statements if slot.valid is None else (If(slot.valid, tuple(inner.statements)),))
        first = storing.inner(1)
        for output in shape.region.outputs:
            if not shape.full_key(output):
                spec = shape.graph.nodes[output].spec
                place = shape.place(shape.region.layouts[output], spec.shape, True)
                argument = self.arguments.get("output", spec.dtype, output)
                RowPoint(self, first).store(output, self.base(argument.name, place), 1, "1")
        if first.statements:
            storing.add(If(self.is_first(), tuple(first.statements)))
        self.scope.add(*self.of_own_row(tuple(storing.statements)))

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

    def reduce(self, phase: int) -> None:
        """The reductions of one sweep; their results are known in the row from then on."""
        shape = self.shape
        nodes = shape.targets(phase)
        results = self.results([self._reduction(node, phase) for node in nodes])
        for node, parts in zip(nodes, results, strict=True):
            result = shape.graph.nodes[node]
            self.scope.known[node] = self.scope.let(
                Splat(parts[-1]), register_dtype(result.spec.dtype), mask_bytes=parts[-1].mask_bytes
            )


class GroupWalk(TeamWalk):
    """Emits the sweeps over one row of several blocks, each held by a team of the work-group."""

    def __init__(self, shape: RowShape, arguments: Arguments, scope: Scope, team: Team) -> None:
        super().__init__(shape, arguments, scope, team)
        self.blocks = -(-shape.columns // BLOCK)

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
        merging = GroupBlocks(self.scope, reductions, shuffle=self.team.shuffle)
        return merging.merged_of_teams(made, self.blocks)
