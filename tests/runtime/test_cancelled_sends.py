"""Sends to flows that are cancelled before they begin, and while they compute, in asyncio and trio."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
import trio

import flowcompute as fc
from tests.runtime.feeding import assert_no_threads, numbers
from tests.runtime.loops import LOOPS, in_trio


@LOOPS
def test_a_send_that_is_cancelled_before_it_begins_takes_nothing(library: Any) -> None:
    async def cancelled(flow: Any) -> None:
        if library is in_trio:
            with trio.CancelScope() as scope:
                scope.cancel()
                await flow.send(numbers(1))
            assert scope.cancelled_caught
        else:
            sending = asyncio.create_task(flow.send(numbers(1)))
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending

    async def test() -> None:
        async with (fc.feed(dtype="float32") * 2).flow(device="numpy") as flow:
            await cancelled(flow)
            await flow.send(numbers(3))
            np.testing.assert_array_equal(await flow.receive(), [6])
            assert flow._core.waiting == 0

    library(test)


@LOOPS
def test_what_a_send_computes_while_it_is_cancelled_is_received_once(library: Any) -> None:
    began, go = threading.Event(), threading.Event()

    def slowly(array: np.ndarray) -> np.ndarray:
        began.set()
        assert go.wait(600)
        return array * 2

    async def cancelled(flow: Any) -> None:
        if library is in_trio:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(flow.send, numbers(1))
                    await trio.to_thread.run_sync(began.wait)
                    scope.cancel()
                    go.set()
        else:
            sending = asyncio.create_task(flow.send(numbers(1)))
            await asyncio.to_thread(began.wait)
            sending.cancel()
            go.set()
            with pytest.raises(asyncio.CancelledError):
                await sending

    async def test() -> None:
        x = fc.feed(dtype="float32")
        async with fc.host(slowly, x, shape=(), dtype="float32").flow(device="numpy") as flow:
            await cancelled(flow)
            np.testing.assert_array_equal(await flow.receive(), [2])
            await flow.send(numbers(3))
            np.testing.assert_array_equal(await flow.receive(), [6])

    library(test)
    assert_no_threads()
