"""What all executors share: the steps of a pass in order, host functions, folds. Backends run the regions."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from flowcompute.batch import Batch
from flowcompute.elements import Constant, Kind
from flowcompute.engine.accumulators import make_fold
from flowcompute.engine.backend import Executor
from flowcompute.engine.fallible_input import find_attempts, seconds_of
from flowcompute.engine.folds import Accumulator
from flowcompute.engine.host_call import call_host, read_only
from flowcompute.engine.scans import Carry, Scan, make_scan
from flowcompute.engine.slices import even, sliced
from flowcompute.engine.stream_scheduler import Arrays, Made, Slice, StreamScheduler
from flowcompute.errors import DeviceFullError, DeviceWarning, FlowError, RunError
from flowcompute.graph import Node
from flowcompute.ir import ORDER_VERSION, FoldSpec, HostFold, view_array
from flowcompute.schedule import Clock, ExecutionPlan, NodeStep, RegionStep, Step, bytes_of_record, scan_in
from flowcompute.schedule.memory import HostIntermediates, never_on_host

Pushes = list[tuple[str, Callable[[], None]]]
"""What folds are to be given, each by the step that made it."""


class StepExecutor(Executor):
    """Walks a pass's steps. Subclasses run regions on arrays in host memory (`run_region`).

    `values` maps value ids to the arrays of the batch in hand, `bases` windows to the records
    that they overlap in, and `resident` ids to whole values.
    """

    def __init__(self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray]) -> None:
        self.plan = plan
        self.one_pass = plan.passes[pass_index]
        self.nodes = plan.graph.nodes
        self.resident = resident
        self.values: dict[int, np.ndarray] = {}
        self.bases: dict[int, np.ndarray] = {}
        self.folds: dict[int, Accumulator] = {}
        self.start = 0
        self._offset = 0
        self._most: dict[int, int] = {}
        self._notes: dict[int, str] = {}
        self._pushes: Pushes = []
        self._clock: Clock | None = None
        self._attempts = find_attempts(plan.graph, self.one_pass, resident)
        self.skip_counters = tuple(attempt.skip_counter for attempt in self._attempts.values())
        self._scheduler = StreamScheduler(plan, self.one_pass, self._run_slices, self._attempts)
        self._scans: dict[int, Carry] = {}
        self._between = HostIntermediates(
            plan.graph, self.one_pass, never_on_host(self.one_pass, plan.config, plan.backend)
        )
        steps = (*self.one_pass.before, *self.one_pass.steps, *self.one_pass.after)
        self._seconds: dict[str, list[float]] = {step.name: [0, 0.0] for step in steps}
        self._records = {step.name: 0 for clock in self.one_pass.clocks for step in clock.steps}
        self._record_bytes = {
            step.name: bytes_of_record(plan.graph, step) for step in steps if step.name in self._records
        }

    # -- for subclasses -----------------------------------------------------------------------

    @abstractmethod
    def run_region(self, step: RegionStep, outputs: Mapping[int, np.ndarray], items: int) -> None:
        """Compute a region over `items` records (1 when resident) into `outputs`.

        Its folds' blocks are pushed by `push_later`, so that a slice that fails has changed nothing.
        """

    def make_carry(self, step: RegionStep) -> Carry | None:
        """What the scan in a region carries, at its beginning; None where there is no scan."""
        del step
        return None

    def begin_scan(self, step: Step, scan: Carry) -> Callable[[], None]:
        """A scan is about to take the records of a slice; the result takes them back."""
        del step
        return scan.mark()

    def carried(self, value: int, scan: Carry) -> dict[str, Any]:
        """What a scan carries at its last record, as plain data."""
        del value
        return scan.snapshot()

    def make_room(self) -> None:
        """Give back what a device holds for streams: the slices that follow are smaller."""

    def attach(self) -> None:
        """Get ready to run regions; computes nothing."""

    def forget_results(self) -> None:
        """What was made of folds is made anew."""

    def resume_folds(self) -> None:
        """Folds have been put back to where they were."""

    def push_later(self, step: str, push: Callable[[], None]) -> None:
        """Give something to a fold once all steps of the slice in hand have succeeded."""
        self._pushes.append((step, push))

    def array(self, value: int) -> np.ndarray:
        """The array of a value: of the batch, or whole when resident."""
        return self.values[value] if value in self.values else self.resident[value]

    # -- working for another --------------------------------------------------------------------

    def work_for(self, owner: StepExecutor) -> None:
        """Have in hand what another executor has for all batches, some steps of which are done here."""
        self.folds, self._scans, self._most = owner.folds, owner._scans, owner._most
        self.log, self.tuner, self._offset = owner.log, owner.tuner, owner._offset

    def stand_in(self, owner: StepExecutor) -> None:
        """Have in hand what another executor has of its batch, whose regions are run here."""
        self.work_for(owner)
        self.values, self.bases, self._pushes = owner.values, owner.bases, owner._pushes
        self.start, self._clock = owner.start, owner._clock

    # -- life -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Compute what does not depend on the streams of this pass."""
        self.attach()
        for node in self.nodes:
            if isinstance(node.element, Constant):
                self.resident[node.id] = node.element.value
        self.reset()
        self._run_resident(self.one_pass.before)

    def reset(self) -> None:
        """Begin the streams anew."""
        folds: dict[int, FoldSpec | HostFold] = {**self.plan.folds, **self.plan.host_folds}
        mine = sorted(i for clock in self.one_pass.clocks for i in clock.values if i in folds)
        self.folds = {i: make_fold(folds[i]) for i in mine}
        for step in self.one_pass.steps:
            if isinstance(step, NodeStep) and step.node.kind is Kind.SCAN:
                self._scans[step.node.id] = make_scan(step.node)
            elif isinstance(step, RegionStep) and (carry := self.make_carry(step)) is not None:
                scans = (i for i in step.region.nodes if self.nodes[i].kind is Kind.SCAN)
                self._scans.update(dict.fromkeys(scans, carry))
        self._scheduler = StreamScheduler(self.plan, self.one_pass, self._run_slices, self._attempts)

    def wants(self) -> int | None:
        """The root clock to be fed next; see `Executor.wants`."""
        return self._scheduler.wants()

    def process(self, batch: Batch, outputs: Mapping[int, np.ndarray]) -> Made:
        """Compute a batch of a root clock, and what other clocks can make of it."""
        return self._scheduler.process(batch.clock, batch.items, dict(batch.arrays), outputs)

    def end(self, clock: int, outputs: Mapping[int, np.ndarray]) -> Made:
        """The sources of a root clock have ended."""
        return self._scheduler.end(clock, outputs)

    def drain(self, outputs: Mapping[int, np.ndarray]) -> Made:
        """Compute with what waits."""
        return self._scheduler.drain(outputs)

    # -- batches --------------------------------------------------------------------------------

    @property
    def is_sliced(self) -> bool:
        """Whether there was no room for a whole batch of some clock."""
        return bool(self._most)

    def _run_slices(
        self, clock: Clock, start: int, items: int, arrays: Arrays, outputs: Mapping[int, np.ndarray]
    ) -> Iterator[Slice]:
        """A batch of a clock in slices that the device has room for, usually one."""
        done, failed = 0, (0, 0)
        while True:
            stop = done + even(items - done, self._most.get(clock.id, items), clock.granule)
            mine = {value: array[done:stop] for value, array in outputs.items()}
            # Whose slice fails decides what is given back, also before its first step.
            self._clock, self._offset = clock, done
            take_back: list[Callable[[], None]] = []
            try:
                scans = ((step, self._scans.get(scan_in(step))) for step in clock.steps)
                take_back = [self.begin_scan(step, scan) for step, scan in scans if scan is not None]
                part = sliced(clock, arrays, done, stop) if stop - done < items else dict(arrays)
                values = self._run_batch(clock, start + done, stop - done, part, mine)
            except DeviceFullError as error:
                for undo in take_back:
                    undo()
                self._take_less(clock, (start + done, start + stop), error, again=failed == (done, stop))
                failed = done, stop
                continue
            yield start + done, start + stop, values
            done = stop
            if done == items:
                return

    def _take_less(self, clock: Clock, records: tuple[int, int], error: DeviceFullError, *, again: bool) -> None:
        """There was no room for a slice of a clock: smaller ones from now on, and nothing beside them.

        Few records, as at the end of a batch, are first tried again with nothing beside them.

        Raises:
            DeviceFullError: if that was the smallest slice, and the second time.
        """
        name, items = self.plan.device_of(error.element), records[1] - records[0]
        most = self._most.get(clock.id, clock.batch_items)
        less, then = most, "nothing beside them from there on"
        if again or clock.granule < items == most:
            if items <= clock.granule:
                raise DeviceFullError(
                    f"device {name} has no room for the smallest batch",
                    element=error.element,
                    site=error.site,
                    records=records,
                    expected=f"room for {items} records at a time",
                    got="; ".join(filter(None, (error.message, error.got))),
                    hint="free memory of the device, or choose another one with device=",
                ) from error
            less = max(clock.granule, items // 2 // clock.granule * clock.granule)
            then = f"{less} from there on"
        note = f"no room on {name} for {items} records of {error.element} at a time: {then}"
        self._most[clock.id] = less
        self.note(clock.id, note, error)
        self.make_room()

    def note(self, about: int, note: str, error: DeviceFullError) -> None:
        """Say what is done otherwise than planned: what is newest about something, and a warning the first time."""
        if about not in self._notes:
            warnings.warn(f"{note} ({error.got})", DeviceWarning, stacklevel=2)
        self._notes[about] = note
        self.notes = tuple(self._notes.values())

    def _run_batch(
        self, clock: Clock, start: int, items: int, arrays: dict[int, np.ndarray], outputs: Mapping[int, np.ndarray]
    ) -> Mapping[int, np.ndarray]:
        """The steps of a clock on a slice; gives all values of it. Nothing has changed where one of them fails."""
        values = self.run_steps(clock, start, items, arrays, outputs)
        pushes, self._pushes = self._pushes, []
        self.settle(clock, start, items, pushes)
        return values

    def run_steps(
        self, clock: Clock, start: int, items: int, arrays: dict[int, np.ndarray], outputs: Mapping[int, np.ndarray]
    ) -> Mapping[int, np.ndarray]:
        """The steps of a clock on a slice, but for what folds are given: that is in `_pushes`."""
        self._begin(clock, start, arrays, outputs)
        self._go_through(clock.steps, outputs, start, items)
        return self.values

    def _begin(
        self, clock: Clock, start: int, arrays: dict[int, np.ndarray], outputs: Mapping[int, np.ndarray]
    ) -> None:
        """Have a slice in hand, before its first step."""
        self._clock, self.start = clock, start
        self.values, self.bases = arrays, {}
        self._pushes.clear()
        for entry in clock.entries:
            if entry.node is not None and entry.node.kind is Kind.WINDOW:
                self.bases[entry.value] = arrays[entry.value]
                arrays[entry.value] = self._windows(entry.node, arrays[entry.value])
        for value, array in outputs.items():
            if value in arrays:
                np.copyto(array, arrays[value])

    def _go_through(self, steps: Sequence[Step], outputs: Mapping[int, np.ndarray], start: int, items: int) -> None:
        """Some steps of the slice in hand."""
        try:
            for step in steps:
                self._timed(step.name, partial(self._run_step, step, outputs, start, items))
        except FlowError as error:
            error.records = error.records or (start, start + items)
            raise

    def settle(self, clock: Clock, start: int, items: int, pushes: Pushes) -> None:
        """Give folds what the steps of a slice have made for them."""
        try:
            for name, push in pushes:
                self._timed(name, push)
        except FlowError as error:
            error.records = error.records or (start, start + items)
            raise
        for step in clock.steps:
            self._seconds[step.name][0] += 1
            self._records[step.name] += items

    def _timed(self, step: str, work: Callable[[], None]) -> None:
        began = time.perf_counter()
        work()
        self._seconds[step][1] += time.perf_counter() - began

    def _windows(self, node: Node, base: np.ndarray) -> np.ndarray:
        """Overlapping records `(items, size, *item)` as a view of what they lie in."""
        windows = np.lib.stride_tricks.sliding_window_view(base, node.attrs["size"], axis=0)[:: node.attrs["step"]]
        return np.moveaxis(windows, -1, 1)

    def finish(self) -> dict[int, np.ndarray]:
        """End the folds, run what comes after them, and give what destinations take."""
        self.forget_results()
        for clock in self.one_pass.clocks:
            for step in clock.steps:
                if isinstance(step, NodeStep) and step.node.kind is Kind.ALONG and "period" not in step.node.attrs:
                    self._check_along(step.node, self._scheduler.starts[clock.id], ended=True)
        for i, fold in self.folds.items():
            try:
                self.resident[i] = fold.result()
            except ValueError as error:
                node = self.nodes[i]
                raise RunError(
                    str(error), element=node.name, site=node.element.site, got=f"a stream of {fold.records} records"
                ) from error
        self._run_resident(self.one_pass.after)
        return {sink.value: self.resident[sink.value] for sink in self.one_pass.sinks if not sink.spec.is_stream}

    def snapshot(self) -> dict[str, Any]:
        """State of folds, scans and clocks, and how many records were dropped."""
        return {
            "order": ORDER_VERSION,
            "folds": {str(i): fold.snapshot() for i, fold in self.folds.items()},
            "scans": {str(i): self.carried(i, scan) for i, scan in self._scans.items()},
            "clocks": self._scheduler.snapshot(),
            "dropped": {str(i): attempt.skip_counter.snapshot() for i, attempt in self._attempts.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for i, fold in self.folds.items():
            fold.restore(state["folds"][str(i)])
        for i, scan in self._scans.items():
            scan.restore(state["scans"][str(i)])
        self._scheduler.restore(state["clocks"])
        for i, attempt in self._attempts.items():
            attempt.skip_counter.restore(state["dropped"][str(i)])
        self.resume_folds()

    def step_seconds(self) -> dict[str, tuple[int, float]]:
        """Batches and seconds by step."""
        steps = {name: (int(batches), seconds) for name, (batches, seconds) in self._seconds.items()}
        return {**seconds_of(self._attempts.values()), **steps}

    def step_traffic(self) -> dict[str, tuple[int, int, int]]:
        """Records, bytes read and bytes made by step; resident operands are not counted, nor what folds hold."""
        bytes_ = self._record_bytes
        return {name: (n, n * bytes_[name][0], n * bytes_[name][1]) for name, n in self._records.items()}

    def close(self) -> None:
        """Drop the arrays of this pass; resident values belong to the run."""
        self.values, self.bases = {}, {}
        self._between.forget()

    # -- steps ------------------------------------------------------------------------------------

    def _run_resident(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, RegionStep):
                specs = {i: self.nodes[i].spec for i in step.region.outputs}
                made = {i: np.empty(spec.shape, spec.dtype) for i, spec in specs.items()}
                try:
                    self.run_region(step, made, 1)
                except DeviceFullError:
                    # Beside what streams have left there; it depends on none of it.
                    self.make_room()
                    self.run_region(step, made, 1)
                self.resident.update(made)
            else:
                self.resident[step.node.id] = self._alone_once(step)

    def _alone_once(self, step: NodeStep) -> np.ndarray:
        """The value of a resident node that is no region."""
        node = step.node
        if node.kind is Kind.VIEW:
            return np.array(view_array(node, [self.array(i) for i in node.inputs], stream=False), order="C")
        if node.kind is Kind.SCAN:
            made = np.empty(node.spec.shape, node.spec.dtype)
            make_scan(node).advance([self.array(i) for i in node.inputs], 0, made)
            return made
        return self._call(step, None)

    def _run_step(self, step: Step, outputs: Mapping[int, np.ndarray], start: int, items: int) -> None:
        if isinstance(step, RegionStep):
            made = {i: outputs[i] if i in outputs else self._room(i, items) for i in step.region.outputs}
            self.values.update(made)
            self.run_region(step, made, items)
            return
        node = step.node
        if node.kind is Kind.FOLD:
            self.push_later(step.name, partial(self._push_records, node, [self.array(i) for i in node.inputs], items))
            return
        self.values[node.id] = self._alone(step, outputs, start, items)
        if node.id in outputs and self.values[node.id] is not outputs[node.id]:
            np.copyto(outputs[node.id], self.values[node.id])

    def _alone(self, step: NodeStep, outputs: Mapping[int, np.ndarray], start: int, items: int) -> np.ndarray:
        """The value of a node that is no region."""
        node = step.node
        if node.kind is Kind.ALONG and "period" in node.attrs:
            repeated = self.resident[node.inputs[0]].reshape(-1)
            return np.take(repeated, np.arange(start, start + items), mode="wrap")
        if node.kind is Kind.ALONG:
            self._check_along(node, start + items, ended=False)
            return self.resident[node.inputs[0]][start : start + items]
        if node.kind is Kind.VIEW:
            return view_array(node, [self.array(i) for i in node.inputs], stream=True)
        if node.kind is Kind.SCAN:
            made = outputs[node.id] if node.id in outputs else self._room(node.id, items)
            scan = self._scans[node.id]
            assert isinstance(scan, Scan), "scans in kernels are regions"
            scan.advance([self.array(i) for i in node.inputs], start, made)
            return made
        return self._call(step, (start, start + items))

    def _push_records(self, node: Node, arrays: list[np.ndarray], items: int) -> None:
        if node.id in self.plan.folds:
            shape = (items, *self.plan.folds[node.id].item)
            arrays = [np.broadcast_to(array, shape) for array in arrays]
        try:
            self.folds[node.id].push_records(arrays)
        except FlowError as error:
            error.element, error.site = error.element or node.name, error.site or node.element.site
            raise

    def _check_along(self, node: Node, records: int, ended: bool) -> None:
        """Refuse a stream whose length was unknown and is not that of a resident value cut along it."""
        rows = len(self.resident[node.inputs[0]])
        if records > rows or (ended and records != rows):
            raise RunError(
                "a resident value is cut along a stream of another length",
                element=node.name,
                site=node.element.site,
                expected=f"{rows} records, as the resident value has rows",
                got=f"{records} records{'' if ended else ' and more'}",
            )

    def _room(self, value: int, items: int) -> np.ndarray:
        """Memory for the slice in hand of a value that only other steps take."""
        return self._between.array(value, self._offset, items)

    def _call(self, step: NodeStep, records: tuple[int, int] | None) -> np.ndarray:
        """The result of a host function."""
        return call_host(step.node, [read_only(self.array(i)) for i in step.node.inputs], records)
