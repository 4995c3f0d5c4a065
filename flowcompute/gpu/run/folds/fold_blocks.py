"""Results of kernels for the blocks of folds, and the rest of a block that goes on in the next batch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from flowcompute.engine.folds import Accumulator, Fold, Merged
from flowcompute.gpu.run.folds.block_merging import BlockMerging, Launch
from flowcompute.ir import Argument, DeviceCapabilities, FoldSpec, Kernel


class FoldBlocks:
    """Host memory for the blocks of a pass's folds.

    Args:
        specs: what each fold computes, by its node's id.
        capabilities: of the device.
    """

    def __init__(self, specs: Mapping[int, FoldSpec], capabilities: DeviceCapabilities) -> None:
        self._specs = specs
        self._merging = BlockMerging(specs, capabilities)
        self._partials: dict[tuple[int, int], np.ndarray] = {}
        self._carries: dict[tuple[int, int], np.ndarray] = {}

    def make(self, folds: Sequence[int], blocks: int, most: int) -> None:
        """Have room for so many blocks of folds; what is made anew has room for `most`."""
        for fold in folds:
            spec = self._specs[fold]
            for part, dtype in enumerate(spec.parts()):
                room = self._partials.get((fold, part))
                if room is None or len(room) < blocks:
                    self._partials[fold, part] = np.empty((max(blocks, most), spec.numbers), dtype)

    def array(self, argument: Argument) -> np.ndarray:
        """Return where a kernel puts what it makes of blocks."""
        if argument.kind == "merged":
            return self._merging.node[argument.part]
        return self._partials[argument.value, argument.part]

    def carry(self, argument: Argument) -> np.ndarray:
        """Return the accumulators of a block that goes on."""
        key = (argument.value, argument.part)
        if key not in self._carries:
            self._carries[key] = np.zeros(self._specs[argument.value].numbers, argument.dtype)
        return self._carries[key]

    def parts(self, fold: int, blocks: int) -> dict[Hashable, np.ndarray]:
        """Return what there is of so many blocks, under the names of the device's buffers, in order."""
        keys = ((fold, part) for part in range(len(self._specs[fold].parts())))
        return {("partial", *key): self._partials[key][:blocks] for key in keys}

    def merge(self, fold: int, kernel: Kernel, start: int, items: int, launch: Launch) -> list[Merged]:
        """Have runs of whole blocks merged where that is worth a launch.

        Args:
            fold: whose.
            kernel: that has made them.
            start, items: the records that it has taken.
            launch: launches the kernel that it is given, with sizes behind its arrays, in so many work-groups.
        """
        if kernel.work != "columns":
            return []
        first = start // kernel.block
        return self._merging.merge(fold, first, (start + items) // kernel.block - first, launch)

    def merged(self, kernel: Kernel) -> dict[Hashable, np.ndarray]:
        """Return what the launch in hand merges into, under the names of the device's buffers."""
        nodes = [argument for argument in kernel.arguments if argument.kind == "merged"]
        return {("merged", one.value, one.part): self.array(one) for one in nodes}

    def push(
        self,
        state: Accumulator,
        fold: int,
        kernel: Kernel,
        parts: Sequence[np.ndarray],
        items: int,
        phase: int,
        merged: Sequence[Merged] = (),
    ) -> None:
        """Give a fold the whole blocks, some of them merged; keep the accumulators of the last one if it goes on."""
        assert isinstance(state, Fold), "only canonical folds are reduced in kernels"
        if kernel.work == "records":
            state.push_blocks(parts, items)
            return
        state.push_open_blocks(parts, phase, items, merged)
        if (phase + items) % kernel.block:
            for part, array in enumerate(parts):
                self._carries[fold, part] = array[-1].copy()

    def resume(self, folds: Mapping[int, Accumulator]) -> None:
        """Go on with the unfinished blocks of folds that were put back to where they were."""
        for i, fold in folds.items():
            for part, array in enumerate(fold.open_accumulators or () if isinstance(fold, Fold) else ()):
                self._carries[i, part] = array.copy()

    def buffers(self) -> set[Hashable]:
        """Return the names of the device's buffers for all of it."""
        return {(kind, *key) for kind in ("partial", "merged", "carry") for key in self._partials}

    def forget(self) -> None:
        """Make the room for blocks anew: what folds will be given of it is still needed."""
        self._partials = {}

    def close(self) -> None:
        """Drop all arrays."""
        self._partials.clear()
        self._carries.clear()
