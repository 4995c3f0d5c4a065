"""Upper bounds on the records that a job uses of a stream of unknown length."""

from __future__ import annotations

from flowcompute.elements.axes import SECTION
from flowcompute.schedule.plan import Clock, ExecutionPlan


def records_wanted(plan: ExecutionPlan, index: int, clock: Clock) -> int | None:
    """Return the most records of a clock of pass `index` that any result depends on; None if unbounded.

    There is a bound where only sections with an end read the clock, as in `x[:10]` of an iterable. The source then need
    not fill a whole batch, which may take hours on an endless source.
    """
    one_pass = plan.passes[index]
    ends = {sink.value for sink in one_pass.sinks} | set(plan.folds) | set(plan.host_folds)
    if clock.length is not None or clock.values & ends:
        return None
    most = 0
    for taker in one_pass.clocks:
        for entry in taker.entries:
            if all(origin != clock.id for origin, _ in entry.inputs):
                continue
            stop = entry.node.attrs["stop"] if entry.node is not None and entry.node.op is SECTION else None
            if stop is None:
                return None
            most = max(most, stop)
    return most
