"""The threads that do what blocks, and the end of a run that is asked to stop."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from flowcompute.engine import CHECK
from flowcompute.imports import LateModule

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

THREAD_NAME = "flowcompute-worker"


class Workers(ABC):
    """Runs the coroutine of one run in the thread that calls `drive`, and what blocks where it holds up nobody."""

    @property
    @abstractmethod
    def clock(self) -> Callable[[], float]:
        """The clock of the coroutine, in seconds."""

    @abstractmethod
    def drive(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Run `main()` to its end, once; returns what it returns, or None where it was stopped before."""

    @abstractmethod
    def stop(self) -> None:
        """Cancel what `drive` runs or will run, from any thread; what has ended is not changed."""

    @abstractmethod
    async def call(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """`function(*args)` where it may block.

        Cancelled before it starts, it never runs; once it runs it is waited for, whatever
        happens, so that nothing it opened is lost. A loop that may never end asks `check_stopped`.
        """

    @abstractmethod
    def shielded(self) -> AbstractContextManager[object]:
        """Return a block in which calls are not cancelled."""


class WorkerThreads(Workers):
    """Threads beside an event loop, one for each stage, so that no stage ever waits for another's thread.

    Args:
        count: most calls at a time.
    """

    def __init__(self, count: int) -> None:
        self._limiter = trio.CapacityLimiter(count)
        self._scope = trio.CancelScope()
        self._token: trio.lowlevel.TrioToken | None = None
        self._stop_asked = False

    @property
    def clock(self) -> Callable[[], float]:
        """The clock of trio, which tests replace."""
        return trio.current_time

    def drive(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Run `main()` as the main task of an event loop."""
        returned: list[T] = []
        trio.run(self._drive, main, returned)
        return returned.pop() if returned else None

    async def _drive(self, main: Callable[[], Coroutine[Any, Any, T]], returned: list[T]) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with self._scope:
            if self._stop_asked:
                self._scope.cancel()
            # What a task returns lives until the collector finds trio's cycles, and results are too large for that.
            returned.append(await main())

    def stop(self) -> None:
        """Cancel the main task."""
        # The loop's thread sets the token and then looks at the flag, so that one of the two sees the other.
        self._stop_asked = True
        if self._token is not None:
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._scope.cancel)

    async def call(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """`function(*args)` in a thread."""
        # Threads inherit the context of the task that starts them.
        CHECK.set(trio.from_thread.check_cancelled)
        return await trio.to_thread.run_sync(function, *args, thread_name=THREAD_NAME, limiter=self._limiter)

    def shielded(self) -> AbstractContextManager[object]:
        """Return a shielded scope."""
        return trio.CancelScope(shield=True)


class OwnThread(Workers):
    """The thread that calls `drive`, which makes all calls itself: of a run in which nothing goes side by side.

    An event loop and three hand-overs to threads would take longer than all else that such a run does.
    """

    def __init__(self) -> None:
        self._stop_asked = False
        self._shields = 0

    @property
    def clock(self) -> Callable[[], float]:
        """The clock of the process."""
        return time.perf_counter

    def drive(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Run `main()`, which awaits nothing but `call`."""
        # The thread may be the user's, who computes with it afterwards.
        before = CHECK.set(self._check)
        try:
            main().send(None)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        except _StoppedError:
            return None
        finally:
            CHECK.reset(before)
        raise RuntimeError("a run without an event loop has waited for one")

    def stop(self) -> None:
        """Let the next call, or the next question of the present one, raise."""
        self._stop_asked = True

    async def call(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """`function(*args)`, here."""
        self._check()
        return function(*args)

    @contextlib.contextmanager
    def shielded(self) -> Iterator[None]:
        """Go on although the run was asked to stop."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1

    def _check(self) -> None:
        if self._stop_asked and not self._shields:
            raise _StoppedError


class _StoppedError(BaseException):
    """Ends a run that was asked to stop: no failure, which callers would tell of."""
