"""One OpenCL device: what it can do, and its context, queues and programs."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeVar

from flowcompute.errors import DeviceError, RunError
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.pinned_memory import PinnedMemory
from flowcompute.ir import DeviceCapabilities

_Made = TypeVar("_Made")

_TENSOR_CORES = (8, 0)
"""NVIDIA's compute capability from which on there are asynchronous copies and products of bfloat16."""

_LOCAL_BYTES = {(9, 0): 227 << 10}
"""What a work-group can have by compute capability where the driver says 48 KiB, and more was seen to work."""


class Device:
    """One OpenCL device; context and queue are made when first asked for.

    Attributes:
        handle: the pyopencl device.
        platform: name of its platform.
        version: version text of its platform.
        kind: "cpu", "gpu" or "other".
        unified: whether it shares the host's memory.
        capabilities: what the planner knows of it.
        programs: programs built for its context in this process, by key.
        build_options: compiler options that all its programs get beside the usual ones.
    """

    def __init__(self, handle: Any, platform: Any) -> None:
        self.handle = handle
        self.platform = platform.name.strip()
        self.version = platform.version.strip()
        self.kind: Literal["cpu", "gpu", "other"] = "other"
        if handle.type & cl.device_type.CPU:
            self.kind = "cpu"
        elif handle.type & cl.device_type.GPU:
            self.kind = "gpu"
        self.unified = bool(handle.host_unified_memory)
        self.capabilities = _capabilities(handle, self.platform, self.kind == "cpu")
        self.programs: dict[str, cl.Program] = {}
        self.build_options: tuple[str, ...] = ()
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Device {self.platform} / {self.capabilities.name}>"

    def because(self, reason: str) -> Device:
        """The same device, sharing context and queue, with `traits.reason` set."""
        chosen = Device.__new__(Device)
        chosen.__dict__.update(self.__dict__)
        chosen.capabilities = replace(self.capabilities, reason=reason)
        return chosen

    def is_same(self, other: Device) -> bool:
        """Whether another is the same device of the same platform, chosen for whatever reason."""
        return self._made is other._made

    @property
    def context(self) -> cl.Context:
        """The device's context."""
        return self._once("context", lambda: cl.Context([self.handle]))

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue for kernels and copies (in order, without profiling)."""
        return self._once("queue", lambda: cl.CommandQueue(self.context, self.handle))

    @property
    def upload_queue(self) -> cl.CommandQueue:
        """A queue for copies to the device that go on while kernels work; who uses it waits for what it needs."""
        return self._once("upload_queue", lambda: cl.CommandQueue(self.context, self.handle))

    @property
    def download_queue(self) -> cl.CommandQueue:
        """As `upload_queue`, for copies from the device."""
        return self._once("download_queue", lambda: cl.CommandQueue(self.context, self.handle))

    @property
    def pinned(self) -> PinnedMemory:
        """Pinned host memory of its context."""
        return self._once("pinned", lambda: PinnedMemory(self.context))

    @property
    def timing_queue(self) -> cl.CommandQueue:
        """A second queue, with profiling, for launches that are timed; neither queue waits for the other."""
        flags = cl.command_queue_properties.PROFILING_ENABLE
        return self._once("timing_queue", lambda: cl.CommandQueue(self.context, self.handle, properties=flags))

    def give_up(self, context: cl.Context) -> None:
        """Throw away a context in no state to go on, with all that was made in it; the next user gets a new one.

        What others still have of it keeps it alive, and fails when it is used. Harmless when called twice.
        """
        with self._lock:
            if not self.is_given_up(context):
                self._made.clear()
                self.programs.clear()

    def finish(self) -> None:
        """Wait for everything that was asked of it, in all of its queues."""
        with self._lock:
            queues = [made for made in self._made.values() if isinstance(made, cl.CommandQueue)]
        for queue in queues:
            queue.finish()

    def is_given_up(self, context: cl.Context) -> bool:
        """Whether this is no longer the device's context."""
        return self._made.get("context") is not context

    def _once(self, name: str, make: Callable[[], _Made]) -> _Made:
        if self._process != os.getpid():
            raise forked()
        there: _Made | None = self._made.get(name)
        if there is not None:
            return there
        with self._lock:
            if name not in self._made:
                try:
                    self._made[name] = make()
                except cl.Error as error:
                    raise DeviceError(
                        f"device {self.capabilities.name} does not start: {error}",
                        hint="look at `flowcompute devices`, or choose another with device=",
                    ) from error
            made: _Made = self._made[name]
            return made


def forked() -> RunError:
    """The error of using devices in a process forked off one that had started them."""
    return RunError(
        "OpenCL devices do not survive a fork",
        expected="a process that starts its own devices",
        got=f"process {os.getpid()}, forked off one that had used a device",
        hint='start workers with multiprocessing.get_context("spawn"), or fork before the first use of a device',
    )


def passes_wide_vectors_wrong(target: str) -> bool:
    """Check whether PoCL's built-in functions read wrong numbers from vectors of 512 bits on this processor, or hang.

    PoCL takes the built-ins for AVX-512 where the processor has it, and compiles kernels for what its LLVM takes the
    processor for. Caller and callee then pass such vectors in different registers in two cases. LLVM before 16 takes
    AMD's Zen 4, which has AVX-512, for Zen 3, which has not. For Intel's processors LLVM splits such vectors, since it
    prefers vectors of 256 bits there; it takes those that it does not know, as Sapphire Rapids, for Ice Lake.

    Args:
        target: for which PoCL compiles, as "pthread-x86_64-unknown-linux-gnu-znver3".
    """
    if re.search(r"-(skylake-avx512|cascadelake|cooperlake|icelake-\w+|tigerlake|rocketlake)$", target) is not None:
        return True
    if re.search(r"-znver[123]$", target) is None:
        return False
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return re.search(r"^flags\b.*\bavx512f\b", file.read(), re.MULTILINE) is not None
    except OSError:
        return False


def _capabilities(handle: Any, platform: str, cpu: bool) -> DeviceCapabilities:
    name = " ".join(handle.name.split())
    # PoCL names the processor's model, but not the instruction set that it compiles for.
    target = re.search(r"HSTR: (\S+)", handle.version)
    narrow = target is not None and passes_wide_vectors_wrong(target[1])
    kind = [platform, handle.driver_version.strip(), name, *([target[1]] if target else [])]
    memory = int(handle.global_mem_size)
    if cpu and hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    rounding = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    # By PTX, which other platforms' drivers for the same chips do not take.
    ptx = platform == "NVIDIA CUDA"
    capability = (handle.compute_capability_major_nv, handle.compute_capability_minor_nv) if ptx else (0, 0)
    return DeviceCapabilities(
        name=name,
        kind=" | ".join(kind),
        code_shape="cpu" if cpu else "gpu",
        # Elsewhere in the host's memory there is nothing to upload either.
        host_memory=cpu or bool(handle.host_unified_memory),
        float64=bool(handle.double_fp_config),
        memory_bytes=memory,
        max_buffer_bytes=int(handle.max_mem_alloc_size),
        local_bytes=_LOCAL_BYTES.get(capability, int(handle.local_mem_size)),
        units=int(handle.max_compute_units),
        max_work_group=int(handle.max_work_group_size),
        lanes=8 if narrow else DeviceCapabilities.lanes,
        vector_bytes=32 if narrow else DeviceCapabilities.vector_bytes,
        shuffles=ptx,
        tensor_cores=capability >= _TENSOR_CORES,
        correct_division=bool(handle.single_fp_config & rounding),
    )
