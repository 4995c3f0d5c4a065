"""Sums of the records of each key on a discrete device, in the order of records: those of the host, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from flowcompute.engine.accumulators import checked_keys
from flowcompute.engine.folds import Accumulator
from flowcompute.gpu.device import cl
from flowcompute.gpu.run.folds.fold_device import FoldDevice
from flowcompute.graph import Node
from flowcompute.imports import LateModule
from flowcompute.ir import HostFold, SegmentShape, canonical_nan
from flowcompute.schedule.memory import placeholder_array
from flowcompute.spec import FLOAT64, INT64

if TYPE_CHECKING:
    from flowcompute import lower
else:
    lower = LateModule("flowcompute.lower")

WORK_GROUP = 128
GROUPS_PER_UNIT = 16

_TYPES = {4: "float", 8: "double"}

_TEXT = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void add_rows(
    global const %(T)s *rows, global const long *places, global double *sums,
    const long all, const long keys, const long numbers, const long tiles
) {
    // Rows of a key follow each other in `places`. Behind them stand where each key begins, and the keys.
    global const long *begins = places + all, *key = begins + keys + 1;
    for (long part = get_group_id(0); part < keys * tiles; part += get_num_groups(0)) {
        const long one = part / tiles, column = part %% tiles * get_local_size(0) + get_local_id(0);
        if (column >= numbers) continue;
        double sum = sums[key[one] * numbers + column];
        for (long i = begins[one]; i < begins[one + 1]; i++) sum += (double)rows[places[i] * numbers + column];
        sums[key[one] * numbers + column] = sum;
    }
}
"""


class DeviceSegments(Accumulator):
    """The state of a sum by key on a device: one row of float64 for each key.

    The host sorts the keys of a batch, which leaves the rows of each key in their order. A work-group adds up the rows
    of one key, one after the other, as `engine.accumulators.segments` does.

    Args:
        node: the fold's.
        spec: of the fold; numbers in float32 or float64.
        there: its device.
        stays: whether nobody on the host reads its result.
    """

    joins_exactly = False

    def __init__(self, node: Node, spec: HostFold, there: FoldDevice, *, stays: bool) -> None:
        super().__init__(0)
        self._value, self._spec, self._there, self._stays = node.id, spec, there, stays
        self._told = partial(there.launcher.told, node.name, node.element.site)
        self._shape = SegmentShape.of(spec)
        self._dtype = spec.operands[0].dtype
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._is_empty = True
        self._counts = np.zeros(self._shape.segments, INT64)

    @property
    def description(self) -> HostFold:
        """Record of the fold."""
        return self._spec

    # -- records ----------------------------------------------------------------------------------

    def prepare(self, items: int, keys: np.ndarray) -> Callable[[Sequence[cl.Buffer]], None]:
        """Sort the keys of the records that come next, and allocate all that they and the result need.

        Returns:
            What adds the records, in a buffer that nobody changes until the device has been waited for.

        Raises:
            RunError: naming the first record whose key is out of range.
            DeviceFullError: if the device has no room for it.
        """
        shape = self._shape
        own = checked_keys(keys.reshape(-1), shape.segments, self.stop, rows=shape.rows)
        order = np.argsort(own, kind="stable")
        found, begins = np.unique(own[order], return_index=True)
        places = np.concatenate([order, begins, [len(own)], found]).astype(INT64, copy=False)
        room = self._there.buffer(self._named("places"), INT64, shape.places(items))
        self._sums()
        self._there.buffer(self._value, self._spec.result.dtype, shape.numbers)

        def push(operands: Sequence[cl.Buffer]) -> None:
            sums = self._begun()
            if len(own):
                self._there.upload(places, room)
                self._add(operands[0], room, sums, len(own), len(found))
            self._counts += np.bincount(own, minlength=shape.segments)
            self.records += items

        return push

    def _add(self, rows: cl.Buffer, places: cl.Buffer, sums: cl.Buffer, count: int, keys: int) -> None:
        """Launch the kernel that adds so many rows of so many keys."""
        launcher, width = self._there.launcher, self._shape.width
        text = _TEXT % {"T": _TYPES[self._dtype.itemsize]}
        kernel = self._there.build(text, "add_rows", [None, None, None, *[INT64] * 4])
        tiles = -(-width // WORK_GROUP)
        groups = min(keys * tiles, GROUPS_PER_UNIT * self._there.style.capabilities.units)
        values = [rows, places, sums, count, keys, width, tiles]
        launcher.launch(kernel, values, groups, WORK_GROUP, [sums], timed=False, deferred=True)

    def _push(self, values: Sequence[np.ndarray]) -> None:
        raise NotImplementedError("records of a fold on one device are read there")

    def _named(self, *what: Hashable) -> Hashable:
        return ("segments", self._value, *what)

    def _sums(self) -> cl.Buffer:
        return self._there.buffer(self._named("sums"), FLOAT64, self._shape.numbers)

    def _begun(self) -> cl.Buffer:
        """Return the sums so far, which begin with zeros."""
        sums = self._sums()
        if self._is_empty:
            self._there.clear(sums, 0, 8 * self._shape.numbers)
            self._is_empty = False
        return sums

    # -- result -----------------------------------------------------------------------------------

    def result(self) -> np.ndarray:
        """Return the sums so far; those of no record are 0. The device has them, too.

        The array is a placeholder where nobody on the host reads it.
        """
        there, spec, numbers = self._there, self._spec.result, self._shape.numbers
        with self._told():
            sums, made = self._begun(), there.buffer(self._value, spec.dtype, numbers)
            if spec.dtype == FLOAT64:
                there.copy(sums, made, 8 * numbers)
            else:
                there.launch(lower.lower_cast(FLOAT64, spec.dtype, there.style), (sums,), made, numbers)
            if self._stays:
                return placeholder_array(spec)
            array = np.empty(spec.shape, spec.dtype)
            there.memory.fetch(self._value, array)
        return canonical_nan(array)

    # -- state ------------------------------------------------------------------------------------

    def _join(self, other: Self) -> None:
        raise ValueError(f"cannot merge states on a device, of {self.records} and {other.records} records")

    def snapshot(self) -> dict[str, Any]:
        """Return the state as arrays, as a fold on the host has it."""
        sums = np.empty(self._shape.numbers)
        with self._told():
            self._there.memory.fetch_handed(self._begun(), sums)
        return {"start": self.start, "records": self.records, "sums": sums, "counts": self._counts.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of an equal fold, on a device or the host.

        Raises:
            ValueError: if it is of another one.
        """
        sums, counts = state["sums"], state["counts"]
        if (sums.dtype, sums.shape, counts.shape) != (FLOAT64, (self._shape.numbers,), (self._shape.segments,)):
            raise ValueError(f"sums {sums.dtype}{sums.shape} of {counts.shape} keys, where {self._shape} are added up")
        self.start, self.records = state["start"], state["records"]
        self._counts, self._is_empty = np.array(counts, INT64), False
        with self._told():
            self._there.upload(np.ascontiguousarray(sums), self._sums())
