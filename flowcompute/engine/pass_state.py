"""State of a pass that lasts from batch to batch. Checkpoints keep it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from flowcompute.elements import Destination, Kind
from flowcompute.elements.training import TRAIN
from flowcompute.engine.accumulators import Multiply, Products, TrainedValue, make_fold
from flowcompute.engine.backend import Backend, PlannedJob, close_all
from flowcompute.engine.folds import Accumulator, Fold
from flowcompute.engine.scans import Carry, make_scan
from flowcompute.engine.streams import InputBuffer, find_attempts, make_input_buffer
from flowcompute.engine.training import TrainingScan
from flowcompute.errors import RunError
from flowcompute.graph import Node, changing_values
from flowcompute.ir import ORDER_VERSION, FoldSpec, HostFold
from flowcompute.metrics import StepTold
from flowcompute.schedule import Clock, ExecutionPlan, NodeStep, RegionStep, device_folds, merged_folds
from flowcompute.schedule.memory import HostIntermediates, never_on_host
from flowcompute.spec import Spec

if TYPE_CHECKING:
    from flowcompute.schedule.explain import Plan


class PassState:
    """The state of one pass: where its streams are, folds, scans, dropped records, whole values.

    Args:
        plan: what is run.
        pass_index: which of its passes.
        resident: whole values by id, of earlier passes and for later ones.
        backend: runs the plans of its own that a node has.

    Attributes:
        one_pass: the pass.
        nodes: of the graph.
        folds, scans: by their nodes' ids.
        attempts: calls of host functions that may drop records, by node.
        starts: by clock the first record that is not computed yet.
        ended: by clock whether no more records come.
        input_buffers: by clock the records that wait for it, by value.
        limits: by clock the record that it stops at, where a part of the pass is run; None for the end of its stream.
        restored: whether the streams go on from a state that was kept.
        largest: by clock the most records in a slice, where there was no room for a whole batch.
        changing: resident values that are others where the plan is run again; none where nothing is given to it.
    """

    def __init__(
        self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray], backend: Backend | None = None
    ) -> None:
        self.plan = plan
        self._backend = backend
        self.one_pass = plan.passes[pass_index]
        self.nodes = plan.graph.nodes
        self.resident = resident
        self.folds: dict[int, Accumulator] = {}
        self.scans: dict[int, Carry] = {}
        self._trainings: dict[int, TrainingScan] = {}
        self._multiply: Multiply | None = None
        self.attempts = find_attempts(plan.graph, self.one_pass, resident)
        self.skip_counters = tuple(attempt.skip_counter for attempt in self.attempts.values())
        self.starts: list[int] = []
        self.ended: list[bool] = []
        self.input_buffers: list[dict[int, InputBuffer]] = []
        self.largest: dict[int, int] = {}
        self.changing = changing_values(plan.graph)
        self.restored = False
        self._begin_streams()

    def begin(
        self,
        make_carry: Callable[[RegionStep], Carry | None],
        make_device_fold: Callable[[Node], Accumulator],
        multiply: Multiply,
    ) -> None:
        """Begin all streams, folds and scans anew; dropped records stay counted.

        Args:
            make_carry: makes what the scan in a region carries; None where there is no scan.
            make_device_fold: makes the state of a fold that lies on the device.
            multiply: multiplies the records of a fold by kernels.
        """
        folds: dict[int, FoldSpec | HostFold] = {**self.plan.folds, **self.plan.host_folds}
        self.close()
        self._multiply = multiply
        mine = sorted(i for clock in self.one_pass.clocks for i in clock.values if i in folds)
        steps = self.one_pass.steps
        there = {step.node.id for step in device_folds(steps)} | merged_folds(steps)
        self.folds = {i: make_device_fold(self.nodes[i]) if i in there else self._made(folds[i]) for i in mine}
        for step in self.one_pass.steps:
            if isinstance(step, NodeStep) and step.node.op is TRAIN:
                self.scans[step.node.id] = self._training(step.node)
            elif isinstance(step, NodeStep) and step.node.kind is Kind.SCAN:
                self.scans[step.node.id] = make_scan(step.node)
            elif isinstance(step, RegionStep) and (carry := make_carry(step)) is not None:
                scans = (i for i in step.region.nodes if self.nodes[i].kind is Kind.SCAN)
                self.scans.update(dict.fromkeys(scans, carry))
        self._trainings = {i: scan for i, scan in self.scans.items() if isinstance(scan, TrainingScan)}
        for i, fold in self.folds.items():
            if isinstance(fold, TrainedValue):
                scan = self._trainings[self.nodes[i].inputs[0]]
                fold.value = partial(scan.value, self.nodes[i].attrs["place"])
        self._begin_streams()

    def begin_fold(self, value: int) -> None:
        """Begin a fold on the host anew."""
        self.folds[value].close()
        folds = self.plan.folds
        self.folds[value] = self._made(folds[value] if value in folds else self.plan.host_folds[value])

    def _made(self, spec: FoldSpec | HostFold) -> Accumulator:
        """Make the state of a fold on the host."""
        fold = make_fold(spec)
        if isinstance(fold, Products):
            fold.by_kernels = self._multiply
        return fold

    def end_fold(self, value: int) -> None:
        """Put the result of a fold among the resident values.

        Raises:
            RunError: naming the fold, if it has none over so many records.
        """
        fold = self.folds[value]
        try:
            self.resident[value] = fold.result()
        except ValueError as error:
            node, got = self.nodes[value], f"a stream of {fold.records} records"
            raise RunError(str(error), element=node.name, site=node.element.site, got=got) from error

    def fold_at_once(self, value: int, records: Sequence[np.ndarray]) -> None:
        """Put the value of a fold over these records, which are all there are, among the resident values.

        Args:
            value: the fold, on the host.
            records: by operand.

        Raises:
            RunError: if a record has a value that the fold refuses; as `end_fold`.
        """
        made = self.folds[value].value_of(records)
        if made is not None:
            self.resident[value] = made
            return
        self.begin_fold(value)
        self.folds[value].push_records(records)
        self.end_fold(value)

    def fold_each(self, value: int, several: Sequence[Sequence[np.ndarray]]) -> Sequence[np.ndarray]:
        """Return the values of a canonical fold over each of several lots of as many records; see `fold_at_once`."""
        fold = self.folds[value]
        assert isinstance(fold, Fold), "runs that are left in progress have only canonical folds"
        made = fold.values_of(several)
        if made is not None:
            return [*made]
        values = []
        for records in several:
            self.fold_at_once(value, records)
            values.append(self.resident[value])
        return values

    def fold_block(self, value: int, parts: Sequence[np.ndarray], records: int) -> None:
        """Put the value of a canonical fold over one block among the resident values; see `Fold.value_of_block`."""
        fold = self.folds[value]
        assert isinstance(fold, Fold), "only canonical folds are reduced in kernels"
        self.resident[value] = fold.value_of_block(parts, records)

    def _training(self, node: Node) -> TrainingScan:
        assert self._backend is not None, "a plan that trains has a backend that runs its steps"
        plans = (cast("Plan", plan) for plan in self.plan.inner[node.id])
        return TrainingScan(node, [PlannedJob.of(plan, self._backend) for plan in plans])

    @property
    def trains(self) -> bool:
        """True where a training runs in the pass."""
        return bool(self._trainings)

    @contextmanager
    def overlapping_steps(self) -> Iterator[None]:
        """Let a step of a training be in progress while the next one begins, where only destinations take losses."""
        if not self._trainings:
            yield
            return
        reading = (one for one in self.nodes if not isinstance(one.element, Destination))
        read = {i for one in reading if not isinstance(self.folds.get(one.id), TrainedValue) for i in one.inputs}
        leaving = [scan for i, scan in self._trainings.items() if i not in read]
        try:
            for scan in leaving:
                scan.overlaps = True
            yield
        finally:
            for scan in leaving:
                scan.overlaps = False
                scan.settle()

    def ends_early(self, clock: Clock) -> bool:
        """Check whether a training has ended that a clock would have more records for."""
        return any(scan.stopped and i in clock.values for i, scan in self._trainings.items())

    def said(self) -> tuple[str, ...]:
        """Return how trainings are going, in words."""
        return tuple(scan.said for scan in self._trainings.values() if scan.said)

    def told(self) -> list[StepTold]:
        """Return the steps of trainings that were not asked for before."""
        found: list[StepTold] = []
        for scan in self._trainings.values():
            found += scan.told
            scan.told = []
        return found

    def close(self) -> None:
        """Let go of folds, and of what scans hold beside their state."""
        folds, self.folds = self.folds, {}
        for fold in folds.values():
            fold.close()
        close_all([*self._trainings.values()])

    def _begin_streams(self) -> None:
        clocks = self.one_pass.clocks
        self.starts, self.ended = [0] * len(clocks), [False] * len(clocks)
        self.limits: list[int] | None = None
        self.input_buffers = [
            {entry.value: make_input_buffer(self.plan.graph, entry, self.attempts) for entry in clock.entries}
            for clock in clocks
        ]

    @property
    def is_sliced(self) -> bool:
        """True where there was no room for a whole batch of some clock."""
        return bool(self.largest)

    def intermediates(self) -> HostIntermediates:
        """Make host memory for values that only other steps take, of one batch at a time."""
        one, plan = self.one_pass, self.plan
        return HostIntermediates(plan.graph, one, never_on_host(one, plan.config, plan.backend))

    def snapshot(self, carried: Callable[[int, Carry], dict[str, Any]]) -> dict[str, Any]:
        """Return the state as plain data and arrays.

        Args:
            carried: gives what a scan carries at its last record, as plain data.
        """
        key = self._key
        return {
            "order": ORDER_VERSION,
            "folds": {key(i): fold.snapshot() for i, fold in self.folds.items()},
            "scans": {key(i): carried(i, scan) for i, scan in self.scans.items()},
            "clocks": {
                "starts": list(self.starts),
                "ended": list(self.ended),
                "inlets": [
                    {key(i): input_buffer.snapshot() for i, input_buffer in input_buffers.items()}
                    for input_buffers in self.input_buffers
                ],
                **({} if self.limits is None else {"limits": list(self.limits)}),
            },
            "dropped": {key(i): attempt.skip_counter.snapshot() for i, attempt in self.attempts.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        key = self._key
        for i, fold in self.folds.items():
            fold.restore(state["folds"][key(i)])
        for i, scan in self.scans.items():
            scan.restore(state["scans"][key(i)])
        clocks = state["clocks"]
        self.starts, self.ended = list(clocks["starts"]), list(clocks["ended"])
        self.limits = None if clocks.get("limits") is None else list(clocks["limits"])
        for input_buffers, states in zip(self.input_buffers, clocks["inlets"], strict=True):
            for i, input_buffer in input_buffers.items():
                input_buffer.restore(states[key(i)])
        for i, attempt in self.attempts.items():
            attempt.skip_counter.restore(state["dropped"][key(i)])
        self._check_streams()
        self.restored = True

    def _key(self, value: int) -> str:
        """Return the key of a node's state, which does not depend on what a tight budget lets compute again."""
        return str(self.plan.graph.kept_id(value))

    def _check_streams(self) -> None:
        """Check that streams can have come to the state that was restored.

        Raises:
            ValueError: if a clock stands where it never does, or has ended though records wait for it.
        """
        clocks = self.one_pass.clocks
        if len(self.starts) != len(clocks) or len(self.ended) != len(clocks):
            raise ValueError(f"the state of {len(self.starts)} clocks, where there are {len(clocks)}")
        limits = self.starts if self.limits is None else self.limits
        if len(limits) != len(clocks) or any(type(limit) is not int for limit in limits):
            raise ValueError(f"clocks that stop at {limits!r}")
        for clock, start, ended in zip(clocks, self.starts, self.ended, strict=True):
            if type(start) is not int or type(ended) is not bool:
                raise ValueError(f"a clock at {start!r}, ended {ended!r}")
            if start < 0 or (clock.length is not None and start > clock.length):
                raise ValueError(f"record {start} of {clock.length}")
            cut_short = self.plan.config.by_hand or self.ends_early(clock)
            if ended and clock.length is not None and start != clock.length and not cut_short:
                raise ValueError(f"a clock of {clock.length} records that ended at {start}")
            for value, input_buffer in self.input_buffers[clock.id].items():
                input_buffer.check(start, self._waiting_spec(clock, value))
                if ended and (input_buffer.available or not input_buffer.ended):
                    raise ValueError(f"{input_buffer.name}: records wait for a clock that has ended")

    def _waiting_spec(self, clock: Clock, value: int) -> Spec:
        """Return the spec of what waits before it is taken: records of the clock that it comes from."""
        entry = next(entry for entry in clock.entries if entry.value == value)
        inputs = [origin for _, origin in entry.inputs]
        name = entry.node.op.name if entry.node is not None and entry.node.op is not None else ""
        return self.nodes[inputs[0] if name in ("cut", "window") else value].spec
