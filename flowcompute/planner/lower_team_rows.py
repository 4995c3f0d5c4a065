"""Rows of up to 1024 columns on GPUs: each is walked by a team of work-items, which keep it in registers.

What is loaded or computed for one reduction is still there for the next and for what is stored,
so that softmax reads its rows once.
"""

from __future__ import annotations

import itertools

from flowcompute.graph.graph import Graph
from flowcompute.planner.backend import Traits
from flowcompute.planner.canonical import BLOCK
from flowcompute.planner.emit import Arguments, Scope
from flowcompute.planner.kernel import For, If, Kernel, SetInteger, Splat, register_dtype
from flowcompute.planner.region import Region
from flowcompute.planner.row_shape import RowShape
from flowcompute.planner.row_walk import ColumnPoint, RowPoint, RowWalk
from flowcompute.planner.teams import GROUP, Slot, Team

WRITTEN_OUT = 1500
"""Most operations that a work-item is written out for: those of all its columns."""


def lower_team_rows(graph: Graph, region: Region, traits: Traits, name: str) -> Kernel | None:
    """The kernel of a region of rows; None for rows too long for a team, and where records are folded."""
    shape = RowShape(graph, region, traits, {})
    if region.folds or not 0 < shape.columns <= BLOCK or not shape.rows:
        return None
    arguments = Arguments()
    scope = Scope(itertools.count(), lanes=1)
    team = Team(scope, shape.columns, shuffle=traits.shuffles)
    if -(-shape.columns // team.size) * len(region.nodes) > WRITTEN_OUT:
        return None
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


class TeamWalk(RowWalk):
    """Emits the sweeps over one row, written out for the columns of a work-item."""

    def __init__(self, shape: RowShape, arguments: Arguments, scope: Scope, team: Team) -> None:
        super().__init__(shape, arguments, scope, None)
        self.team = team
        self.slots: list[Slot] = []

    def emit(self) -> None:
        """All sweeps, then what is stored; teams without a row of their own store nothing."""
        shape = self.shape
        self.slots = self.team.slots("0")
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
            storing.add(If(f"{self.team.place} == 0", tuple(first.statements)))
        self.scope.add(If(f"turn + lid / {self.team.size} < n", tuple(storing.statements)))

    def reduce(self, phase: int) -> None:
        """The reductions of one sweep; their results are known in the row from then on."""
        shape = self.shape
        nodes = shape.targets(phase)
        reductions = [self._reduction(node, phase) for node in nodes]
        totals = self.team.start(reductions)
        self.team.accumulate(reductions, totals, self.slots)
        results = self.team.finish(reductions, totals, spread=True)
        for node, parts in zip(nodes, results, strict=True):
            result = shape.graph.nodes[node]
            self.scope.known[node] = self.scope.let(
                Splat(parts[-1]), register_dtype(result.spec.dtype), mask_bytes=parts[-1].mask_bytes
            )
