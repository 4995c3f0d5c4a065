"""A plan that another one runs again and again, each time with other values and other records."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

import numpy as np

from flowcompute.elements.training import Given
from flowcompute.engine.backend import Executor, PlannedJob, close_all
from flowcompute.engine.stopping import check_stopped, part_done
from flowcompute.engine.training.device_parts import DeviceParts, Values
from flowcompute.engine.training.feeding import Records, feed, read
from flowcompute.schedule import ExecutionPlan
from flowcompute.schedule.memory import StayingValues, placeholder_array
from flowcompute.thread_pool import ThreadPool


class InnerJob:
    """A job all of whose leaves are given: `Given` values and `GivenStream` records. Its roots are resident.

    Kernels are built once, when it runs first. What one run hands on to the next stays on a discrete device.

    Args:
        job: the plan with its backend.
        handed_on: by the place of a root, the key of the given value that it is in the next run.

    Attributes:
        kept: where the device has what the last run has handed on, by the value that it is in the next one.
        parts: of its records that devices compute side by side.
        has_failed: whether a run ended by an error or an interrupt. What it left half done is unknown: `close` ends it.
    """

    def __init__(self, job: PlannedJob, handed_on: Mapping[int, str] | None = None) -> None:
        self._job = job
        nodes = job.plan.graph.nodes
        self._given = {node.id: node.element for node in nodes if isinstance(node.element, Given)}
        self._anew = [(i, element) for i, element in self._given.items() if not element.is_carried]
        sinks = [sink for one in job.plan.passes for sink in one.sinks]
        self._values = {sink.root: sink.value for sink in sinks}
        ids = {element.key: i for i, element in self._given.items()}
        keys = {place: key for place, key in (handed_on or {}).items() if key in ids}
        # A value that is several roots is handed on as each of them, which the host does.
        each = [*self._values.values()]
        pairs = {self._values[place]: ids[key] for place, key in keys.items() if each.count(self._values[place]) == 1}
        self._staying = StayingValues.of(job.plan, pairs)
        self._placeholders = {i: placeholder_array(nodes[i].spec) for i in self._staying.handed_on.values()}
        self._in_place = job.plan.backend.capabilities.host_memory
        self.kept: Mapping[int, object] = {}
        self.has_failed = False
        self._there: Mapping[int, object] = {}
        self._executors: list[Executor] = []
        self._threads = ThreadPool("flowcompute-step")
        self._resident: dict[int, np.ndarray] = {}
        self.parts = max([1, *(len(one.parts) for one in job.plan.passes)])
        self._parts = DeviceParts(job, self._staying.made[0]) if self.parts > 1 else None

    @property
    def plan(self) -> ExecutionPlan:
        """The plan."""
        return self._job.plan

    def run(self, values: Values, records: Records, *, leave: bool = False) -> list[np.ndarray | None]:
        """Run all passes.

        Args:
            values: gives each value of the graph that is given, but those that the last run has handed on.
            records: gives records of the sources.
            leave: whether the run may be left in progress; see `Executor.repeat`.

        Returns:
            The values of the roots, in their order; None for those that stay on the device, see `hand_on`, `fetch`.

        Raises:
            FlowError: as a run.
        """
        # Until the end: an interrupt comes between any two lines.
        self.has_failed = True
        for i, element in self._given.items():
            self._resident[i] = self._placeholders[i] if i in self.kept else values(element)
        found: dict[int, np.ndarray | None] = {}
        self._there = self.kept
        for index, one in enumerate(self.plan.passes):
            made = self._repeated(index, records, leave=leave and len(self.plan.passes) == 1)
            if made is None:
                made = self._made(index, values, records)
            found.update((sink.root, made[sink.value]) for sink in one.sinks)
            if lent := self._staying.lent[index]:
                self._there = {**self._there, **{i: self._executors[index].lend(i) for i in lent}}
        self.has_failed = False
        return [None if self._values[root] in self._staying.handed_on else found[root] for root in sorted(found)]

    def follow(self, values: Values, records: Records) -> np.ndarray | None:
        """Run again behind runs that are launched later, with them; see `Executor.follow`.

        Args:
            values: gives what the run before does not make.
            records: gives records of the sources.

        Returns:
            The value of the first root; None where `run` has to run.

        Raises:
            FlowError: as a run.
        """
        # Runs that are left are those of the only pass.
        executor = self._executors[0] if self._executors else None
        if executor is None or not executor.can_follow:
            return None
        clock = self._job.plan.passes[0].clocks[0]
        self.has_failed = True
        check_stopped()
        for i, element in self._anew:
            self._resident[i] = values(element)
        made = executor.follow(read(clock, 0, clock.length or 0, records))
        part_done()
        self.has_failed = False
        return made[self._values[0]]

    def _made(self, index: int, values: Values, records: Records) -> Mapping[int, np.ndarray]:
        """Run a pass; gives what it makes."""
        executor = self._begun(index)
        if self._parts is not None:
            self._parts.run(executor, values, self._there, records, self._threads)
            return executor.finish()
        # A discrete device tells what it fails at before the next batch begins.
        with executor.together() if self._in_place else nullcontext():
            feed(executor, self.plan.passes[index], records, self._threads)
        return executor.finish()

    @property
    def in_progress(self) -> int:
        """The last runs that have not ended; see `Executor.in_progress`."""
        # Only those of a plan with one pass are left.
        return self._executors[0].in_progress if self._executors else 0

    def wait(self) -> None:
        """Wait for the runs that were left in progress; see `Executor.wait`."""
        for one in self._executors:
            one.wait()

    def _repeated(self, index: int, records: Records, *, leave: bool) -> Mapping[int, np.ndarray] | None:
        """Run a pass as it was run before; None where that is not known."""
        if index >= len(self._executors):
            return None
        clocks = self.plan.passes[index].clocks

        def arrays() -> dict[int, np.ndarray]:
            check_stopped()
            return read(clocks[0], 0, clocks[0].length or 0, records)

        self._executors[index].keep(self._staying.made[index], self._there)
        made = self._executors[index].repeat(arrays, leave=leave)
        if made is not None:
            part_done()
        return made

    @property
    def hands_on(self) -> bool:
        """True where values stay on the device from run to run."""
        return bool(self._staying.handed_on)

    def hand_on(self) -> None:
        """Let the next run take what the last one has made, once all of that has succeeded."""
        handed_on, executors = self._staying.handed_on, self._executors
        mine = [(one, i) for one, made in zip(executors, self._staying.made, strict=True) for i in made]
        self.kept = {handed_on[i]: one.hand_on(i, handed_on[i]) for one, i in mine if i in handed_on}

    def fetch(self, root: int, kept: Mapping[int, object]) -> np.ndarray:
        """Return a value that stays on the device.

        Args:
            root: its place among the roots.
            kept: after which run: what `kept` was then, the last or the one before.
        """
        value = self._values[root]
        spec = self.plan.graph.nodes[value].spec
        array = np.empty(spec.shape, spec.dtype)
        self._executors[0].fetch(kept[self._staying.handed_on[value]], array)
        return array

    def take_back(self) -> None:
        """Undo a run: values that were handed on before lie where the next results would."""
        self.hand_on()

    def borrow(self, other: InnerJob) -> set[str]:
        """Begin the next run with what the last one of another job has handed on, where both leave it on the device.

        Buffers are of one context, and stay those of the other job, which has to stay open for that run.

        Args:
            other: of another plan for the same device.

        Returns:
            The keys of these values.
        """
        there = {other._given[i].key: kept for i, kept in other.kept.items()}
        mine = {self._given[i].key: i for i in self._staying.handed_on.values()}
        both = mine.keys() & there.keys()
        self.kept = {mine[key]: there[key] for key in both}
        return both

    def let_go(self) -> None:
        """Forget what the last run has handed on: the next one is given all values."""
        self.kept = {}

    def _begun(self, index: int) -> Executor:
        """Return the executor of a pass at its beginning."""
        if index < len(self._executors):
            self._executors[index].keep(self._staying.made[index], self._there)
            self._executors[index].begin_again()
        else:
            # Kept before it is opened, so that it is closed where that fails.
            self._executors.append(self._job.executor(index, self._resident))
            self._executors[index].keep(self._staying.made[index], self._there)
            self._executors[index].open()
        return self._executors[index]

    def close(self) -> None:
        """Release all memory, until it runs again; harmless when called twice. What it has handed on is lost."""
        self.let_go()
        executors, self._executors = self._executors, []
        self.has_failed = False
        self._resident.clear()
        close_all([*([] if self._parts is None else [self._parts]), self._threads, *executors])
