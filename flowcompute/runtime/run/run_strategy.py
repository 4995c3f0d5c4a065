"""The strategy of a run, and who looks for a better one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from flowcompute.engine import PlannedJob
from flowcompute.metrics import NodeMetrics
from flowcompute.observe import EventStream
from flowcompute.runtime.channels import RunRecord, pace_of
from flowcompute.runtime.run.live_trials import LiveTrials
from flowcompute.schedule import note_pace
from flowcompute.schedule.explain import complete_strategy
from flowcompute.strategy import Strategy, Tuning


class RunTuner(Protocol):
    """Looks for a better strategy while a run works.

    Attributes:
        job: what is run meanwhile.
        live: tries knobs of the run.
        stream: the events of the run, which is told of trials.
    """

    job: PlannedJob
    live: LiveTrials
    stream: EventStream

    def finish(
        self, cancelled: Callable[[], bool], rows: Mapping[str, NodeMetrics], drift: float | None
    ) -> tuple[Strategy, Tuning]:
        """After the end of a complete run: the strategy for the next one, and how it was found.

        Args:
            cancelled: whether to stop.
            rows: what the stages of the run did.
            drift: how many times as long records took as with what is kept when that was new, where they did.
        """


class Chosen:
    """The strategy of one run.

    Attributes:
        job: what is to be run: the job as it was planned, or what a tuner has made of it.
        live: who tries knobs of the run meanwhile, if anybody.
        stream: the events of the run.
        strategy: all knobs; after `finish` those that were kept.
        tuning: how they were found.
    """

    def __init__(self, job: PlannedJob, tuner: RunTuner | None) -> None:
        self.job = job if tuner is None else tuner.job
        self.live = None if tuner is None else tuner.live
        self.stream = EventStream() if tuner is None else tuner.stream
        self.strategy, self.tuning = complete_strategy(job.plan), job.plan.tuning
        self._tuner = tuner

    def finish(self, cancelled: Callable[[], bool], record: RunRecord, *, throttled: bool = False) -> None:
        """Look at the pace of a complete run, and let the tuner try what is left.

        The results are there, and nothing that goes wrong now takes them away.

        Args:
            cancelled: whether to stop.
            record: of the run.
            throttled: whether it paused between batches, so that its pace is not the job's own.
        """
        try:
            drift = None if throttled else note_pace(self.job.plan, pace_of(record))
            if drift is not None:
                note = (
                    f"a record took {drift:.2f} times as long as when this strategy was new; tune=True searches again"
                )
                self.tuning = replace(self.tuning, notes=(*self.tuning.notes, note))
            if self._tuner is not None:
                self.strategy, self.tuning = self._tuner.finish(cancelled, record.metrics({}), drift)
        except Exception as error:  # noqa: BLE001 - told in `tuning`
            note = f"tuning failed: {type(error).__name__}: {error}"
            self.tuning = replace(self.tuning, notes=(*self.tuning.notes, note))
