"""Statements of the kernel IR by which the tiles of a scan hand on what they carry. Rendered by `gpu/render`.

A **slot** of the kernel's words belongs to one tile and column; it holds what the tile adds, and
later what everything up to its end comes to. Tiles are numbered from 0 in each launch.
"""

from __future__ import annotations

from dataclasses import dataclass

from flowcompute.elements.functions import UserOp
from flowcompute.ir.nodes import Argument, CarryStatement, Var


@dataclass(frozen=True, slots=True)
class Ticket(CarryStatement):
    """Declare (`new`) or assign the number of the next tile that nobody has taken, by a work-group's first work-item.

    Numbers from `tickets` on say that there is none. Every work-group takes tickets until it gets one of these.
    """

    name: str
    argument: Argument
    new: bool = True
    tickets: str = "blocks"


@dataclass(frozen=True, slots=True)
class Publish(CarryStatement):
    """Let later tiles see a number in a slot: what a tile adds, or with `prefix` what comes up to its end."""

    argument: Argument
    slot: str
    var: Var
    prefix: bool


@dataclass(frozen=True, slots=True)
class Await(CarryStatement):
    """Declare what everything up to the end of a tile comes to, once its slot says so."""

    var: Var
    argument: Argument
    slot: str


@dataclass(frozen=True, slots=True)
class AwaitSlot(CarryStatement):
    """Declare what a slot holds once there is anything, and an integer that says what: `ADDS` or `ENDS`."""

    var: Var
    kind: str
    argument: Argument
    slot: str


@dataclass(frozen=True, slots=True)
class LookBehind(CarryStatement):
    """Declare what comes before tile `tile` of a stream of numbers, for every work-item of a work-group.

    Work-items from `BUSY` on wait for one of `window` tiles before it each, the furthest for its
    end, while the first ones may do other things. All meet in it. Local arrays `ahead`, of
    `window` numbers, and `nearest`, an int32 that is `window`, serve it.
    """

    var: Var
    argument: Argument
    state: Argument
    tile: str
    window: int
    op: str | UserOp


BUSY = 32
"""First work-items of a work-group, which do not wait in a `LookBehind`: those that run in step."""

ADDS, ENDS = 1, 2
"""What a slot may hold: what a tile adds, or what everything up to its end comes to."""


@dataclass(frozen=True, slots=True)
class LookBack(CarryStatement):
    """Set `into[column]` to what comes before tile `tile` in each column, by a whole work-group.

    Before tile 0 that is what `state` begins with. Of `together` columns at a time `window` tiles
    are looked at. Local arrays `ahead`, of `window * together` numbers, and `marks`, of
    `2 * together + 1` int32, serve it.
    """

    argument: Argument
    state: Argument
    tile: str
    columns: int
    together: int
    window: int
    op: str | UserOp
    into: str
    work_group: int
