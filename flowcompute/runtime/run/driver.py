"""Runs a plan: its passes in order, then everything that was written is committed, or nothing of it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from flowcompute.elements import Writer
from flowcompute.engine import PlannedJob, check_stopped
from flowcompute.runtime.channels import OwnThread, RunRecord, Workers, WorkerThreads, attributed
from flowcompute.runtime.checkpoints import CheckpointCoordinator, Request, Resume
from flowcompute.runtime.run.running_pass import OpenWriters, PassSettings, RunningPass
from flowcompute.schedule import SinkStage, find_dead_letters
from flowcompute.schedule.explain import Plan
from flowcompute.schedule.memory import uploads_at_a_time


def workers_of(plan: Plan) -> Workers:
    """Return who makes the calls of a run that block: threads, but for a plan in which nothing streams."""
    if not any(each.clocks for each in plan.passes):
        return OwnThread()
    # A source may have two reads under way.
    ends = max(2 * len(each.sources) + len(each.sinks) for each in plan.passes)
    alone = plan.backend.capabilities.devices == 1 and not any(each.ahead for each in plan.passes)
    moving = uploads_at_a_time(plan.depth) if alone else plan.depth
    # Beside those: one computes, one tells destinations of their own memory, one takes checkpoints.
    return WorkerThreads(ends + 3 + 2 * moving)


class Driver:
    """Runs one planned job once, in the coroutine that awaits `run`.

    Args:
        job: what to run.
        record: where to say how far it is.
        settings: how to run it.
        request: the checkpoint that is asked for.
        workers: who drives the coroutine, and makes calls that block; by default those of the plan.

    Attributes:
        notes: what else went wrong while a failed run was put away, for the error that is raised.
    """

    def __init__(
        self,
        job: PlannedJob,
        record: RunRecord,
        settings: PassSettings,
        request: Request | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.notes: list[str] = []
        self._job = job
        self._plan = plan = job.plan
        self._record = record
        self._settings = settings
        self._workers = workers or workers_of(plan)
        self._writers: OpenWriters = []
        self._values: dict[int, Any] = {}
        self._resident: dict[int, np.ndarray] = {}
        self._resumes = request is not None and request.path is not None
        self._dead_letters = find_dead_letters(plan.graph)
        dead_letters = tuple(self._dead_letters.values())
        self._coordinator = CheckpointCoordinator(
            plan, record, self._workers, request or Request(), self._writers, dead_letters
        )

    async def run(self) -> tuple[Any, ...]:
        """Run to the end; returns the values of the roots, in their order.

        Cancelled or failed, it leaves nothing open and, without a checkpoint, nothing written. Dead-letter files of a
        run that failed stay, since they are needed most then. With a checkpoint what was written stays where it is, for
        the run that resumes the job. Once the results are being committed it is no longer cancelled.

        Raises:
            FlowError: the first failure, with any others as notes.
            FrozenError: when it was asked to freeze, and has.
        """
        try:
            body = await self._workers.call(self._begin) if self._resumes else None
            if body is not None and body["done"]:
                self._values = await self._workers.call(self._recover, body)
            else:
                await self._run_passes(body)
        except BaseException as error:
            # What is no Exception is a cancellation or an interrupt: nothing went wrong that would have to be told.
            with self._workers.shielded():
                await self._workers.call(self._suspend if self._coordinator.keeps else partial(self._abort, error))
            raise
        finally:
            if self._coordinator.is_open:
                with self._workers.shielded():
                    await self._workers.call(self._coordinator.close)
        return tuple(self._values[root] for root in sorted(self._values) if root != SinkStage.NO_ROOT)

    @property
    def after_stop(self) -> str:
        """The advice for somebody who stopped the run."""
        kept = "what it did until its last checkpoint is kept; start it again to go on"
        return kept if self._coordinator.keeps else "its results were dropped; start it again"

    async def _run_passes(self, body: Mapping[str, Any] | None) -> None:
        """Run all passes, or those that are left of a frozen job."""
        first, resume = 0, None
        if body is None and self._coordinator.token is not None:
            # The checkpoint appears when nothing but batches is left to do.
            await self._workers.call(self._job.prepare)
        if body is not None:
            first, resume = self._coordinator.resume(body)
            await self._workers.call(self._reopen, first, body)
        for index in range(first, len(self._plan.passes)):
            await self._run_pass(index, resume if index == first else None)

    def _begin(self) -> dict[str, Any] | None:
        """Take the checkpoint, and open dead-letter files unless the job is done; gives the state to go on with."""
        body = self._coordinator.open()
        if body is None or not body["done"]:
            check_stopped()
            self._open_letters(body)
        return body

    def _reopen(self, first: int, body: Mapping[str, Any]) -> None:
        """Open the results and whole values of the passes before `first` again."""
        for each in self._plan.passes[:first]:
            for sink in each.sinks:
                position = len(self._writers)
                with attributed(sink.name, sink.element.site), self._coordinator.sound_state():
                    state = body["sinks"][position]
                    self._writers.append(
                        (sink, sink.element.reopen(sink.spec, self._coordinator.place(position), state))
                    )
        self._resident.update(self._coordinator.resident(body))

    def _recover(self, body: Mapping[str, Any]) -> dict[int, Any]:
        """Return the values of a job that is done; gives files their names where nobody lived to do it."""
        values: dict[int, Any] = {}
        sinks = [sink for each in self._plan.passes for sink in each.sinks]
        for position, sink in enumerate(sinks):
            with attributed(sink.name, sink.element.site), self._coordinator.sound_state():
                state = body["sinks"][position]
                values[sink.root] = sink.element.recover(sink.spec, self._coordinator.place(position), state)
        with self._coordinator.sound_state():
            letters = zip(self._dead_letters.values(), body["letters"], strict=True)
            for position, (dead_letters, state) in enumerate(letters):
                dead_letters.recover(self._letters_token(position), state)
        return values

    async def _run_pass(self, index: int, resume: Resume | None) -> None:
        running = RunningPass(
            self._job,
            index,
            settings=self._settings,
            record=self._record,
            workers=self._workers,
            writers=self._writers,
            resident=self._resident,
            dead_letters=self._dead_letters,
            coordinator=self._coordinator,
            resume=resume,
        )
        self._coordinator.enter_pass(index, self._resident, resumed=resume is not None)
        try:
            # Whether there is a pass to go on with is known; the rest needs no hand-over of its own.
            await running.open(lambda: None if index or self._resumes else self._begin())
            await running.run()
        except BaseException:
            with self._workers.shielded():
                self.notes += [f"also failed: {failure}" for failure in await running.close()]
            raise
        is_last = index == len(self._plan.passes) - 1
        with self._workers.shielded():
            failures = await running.close(self._complete if is_last else lambda: None)
        if failures:
            self.notes += [f"also failed: {failure}" for failure in failures[1:]]
            raise failures[0]

    def _open_letters(self, body: Mapping[str, Any] | None) -> None:
        for position, dead_letters in enumerate(self._dead_letters.values()):
            with self._coordinator.sound_state():
                dead_letters.open(self._letters_token(position), None if body is None else body["letters"][position])

    def _letters_token(self, position: int) -> str | None:
        return None if self._coordinator.token is None else self._coordinator.letters_token(position)

    def _complete(self) -> None:
        """Decide that the job is done, and give all results their names."""
        self._coordinator.finish()
        self._values = self._commit()

    def _commit(self) -> dict[int, Any]:
        values: dict[int, Any] = {}
        complete: list[str] = []
        for dead_letters in self._dead_letters.values():
            dead_letters.commit()
        try:
            while self._writers:
                sink, writer = self._writers[0]
                with attributed(sink.name, sink.element.site):
                    values[sink.root] = writer.commit()
                complete.append(sink.name)
                del self._writers[0]
        except BaseException:
            if complete:
                self.notes.append(f"complete before that: {', '.join(complete)}")
            raise
        return values

    def _abort(self, error: BaseException) -> None:
        """Drop what was written, but for what a failed run has written down of the records that it dropped."""
        for dead_letters in self._dead_letters.values():
            try:
                (dead_letters.commit if isinstance(error, Exception) else dead_letters.discard)()
            except Exception as failure:  # noqa: BLE001 - as below
                self.notes.append(f"also failed: {failure}")
        self._put_away(lambda writer: writer.abort())

    def _suspend(self) -> None:
        """Leave what was written for the run that resumes the job."""
        for dead_letters in self._dead_letters.values():
            try:
                dead_letters.suspend()
            except Exception as failure:  # noqa: BLE001 - as below
                self.notes.append(f"also failed: {failure}")
        self._put_away(lambda writer: writer.suspend())

    def _put_away(self, end: Callable[[Writer], None]) -> None:
        for sink, writer in self._writers:
            try:
                with attributed(sink.name, sink.element.site):
                    end(writer)
            except Exception as failure:  # noqa: BLE001 - all are put away, then the failures are told
                self.notes.append(f"also failed: {failure}")
        self._writers.clear()
