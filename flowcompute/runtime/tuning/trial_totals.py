"""Totals of the trials of a job, summed up from their events."""

from __future__ import annotations

from flowcompute.observe import EventStream, TrialFailed, TrialMeasured
from flowcompute.strategy import Candidate, Search, describe_candidate


class TrialTotals:
    """The trials of a job, while it runs and afterwards.

    Args:
        stream: the events of the job.

    Attributes:
        notes: what could not be tried, and why.
    """

    def __init__(self, stream: EventStream) -> None:
        self.notes: list[str] = []
        self._measured: dict[Search, set[Candidate]] = {}
        stream.subscribe({TrialMeasured: self._add, TrialFailed: self._fail})

    @property
    def measured(self) -> int:
        """Candidates that were measured at least once."""
        return sum(map(len, tuple(self._measured.values())))

    def _add(self, event: TrialMeasured) -> None:
        self._measured.setdefault(event.search, set()).add(event.candidate)

    def _fail(self, event: TrialFailed) -> None:
        self.notes.append(f"{event.where} {describe_candidate(event.candidate)}: {event.problem}")
