"""States of a pass over a part of its records: where one begins, and several of them as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowcompute.engine.accumulators import make_fold
from flowcompute.engine.folds import Accumulator, BlockedAccumulator
from flowcompute.ir import FoldSpec, HostFold
from flowcompute.schedule import Clock, ExecutionPlan


def fold_block(spec: FoldSpec | HostFold) -> int:
    """Return the records in a canonical block of a fold; 1 where it has none, so that it is cut anywhere."""
    fold = make_fold(spec)
    return fold.block if isinstance(fold, BlockedAccumulator) else 1


def begun_at(state: Mapping[str, Any], plan: ExecutionPlan, clock: Clock, start: int) -> dict[str, Any]:
    """Return the state of a pass that has taken no record and goes on at record `start`.

    Args:
        state: of the pass at its beginning, as `Executor.snapshot` gives it; left as it is.
        plan: whose pass it is.
        clock: its only clock.
        start: a multiple of the blocks of all its folds.
    """
    folds = {key: make_fold(_spec(plan, key), start).snapshot() for key in state["folds"]}
    return _at(state, clock, folds, start, ended=False)


def ended_with(
    state: Mapping[str, Any], plan: ExecutionPlan, clock: Clock, parts: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the state of a pass that has ended, of the states of folds over parts of its records.

    Args:
        state, plan, clock: as for `begun_at`; the clock's length is known.
        parts: snapshots of all folds by key, over ranges that follow each other and are the whole stream.

    Raises:
        ValueError: if a range does not begin where the one before it ends, or they are not the whole.
    """
    assert clock.length is not None, "streams of unknown length have no shards"
    folds: dict[str, Any] = {}
    for key in state["folds"]:
        spec = _spec(plan, key)
        whole = make_fold(spec)
        for part in parts:
            whole.merge(_restored(spec, part[key]))
        if whole.records != clock.length:
            raise ValueError(f"cannot merge: the parts have {whole.records} records, the stream {clock.length}")
        folds[key] = whole.snapshot()
    return _at(state, clock, folds, clock.length, ended=True)


def _restored(spec: FoldSpec | HostFold, state: Any) -> Accumulator:
    fold = make_fold(spec)
    fold.restore(state)
    return fold


def _spec(plan: ExecutionPlan, key: str) -> FoldSpec | HostFold:
    return plan.folds[int(key)] if int(key) in plan.folds else plan.host_folds[int(key)]


def _at(state: Mapping[str, Any], clock: Clock, folds: dict[str, Any], start: int, *, ended: bool) -> dict[str, Any]:
    starts, ends = list(state["clocks"]["starts"]), list(state["clocks"]["ended"])
    starts[clock.id], ends[clock.id] = start, ended
    return {**state, "folds": folds, "clocks": {**state["clocks"], "starts": starts, "ended": ends}}
