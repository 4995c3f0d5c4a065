"""Launches of a discrete device that are repeated keep their arguments set."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import KernelError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device import BOUND_AFTER, BoundKernel, build, driver_functions
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.run.chains import BoundLaunches, LaunchSequence
from flowcompute.gpu.worker.launcher import LocalLauncher
from tests.gpu.shapes import gpu_shaped
from tests.gpu.test_deferred import CONTEXT, WIDTH, attending, layers, numbers, wanted
from tests.gpu.test_idle_kernels import device_of_its_own

TEXT = "kernel void add(global float *x, float a, long n) { if (get_global_id(0) < n) x[get_global_id(0)] += a; }"
TYPES = (None, np.dtype(np.float32), np.dtype(np.int64))


@pytest.fixture
def discrete() -> Iterator[None]:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        yield


class Adding:
    """A kernel that adds to eight numbers, and its device."""

    def __init__(self) -> None:
        self.device = device_of_its_own()
        self.kernel = cl.Kernel(build(self.device, TEXT), "add")
        self.buffers = [cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, 32) for _ in range(2)]
        for buffer in self.buffers:
            cl.enqueue_fill_buffer(self.device.queue, buffer, np.zeros(1, np.float32), 0, 32)

    def bound(self, *values: Any, size: int = 8, work_group: int = 4) -> BoundKernel:
        return BoundKernel(self.device.queue, self.kernel, TYPES, values, size, work_group)

    def numbers(self, place: int) -> list[float]:
        array = np.empty(8, np.float32)
        cl.enqueue_copy(self.device.queue, array, self.buffers[place])
        return [float(one) for one in array]


def test_arguments_stay_set() -> None:
    adding = Adding()
    one, other = adding.bound(adding.buffers[0], 0.5, 6), adding.bound(adding.buffers[1], 2, 8)
    for bound in (one, other, one):
        bound.launch()
    assert adding.numbers(0) == [1.0] * 6 + [0.0] * 2
    assert adding.numbers(1) == [2.0] * 8


def test_arguments_are_put_anew() -> None:
    adding = Adding()
    bound = adding.bound(None, 0.5, 8)
    for place in (0, 1, 1):
        bound.put(0, adding.buffers[place])
        bound.put(2, 3 + place)
        bound.launch()
    assert adding.numbers(0) == [0.5] * 3 + [0.0] * 5
    assert adding.numbers(1) == [1.0] * 4 + [0.0] * 4


def test_an_argument_is_put_again_after_an_interrupt() -> None:
    """It was set when the interrupt came, and the one before was taken for set."""
    adding, functions = Adding(), driver_functions()
    assert functions is not None
    put = functions.clSetKernelArg

    def interrupted(kernel: Any, place: Any, size: Any, given: Any) -> int:
        code: int = put(kernel, place, size, given)
        if place.value == 2 and given == (3).to_bytes(8, sys.byteorder):
            raise KeyboardInterrupt
        return code

    with mock.patch.object(functions, "clSetKernelArg", interrupted):
        bound = adding.bound(adding.buffers[0], 1, 8)
    with pytest.raises(KeyboardInterrupt):
        bound.put(2, 3)
    bound.put(2, 8)
    bound.launch()
    assert adding.numbers(0) == [1.0] * 8


def test_errors_are_those_of_pyopencl() -> None:
    adding = Adding()
    # 8 work-items are no whole work-groups of 3.
    bound = adding.bound(adding.buffers[0], 0.5, 8, work_group=3)
    adding.kernel.set_args(adding.buffers[0], np.float32(0.5), np.int64(8))
    with pytest.raises(cl.LogicError) as expected:
        cl.enqueue_nd_range_kernel(adding.device.queue, adding.kernel, (8,), (3,))
    with pytest.raises(cl.LogicError) as raised:
        bound.launch()
    assert (str(raised.value), raised.value.code) == (str(expected.value), expected.value.code)
    with pytest.raises(cl.LogicError, match="INVALID_ARG_SIZE"):
        BoundKernel(adding.device.queue, adding.kernel, (None, np.dtype(np.float64)), (None, 1), 8, 4)


def test_kernels_are_released() -> None:
    adding = Adding()
    released = mock.Mock(side_effect=driver_functions().clReleaseKernel)  # type: ignore[union-attr]
    with mock.patch.object(driver_functions(), "clReleaseKernel", released):
        bound = adding.bound(adding.buffers[0], 0.5, 8)
    del bound
    gc.collect()
    released.assert_called_once()


def test_without_the_functions_nothing_is_bound() -> None:
    """Hide what pyopencl's library calls: launches go on as before."""
    driver_functions.cache_clear()
    try:
        with mock.patch("ctypes.PyDLL", return_value=object()):
            assert driver_functions() is None
            assert not LocalLauncher(gpu_shaped().device, 0).can_bind
    finally:
        driver_functions.cache_clear()


def test_devices_in_the_memory_of_the_host_bind_nothing() -> None:
    assert not LocalLauncher(gpu_shaped(in_place=True).device, 0).can_bind
    assert LocalLauncher(gpu_shaped().device, 0).can_bind


@pytest.mark.slow
@pytest.mark.usefixtures("discrete")
def test_repeated_launches_are_bound() -> None:
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    sequences: dict[int, LaunchSequence] = {}
    bind = LaunchSequence.bind

    def noted(sequence: LaunchSequence, launcher: LocalLauncher) -> None:
        sequences[id(sequence)] = sequence
        bind(sequence, launcher)

    with (
        mock.patch.object(LaunchSequence, "bind", noted),
        mock.patch.object(LocalLauncher, "launch", autospec=True, side_effect=LocalLauncher.launch) as launched,
        layers(feed).flow(device="gpu") as flow,
    ):
        for seed in range(2 * BOUND_AFTER + 4):
            launched.reset_mock()
            flow.send(numbers(3, seed))
            np.testing.assert_array_equal(flow.receive(), wanted(numbers(3, seed)))
        bound = [one for sequence in sequences.values() for one in sequence.each if isinstance(one, BoundLaunches)]
        assert sum(len(one.launches) for one in bound) > 1
        # The one that makes what is received.
        assert launched.call_count == 1


@pytest.mark.slow
@pytest.mark.usefixtures("discrete")
@pytest.mark.parametrize("with_text", [False, True], ids=["one text", "texts"])
def test_bound_launches_carry_on(with_text: bool) -> None:
    data = np.concatenate([numbers(CONTEXT), np.arange(CONTEXT, dtype=np.float32)[:, None] // 17], axis=1)
    whole = attending(fc.source(data), with_text).resolve(device="gpu", progress=False)
    made = attending(fc.feed(shape=(WIDTH + 1,), dtype="float32"), with_text)
    with (
        mock.patch.object(BoundLaunches, "again", autospec=True, side_effect=BoundLaunches.again) as again,
        made.flow(device="gpu") as flow,
    ):
        start = 0
        # More records than before need larger buffers, so what was bound is forgotten.
        for records in (2, *[1] * 10, 7, *[1] * 10, *[3] * 6, 1):
            flow.send(data[start : start + records])
            np.testing.assert_array_equal(flow.receive(), whole[start : start + records])
            start += records
    assert start == CONTEXT
    assert again.call_count > BOUND_AFTER


@pytest.mark.slow
@pytest.mark.usefixtures("discrete")
def test_a_bound_launch_that_fails_names_its_step() -> None:
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    with layers(feed).flow(device="gpu") as flow:
        for seed in range(2 * BOUND_AFTER):
            flow.send(numbers(3, seed))
            flow.receive()
        refused = cl.LogicError(cl._cl._ErrorRecord(msg="", code=-54, routine="clEnqueueNDRangeKernel"))
        with (
            mock.patch.object(BoundKernel, "launch", side_effect=[None, refused]),
            pytest.raises(KernelError, match="INVALID_WORK_GROUP_SIZE") as raised,
        ):
            flow.send(numbers(3))
    assert raised.value.element is not None
    assert raised.value.site is not None
