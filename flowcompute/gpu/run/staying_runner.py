"""A runner that leaves resident values on its device, from one run of its pass to the next."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.engine import BatchSlice, PassState
from flowcompute.engine.folds import Accumulator
from flowcompute.gpu.device import Device
from flowcompute.gpu.run.folds import (
    DeviceMerges,
    DeviceProducts,
    DeviceSegments,
    FoldDevice,
    KeptForFolds,
    RecordProducts,
)
from flowcompute.gpu.run.repeating_runner import RepeatingRunner
from flowcompute.gpu.run.view_copies import ViewCopy
from flowcompute.graph import Node
from flowcompute.imports import LateModule
from flowcompute.ir import Kernel
from flowcompute.schedule import NodeStep, RegionStep
from flowcompute.schedule.memory import placeholder_array

if TYPE_CHECKING:
    from flowcompute import lower
else:
    lower = LateModule("flowcompute.lower")


class StayingRunner(RepeatingRunner):
    """A runner whose pass is run again and again. Buffers are of one context, so other passes may take them.

    Attributes:
        device: what computes.
    """

    device: Device

    def __init__(self, state: PassState) -> None:
        super().__init__(state)
        self._views: dict[int, tuple[ViewCopy, Any]] = {}
        self._folding = KeptForFolds()
        self._products: RecordProducts | None = None

    def take(self, kept: Mapping[int, object]) -> None:
        """See `RegionRunner.take`."""
        for value, buffer in kept.items():
            self.memory.take(value, buffer)  # type: ignore[arg-type]

    def lend(self, made: int) -> object:
        """See `RegionRunner.lend`."""
        return self.memory.lend(made)

    def hand_on(self, made: int, given: int) -> object:
        """See `RegionRunner.hand_on`."""
        return self.memory.hand_on(made, given)

    def fetch(self, kept: object, array: np.ndarray) -> None:
        """See `RegionRunner.fetch`."""
        assert self._launcher is not None
        with self._launcher.told():
            self.memory.fetch_handed(kept, array)  # type: ignore[arg-type]

    @abstractmethod
    def _compiled(self, kernel: Kernel) -> Any:
        """Return what to launch for a kernel."""

    def make_fold(self, node: Node) -> Accumulator:
        """See `RegionRunner.make_fold`."""
        assert self._launcher is not None
        style = lower.KernelStyle(self.device.capabilities, precision=self.state.plan.config.precision)
        there = FoldDevice(self.device, self.memory, self._launcher, self._compiled, style, self._folding)
        stays = node.id in self.staying
        length = self.state.one_pass.clock_of(node.id).length
        if (merged := self.state.plan.folds.get(node.id)) is not None:
            passes = self.state.plan.passes
            inside = stays and len(passes) == 1 and all(sink.value != node.id for sink in passes[0].sinks)
            return DeviceMerges(node, merged, there, length, stays=stays, inside=inside)
        spec = self.state.plan.host_folds[node.id]
        if spec.op != "matmul":
            return DeviceSegments(node, spec, there, stays=stays)
        return DeviceProducts(node, spec, there, length, stays=stays, in_step=bool(self.state.changing))

    def _reserve(self, step: RegionStep) -> None:
        """Allocate what folds on the device need, before anything of the slice counts."""
        for fold in step.merged:
            state = self.state.folds[fold]
            assert isinstance(state, DeviceMerges), "the planner has the device merge it"
            state.reserve()

    def fold(self, step: NodeStep, fold: Accumulator, batch_slice: BatchSlice) -> Callable[[], None]:
        """See `RegionRunner.fold`."""
        assert self._launcher is not None
        assert isinstance(fold, DeviceProducts | DeviceSegments), "the state of a step that is `on_device`"
        launcher, items, node = self._launcher, batch_slice.items, step.node
        with launcher.told(node.name, node.element.site):
            operands = [self.memory.input(i, batch_slice.array(i), fresh=True) for i in step.there]
            pushed = fold.prepare(items, *map(batch_slice.array, step.on_host))

        def push() -> None:
            with launcher.told(node.name, node.element.site):
                if self.memory.recording is not None and isinstance(fold, DeviceSegments):
                    self.memory.recording.push(node.id, operands, pushed)
                else:
                    pushed(operands)

        return push

    def multiply(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """See `RegionRunner.multiply`."""
        assert self._launcher is not None
        if self._products is None:
            self._products = RecordProducts(self._launcher, self.device.capabilities.units)
        with self._launcher.told():
            return self._products.multiply(left, right)

    def view(self, node: Node, whole: BatchSlice) -> None:
        """Make a view by a kernel; see `RegionRunner.view`."""
        assert self._launcher is not None
        (operand,) = node.inputs
        with self._launcher.told(node.name, node.element.site):
            if node.id not in self._views:
                copy = ViewCopy.of(node, self.state.nodes[operand].spec)
                self._views[node.id] = copy, copy.built(self._launcher)
            copy, built = self._views[node.id]
            source = self.memory.input(operand, whole.array(operand), fresh=False)
            target = self.memory.output(node.id, placeholder_array(node.spec))
            groups = copy.groups(self.device.capabilities.units)
            self._launcher.launch(
                built, copy.values(source, target), groups, copy.work_group, [target], timed=False, deferred=False
            )
            whole.launches += 1
