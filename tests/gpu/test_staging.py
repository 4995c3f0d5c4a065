"""Arrays that go through pinned memory in pieces arrive whole."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.pinning import stays_pinned
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.device.pinned_memory import PinnedMemory
from flowcompute.gpu.memory.device_buffers import DeviceArena
from flowcompute.gpu.memory.staging import MIN_BYTES, Staging
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.schedule.explain.applied_knobs import complete_strategy
from flowcompute.schedule.memory.in_flight import MOST_STAGING_BYTES, PIECE_BYTES, STAGING_BLOCKS, pinned, staging_bytes
from flowcompute.schedule.run_knobs import default_batch_bytes
from tests.gpu.faulty_driver import FaultyDriver
from tests.gpu.shapes import gpu_shaped, plan_for_gpu, resolve_on_gpu, twin


@pytest.fixture(scope="module")
def device() -> Device:
    return select_device("cpu", needs_float64=False)


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("size", [1, MIN_BYTES, PIECE_BYTES - 1, PIECE_BYTES, 7 * PIECE_BYTES + 17])
def test_bytes_go_there_and_come_back(device: Device, size: int, pieces: int) -> None:
    transfers, arena = Transfers(device, 2 * STAGING_BLOCKS * pieces * PIECE_BYTES), DeviceArena(device)
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    buffer = arena.take(size)
    for _ in range(2):
        sent = data.copy()
        transfers.upload(sent, buffer, device.queue)
        sent[:] = 0  # what was uploaded is the caller's again
        got = np.zeros(size, np.uint8)
        transfers.download(buffer, got, device.queue)
        np.testing.assert_array_equal(got, data)
        data = data[::-1].copy()
    transfers.close()
    transfers.close()
    arena.close()
    arena.close()
    assert not device.pinned.lent_bytes
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("flowcompute-copy")]


def test_small_arrays_and_small_budgets_pin_nothing(device: Device) -> None:
    assert not Staging(device, staging_bytes(8 << 20), threading.Lock()).takes(1 << 30)
    assert not Staging(device, MOST_STAGING_BYTES, threading.Lock()).takes(MIN_BYTES - 1)
    assert staging_bytes(1 << 40) == MOST_STAGING_BYTES
    assert staging_bytes(1 << 28) % (2 * STAGING_BLOCKS * PIECE_BYTES) == 0


def test_small_arrays_go_through_slots_and_may_change_at_once(device: Device) -> None:
    transfers, arena = Transfers(device, MOST_STAGING_BYTES), DeviceArena(device)
    sizes = [1, 5000, MIN_BYTES - 4, 1 << 20, 77, 1 << 16, 4096, 333]
    sent = [np.random.default_rng(size).integers(0, 256, size, np.uint8) for size in sizes]
    buffers = [arena.take(size) for size in sizes]

    def upload(half: int) -> None:
        for data, buffer in [*zip(sent, buffers, strict=True)][half::2]:
            mine = data.copy()
            events.append(transfers.upload(mine, buffer, device.upload_queue, lasting=True))
            mine[:] = 0

    events: list[object] = []
    threads = [threading.Thread(target=upload, args=(half,)) for half in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None not in events
    assert device.pinned.lent_bytes == pinned(MOST_STAGING_BYTES) - MOST_STAGING_BYTES > 0
    # Lines that lie apart are put together there.
    apart = np.arange(600, dtype=np.uint8).reshape(20, 30)[:, 4:20]
    event = transfers.upload(apart, buffers[1], device.upload_queue, lasting=True)
    assert event is not None
    event.wait()
    got = np.zeros(apart.size, np.uint8)
    transfers.download(buffers[1], got, device.queue)
    np.testing.assert_array_equal(got.reshape(apart.shape), apart)
    for i, (data, buffer) in enumerate(zip(sent, buffers, strict=True)):
        got = np.zeros(len(data), np.uint8)
        transfers.download(buffer, got, device.queue)
        assert i == 1 or (got == data).all()
    transfers.close()
    transfers.close()
    assert not device.pinned.lent_bytes
    arena.close()


def test_blocks_that_lie_beside_each_other_are_told_apart(device: Device) -> None:
    blocks = [device.pinned.take(8192) for _ in range(5)]
    for block in (blocks[3], blocks[0]):
        device.pinned.give(block)
    held = [device.pinned.holds(block[100:200]) and device.pinned.holds(block[::64]) for block in blocks]
    assert held == [False, True, True, False, True]
    assert not device.pinned.holds(np.empty(10))
    for block in (blocks[1], blocks[2], blocks[4]):
        device.pinned.give(block)


def test_a_failed_copy_is_told_and_the_next_one_works(device: Device) -> None:
    staging = Staging(device, STAGING_BLOCKS * PIECE_BYTES, threading.Lock())
    arena = DeviceArena(device)
    small, size = arena.take(PIECE_BYTES), 3 * PIECE_BYTES
    with pytest.raises(Exception, match=r"INVALID_VALUE|invalid"):
        staging.upload(np.zeros(size, np.uint8), small, device.queue)
    buffer, got = arena.take(size), np.zeros(size, np.uint8)
    staging.upload(np.full(size, 7, np.uint8), buffer, device.queue)
    staging.download(buffer, got, device.queue)
    assert (got == 7).all()
    staging.close()
    arena.close()


def test_transfers_share_a_ring_without_waiting_for_each_other(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowcompute.gpu.memory.staging.PIECE_BYTES", 4096)
    asking = threading.Lock()
    staging, arena = Staging(device, STAGING_BLOCKS * 4096, asking), DeviceArena(device)
    rng, size = np.random.default_rng(5), 40 * 4096 + 9
    sent = [rng.integers(0, 256, size, np.uint8) for _ in range(2 * STAGING_BLOCKS)]
    got = [np.zeros(size, np.uint8) for _ in sent]
    buffers = [arena.take(size) for _ in sent]

    def there_and_back(i: int) -> None:
        staging.upload(sent[i], buffers[i], device.queue)
        staging.download(buffers[i], got[i], device.queue)

    threads = [threading.Thread(target=there_and_back, args=(i,)) for i in range(len(sent))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    for one, other in zip(sent, got, strict=True):
        np.testing.assert_array_equal(other, one)
    staging.close()
    arena.close()


def test_pinned_memory_is_handed_out_again(device: Device) -> None:
    pinned = device.pinned
    first = pinned.take(5000)
    assert pinned.holds(first[7:900])
    assert not pinned.holds(np.zeros(9))
    again = select_device("cpu", needs_float64=False).pinned
    pinned.give(first)
    assert not pinned.holds(first)
    second = again.take(5000)
    assert second.ctypes.data == first.ctypes.data
    again.give(second)


def test_no_more_stays_pinned_than_is_said(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = PinnedMemory(device.context)
    monkeypatch.setattr("flowcompute.gpu.device.pinned_memory.MAX_FREE_BYTES", 1000)
    blocks = [pinned.take(size) for size in (400, 500, 600, 5000)]
    starts = [block.ctypes.data for block in blocks]
    for block in blocks:
        pinned.give(block)
    # The one that waited longest went, and the one that nobody could keep made no others go.
    assert (pinned.free_bytes, pinned.lent_bytes) == (600, 0)
    assert pinned.take(550).ctypes.data == starts[2]


def test_blocks_are_handed_out_again_for_a_little_less(device: Device) -> None:
    pinned = PinnedMemory(device.context)
    blocks = [pinned.take(size) for size in (1400, 1200, 900)]
    starts = [block.ctypes.data for block in blocks]
    for block in blocks:
        pinned.give(block)
    again = pinned.take(1000)
    assert (again.ctypes.data, len(again), pinned.free_bytes) == (starts[1], 1000, 2300)
    assert pinned.holds(again[990:])
    assert pinned.take(100).ctypes.data not in starts
    pinned.give(again)
    assert pinned.take(1200).ctypes.data == starts[1]


def test_a_job_of_large_batches() -> None:
    data = np.random.default_rng(3).standard_normal((1_000_000, 9), dtype=np.float32)
    x = fc.source(data)
    doubled, total = resolve_on_gpu(x * 2, x.max(axis=0), memory=1 << 28)
    np.testing.assert_array_equal(doubled, data * 2)
    np.testing.assert_array_equal(total, data.max(axis=0))
    assert ("pinned memory for transfers", pinned(staging_bytes(1 << 28))) in plan_for_gpu(x * 2).memory.items


def test_a_job_that_moves_little_pins_nothing() -> None:
    """Pinning tens of MiB would take longer than the job, and count against a plan of a few bytes."""
    few = fc.source(np.zeros((100, 9), np.float32))
    assert plan_for_gpu(few * 2).memory.host_bytes < 1 << 20
    # Nobody knows what a job moves whose streams have no known length.
    lengths = fc.feed((9,), "float32")
    assert ("pinned memory for transfers", pinned(MOST_STAGING_BYTES)) in plan_for_gpu(
        lengths * 2, memory="64GiB"
    ).memory.items
    assert staging_bytes(1 << 40, 2.0 * MOST_STAGING_BYTES) == MOST_STAGING_BYTES
    assert staging_bytes(1 << 40, 4.0 * STAGING_BLOCKS * PIECE_BYTES - 1) == 0


def test_arrays_are_pinned_where_they_lie(device: Device, tmp_path: Path) -> None:
    pinned, data = device.pinned, np.arange(5000, dtype=np.float32).reshape(50, 100)
    assert pinned.pin(data)
    assert pinned.pin(data)
    assert pinned.holds(data[3:9])
    assert not pinned.holds(data.copy())
    pinned.unpin(data)
    assert pinned.holds(data)
    pinned.unpin(data)
    assert not pinned.holds(data)
    np.save(tmp_path / "x.npy", data)
    assert not pinned.pin(np.load(tmp_path / "x.npy", mmap_mode="r")[1:])
    with FaultyDriver(0):
        assert not pinned.pin(data)
    assert not pinned.holds(data)


def test_what_is_pinned_for_life_is_not_pinned_again(device: Device) -> None:
    data = fc.pinned(np.arange(5000, dtype=np.float32))
    pinned = device.pinned
    assert not pinned.pin(data)
    assert not pinned.pin(data[100:200])
    assert pinned.holds(data)
    assert not pinned._in_place
    place = data.ctypes.data, data.nbytes
    assert place in pinned._pinned_arrays
    del data
    assert place not in pinned._pinned_arrays


def test_what_one_device_has_pinned_another_pins_as_well(device: Device) -> None:
    pinned, other = device.pinned, twin(device).pinned
    block = pinned.take(8192)
    assert pinned.holds(block[100:200])
    assert other.holds(block[100:200])
    assert not other.holds(np.empty(8192, np.uint8))
    assert not stays_pinned(block), "what is made of it is copied"
    pinned.give(block)
    assert not pinned.holds(block), "it may be somebody else's"
    assert len(other._pinned_arrays) == 1
    del block
    pinned._free.clear()
    assert not other._pinned_arrays


@pytest.mark.parametrize("part", [np.s_[:], np.s_[7:31], np.s_[:, 90:], np.s_[3:4, 5:9], np.s_[:0]])
def test_the_device_reads_parts_of_what_is_pinned(device: Device, part: tuple[slice, ...]) -> None:
    data = np.random.default_rng(1).standard_normal((50, 100), dtype=np.float32)
    transfers, arena = Transfers(device, 0), DeviceArena(device)
    buffer, got = arena.take(data.nbytes), np.zeros_like(data)
    device.pinned.pin(data)
    event = transfers.upload(data[part], buffer, device.queue, lasting=True)
    assert (event is None) == (data[part].size == 0)
    transfers.download(buffer, got, device.queue)
    device.pinned.unpin(data)
    np.testing.assert_array_equal(got.ravel()[: data[part].size], data[part].ravel())
    transfers.close()
    arena.close()


@pytest.mark.parametrize(("length", "mib"), [((1 << 30) - 1, 64), (1 << 30, 128)])
def test_long_streams_cross_a_bus_in_larger_batches(length: int, mib: int) -> None:
    # Memory that nobody has touched takes none.
    x = fc.source(np.zeros(length, np.float32))
    plans = [plan_for_gpu(x * 2 >> fc.discard(), memory=8 << 30, strategy=one) for one in (None, fc.Strategy(depth=2))]
    assert [plan.passes[0].batch_items for plan in plans] == [mib << 18] * 2
    # What is kept for the next run makes the same plan.
    again = plan_for_gpu(x * 2 >> fc.discard(), memory=8 << 30, strategy=complete_strategy(plans[0]))
    assert again.passes[0].batch_items == mib << 18
    asked = plan_for_gpu(x * 2 >> fc.discard(), memory=8 << 30, strategy=fc.Strategy(batch_bytes=64 << 20))
    assert asked.passes[0].batch_items == 64 << 18


@pytest.mark.parametrize(("gib", "count", "mib"), [(4, 1, 128), (4, 2, 64), (8, 2, 128)])
def test_several_devices_have_larger_batches_where_each_has_many(gib: int, count: int, mib: int) -> None:
    capabilities = dataclasses.replace(gpu_shaped().capabilities, devices=count)
    plan = plan_for_gpu(fc.source(np.zeros(gib << 28, np.float32)) * 2 >> fc.discard(), memory=8 << 30)
    assert default_batch_bytes(capabilities, plan.passes) == mib << 20
