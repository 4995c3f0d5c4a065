"""Runs a plan: its passes in order, then everything that was written is committed, or nothing of it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import trio

from flowcompute.planner.plan import Plan, SinkStage
from flowcompute.planner.policies import find_dead_letters
from flowcompute.runtime.failure import attributed
from flowcompute.runtime.passes import Conduct, OpenWriters, RunningPass
from flowcompute.runtime.record import RunRecord
from flowcompute.runtime.workers import Workers


class Driver:
    """Runs one plan once, in the trio task that calls `run`.

    Args:
        plan: what to run.
        record: where to say how far it is.
        conduct: how to run it.

    Attributes:
        notes: what else went wrong while a failed run was put away, for the error that is raised.
    """

    def __init__(self, plan: Plan, record: RunRecord, conduct: Conduct) -> None:
        self.notes: list[str] = []
        self._plan = plan
        self._record = record
        self._conduct = conduct
        self._workers = Workers(max(len(each.sources) + len(each.sinks) + 1 for each in plan.passes))
        self._writers: OpenWriters = []
        self._resident: dict[int, np.ndarray] = {}
        self._letters = find_dead_letters(plan.graph)

    async def run(self) -> tuple[Any, ...]:
        """Run to the end; returns the values of the roots, in their order.

        Cancelled or failed, it leaves nothing open and nothing written, but for the dead-letter
        files of a run that failed, which are needed most then. Once the results are being
        committed it is no longer cancelled.

        Raises:
            FlowError: the first failure, with any others as notes.
        """
        try:
            if self._letters:
                await self._workers.call(self._open_letters)
            for index in range(len(self._plan.passes)):
                await self._run_pass(index)
            with trio.CancelScope(shield=True):
                values = await self._workers.call(self._commit)
        except BaseException as error:
            # What is no Exception is a cancellation or an interrupt: nothing went wrong that would have to be told.
            with trio.CancelScope(shield=True):
                await self._workers.call(self._abort, isinstance(error, Exception))
            raise
        return tuple(values[root] for root in sorted(values) if root != SinkStage.NO_ROOT)

    async def _run_pass(self, index: int) -> None:
        running = RunningPass(
            self._plan,
            index,
            conduct=self._conduct,
            record=self._record,
            workers=self._workers,
            writers=self._writers,
            resident=self._resident,
            letters=self._letters,
        )
        try:
            await running.open()
            await running.run()
        except BaseException:
            with trio.CancelScope(shield=True):
                self.notes += [f"also failed: {failure}" for failure in await running.close()]
            raise
        with trio.CancelScope(shield=True):
            failures = await running.close()
        if failures:
            self.notes += [f"also failed: {failure}" for failure in failures[1:]]
            raise failures[0]

    def _open_letters(self) -> None:
        for letters in self._letters.values():
            letters.open()

    def _commit(self) -> dict[int, Any]:
        values: dict[int, Any] = {}
        complete: list[str] = []
        for letters in self._letters.values():
            letters.commit()
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

    def _abort(self, keep_letters: bool) -> None:
        for letters in self._letters.values():
            try:
                (letters.commit if keep_letters else letters.discard)()
            except Exception as failure:  # noqa: BLE001 - as below
                self.notes.append(f"also failed: {failure}")
        for sink, writer in self._writers:
            try:
                with attributed(sink.name, sink.element.site):
                    writer.abort()
            except Exception as failure:  # noqa: BLE001 - all are aborted, then the failures are told
                self.notes.append(f"also failed: {failure}")
        self._writers.clear()
