"""A runner that gives folds the blocks which kernels have reduced for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.engine import BatchSlice, PassState
from flowcompute.engine.folds import Fold
from flowcompute.gpu.run.folds import DeviceMerges, FoldBlocks
from flowcompute.gpu.run.prepared_launches import PreparedLaunch
from flowcompute.gpu.run.recording_runner import RecordingRunner
from flowcompute.gpu.run.repeated_launches import RepeatedLaunch
from flowcompute.imports import LateModule
from flowcompute.ir import DeviceCapabilities, Kernel
from flowcompute.ir.launches import LaunchTask, divide
from flowcompute.schedule import RegionStep
from flowcompute.spec import FLOAT32, FLOAT64

if TYPE_CHECKING:
    from flowcompute import lower
else:
    lower = LateModule("flowcompute.lower")


class FoldingRunner(RecordingRunner):
    """A runner whose kernels make blocks of folds. Whoever computes launches and waits.

    Args:
        state: of the pass.
        capabilities: of the device.
    """

    def __init__(self, state: PassState, capabilities: DeviceCapabilities) -> None:
        super().__init__(state)
        self._written: list[Any] = []
        self._blocks = FoldBlocks(state.plan.folds, capabilities)

    @abstractmethod
    def _regions(self) -> Iterator[RegionStep]:
        """Return the regions computed here."""

    @abstractmethod
    def _launch(self, kernel: Kernel, values: list[Any], groups: int, items: int) -> object:
        """Launch all stages of a kernel, and wait."""

    def only_block(self, known: RepeatedLaunch, fold: int) -> Sequence[np.ndarray] | None:  # type: ignore[override]
        """See `RegionRunner.only_block`."""
        return [*self._blocks.parts(fold, 1).values()] if known.blocks == 1 else None

    def ends_block(self, known: RepeatedLaunch, fold: int) -> bool:  # type: ignore[override]
        """See `RegionRunner.ends_block`."""
        return known.blocks == 1 and self._end_kernel(fold, known.items) is not None

    def end_block(  # type: ignore[override]
        self, known: RepeatedLaunch, fold: int, made: np.ndarray | None
    ) -> PreparedLaunch:
        """See `RegionRunner.end_block`."""
        assert self._launcher is not None
        found = self._end_kernel(fold, known.items)
        assert found is not None, "asked for where a block can be ended"
        kernel, numbers = found
        ((key, block),) = self._blocks.parts(fold, 1).items()
        buffers: list[Any] = []
        holes: dict[int, int] = {}
        for place, argument in enumerate(kernel.arguments):
            if argument.kind == "input":
                buffers.append(self.memory.output(key, block))
            elif argument.kind == "scalar":
                buffers.append(numbers[argument.value][()])
            elif made is not None:
                buffers.append(self.memory.output(fold, made))
            else:
                buffers.append(None)
                holes[place] = self._passed.slot(argument, self._maker(argument))
        task = LaunchTask(
            kernel, self.device.capabilities, self.state.plan.folds[fold].numbers, 0, {}, lambda: kernel.units
        )
        total, chunk, groups = divide(task)
        with self._told(known.step):
            compiled = self._compiled(kernel)
        launch = RepeatedLaunch(
            known.step, kernel, compiled, None, known.items, (), tuple(holes), buffers, {}, total, chunk, groups, 0,
            range(1),
        )  # fmt: skip
        return PreparedLaunch(launch, self._launcher, [*holes.values()], self._passed, self._told)

    def _end_kernels(self) -> Iterator[Kernel]:
        """Yield the kernels that end folds of one block, where the pass is run again and again in place."""
        if not self.memory.in_place or not self.state.changing:
            return
        for step in self._regions():
            for fold in step.region.folds:
                length = self.state.one_pass.clock_of(fold).length
                if length and length <= self.state.plan.folds[fold].block:
                    found = self._end_kernel(fold, length)
                    if found is not None:
                        yield found[0]

    def _end_kernel(self, fold: int, records: int) -> tuple[Kernel, Mapping[int, np.ndarray]] | None:
        """Return the kernel that makes the value of a fold of its only block; None where the host does that.

        Its output is the fold. The numbers that it takes are by their values.
        """
        spec, own = self.state.plan.folds[fold], self.device.capabilities
        is_sum = spec.op in ("sum", "mean") and {spec.dtype, spec.result_dtype} <= {FLOAT32, FLOAT64}
        if not is_sum or not spec.numbers or not own.float64:
            return None
        style = lower.KernelStyle(own, precision=self.state.plan.config.precision)
        divisor = records if spec.op == "mean" else 1
        kernel, numbers = lower.lower_end(spec.dtype, spec.result_dtype, divisor, style, selected=spec.selected)
        arguments = (replace(one, value=fold) if one.kind == "output" else one for one in kernel.arguments)
        return replace(kernel, arguments=tuple(arguments)), numbers

    def push_blocks(self, known: RepeatedLaunch, fold: int, batch_slice: BatchSlice) -> None:  # type: ignore[override]
        """See `RegionRunner.push_blocks`."""
        with self._told(known.step):
            self._push(known.step, fold, known.kernel, batch_slice, 0, known.blocks)

    def _push(
        self, step: RegionStep, fold: int, kernel: Kernel, batch_slice: BatchSlice, phase: int, blocks: int
    ) -> None:
        """Bring the results of blocks to the host, and give them to their fold when the slice has succeeded."""
        state, items = self.state.folds[fold], batch_slice.items
        if isinstance(state, DeviceMerges):
            made = self.memory.output(("partial", fold, 0), self._blocks.parts(fold, blocks)["partial", fold, 0])
            # Kernels of columns store the NaN of results on GPUs.
            canonical = kernel.columns > 0 and self.device.capabilities.code_shape == "gpu"
            batch_slice.push_later(step.name, partial(state.push_blocks, made, phase, items, canonical=canonical))
            return
        parts = self._blocks.parts(fold, blocks)
        for key, array in parts.items():
            self.memory.fetch(key, array)
        merged = self._blocks.merge(fold, kernel, batch_slice.start, items, partial(self._merge, batch_slice))
        push = partial(self._blocks.push, state, fold, kernel, [*parts.values()], items, phase, merged)
        batch_slice.push_later(step.name, push)

    def _merge(self, batch_slice: BatchSlice, kernel: Kernel, sizes: Sequence[int], groups: int) -> None:
        values = [self._argument(one, batch_slice, {}, True) for one in kernel.arguments]
        self._written = [value for value, one in zip(values, kernel.arguments, strict=True) if one.kind == "merged"]
        self._launch(kernel, [*values, *sizes], groups, items=0)
        batch_slice.launches += 1
        for key, array in self._blocks.merged(kernel).items():
            self.memory.fetch(key, array)

    def _fold_nothing(self, step: RegionStep, batch_slice: BatchSlice) -> None:
        """Count the records of items without numbers."""
        for fold in step.region.folds:
            spec = self.state.plan.folds[fold]
            nothing = [np.empty((batch_slice.items, *spec.item), spec.dtype)] * spec.inputs
            batch_slice.push_later(step.name, partial(self.state.folds[fold].push_records, nothing))

    def resume_folds(self) -> None:
        """Let kernels go on with the accumulators of unfinished blocks."""
        for step in self._regions():
            if step.region.stream and step.kernel is not None and step.kernel.work == "columns":
                for i in step.region.folds:
                    fold = self.state.folds[i]
                    assert isinstance(fold, Fold), "only canonical folds are reduced in kernels"
                    fold.open_tail()
        self._blocks.resume(self.state.folds)
