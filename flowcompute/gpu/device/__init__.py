"""OpenCL devices: discovery, queues, programs, limits and driver faults."""

from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.bound_kernels import BOUND_AFTER, BoundKernel, driver_functions
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.discovery import (
    DeviceRow,
    all_devices,
    describe_devices,
    select_device,
    select_devices,
    shown_names,
)
from flowcompute.gpu.device.driver_faults import ROOM, SMALLER, Faults, answerable
from flowcompute.gpu.device.idle_kernels import TakenKernel
from flowcompute.gpu.device.limits import host_bytes, measure_limits
from flowcompute.gpu.device.programs import build, is_built, save_new_programs, shared_by_driver

__all__ = [
    "BOUND_AFTER",
    "ROOM",
    "SMALLER",
    "BoundKernel",
    "Device",
    "DeviceRow",
    "Faults",
    "TakenKernel",
    "all_devices",
    "answerable",
    "build",
    "cl",
    "describe_devices",
    "driver_functions",
    "host_bytes",
    "is_built",
    "measure_limits",
    "save_new_programs",
    "select_device",
    "select_devices",
    "shared_by_driver",
    "shown_names",
]
