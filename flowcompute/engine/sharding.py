"""States of a pass over a part of its records: where one begins, and several of them as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from flowcompute.engine.accumulators import make_fold
from flowcompute.engine.folds import Accumulator, BlockedAccumulator
from flowcompute.imports import dataclass
from flowcompute.ir import FoldSpec, HostFold
from flowcompute.schedule import Clock, ExecutionPlan


@dataclass(frozen=True)
class ClockPlace:
    """Where a part of a pass stands in a clock.

    Attributes:
        begin: the first record that is computed.
        first: the first record that counts; those before it are computed for what their neighbours see of them.
        stop: the record after the last one that counts; `first` where none does.
        skips: by value that enters the clock, how many records are dropped of what comes first.
        ended: whether it has ended before the part begins, as streams do that others are joined to.
    """

    begin: int
    first: int
    stop: int
    skips: Mapping[int, int] = field(default_factory=dict)
    ended: bool = False


def fold_block(spec: FoldSpec | HostFold) -> int:
    """Return the records in a canonical block of a fold; 1 where it has none, so that it is cut anywhere."""
    fold = make_fold(spec)
    return fold.block if isinstance(fold, BlockedAccumulator) else 1


def joins_exactly(spec: FoldSpec | HostFold) -> bool:
    """Check whether states of a fold over parts of a stream join to the bits of the whole."""
    return make_fold(spec).joins_exactly


def begun_at(
    state: Mapping[str, Any], plan: ExecutionPlan, clocks: Sequence[Clock], places: Sequence[ClockPlace]
) -> dict[str, Any]:
    """Return the state of a pass that has taken no record and goes on at the `begin` of each clock.

    Args:
        state: of the pass at its beginning, as `Executor.snapshot` gives it; left as it is.
        plan: whose pass it is.
        clocks: of the pass.
        places: where the part stands in each of them.
    """
    inlets = []
    for clock, place, kept in zip(clocks, places, state["clocks"]["inlets"], strict=True):
        begun = {}
        for entry in clock.entries:
            own = {**kept[str(entry.value)], "skip": place.skips[entry.value], "taken": place.begin}
            # Behind the first record of its stream nothing is added before a window.
            if "begun" in own and places[entry.inputs[0][0]].begin:
                own["begun"] = True
            over = [places[origin].ended for origin, _ in entry.inputs]
            if "arm" in own:
                own["arm"] = [*over, False].index(False)
            own["ended"] = all(over)
            begun[str(entry.value)] = own
        inlets.append(begun)
    starts = [place.begin for place in places]
    streams = {"starts": starts, "ended": [place.ended for place in places], "inlets": inlets}
    return {**state, "folds": _begun_folds(state, plan, clocks, starts), "clocks": streams}


def counting_from(
    state: Mapping[str, Any], plan: ExecutionPlan, clocks: Sequence[Clock], places: Sequence[ClockPlace]
) -> dict[str, Any]:
    """Return the state of a pass that stands at the `first` of each clock, with folds that have taken nothing.

    Args:
        state: as it stands there; left as it is.
        plan, clocks, places: as for `begun_at`.

    Raises:
        ValueError: if it stands elsewhere.
    """
    starts = [place.first for place in places]
    if list(state["clocks"]["starts"]) != starts:
        raise ValueError(f"clocks stand at {state['clocks']['starts']}, and not at {starts}")
    return {**state, "folds": _begun_folds(state, plan, clocks, starts)}


def limited(state: Mapping[str, Any], limits: Sequence[int] | None) -> dict[str, Any]:
    """Return the state of a pass whose clocks stop at these records; None for the ends of their streams."""
    streams = {key: value for key, value in state["clocks"].items() if key != "limits"}
    return {**state, "clocks": streams if limits is None else {**streams, "limits": list(limits)}}


def ended_with(
    state: Mapping[str, Any],
    plan: ExecutionPlan,
    clocks: Sequence[Clock],
    lengths: Sequence[int],
    parts: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """Return the state of a pass that has ended, of the states of folds over parts of its records.

    Args:
        state, plan, clocks: as for `begun_at`.
        lengths: records of each clock.
        parts: by key the snapshots of each fold, over ranges that follow each other and are the whole stream.

    Raises:
        ValueError: if a range does not begin where the one before it ends, or they are not the whole.
    """
    folds: dict[str, Any] = {}
    for key in state["folds"]:
        spec, length = _spec(plan, key), lengths[_clock_of(clocks, key).id]
        whole = make_fold(spec)
        for part in parts[key]:
            fold = _restored(spec, part)
            # A stream may end within a block, long before the last part.
            if fold.records or fold.start != whole.stop:
                whole.merge(fold)
        if whole.records != length:
            raise ValueError(f"cannot merge: the parts have {whole.records} records, the stream {length}")
        folds[key] = whole.snapshot()
    inlets = [
        {
            key: {**kept, "taken": length, "ended": True, **({"begun": True} if "begun" in kept else {})}
            for key, kept in buffers.items()
        }
        for buffers, length in zip(state["clocks"]["inlets"], lengths, strict=True)
    ]
    return {
        **state,
        "folds": folds,
        "clocks": {"starts": list(lengths), "ended": [True] * len(lengths), "inlets": inlets},
    }


def _begun_folds(
    state: Mapping[str, Any], plan: ExecutionPlan, clocks: Sequence[Clock], starts: Sequence[int]
) -> dict[str, Any]:
    return {key: make_fold(_spec(plan, key), starts[_clock_of(clocks, key).id]).snapshot() for key in state["folds"]}


def restored_fold(plan: ExecutionPlan, value: int, state: Any) -> Accumulator:
    """Return a fold of a plan, on the host, in a state of its own that was kept.

    Args:
        plan: the plan.
        value: the fold.
        state: as its snapshot.
    """
    return _restored(_spec(plan, str(value)), state)


def _restored(spec: FoldSpec | HostFold, state: Any) -> Accumulator:
    fold = make_fold(spec)
    fold.restore(state)
    return fold


def _clock_of(clocks: Sequence[Clock], key: str) -> Clock:
    return next(clock for clock in clocks if int(key) in clock.values)


def _spec(plan: ExecutionPlan, key: str) -> FoldSpec | HostFold:
    return plan.folds[int(key)] if int(key) in plan.folds else plan.host_folds[int(key)]
