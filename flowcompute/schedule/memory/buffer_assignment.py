"""Assignment of buffers to intermediate values: values whose lifetimes do not overlap share a buffer."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping

import numpy as np

from flowcompute.batch import aligned_array
from flowcompute.elements import Kind
from flowcompute.graph import Graph
from flowcompute.imports import dataclass
from flowcompute.ir import is_copied
from flowcompute.ring import Recent
from flowcompute.schedule.placement import direct_inputs
from flowcompute.schedule.plan import Clock, Pass
from flowcompute.schedule.steps import NodeStep, Step
from flowcompute.spec import Spec

_NOTHING = bytes(16)
"""The memory of placeholder arrays, whose numbers nobody reads."""

MOST_KINDS = 16
"""Kinds of slices that are remembered at a time. Flows of several texts have another one where a text ends."""

Span = tuple[int, int]
"""The lifetime of a value: the positions in a clock of the first and the last step that need it."""


@dataclass(frozen=True, eq=False)
class BufferAssignment:
    """A buffer that values of a clock share. Instances compare by identity and serve as keys.

    Attributes:
        clock: the clock whose batches the buffer holds.
        item_bytes: bytes per record of the largest of the values.
        values: the values, in order of first use.
    """

    clock: int
    item_bytes: int
    values: tuple[int, ...]

    def name(self, graph: Graph) -> str:
        """Return the name shown in plans."""
        first, more = graph.nodes[self.values[0]].name, len(self.values) - 1
        return f"{first} and {more} more in one buffer" if more else first


def assign_device_buffers(
    graph: Graph, one_pass: Pass, ahead: Collection[int], late: Collection[int]
) -> tuple[BufferAssignment, ...]:
    """Assign buffers of a discrete device to the values that kernels read and write.

    A value needs a buffer from the first kernel of a clock that writes or reads it to the last that reads it. Folds on
    the device read theirs once all steps have succeeded, or at once. No kernel writes to a buffer that it reads, since
    a kernel may be launched again (`OpenCLExecutor._tune`). Values for the host are downloaded by the step that
    computes them. All accesses to these buffers go through one queue, in order. A buffer is therefore overwritten only
    after everybody has read its previous value.

    Other queues transfer values while other batches are computed. Transferred values share buffers only with each
    other, and each batch in flight has its own. A result may reuse the buffer of its batch's sources. The next batch
    that gets the buffer is uploaded once the result has been downloaded.

    Args:
        graph: the planned graph.
        one_pass: a pass with the regions that the device computes.
        ahead: values that are uploaded before they are needed.
        late: values that are downloaded, or read, while other batches are computed.

    Returns:
        The buffers of streams, except for values that enter a clock. Windows of these are uploaded for each kernel.
    """
    found: list[BufferAssignment] = []
    for clock in one_pass.clocks:
        entered, end = {entry.value for entry in clock.entries}, len(clock.steps)
        staying: dict[int, Span] = {}
        moving: dict[int, Span] = {}
        for position, step in enumerate(clock.steps):
            for value in _touched(step):
                if value in entered or not graph.nodes[value].spec.is_stream:
                    continue
                spans = moving if value in ahead or value in late else staying
                first, last = spans.get(value, (0 if value in ahead else position, 0))
                is_late = value in late or (_is_kept(step) and not one_pass.folds_at_once)
                spans[value] = (first, max(last, end if is_late else position))
        found += [*_assign_greedily(graph, clock, staying), *_assign_greedily(graph, clock, moving)]
    return tuple(found)


def _touched(step: Step) -> Iterator[int]:
    """Yield the values that a step reads and makes in buffers of a discrete device."""
    if isinstance(step, NodeStep):
        yield from step.there
    elif step.kernel is not None:
        yield from (one.value for one in step.kernel.arguments if one.kind in ("input", "output"))


def assign_host_buffers(graph: Graph, one_pass: Pass, without: Collection[int]) -> tuple[BufferAssignment, ...]:
    """Assign host arrays to the values that regions of a pass compute and no destination takes.

    The readers of a value are steps, views of it, and host functions, which may return their operand. At the end of a
    batch other clocks read it, and folds, which get their records once all steps have succeeded, or at once.

    Args:
        graph: the planned graph.
        one_pass: a pass of it.
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
            is_late = _is_kept(step) and not one_pass.folds_at_once
            for value in read:
                spans[value] = (spans[value][0], end if is_late else max(position, spans[value][1]))
            if isinstance(step, NodeStep):
                lies_in[step.node.id] = read
                continue
            for value in step.region.outputs:
                if value not in sinks and value not in without:
                    lies_in[value] = {value}
                    spans[value] = (position, position)
        for value in set[int]().union(*(lies_in.get(value, ()) for value in late)):
            spans[value] = (spans[value][0], end)
        found += _assign_greedily(graph, clock, spans)
    return tuple(found)


def by_value(buffers: Iterable[BufferAssignment]) -> dict[Hashable, BufferAssignment]:
    """Map each value to its buffer."""
    return {value: one for one in buffers for value in one.values}


def _read_by(graph: Graph, step: Step) -> Iterator[int]:
    """Yield the values that a step reads.

    These are the operands of its nodes and the values that a kernel loads in their place, such as bases of views.
    """
    if isinstance(step, NodeStep):
        yield from step.node.inputs
        return
    for i in step.region.nodes:
        yield from graph.nodes[i].inputs
    if step.kernel is not None:
        yield from direct_inputs(step.kernel)


def _is_kept(step: Step) -> bool:
    """Check whether folds read an input of a step after all steps have succeeded."""
    if isinstance(step, NodeStep):
        return step.node.kind is Kind.FOLD
    return step.kernel is None and bool(step.region.folds)


def _assign_greedily(graph: Graph, clock: Clock, spans: Mapping[int, Span]) -> list[BufferAssignment]:
    """Assign buffers greedily: the largest values first, each to the first buffer that is free during its lifetime.

    If all values have one size, the number of buffers is the largest number of values alive at a time. The rule is
    "greedy by size" of Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020.
    """
    specs = {value: graph.nodes[value].spec for value in spans}
    taken = _TakenBuffers(len(clock.steps) + 1)
    holds: list[list[int]] = []
    unaligned = {spec.dtype.itemsize: 0 for spec in specs.values()}
    for value in sorted(spans, key=lambda value: (-specs[value].item_bytes, spans[value], value)):
        # The offset of each slice of a batch must be aligned to the dtype of the value.
        busy = taken.within(*spans[value]) | unaligned[specs[value].dtype.itemsize]
        number = (~busy & (busy + 1)).bit_length() - 1
        taken.take(1 << number, *spans[value])
        if number < len(holds):
            holds[number].append(value)
            continue
        holds.append([value])
        for itemsize in unaligned:
            unaligned[itemsize] |= (specs[value].item_bytes % itemsize != 0) << number
    return [
        BufferAssignment(clock.id, specs[values[0]].item_bytes, tuple(sorted(values, key=lambda value: spans[value])))
        for values in holds
    ]


class _TakenBuffers:
    """The buffers that are taken at each step, as bits of integers, in a segment tree over the steps.

    Attributes:
        _through: for each range of steps the buffers taken at all of its steps, without those of larger ranges.
        _ever: for each range of steps the buffers taken at some of its steps, without those of larger ranges.
    """

    def __init__(self, steps: int) -> None:
        self._steps = 1 << (steps - 1).bit_length()
        self._through = [0] * (2 * self._steps)
        self._ever = [0] * (2 * self._steps)

    def take(self, buffer: int, first: int, last: int) -> None:
        """Take a buffer, given as a bit, from the first to the last step."""
        for one in self._ranges(first, last):
            self._through[one] |= buffer
            while one:
                self._ever[one] |= buffer
                one >>= 1

    def within(self, first: int, last: int) -> int:
        """Return the buffers that are taken at any step from the first to the last."""
        found = 0
        for one in self._ranges(first, last):
            found |= self._ever[one]
            while one:
                found |= self._through[one]
                one >>= 1
        return found

    def _ranges(self, first: int, last: int) -> Iterator[int]:
        """Yield the fewest ranges of the tree that cover these steps."""
        low, high = first + self._steps, last + self._steps + 1
        while low < high:
            if low & 1:
                yield low
                low += 1
            if high & 1:
                high -= 1
                yield high
            low, high = low >> 1, high >> 1


def placeholder_array(spec: Spec, items: int | None = None) -> np.ndarray:
    """Return a placeholder for records that are not in host memory, or for a whole value: all share one zero."""
    shape = spec.shape if items is None else (items, *spec.shape)
    return np.ndarray(shape, spec.dtype, _NOTHING, strides=(0,) * len(shape))


class HostIntermediates:
    """Host memory of values that only other steps read, allocated on first use and reused by later batches.

    Args:
        graph: the planned graph.
        one_pass: a pass with the batch sizes of its clocks.
        not_on_host: values that are never in host memory.

    Attributes:
        not_on_host: as given.
    """

    def __init__(self, graph: Graph, one_pass: Pass, not_on_host: frozenset[int] = frozenset()) -> None:
        self._nodes = graph.nodes
        self._pass = one_pass
        self.not_on_host = not_on_host
        self._reused = by_value(assign_host_buffers(graph, one_pass, not_on_host))
        self._memory: dict[Hashable, np.ndarray] = {}
        self._arrays = Recent[tuple[int, int], dict[int, np.ndarray]](MOST_KINDS, dict)

    def array(self, value: int, offset: int, items: int) -> np.ndarray:
        """Return the memory for `items` records of a value, from record `offset` of the batch on.

        Each slice of a batch uses its own part of the memory. A value that is not in host memory gets a placeholder.
        Who asks for the same part again gets the same array.
        """
        arrays = self._arrays.take((offset, items))
        if value not in arrays:
            arrays[value] = self._new_array(value, offset, items)
        return arrays[value]

    def _new_array(self, value: int, offset: int, items: int) -> np.ndarray:
        spec, one = self._nodes[value].spec, self._reused.get(value)
        if value in self.not_on_host:
            return placeholder_array(spec, items)
        key, item_bytes = (value, spec.item_bytes) if one is None else (one, one.item_bytes)
        begin, room = offset * item_bytes, self._memory.get(key)
        # Steps of a training may come several at a time.
        if room is None or len(room) < begin + items * item_bytes:
            most = max(self._pass.clock_of(value).batch_items, offset + items)
            self._memory[key] = aligned_array((most * item_bytes,), np.dtype(np.uint8))
        part = self._memory[key][begin : begin + items * spec.item_bytes]
        return part.view(spec.dtype).reshape(items, *spec.shape)

    def forget(self) -> None:
        """Allocate new memory from now on, since the current memory is still being read."""
        self._memory = {}
        self._arrays.clear()


def lasting_values(graph: Graph, one_pass: Pass) -> frozenset[int]:
    """Return the values along the stream whose arrays stay while batches have as many records.

    Kernels and scans of the host make them in `HostIntermediates`, or they are strided views of such values.
    """
    taken = {sink.value for sink in one_pass.sinks}
    lasting: set[int] = set()
    for step in one_pass.steps:
        if not isinstance(step, NodeStep):
            lasting.update(set(step.region.outputs) - taken if step.region.stream else ())
        elif step.node.kind is Kind.SCAN:
            lasting.update({step.node.id} - taken)
        elif step.node.kind is Kind.VIEW and not is_copied(graph, step.node.id) and step.node.id not in taken:
            lasting.update((step.node.id,) if lasting.issuperset(step.node.inputs) else ())
    return frozenset(lasting)
