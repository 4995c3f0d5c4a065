"""Statements of the kernel IR by which work-groups tell each other of their work. Rendered by `gpu/render`.

By most of them the tiles of a scan pass on their carry.

A **slot** of the kernel's words belongs to one tile and column. It holds the tile's aggregate, and later its inclusive
prefix. Tiles are numbered from 0 in each launch.
"""

from __future__ import annotations

from flowcompute.elements.functions import UserOp
from flowcompute.imports import dataclass
from flowcompute.ir.index_nodes import BLOCKS, IndexLike, Name
from flowcompute.ir.nodes import Argument, CarryStatement, Var


@dataclass(frozen=True, slots=True)
class Ticket(CarryStatement):
    """Declare (`new`) or assign the number of the next free tile, drawn by work-item `by` of a work-group.

    Numbers from `tickets` on mean that no tile is left. Every work-group draws tickets until it gets one of these.
    """

    name: Name
    argument: Argument
    new: bool = True
    tickets: IndexLike = BLOCKS
    by: int = 0


@dataclass(frozen=True, slots=True)
class Publish(CarryStatement):
    """Make a number visible to later tiles in a slot: a tile's aggregate, or with `prefix` its inclusive prefix."""

    argument: Argument
    slot: IndexLike
    var: Var
    prefix: bool


@dataclass(frozen=True, slots=True)
class Await(CarryStatement):
    """Declare the inclusive prefix of a tile, once its slot holds it."""

    var: Var
    argument: Argument
    slot: IndexLike


@dataclass(frozen=True, slots=True)
class AwaitSlot(CarryStatement):
    """Declare the content of a slot once there is any, and an integer with its kind: `ADDS` or `ENDS`."""

    var: Var
    kind: Name
    argument: Argument
    slot: IndexLike


@dataclass(frozen=True, slots=True)
class LookBehind(CarryStatement):
    """Declare the exclusive prefix of tile `tile` of a stream of numbers, for every work-item of a work-group.

    The work-items from `BUSY` on each wait for one of the `window` preceding tiles. They wait for the inclusive prefix
    of the most distant tile. The first work-items may do other work. The statement contains a barrier. It uses the
    local arrays `ahead`, of `window` numbers, and `nearest`, an int32 that is `window`.
    """

    var: Var
    argument: Argument
    state: Argument
    tile: IndexLike
    window: int
    op: str | UserOp


@dataclass(frozen=True, slots=True)
class LastGroup(CarryStatement):
    """Assign 1 to an integer in the work-group that comes here as the last one of a launch, 0 in the others.

    The last one sees all that others have stored before they came. The statement contains barriers. It uses the local
    array `arrived`, an int32. The words at `argument` begin with 0, and are 0 again when the launch ends.
    """

    name: Name
    argument: Argument


@dataclass(frozen=True, slots=True)
class HandOver(CarryStatement):
    """Store variables at a place of a room, for the work-group that takes them over.

    The statement contains a barrier. `words[1 + place]` is 0 before it, and 1 once all is stored. With `groups`, the
    groups of four sub-groups of a ring do so each for itself, and each has a word.

    Attributes:
        room: what `place` counts parts of.
        words: of the kernel.
        place: the place.
        variables: what is stored.
        work_items: how many do it.
        groups: groups of a ring; 0 for a work-group.
    """

    room: Argument
    words: Argument
    place: IndexLike
    variables: tuple[Var, ...]
    work_items: int
    groups: int = 0


@dataclass(frozen=True, slots=True)
class TakeOver(CarryStatement):
    """Wait for a `HandOver` at a place, assign what it has stored, and free the place; attributes are those of it.

    The work-group that hands over has begun, and waits for nothing before. The statement contains a barrier.
    """

    room: Argument
    words: Argument
    place: IndexLike
    variables: tuple[Var, ...]
    work_items: int
    groups: int = 0


BUSY = 32
"""First work-items of a work-group, which do not wait in a `LookBehind`: those that run in lockstep."""

ADDS, ENDS = 1, 2
"""Kinds of contents of a slot: a tile's aggregate, or its inclusive prefix."""


@dataclass(frozen=True, slots=True)
class LookBack(CarryStatement):
    """Set `into[column]` to the exclusive prefix of tile `tile` in each column, by a whole work-group.

    The prefix of tile 0 is the initial `state`. The statement processes `together` columns at a time and inspects
    `window` tiles of each. It uses two local arrays: `ahead` has `window * together` numbers, and `marks` has
    `together` int32.
    """

    argument: Argument
    state: Argument
    tile: IndexLike
    columns: int
    together: int
    window: int
    op: str | UserOp
    into: str
    work_group: int
