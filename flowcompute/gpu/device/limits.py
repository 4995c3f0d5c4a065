"""Measurement of a device's limits: memory by a copy, arithmetic by multiply-adds that stay in registers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowcompute.errors import KernelError
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.programs import build
from flowcompute.imports import LateModule
from flowcompute.spec import FLOAT16, FLOAT32, FLOAT64, INT32, INT64
from flowcompute.strategy import Limits, Unit

if TYPE_CHECKING:
    from flowcompute.gpu import render
else:
    render = LateModule("flowcompute.gpu.render")

COPY_BYTES = {"cpu": 64 << 20, "gpu": 256 << 20}
"""Bytes that are copied: more than any cache holds."""

_TURNS = {"cpu": 1 << 12, "gpu": 1 << 11}
_REPETITIONS = 20
_CHAINS = 10
"""Independent multiply-adds: enough for the depth of pipelines, and few enough for the registers."""

_GROUPS_PER_UNIT = {"cpu": 4, "gpu": 16}
_MMA_OPERATIONS = 2 * 16 * 8 * 16
"""Operations of one `mma.sync` of m16n8k16, which a warp computes together."""

_WARP = 32

_SCALARS: Mapping[Unit, tuple[str, np.dtype]] = {
    "float32": ("float", FLOAT32),
    "float64": ("double", FLOAT64),
    "integer": ("int", np.dtype(np.int32)),
    "tensor": ("uint", np.dtype(np.uint32)),
}

_MAX_ITEM_BYTES = 32

_COPY = """
__kernel void fc_copy(__global const {T} *x, __global {T} *y, const long n, const long chunk) {{
    const long first = chunk ? get_global_id(0) * chunk : get_global_id(0);
    const long stop = chunk ? min(first + chunk, n) : n, step = chunk ? 1 : get_global_size(0);
    for (long i = first; i < stop; i += step) y[i] = x[i];
}}
"""

_TURN = """
__kernel void fc_{unit}(__global {T} *out, const {S} a, const {S} b, const int turns) {{
    {factors}
    {T} {declared};
    for (int i = 0; i < turns; i++) {{
        {steps}
    }}
    out[get_global_id(0)] = {summed};
}}
"""


def host_bytes(device: Device) -> int:
    """Return the bytes of host memory that a measurement takes."""
    return 2 * _copied_bytes(device) if device.capabilities.host_memory else 0


def measure_limits(device: Device) -> Limits:
    """Measure the limits of a device. It takes a fraction of a second, and more with an empty program cache.

    Raises:
        KernelError: if a kernel cannot be built or launched.
    """
    capabilities = device.capabilities
    units: list[Unit] = ["float32", *(["float64"] if capabilities.float64 else []), "integer"]  # type: ignore[list-item]
    units += ["tensor"] if capabilities.tensor_cores else []
    try:
        # All kernels are in one text, since each text costs a start of the compiler.
        program = build(device, "".join([_copy_text(device), *(_turn_text(device, unit) for unit in units)]))
        rates = {unit: _rate(device, program, unit) for unit in units}
        return Limits(_copy(device, program), rates, int(time.time()))
    except cl.Error as error:
        message = f"cannot measure the limits of {capabilities.name}: {error}"
        raise KernelError(message, element="devices") from error


# -- memory -----------------------------------------------------------------------------------------------


def _copied_bytes(device: Device) -> int:
    most = min(device.capabilities.max_buffer_bytes, device.capabilities.memory_bytes // 4)
    return min(COPY_BYTES[_shape(device)], most) // 64 * 64


def _copy_text(device: Device) -> str:
    return _COPY.format(T="float16" if _shape(device) == "cpu" else "float4")


def _copy(device: Device, program: cl.Program) -> float:
    """Return the bytes read and written in a second."""
    cpu, size_bytes = _shape(device) == "cpu", _copied_bytes(device)
    buffers = [cl.Buffer(device.context, cl.mem_flags.READ_WRITE, size_bytes) for _ in range(2)]
    try:
        count = size_bytes // (64 if cpu else 16)
        groups, group = _groups(device)
        arguments = (*buffers, np.int64(count), np.int64(-(-count // groups) if cpu else 0))
        kernel = device.kernels.take(program, "fc_copy", (None, None, INT64, INT64)).kernel
        return 2 * size_bytes / _min_seconds(device, kernel, arguments, groups * group, group)
    finally:
        for buffer in buffers:
            buffer.release()


# -- arithmetic -------------------------------------------------------------------------------------------


def _turn_text(device: Device, unit: Unit) -> str:
    """Return the text of a kernel that makes `_CHAINS` multiply-adds in each turn."""
    names = [f"c{i}" for i in range(_CHAINS)]
    scalar = _SCALARS[unit][0]
    factors, type_, step = "", f"{scalar}{_width(device, unit)}".removesuffix("1"), "{0} = {0} * a + b;"
    head = "#pragma OPENCL FP_CONTRACT ON\n"
    if unit == "tensor":
        name, head = render.multiply_helper(FLOAT16)
        factors, type_, step = "uint4 x = (uint4)(a); uint2 y = (uint2)(b);", "float4", f"{{0}} = {name}(x, y, {{0}});"
    return head + _TURN.format(
        unit=unit,
        S=scalar,
        T=type_,
        factors=factors,
        declared=", ".join(f"{name} = ({type_})({i})" for i, name in enumerate(names)),
        steps=" ".join(step.format(name) for name in names),
        summed=" + ".join(names),
    )


def _rate(device: Device, program: cl.Program, unit: Unit) -> float:
    """Return the operations in a second."""
    groups, group = _groups(device)
    turns, dtype = _TURNS[_shape(device)], _SCALARS[unit][1]
    each = _MMA_OPERATIONS / _WARP if unit == "tensor" else 2 * _width(device, unit)
    out = cl.Buffer(device.context, cl.mem_flags.WRITE_ONLY, groups * group * _MAX_ITEM_BYTES)
    try:
        # Numbers stay near 2, since subnormal ones would be slower. Tensor cores are as fast on zeros.
        arguments = (out, *np.array([0.5, 1.0]).astype(dtype), np.int32(turns))
        kernel = device.kernels.take(program, f"fc_{unit}", (None, dtype, dtype, INT32)).kernel
        seconds = _min_seconds(device, kernel, arguments, groups * group, group)
        return groups * group * turns * _CHAINS * each / seconds
    finally:
        out.release()


def _width(device: Device, unit: Unit) -> int:
    """Return the numbers in a vector: 32 bytes of them on CPUs, so that the chains fit into registers."""
    return 1 if _shape(device) == "gpu" else 32 // _SCALARS[unit][1].itemsize


# -- both -------------------------------------------------------------------------------------------------


def _shape(device: Device) -> str:
    return "cpu" if device.capabilities.code_shape == "cpu" else "gpu"


def _groups(device: Device) -> tuple[int, int]:
    """Return the number of work-groups, and of work-items in each."""
    shape = _shape(device)
    return device.capabilities.units * _GROUPS_PER_UNIT[shape], 1 if shape == "cpu" else min(
        256, device.capabilities.max_work_group
    )


def _min_seconds(device: Device, kernel: cl.Kernel, arguments: Sequence[Any], size: int, group: int) -> float:
    """Return the shortest time of a few launches, by the device's clock. Other work only makes them longer."""
    kernel.set_args(*arguments)
    seconds = []
    for _ in range(_REPETITIONS):
        event = cl.enqueue_nd_range_kernel(device.timing_queue, kernel, (size,), (group,))
        event.wait()
        seconds.append((event.profile.end - event.profile.start) * 1e-9)
    return max(min(seconds), 1e-9)
