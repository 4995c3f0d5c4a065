"""Blocks of folds of columns merged by a device in the host's memory, where there are many: else the host does that."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from flowcompute.engine.folds import Merged
from flowcompute.imports import LateModule
from flowcompute.ir import DeviceCapabilities, FoldSpec, Kernel, largest_nodes, register_dtype

if TYPE_CHECKING:
    from flowcompute.lower import rows
else:
    rows = LateModule("flowcompute.lower.rows")

MANY_NUMBERS = 1 << 19
"""Numbers of blocks that the host merges before a kernel is built: in about the time that loading a built one takes.

A kernel that an earlier run of the process has launched costs neither, and merges from the first batch on.
"""

RUN_NUMBERS = 1 << 14
"""Numbers of blocks that are worth a launch."""

GROUPS_PER_UNIT = 2

Launch = Callable[[Kernel, Sequence[int], int], None]
"""Launches a kernel with these integers, in so many work-groups, and waits."""

_MOST_KERNELS = 64


class LoweredMerges:
    """The kernels that were lowered last, by what they merge. May be used from any thread."""

    def __init__(self) -> None:
        self._kernels: OrderedDict[tuple[FoldSpec, int, int], Kernel] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: tuple[FoldSpec, int, int]) -> bool:
        return key in self._kernels

    def get(self, spec: FoldSpec, fold: int, lanes: int) -> Kernel:
        """Return the kernel of a fold, lowered where there is none; see `lower_merge`."""
        key = (spec, fold, lanes)
        with self._lock:
            kernel = self._kernels.pop(key, None) or rows.lower_merge(*key)
            self._kernels[key] = kernel
            if len(self._kernels) > _MOST_KERNELS:
                self._kernels.popitem(last=False)
        return kernel

    def clear(self) -> None:
        """Forget all kernels."""
        with self._lock:
            self._kernels.clear()


MERGES = LoweredMerges()
"""Those of this process. Their texts are found by the same objects."""


class BlockMerging:
    """Merges runs of blocks that make one node of a fold's tree.

    Args:
        specs: what each fold computes, by its node's id.
        capabilities: of the device.

    Attributes:
        node: the arrays of the node in hand.
    """

    def __init__(self, specs: Mapping[int, FoldSpec], capabilities: DeviceCapabilities) -> None:
        self._specs = specs
        self._capabilities = capabilities
        self._able = capabilities.code_shape == "cpu" and capabilities.host_memory and capabilities.float64
        self._numbers: dict[int, int] = {}
        self.node: tuple[np.ndarray, ...] = ()

    def merge(self, fold: int, first: int, blocks: int, launch: Launch) -> list[Merged]:
        """Merge what is worth it of a batch's whole blocks, from block `first` of the stream on."""
        done: list[Merged] = []
        for place, level in self._runs(fold, first, blocks):
            spec, lanes = self._specs[fold], self._lanes(self._specs[fold])
            vectors = spec.numbers // lanes
            groups = min(vectors, GROUPS_PER_UNIT * self._capabilities.units)
            self.node = tuple(np.empty(spec.numbers, dtype) for dtype in spec.node_parts())
            launch(
                MERGES.get(spec, fold, lanes), (spec.numbers, vectors // groups * lanes, 1 << level, place, 0), groups
            )
            done.append((place, level, self.node))
        return done

    def _lanes(self, spec: FoldSpec) -> int:
        return self._capabilities.lanes_of(max(dtype.itemsize for dtype in (*spec.parts(), *spec.node_parts())))

    def _runs(self, fold: int, first: int, blocks: int) -> list[tuple[int, int]]:
        """Return which nodes kernels make: the place of the first block of each, and its level."""
        spec = self._specs[fold]
        in_vectors = spec.numbers >= self._lanes(spec) and all(register_dtype(part) == part for part in spec.parts())
        if not self._able or not in_vectors:
            return []
        self._numbers[fold] = self._numbers.get(fold, 0) + blocks * spec.numbers
        if self._numbers[fold] < MANY_NUMBERS and (spec, fold, self._lanes(spec)) not in MERGES:
            return []
        nodes = largest_nodes(first, blocks)
        return [(place, level) for place, level in nodes if level and spec.numbers << level >= RUN_NUMBERS]
