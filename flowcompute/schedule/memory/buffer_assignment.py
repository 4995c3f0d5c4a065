"""Buffers that values between kernels have in turns: a value that no later step reads makes room for another one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from flowcompute.elements import Kind
from flowcompute.graph import Graph
from flowcompute.schedule.placement import read_as_they_are
from flowcompute.schedule.plan import Clock, Pass
from flowcompute.schedule.steps import NodeStep, RegionStep, Step
from flowcompute.spec import Spec

_NOTHING = bytes(16)
"""In place of numbers that nobody reads."""

Span = tuple[int, int]
"""The first and the last step, by position in a clock, at which a value must be there."""


@dataclass(frozen=True, eq=False)
class BufferAssignment:
    """A buffer that values of a clock have in turns. It is a key by itself: equal ones are not the same.

    Attributes:
        clock: whose batches lie in it.
        item_bytes: of a record, of the largest of the values.
        values: those that have it, first come first.
    """

    clock: int
    item_bytes: int
    values: tuple[int, ...]

    def name(self, graph: Graph) -> str:
        """For people."""
        first, more = graph.nodes[self.values[0]].name, len(self.values) - 1
        return f"{first} and {more} more in turns" if more else first


def reused_on_device(
    graph: Graph, one_pass: Pass, ahead: Collection[int], late: Collection[int]
) -> tuple[BufferAssignment, ...]:
    """The buffers of a discrete device for what the kernels of a pass read and make.

    A value needs one from the first kernel of a clock that makes or reads it to the last that reads it. No kernel
    writes where it reads: one may be launched again (`OpenCLRunner._tune`), and reads when it likes. What the host
    takes is fetched by the step that makes it, and all that touches these buffers goes through one queue, in order:
    so whoever fills a buffer anew comes after everybody who reads what was there.

    Other queues fill and empty what moves while other batches are computed. It has turns by itself, as there are
    buffers of it for each batch in flight: a result may lie where the sources of its batch were, and the next batch
    that gets these buffers is uploaded when the result has been downloaded.

    Args:
        graph: what is planned.
        one_pass: with the regions that the device computes.
        ahead: what is uploaded before it is needed.
        late: what is downloaded, or read, while other batches are computed.

    Returns:
        Those of streams, but for what enters a clock: windows of it are uploaded anew for each kernel.
    """
    found: list[BufferAssignment] = []
    for clock in one_pass.clocks:
        entered, end = {entry.value for entry in clock.entries}, len(clock.steps)
        staying: dict[int, Span] = {}
        moving: dict[int, Span] = {}
        for position, step in enumerate(clock.steps):
            if isinstance(step, RegionStep) and step.kernel is not None:
                for one in step.kernel.arguments:
                    value = one.value
                    if one.kind not in ("input", "output") or value in entered or not graph.nodes[value].spec.is_stream:
                        continue
                    spans = moving if value in ahead or value in late else staying
                    first, _ = spans.get(value, (0 if value in ahead else position, 0))
                    spans[value] = (first, end if value in late else position)
        found += [*_in_turns(graph, clock, staying), *_in_turns(graph, clock, moving)]
    return tuple(found)


def reused_on_host(graph: Graph, one_pass: Pass, without: Collection[int]) -> tuple[BufferAssignment, ...]:
    """The arrays for what regions of a pass make and no destination takes.

    A value is read by steps, by those that see it through a view or through what a host function returns, which may
    be its operand, and at the end of its batch: by other clocks, and by folds, which are given their records when all
    steps have succeeded.

    Args:
        graph: what is planned.
        one_pass: of it.
        without: values that are never in host memory.
    """
    sinks = {sink.value for sink in one_pass.sinks}
    late = sinks.union(i for clock in one_pass.clocks for entry in clock.entries for _, i in entry.inputs)
    found: list[BufferAssignment] = []
    for clock in one_pass.clocks:
        end, spans = len(clock.steps), dict[int, Span]()
        lies_in: dict[int, set[int]] = {}
        for position, step in enumerate(clock.steps):
            read = set[int]().union(*(lies_in.get(value, ()) for value in _read_by(graph, step)))
            for value in read:
                spans[value] = (spans[value][0], end if _is_kept(step) else max(position, spans[value][1]))
            if isinstance(step, NodeStep):
                lies_in[step.node.id] = read
                continue
            for value in step.region.outputs:
                if value not in sinks and value not in without:
                    lies_in[value] = {value}
                    spans[value] = (position, position)
        for value in set[int]().union(*(lies_in.get(value, ()) for value in late)):
            spans[value] = (spans[value][0], end)
        found += _in_turns(graph, clock, spans)
    return tuple(found)


def by_value(buffers: Iterable[BufferAssignment]) -> dict[Hashable, BufferAssignment]:
    """In which buffer each value lies."""
    return {value: one for one in buffers for value in one.values}


def _read_by(graph: Graph, step: Step) -> Iterator[int]:
    """What a step reads: operands of its nodes, and what a kernel loads in their place, as what views lie in."""
    if isinstance(step, NodeStep):
        yield from step.node.inputs
        return
    for i in step.region.nodes:
        yield from graph.nodes[i].inputs
    if step.kernel is not None:
        yield from read_as_they_are(step.kernel)


def _is_kept(step: Step) -> bool:
    """Whether folds are given what a step reads, once all steps have succeeded."""
    if isinstance(step, NodeStep):
        return step.node.kind is Kind.FOLD
    return step.kernel is None and bool(step.region.folds)


def _in_turns(graph: Graph, clock: Clock, spans: Mapping[int, Span]) -> list[BufferAssignment]:
    """Buffers of few bytes a record: the largest values come first, and each takes the first buffer that is free.

    Where all values are of one size these are no more than are there at a time. The rule is "greedy by size" of
    Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020.
    """
    specs = {value: graph.nodes[value].spec for value in spans}
    taken: list[int] = []
    holds: list[list[int]] = []
    for value in sorted(spans, key=lambda value: (-specs[value].item_bytes, spans[value], value)):
        first, last = spans[value]
        steps = (1 << last + 1) - (1 << first)
        for number, busy in enumerate(taken):
            # Records of it begin where its numbers may lie, whichever slice of a batch they are of.
            if not busy & steps and specs[holds[number][0]].item_bytes % specs[value].dtype.itemsize == 0:
                taken[number] |= steps
                holds[number].append(value)
                break
        else:
            taken.append(steps)
            holds.append([value])
    return [
        BufferAssignment(clock.id, specs[values[0]].item_bytes, tuple(sorted(values, key=lambda value: spans[value])))
        for values in holds
    ]


def nowhere(items: int, spec: Spec) -> np.ndarray:
    """An array of records of a value that is not in host memory: a shape and a dtype, and one number for all."""
    shape = (items, *spec.shape)
    return np.ndarray(shape, spec.dtype, _NOTHING, strides=(0,) * len(shape))


class HostIntermediates:
    """Host memory for values that only other steps take, made when first asked for and kept for the next batch.

    Args:
        graph: what is planned.
        one_pass: with the batch sizes of its clocks.
        elsewhere: values that are never in host memory.

    Attributes:
        elsewhere: as given.
    """

    def __init__(self, graph: Graph, one_pass: Pass, elsewhere: frozenset[int] = frozenset()) -> None:
        self._nodes = graph.nodes
        self._pass = one_pass
        self.elsewhere = elsewhere
        self._reused = by_value(reused_on_host(graph, one_pass, elsewhere))
        self._memory: dict[Hashable, np.ndarray] = {}

    def array(self, value: int, offset: int, items: int) -> np.ndarray:
        """Room for records of a value; of the slices of a batch each has its part, from record `offset` on.

        What is elsewhere has a shape and a dtype here, and one number for all.
        """
        spec, one = self._nodes[value].spec, self._reused.get(value)
        if value in self.elsewhere:
            return nowhere(items, spec)
        key, item_bytes = (value, spec.item_bytes) if one is None else (one, one.item_bytes)
        if key not in self._memory:
            self._memory[key] = np.empty(self._pass.clock_of(value).batch_items * item_bytes, np.uint8)
        begin = offset * item_bytes
        part = self._memory[key][begin : begin + items * spec.item_bytes]
        return part.view(spec.dtype).reshape(items, *spec.shape)

    def forget(self) -> None:
        """What was given is still read: have other memory from now on."""
        self._memory = {}
