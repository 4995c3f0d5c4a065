"""View of a run while it works and afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from rich.filesize import decimal

from flowcompute.html import heading
from flowcompute.metrics import Checkpoints, Metrics, Progress, Skipped
from flowcompute.observe import Observers
from flowcompute.runtime.channels import RunRecord
from flowcompute.runtime.run.run_strategy import Chosen
from flowcompute.schedule import policies
from flowcompute.schedule.explain import Expectation, Plan, limits_of, missed, rooflines
from flowcompute.strategy import Strategy, Tuning


class Watched(ABC):
    """The numbers of a run; all may be asked for from any thread, at any time."""

    plan: Plan
    _chosen: Chosen
    _expected: tuple[Expectation, ...]
    _record: RunRecord
    _aliases: Mapping[str, str]
    _observers: Observers

    @property
    def progress(self) -> Progress:
        """The progress."""
        return self._watched().progress

    @property
    def metrics(self) -> Metrics:
        """The work of each stage so far; also answers by the names of elements inside a stage."""
        return self._watched().metrics(self._aliases)

    @property
    def skipped(self) -> dict[str, Skipped]:
        """The records dropped so far by each element with `on_error=`: how many, and the first 100 by name.

        Less than a whole stream may be wanted (`y[:10]`). How far it was read then depends on the batch size, and so
        does what was dropped.
        """
        dropped = self._watched().skipped()
        return {name: dropped.get(policy, Skipped()) for policy, name in policies(self.plan.graph).items()}

    @property
    def strategy(self) -> Strategy:
        """Every knob of the run, comparable; once a tuned run has ended, those of the strategy that was kept."""
        self._check_usable("ask a run for its strategy")
        return self._chosen.strategy

    @property
    def tuning(self) -> Tuning:
        """The trials for the strategy, what came of them, and how near regions came to what the device can do."""
        self._check_usable("ask a run for its trials")
        done = rooflines(self.plan, self._record.metrics({}), limits_of(self.plan))
        return replace(self._chosen.tuning, rooflines=done)

    @property
    def checkpoints(self) -> Checkpoints:
        """The number of its checkpoints, and their cost."""
        return self._watched().kept

    @property
    def notes(self) -> tuple[str, ...]:
        """The differences from the plan, in words: smaller batches where its device has no room for them.

        Once the run has ended they also name the stages that took much longer than the plan expected.
        """
        record = self._watched()
        return (*record.notes, *(missed(self._expected, record.metrics({})) if record.progress.done else ()))

    @property
    def bottleneck(self) -> str | None:
        """Name of the stage that the others waited for most; None before the first batch."""
        return self._watched().bottleneck

    @property
    def metrics_port(self) -> int | None:
        """The port where Prometheus is served; None where none is, and after the end of the run."""
        self._check_usable("watch a run")
        return self._observers.port

    @property
    def page(self) -> str | None:
        """The address of the page that shows it (`page=`); None where there is none, and after the end of the run."""
        self._check_usable("watch a run")
        return self._observers.page

    @property
    def launches(self) -> int:
        """Kernels launched so far."""
        return self._watched().launches

    @property
    def bytes_read(self) -> int:
        """Bytes that the sources gave so far."""
        return self._watched().bytes_read

    @property
    def bytes_written(self) -> int:
        """Bytes that the destinations took so far."""
        return self._watched().bytes_written

    @property
    def seconds(self) -> float:
        """Seconds since the start, or from start to end."""
        return self._watched().seconds

    @property
    def peak_bytes(self) -> int:
        """The most bytes that the run's own batch buffers, and results that grow, took at a time."""
        return self._watched().tracker.peak_bytes

    def _repr_html_(self) -> str:
        progress = self._watched().progress
        rate = f"{decimal(int(progress.throughput))}/s read and written"
        waited = f", busiest: {self._record.bottleneck}" if self._record.bottleneck else ""
        told = f"{self._state}: {progress.records} in {progress.seconds:.3f} s, {rate}{waited}"
        return heading("Run", told) + self._record.metrics(self._aliases)._repr_html_()

    @property
    @abstractmethod
    def _state(self) -> str:
        """State in a word: running, complete or failed."""

    @abstractmethod
    def _check_usable(self, doing: str) -> None:
        """Raise RunError where the run cannot be asked, as in a forked process."""

    def _watched(self) -> RunRecord:
        self._check_usable("watch a run")
        return self._record
