"""A plan that another one runs again and again, each time with other values and other records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from flowcompute.batch import Batch
from flowcompute.elements.training import Given, GivenStream
from flowcompute.engine.backend import DRAIN, Executor, PlannedJob, close_all
from flowcompute.engine.stopping import check_stopped, part_done
from flowcompute.schedule import ExecutionPlan

Records = Callable[[int, int, int], np.ndarray]
"""`records(place, start, stop)` gives records of the source at that place; the array is kept until the next call."""


class InnerJob:
    """A job all of whose leaves are given: `Given` values and `GivenStream` records. Its roots are resident.

    Kernels are built once, when it runs first.

    Args:
        job: the plan with its backend.
    """

    def __init__(self, job: PlannedJob) -> None:
        self._job = job
        nodes = job.plan.graph.nodes
        self._given = {node.id: node.element for node in nodes if isinstance(node.element, Given)}
        self._executors: list[Executor] = []
        self._resident: dict[int, np.ndarray] = {}

    @property
    def plan(self) -> ExecutionPlan:
        """The plan."""
        return self._job.plan

    def run(self, values: Callable[[Given], np.ndarray], records: Records) -> list[np.ndarray]:
        """Run all passes.

        Args:
            values: gives each value of the graph that is given.
            records: gives records of the sources.

        Returns:
            The values of the roots, in their order.

        Raises:
            FlowError: as a run.
        """
        self._resident.update((i, values(element)) for i, element in self._given.items())
        found: dict[int, np.ndarray] = {}
        for index, one in enumerate(self.plan.passes):
            executor = self._begun(index)
            self._feed(index, executor, records)
            made = executor.finish()
            found.update((sink.root, made[sink.value]) for sink in one.sinks)
        return [found[root] for root in sorted(found)]

    def _begun(self, index: int) -> Executor:
        """Return the executor of a pass at its beginning."""
        if index < len(self._executors):
            self._executors[index].begin_again()
        else:
            # Kept before it is opened, so that it is closed where that fails.
            self._executors.append(self._job.executor(index, self._resident))
            self._executors[index].open()
        return self._executors[index]

    def _feed(self, index: int, executor: Executor, records: Records) -> None:
        """Give all records of a pass to its executor."""
        clocks = self.plan.passes[index].clocks
        starts = [0] * len(clocks)
        number = 0
        while (wanted := executor.wants()) is not None:
            check_stopped()
            if wanted == DRAIN:
                executor.drain({})
                continue
            clock, start = clocks[wanted], starts[wanted]
            stop = min(start + clock.batch_items, clock.length or 0)
            if start == stop:
                executor.end(wanted, {})
                continue
            arrays = {}
            for source in clock.sources:
                assert isinstance(source.element, GivenStream)
                arrays[source.value] = records(source.element.place, start, stop)
            batch = Batch(number, start, stop, arrays, wanted)
            if executor.in_flight > 1:
                executor.upload(batch)
            executor.process(batch, {})
            if executor.in_flight > 1:
                executor.download(batch)
            starts[wanted], number = stop, number + 1
            part_done()

    def close(self) -> None:
        """Release all memory, until it runs again; harmless when called twice."""
        executors, self._executors = self._executors, []
        self._resident.clear()
        close_all(executors)


def by_key(values: Mapping[str, np.ndarray]) -> Callable[[Given], np.ndarray]:
    """Return what gives each value by its key."""
    return lambda given: values[given.key]
