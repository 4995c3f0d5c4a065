"""A run: a plan at work in a thread of its own, seen from wherever it was started."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from flowcompute.engine import PlannedJob
from flowcompute.errors import FlowError, RunError
from flowcompute.event_loops import completed, in_loop
from flowcompute.observe import BatchComputed, Observers, RunView
from flowcompute.runtime.channels import Display, RunRecord
from flowcompute.runtime.checkpoints import FrozenError, Request
from flowcompute.runtime.events import about, picture_of
from flowcompute.runtime.options import RunOptions
from flowcompute.runtime.run.blocking import check_blocking, refuse_in_trio_task
from flowcompute.runtime.run.driver import Driver, workers_of
from flowcompute.runtime.run.interrupt import Interrupts, farewell
from flowcompute.runtime.run.run_strategy import Chosen, RunTuner
from flowcompute.runtime.run.running_pass import PassSettings
from flowcompute.runtime.run.watched import Watched
from flowcompute.sources import AWAIT_IN_LOOP

if TYPE_CHECKING:
    import asyncio

# Waiting for a lock cannot be interrupted by Ctrl-C on Windows. Elsewhere a signal that arrives between the
# interpreter's last look and the wait does not end the wait either.
_LONGEST_WAIT_S = 0.2

_FAREWELL_S = 5.0

_POLL_S = 0.02

_begun: weakref.WeakSet[Run] = weakref.WeakSet()
"""Runs that this process started, to be put away if it exits before they end."""

_working_for: ContextVar[weakref.ref[Run] | None] = ContextVar("flowcompute_run", default=None)
"""The run that the current worker thread works for; trio hands it on to the threads of its tasks.

Weakly, as trio's tasks are garbage in cycles when they have ended, and results are too large to wait for it.
"""


def _stop_all() -> None:
    """Leave no temporary file behind when the process exits without waiting for its runs."""
    running = [run for run in tuple(_begun) if run.is_running]
    for run in running:
        run.stop()
    for run in running:
        run.join(_FAREWELL_S)


atexit.register(_stop_all)


class Run(Watched):
    """A plan at work, or done. Made by `start`.

    Used with `with` it does not outlive the block: at the end of the block it is waited
    for, and stopped if the block raises.

    Attributes:
        plan: what it runs.
    """

    def __init__(
        self,
        job: PlannedJob,
        options: RunOptions,
        *,
        draw: Callable[[Run], str] | None,
        aliases: Mapping[str, str],
        request: Request,
        tuner: RunTuner | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        awaited: bool = False,
    ) -> None:
        self.plan = plan = job.plan
        self._options = options
        self._chosen = Chosen(job, tuner)
        # Before anything is read: what the system's cache holds then counts.
        self._expected = plan.expectations
        lengths = [each.length for each in plan.passes]
        total = None if None in lengths else sum(length for length in lengths if length is not None)
        room_bytes = max(plan.memory.budget_bytes - plan.memory.host_bytes, 0)
        stream = self._chosen.stream
        self._record = record = RunRecord(
            total,
            room_bytes,
            metrics=options.metrics,
            places=plan.places,
            lengths=lengths,
            streams=[each.streams for each in plan.passes],
            weights=[each.weight for each in plan.passes],
            stream=stream,
        )
        chosen = self._chosen
        # None of these knows the run: observers that do would keep it alive.
        view = RunView(
            snapshot=partial(record.snapshot, aliases),
            seconds=lambda: record.seconds,
            about=lambda: about(plan, record.metrics({}), chosen.strategy, chosen.tuning),
            tracks=sum(len(each.sources) + len(each.sinks) + 4 for each in plan.passes),
            picture=lambda: picture_of(plan, record.metrics({})),
            kernels=lambda: {kernel.name: kernel.source for kernel in plan.kernels},
            planned_bytes=plan.memory.host_bytes,
        )
        self._observers = Observers(options.observe, view, stream)
        self._draw = draw
        self._aliases = aliases
        self._pid = os.getpid()
        self._values: tuple[Any, ...] = ()
        self._error: BaseException | None = None
        self._trace: TracebackType | None = None
        self._stop_asked = False
        self._error_seen = False
        self._stuck = False
        self._stopped = False
        self._frozen = False
        self._request = request
        self._interrupts: Interrupts | None = None
        self._workers = workers_of(plan)
        self._settled = threading.Event()
        self._ended: Future[None] = Future()
        self._loop = loop
        self._awaited = awaited
        self._thread = threading.Thread(target=self._main, name="flowcompute-run", daemon=True)
        self._display: Display | None = None

    # -- control ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the threads; called once, by `start`."""
        self._observers.open()
        _begun.add(self)
        if self._request.path is not None:
            # Before anything of the checkpoint can be seen: who sees it may send the signal.
            finish = self._finish_awaited if self._awaited else self._finish_frozen
            self._interrupts = Interrupts(self._ask_freeze, finish, self._settled.is_set)
            self._interrupts.__enter__()
        self._display = Display.start(self._record, self._options.progress, name=self._options.name)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """True while it is at work in this process."""
        return self._pid == os.getpid() and self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        """Let it end, for at most that long, whatever comes out."""
        self._thread.join(timeout_s)

    def wait(self, timeout_s: float | None = None) -> Self:
        """Wait until the run has ended; returns the run.

        In the main thread Ctrl-C stops the run, waits until nothing of it is left and
        raises KeyboardInterrupt; a second Ctrl-C does not wait.

        Args:
            timeout_s: seconds to wait at most; the run goes on if it has not ended by then.

        Raises:
            FlowError: what the run failed with, RunError if it was stopped.
            TimeoutError: if the run has not ended in time.
            KeyboardInterrupt: after Ctrl-C.
        """
        self._check_usable("wait for a run")
        refuse_in_trio_task("wait for a run")
        self._refuse_own_thread()
        check_blocking(self.plan, None if self._settled.is_set() else self._loop)
        interrupts = Interrupts(self.stop) if self._interrupts is None else None
        try:
            with interrupts or contextlib.nullcontext():
                settled = self._wait_settled(timeout_s)
        except (KeyboardInterrupt, SystemExit):
            self.stop()
            self._error_seen = True
            raise
        finally:
            if self._interrupts is not None and self._settled.is_set():
                self._interrupts.__exit__()
        if interrupts is not None and interrupts.received:
            self._error_seen = True
            raise farewell(interrupts.received)
        if not settled:
            raise TimeoutError(f"the run has not ended after {timeout_s} s; it goes on")
        self._raise_error()
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        """Wait until the run has ended, in asyncio or trio, and give the run: `await fc.start(...)`.

        Where the wait is cancelled the run is stopped, and waited for until nothing of it is left. Errors are those
        of `wait`.
        """
        return self._wait_async().__await__()

    async def _wait_async(self) -> Self:
        self._check_usable("wait for a run")
        self._refuse_own_thread()
        interrupts = self._interrupts or Interrupts(self.stop).__enter__()
        try:
            await completed(self._ended, self.stop)
        finally:
            interrupts.__exit__()
            self._error_seen = True
            if not self._stuck:
                # Its last instant.
                self._thread.join()
        if interrupts.received:
            raise farewell(interrupts.received)
        self._raise_error()
        return self

    def freeze(self, path: str | os.PathLike[str] | None = None) -> str:
        """Finish the batch in hand, write the state of the job to a checkpoint and end the run.

        Waits until that is done, unless it is called by the run itself (from `on_batch`), and
        `wait` raises RunError then. `fc.thaw(path)` goes on.

        Args:
            path: of the checkpoint, a folder that is not there yet; by default the run's own one.

        Returns:
            The path.

        Raises:
            CheckpointError: if there is no path, or the job cannot be frozen.
            RunError: if the run had ended before.
            FlowError: what it failed with.
        """
        self._check_usable("freeze a run")
        target = self._request.aim(path, self.plan)
        if self._settled.is_set():
            self._raise_error()
            raise RunError("cannot freeze the run: it has ended", hint="run.values has its results")
        self._ask_freeze()
        if self._is_own_thread():
            return target
        self._wait_settled(None)
        if not self._frozen:
            self._raise_error()
            raise RunError(
                "cannot freeze the run: it ended before it could be frozen", hint="run.values has its results"
            )
        self._error_seen = True
        return target

    def stop(self) -> None:
        """Ask the run to end; returns at once and may be called from any thread, also from `on_batch`.

        What was written is dropped, nothing stays open, and `wait` then raises RunError. A run
        that has ended, or is committing its results, is not stopped any more.
        """
        self._check_usable("stop a run")
        self._stop_asked = True
        self._workers.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.stop()
        if error is None and not self._stop_asked and not self._frozen:
            if not self._error_seen:
                self.wait()
            return
        self._wait_settled(None)
        # Who asked for the stop need not be told of it, but anything else that went wrong is news.
        if error is None and not self._stopped and not self._error_seen:
            self._raise_error()

    # -- results ----------------------------------------------------------------------------

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the roots.

        Raises:
            RunError: if the run has not ended.
            FlowError: what the run failed with.
        """
        self._check_usable("ask a run for its values")
        if not self._settled.is_set():
            raise RunError("cannot give the values: the run has not ended yet", hint="call run.wait() first")
        self._raise_error()
        return self._values

    @property
    def value(self) -> Any:
        """The value of the only root.

        Raises:
            RunError: if there are several roots, or the run has not ended.
            FlowError: what the run failed with.
        """
        values = self.values
        if len(values) != 1:
            raise RunError(
                f"cannot give one value: the run has {len(values)} values", expected="one", hint="use run.values"
            )
        return values[0]

    def __str__(self) -> str:
        return repr(self) if self._draw is None else self._draw(self)

    def __repr__(self) -> str:
        return f"<Run {self._state}: {self._record.progress.records}>"

    @property
    def _state(self) -> str:
        ended = "complete" if self._error is None else "failed"
        return ended if self._settled.is_set() else "running"

    # -- inside -----------------------------------------------------------------------------

    def _main(self) -> None:
        """Run in a thread of its own, to the end."""
        try:
            self._drive()
        except FlowError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - told to whoever waits
            failure = RunError(f"the runtime failed: {type(error).__name__}: {error}", hint="please report this")
            failure.__cause__ = error
            self._error = failure
        except BaseException as error:  # noqa: BLE001 - as above
            self._error = error
        self._record.end(self._error)
        if self._display is not None:
            self._display.stop()
        if self._error is None:
            throttled = self._options.throttle > 0
            self._chosen.finish(lambda: self._stop_asked, self._record, throttled=throttled)
        try:
            self._observers.close()
        except Exception as error:  # noqa: BLE001 - a warning that was made an error, told to whoever waits
            self._error = self._error or error
        # Errors of ours say where and why; frames of the runtime would stand between the user's line and that.
        self._trace = None if isinstance(self._error, FlowError | None) else self._error.__traceback__
        self._settle()

    def _drive(self) -> None:
        options = self._options
        after_batch = None if options.on_batch is None else partial(options.on_batch, self)
        # Made here, as it refers to the run: what the run refers to must not, or results outlive their last user.
        # Pauses would be taken for what a batch costs.
        live = None if options.throttle else self._chosen.live
        if live is not None:
            self._record.stream.subscribe({BatchComputed: live.computed})
        settings = PassSettings(
            options.throttle, after_batch, options.stall_timeout_s, on_stuck_thread=self._give_up_waiting, live=live
        )
        driver = Driver(self._chosen.job, self._record, settings, self._request, self._workers)
        _working_for.set(weakref.ref(self))
        AWAIT_IN_LOOP.set(None if self._loop is None else partial(in_loop, self._loop))
        try:
            values = self._workers.drive(driver.run)
            if values is None:
                self._stopped = True
                raise RunError("the run was stopped", hint=driver.after_stop)
        except FrozenError:
            self._frozen = True
            path = self._request.path
            raise RunError(f"the run was frozen into {path}", hint=f"fc.thaw({path!r}).resolve() goes on") from None
        except BaseException as error:
            for note in driver.notes:
                error.add_note(note)
            raise
        self._values = values

    def _ask_freeze(self) -> None:
        self._request.freeze = True

    def _finish_frozen(self, signum: int) -> None:
        """After a signal: wait until the job is frozen, then leave."""
        # Asked again and again, since the main thread may hold the lock of the event when the signal comes.
        while not self._settled.is_set():
            time.sleep(_POLL_S)
        self._error_seen = True
        if self._error is not None and not self._frozen:
            self._raise_error()
        leaving = farewell(signum)
        if self._frozen:
            path = self._request.path
            leaving.add_note(f"the job was frozen into {path}: run it again, or fc.thaw({path!r}).resolve() goes on")
        raise leaving

    def _finish_awaited(self, signum: int) -> None:
        """After a signal: let the loop go on, which the run may need; whoever awaits it leaves, or the loop itself."""

        def leave() -> None:
            if not self._error_seen:
                self._error_seen = True
                raise farewell(signum)

        loop = self._loop
        if loop is not None:
            self._ended.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(leave))

    def _refuse_own_thread(self) -> None:
        if self._is_own_thread():
            raise RunError("cannot let a run wait for itself", hint="in on_batch= and the like only call run.stop()")

    def _is_own_thread(self) -> bool:
        return (working_for := _working_for.get()) is not None and working_for() is self

    def _give_up_waiting(self, error: RunError) -> None:
        """Let those that wait have the error of a stall although a thread still holds up the end."""
        self._stuck = True
        self._error = error
        with contextlib.suppress(Warning):
            self._observers.close()
        self._settle()

    def _settle(self) -> None:
        """Let those that wait go on; what is told first counts."""
        self._settled.set()
        if not self._ended.done():
            self._ended.set_result(None)

    def _wait_settled(self, timeout_s: float | None) -> bool:
        left = threading.TIMEOUT_MAX if timeout_s is None else timeout_s
        while not self._settled.wait(min(left, _LONGEST_WAIT_S)):
            left -= _LONGEST_WAIT_S
            if left <= 0:
                return False
        if not self._stuck:
            self._thread.join()
        return True

    def _raise_error(self) -> None:
        if self._error is not None:
            self._error_seen = True
            # Without the frames of those who were told before.
            raise self._error.with_traceback(self._trace)

    def _check_usable(self, doing: str) -> None:
        if os.getpid() != self._pid and not self._settled.is_set():
            raise RunError(
                f"cannot {doing}: it was started in the process that this one was forked from",
                expected=f"process {self._pid}",
                got=f"process {os.getpid()}",
                hint='use it there, or start processes with multiprocessing.get_context("spawn")',
            )
