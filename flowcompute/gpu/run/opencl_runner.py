"""Runs a pass's regions as OpenCL kernels."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from flowcompute.elements import Kind
from flowcompute.engine import BatchSlice, KernelTuner, PassState
from flowcompute.engine.scans import Carry, make_scan
from flowcompute.errors import Site
from flowcompute.gpu.device import Device, answerable
from flowcompute.gpu.memory import Slots, StreamedWeights
from flowcompute.gpu.run.built_kernels import BuiltKernels, keep_programs
from flowcompute.gpu.run.chains import ChainMaker
from flowcompute.gpu.run.device_carries import DeviceCarry, ScanLaunch, begin_nothing, make_device_carry
from flowcompute.gpu.run.folding_runner import FoldingRunner
from flowcompute.gpu.run.folds import DeviceMerges
from flowcompute.gpu.run.prepared_launches import PassingArguments
from flowcompute.gpu.run.repeated_launches import RepeatedLaunches
from flowcompute.gpu.run.resident_arguments import ResidentArguments
from flowcompute.gpu.run.work_division import division
from flowcompute.gpu.worker import Launcher, ProgramBuilders, open_launcher
from flowcompute.ir import MAP_BYTES, MOST_MAPS, Argument, Kernel
from flowcompute.ir.launches import GROUPS_OF_UNIT
from flowcompute.schedule import RegionStep
from flowcompute.schedule.memory import (
    TransferPlan,
    batches_of_each,
    device_buffer_assignment,
    lasting_values,
    stored_by,
    uploads_at_a_time,
)
from flowcompute.spec import UINT8
from flowcompute.strategy import KernelKnobs


class OpenCLRunner(FoldingRunner):
    """Launches kernels on one device; on host devices in place on host memory.

    Args:
        state: of the pass.
        device: what computes.
        placement: which regions of the plan it computes.
        beside: a runner on another device of this kind, whose batches it shares; None where it has all batches.

    Attributes:
        adopted: by name the kernels that a tuner has found to be better than those of the plan.
    """

    def __init__(
        self, state: PassState, device: Device, placement: int = 0, *, beside: OpenCLRunner | None = None
    ) -> None:
        super().__init__(state, device.capabilities)
        plan = state.plan
        self.device, self.placement = device, placement
        self.plan, self.one_pass, self.nodes = plan, state.one_pass, state.nodes
        self.adopted = {} if beside is None else beside.adopted
        self._kernels = BuiltKernels()
        self._launcher: Launcher | None = None
        self._arrived = np.zeros(1 + device.capabilities.units * GROUPS_OF_UNIT, np.uint64)
        self._residents = ResidentArguments(self.nodes, state.resident)
        self._passed, self._cyclic, self._untold = PassingArguments(), set(), deque()
        self._named: dict[str, tuple[str, Site | None]] = {}
        self._streamed: set[Hashable] = {node.id for node in plan.graph.nodes if node.spec.is_stream}
        self._transfer_plan = TransferPlan.of(self.one_pass, by_hand=plan.config.by_hand, placement=placement)
        if beside is not None:
            self.in_flight = batches_of_each(plan.depth, plan.backend.capabilities)
            if device.capabilities.host_memory:
                # Computed where it lies.
                self._transfer_plan = replace(self._transfer_plan, ahead=frozenset(), late=frozenset())
        elif self._transfer_plan.overlap and not device.capabilities.host_memory and not plan.config.isolate:
            self.in_flight = batches_of_each(plan.depth, plan.backend.capabilities)
            self.lanes = uploads_at_a_time(self.in_flight)
        self._moves = beside is not None or self.in_flight > 1
        self._opened_s, self._can_defer = 0.0, False
        self._streamed_weights: StreamedWeights | None = None
        lasting = frozenset[int]() if self._moves else lasting_values(plan.graph, self.one_pass)
        streamed = frozenset(i for i in self._streamed if isinstance(i, int))
        self._made_here = frozenset(i for step in self._regions() for i in step.region.outputs)
        # Numbers of the host pass across a bus, though they may lie in one array.
        lasting = lasting if device.capabilities.host_memory else lasting & self._made_here
        self._repeated = RepeatedLaunches((streamed - lasting) | state.changing, state.scans)
        self._chains = ChainMaker(device.capabilities, self._kernels)
        self._is_alone = beside is None and len(plan.backend.placements) == 1 and plan.backend.capabilities.devices == 1

    def _regions(self) -> Iterator[RegionStep]:
        """Return the regions computed here."""
        one = self.one_pass
        for step in (*one.before, *one.steps, *one.after):
            if isinstance(step, RegionStep) and step.placement == self.placement:
                yield step

    def attach(self) -> None:
        """Build the kernels."""
        self._launcher = open_launcher(self.device, self.plan.config, self.plan.memory.staging_bytes)
        kernels = [(step, step.kernel) for step in self._regions() if step.kernel is not None]
        every = (kernel for _, kernel in kernels)
        with self._launcher.told():
            with ProgramBuilders.of(self.device, every, isolated=self.plan.config.isolate) as builders:
                for step, kernel in kernels:
                    began = time.perf_counter()
                    with builders.building(kernel):
                        self._compiled(kernel)
                    if self.log is not None:
                        self.log.compiled(step.name, time.perf_counter() - began)
            self._opened_s = time.monotonic()
            self._memory, self._can_defer = self._launcher.memory, self._launcher.can_defer
            for kernel in self._end_kernels():
                self._compiled(kernel)
            self._memory.replaced = self._forget_launches
            self._slots = Slots(self._memory, self._transfer_plan, self.in_flight, self._told_of)
            if not self.memory.in_place:
                mine = self.one_pass.on_placement(self.placement)
                self.memory.reuse(device_buffer_assignment(self.plan.graph, mine, self._transfer_plan))
            if self.one_pass.streamed and self.placement == self.plan.backend.main:
                self._streamed_weights = StreamedWeights(
                    self.plan.graph,
                    self.one_pass.on_placement(self.placement),
                    self._memory,
                    self.state.resident.__getitem__,
                    self.state.changing,
                )
                # Parts of weights are uploaded over those that the kernel before has read.
                self._can_defer = False

    def _compiled(self, kernel: Kernel) -> Any:
        assert self._launcher is not None
        return self._kernels.get(kernel, self._launcher)

    def keep_blocks(self) -> None:
        """See `RegionRunner.keep_blocks`."""
        self._blocks.forget()

    def forget_streams(self) -> None:
        """Forget what was uploaded: the next slice brings its own values. Memory in place keeps none of a stream."""
        if self._memory is not None and not self._memory.in_place:
            self.memory.forget(self._streamed)

    def begin_scan(self, step: RegionStep, scan: Carry) -> Callable[[], None]:
        """Note where a scan is; what it carries is brought from the device."""
        with self._told(step):
            return super().begin_scan(step, scan)

    def _told(self, step: RegionStep) -> AbstractContextManager[None]:
        """Let errors name the step and its line; where it holds one kernel of the user's, that one."""
        assert self._launcher is not None
        if step.name not in self._named:
            self._named[step.name] = answerable(step, self.nodes)
        return self._launcher.told(*self._named[step.name])

    def _told_of(self, value: int) -> AbstractContextManager[None]:
        """Let errors name the element of a value that crosses the bus."""
        assert self._launcher is not None
        return self._launcher.told(self.nodes[value].name, self.nodes[value].element.site)

    def carried(self, value: int, scan: Carry) -> dict[str, Any]:
        """Return what a scan carries, brought from the device."""
        assert self._launcher is not None
        with self._launcher.told(self.nodes[value].name, self.nodes[value].element.site):
            return super().carried(value, scan)

    def forget_results(self) -> None:
        """Forget what an earlier call made of the folds of a flow."""
        self._forget({*self.state.folds, *(i for step in self.one_pass.after for i in stored_by(step))})

    def forget_resident(self) -> None:
        """See `RegionRunner.forget_resident`."""
        self._forget(self.state.changing)
        if self._streamed_weights is not None:
            self._streamed_weights.forget()

    def _forget(self, values: Collection[int]) -> None:
        self._repeated.forget(values)
        if self._memory is not None:
            self.memory.forget({*values, *(("cyclic", i) for i in values)})
        self._residents.forget(values)

    def make_carry(self, step: RegionStep) -> Carry | None:
        """Make a carry in the device's memory."""
        self._repeated.changes += 1
        kernel, region = step.kernel, step.region
        if region.anchor is None or self.nodes[region.anchor].kind is not Kind.SCAN:
            return None
        node = self.nodes[region.anchor]
        if kernel is None or not any(argument.kind == "state" for argument in kernel.arguments):
            return make_scan(node)
        with self._told(step):
            return make_device_carry(node, kernel, self.memory, self.one_pass.clock_of(region.anchor).batch_items)

    def run(self, step: RegionStep, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
        """Launch a region's kernel and bring its results to the host where they are needed there."""
        with self._told(step):
            self._compute(step, batch_slice, outputs)

    def make_room(self, *, in_hand: bool) -> None:
        """Give back the buffers of streams, and of what kernels make of them; nothing of the slice in hand is late."""
        self._forget_launches()
        # What a root clock has made waits for its download, while others make something of it.
        if in_hand:
            self.slots.abandon_in_hand()
        self.memory.release(self._streamed | self._blocks.buffers() | {("base", i) for i in self._streamed})

    def _compute(self, step: RegionStep, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray]) -> None:
        kernel, region, items = step.kernel, step.region, batch_slice.items
        if kernel is None:
            self._fold_nothing(step, batch_slice)
            return
        kernel = self.adopted.get(kernel.name, kernel).of_items(items)
        deferred = self._is_deferred(step, items)
        last = self._repeated.find(step, kernel, batch_slice, outputs) if deferred and self._may_repeat(step) else None
        self._written = []
        if last is not None and (self.log is None or self.log.launched_again(self.log.repeated((step.name,)))):
            self._launch_again([last], batch_slice, outputs)
            for i, array in outputs.items() if not self.memory.in_place else ():
                self._bring(i, array)
            return
        start = batch_slice.start if region.stream else 0
        phase = start % kernel.block if kernel.block else 0
        blocks = -(-(phase + items) // kernel.block) if kernel.block else 0
        if region.folds:
            assert batch_slice.clock is not None
            self._blocks.make(region.folds, blocks, batch_slice.clock.batch_items // kernel.block + 2)
            self._reserve(step)
        scan = self.state.scans.get(region.anchor) if region.anchor is not None else None
        carry = scan if isinstance(scan, DeviceCarry) else None
        weight_tiles = 1 if region.weight_tiles is None else region.weight_tiles.count
        tuned = self.tuner is not None and region.stream and weight_tiles == 1 and kernel.knobs != KernelKnobs()
        tuner = self.tuner if tuned else None
        scanned = ScanLaunch(blocks, start, items, partial(self._on_host, batch_slice, region.anchor))
        again = carry.again(scanned) if tuner is not None and carry is not None else begin_nothing
        launch = carry.begin(scanned) if carry is not None else 0
        values = [self._argument(argument, batch_slice, outputs, region.stream) for argument in kernel.arguments]
        count, chunk, groups = division(self.plan, self.device.capabilities, kernel, items, blocks)
        kept = deferred or self._is_kept(step)
        if kept and count and self._may_repeat(step) and not batch_slice.bases and self._stays(kernel):
            compiled = self._compiled(kernel)
            divided, in_place = (count, chunk, groups, blocks), self.memory.in_place
            self._repeated.keep(step, kernel, compiled, carry, batch_slice, outputs, values, divided, in_place=in_place)
        chunk = launch or chunk
        for panel in range(weight_tiles if count else 0):
            if panel:
                self._turn_to(panel, kernel, values, batch_slice)
            if self._streamed_weights is not None and region.stream:
                self._streamed_weights.prefetch()
            timed = self._is_timed(step, deferred=deferred)
            later = deferred and not (timed and self._waits_to_time())
            arguments = [*values, count, chunk, blocks, start, phase]
            seconds = self._launch(kernel, arguments, groups, items, timed=timed, deferred=later)
            batch_slice.launches += len(kernel.phases(items))
            self._log_launch(step, seconds, deferred=later)
        if count and tuner is not None:
            # Before anything is made of the results: what a kernel began with must still be there.
            self._tune(tuner, step, batch_slice, outputs, (blocks, start, phase), again)
        for i, array in outputs.items() if not (deferred and self.memory.in_place) else ():
            self._bring(i, array)
        for fold in region.folds:
            self._push(step, fold, kernel, batch_slice, phase, blocks)
        if carry is not None:
            carry.advanced(start + items)

    def _may_repeat(self, step: RegionStep) -> bool:
        """Check whether a step is launched again and again: for each batch, or for each run of the plan."""
        return step.region.stream or not self.state.changing.isdisjoint(step.region.outputs)

    def _is_kept(self, step: RegionStep) -> bool:
        """Check whether a launch that is waited for is done again by `launch_again`, in the next run of the plan."""
        in_place = self.memory.in_place and self._can_defer
        return in_place and bool(self.state.changing) and step.region.weight_tiles is None and self.tuner is None

    def _stays(self, kernel: Kernel) -> bool:
        """Check whether a launch can be done again: no step on the host reads its results, and no slot holds them.

        What passes is uploaded, or brought, each time. Batches that move have it in slots, and runs that change what is
        given on the device.
        """
        if self.memory.in_place:
            return True
        if (self._moves or self.state.changing) and self._repeated.passes(kernel):
            return False
        made = [one.value for one in kernel.arguments if one.kind == "output"]
        taken = {sink.value for sink in self.one_pass.sinks}
        return not any(self.slots.holds(i) or i in self._transfer_plan.on_host - taken for i in made)

    def _turn_to(self, panel: int, kernel: Kernel, values: list[Any], batch_slice: BatchSlice) -> None:
        """Let a launch read another panel, and make what belongs to it."""
        assert self._streamed_weights is not None
        for position, argument in enumerate(kernel.arguments):
            if argument.kind == "integer":
                values[position] = self.one_pass.weight_tiles[argument.value].start(panel)
            elif argument.kind == "input" and argument.value in self.one_pass.streamed and not argument.period:
                values[position] = self._streamed_weights.buffer(argument.value, panel, batch_slice.array)

    def _tune(
        self,
        tuner: KernelTuner,
        step: RegionStep,
        batch_slice: BatchSlice,
        outputs: Mapping[int, np.ndarray],
        place: tuple[int, int, int],
        again: Callable[[], int],
    ) -> None:
        """Let a tuner launch other kernels over the results of the batch in hand; see `DeviceCarry.again`."""

        def launch(kernel: Kernel) -> float:
            self._compiled(kernel)
            self._written = []
            with self._told(step):
                number = again()
                values = [self._argument(argument, batch_slice, outputs, True) for argument in kernel.arguments]
                items = batch_slice.items
                count, chunk, groups = division(self.plan, self.device.capabilities, kernel, items, place[0])
                began = time.perf_counter()
                self._launch(kernel, [*values, count, number or chunk, *place], groups, items)
                return time.perf_counter() - began

        adopted = tuner.launched(step, launch)
        if adopted is not None:
            self.adopted[adopted.name] = adopted

    def _launch(
        self,
        kernel: Kernel,
        values: list[Any],
        groups: int,
        items: int,
        *,
        timed: bool = False,
        deferred: bool = False,
    ) -> Sequence[Callable[[], float]]:
        """Launch all stages over some records, and wait where that is not deferred; gives what tells their seconds."""
        assert self._launcher is not None
        compiled = self._compiled(kernel)
        *known, phase = values
        shape = groups, kernel.work_group, self._written
        self._tell_recording(kernel.arguments)
        every = [
            self._launcher.launch(compiled, [*known, phase + stage], *shape, timed=timed, deferred=deferred)
            for stage in (kernel.phases(items) if kernel.stages > 1 else range(1))
        ]
        self._tell_recording(())
        return [one for one in every if one is not None]

    def _on_host(self, batch_slice: BatchSlice, anchor: int | None, place: int) -> np.ndarray:
        """See `RepeatingRunner._on_host`."""
        assert anchor is not None
        value = self.nodes[anchor].inputs[place]
        array = batch_slice.array(value)
        if value in self._made_here:
            self.memory.wait()
            # What stays on the device has no room of its own on the host.
            array = array if array.flags.c_contiguous else np.empty(array.shape, array.dtype)
            self.memory.fetch(value, array)
        return array

    def _bring(self, value: int, array: np.ndarray) -> None:
        if self.slots.is_late(value):
            self.slots.leave(value, array)
        elif value not in self.staying and (value in self._transfer_plan.on_host or value not in self._streamed):
            self.memory.fetch(value, array)

    # -- arguments --------------------------------------------------------------------------------

    def _argument(
        self, argument: Argument, batch_slice: BatchSlice, outputs: Mapping[int, np.ndarray], stream: bool
    ) -> Any:
        value = argument.value
        if argument.kind == "scalar":
            return self._residents.scalar(value)
        if argument.kind == "integer":
            return self.one_pass.weight_tiles[value].start(0)
        if argument.kind == "output":
            return self._output(value, outputs[value], late=self.slots.holds(value))
        if argument.kind in ("partial", "merged"):
            return self._output((argument.kind, value, argument.part), self._blocks.array(argument))
        if argument.kind == "maps":
            # Work-groups are as many as units at most, and make them anew.
            return self.memory.output("maps", np.empty(self.device.capabilities.units * MOST_MAPS * MAP_BYTES, UINT8))
        if argument.kind == "room":
            return self.memory.output("room", np.empty(argument.numbers, argument.dtype))
        if argument.kind == "words" and value < 0:
            # Launches of one queue follow each other, so one counter serves all.
            return self.memory.state("arrived groups", self._arrived)
        if argument.kind in ("state", "words"):
            carry = self.state.scans[value]
            assert isinstance(carry, DeviceCarry)
            self._written.append(buffer := carry.buffer(argument))
            return buffer
        if argument.kind == "carry":
            if isinstance(fold := self.state.folds[value], DeviceMerges):
                return fold.open()
            return self.memory.input(("carry", value, argument.part), self._blocks.carry(argument), fresh=True)
        if argument.period:
            # The host reads what a kernel may be making.
            self.memory.wait()
            return self.memory.input(("cyclic", value), self._residents.cyclic(value), fresh=False)
        if self._streamed_weights is not None and value in self.one_pass.streamed:
            return self._streamed_weights.buffer(value, 0, batch_slice.array)
        fresh = stream and value in self._streamed
        if value in batch_slice.bases:
            return self.memory.input(("base", value), batch_slice.bases[value], fresh=True)
        return self.memory.input(value, batch_slice.array(value), fresh=fresh)

    def _output(self, key: Hashable, array: np.ndarray, *, late: bool = False) -> Any:
        buffer = self.memory.output(key, array, late=late)
        self._written.append(buffer)
        return buffer

    def close(self) -> None:
        """Release buffers and kernels."""
        launcher, self._launcher = self._launcher, None
        self._memory = self._slots = self._streamed_weights = None
        # On host devices a buffer keeps the array alive that it lies in.
        self._written = []
        self._untold.clear()
        self._kernels.clear()
        self._forget_launches()
        self._blocks.close()
        self._residents.clear()
        self._passed = PassingArguments()
        self._views.clear()
        self._folding.clear()
        if launcher is None:
            return
        with launcher.told():
            launcher.close()
        if self.tuner is None:
            # What a tuner has tried is kept at exit.
            keep_programs(launcher, time.monotonic() - self._opened_s)
