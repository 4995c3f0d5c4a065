"""Buffers that are host arrays, and memory of devices."""

from __future__ import annotations

import gc
import itertools
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.batch import ALIGNMENT
from flowcompute.errors import RunError
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.device.programs import build
from flowcompute.gpu.memory.device_buffers import DeviceArena, HostBuffers, size_class
from flowcompute.gpu.memory.transfers import Transfers
from tests.models.files import write_model

COPY = """
__kernel void copy(__global const uchar *restrict from, __global uchar *restrict to, const long n) {
    for (long i = get_global_id(0); i < n; i += get_global_size(0)) to[i] = from[i] + 1;
}
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return select_device("cpu", needs_float64=False)


@pytest.fixture(scope="module")
def kernel(device: Device) -> cl.Kernel:
    kernel = cl.Kernel(build(device, COPY), "copy")
    kernel.set_scalar_arg_dtypes([None, None, np.int64])
    return kernel


def plus_one(device: Device, kernel: cl.Kernel, array: np.ndarray, result: np.ndarray) -> None:
    """`result` = `array` with one added to each byte, computed in place."""
    host = HostBuffers(device)
    inputs, outputs = host.input(array), host.output(result)
    kernel.set_args(inputs, outputs, array.nbytes)
    cl.enqueue_nd_range_kernel(device.queue, kernel, (2,), (1,))
    host.finish([outputs])


def expected(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8) + np.uint8(1)


@given(
    dtype=st.sampled_from([np.uint8, np.int16, np.float32, np.float64, np.bool_, ml_dtypes.bfloat16, np.float16]),
    shape=st.lists(st.integers(0, 9), max_size=3),
    skip=st.integers(0, 40),
    skip_result=st.integers(0, 40),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_any_array_is_used_in_place(dtype: type, shape: list[int], skip: int, skip_result: int, seed: int) -> None:
    device = select_device("cpu", needs_float64=False)
    kernel = cl.Kernel(build(device, COPY), "copy")
    kernel.set_scalar_arg_dtypes([None, None, np.int64])
    size = int(np.prod(shape, dtype=int))
    item = np.dtype(dtype).itemsize
    around = np.random.default_rng(seed).integers(0, 256, (skip + size + 1) * item, dtype=np.uint8)
    array = around[skip * item : (skip + size) * item].view(dtype).reshape(shape)
    array.flags.writeable = False
    room = np.zeros(skip_result + size + 4, dtype)
    result = room[skip_result : skip_result + size].reshape(shape)
    plus_one(device, kernel, array, result)
    assert np.array_equal(result.reshape(-1).view(np.uint8), expected(array))
    bytes_around = np.delete(room.view(np.uint8), np.s_[skip_result * item : (skip_result + size) * item])
    assert not bytes_around.any()


def test_pages_of_a_mapped_file_are_read_in_place(device: Device, kernel: cl.Kernel, tmp_path: Path) -> None:
    path = tmp_path / "data"
    np.arange(5000, dtype=np.float32).tofile(path)
    mapped = np.memmap(path, np.float32, mode="r")[3:4099]
    result = np.zeros(4096, np.float32)
    plus_one(device, kernel, mapped, result)
    assert np.array_equal(result.view(np.uint8), expected(mapped))
    with pytest.raises(ValueError, match="read-only"):
        HostBuffers(device).output(mapped)


def test_a_buffer_keeps_its_array(device: Device, kernel: cl.Kernel) -> None:
    host = HostBuffers(device)
    result = np.zeros(1 << 16, np.uint8)
    inputs, outputs = host.input(np.full(1 << 16, 6, np.uint8)), host.output(result)
    gc.collect()
    others = [np.full(1 << 16, 9, np.uint8) for _ in range(8)]  # would take the place of a freed array
    kernel.set_args(inputs, outputs, 1 << 16)
    cl.enqueue_nd_range_kernel(device.queue, kernel, (2,), (1,))
    host.finish([outputs])
    assert (result == 7).all()
    assert len(others) == 8


@pytest.mark.parametrize("shape", [(0,), (0, 3), (4, 0)])
def test_arrays_without_items_are_buffers_too(device: Device, kernel: cl.Kernel, shape: tuple[int, ...]) -> None:
    plus_one(device, kernel, np.zeros(shape, np.float32), np.zeros(shape, np.float32))


def test_strided_arrays_are_refused(device: Device) -> None:
    with pytest.raises(AssertionError):
        HostBuffers(device).input(np.zeros((4, 4))[:, 1])


# -- device memory --------------------------------------------------------------------------------


@given(st.integers(0, 1 << 40))
def test_size_classes_waste_an_eighth_at_most(size: int) -> None:
    room = size_class(size)
    assert room >= size
    assert room <= max(size + 256, size * 1.125)
    assert size_class(room) == room
    assert size_class(size + 1) >= room


def test_upload_and_download(device: Device) -> None:
    arena, transfers = DeviceArena(device), Transfers(device, 0)
    for dtype in (np.float32, np.bool_, ml_dtypes.bfloat16):
        for shape in ((), (0,), (3, 5), (1000,)):
            array = np.ones(shape, dtype)
            array.flags.writeable = False
            buffer = arena.take(array.nbytes)
            transfers.upload(array, buffer, device.queue)
            back = np.zeros(shape, dtype)
            transfers.download(buffer, back, device.queue)
            assert np.array_equal(array, back)
            arena.give(buffer)
    arena.close()


def test_buffers_given_back_are_used_again(device: Device) -> None:
    arena = DeviceArena(device)
    first = arena.take(5000)
    assert arena.lent_bytes == arena.allocated_bytes == first.size == size_class(5000)
    arena.give(first)
    assert (arena.lent_bytes, arena.allocated_bytes) == (0, first.size)
    assert arena.take(4999) is first
    second = arena.take(5000)
    assert second is not first
    assert arena.peak_bytes == 2 * first.size
    arena.close()
    arena.close()
    assert (arena.lent_bytes, arena.allocated_bytes, arena.peak_bytes) == (0, 0, 2 * first.size)


@given(st.lists(st.one_of(st.integers(1, 9000), st.just(None)), max_size=60))
@settings(max_examples=40, deadline=None)
def test_the_limit_holds_and_accounts_balance(steps: list[int | None]) -> None:
    """Numbers take, None gives the oldest back."""
    limit = 20_000
    arena = DeviceArena(select_device("cpu", needs_float64=False), limit)
    lent: list[cl.Buffer] = []
    for step in steps:
        if step is None:
            if lent:
                arena.give(lent.pop(0))
        elif sum(buffer.size for buffer in lent) + size_class(step) <= limit:
            lent.append(arena.take(step))
        else:
            with pytest.raises(RunError, match="cannot allocate a buffer") as caught:
                arena.take(step)
            assert str(limit) in str(caught.value)
        assert arena.lent_bytes == sum(buffer.size for buffer in lent) <= arena.allocated_bytes <= limit
        assert arena.allocated_bytes <= arena.peak_bytes <= limit
        assert all(a is not b for a, b in itertools.combinations(lent, 2))
    arena.close()
    assert arena.allocated_bytes == 0


def test_a_device_that_is_full_is_an_error_with_numbers(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    arena = DeviceArena(device)
    waiting = arena.take(1000)
    arena.give(waiting)
    tries = []

    def full(*args: object, **kwargs: object) -> None:
        tries.append(arena.allocated_bytes)
        raise cl.MemoryError(cl._cl._ErrorRecord(msg="full", code=-4, routine="clCreateBuffer"))

    monkeypatch.setattr(cl, "Buffer", full)
    with pytest.raises(RunError, match=f"cannot allocate a buffer of {size_class(70_000)} bytes"):
        arena.take(70_000)
    assert tries == [size_class(1000), 0], "what waits is released before giving up"


def test_what_kernels_hand_on_is_aligned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Intel's runtime gives each buffer of other memory a copy of its own, so the next launch would not see it."""
    made = HostBuffers._made
    written: set[tuple[int, int]] = set()
    read: set[tuple[int, int]] = set()

    def seen(buffers: HostBuffers, array: np.ndarray, flags: int) -> cl.Buffer:
        (written if flags & cl.mem_flags.READ_WRITE else read).add((array.ctypes.data, array.nbytes))
        return made(buffers, array, flags)

    monkeypatch.setattr(HostBuffers, "_made", seen)
    model = fc.models.load(write_model(tmp_path / "model.gguf", block_count=1, kind="F32"))
    tokens = np.arange(40, dtype=np.int32)
    with model.logits(fc.feed(dtype="int32"), context=100).flow(device="cpu") as flow:
        for piece in np.split(tokens, [1, 2, 3, 12]):
            flow.send(piece)
            flow.receive()
    handed_on = written & read
    # Scores are results, which nothing reads.
    scores = len(model.tokenizer) * 4
    caches = {(address, size) for address, size in written if size >= 100 * 32 * 4 and size % scores}
    assert handed_on
    assert len(caches) >= 2
    assert {address % ALIGNMENT for address, _ in handed_on | caches} == {0}
