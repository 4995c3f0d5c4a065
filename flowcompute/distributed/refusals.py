"""Jobs that cannot be cut into shards, each refused with the element that is in the way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from flowcompute.distributed.entry_records import ENTERING, is_joined
from flowcompute.distributed.reduced_plans import count_clocks, parts_of
from flowcompute.distributed.shard_ranges import roots_of
from flowcompute.elements import Kind
from flowcompute.elements.creation import PACK_ROWS
from flowcompute.elements.training import TRAIN
from flowcompute.engine import is_carried, joins_exactly, tile_records
from flowcompute.errors import PlanError
from flowcompute.graph import Node
from flowcompute.rewrite import Entry
from flowcompute.schedule import Clock, ExecutionPlan, Pass, policies

_AS_ONE = ("read files as one stream: fc.open([a, b])",)

_CUT = frozenset(
    {
        *(Kind.ELEMENTWISE, Kind.REDUCE, Kind.CONTRACT, Kind.VIEW, Kind.FOLD, Kind.ALONG),
        *(Kind.SCAN, Kind.WINDOW, Kind.SELECT, Kind.REBATCH),
    }
)
"""What shards compute. Of the last four some are refused; see `_why_not`."""


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
    if any(one.folds_at_once for one in plan.passes) or plan.graph.origins:
        widest = max((node for node in nodes if node.spec.is_stream), key=lambda node: node.spec.item_bytes)
        raise _refused(widest, "values are computed again, since a record would not fit", hint="raise memory=")
    for one in plan.passes:
        _check_pass(plan, one)


def _check_pass(plan: ExecutionPlan, one: Pass) -> None:
    nodes = plan.graph.nodes
    for clock in one.clocks:
        for i in sorted(clock.values.union(entry.value for entry in clock.entries)):
            node = nodes[i]
            if node.kind is not None and node.kind not in _CUT and node.op is not PACK_ROWS:
                raise _refused(node, "it is a Python function")
            if i in plan.host_folds and not joins_exactly(plan.host_folds[i]):
                raise _refused(node, "it adds up record after record, and sums of parts are rounded otherwise")
            why = _why_not(plan, one, node)
            if why is not None:
                raise _refused(node, why)
    for sink in one.sinks:
        if sink.spec.is_stream and not (sink.element.takes_regions or sink.element.in_memory):
            hint = "write it to a file of its own: x >> fc.save('x.npy')"
            raise _refused(nodes[sink.value], f"its records go to {sink.name}, which one writer fills in order", hint)
    for part in parts_of(one):
        for clock in part:
            if clock.is_root:
                _check_root(plan, clock)
        _check_paces(plan, one, part)


def _check_paces(plan: ExecutionPlan, one: Pass, part: Sequence[Clock]) -> None:
    """Check that streams of a part that are read apart are read one after the other, to be joined end to end."""
    nodes, reads = plan.graph.nodes, roots_of(part)
    joins = [entry for clock in part for entry in clock.entries if is_joined(entry)]
    for clock in part:
        ways = [[reads[origin] for origin, _ in entry.inputs] for entry in clock.entries]
        for entry, roots in zip(clock.entries, ways, strict=True):
            if frozenset().union(*roots) != reads[clock.id]:
                apart = [min(other.values) for other in part if other.id in reads[clock.id]][1]
                meeting = next((one.value for one in clock.entries if is_joined(one)), apart)
                raise _refused(nodes[meeting], "it meets a stream that is read at another pace")
            if is_joined(entry) and any(max(a) >= min(b) for a, b in pairwise(roots)):
                raise _refused(nodes[entry.value], "it joins streams that are read together", *_AS_ONE)
    surveyed = {clock.id for clock in part} & {clock.id for clock in count_clocks(one)}
    surveyed |= {clock.id for clock in part if not clock.values.isdisjoint(_carried(plan, one))}
    if joins and surveyed:
        raise _refused(nodes[joins[0].value], "it joins streams end to end beside a selection or a scan", *_AS_ONE)


def _carried(plan: ExecutionPlan, one: Pass) -> set[int]:
    return {i for clock in one.clocks for i in clock.values if is_carried(plan.graph.nodes[i])}


def _why_not(plan: ExecutionPlan, one: Pass, node: Node) -> str | None:
    """Return why a node of a pass cannot be cut; None where it can."""
    if is_carried(node):
        if tile_records(node) is None:
            return "it carries a value from each record to the next"
        if _follows_scan(plan, node):
            return "it adds up what another scan carries"
    if node.kind is Kind.REBATCH and node.op is not None and node.op.name not in ENTERING:
        return "it cuts its stream in a way of its own"
    if node.kind is Kind.SELECT and any(not one.clocks[origin].is_root for origin, _ in _entry(one, node).inputs):
        return "it selects of a stream whose records have other places than those that are read"
    return None


def _entry(one: Pass, node: Node) -> Entry:
    return next(entry for clock in one.clocks for entry in clock.entries if entry.value == node.id)


def _follows_scan(plan: ExecutionPlan, node: Node) -> bool:
    """Check whether a stream is computed from a scan that carries something."""
    nodes, seen = plan.graph.nodes, set()
    todo = list(node.inputs)
    while todo:
        one = nodes[todo.pop()]
        if one.id in seen or not one.spec.is_stream:
            continue
        if is_carried(one):
            return True
        seen.add(one.id)
        todo += one.inputs
    return False


def _check_root(plan: ExecutionPlan, clock: Clock) -> None:
    nodes = plan.graph.nodes
    for source in clock.sources:
        if not (source.element.rereadable and source.element.seekable):
            raise _refused(nodes[source.value], "it cannot be read from any record on, nor again")
    if clock.length is None:
        raise _refused(nodes[min(clock.values)], "its length is unknown")


def _refused(node: Node, why: str, hint: str = "run it on one machine") -> PlanError:
    return PlanError(f"cannot cut the job into shards: {why}", element=node.name, site=node.element.site, hint=hint)
