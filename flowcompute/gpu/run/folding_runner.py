"""A runner that gives folds the blocks which kernels have reduced for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from flowcompute.engine import BatchSlice, PassState
from flowcompute.engine.folds import Fold
from flowcompute.gpu.run.folds import DeviceMerges, FoldBlocks
from flowcompute.gpu.run.recording_runner import RecordingRunner
from flowcompute.gpu.run.repeated_launches import RepeatedLaunch
from flowcompute.ir import DeviceCapabilities, Kernel
from flowcompute.schedule import RegionStep


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
    def _launch(self, kernel: Kernel, values: list[Any], groups: int, items: int) -> float | None:
        """Launch all stages of a kernel, and wait."""

    def only_block(self, known: RepeatedLaunch, fold: int) -> Sequence[np.ndarray] | None:  # type: ignore[override]
        """See `RegionRunner.only_block`."""
        return [*self._blocks.parts(fold, 1).values()] if known.blocks == 1 else None

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
            batch_slice.push_later(step.name, partial(state.push_blocks, made, phase, items))
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
