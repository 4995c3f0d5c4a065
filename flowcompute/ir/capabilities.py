"""Capabilities of a device that planning depends on."""

from __future__ import annotations

from typing import Literal

from flowcompute.imports import dataclass


@dataclass(frozen=True)
class DeviceCapabilities:
    """Properties of a device that determine shapes and sizes of kernels.

    Attributes:
        name: shown to users ("numpy", "pthread-AMD EPYC", "NVIDIA H200").
        kind: platform, driver and device; equal bits hold within one kind.
        code_shape: style of the kernels; "numpy" means no kernels at all.
        host_memory: whether it computes in place on host memory (no upload, no download).
        float64: whether it supports double precision.
        memory_bytes: its memory; for a host device the machine's.
        max_buffer_bytes: the largest single buffer.
        local_bytes: local memory of a work-group.
        units: compute units.
        max_work_group: the largest work-group.
        lanes: the most numbers in a vector of explicit vector code on CPUs: 8 or 16. No bit depends on it.
        vector_bytes: the widest vector that kernels may use.
        shuffles: whether a sub-group of 32 work-items can read each other's registers.
        device_fences: whether a fence orders what one work-group stored before what another then loads.
        tensor_cores: whether a sub-group of 32 work-items can multiply matrices of half formats, by PTX.
        warp_groups: whether four such sub-groups can multiply tiles of local memory, and tensor copies bring them, by
            PTX for compute capability 9.0.
        chains: whether many launches are one that draws their work-groups by ticket.
        correct_division: whether it can round fp32 division and square root correctly.
        devices: number of devices of this kind that share the batches.
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
    device_fences: bool = False
    tensor_cores: bool = False
    warp_groups: bool = False
    chains: bool = False
    correct_division: bool = True
    devices: int = 1
    reason: str = ""

    def lanes_of(self, itemsize: int) -> int:
        """Return the numbers in a vector of items of `itemsize` bytes. Half formats are computed in four bytes."""
        return min(self.lanes, self.vector_bytes // max(itemsize, 4))
