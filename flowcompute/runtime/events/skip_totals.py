"""The records that error policies have dropped, summed up from events."""

from __future__ import annotations

from flowcompute.elements.policies import ErrorPolicy, SkipCounter
from flowcompute.metrics import Skipped
from flowcompute.observe import EventStream, RecordsSkipped


class SkipTotals:
    """The records that each element of a run or a flow has dropped.

    Args:
        stream: the events of the run. Counters are told to it, and the totals taken from it.
    """

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._readings: dict[int, RecordsSkipped] = {}
        stream.subscribe({RecordsSkipped: self._skipped})

    def watch(self, counter: SkipCounter) -> None:
        """Tell of a reading of an element's input from now on."""
        stream, reading = self._stream, len(self._readings)
        counter.watch(lambda now: stream.emit(RecordsSkipped(reading, now.policy, now.skipped)))

    def _skipped(self, event: RecordsSkipped) -> None:
        self._readings[event.reading] = event

    def by_policy(self) -> dict[ErrorPolicy, Skipped]:
        """Return what each element has dropped: of one that was read several times, the reading that dropped most.

        Each reading drops the same records, and one that was ended early not all of them.
        """
        found: dict[ErrorPolicy, Skipped] = {}
        for one in tuple(self._readings.values()):
            if one.skipped.count >= found.setdefault(one.policy, one.skipped).count:
                found[one.policy] = one.skipped
        return found

    @property
    def count(self) -> int:
        """Records that were dropped."""
        return sum(one.count for one in self.by_policy().values())
