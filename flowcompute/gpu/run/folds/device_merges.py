"""Blocks of canonical folds merged on a discrete device, in the order of the host: `Fold`'s results, to the bit.

Steps of trainings have such folds: the gradients of biases, and the loss. They begin anew in each step, so that no
checkpoint keeps their state.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from flowcompute.engine.folds import Accumulator
from flowcompute.gpu.device import cl
from flowcompute.gpu.run.folds.fold_device import FoldDevice
from flowcompute.graph import Node
from flowcompute.ir import FoldSpec, tree_levels
from flowcompute.schedule.memory import placeholder_array
from flowcompute.spec import FLOAT64, INT64

WORK_GROUP = 64
GROUPS_PER_UNIT = 16

_TYPES = {4: "float", 8: "double"}
_NAN = {4: "as_float(0x7fc00000)", 8: "as_double(0x7ff8000000000000L)"}

_TEXT = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void merge_blocks(
    global const %(T)s *blocks, global double *tree, global %(T)s *open,
    const long numbers, const long next, const long whole, const long rest
) {
    // A level of the tree has a node that waits where the number of the block has this bit.
    for (long j = get_global_id(0); j < numbers; j += get_global_size(0)) {
        for (long i = 0; i < whole; i++) {
            double node = (double)blocks[i * numbers + j];
            long level = 0;
            for (long index = next + i; index & 1; index >>= 1) node = tree[numbers * level++ + j] + node;
            tree[numbers * level + j] = node;
        }
        if (rest) open[j] = blocks[whole * numbers + j];
    }
}
kernel void end_merge(
    global const double *tree, global const %(T)s *open, global %(R)s *made,
    const long numbers, const long next, const long rest, const long records, const long is_mean, const long selected
) {
    for (long j = get_global_id(0); j < numbers; j += get_global_size(0)) {
        // From the latest to the earliest.
        double total = rest ? (double)open[j] : 0.0;
        int begun = rest != 0;
        for (long level = 0; next >> level; level++) {
            if (!(next >> level & 1)) continue;
            total = begun ? tree[numbers * level + j] + total : tree[numbers * level + j];
            begun = 1;
        }
        if (is_mean) total /= (double)records;
        if (selected) total += 0.0;
        const %(R)s value = (%(R)s)total;
        made[j] = value == value ? value : %(NAN)s;
    }
}
"""


class DeviceMerges(Accumulator):
    """The state of a sum or a mean over records on a device: nodes of its tree, and the open block.

    A work-item merges the blocks of one number, one after the other.

    Args:
        node: the fold's.
        spec: of the fold; blocks and result in float32 or float64.
        there: its device.
        length: records at most; None if unknown.
        stays: whether nobody on the host reads its result.
        inside: whether kernels of its pass alone read its result, which then may stay where the blocks are.
    """

    def __init__(
        self, node: Node, spec: FoldSpec, there: FoldDevice, length: int | None, *, stays: bool, inside: bool = False
    ) -> None:
        super().__init__(0)
        self._value, self._node_spec, self._spec = node.id, node.spec, spec
        self._there, self._stays, self._inside = there, stays, inside
        self._told = partial(there.launcher.told, node.name, node.element.site)
        self._length, self._levels = length, tree_levels(length, spec.block)
        self._is_ended = False
        self._found: cl.Buffer | None = None

    @property
    def description(self) -> FoldSpec:
        """Record of the fold."""
        return self._spec

    def _named(self, what: str) -> Hashable:
        return ("merges", self._value, what)

    def _tree(self) -> cl.Buffer:
        return self._there.buffer(self._named("tree"), FLOAT64, self._levels * self._spec.numbers)

    def _made(self) -> cl.Buffer:
        return self._there.buffer(self._value, self._spec.result_dtype, self._spec.numbers)

    def open(self) -> cl.Buffer:
        """Return the buffer of the accumulators of the block that the next records go on with."""
        return self._there.buffer(self._named("open"), self._spec.dtype, self._spec.numbers)

    def reserve(self) -> None:
        """Allocate all that it needs.

        Raises:
            DeviceFullError: if the device has no room for it.
        """
        self._tree()
        self._made()
        self.open()

    def push_blocks(self, blocks: cl.Buffer, phase: int, records: int, *, canonical: bool = False) -> None:
        """Add records as accumulators of blocks, the first of which began `phase` records earlier.

        Args:
            blocks: `(blocks, numbers)`; the last one may go on, or be the last of the stream.
            phase: records of the first block that came before.
            records: how many come.
            canonical: whether every NaN in the blocks is the one that results have.
        """
        block, spec = self._spec.block, self._spec
        whole, rest = divmod(phase + records, block)
        next_block, done = self.records // block, self.records + records
        with self._told():
            is_only = self._inside and canonical and not whole and done == self._length and not next_block
            if is_only and spec.op == "sum" and not spec.selected and spec.dtype == spec.result_dtype:
                # Widened and rounded again it would be the same.
                self._found, self._is_ended = blocks, True
            elif not whole and done == self._length:
                # Nothing comes behind the one block that goes on, so it is read where it is.
                self._end(blocks, next_block, rest, done)
            else:
                self._launch("merge_blocks", [blocks, self._tree(), self.open()], [next_block, whole, rest])
        self.records = done

    def _end(self, opened: cl.Buffer, next_block: int, rest: int, records: int) -> None:
        """Make the value over all records, of which `opened` has the block that is not whole."""
        numbers = [next_block, rest, records, int(self._spec.op == "mean"), int(self._spec.selected)]
        self._launch("end_merge", [self._tree(), opened, self._made()], numbers)
        self._is_ended = True

    def result(self) -> np.ndarray:
        """Return the value over all records so far. The device has it, too.

        The array is a placeholder where nobody on the host reads it.
        """
        spec = self._spec
        with self._told():
            if not self._is_ended:
                # Of no records a sum is 0, and a mean 0 / 0.
                self._end(self.open(), *divmod(self.records, spec.block), self.records)
            # What was made before the end of the pass is found there from now on.
            if self._found is None:
                self._made()
            else:
                self._there.memory.made_again({self._value: self._found})
            if self._stays:
                return placeholder_array(self._node_spec)
            array = np.empty(spec.result_shape, spec.result_dtype)
            self._there.memory.fetch(self._value, array)
        return array

    def _launch(self, name: str, buffers: Sequence[cl.Buffer], numbers: Sequence[int]) -> None:
        made = self._spec.result_dtype.itemsize
        text = _TEXT % {"T": _TYPES[self._spec.dtype.itemsize], "R": _TYPES[made], "NAN": _NAN[made]}
        kernel = self._there.build(text, name, [None, None, None, *[INT64] * (1 + len(numbers))])
        most = GROUPS_PER_UNIT * self._there.style.capabilities.units
        groups = min(-(-self._spec.numbers // WORK_GROUP), most)
        values = [*buffers, self._spec.numbers, *numbers]
        self._there.launcher.launch(kernel, values, groups, WORK_GROUP, buffers, timed=False, deferred=True)

    def _push(self, values: Sequence[np.ndarray]) -> None:
        raise NotImplementedError("blocks on a device come from the kernel that made them")

    def _join(self, other: Self) -> None:
        raise ValueError(f"cannot merge states on a device, of {self.records} and {other.records} records")

    def snapshot(self) -> dict[str, Any]:
        """Refuse: a step of a training is whole or has not been."""
        raise NotImplementedError("no checkpoint is within a step of a training")

    def restore(self, state: dict[str, Any]) -> None:
        """Refuse, as `snapshot`."""
        del state
        raise NotImplementedError("no checkpoint is within a step of a training")
