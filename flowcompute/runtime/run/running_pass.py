"""One pass while it runs: what it has opened, and how its stages are joined."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from flowcompute.elements import AsyncReader, Reader, State, Writer
from flowcompute.elements.policies import DeadLetters, ErrorPolicy
from flowcompute.elements.training import TRAINED, Training
from flowcompute.engine import PlannedJob, check_stopped
from flowcompute.errors import CheckpointError, RunError
from flowcompute.imports import LateModule, dataclass
from flowcompute.observe import StageState
from flowcompute.runtime.channels import Channel, Pool, RunRecord, Workers, attributed, first_failure
from flowcompute.runtime.checkpoints import CheckpointCoordinator, Resume, check_alike
from flowcompute.runtime.events import StageReporter, watch
from flowcompute.runtime.run.live_trials import LiveTrials
from flowcompute.runtime.stages import BatchBoundaries, ComputeTask, Output, OverlappedTask, SinkTask, SourceTask
from flowcompute.schedule import (
    Clock,
    NodeStep,
    SinkStage,
    SourceStage,
    is_uncached,
    policies,
    records_wanted,
    with_defaults,
)
from flowcompute.spec import Spec

if TYPE_CHECKING:
    import trio
else:
    trio = LateModule("trio")

STEPS_TOGETHER = 16
"""Most steps of a training that are taken in one hand-over. Nobody waits for the loss of a single one."""

STEPS_LONGER = 10
"""Factor by which these may take longer than other batches. A stop is asked for between them."""

_SMALL_BYTES = 1 << 16
"""Results in memory that are copied in less time than it takes to hand them to a thread."""

OpenWriters = list[tuple[SinkStage, Writer]]


@dataclass(frozen=True, slots=True)
class PassSettings:
    """The settings of a pass, beside what the plan says.

    Attributes:
        throttle_s: seconds to pause after each batch.
        after_batch: called in a worker thread after each batch; what it raises fails the run.
        stall_timeout_s: seconds without any movement that fail the run; None for never.
        on_stuck_thread: told of a stall that cannot end the run yet; see `watchdog`.
        live: who tries knobs of the run meanwhile, if anybody.
    """

    throttle_s: float = 0.0
    after_batch: Callable[[], object] | None = None
    stall_timeout_s: float | None = 120.0
    on_stuck_thread: Callable[[RunError], None] = lambda _: None
    live: LiveTrials | None = None


class RunningPass:
    """Opens, runs and closes one pass of a plan.

    Args:
        job: the plan, and what computes it.
        index: which of its passes.
        settings: how to run it.
        record: the run's live record.
        workers: who makes calls that block.
        writers: destinations are added here as they are opened; they are the caller's to
            commit or abort, since that is decided for all passes together.
        resident: whole values of earlier passes, and for later ones.
        dead_letters: dead-letter files; also the caller's to commit or discard.
        coordinator: takes checkpoints.
        resume: where the pass goes on; None for from the beginning.
    """

    def __init__(
        self,
        job: PlannedJob,
        index: int,
        *,
        settings: PassSettings,
        record: RunRecord,
        workers: Workers,
        writers: OpenWriters,
        resident: dict[int, np.ndarray],
        dead_letters: Mapping[ErrorPolicy, DeadLetters],
        coordinator: CheckpointCoordinator,
        resume: Resume | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._resume = resume
        self._starts = {} if resume is None else resume.starts
        self._plan = plan = job.plan
        self._index = index
        self._pass = plan.passes[index]
        self._settings = settings
        self._tracker = record.tracker
        self._skips = record.skips
        self._dead_letters = dead_letters
        self._workers = workers
        self._writers = writers
        self._first_writer = len(writers)
        self._readers: list[Reader] = []
        self._channels: list[Channel] = []
        self._pools: list[Pool] = []
        self._values: dict[int, np.ndarray] | None = None
        self._executor = job.executor(index, resident)
        steps = [step.name for step in self._pass.steps]
        self._record = record.begin_pass(
            [stage.name for stage in self._pass.sources],
            steps[0] if len(steps) == 1 else "compute",
            [stage.name for stage in self._pass.sinks],
            self._executor,
            index,
            workers.clock,
        )

    async def open(self, before: Callable[[], object] = lambda: None) -> None:
        """Open sources, destinations and the executor, in this order: what fails soonest comes first.

        Args:
            before: called first, in the same thread.
        """
        took_s = await self._workers.call(self._open, before)
        self._record.compute.mark("building kernels", self._workers.clock() - took_s)
        if self._resume is not None:
            with attributed(self._record.compute.label):
                await self._workers.call(self._restore, self._resume.executor)
        for skip_counter in (*(reader.skip_counter for reader in self._readers), *self._executor.skip_counters):
            if skip_counter is not None:
                skip_counter.element = policies(self._plan.graph)[skip_counter.policy]
                skip_counter.dead_letters = self._dead_letters.get(skip_counter.policy)
                self._skips.watch(skip_counter)

    def _open(self, before: Callable[[], object]) -> float:
        """Open everything in one thread call; gives the seconds that the executor took."""
        before()
        knobs = with_defaults(self._plan.strategy, self._plan.backend.capabilities)
        mapped = knobs.input == "mapped"
        for source in self._pass.sources:
            reader = self._open_source(source, mapped)
            reader.element = source.name
            reader.threads = knobs.reader_threads or 1
            reader.uncached = self._is_uncached(source)
            self._readers.append(reader)
            check_stopped()
        read_by = zip(self._pass.sources, self._readers, strict=True)
        self._coordinator.read_by({self._kept(one): (self._clock_of(one), reader) for one, reader in read_by})
        for sink in self._pass.sinks:
            with attributed(sink.name, sink.element.site):
                self._writers.append((sink, self._open_sink(sink)))
            self._writers[-1][1].uncached = self._is_uncached(sink)
            check_stopped()
        began_s = time.perf_counter()
        with attributed(self._record.compute.label):
            self._executor.open()
        check_stopped()
        took_s = time.perf_counter() - began_s
        if not self._pass.clocks and self._resume is None:
            # Without streams all has been computed by now.
            self._values = self._finish()
        return took_s

    def _open_source(self, source: SourceStage, mapped: bool) -> Reader:
        """Open a source at the record where the pass begins, at the place that was kept of it."""
        start = self._start_of(source.value)
        place = None if self._resume is None else self._resume.places.get(self._kept(source))
        with attributed(source.name, source.element.site):
            if place is None:
                return source.element.open(position=start, mapped=mapped)
            with self._coordinator.sound_state():
                return source.element.reopen(place, position=start, mapped=mapped)

    def _kept(self, source: SourceStage) -> int:
        """Return the id under which checkpoints keep the state of a source."""
        return self._plan.graph.kept_id(source.value)

    def _clock_of(self, source: SourceStage) -> int:
        """Return the id of the clock that a source belongs to."""
        return self._pass.clock_of(source.value).id

    def _is_uncached(self, stage: SourceStage | SinkStage) -> bool:
        return is_uncached(stage, self._index, self._plan.passes, self._plan.memory.budget_bytes)

    def _start_of(self, value: int) -> int:
        """Return the first record to read of a source.

        Raises:
            CheckpointError: if this plan cannot go on there.
        """
        clock = self._pass.clock_of(value)
        start = self._starts.get(clock.id, 0)
        if start % clock.granule and start != clock.length:
            raise CheckpointError(
                "cannot go on inside a block of records that a kernel reduces as a whole",
                expected=f"a multiple of {clock.granule} records",
                got=f"{start} records",
                hint='thaw it with device="numpy", where it was frozen; jobs with checkpoint= go on everywhere',
            )
        return start

    def _restore(self, state: State) -> None:
        with self._coordinator.sound_state():
            check_alike(self._executor.snapshot(), state)
            for clock, start in self._starts.items():
                if state["clocks"]["starts"][clock] != start:
                    raise ValueError(
                        f"record {start} is to be read next, and {state['clocks']['starts'][clock]} computed"
                    )
            self._executor.restore(state)

    def _open_sink(self, sink: SinkStage) -> Writer:
        place = self._coordinator.place(len(self._writers))
        if self._resume is not None:
            with self._coordinator.sound_state():
                return sink.element.reopen(sink.spec, place, self._resume.sinks[len(self._writers)])
        return (
            sink.element.open(sink.spec) if self._coordinator.token is None else sink.element.open_at(sink.spec, place)
        )

    async def run(self) -> None:
        """Let all batches through, look at the sources again, and write what is known only at the end."""
        if self._pass.clocks:
            await self._flow()
        compute = self._record.compute
        compute.enter(StageState.BUSY, "finishing")
        values = self._values if self._values is not None else await self._workers.call(self._finish)
        compute.observe(self._executor)
        compute.enter(StageState.DONE)
        for (sink, writer), record in zip(self._writers[self._first_writer :], self._record.sinks, strict=True):
            if sink.spec.is_stream:
                continue
            record.enter(StageState.BUSY, "writing")
            with attributed(sink.name, sink.element.site):
                array = values[sink.value]
                if sink.element.in_memory and array.nbytes <= _SMALL_BYTES:
                    writer.write(array, 0)
                else:
                    await self._workers.call(writer.write, array, 0)
            record.passed(1, array.nbytes, 0)
            record.enter(StageState.DONE)

    def _finish(self) -> dict[int, np.ndarray]:
        """End the folds, and look at the sources again, of which nothing more is read."""
        with attributed(self._record.compute.label), self._coordinator.sound_pass():
            values = self._executor.finish()
        for source, reader in zip(self._pass.sources, self._readers, strict=True):
            with attributed(source.name, source.element.site):
                reader.check()
        return values

    async def close(self, after: Callable[[], object] = lambda: None) -> list[BaseException]:
        """Close readers and executor, each exactly once, and return what failed. Not to be cancelled.

        Args:
            after: called in the same thread where nothing has failed; what it raises is raised.
        """
        failures: list[BaseException] = []
        for source, reader in zip(self._pass.sources, self._readers, strict=False):
            if isinstance(reader, AsyncReader):
                try:
                    with attributed(source.name, source.element.site):
                        await reader.aclose()
                except Exception as error:  # noqa: BLE001 - all are closed, then the failures are told
                    failures.append(error)
        failures += await self._workers.call(self._close, after if not failures else lambda: None)
        return failures

    def _close(self, after: Callable[[], object]) -> list[BaseException]:
        failures: list[BaseException] = []
        for source, reader in zip(self._pass.sources, self._readers, strict=False):
            try:
                if not isinstance(reader, AsyncReader):
                    with attributed(source.name, source.element.site):
                        reader.close()
            except Exception as error:  # noqa: BLE001 - all are closed, then the failures are told
                failures.append(error)
        try:
            with attributed(self._record.compute.label):
                self._executor.close()
        except Exception as error:  # noqa: BLE001 - as above
            failures.append(error)
        if not failures:
            after()
        return failures

    async def _flow(self) -> None:
        """Run all stages at once, until the streams end."""
        sources, sinks, compute = self._join()
        failure: BaseException | None = None
        try:
            async with trio.open_nursery() as watched:
                watched.start_soon(self._coordinator.serve)
                if self._settings.stall_timeout_s is not None:
                    watched.start_soon(
                        watch, self._record.stages, self._settings.stall_timeout_s, self._settings.on_stuck_thread
                    )
                async with trio.open_nursery() as stages:
                    for run in (*(task.run for task in sources), compute.run, *(task.run for task in sinks)):
                        stages.start_soon(run)
                await self._coordinator.settle()
                watched.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            failure = first_failure(group)
        finally:
            for channel in self._channels:
                channel.close()
            for pool in self._pools:
                pool.close()
        if failure is not None:
            raise failure

    def _join(self) -> tuple[list[SourceTask], list[SinkTask], ComputeTask]:
        """Make the stages with the channels and buffers between them."""
        record, live = self._record, self._settings.live
        boundaries = {
            clock.id: BatchBoundaries(self._items_cut(clock), self._starts.get(clock.id, 0))
            for clock in self._pass.clocks
            if clock.is_root
        }
        if live is not None:
            live.begin(self._index, tuple(boundaries.values()), self._readers)
        sources: list[SourceTask] = []
        channels: dict[int, Channel] = {}
        for source, reader, stage in zip(self._pass.sources, self._readers, record.sources, strict=True):
            clock = self._pass.clock_of(source.value)
            joined = -(-clock.batch_items // boundaries[clock.id].most_items)
            channel = channels[source.value] = self._channel(stage, record.taker, joined)
            wanted = records_wanted(self._plan, self._index, clock)
            pool = self._pool(source.spec, clock.batch_items, source.spec.length)
            record.edges.append((channel, pool))
            sources.append(
                SourceTask(
                    source,
                    reader,
                    stage,
                    channel,
                    pool,
                    workers=self._workers,
                    boundaries=boundaries[clock.id],
                    wanted=wanted,
                    start=self._start_of(source.value),
                )
            )
        by_value: dict[int, list[SinkTask]] = {}
        mine = self._writers[self._first_writer :]
        for position, ((sink, writer), stage) in enumerate(zip(mine, record.sinks, strict=True), self._first_writer):
            if sink.spec.is_stream:
                channel = self._channel(record.giver, stage)
                task = SinkTask(
                    sink,
                    writer,
                    stage,
                    channel,
                    workers=self._workers,
                    tracker=self._tracker,
                    position=position,
                    together=self._together(self._plan.depth // 2),
                )
                by_value.setdefault(sink.value, []).append(task)
        compute = (ComputeTask if record.transfers is None else OverlappedTask)(
            self._executor,
            record,
            self._pass.clocks,
            channels,
            [self._output(value, tasks) for value, tasks in by_value.items()],
            self._workers,
            throttle_s=self._settings.throttle_s,
            after_batch=self._settings.after_batch,
            starts=self._starts,
            coordinator=self._coordinator,
            boundaries=boundaries,
            together=self._together(STEPS_TOGETHER if self._trains else self._plan.depth // 2),
            longer=STEPS_LONGER if self._trains else 1,
            joins=self._trains_alone,
        )
        return sources, [task for tasks in by_value.values() for task in tasks], compute

    def _output(self, value: int, tasks: list[SinkTask]) -> Output:
        clock = self._pass.clock_of(value)
        spec = tasks[0].stage.spec
        pool = self._pool(spec, clock.batch_items, clock.length if clock.is_root else None)
        self._record.edges += [(task.channel, pool) for task in tasks]
        return Output(value, clock, pool, tasks)

    @property
    def _trains(self) -> bool:
        """True where batches are the steps of a training that takes all of them."""
        elements = [step.node.element for step in self._pass.steps if isinstance(step, NodeStep)]
        trainings = [one for one in elements if isinstance(one, Training)]
        return bool(trainings) and not any(one.evaluation is not None and one.evaluation.stops for one in trainings)

    @property
    def _trains_alone(self) -> bool:
        """True where nothing is computed but such a training, in the host's own memory.

        Discrete devices keep what a batch begins with, in place of a second result.
        """
        steps = [step.node for step in self._pass.steps if isinstance(step, NodeStep)]
        alone = all(isinstance(node.element, Training) or node.op is TRAINED for node in steps)
        in_place = self._plan.backend.capabilities.host_memory
        return self._trains and in_place and alone and len(steps) == len(self._pass.steps)

    def _together(self, most: int) -> int:
        """Return the most batches that are computed in one hand-over: one where somebody looks at each of them.

        Args:
            most: where nobody does. Results that have no memory of their own make it fewer.
        """
        settings = self._settings
        each = settings.after_batch is not None or settings.throttle_s > 0 or settings.live is not None
        return 1 if each or self._coordinator.is_open else max(1, most)

    def _items_cut(self, clock: Clock) -> int:
        """Return the records that are read at a time: several batches of a stream that nobody has to wait for."""
        each = self._settings.after_batch is not None or self._settings.throttle_s > 0
        return clock.cut_items if clock.cut_items and (each or clock.length is None) else clock.batch_items

    def _channel(self, producer: StageReporter, consumer: StageReporter, joined: int = 1) -> Channel:
        # One batch of the depth is in the consumer's hands; the others may lie in between.
        channel = Channel(producer, consumer, (self._plan.depth - 1) * joined)
        self._channels.append(channel)
        return channel

    def _pool(self, spec: Spec, items: int, length: int | None) -> Pool:
        items = items if length is None else min(items, length)
        pool = Pool(self._tracker, self._plan.depth, items, spec.shape, spec.dtype, self._executor.room)
        self._pools.append(pool)
        return pool
