"""A launch of a kernel for a batch, and what its division among work-items says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from flowcompute.imports import dataclass
from flowcompute.ir.capabilities import DeviceCapabilities
from flowcompute.ir.fold_spec import FoldSpec
from flowcompute.ir.kernel import Kernel


@dataclass(frozen=True)
class LaunchTask:
    """A batch that a kernel is to be launched for.

    Attributes:
        kernel: what is launched.
        capabilities: of the device.
        items: records of the batch.
        blocks: canonical blocks or tiles that they lie in.
        folds: what each fold of the plan computes, by its node's id.
        record_numbers: returns how many numbers of the region's domain a record has.
    """

    kernel: Kernel
    capabilities: DeviceCapabilities
    items: int
    blocks: int
    folds: Mapping[int, FoldSpec]
    record_numbers: Callable[[], int]

    @property
    def is_gpu(self) -> bool:
        """True where the device is a GPU."""
        return self.capabilities.code_shape == "gpu"

    @property
    def count(self) -> int:
        """Numbers, rows or blocks of the batch, whichever the kernel counts."""
        return self.items * self.kernel.units


class LaunchDivision(NamedTuple):
    """LaunchDivision of a launch.

    Attributes:
        total: numbers, rows or records that there are.
        chunk: how many of them, or of blocks, a work-item takes; 0 where it takes what is its turn.
        groups: work-groups.
    """

    total: int
    chunk: int
    groups: int
