"""Kernels go from one executor to the next, and never to two at a time."""

from __future__ import annotations

import threading
from typing import Any
from unittest import mock

import numpy as np
from pyopencl import invoker

import flowcompute as fc
from flowcompute.gpu.device import Device, all_devices, build, idle_kernels, select_device
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.idle_kernels import _MOST_KERNELS, IdleKernels
from flowcompute.gpu.device.limits import measure_limits
from flowcompute.gpu.worker.launcher import LocalLauncher

TEXT = "kernel void one(global float *x, long n) { if (get_global_id(0) < n) x[get_global_id(0)] = 1; }"
OTHER = "kernel void one(global float *x, long n) { if (get_global_id(0) < n) x[get_global_id(0)] = 2; }"
TYPES = (None, np.dtype(np.int64))


def device_of_its_own() -> Device:
    """Make a device object whose context and kernels no other test has."""
    found = select_device("cpu", needs_float64=False)
    return Device(found.handle, found.handle.platform)


def test_a_kernel_has_one_user() -> None:
    device, kernels = device_of_its_own(), IdleKernels()
    program = build(device, TEXT)
    one, other = (kernels.take(program, "one", TYPES) for _ in range(2))
    assert one.kernel is not other.kernel
    kernels.give_back(one)
    assert kernels.take(program, "one", TYPES).kernel is one.kernel
    assert len(kernels) == 0


def test_a_kernel_is_that_of_its_program_and_types() -> None:
    device, kernels = device_of_its_own(), IdleKernels()
    first = kernels.take(build(device, TEXT), "one", TYPES)
    kernels.give_back(first)
    assert kernels.take(build(device, OTHER), "one", TYPES).kernel is not first.kernel
    assert kernels.take(build(device, TEXT), "one", (None, np.dtype(np.int32))).kernel is not first.kernel
    assert len(kernels) == 1


def test_pyopencl_writes_for_one_kernel_at_a_time() -> None:
    """Texts that two threads write at once may have one name, which pyopencl warns of."""
    program, writing, met = build(device_of_its_own(), TEXT), threading.Lock(), []
    original: Any = invoker.generate_enqueue_and_set_args

    def write(*given: Any, **named: Any) -> Any:
        alone = writing.acquire(timeout=0)
        met.append(alone)
        if alone:
            # Whoever does not wait for this one comes meanwhile.
            came.wait(0.2)
            writing.release()
        else:
            came.set()
        return original(*given, **named)

    ready, came = threading.Barrier(2), threading.Event()

    def take() -> None:
        ready.wait()
        IdleKernels().take(program, "one", TYPES)

    threads = [threading.Thread(target=take) for _ in range(2)]
    with mock.patch.object(invoker, "generate_enqueue_and_set_args", write):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # Each is written for when it is made, and when it has types.
    assert met == [True] * 4


def test_limits_are_measured_by_kernels_that_are_written_one_at_a_time() -> None:
    met, original = [], invoker.generate_enqueue_and_set_args

    def write(*given: Any, **named: Any) -> Any:
        met.append(idle_kernels._generating.locked())
        return original(*given, **named)

    with mock.patch.object(invoker, "generate_enqueue_and_set_args", write):
        measure_limits(device_of_its_own())
    assert met
    assert all(met), "another thread may write for a kernel meanwhile"


def test_only_some_are_kept() -> None:
    kernels, device = IdleKernels(), device_of_its_own()
    taken = kernels.take(build(device, TEXT), "one", TYPES)
    for _ in range(_MOST_KERNELS + 5):
        kernels.give_back(taken)
    assert len(kernels) == _MOST_KERNELS


def test_what_was_built_in_a_context_that_was_given_up_is_dropped() -> None:
    device = device_of_its_own()
    one, other = LocalLauncher(device, 1 << 20), LocalLauncher(device, 1 << 20)
    one.build(TEXT, "one", TYPES)
    other.build(TEXT, "one", TYPES)
    one.close()
    assert len(device.kernels) == 1
    device.give_up(device.context)
    assert len(device.kernels) == 0
    other.close()
    assert len(device.kernels) == 0
    third = LocalLauncher(device, 1 << 20)
    assert third.build(TEXT, "one", TYPES).get_info(cl.kernel_info.CONTEXT) == device.context
    third.close()


def test_closing_twice_gives_a_kernel_back_once() -> None:
    device = device_of_its_own()
    launcher = LocalLauncher(device, 1 << 20)
    launcher.build(TEXT, "one", TYPES)
    launcher.close()
    launcher.close()
    assert len(device.kernels) == 1


def test_runs_one_after_the_other_have_the_same_kernels() -> None:
    def run() -> int:
        x = fc.source(np.ones((100, 3), np.float32))
        (fc.tanh(x) + 41).sum(axis=0).resolve(device="cpu", progress=False)
        return sum(len(device.kernels) for device in all_devices())

    first = run()
    assert first >= 1
    assert {run() for _ in range(3)} == {first}
