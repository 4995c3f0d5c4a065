"""Flows in trio: back-pressure, ends, failures and cancellation; what hangs fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import trio
import trio.testing

import flowcompute as fc
from flowcompute.errors import RunError
from flowcompute.runtime.flows.flows import AsyncFlow
from tests.runtime.feeding import X, assert_no_threads, failing, feed, numbers
from tests.runtime.loops import in_trio


def test_a_plain_flow_would_block_the_loop() -> None:
    async def test() -> None:
        with pytest.raises(RunError, match="block the event loop"), feed().flow(device="numpy"):
            pass

    in_trio(test)


def test_iterating_gives_each_send_and_what_was_still_held() -> None:
    x = feed()

    async def test() -> list[np.ndarray]:
        received = []
        async with fc.window(x, 3, pad="edge").sum(axis=1).flow() as flow, trio.open_nursery() as nursery:

            async def produce() -> None:
                for start in range(0, 60, 5):
                    await flow.send(X[start : start + 5])
                await flow.aclose_input()
                await flow.aclose_input()

            nursery.start_soon(produce)
            received.extend([out async for out in flow])
        return received

    received = in_trio(test)
    wanted = fc.window(fc.source(X), 3, pad="edge").sum(axis=1).resolve(progress=False)
    assert len(received) == 13
    np.testing.assert_array_equal(np.concatenate(received), wanted)
    assert_no_threads()


def test_resolving_after_the_input_was_closed_ends_the_streams_once() -> None:
    async def test() -> Any:
        x = fc.feed(dtype="float32")
        padded, runs = fc.window(x, 3, pad="edge").sum(axis=1), fc.cut(x, 2, tail="emit").sum(axis=1)
        async with fc.open_flow(padded, runs, x.sum(axis=0), device="numpy") as flow:
            await flow.send(numbers(1, 2, 3))
            first = await flow.receive()
            await flow.aclose_input()
            return first, await flow.resolve()

    first, rest = in_trio(test)
    for value, wanted in zip((*first, *rest), ([4, 6], [3], [8], [3], 6), strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_send_waits_while_two_results_wait() -> None:
    async def test() -> None:
        async with (feed() * 2).flow(device="numpy") as flow:
            sent = 0

            async def produce() -> None:
                nonlocal sent
                for _ in range(5):
                    await flow.send(X[:1])
                    sent += 1

            async def settled() -> int:
                while True:
                    await trio.testing.wait_all_tasks_blocked()
                    if not trio.to_thread.current_default_thread_limiter().borrowed_tokens:
                        return sent

            async with trio.open_nursery() as nursery:
                nursery.start_soon(produce)
                assert [await settled()] == [2]
                for received in (1, 2, 3):
                    await flow.receive()
                    assert await settled() == 2 + received
                await flow.receive()
            assert sent == 5

    in_trio(test)


@pytest.mark.parametrize("doing", ["send", "receive", "iterate"])
def test_closing_wakes_who_waits(doing: str) -> None:
    said = {"send": "the input is closed", "receive": "nothing to receive any more", "iterate": None}[doing]

    async def test() -> None:
        async with (feed() * 2).flow(device="numpy") as flow:

            async def wait() -> None:
                if doing == "send":
                    for _ in range(3):
                        await flow.send(X[:1])
                elif doing == "receive":
                    await flow.receive()
                else:
                    async for _ in flow:
                        pass

            async def wait_and_see() -> None:
                if said is None:
                    await wait()
                    return
                with pytest.raises(RunError, match=said):
                    await wait()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait_and_see)
                while not flow._changed.waiting:
                    await trio.lowlevel.checkpoint()
                await flow.aclose()
                await flow.aclose()
            for use in (lambda: flow.send(X), flow.receive, flow.resolve):
                with pytest.raises(RunError):
                    await use()

    in_trio(test)
    assert_no_threads()


def test_a_flow_of_folds_gives_nothing_to_receive() -> None:
    async def test() -> None:
        async with feed().sum(axis=0).flow(device="numpy") as flow:
            with pytest.raises(RunError, match="one value for all records"):
                await flow.receive()
            await flow.send(X)
            await flow.aclose_input()
            assert [out async for out in flow] == []
            np.testing.assert_array_equal(await flow.resolve(), X.sum(axis=0))

    in_trio(test)


@pytest.mark.parametrize("doing", ["receive", "iterate"])
def test_who_receives_is_told_of_a_failure(doing: str) -> None:
    async def consume(flow: AsyncFlow, received: list[np.ndarray]) -> None:
        if doing == "iterate":
            async for out in flow:
                received += [out]
        while True:
            received.append(await flow.receive())

    async def test() -> None:
        received: list[np.ndarray] = []
        async with failing(fc.feed(dtype="float32")).flow(device="numpy") as flow, trio.open_nursery() as nursery:

            async def told() -> None:
                with pytest.raises(RunError, match="the flow has failed"):
                    await consume(flow, received)

            nursery.start_soon(told)
            await flow.send(numbers(1))
            with pytest.raises(RunError, match="seven"):
                await flow.send(numbers(7))
        np.testing.assert_array_equal(received, [[1]])

    in_trio(test)


def test_a_cut_short_input_is_no_silent_end() -> None:
    async def test() -> list[np.ndarray]:
        received = []
        async with fc.cut(fc.feed(dtype="float32"), 2).flow(device="numpy") as flow:
            await flow.send(numbers(1, 2, 3))
            with pytest.raises(RunError, match="whole run"):
                await flow.aclose_input()
            received.append(await flow.receive())
            with pytest.raises(RunError, match="the flow has failed"):
                await anext(aiter(flow))
        return received

    np.testing.assert_array_equal(in_trio(test), [[[1, 2]]])


def test_an_input_whose_closing_was_cancelled_is_open() -> None:
    async def test() -> None:
        async with fc.cut(fc.feed(dtype="float32"), 2, tail="pad").flow(device="numpy") as flow:
            await flow.send(numbers(1))
            with trio.CancelScope() as scope:
                scope.cancel()
                await flow.aclose_input()
            await flow.send(numbers(2, 3))
            await flow.aclose_input()
            np.testing.assert_array_equal(np.concatenate([out async for out in flow]), [[1, 2], [3, 0]])
            with pytest.raises(RunError, match="the input is closed"):
                await flow.send(numbers(4))

    in_trio(test)


def test_cancelling_leaves_nothing() -> None:
    async def test() -> None:
        with trio.CancelScope() as scope:
            async with (feed() * 2).flow(device="numpy") as flow:
                await flow.send(X)
                scope.cancel()
                await flow.receive()
                await flow.receive()
        assert scope.cancelled_caught
        with pytest.raises(RunError):
            await flow.resolve()

    in_trio(test)
    assert_no_threads()
