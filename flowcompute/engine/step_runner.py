"""Runs the steps of a clock on a slice: regions where they are placed, host functions, views and scans here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from flowcompute.batch import aligned_array
from flowcompute.elements import Kind
from flowcompute.elements.math import WHERE
from flowcompute.elements.training import Training
from flowcompute.engine.batch_slice import Arrays, BatchSlice
from flowcompute.engine.host import call_host, read_only
from flowcompute.engine.pass_state import PassState
from flowcompute.engine.region_runner import Runners
from flowcompute.engine.repeated_steps import RepeatedSteps
from flowcompute.engine.scans import Scan, make_scan
from flowcompute.engine.streams import ChosenMatrices
from flowcompute.errors import DeviceFullError, FlowError, RunError
from flowcompute.graph import Node
from flowcompute.ir import is_copied, view_array
from flowcompute.schedule import Clock, NodeStep, RegionStep, Step, device_folds
from flowcompute.schedule.memory import lasting_values, placeholder_array

Room = Callable[[int, int, int], np.ndarray]
"""`room(value, offset, items)` gives host memory for a value that only other steps take; see `HostIntermediates`."""


class StepRunner:
    """Runs steps, and changes nothing of the pass's state but for scans on the host.

    Args:
        state: of the pass.
        runners: of all placements.
        room: gives memory for values that only other steps take.
        sharing: how many of these have steps in hand at a time, and share the memory for chosen matrices.

    Attributes:
        seconds: by step name, for metrics.
        waits_once: whether the end of a slice leaves waiting for its kernels to `wait`.
        has_folded: whether folds have taken records of the slice in hand, whose steps have not all succeeded.
    """

    waits_once = False
    has_folded = False

    def __init__(self, state: PassState, runners: Runners, room: Room, sharing: int = 1) -> None:
        one = state.one_pass
        self.seconds = {step.name: 0.0 for step in (*one.before, *one.steps, *one.after)}
        self._state = state
        self._nodes = state.nodes
        self._runners = runners
        self._room = room
        graph = state.plan.graph
        steps = (step for step in one.steps if isinstance(step, NodeStep) and step.node.kind is Kind.VIEW)
        self._lasting = lasting_values(graph, one)
        self._chosen = ChosenMatrices(graph.nodes, state.plan.config.memory_bytes, sharing)
        self._views: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._strided = {step.node.id for step in steps if not is_copied(graph, step.node.id)}
        lasting_views = self._lasting & self._strided
        self._folds_on_device = bool(device_folds(one.steps))
        self._repeated = {clock.id: RepeatedSteps(runners, lasting_views) for clock in one.clocks}

    def close(self) -> None:
        """Let matrices that records have chosen leave the system's cache, where they do not fit the memory."""
        self._chosen.close()

    # -- slices -----------------------------------------------------------------------------------

    def begin(
        self, clock: Clock, start: int, items: int, arrays: Arrays, outputs: Mapping[int, np.ndarray], offset: int = 0
    ) -> BatchSlice:
        """Take a slice in hand, before its first step.

        Args:
            clock: of the records.
            start, items: which ones.
            arrays: of the clock's sources and entries; more are added.
            outputs: memory for what destinations take.
            offset: of the first record in its batch.
        """
        taken = BatchSlice(clock, start, items, offset, arrays, self._state.resident)
        for entry in clock.entries:
            if entry.node is not None and entry.node.kind is Kind.WINDOW:
                taken.bases[entry.value] = arrays[entry.value]
                arrays[entry.value] = _windows(entry.node, arrays[entry.value])
        for value, array in outputs.items():
            if value in arrays:
                np.copyto(array, arrays[value])
        return taken

    def go_through(self, steps: Sequence[Step], taken: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
        """Run some steps of a slice; what folds are given is left to `settle`.

        The seconds of a stretch that is repeated are those of its last step.
        """
        assert taken.clock is not None
        repeated, place = self._repeated[taken.clock.id], 0
        self.has_folded = False
        try:
            repeated.begin(steps, taken)
            while place < len(steps):
                began = time.perf_counter()
                stretch = repeated.repeat(place, taken)
                if stretch is None:
                    self._run_step(steps[place], taken, outputs)
                name = steps[place].name if stretch is None else stretch.last
                place += 1 if stretch is None else stretch.steps
                self.seconds[name] += time.perf_counter() - began
                if self._state.one_pass.folds_at_once and taken.pushes:
                    # What they read has the memory of later values.
                    self.wait(name)
                    self.has_folded = True
                    self.settle(taken)
                    taken.pushes.clear()
            repeated.end(taken, outputs)
        except FlowError as error:
            error.records = error.records or (taken.start, taken.start + taken.items)
            raise
        finally:
            if not self.waits_once:
                self._runners.wait()

    def wait(self, step: str) -> None:
        """Wait for kernels that slices have left in progress, which counts as the work of a step."""
        self._timed(step, self._runners.wait)

    def settle(self, taken: BatchSlice) -> None:
        """Give folds what the steps of a slice have made for them."""
        try:
            for name, push in taken.pushes:
                self._timed(name, push)
            if self._folds_on_device:
                # Other queues write over what the device is still adding up.
                self._runners.wait()
        except FlowError as error:
            error.records = error.records or (taken.start, taken.start + taken.items)
            raise

    def _timed(self, step: str, work: Callable[[], None]) -> None:
        began = time.perf_counter()
        work()
        self.seconds[step] += time.perf_counter() - began

    # -- on the host ------------------------------------------------------------------------------

    def see(self, steps: Sequence[NodeStep], taken: BatchSlice) -> None:
        """Make views of records on the host, whose indices are checked."""
        try:
            for step in steps:
                taken.values[step.node.id] = self._view(step.node, taken)
        except FlowError as error:
            error.records = error.records or (taken.start, taken.start + taken.items)
            raise

    def fold_at_once(self, node: Node, taken: BatchSlice) -> None:
        """Make the value of a fold on the host of these records, which are all there are."""
        with _named(node):
            self._state.fold_at_once(node.id, self._folded(node, taken))

    def fold_each(self, node: Node, several: Sequence[BatchSlice]) -> Sequence[np.ndarray]:
        """Return the values of a fold on the host of several slices alone, of as many records each."""
        with _named(node):
            return self._state.fold_each(node.id, [self._folded(node, taken) for taken in several])

    def run_alone(self, step: NodeStep, taken: BatchSlice) -> None:
        """Compute the value of a node that is neither a region nor a fold, of records."""
        taken.values[step.node.id] = self._alone(step, taken, {})

    def has_memory(self, node: Node) -> bool:
        """Check whether the value of such a node has memory of its own: it is no strided view."""
        return node.id not in self._strided

    def run_whole(self, step: NodeStep, taken: BatchSlice) -> None:
        """Compute the value of a resident node that is no region."""
        self._state.resident[step.node.id] = self._alone_once(step, taken)

    def place(self, value: int, offset: int, items: int) -> np.ndarray:
        """Return memory for records of a value, from record `offset` of the batch on."""
        return self._room(value, offset, items)

    # -- steps ------------------------------------------------------------------------------------

    def run_resident(self, steps: Sequence[Step]) -> int:
        """Compute whole values; gives the launches."""
        launches, resident = 0, self._state.resident
        for step in steps:
            whole = BatchSlice(None, 0, 1, 0, {}, resident)
            if isinstance(step, RegionStep):
                made = {i: self.whole(i) for i in step.region.outputs}
                try:
                    self._runners.run(step, whole, made)
                except DeviceFullError:
                    # Beside what streams have left there; it depends on none of it.
                    self._runners.make_room(in_hand=False)
                    self._runners.run(step, whole, made)
                resident.update(made)
            elif self._runners.stays(step.node.id):
                self._runners[0].view(step.node, whole)
                resident[step.node.id] = self.whole(step.node.id)
            else:
                # It reads what kernels may still be computing.
                self._runners.wait()
                resident[step.node.id] = self._alone_once(step, whole)
            launches += whole.launches
        self._runners.wait()
        return launches

    def whole(self, value: int) -> np.ndarray:
        """Return memory for a resident value; a placeholder where it stays on a device."""
        spec = self._nodes[value].spec
        return placeholder_array(spec) if self._runners.stays(value) else aligned_array(spec.shape, spec.dtype)

    def _alone_once(self, step: NodeStep, whole: BatchSlice) -> np.ndarray:
        """Return the value of a resident node that is no region."""
        node = step.node
        if node.kind is Kind.VIEW:
            return np.array(view_array(node, [whole.array(i) for i in node.inputs], stream=False), order="C")
        if node.kind is Kind.SCAN:
            made = np.empty(node.spec.shape, node.spec.dtype)
            make_scan(node).advance([whole.array(i) for i in node.inputs], 0, made)
            return made
        return _call(step, whole, None)

    def _run_step(self, step: Step, taken: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
        if isinstance(step, RegionStep):
            made = {
                i: outputs[i] if i in outputs else self.place(i, taken.offset, taken.items) for i in step.region.outputs
            }
            taken.values.update(made)
            self._chosen.wait(step.region.nodes)
            self._runners.run(step, taken, made)
            return
        node = step.node
        if step.there:
            taken.push_later(step.name, self._runners[0].fold(step, self._state.folds[node.id], taken))
            return
        if node.id not in self._strided or node.id in outputs:
            # It reads what kernels may still be computing, or writes where they may still be reading.
            self._runners.wait()
        if node.kind is Kind.FOLD:
            taken.push_later(step.name, partial(self._push_records, node, self._folded(node, taken)))
            return
        made_alone = taken.values[node.id] = self._alone(step, taken, outputs)
        if node.id in outputs and made_alone is not outputs[node.id]:
            np.copyto(outputs[node.id], made_alone)

    def _alone(self, step: NodeStep, taken: BatchSlice, outputs: Mapping[int, np.ndarray]) -> np.ndarray:
        """Return the value of a node that is no region."""
        node, start, stop = step.node, taken.start, taken.start + taken.items
        if node.kind is Kind.ALONG and "period" in node.attrs:
            repeated = taken.resident[node.inputs[0]].reshape(-1)
            return np.take(repeated, np.arange(start, stop), mode="wrap")
        if node.op is WHERE:
            number = np.asarray(taken.resident[node.inputs[1]], node.spec.dtype)
            return np.broadcast_to(number, (taken.items, *node.spec.shape))
        if node.kind is Kind.ALONG:
            check_along(self._state, node, stop, ended=False)
            return taken.resident[node.inputs[0]][start:stop]
        if node.kind is Kind.VIEW:
            seen = self._view(node, taken)
            self._chosen.read_ahead(node.id, seen)
            return seen
        if node.kind is Kind.SCAN:
            made = outputs[node.id] if node.id in outputs else self.place(node.id, taken.offset, taken.items)
            scan = self._state.scans[node.id]
            assert isinstance(scan, Scan), "scans in kernels are regions"
            inputs = node.inputs[: len(node.element.initial)] if isinstance(node.element, Training) else node.inputs
            scan.advance([taken.array(i) for i in inputs], start, made)
            return made
        return _call(step, taken, (start, stop))

    def _view(self, node: Node, taken: BatchSlice) -> np.ndarray:
        """Return a view of records; the same one where it is of the same array as last time."""
        arrays = [taken.array(i) for i in node.inputs]
        if node.id not in self._lasting:
            return view_array(node, arrays, stream=True, first=taken.start)
        seen = self._views.get(node.id)
        if seen is None or seen[0] is not arrays[0]:
            seen = self._views[node.id] = arrays[0], view_array(node, arrays, stream=True, first=taken.start)
        return seen[1]

    def _folded(self, node: Node, taken: BatchSlice) -> list[np.ndarray]:
        """Return the records that a fold on the host is given."""
        arrays = [taken.array(i) for i in node.inputs]
        if node.id not in self._state.plan.folds:
            return arrays
        shape = (taken.items, *self._state.plan.folds[node.id].item)
        return [array if array.shape == shape else np.broadcast_to(array, shape) for array in arrays]

    def _push_records(self, node: Node, arrays: Sequence[np.ndarray]) -> None:
        with _named(node):
            self._state.folds[node.id].push_records(arrays)


def check_along(state: PassState, node: Node, records: int, *, ended: bool) -> None:
    """Refuse a stream whose length was unknown and is not that of a resident value cut along it.

    Args:
        state: of the pass.
        node: cuts the resident value.
        records: of the stream that have come.
        ended: whether these are all.

    Raises:
        RunError: naming the node.
    """
    rows = len(state.resident[node.inputs[0]])
    if records > rows or (ended and records != rows):
        raise RunError(
            "cannot cut a resident value along a stream of another length",
            element=node.name,
            site=node.element.site,
            expected=f"{rows} records, as the resident value has rows",
            got=f"{records} records{'' if ended else ' and more'}",
        )


@contextmanager
def _named(node: Node) -> Iterator[None]:
    """Let errors name a node."""
    try:
        yield
    except FlowError as error:
        error.element, error.site = error.element or node.name, error.site or node.element.site
        raise


def _windows(node: Node, base: np.ndarray) -> np.ndarray:
    """Return overlapping records `(items, size, *item)` as a view of what they lie in."""
    windows = np.lib.stride_tricks.sliding_window_view(base, node.attrs["size"], axis=0)[:: node.attrs["step"]]
    return np.moveaxis(windows, -1, 1)


def _call(step: NodeStep, taken: BatchSlice, records: tuple[int, int] | None) -> np.ndarray:
    """Return the result of a host function."""
    return call_host(step.node, [read_only(taken.array(i)) for i in step.node.inputs], records)
