"""How many records of a stream without a known length can be of use."""

from __future__ import annotations

from flowcompute.elements.axes import SECTION
from flowcompute.schedule.plan import Clock, ExecutionPlan


def records_wanted(plan: ExecutionPlan, index: int, clock: Clock) -> int | None:
    """The most records of a clock of pass `index` that anything comes of; None where there is no bound.

    Only sections take from it then (`x[:10]` of an iterable), and all of them end. Whoever
    reads it need not wait for a whole batch, which an endless source may take hours to give.
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
