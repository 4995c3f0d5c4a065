"""Buffers: aligned, made once, lent and given back."""

from __future__ import annotations

import numpy as np
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.errors import RunError
from flowcompute.observe import EventStream, StageEntered, StageState
from flowcompute.runtime.channels.batch_pool import ALIGNMENT, MemoryTracker, Pool, aligned_empty
from flowcompute.runtime.channels.channel import Channel, Message
from flowcompute.runtime.events.stage_reporter import StageReporter
from flowcompute.runtime.events.stage_totals import StageTotals
from flowcompute.spec import SUPPORTED_DTYPES


@given(shape=st.lists(st.integers(0, 7), max_size=4), dtype=st.sampled_from(SUPPORTED_DTYPES))
def test_memory_is_aligned(shape, dtype):
    array = aligned_empty(tuple(shape), dtype, lambda _: None)
    assert array.shape == tuple(shape)
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    assert array.flags.writeable
    if array.size:
        assert array.ctypes.data % ALIGNMENT == 0
        array[...] = 1
        assert (array == 1).all()


async def test_a_pool_lends_no_more_than_it_has_and_the_same_again():
    tracker = MemoryTracker(0)
    pool = Pool(tracker, 2, 5, (3,), np.dtype(np.float32))
    assert tracker.held_bytes == 0, "nothing is made before it is needed"
    first, second = pool.acquire_nowait(), pool.acquire_nowait()
    assert pool.acquire_nowait() is None
    assert (tracker.lent, tracker.held_bytes, tracker.peak_bytes) == (2, 120, 120)
    assert not np.shares_memory(first.array, second.array)
    second.holders += 1
    second.release()
    assert pool.acquire_nowait() is None, "one holder is left"
    second.release()
    assert pool.acquire_nowait() is second
    first.release()
    second.release()
    with pytest.raises(AssertionError):
        second.release()
    pool.close()
    assert (tracker.lent, tracker.held_bytes, tracker.peak_bytes) == (0, 0, 120)


async def test_a_buffer_is_waited_for():
    pool = Pool(MemoryTracker(0), 1, 1, (), np.dtype(np.int8))
    buffer = pool.acquire_nowait()
    got = []

    async def borrow():
        got.append(await pool.acquire())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(borrow)
        await trio.testing.wait_all_tasks_blocked()
        assert not got
        buffer.release()
    assert got == [buffer]
    with pytest.raises(AssertionError):
        pool.close()
    buffer.release()
    pool.close()


def test_results_that_grow_stay_within_their_room():
    tracker = MemoryTracker(100)
    tracker.keep(60)
    tracker.keep(40)
    with pytest.raises(RunError, match="outgrows"):
        tracker.keep(1)
    assert tracker.peak_bytes == 100


async def test_a_channel_keeps_order_and_bound_and_says_who_waits(autojump_clock):
    stream, totals = EventStream(), StageTotals("a")
    stream.subscribe({StageEntered: totals.entered})
    producer, consumer = StageReporter("a", stream=stream), StageReporter("b")
    channel = Channel(producer, consumer, 2)
    array = np.zeros(1)
    received = []

    async def produce():
        for k in range(6):
            await channel.send(Message(k, k + 1, array, None))
        channel.finish()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        await trio.sleep(5)
        assert (producer.state, producer.detail) == (StageState.OUTPUT, "b")
        while (message := await channel.receive()) is not None:
            received.append(message.start)
    assert received == list(range(6))
    assert (consumer.state, consumer.detail) == (StageState.INPUT, "a")
    producer.enter(StageState.DONE)
    assert totals.row("source").wait_out_s == pytest.approx(5)
    assert await channel.receive() is None
    channel.close()


async def test_a_channel_that_is_closed_releases_what_nobody_took():
    tracker = MemoryTracker(0)
    pool = Pool(tracker, 2, 1, (), np.dtype(np.int8))
    channel = Channel(StageReporter("a"), StageReporter("b"), 2)
    for k in range(2):
        buffer = await pool.acquire()
        await channel.send(Message(k, k + 1, buffer.array, buffer))
    assert tracker.lent == 2
    channel.close()
    assert tracker.lent == 0
    pool.close()
