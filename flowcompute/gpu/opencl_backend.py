"""The OpenCL backend: one device, or several of one kind, and kernels in OpenCL C."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flowcompute.engine import Executor, PassExecutor, PassState, PlacedBackend, Runners
from flowcompute.gpu.device import Device, host_bytes, measure_limits, select_devices
from flowcompute.gpu.kernel_arguments import argument_types
from flowcompute.gpu.rendered_programs import RenderedTexts, program_of, rendered
from flowcompute.gpu.run import OpenCLRunner, SharedBatches
from flowcompute.gpu.worker import open_launcher
from flowcompute.schedule import BackendDescription, ExecutionPlan, RegionStep
from flowcompute.schedule.placement import why_not_shared
from flowcompute.strategy import Limits


class OpenCLBackend(PlacedBackend):
    """Computes on an OpenCL device, or on several of one kind.

    Args:
        device: the first one.
        others: what shares the batches with it.
    """

    def __init__(self, device: Device, *others: Device) -> None:
        self.device = device
        self.devices = (device, *others)
        capabilities = replace(device.capabilities, warp_groups=device.has_warp_groups())
        first = None
        if others:
            first = OpenCLBackend(device).description
            name = f"{len(self.devices)} x {capabilities.name}"
            capabilities = replace(capabilities, name=name, devices=len(self.devices))
        addresses = tuple(one.bus_address for one in self.devices if one.bus_address is not None)
        self.description = BackendDescription(
            capabilities, rendered, addresses=addresses, texts=RenderedTexts(), first=first
        )

    @classmethod
    def select(cls, spec: str | Sequence[str], needs_float64: bool) -> OpenCLBackend:
        """Choose the backend for `device=`; see `select_devices`."""
        return cls(*select_devices(spec, needs_float64))

    def prepare(self, plan: ExecutionPlan, placement: int = 0) -> None:
        """Compile its kernels of all passes; isolated ones in a worker process, which keeps them for others."""
        regions = [step for step in plan.steps if isinstance(step, RegionStep)]
        kernels = [step.kernel for step in regions if step.kernel and step.placement == placement]
        for device in self.devices[: plan.backend.capabilities.devices]:
            with contextlib.closing(open_launcher(device, plan.config)) as launcher, launcher.told():
                for kernel in kernels:
                    launcher.build(*program_of(kernel), argument_types(kernel))

    def measure(self, room_bytes: int) -> Limits | None:
        """Measure what the device can do at most; see `Backend.measure`."""
        needed = host_bytes(self.device)
        return measure_limits(self.device) if needed <= room_bytes else None

    def executor(self, plan: ExecutionPlan, pass_index: int, resident: dict[int, np.ndarray]) -> Executor:
        """Make an executor for one pass, on all devices where its batches can be shared."""
        state = PassState(plan, pass_index, resident, self)
        runner = self.runner(state)
        shared = (
            plan.backend.capabilities.devices > 1
            and why_not_shared(state.one_pass, by_hand=plan.config.by_hand) is None
        )
        ahead = SharedBatches(state, runner, self.devices) if shared else None
        return PassExecutor(state, Runners([runner]), ahead)

    def alone(self, number: int) -> OpenCLBackend:
        """Return the backend of one of its devices; see `Backend.alone`."""
        return OpenCLBackend(self.devices[number])

    def runner(self, state: PassState, placement: int = 0) -> OpenCLRunner:
        """Make what runs the regions of a placement on the first device."""
        return OpenCLRunner(state, self.device, placement)
