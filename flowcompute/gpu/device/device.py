"""Device of OpenCL: its capabilities, context, queues and programs."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np

from flowcompute.errors import DeviceError, RunError
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.idle_kernels import IdleKernels
from flowcompute.gpu.device.pinned_memory import PinnedMemory
from flowcompute.gpu.device.retargeting import takes_marked
from flowcompute.ir import DeviceCapabilities

_Made = TypeVar("_Made")

_TENSOR_CORES = (8, 0)
"""First compute capability of NVIDIA with asynchronous copies and products of bfloat16."""

_ACQUIRES = (7, 0)
"""First compute capability of NVIDIA with loads that acquire and additions that release."""

_WARP_GROUPS = 9
"""Compute capability with products by groups of sub-groups and tensor copies."""

_LOCAL_BYTES = {(9, 0): 227 << 10}
"""Local memory of a work-group by compute capability. The driver reports 48 KiB, but more was seen to work."""


class Device:
    """One OpenCL device. Its context and queues are created at their first use.

    Attributes:
        handle: the pyopencl device.
        platform: name of its platform.
        version: version text of its platform.
        kind: "cpu", "gpu" or "other".
        unified: whether it shares the host's memory.
        capabilities: its properties for the planner.
        programs: programs built for its context in this process, by key.
        kernels: kernels of these that no executor has now.
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
        self.kernels = IdleKernels()
        self.build_options: tuple[str, ...] = ()
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Device {self.platform} / {self.capabilities.name}>"

    @property
    def identity(self) -> str:
        """The runtime, its version and its device, in words: what was measured of one holds for no other."""
        return f"{self.platform} | {self.version} | {self.capabilities.name} | {self.handle.driver_version.strip()}"

    @property
    def bus_address(self) -> str | None:
        """Place of the device on its host's bus, as "0000:65:00": the same in all processes. None where it is not told.

        Parts of a divided GPU (MIG) have one address.
        """
        if self.platform != "NVIDIA CUDA":
            return None
        try:
            found = self.handle.pci_domain_id_nv, self.handle.pci_bus_id_nv, self.handle.pci_slot_id_nv
        except cl.Error:  # a driver of before the query
            return None
        return "{:04x}:{:02x}:{:02x}".format(*found)

    def with_reason(self, reason: str) -> Device:
        """Return the same device, sharing context and queues, with `capabilities.reason` set."""
        chosen = Device.__new__(Device)
        chosen.__dict__.update(self.__dict__)
        chosen.capabilities = replace(self.capabilities, reason=reason)
        return chosen

    def has_warp_groups(self) -> bool:
        """Check whether kernels may have the instructions of Hopper. It is tried once, in the device's context."""
        if self.platform != "NVIDIA CUDA" or self.handle.compute_capability_major_nv != _WARP_GROUPS:
            return False
        return self._once("warp_groups", lambda: takes_marked(self.context, self.handle))

    def is_same(self, other: Device) -> bool:
        """Check whether another object is the same device of the same platform, for whatever reason it was chosen."""
        return self._made is other._made

    @property
    def context(self) -> cl.Context:
        """Context of the device."""
        return self._once("context", lambda: cl.Context([self.handle]))

    @property
    def queue(self) -> cl.CommandQueue:
        """Queue for kernels and copies (in order; with profiling on CPUs)."""
        return self._once("queue", lambda: self._make_queue(profiling=bool(self.handle.type & cl.device_type.CPU)))

    @property
    def upload_queue(self) -> cl.CommandQueue:
        """Queue for copies to the device while kernels work. Its user must wait for the events that it needs."""
        return self._once("upload_queue", lambda: cl.CommandQueue(self.context, self.handle))

    @property
    def download_queue(self) -> cl.CommandQueue:
        """Queue for copies from the device while kernels work, used like `upload_queue`."""
        return self._once("download_queue", lambda: cl.CommandQueue(self.context, self.handle))

    @property
    def pinned(self) -> PinnedMemory:
        """Pinned host memory of its context."""
        return self._once("pinned", lambda: PinnedMemory(self.context))

    @property
    def timing_queue(self) -> cl.CommandQueue:
        """Queue with profiling, for launches that are timed. Where it is a second one, neither waits for the other."""
        if self.capabilities.code_shape == "cpu":
            return self.queue
        return self._once("timing_queue", lambda: self._make_queue(profiling=True))

    def _make_queue(self, *, profiling: bool) -> cl.CommandQueue:
        # Time stamps of CPUs are reads of a clock. Those of other devices are commands.
        flags = {"properties": cl.command_queue_properties.PROFILING_ENABLE} if profiling else {}
        return cl.CommandQueue(self.context, self.handle, **flags)

    @property
    def is_in_place(self) -> bool:
        """True where kernels work on the very bytes of host arrays, so that they need not be mapped to be seen."""
        return self.capabilities.host_memory and self._once("is_in_place", self._works_in_place)

    def _works_in_place(self) -> bool:
        """Check whether what the device writes to a host array is there, of one that is aligned to its items alone."""
        array = np.zeros(1025, np.float32)[1:]
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        try:
            buffer = cl.Buffer(self.context, flags, hostbuf=array)
            cl.enqueue_fill_buffer(self.queue, buffer, np.ones(1, np.float32), 0, array.nbytes)
            self.queue.finish()
        except cl.Error:
            return False
        return bool((array == 1).all())

    def give_up(self, context: cl.Context) -> None:
        """Drop a broken context with all that was made in it. The next user gets a new one.

        References that others still hold keep it alive, and fail when they are used. Calling it twice does
        nothing.
        """
        with self._lock:
            if not self.is_given_up(context):
                self._made.clear()
                self.programs.clear()
                self.kernels.clear()

    def finish(self) -> None:
        """Wait for all commands in all of its queues."""
        with self._lock:
            queues = [made for made in self._made.values() if isinstance(made, cl.CommandQueue)]
        for queue in queues:
            queue.finish()

    def is_given_up(self, context: cl.Context) -> bool:
        """Check whether this is no longer the device's context."""
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
                        f"cannot start device {self.capabilities.name}: {error}",
                        hint="look at `flowcompute devices`, or choose another with device=",
                    ) from error
            made: _Made = self._made[name]
            return made


def forked() -> RunError:
    """Return the error of using devices in a process forked off one that had started them."""
    return RunError(
        "cannot use OpenCL devices after a fork",
        expected="a process that starts its own devices",
        got=f"process {os.getpid()}, forked off one that had used a device",
        hint='start workers with multiprocessing.get_context("spawn"), or fork before the first use of a device',
    )


def has_avx512_mismatch(target: str) -> bool:
    """Check whether PoCL's built-in functions misread vectors of 512 bits on this processor, crash, or never end.

    PoCL uses built-ins for AVX-512 where the processor has it. It compiles kernels for the processor that its
    LLVM recognises. Caller and callee then pass such vectors in different registers in two cases. LLVM before 16
    takes AMD's Zen 4, which has AVX-512, for Zen 3, which has not. For Intel's processors LLVM prefers vectors of
    256 bits and splits wider ones. It takes processors that it does not know, as Sapphire Rapids, for Ice Lake.

    Args:
        target: the target of PoCL's compiler, such as "pthread-x86_64-unknown-linux-gnu-znver3".
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


def _is_ordered(handle: Any, capability: tuple[int, int]) -> bool:
    """Check whether work-groups of one launch can wait for each other's stores by the instructions of PTX for that."""
    return capability >= _ACQUIRES and not handle.host_unified_memory


def _capabilities(handle: Any, platform: str, cpu: bool) -> DeviceCapabilities:
    name = " ".join(handle.name.split())
    # PoCL names the processor's model, but not the instruction set that it compiles for.
    target = re.search(r"HSTR: (\S+)", handle.version)
    narrow = target is not None and has_avx512_mismatch(target[1])
    kind = [platform, handle.driver_version.strip(), name, *([target[1]] if target else [])]
    memory = int(handle.global_mem_size)
    if cpu and hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    rounding = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    # These need PTX, which other platforms' drivers for the same chips do not accept.
    ptx = platform == "NVIDIA CUDA"
    capability = (handle.compute_capability_major_nv, handle.compute_capability_minor_nv) if ptx else (0, 0)
    return DeviceCapabilities(
        name=name,
        kind=" | ".join(kind),
        code_shape="cpu" if cpu else "gpu",
        # A device of another kind in the host's memory needs no uploads either.
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
        # OpenCL 1.2 orders memory within a work-group only. CPUs keep this order anyway, and PTX has a fence for it.
        device_fences=cpu or ptx,
        # PoCL wakes its threads for each launch, and NVIDIA's driver takes long for one. Others were not measured.
        chains=platform == "Portable Computing Language" if cpu else _is_ordered(handle, capability),
        tensor_cores=capability >= _TENSOR_CORES,
        correct_division=bool(handle.single_fp_config & rounding),
    )
