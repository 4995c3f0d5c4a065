"""Runs one pass: the scheduler says which clock advances, and each region is run where it is placed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from flowcompute.batch import Batch
from flowcompute.elements import Constant, Kind
from flowcompute.engine.backend import Executor, close_all
from flowcompute.engine.batch_slice import Arrays, BatchSlice, even, sliced
from flowcompute.engine.batches_ahead import BatchesAhead
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import Runners
from flowcompute.engine.repeats import RepeatedRuns, RunsInPlace
from flowcompute.engine.scans import Carry
from flowcompute.engine.sharding import restored_fold
from flowcompute.engine.step_runner import StepRunner, check_along
from flowcompute.engine.stream_scheduler import Made, Slice, StreamScheduler
from flowcompute.engine.streams import seconds_of
from flowcompute.errors import DeviceFullError, DeviceWarning
from flowcompute.metrics import StepTold
from flowcompute.schedule import Clock, NodeStep, RegionStep, Step, bytes_of_record, scan_in
from flowcompute.schedule.memory import stored_by
from flowcompute.schedule.placement import placements_of


class PassExecutor(Executor):
    """The executor of a pass, on one device or on several.

    Streams, folds and scans are in the state; what one runner has made and another reads goes through host memory.

    Args:
        state: of the pass.
        runners: of all placements.
        ahead: computes batches before it is their turn, where several devices work at a time.

    Attributes:
        state, runners: as given.
    """

    def __init__(self, state: PassState, runners: Runners, ahead: BatchesAhead | None = None) -> None:
        self.state = state
        self.runners = runners
        self.in_flight = max(one.in_flight for one in runners) if ahead is None else ahead.in_flight
        self.lanes = max(one.lanes for one in runners) if ahead is None else ahead.lanes
        self.skip_counters = state.skip_counters
        self._pass = one = state.one_pass
        self._ahead = ahead
        self._between = state.intermediates()
        self._steps = StepRunner(state, runners, self._between.array)
        self._scheduler = StreamScheduler(state, self._run_slices)
        self._placements = {clock.id: placements_of(clock.steps) for clock in one.clocks}
        self._scans: dict[int, list[tuple[Step, Carry]]] = {}
        self._notes: dict[int, str] = {}
        self._kept: Mapping[int, object] = {}
        self._changing = [step for step in one.before if not state.changing.isdisjoint(stored_by(step))]
        repeated = state, runners, self._steps, self._changing
        self._repeated = RepeatedRuns.of(*repeated) if ahead is None else None
        self._in_place = RunsInPlace.of(*repeated) if ahead is None else None
        # Of a clock and not of each step: a token of a language model has hundreds of steps.
        self._batches = dict.fromkeys((clock.id for clock in one.clocks), 0)
        self._records = dict.fromkeys(self._batches, 0)
        self._clocks = {step.name: clock.id for clock in one.clocks for step in clock.steps}
        self._record_bytes = {step.name: bytes_of_record(state.plan.graph, step) for step in one.steps}

    # -- life -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Compute what does not depend on the streams of this pass."""
        self.runners.attach(self.log, self.tuner)
        for node in self.state.nodes:
            if isinstance(node.element, Constant):
                node.element.check()
                self.state.resident[node.id] = node.element.value
        self.runners.take(self._kept)
        self.reset()
        self.launches += self._steps.run_resident(self._pass.before)
        if self._ahead is not None:
            self._ahead.open(self.log, self.tuner)

    def begin_again(self) -> None:
        """Begin anew with other values; see `Executor.begin_again`."""
        self.runners.forget_resident()
        self.runners.take(self._kept)
        if self._repeated is not None:
            self._repeated.begin(self._kept)
        self.reset()
        self.launches += self._steps.run_resident(self._changing)
        if self._ahead is not None:
            self._ahead.begin_again(self._changing)

    def repeat(self, arrays: Callable[[], Arrays], *, leave: bool = False) -> Mapping[int, np.ndarray] | None:
        """Repeat a run that a device has recorded, or whose launches are known; see `Executor.repeat`."""
        if self._in_place is not None:
            return self._in_place.repeat(arrays, leave=leave)
        return None if self._repeated is None else self._repeated.repeat(self._kept, arrays)

    @property
    def taken(self) -> tuple[int, ...]:  # type: ignore[override]
        """By clock the records that count; see `Executor.taken`."""
        return tuple(self.state.starts)

    @property
    def in_progress(self) -> int:  # type: ignore[override]
        """Runs that were left in progress; see `Executor.in_progress`."""
        return 0 if self._in_place is None else self._in_place.in_progress

    @property
    def can_follow(self) -> bool:  # type: ignore[override]
        """True where another run goes in the launch of those that were left; see `Executor.follow`."""
        return self._in_place is not None and self._in_place.can_follow

    def follow(self, arrays: Arrays) -> Mapping[int, np.ndarray]:
        """Repeat a run in the launch of the last one; see `Executor.follow`."""
        assert self._in_place is not None
        return self._in_place.follow(arrays)

    def wait(self) -> None:
        """Wait for runs that were left in progress; see `Executor.repeat`."""
        if self._in_place is not None:
            self._in_place.wait()

    def keep(self, made: frozenset[int], given: Mapping[int, object]) -> None:
        """Leave values on the only device; see `Executor.keep`."""
        self._kept = given
        for one in self.runners:
            one.staying = made

    def lend(self, made: int) -> object:
        """Return a value that stays on the only device; see `Executor.lend`."""
        return self.runners[0].lend(made)

    def hand_on(self, made: int, given: int) -> object:
        """Return a value that stays on the only device; see `Executor.hand_on`."""
        return self.runners[0].hand_on(made, given)

    def fetch(self, kept: object, array: np.ndarray) -> None:
        """Bring a value that stays to the host; see `Executor.fetch`."""
        self.runners[0].fetch(kept, array)

    def reset(self) -> None:
        """Begin the streams anew."""
        self.state.begin(
            lambda step: self.runners[step.placement].make_carry(step),
            self.runners[0].make_fold,
            self.runners[0].multiply,
        )
        self._join_scans()

    def _join_scans(self) -> None:
        """Let carries that are alike place the records of their clock together; the first one of them is marked."""
        scans = self.state.scans
        for clock in self._pass.clocks:
            marked = self._scans[clock.id] = []
            joined: dict[Hashable, Carry] = {}
            for step, scan in ((step, scans[i]) for step in clock.steps if (i := scan_in(step)) in scans):
                first = scan if (key := scan.alike()) is None else joined.setdefault(key, scan)
                if first is scan:
                    marked.append((step, scan))
                else:
                    scan.join(first)

    def room(self, size_bytes: int) -> np.ndarray | None:
        """Return memory that the first device across a bus reads by itself; see `Executor.room`."""
        rooms = (one.room(size_bytes) for one in self.runners.moving)
        return next((room for room in rooms if room is not None), None)

    def finish(self) -> dict[int, np.ndarray]:
        """End the folds, run what comes after them, and give what destinations take."""
        state = self.state
        for one in self.runners:
            one.forget_results()
        for clock in self._pass.clocks:
            for step in clock.steps:
                if isinstance(step, NodeStep) and step.node.kind is Kind.ALONG and "period" not in step.node.attrs:
                    check_along(state, step.node, state.starts[clock.id], ended=True)
        for i in state.folds:
            state.end_fold(i)
            made, spec = state.resident[i], state.nodes[i].spec
            if state.restored and (made.dtype, made.shape) != (spec.dtype, spec.shape):
                raise ValueError(
                    f"{state.nodes[i].name}: {made.dtype}{made.shape} in place of {spec.dtype}{spec.shape}"
                )
        self.launches += self._steps.run_resident(self._pass.after)
        if self._repeated is not None:
            self._repeated.end()
        return {sink.value: state.resident[sink.value] for sink in self._pass.sinks if not sink.spec.is_stream}

    def snapshot(self) -> dict[str, Any]:
        """Return the state of folds, scans and clocks, and how many records were dropped."""
        return self.state.snapshot(self._carried)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.state.restore(state)
        self._join_scans()
        for one in self.runners:
            one.resume_folds()

    def hand_over(self) -> dict[str, Any]:
        """Return the state of folds and clocks; see `Executor.hand_over`."""
        folds = {str(i): fold.hand_over() for i, fold in self.state.folds.items()}
        return {"folds": folds, "clocks": {"starts": list(self.state.starts)}}

    def join(self, state: Mapping[str, Any]) -> None:
        """Take in what folds have made of the records that follow; see `Executor.join`."""
        for i, fold in self.state.folds.items():
            fold.merge(restored_fold(self.state.plan, i, state["folds"][str(i)]))
        self.state.starts = list(state["clocks"]["starts"])

    def step_seconds(self) -> dict[str, tuple[int, float]]:
        """Return batches, and the seconds of all devices, by step."""
        found = dict(self._steps.seconds)
        for spent in self._ahead.seconds() if self._ahead is not None else ():
            for name, seconds in spent.items():
                found[name] += seconds
        batches, clocks = self._batches, self._clocks
        steps = {name: (batches[clocks[name]] if name in clocks else 0, seconds) for name, seconds in found.items()}
        return {**seconds_of(self.state.attempts.values()), **steps}

    def step_traffic(self) -> dict[str, tuple[int, int, int]]:
        """Return records, bytes read and bytes made by step; resident operands are not counted, nor folds' state."""
        records = {name: self._records[self._clocks[name]] for name in self._record_bytes}
        bytes_ = self._record_bytes
        return {name: (n, n * bytes_[name][0], n * bytes_[name][1]) for name, n in records.items()}

    def told(self) -> list[StepTold]:
        """Return the steps of trainings that were not asked for before; see `Executor.told`."""
        return self.state.told()

    def close(self) -> None:
        """Release all memory of this pass, also where a device fails; resident values belong to the run."""
        self._between.forget()
        close_all((self._steps, self.state, *self.runners, *(() if self._ahead is None else (self._ahead,))))

    # -- batches --------------------------------------------------------------------------------

    def upload(self, batch: Batch) -> int:
        """Bring to each device what its kernels read of the sources; where there is no room, `process` does."""
        if self._ahead is not None:
            return self._ahead.upload(batch)
        return 0 if self.state.is_sliced else sum(one.upload(batch) for one in self.runners.moving)

    def uploads_at_once(self, batch: Batch) -> bool:
        """Tell whether the device reads all of a batch by itself; see `Executor.uploads_at_once`."""
        if self._ahead is not None:
            return self._ahead.uploads_at_once(batch)
        return len(self.runners) == 1 and (self.state.is_sliced or self.runners[0].uploads_at_once(batch))

    def download(self, batch: Batch) -> int:
        """Fetch from each device what destinations take."""
        if self._ahead is not None:
            return self._ahead.download(batch)
        return sum(one.download(batch, drop=self.state.is_sliced) for one in self.runners.moving)

    def downloads_at_once(self, batch: Batch) -> bool:
        """Tell whether nothing of a batch is late; see `Executor.downloads_at_once`."""
        if self._ahead is not None:
            return self._ahead.downloads_at_once(batch)
        return len(self.runners) == 1 and self.runners[0].downloads_at_once(batch)

    def wants(self) -> int | None:
        """Return the root clock to be fed next; see `Executor.wants`."""
        return self._scheduler.wants()

    def process(self, batch: Batch, outputs: Mapping[int, np.ndarray]) -> Made:
        """Compute a batch of a root clock, and what other clocks can make of it; `download` may be left."""
        if self._ahead is None:
            for one in self.runners:
                one.take_up(batch, drop=self.state.is_sliced)
            made = self._scheduler.process(batch.clock, batch.items, dict(batch.arrays), outputs)
            for one in self.runners:
                one.let_go()
            return made
        full = self._ahead.take_up(batch)
        if full is not None:
            # Keys of clocks are not negative.
            self._note(-1, *full)
        try:
            return self._scheduler.process(batch.clock, batch.items, dict(batch.arrays), outputs)
        finally:
            self._ahead.let_go()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Leave kernels of several batches in progress where a runner is alone, and steps; see `Executor.together`."""
        with self.state.overlapping_steps():
            steps = [step for step in self._pass.steps if isinstance(step, RegionStep)]
            if len(self.runners) > 1 or self._ahead is not None or not steps:
                yield
            else:
                self._steps.waits_once = self.runners[0].waits_once = True
                try:
                    yield
                finally:
                    self._steps.waits_once = self.runners[0].waits_once = False
                    self._steps.wait(steps[-1].name)
        if self.state.trains:
            self._tell()

    def end(self, clock: int, outputs: Mapping[int, np.ndarray]) -> Made:
        """End the sources of a root clock."""
        return self._scheduler.end(clock, outputs)

    def drain(self, outputs: Mapping[int, np.ndarray]) -> Made:
        """Compute with what waits."""
        return self._scheduler.drain(outputs)

    # -- slices ---------------------------------------------------------------------------------

    def _run_slices(
        self, clock: Clock, start: int, items: int, arrays: Arrays, outputs: Mapping[int, np.ndarray]
    ) -> Iterator[Slice]:
        """Run a batch of a clock in slices that the device has room for, usually one."""
        done, failed = 0, (0, 0)
        while True:
            stop = done + even(items - done, self.state.largest.get(clock.id, items), clock.granule)
            mine = {value: array[done:stop] for value, array in outputs.items()}
            take_back: list[Callable[[], None]] = []
            try:
                take_back = [self._begin_scan(step, scan) for step, scan in self._scans[clock.id]]
                part = sliced(clock, arrays, done, stop) if stop - done < items else dict(arrays)
                values = self._run_slice(clock, start + done, stop - done, part, mine, done)
            except DeviceFullError as error:
                if self._steps.has_folded:
                    # Folds have taken these records, and would take them again.
                    raise
                for undo in take_back:
                    undo()
                self._take_less(clock, (start + done, start + stop), error, again=failed == (done, stop))
                failed = done, stop
                continue
            yield start + done, start + stop, values
            done = stop
            if done == items:
                return

    def _run_slice(
        self,
        clock: Clock,
        start: int,
        items: int,
        arrays: Arrays,
        outputs: Mapping[int, np.ndarray],
        offset: int,
    ) -> Mapping[int, np.ndarray]:
        """Run the steps of a clock on a slice; gives all values of it. Nothing has changed where one of them fails."""
        if self._ahead is not None and clock.is_root:
            done = self._ahead.compute(clock, start, items, arrays, outputs, offset)
            if done is not None:
                self.launches += done.launches
                self._settle(clock, done)
                return done.values
        placements = self._placements[clock.id]
        with self.runners.held(placements):
            taken = self._steps.begin(clock, start, items, arrays, outputs, offset)
            try:
                self._steps.go_through(clock.steps, taken, outputs)
            finally:
                self.launches += taken.launches
            self.runners.forget_streams(placements)
            self._settle(clock, taken)
        return taken.values

    def _settle(self, clock: Clock, done: BatchSlice) -> None:
        self._steps.settle(done)
        self._steps.has_folded = False
        if self.state.trains:
            self._tell()
        self._batches[clock.id] += 1
        self._records[clock.id] += done.items

    def _take_less(self, clock: Clock, records: tuple[int, int], error: DeviceFullError, *, again: bool) -> None:
        """Compute a clock in smaller slices from now on where there was no room for one, and nothing beside them.

        Few records, as at the end of a batch, are first tried again with nothing beside them.

        Raises:
            DeviceFullError: if that was the smallest slice, and the second time.
        """
        # Nothing of the slice stays where the next one, or the next batch of a flow, would find it.
        self.runners.make_room(in_hand=clock.is_root)
        name, items = self.state.plan.device_of(error.element), records[1] - records[0]
        most = self.state.largest.get(clock.id, clock.batch_items)
        less, then = most, "nothing beside them from there on"
        if again or clock.granule < items == most:
            if items <= clock.granule:
                raise DeviceFullError(
                    f"cannot compute the smallest batch: device {name} has no room for it",
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
        self.state.largest[clock.id] = less
        self._note(clock.id, note, error)

    def _note(self, about: int, note: str, error: DeviceFullError) -> None:
        """Tell what is done otherwise than planned: what is newest about something, and a warning the first time."""
        if about not in self._notes:
            warnings.warn(f"{note} ({error.got})", DeviceWarning, stacklevel=2)
        self._notes[about] = note
        self._tell()

    def _tell(self) -> None:
        self.notes = (*self._notes.values(), *self.state.said())

    # -- scans ----------------------------------------------------------------------------------

    def _begin_scan(self, step: Step, scan: Carry) -> Callable[[], None]:
        """Note where a scan is that is about to take the records of a slice; the result takes them back."""
        if scan.marks_alone or not isinstance(step, RegionStep):
            return scan.mark()
        held = {step.placement}
        with self.runners.held(held):
            undo = self.runners[step.placement].begin_scan(step, scan)

        def take_back() -> None:
            with self.runners.held(held):
                undo()

        return take_back

    def _carried(self, value: int, scan: Carry) -> dict[str, Any]:
        """Return what a scan carries at its last record; asked where it is computed."""
        steps = (step for step in self._pass.steps if isinstance(step, RegionStep))
        placement = next((step.placement for step in steps if step.region.anchor == value), None)
        return scan.snapshot() if placement is None else self.runners[placement].carried(value, scan)
