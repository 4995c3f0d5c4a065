"""Cuts of a stream into shards: at whole canonical blocks, as many in each as a node of the tree stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import lcm

from flowcompute.engine import fold_block
from flowcompute.schedule import Clock, ExecutionPlan

Records = tuple[int, int]
"""The first record of a range, and the one after its last."""


def shard_ranges(length: int, unit: int, shards: int) -> tuple[Records, ...]:
    """Cut a stream into ranges of `unit * 2**k` records, with the smallest k that makes at most so many of them.

    A range then gives one node of each fold's tree, but for the last range, which may be shorter. A stream of fewer
    blocks than `shards` has a range for each of them; an empty one has one empty range.

    Args:
        length: records in the stream.
        unit: records that every range but the last is a multiple of.
        shards: the most ranges.
    """
    items = unit
    while -(-length // items) > shards:
        items *= 2
    return tuple((start, min(start + items, length)) for start in range(0, max(length, 1), items))


class RootRecords:
    """Records that clocks read, counted one clock after the other: streams joined end to end follow each other.

    Most parts of a pass have one clock that reads; then these are its records.

    Args:
        clocks: of a part of a pass.

    Attributes:
        clocks: those that read, in the order in which they do.
        total: records of all of them.
    """

    def __init__(self, clocks: Sequence[Clock]) -> None:
        self.clocks = tuple(clock for clock in clocks if clock.is_root)
        self._ends = list(accumulate(clock.length or 0 for clock in self.clocks))
        self.total = self._ends[-1]

    def first_of(self, clock: Clock) -> int:
        """Return the place of the first record of a clock."""
        return self._ends[self.clocks.index(clock)] - (clock.length or 0)

    def at(self, place: int) -> Clock:
        """Return the clock that has the record at a place; the last one behind all records."""
        return next((one for one, end in zip(self.clocks, self._ends, strict=True) if place < end), self.clocks[-1])

    def before(self, place: int) -> dict[int, int]:
        """Return how many records of each clock are before a place, by id."""
        return {one.id: min(max(0, place - self.first_of(one)), one.length or 0) for one in self.clocks}

    def place(self, starts: Sequence[int]) -> int:
        """Return the place at which all clocks of the part stand, of the next record of each."""
        return sum(starts[clock.id] for clock in self.clocks)


def roots_of(clocks: Sequence[Clock]) -> dict[int, frozenset[int]]:
    """Return for each clock of a part the clocks that read what its values are made of, by id."""
    found: dict[int, frozenset[int]] = {}
    for clock in clocks:
        origins = [found[origin] for entry in clock.entries for origin, _ in entry.inputs]
        found[clock.id] = frozenset().union(*origins) if clock.entries else frozenset({clock.id})
    return found


def part_ranges(plan: ExecutionPlan, clocks: Sequence[Clock], shards: int) -> tuple[Records, ...]:
    """Cut a part of a pass into ranges of the records that its clocks read, as `RootRecords` counts them.

    No range has records of two clocks: those of one share the shards by their numbers of records, and have one each at
    least.

    Args:
        plan: whose pass it is.
        clocks: of the part.
        shards: the most ranges.
    """
    roots = RootRecords(clocks)
    ranges: list[Records] = []
    for clock in roots.clocks:
        if clock.length:
            first, most = roots.first_of(clock), max(1, shards * clock.length // roots.total)
            found = shard_ranges(clock.length, shard_unit(plan, clock), most)
            ranges += [(first + start, first + stop) for start, stop in found]
    return tuple(ranges) or ((0, 0),)


def shard_unit(plan: ExecutionPlan, clock: Clock) -> int:
    """Return the records that a shard of a clock is a multiple of: whole blocks of all folds over it."""
    return lcm(clock.granule, *_blocks(plan, clock))


def _blocks(plan: ExecutionPlan, clock: Clock) -> Iterator[int]:
    for i in sorted(clock.values):
        spec = plan.folds.get(i) or plan.host_folds.get(i)
        if spec is not None:
            yield fold_block(spec)
