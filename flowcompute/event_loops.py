"""Waiting without blocking, in asyncio as in trio: for a thread, for a run, and for a coroutine of another loop.

A wait that is cancelled asks what it waits for to end, and goes on until it has ended. Nothing is lost thereby that a
thread opened, and no buffer is left to somebody who still writes into it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from flowcompute.imports import LateModule

if TYPE_CHECKING:
    import asyncio

    import trio
else:
    asyncio, trio = LateModule("asyncio"), LateModule("trio")


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def in_trio_task() -> bool:
    """Check whether this code runs in a task of trio. Nothing does before somebody has imported trio."""
    return "trio" in sys.modules and trio.lowlevel.in_trio_task()


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """Return the asyncio loop that is running in this thread; None in plain code and in trio's tasks."""
    if "asyncio" not in sys.modules or in_trio_task():
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def blocks_asyncio() -> bool:
    """Check whether waiting in this thread would hold up an asyncio loop that others use.

    Cells of a notebook run in a loop, and are waited for anyway.
    """
    if asyncio_loop() is None:
        return False
    shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return shell is None or shell() is None


async def completed(future: Future[T], stop: Callable[[], object] = lambda: None) -> T:
    """Wait for what another thread completes.

    Args:
        future: of the other thread; it is never cancelled.
        stop: called when the wait is cancelled, to have the future completed soon.

    Returns:
        Its value, also where the wait was cancelled in trio, which looks for that later.

    Raises:
        BaseException: what the future holds, or the cancellation.
    """
    if in_trio_task():
        there, token = trio.Event(), trio.lowlevel.current_trio_token()
        future.add_done_callback(lambda _: _tell(lambda: token.run_sync_soon(there.set)))
        try:
            await there.wait()
        except trio.Cancelled:
            stop()
            with trio.CancelScope(shield=True):
                await there.wait()
            if future.exception() is None:
                raise
        return future.result()
    return await _to_the_end(asyncio.wrap_future(future), stop)


async def in_thread(function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call `function(*args)` in a thread. Once it has begun it is waited for, also where the wait is cancelled."""
    if in_trio_task():
        return await trio.to_thread.run_sync(function, *args)
    future: Future[T] = Future()
    context = copy_context()

    def deliver(result: Any) -> None:
        try:
            future.set_result(result.unwrap())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(error)

    # Trio keeps idle threads for the next call, and asyncio's own pool has few: who waits there would hold up others.
    trio.lowlevel.start_thread_soon(lambda: context.run(function, *args), deliver, "flowcompute-call")
    return await completed(future)


async def in_loop(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine as a task of an asyncio loop in another thread. A cancelled wait cancels the task.

    Raises:
        RuntimeError: if the loop has ended, or ends meanwhile.
    """
    future: Future[T] = Future()
    tasks: list[asyncio.Task[T]] = []

    def finish(task: asyncio.Task[T]) -> None:
        error = RuntimeError("the task was cancelled by its loop") if task.cancelled() else task.exception()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())

    def begin() -> None:
        tasks.append(loop.create_task(coroutine))
        tasks[0].add_done_callback(finish)

    def cancel() -> None:
        # Called by the loop after `begin`.
        tasks[0].cancel()

    if not loop.is_running():
        coroutine.close()
        raise RuntimeError("the asyncio loop of this run has ended")
    loop.call_soon_threadsafe(begin)
    return await completed(future, lambda: _tell(lambda: loop.call_soon_threadsafe(cancel)))


async def to_the_end(function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await `function()` to its end, also where the wait is cancelled, which is told afterwards."""
    if in_trio_task():
        with trio.CancelScope(shield=True):
            return await function()
    return await _to_the_end(asyncio.ensure_future(function()), lambda: None)


async def _to_the_end(future: asyncio.Future[T], stop: Callable[[], object]) -> T:
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
            stop()
    if cancelled is not None and future.exception() is None:
        raise cancelled
    return future.result()


def _tell(call: Callable[[], object]) -> None:
    """Call what tells a loop; one that has ended needs no telling."""
    with suppress(RuntimeError):
        call()


class Changes:
    """Tasks that wait until something has changed, in the library of the task that makes it."""

    def __init__(self) -> None:
        self._lot = trio.lowlevel.ParkingLot() if in_trio_task() else None
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def waiting(self) -> int:
        """The number of tasks that wait."""
        return len(self._waiting) if self._lot is None else self._lot.statistics().tasks_waiting

    async def wait(self) -> None:
        """Wait for the next change."""
        if self._lot is not None:
            await self._lot.park()
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)

    def tell(self) -> None:
        """Wake all that wait."""
        if self._lot is not None:
            self._lot.unpark_all()
        for future in self._waiting:
            if not future.done():
                future.set_result(None)


def make_lock() -> AbstractAsyncContextManager[Any]:
    """Return a lock of the library of the task that calls."""
    return trio.Lock() if in_trio_task() else asyncio.Lock()
