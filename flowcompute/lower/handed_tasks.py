"""Tasks of equal length that go from one work-group to another, so that all work-groups end at the same time.

Each work-group takes as many steps as the others. Its first task may be the begin of one that another work-group ends.
So a begin is the first thing that is done, and an end the last one. That is the wrap-around rule of R. McNaughton,
"Scheduling with deadlines and loss functions" (1959): no task is worked on by two at a time. The steps of a task have
their order, so no sum changes.

Places are taken by ticket, the last one first. Whoever waits for a begin thus waits for a work-group that has begun.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from flowcompute.imports import dataclass
from flowcompute.ir import (
    GSIZE,
    LID,
    Argument,
    Array,
    ArrayNumber,
    For,
    If,
    IndexLike,
    Integer,
    Name,
    PutItem,
    SetInteger,
    Stmt,
    Ticket,
    choose,
    equal,
    index_max,
    index_min,
)
from flowcompute.lower.emit import Scope
from flowcompute.spec import INT64

DRAWN, MANY, GROUPS, PLACE = map(Name, ("drawn", "many", "groups", "place"))
"""A ticket, how many tasks there are, how many work-groups share them, and the place of this one."""
BEGIN, END, BEFORE, POSITION = map(Name, ("begin", "end", "before", "position"))
"""First and last (exclusive) step of the work-group, first one of the group before, and a task by order of places."""
OWNER, FIRST_OWN = Name("owner"), Name("first_own")
"""The place that ends a task, and the position of the first task that it ends."""
TAKEN = "taken"
"""Local array of the place."""


class TaskPart(NamedTuple):
    """Part of a task that a work-group does.

    Attributes:
        first: its first step.
        stop: the end (exclusive) of its steps.
        left: count of steps that are left to another work-group; 0 where this one ends the task.
    """

    first: IndexLike
    stop: IndexLike
    left: IndexLike


@dataclass(frozen=True)
class SharedTasks:
    """Tasks that the work-groups of a launch share.

    Attributes:
        words: of the kernel, for tickets and for what is handed over.
        many: how many tasks there are.
        steps: of a task.
    """

    words: Argument
    many: IndexLike
    steps: int

    def draw(self, names: itertools.count[int], by: int) -> list[Stmt]:
        """Return what draws a place by a work-item. A barrier must follow before `open`."""
        put = Scope(names, lanes=1)
        put.add(PutItem(TAKEN, 0, put.let(Integer(DRAWN), INT64)))
        return [
            Array(TAKEN, INT64, 1, 1, local=True),
            Ticket(DRAWN, self.words, tickets=0, by=by),
            If(equal(LID, by), tuple(put.statements)),
        ]

    def open(self) -> list[Stmt]:
        """Return the declarations of what the work-group does."""
        return [
            SetInteger(MANY, self.many),
            SetInteger(GROUPS, index_min(GSIZE, MANY)),
            SetInteger(PLACE, GROUPS - 1 - ArrayNumber(TAKEN, 0)),
            SetInteger(BEGIN, index_max(0, self._begin(PLACE))),
            SetInteger(END, self._begin(PLACE + 1)),
            SetInteger(BEFORE, self._begin(PLACE - 1)),
        ]

    def loop(self, task: Name, body: Sequence[Stmt]) -> Stmt:
        """Return the loop over the tasks of which the work-group does parts; `task` is the number of one.

        Work-groups that begin together have neighbouring tasks.
        """
        steps = self.steps
        begun, turn, whole = POSITION * steps < BEGIN, POSITION - FIRST_OWN, MANY // GROUPS
        number = choose(turn < whole, turn * GROUPS + OWNER, whole * (GROUPS - OWNER) + FIRST_OWN)
        each = (
            SetInteger(OWNER, choose(begun, PLACE - 1, PLACE)),
            SetInteger(FIRST_OWN, (choose(begun, BEFORE, BEGIN) + (steps - 1)) // steps),
            SetInteger(task, number),
            *body,
        )
        return For(POSITION, BEGIN // steps, (END + (steps - 1)) // steps, 1, each)

    def part(self, scope: Scope) -> TaskPart:
        """Declare the part of a task that the work-group does."""
        left = scope.integer(index_max(BEGIN - POSITION * self.steps, 0))
        first = scope.integer(self.steps - index_min(END - POSITION * self.steps, self.steps))
        return TaskPart(first, scope.integer(self.steps - left), left)

    def _begin(self, place: IndexLike) -> IndexLike:
        """Return the first step of a place."""
        return MANY * self.steps * place // GROUPS
