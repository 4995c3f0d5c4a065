"""Threads that make calls for the package: copies and reads, which release the interpreter's lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


def own_cores() -> list[int]:
    """Return the cores that this process may use, by number."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class PendingCalls(Generic[T]):
    """Calls that were begun together."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._ended: list[tuple[T | None, BaseException | None]] = []
        self._news: SimpleQueue[None] = SimpleQueue()

    def end(self, value: T | None, error: BaseException | None) -> None:
        """Record that a thread ended one of the calls, with its value or its error."""
        self._ended.append((value, error))
        self._news.put(None)

    def wait(self) -> list[T]:
        """Wait for all calls and return their values, in any order.

        The values are returned once: later calls return an empty list.

        Raises:
            BaseException: the first that one of the calls raised, after all have ended.
        """
        ended = self._all()
        for _, error in ended:
            if error is not None:
                raise error
        return [cast("T", value) for value, _ in ended]

    def forget(self) -> None:
        """Wait for all calls and ignore their values and errors."""
        self._all()

    def _all(self) -> list[tuple[T | None, BaseException | None]]:
        # An interrupt may come anywhere in here: whoever waits next counts the calls that have ended by then.
        while len(self._ended) < self._count:
            self._news.get()
        ended, self._ended, self._count = self._ended, [], 0
        return ended


class ThreadPool:
    """Threads that are started when they are needed.

    A queue is the only link between them, since futures took a fifth of the time.

    Args:
        name: of each thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[tuple[PendingCalls[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._making = threading.Lock()

    def begin(self, calls: Sequence[Callable[[], T]], threads: int) -> PendingCalls[T]:
        """Let at least `threads` threads make these calls. Any thread may ask."""
        if len(self._threads) < threads:
            self._make(threads)
        work: PendingCalls[T] = PendingCalls(len(calls))
        for call in calls:
            self._jobs.put((work, call))
        return work

    def _make(self, count: int) -> None:
        with self._making:
            while len(self._threads) < count:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                thread.start()
                self._threads.append(thread)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, call = job
            try:
                value = call()
            except BaseException as error:  # noqa: BLE001 - raised by `wait`
                work.end(None, error)
            else:
                work.end(value, None)
            # A thread that waits for the next job must not keep the values of this one alive.
            del job, work, call

    def close(self) -> None:
        """Wait for the threads to end. No call may be in progress. Calling it twice does nothing."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join()
