"""Persistent flows: a graph that is opened once and fed by hand, from plain code, from asyncio or from trio."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy.typing as npt

from flowcompute.elements import user_site, warn_at
from flowcompute.engine import PlannedJob
from flowcompute.errors import EventLoopWarning, PlanError, RunError
from flowcompute.event_loops import Changes, blocks_asyncio, in_thread, in_trio_task, make_lock, to_the_end
from flowcompute.observe import Observe
from flowcompute.runtime.checkpoints import refuse_foreign_writes
from flowcompute.runtime.flows.flow_checkpoints import FlowCheckpoints
from flowcompute.runtime.flows.flow_core import FlowCore, Result
from flowcompute.runtime.flows.watched_flow import WatchedFlow
from flowcompute.schedule import Clock
from flowcompute.schedule.explain import Plan
from flowcompute.sources import FeedSource
from flowcompute.strategy import Mode

if TYPE_CHECKING:
    from flowcompute.checkpoint.job import MovedWeights

_WAITING = 2
"""Results that may wait in an asynchronous flow before `send` waits for somebody to receive."""


class FlowOpener:
    """Opens a flow: `with` gives a `Flow` for plain code, `async with` an `AsyncFlow`. Made by `open_flow`."""

    def __init__(
        self,
        job: PlannedJob,
        mode: Mode,
        checkpoint: str | None = None,
        observe: Observe | None = None,
        moved: MovedWeights | None = None,
    ) -> None:
        plan = job.plan
        if len(plan.passes) != 1:
            raise PlanError(
                "cannot open a flow: it sees each record once, and this needs several passes",
                element="flow",
                got=f"{len(plan.passes)} passes",
                hint="resolve the fold first and use its value as fc.constant(value)",
            )
        for source in plan.passes[0].sources:
            if not isinstance(source.element, FeedSource):
                raise PlanError(
                    "cannot open a flow: it is fed by hand, and this source is not",
                    element=source.name,
                    site=source.element.site,
                    expected="sources made by fc.feed",
                    got=type(source.element).__name__,
                    hint="x >> fc.callback(function) is given each batch of a run; x.resolve() gives all",
                )
        if not plan.passes[0].sources:
            raise PlanError(
                "cannot open a flow without a feed", element="flow", hint='x = fc.feed(shape=(4,), dtype="float32")'
            )
        for clock in plan.passes[0].clocks:
            _check_clock(plan, clock)
        for sink in plan.passes[0].sinks:
            if not sink.element.in_memory:
                raise PlanError(
                    "cannot open a flow: it gives its results by receive and resolve, not to a destination",
                    element=sink.name,
                    site=sink.element.site,
                )
        self.plan = plan
        self._job = job
        self._mode: Mode = mode
        self._checkpoint = checkpoint
        self._moved = moved
        self._observe = observe
        self._flows: list[Flow | AsyncFlow] = []

    if not TYPE_CHECKING:  # For type checkers it has the attributes below and no others.

        def __getattr__(self, name: str) -> NoReturn:
            told = f"{type(self).__name__!r} object has no attribute {name!r}"
            if hasattr(Flow, name):
                told = f"cannot take {name!r} of a flow that is not open; do with element.flow() as flow: ..."
            raise AttributeError(told, name=name, obj=self)

    def __enter__(self) -> Flow:
        hint = "async with element.flow() as flow: ..."
        if in_trio_task():
            raise RunError("cannot open a plain flow here: it would block the event loop", hint=hint)
        if blocks_asyncio():
            warn_at(user_site(), f"a plain flow blocks the event loop: {hint}", EventLoopWarning)
        flow = Flow(FlowCore(self._job, self._mode, self._observe), self._checkpoint, self._moved)
        self._flows.append(flow)
        return flow

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        flow = self._flows.pop()
        assert isinstance(flow, Flow)
        flow.close()

    async def __aenter__(self) -> AsyncFlow:
        core = FlowCore(self._job, self._mode, self._observe)
        coordinator = FlowCheckpoints(core, self._checkpoint, self._moved)
        await in_thread(_open, core, coordinator)
        flow = AsyncFlow(core, coordinator)
        self._flows.append(flow)
        return flow

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        flow = self._flows.pop()
        assert isinstance(flow, AsyncFlow)
        await flow.aclose()


def _open(core: FlowCore, coordinator: FlowCheckpoints) -> None:
    refuse_foreign_writes(core.plan)
    core.open()
    try:
        coordinator.open()
    except BaseException:
        core.close()
        raise


def _close(core: FlowCore, coordinator: FlowCheckpoints) -> None:
    try:
        core.close()
    finally:
        coordinator.close()


def _check_clock(plan: Plan, clock: Clock) -> None:
    """Refuse what no feed moves, and streams joined end to end: none of them ends before all do."""
    nodes = plan.graph.nodes
    if clock.is_root and not clock.sources:
        node = nodes[min(clock.values)]
        raise PlanError(
            "cannot open a flow: it computes with what it is fed, and this stream meets no feed",
            element=node.name,
            site=node.element.site,
            hint="resolve it by itself, or combine it with a feed",
        )
    for entry in clock.entries:
        if len({origin for origin, _ in entry.inputs}) > 1 and entry.node is not None:
            raise PlanError(
                "cannot join streams end to end in a flow: the first ends only when all do",
                element=entry.node.name,
                site=entry.node.element.site,
                hint="send to one feed what comes first, then what follows",
            )


class Flow(WatchedFlow):
    """A flow for plain code. Calls from several threads are put one after the other.

    Everything is compiled and allocated when it is opened; `send` computes at once.

    Attributes:
        plan: what is run for each batch.
    """

    def __init__(self, core: FlowCore, checkpoint: str | None = None, moved: MovedWeights | None = None) -> None:
        self.plan = core.plan
        self._core = core
        self._coordinator = FlowCheckpoints(core, checkpoint, moved)
        self._lock = threading.Lock()
        self._closed = False
        _open(core, self._coordinator)

    def send(self, array: npt.ArrayLike | None = None, /, **named: npt.ArrayLike) -> None:
        """Compute with records of the feed, `(items, *item)`; of several feeds by name.

        Raises:
            RunError: if the records do not fit, or the computation fails.
            DeviceFullError: if the device has no room. Where `sent` is what it was, the flow may be frozen, or go on.
        """
        with self._using() as core:
            core.send(core.records(array, named))

    def receive(self) -> Result:
        """Return the result for the earliest `send` not yet received: an array, perhaps empty; a tuple for several.

        Raises:
            RunError: if every send was received already.
        """
        with self._using() as core:
            return core.receive()

    def resolve(self) -> Result:
        """Return the values for all that came: since the last `resolve` ("reset"), or ever ("cumulative").

        Folds give their value; streams give what was not received. In "reset" mode the streams
        end and begin anew.
        """
        with self._using() as core:
            return core.resolve()

    def freeze(self, path: str | os.PathLike[str] | None = None, *, extra: Any = None) -> str:
        """Write all that the flow holds to a checkpoint, results that wait included; the flow goes on.

        A flow that is opened with `checkpoint=` where there is one, or by `fc.thaw(path).flow()`, holds what this one
        held at the latest `freeze`. Its `sent` says which record comes next.

        Args:
            path: of the checkpoint; by default the flow's own one.
            extra: plain data of yours that is kept with it, as `fc.thaw(path).extra`: numbers, texts, bytes, arrays,
                and lists and dicts of them.

        Returns:
            The path.

        Raises:
            CheckpointError: if there is no path, or it cannot be written.
            RunError: if the flow has failed.
        """
        with self._using():
            return self._coordinator.freeze(path, extra)

    def carried(self) -> dict[str, Any]:
        """Return what each scan of the flow carries, by its name, as plain data and arrays.

        Raises:
            RunError: if the flow has failed.
        """
        with self._using() as core:
            return core.carried()

    def carry_on(self, carried: Mapping[str, Any]) -> None:
        """Let scans go on from what those of another flow have carried.

        Args:
            carried: what `carried` has returned, by the names of this flow's scans.

        Raises:
            RunError: if the flow has failed. Also for a scan by an associative operation, as `cumulative_sum`, if the
                flows have not taken as many records: tiles of these begin at multiples of a number of records.
        """
        with self._using() as core:
            core.carry_on(carried)

    def close(self) -> None:
        """Release everything; calling it twice is harmless."""
        with self._lock:
            if not self._closed:
                self._closed = True
                _close(self._core, self._coordinator)

    @contextlib.contextmanager
    def _using(self) -> Iterator[FlowCore]:
        with self._lock:
            if self._closed:
                raise RunError("cannot go on: the flow is closed", element="flow", hint="use it inside its with block")
            yield self._core

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncFlow(WatchedFlow):
    """A flow for asyncio and trio: `send` waits while results wait, so that a slow receiver stalls the sender.

    Iterating gives the result of each send until the input is closed. Tasks may send and
    receive at the same time.

    Attributes:
        plan: what is run for each batch.
    """

    def __init__(self, core: FlowCore, coordinator: FlowCheckpoints) -> None:
        self.plan = core.plan
        self._core = core
        self._coordinator = coordinator
        self._turn = make_lock()
        self._changed = Changes()
        self._input_closed = False
        self._closed = False

    async def send(self, array: npt.ArrayLike | None = None, /, **named: npt.ArrayLike) -> None:
        """Send as `Flow.send`, waiting for room.

        Where this is cancelled in trio, nothing was taken. In asyncio the records may have been computed all the same.
        """
        arrays = self._core.records(array, named)
        while True:
            while self._core.waiting >= _WAITING and not self._closed and not self._input_closed:
                await self._changed.wait()
            async with self._turn:
                self._check_open("send")
                if self._core.waiting >= _WAITING:
                    continue
                try:
                    await in_thread(self._core.send, arrays)
                finally:
                    self._changed.tell()
                return

    async def receive(self) -> Result:
        """Receive as `Flow.receive`, waiting until somebody has sent.

        Raises:
            RunError: if the input is closed and everything was received.
        """
        while not self._core.waiting and self._core.gives_streams:
            self._core.check()
            if self._input_closed or self._closed:
                raise RunError(
                    "cannot receive: there is nothing to receive any more", element="flow", got="a closed input"
                )
            await self._changed.wait()
        result = self._core.receive()
        self._changed.tell()
        return result

    async def aclose_input(self) -> None:
        """Say that no more is sent: what windows and cuts still hold comes out, then iteration ends."""
        async with self._turn:
            if not self._input_closed and not self._closed:
                try:
                    await in_thread(self._core.end)
                finally:
                    # Not before what comes out at the end is there, and not where this was cancelled before it began.
                    self._input_closed = self._core.ended
                    self._changed.tell()

    async def resolve(self) -> Result:
        """Resolve as `Flow.resolve`."""
        async with self._turn:
            if self._closed:
                raise RunError("cannot go on: the flow is closed", element="flow")
            try:
                return await in_thread(self._core.resolve)
            finally:
                self._changed.tell()

    async def freeze(self, path: str | os.PathLike[str] | None = None, *, extra: Any = None) -> str:
        """Freeze as `Flow.freeze`."""
        async with self._turn:
            if self._closed:
                raise RunError("cannot go on: the flow is closed", element="flow")
            return await in_thread(self._coordinator.freeze, path, extra)

    async def aclose(self) -> None:
        """Release everything; calling it twice is harmless."""
        await to_the_end(self._close)

    async def _close(self) -> None:
        async with self._turn:
            if not self._closed:
                self._closed = True
                self._changed.tell()
                await in_thread(_close, self._core, self._coordinator)

    async def __aiter__(self) -> AsyncIterator[Result]:
        while self._core.waiting or not (self._input_closed or self._closed):
            if self._core.waiting:
                yield await self.receive()
            else:
                self._core.check()
                await self._changed.wait()
        self._core.check()

    def _check_open(self, doing: str) -> None:
        if self._closed or self._input_closed:
            raise RunError(f"cannot {doing}: the input is closed", element="flow")
