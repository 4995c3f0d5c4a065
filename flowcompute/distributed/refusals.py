"""Jobs that cannot be cut into shards, each refused with the element that is in the way."""

from __future__ import annotations

from flowcompute.elements import Kind
from flowcompute.elements.training import TRAIN
from flowcompute.errors import PlanError
from flowcompute.graph import Node
from flowcompute.schedule import Clock, ExecutionPlan, Pass, policies

_BY_RECORD = frozenset({Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT, Kind.VIEW, Kind.FOLD})
"""What sees nothing of a stream but the record that it computes, and where that record is."""

_WHY = {
    Kind.SCAN: "it carries a value from each record to the next",
    Kind.WINDOW: "it sees neighbours across the border of shards",
    Kind.SELECT: "how many records it lets through is unknown before all have come",
    Kind.REBATCH: "it gives records other places",
    Kind.ALONG: "a resident value is cut along the stream",
    Kind.HOST: "it is a Python function of this process",
}


def check_shardable(plan: ExecutionPlan) -> None:
    """Check that every pass of a plan can be run over ranges of its records.

    Raises:
        PlanError: naming the first element that cannot.
    """
    nodes = plan.graph.nodes
    for node in nodes:
        if node.op is TRAIN:
            raise _refused(node, "its steps follow each other")
    names = policies(plan.graph)
    for node in nodes:
        if node.name in names.values():
            raise _refused(node, "records that it drops are counted in one place")
    if plan.shaping.piece_bytes is not None:
        widest = max((node for node in nodes if node.spec.is_stream), key=lambda node: node.spec.item_bytes)
        raise _refused(widest, "its items are streamed in pieces", hint="raise memory=")
    for one in plan.passes:
        _check_pass(plan, one)


def _check_pass(plan: ExecutionPlan, one: Pass) -> None:
    nodes = plan.graph.nodes
    for clock in one.clocks:
        for i in sorted(clock.values.union(entry.value for entry in clock.entries)):
            node = nodes[i]
            if node.kind is not None and node.kind not in _BY_RECORD:
                raise _refused(node, _WHY[node.kind])
    for sink in one.sinks:
        if sink.spec.is_stream and not sink.element.takes_regions:
            hint = "write it to a file of its own: x >> fc.save('x.npy')"
            raise _refused(nodes[sink.value], f"its records go to {sink.name}, which one writer fills in order", hint)
    for clock in one.clocks:
        _check_clock(plan, clock)
    if len(one.clocks) > 1:
        other = one.clocks[1]
        raise _refused(nodes[min(other.values)], "two streams of the job do not advance together")


def _check_clock(plan: ExecutionPlan, clock: Clock) -> None:
    nodes = plan.graph.nodes
    for source in clock.sources:
        if not (source.element.rereadable and source.element.seekable):
            raise _refused(nodes[source.value], "it cannot be read from any record on, nor again")
    if clock.length is None:
        raise _refused(nodes[min(clock.values)], "its length is unknown")


def _refused(node: Node, why: str, hint: str = "run it on one machine") -> PlanError:
    return PlanError(f"cannot cut the job into shards: {why}", element=node.name, site=node.element.site, hint=hint)
