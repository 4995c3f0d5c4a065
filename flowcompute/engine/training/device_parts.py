"""Parts of a step's records on several devices: each folds its own, and the first one joins what the others made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from flowcompute.elements.training import Given
from flowcompute.engine.backend import Executor, PlannedJob, close_all
from flowcompute.engine.sharding import ClockPlace, begun_at
from flowcompute.engine.stopping import check_stopped
from flowcompute.engine.training.feeding import Records, feed_part
from flowcompute.schedule.memory import placeholder_array
from flowcompute.schedule.placement import given_to_parts, part_of
from flowcompute.thread_pool import ThreadPool

Values = Callable[[Given], np.ndarray]
"""Gives a value that a step is given, on the host."""


class DeviceParts:
    """The devices behind the first one that compute a step, and the parts of its records that all of them have.

    What they fold they bring to the host, from where the first one joins it in record order. So answers have the bits
    of one device. Nothing else that they make counts.

    Args:
        job: of a plan with one pass, which has parts.
        staying: values that are left on devices, of those that kernels make.
    """

    def __init__(self, job: PlannedJob, staying: frozenset[int]) -> None:
        (one,) = job.plan.passes
        (clock,) = one.clocks
        self._clock, own = clock, part_of(one)
        self._given = {
            i: node.element for i, node in enumerate(job.plan.graph.nodes) if isinstance(node.element, Given)
        }
        self._read = given_to_parts(job.plan.graph, own)
        ends = [*one.parts[1:], clock.length or 0]
        self._first, *parts = zip(one.parts, ends, strict=True)
        plan = replace(job.plan, passes=(own,))
        self._stopped = threading.Event()
        self._others = [
            _OtherDevice(PlannedJob(plan, job.backend.alone(number)), part, staying, self._stopped)
            for number, part in enumerate(parts, 1)
        ]
        self._threads = ThreadPool("flowcompute-part")
        self._rooms: dict[int, np.ndarray] = {}

    def run(
        self,
        executor: Executor,
        values: Values,
        kept: Mapping[int, object],
        records: Records,
        uploads: ThreadPool,
    ) -> None:
        """Compute all records of a step. Nobody goes on where one of the devices fails.

        Args:
            executor: of the first device, at its beginning.
            values: gives the values of the step.
            kept: those that the first device has, as `Executor.fetch` takes them.
            records: gives records of the sources.
            uploads: threads of the first device.

        Raises:
            FlowError: as a run; that of the first device where several fail.
        """
        given = {i: placeholder_array(element.spec) for i, element in self._given.items()}
        for i in self._read:
            given[i] = self._brought(executor, i, kept[i]) if i in kept else values(self._given[i])
        self._stopped.clear()
        begun = self._threads.begin([partial(one.run, given, records) for one in self._others], len(self._others))

        def goes_on() -> bool:
            check_stopped()
            return not self._stopped.is_set()

        try:
            feed_part(executor, self._clock, self._first, records, uploads, goes_on)
            begun.wait()
        except BaseException:
            self._stopped.set()
            begun.forget()
            raise
        for one in self._others:
            executor.join(one.made)

    def _brought(self, executor: Executor, value: int, kept: object) -> np.ndarray:
        """Return a value that the first device has, in the memory that it was brought to in the step before."""
        if value not in self._rooms:
            spec = self._given[value].spec
            room = executor.room(spec.item_bytes)
            new = np.empty(spec.item_bytes, np.uint8) if room is None else room
            self._rooms[value] = new.view(spec.dtype).reshape(spec.shape)
        executor.fetch(kept, self._rooms[value])
        return self._rooms[value]

    def close(self) -> None:
        """Release all memory, until they run again; harmless when called twice."""
        self._stopped.set()
        close_all([self._threads, *self._others])
        self._rooms.clear()


class _OtherDevice:
    """A device that computes a part of a step's records.

    Args:
        job: of what it computes.
        part: the first record, and the one after the last.
        staying: values that are left on devices.
        stopped: set where one of the devices fails; nobody goes on then.

    Attributes:
        made: state of the pass over the part, as `Executor.hand_over` gives it.
    """

    def __init__(
        self, job: PlannedJob, part: tuple[int, int], staying: frozenset[int], stopped: threading.Event
    ) -> None:
        self._job, self._part, self._staying, self._stopped = job, part, staying, stopped
        self._resident: dict[int, np.ndarray] = {}
        self._executor: Executor | None = None
        self._uploads = ThreadPool("flowcompute-part-upload")
        self.made: Mapping[str, Any] = {}

    def run(self, given: Mapping[int, np.ndarray], records: Records) -> None:
        """Compute the part of a step."""
        try:
            self._run(given, records)
        except BaseException:
            self._stopped.set()
            raise

    def _run(self, given: Mapping[int, np.ndarray], records: Records) -> None:
        plan, (begin, end) = self._job.plan, self._part
        self._resident.update(given)
        executor, clocks = self._begun(), plan.passes[0].clocks
        executor.restore(begun_at(executor.snapshot(), plan, clocks, [ClockPlace(begin, begin, end)]))
        feed_part(executor, clocks[0], self._part, records, self._uploads, lambda: not self._stopped.is_set())
        if not self._stopped.is_set():
            self.made = executor.hand_over()

    def _begun(self) -> Executor:
        """Return the executor at its beginning."""
        if self._executor is not None:
            self._executor.keep(self._staying, {})
            self._executor.begin_again()
            return self._executor
        # Kept before it is opened, so that it is closed where that fails.
        self._executor = self._job.executor(0, self._resident)
        self._executor.keep(self._staying, {})
        self._executor.open()
        return self._executor

    def close(self) -> None:
        """Release all memory; harmless when called twice."""
        executor, self._executor = self._executor, None
        self._resident.clear()
        self.made = {}
        close_all([*([] if executor is None else [executor]), self._uploads])
