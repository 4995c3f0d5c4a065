"""Cuts of a stream into shards: at whole canonical blocks, as many in each as a node of the tree stands for."""

from __future__ import annotations

from collections.abc import Iterator
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


def shard_unit(plan: ExecutionPlan, clock: Clock) -> int:
    """Return the records that a shard of a clock is a multiple of: whole blocks of all folds over it."""
    return lcm(clock.granule, *_blocks(plan, clock))


def _blocks(plan: ExecutionPlan, clock: Clock) -> Iterator[int]:
    for i in sorted(clock.values):
        spec = plan.folds.get(i) or plan.host_folds.get(i)
        if spec is not None:
            yield fold_block(spec)
