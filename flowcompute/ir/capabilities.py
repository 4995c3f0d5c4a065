"""What planning must know of a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DeviceCapabilities:
    """What the planner must know of a device to choose shapes and sizes.

    Attributes:
        name: what people call it ("numpy", "pthread-AMD EPYC", "NVIDIA H200").
        kind: platform, driver and device; equal bits hold within one kind.
        code_shape: how kernels are written for it; "numpy" means no kernels at all.
        host_memory: whether it computes in place on host memory (no upload, no download).
        float64: whether it has double precision.
        memory_bytes: its memory; for a host device the machine's.
        max_buffer_bytes: the largest single buffer.
        local_bytes: local memory of a work-group.
        units: compute units.
        max_work_group: the largest work-group.
        lanes: numbers in a vector of explicit vector code, on CPUs, at most: 8 or 16. No bit depends on it.
        vector_bytes: the widest vector that kernels may have.
        shuffles: whether 32 neighbouring work-items can read each other's registers.
        tensor_cores: whether 32 neighbouring work-items can multiply matrices of half formats together, by PTX.
        correct_division: whether it can round fp32 division and square root correctly.
        devices: how many devices of this kind share the batches.
        reason: why this device was chosen, in words.
    """

    name: str
    kind: str
    code_shape: Literal["cpu", "gpu", "numpy"]
    host_memory: bool
    float64: bool
    memory_bytes: int
    max_buffer_bytes: int
    local_bytes: int
    units: int
    max_work_group: int = 256
    lanes: int = 16
    vector_bytes: int = 128
    shuffles: bool = False
    tensor_cores: bool = False
    correct_division: bool = True
    devices: int = 1
    reason: str = ""

    def lanes_of(self, itemsize: int) -> int:
        """Numbers in a vector where the widest have so many bytes; half formats are computed in four."""
        return min(self.lanes, self.vector_bytes // max(itemsize, 4))
