"""Runs, flows and asynchronous iterables in asyncio, as in trio; what hangs fails."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio

import flowcompute as fc
from flowcompute.errors import EventLoopWarning, RunError
from tests.runtime.feeding import X, assert_no_threads, failing, feed, numbers
from tests.runtime.loops import LOOPS, in_asyncio, in_trio
from tests.support.slow import slow_but


async def batches(count: int = 4, ended: list[str] | None = None) -> AsyncIterator[np.ndarray]:
    """Batches that need asyncio's loop and a task: a time-out, a queue, and a task of their own."""
    queue: asyncio.Queue[np.ndarray] = asyncio.Queue(1)

    async def fill() -> None:
        for index in range(count):
            await queue.put(np.full((3, 2), index, np.float32))

    filling = asyncio.create_task(fill())
    try:
        for _ in range(count):
            async with asyncio.timeout(600):
                yield await queue.get()
    finally:
        filling.cancel()
        await asyncio.sleep(0)
        if ended is not None:
            ended.append("ended")


WANTED = np.repeat(np.arange(4, dtype=np.float32), 3)[:, None] * np.ones(2, np.float32)


def stream(iterable: Any) -> fc.Element:
    return fc.iterate(iterable, shape=(2,), dtype="float32")


# -- runs -----------------------------------------------------------------------------------


@LOOPS
def test_a_run_is_awaited_and_the_loop_goes_on(library: Any) -> None:
    x = fc.source(X)

    async def test() -> tuple[Any, Any, Any]:
        run = await fc.arun(x.sum(axis=0), device="numpy")
        assert run.value.tolist() == X.sum(axis=0).tolist()
        two = await fc.aresolve(x.sum(axis=0), x.max(axis=0), device="numpy")
        return (await x.sum(axis=0).aresolve(device="numpy"), *two)

    one, two, most = library(test)
    np.testing.assert_array_equal(one, X.sum(axis=0))
    np.testing.assert_array_equal(two, X.sum(axis=0))
    np.testing.assert_array_equal(most, X.max(axis=0))
    assert_no_threads()


def test_other_tasks_work_meanwhile() -> None:
    """The run waits for a task of the loop: it could not end if it held up the loop."""
    go = threading.Event()

    async def test() -> Any:
        job = fc.host(lambda batch: go.wait(20) and batch, fc.source(X)).sum(axis=0)
        waiting = asyncio.create_task(job.aresolve(device="numpy"))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(go.set)
        return await waiting

    np.testing.assert_array_equal(in_asyncio(test), X.sum(axis=0))


def test_a_started_run_is_awaited() -> None:
    async def test() -> Any:
        run = fc.start(fc.source(X).sum(axis=0), device="numpy")
        assert await run is run
        assert await run is run
        return run.value

    np.testing.assert_array_equal(in_asyncio(test), X.sum(axis=0))


@LOOPS
def test_an_awaited_run_fails_with_its_error(library: Any) -> None:
    async def test() -> None:
        with pytest.raises(fc.RunError, match="ZeroDivisionError") as told:
            await fc.host(lambda batch: 1 // 0, fc.source(X)).aresolve(device="numpy")
        assert told.value.site.file == __file__
        with pytest.raises(TypeError, match='cannot aresolve: got option "memroy"'):
            await fc.source(X).aresolve(memroy=1)
        with pytest.raises(fc.SpecError, match="arun: cannot take what is no element"):
            await fc.arun(3)

    library(test)
    assert_no_threads()


@LOOPS
def test_cancelling_stops_the_run_and_leaves_nothing(library: Any, tmp_path: Path) -> None:
    begun = threading.Event()

    def slow(batch: np.ndarray) -> np.ndarray:
        begun.set()
        return batch

    endless = fc.iterate(itertools.repeat(np.ones((8, 2), "f4")), shape=(2,), dtype="float32")
    job = fc.host(slow, endless) >> fc.save(tmp_path / "y.npy")

    async def in_trio_() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: job.arun(device="numpy"))
            await trio.to_thread.run_sync(begun.wait)
            nursery.cancel_scope.cancel()

    async def in_asyncio_() -> None:
        task = asyncio.create_task(job.arun(device="numpy"))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    library(in_trio_ if library is in_trio else in_asyncio_)
    assert list(tmp_path.iterdir()) == []
    assert_no_threads()


def test_a_blocking_call_in_a_loop_says_so() -> None:
    async def test() -> None:
        x = fc.source(X)
        for block in (lambda: x.resolve(device="numpy"), lambda: fc.run(x, device="numpy")):
            with pytest.warns(EventLoopWarning, match=r"blocks the event loop.*await fc\.aresolve") as told:
                block()
            assert told[0].filename == __file__
        with pytest.warns(EventLoopWarning, match="blocks the event loop"), feed().flow(device="numpy") as flow:
            flow.send(X)

    in_asyncio(test)


def test_what_is_called_in_a_thread_of_asyncio_says_nothing() -> None:
    async def test() -> Any:
        return await asyncio.to_thread(fc.source(X).sum(axis=0).resolve, device="numpy")

    np.testing.assert_array_equal(in_asyncio(test), X.sum(axis=0))


def program(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(fc.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


SIGNALLED = """
import asyncio, os, itertools, signal, sys
import numpy as np, flowcompute as fc

signal.signal(signal.SIGINT, signal.default_int_handler)

async def endless():
    while True:
        await asyncio.sleep(0)
        yield np.ones((64, 2), "f4")

def press(batch):
    os.kill(os.getpid(), int(sys.argv[1]))
    return batch

async def main():
    x = fc.iterate(itertools.repeat(np.ones((64, 2), "f4")) if sys.argv[2] == "plain" else endless(),
                   shape=(2,), dtype="float32")
    await fc.arun(fc.host(press, x) >> fc.save("y.npy"), device="numpy")

asyncio.run(main())
"""


@pytest.mark.parametrize("what", slow_but(["asynchronous"], ["plain", "asynchronous"]))
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_signal_ends_an_awaited_run(tmp_path: Path, number: int, code: int, what: str) -> None:
    done = program(tmp_path, SIGNALLED, str(int(number)), what)
    assert done.returncode == code, done.stderr
    assert list(tmp_path.iterdir()) == []


FROZEN = """
import asyncio, os, signal, sys
import numpy as np, flowcompute as fc

sent = []

def press(batch):
    if not sent and os.path.exists("kept"):
        sent.append(os.kill(os.getpid(), signal.SIGTERM))
    return batch

async def main():
    x = fc.range(4_000_000, dtype="float32")
    job = fc.host(press, x).sum()
    print(await job.aresolve(device="numpy", checkpoint="kept", strategy=fc.Strategy(batch_bytes=4096), throttle=0.001))

asyncio.run(main())
"""


def test_a_signal_freezes_an_awaited_run(tmp_path: Path) -> None:
    done = program(tmp_path, FROZEN)
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")
    frozen = fc.thaw(tmp_path / "kept")
    assert not frozen.done
    assert frozen.progress.items > 0


# -- asynchronous iterables -----------------------------------------------------------------


def test_an_asynchronous_iterable_is_read_in_the_loop_that_awaits() -> None:
    ended: list[str] = []

    async def test() -> Any:
        await asyncio.sleep(0)
        return await (stream(batches(ended=ended)) * 2).aresolve(device="numpy")

    np.testing.assert_array_equal(in_asyncio(test), WANTED * 2)
    assert ended == ["ended"]
    assert_no_threads()


def test_it_is_read_for_a_started_run_too() -> None:
    async def test() -> Any:
        return (await fc.start(stream(batches()) * 2, device="numpy")).value

    np.testing.assert_array_equal(in_asyncio(test), WANTED * 2)


def test_an_iterable_that_is_not_read_to_its_end_is_closed_in_its_loop() -> None:
    ended: list[str] = []

    async def test() -> Any:
        got = await stream(batches(10**6, ended))[:3].aresolve(device="numpy")
        assert ended == ["ended"]
        return got

    np.testing.assert_array_equal(in_asyncio(test), WANTED[:3])


def test_an_iterable_that_waits_for_ever_is_cancelled_with_the_run() -> None:
    ended: list[str] = []

    async def test() -> None:
        waits = asyncio.Event()

        async def silent() -> AsyncIterator[np.ndarray]:
            try:
                yield np.ones((1, 2), np.float32)
                waits.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append("ended")

        task = asyncio.create_task(stream(silent()).aresolve(device="numpy"))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["ended"]

    in_asyncio(test)
    assert_no_threads()


def test_an_iterable_that_fails_in_asyncio_names_the_users_line() -> None:
    async def broken() -> AsyncIterator[np.ndarray]:
        yield np.ones((1, 2), np.float32)
        await asyncio.sleep(0)
        raise ValueError("no more")

    async def test() -> None:
        with pytest.raises(fc.SourceError, match="ValueError: no more") as told:
            await stream(broken()).aresolve(device="numpy")
        assert told.value.site.file == __file__

    in_asyncio(test)


def test_waiting_for_an_iterable_in_its_own_loop_is_refused() -> None:
    async def test() -> None:
        run = fc.start(stream(batches()), device="numpy")
        with pytest.raises(RunError, match="would wait for itself") as told:
            run.wait()
        assert "await run" in told.value.hint
        assert len((await run).value) == 12

    in_asyncio(test)


def test_without_a_loop_the_error_says_what_to_do() -> None:
    async def napping() -> AsyncIterator[np.ndarray]:
        await asyncio.sleep(1e-9)
        yield np.ones((1, 2), np.float32)

    with pytest.raises(fc.SourceError, match="no running event loop") as told:
        stream(napping()).resolve(device="numpy")
    assert "await fc.aresolve(...)" in told.value.hint


def test_trio_reads_an_iterable_that_awaits_trio_in_both_forms() -> None:
    async def counted() -> AsyncIterator[np.ndarray]:
        for index in range(4):
            await trio.lowlevel.checkpoint()
            yield np.full((3, 2), index, np.float32)

    np.testing.assert_array_equal(stream(counted()).resolve(device="numpy"), WANTED)
    np.testing.assert_array_equal(in_trio(lambda: stream(counted()).aresolve(device="numpy")), WANTED)


# -- flows ----------------------------------------------------------------------------------


def test_a_flow_gives_each_send_and_what_was_still_held() -> None:
    x = feed()

    async def test() -> list[np.ndarray]:
        async with fc.window(x, 3, pad="edge").sum(axis=1).flow() as flow, asyncio.TaskGroup() as group:

            async def produce() -> None:
                for start in range(0, 60, 5):
                    await flow.send(X[start : start + 5])
                await flow.aclose_input()

            group.create_task(produce())
            return [out async for out in flow]

    received = in_asyncio(test)
    wanted = fc.window(fc.source(X), 3, pad="edge").sum(axis=1).resolve(progress=False)
    assert len(received) == 13
    np.testing.assert_array_equal(np.concatenate(received), wanted)
    assert_no_threads()


def test_a_slow_receiver_stalls_the_sender() -> None:
    async def test() -> None:
        async with (feed() * 2).flow(device="numpy") as flow:
            for _ in range(2):
                await flow.send(X[:1])
            third = asyncio.create_task(flow.send(X[:1]))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not third.done()
            await flow.receive()
            await third
            assert len(await flow.resolve()) == 2

    in_asyncio(test)


def test_a_failure_is_told_to_both_ends() -> None:
    async def test() -> None:
        async with failing(fc.feed(dtype="float32")).flow(device="numpy") as flow:
            waiting = asyncio.create_task(flow.receive())
            await asyncio.sleep(0)
            with pytest.raises(RunError, match="seven"):
                await flow.send(numbers(7))
            with pytest.raises(RunError, match="the flow has failed"):
                await waiting

    in_asyncio(test)
    assert_no_threads()


def test_cancelling_a_flow_leaves_nothing() -> None:
    async def test() -> None:
        async with (feed() * 2).flow(device="numpy") as flow:
            await flow.send(X)
            await flow.receive()
            waiting = asyncio.create_task(flow.receive())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await flow.send(X)
            np.testing.assert_array_equal(await flow.receive(), X * 2)
        with pytest.raises(RunError):
            await flow.resolve()

    in_asyncio(test)
    assert_no_threads()


def test_a_flow_is_frozen_and_goes_on(tmp_path: Path) -> None:
    async def test() -> Any:
        total = feed().sum(axis=0)
        async with total.flow(device="numpy", mode="cumulative") as flow:
            await flow.send(X)
            await flow.freeze(tmp_path / "kept")
        async with fc.thaw(tmp_path / "kept").flow(device="numpy") as flow:
            await flow.send(X)
            return await flow.resolve()

    np.testing.assert_allclose(in_asyncio(test), 2 * X.sum(axis=0), rtol=1e-6)
