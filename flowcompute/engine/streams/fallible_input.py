"""Host functions that may fail at single records: these are dropped, so that what is made has a clock of its own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from flowcompute.elements import HostFunction
from flowcompute.elements.policies import SkipCounter
from flowcompute.engine.host import call_host, read_only
from flowcompute.engine.streams.input_buffer import InputBuffer
from flowcompute.errors import RunError
from flowcompute.graph import Graph, Node
from flowcompute.rewrite import Entry
from flowcompute.schedule import Pass

PARTS = 32
"""Parts into which a batch that fails is divided.

With one bad record among a million it takes 128 calls to find it, where two parts would take
40 and single records a million. Where all fail 3 % of the calls are in vain, with two parts half
of them. No record is computed more than log(batch, 32) + 1 times, five times for a million.
"""


class Attempt:
    """The calls of one host function in one pass; outlives the input buffers of a flow, which begin anew.

    Args:
        graph: the plan's graph.
        node: of the function.
        resident: whole values by id.

    Attributes:
        name: of the node.
        skip_counter: what was dropped.
        batches, seconds: batches done and time spent, for metrics.
    """

    def __init__(self, graph: Graph, node: Node, resident: Mapping[int, np.ndarray]) -> None:
        element = node.element
        assert isinstance(element, HostFunction)
        self.name = node.name
        self.skip_counter = SkipCounter(node.name, element.policy)
        self.batches = 0
        self.seconds = 0.0
        self._node = node
        self._is_stream = [graph.nodes[i].spec.is_stream for i in node.inputs]
        self._resident = resident

    def made(self, streams: Sequence[np.ndarray], start: int) -> np.ndarray:
        """Return what the function makes of a batch, without the records at which it fails.

        Args:
            streams: for each stream among the inputs its records.
            start: index of the first.
        """
        began = time.perf_counter()
        given = iter(streams)
        arguments = [
            read_only(next(given) if stream else self._resident[i])
            for i, stream in zip(self._node.inputs, self._is_stream, strict=True)
        ]
        items = len(streams[0])
        made = self._call(arguments, 0, items, start)
        if made is None:
            # Copied into one array: the function may use its own for all its results.
            spec = self._node.spec
            whole = np.empty((items, *spec.shape), spec.dtype)
            made = whole[: self._divide(arguments, 0, items, start, whole, 0)]
        self.skip_counter.flush()
        self.batches += 1
        self.seconds += time.perf_counter() - began
        return made

    def _call(self, arguments: list[np.ndarray], first: int, last: int, start: int) -> np.ndarray | None:
        """Return the result for records `first` to `last`; None where it fails, and a single one is counted."""
        part = [
            array[first:last] if stream else array for array, stream in zip(arguments, self._is_stream, strict=True)
        ]
        try:
            return call_host(self._node, part, (start + first, start + last))
        except RunError as error:
            if last - first == 1:
                inputs = (array[0] for array, stream in zip(part, self._is_stream, strict=True) if stream)
                self.skip_counter.add(start + first, error.__cause__ or error, inputs)
        return None

    def _divide(
        self, arguments: list[np.ndarray], first: int, last: int, start: int, out: np.ndarray, filled: int
    ) -> int:
        """Make what can be made of records that failed together; returns how much of `out` is filled then."""
        items = last - first
        if items == 1:
            return filled
        size = -(-items // PARTS)
        for begin in range(first, last, size):
            end = min(begin + size, last)
            made = self._call(arguments, begin, end, start)
            if made is None:
                filled = self._divide(arguments, begin, end, start, out, filled)
            else:
                out[filled : filled + len(made)] = made
                filled += len(made)
        return filled


class FallibleInput(InputBuffer):
    """Results of a host function, without those of records at which it fails."""

    def __init__(self, entry: Entry, name: str, attempt: Attempt) -> None:
        super().__init__(entry, name)
        self._attempt = attempt

    def _made(self, arrays: Sequence[np.ndarray], start: int) -> np.ndarray:
        return self._attempt.made(arrays, start)


def find_attempts(graph: Graph, one_pass: Pass, resident: Mapping[int, np.ndarray]) -> dict[int, Attempt]:
    """Make an attempt for each host function of a pass that may drop records, by the id of its node."""
    nodes = [entry.node for clock in one_pass.clocks for entry in clock.entries if entry.node is not None]
    return {node.id: Attempt(graph, node, resident) for node in nodes if isinstance(node.element, HostFunction)}


def seconds_of(attempts: Iterable[Attempt]) -> dict[str, tuple[int, float]]:
    """Return batches done and seconds busy by name."""
    return {attempt.name: (attempt.batches, attempt.seconds) for attempt in attempts}
