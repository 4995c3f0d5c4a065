"""Knobs of the run, tried while a pass works.

Parts of the stream are computed with a candidate and with what is in use, alternately. Both are timed by when their
batches are done. A candidate's records count, so a trial costs only what it took beyond the other's pace. Only what the
plan has memory for is tried: peak memory stays what the plan says.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from flowcompute.elements import Reader
from flowcompute.observe import BatchComputed, EventStream, TrialMeasured
from flowcompute.runtime.stages import BatchBoundaries
from flowcompute.schedule.explain import Plan, batch_sizes, complete_strategy, is_read_in_parts
from flowcompute.strategy import Candidate, Climb, DriftWatch, PairedTrials, Search, Space

PART_S = 0.05
"""Least seconds of a part: long against the hand-over of a batch."""

PART_BATCHES = 4
"""Batches of the plan in a part, at least."""

GIVE_UP = 2.0
"""A candidate that has taken so many times what the other would have is not measured any longer."""

WARM_BATCHES = 4
"""Batches before anything is measured: kernels are built, caches filled."""

Steps = Generator[None, tuple[int, float], None]
"""Goes on with each batch that is done: the record at which it ends, and when that was."""


class Cost(Protocol):
    """Seconds for trials."""

    spent_s: float
    """Those that were spent."""

    def affords(self, seconds: float) -> bool:
        """Check whether so many more may be spent."""


class LiveTrials:
    """Looks for better knobs of the run while its passes work.

    Only where the sources of a pass advance in step: else nobody could say how long a record takes.

    Args:
        plan: what is run.
        cost: seconds for trials.
        seed: of the search.
        values: candidates for `batch_bytes`.
        stream: is told of each trial.

    Attributes:
        searches: one, and one more each time that it was opened again.
        notes: why it was.
        pairs: the order in which a candidate and what is in use are measured.
    """

    def __init__(self, plan: Plan, cost: Cost, seed: int, values: Sequence[int], stream: EventStream) -> None:
        self._plan = plan
        self._cost = cost
        self._stream = stream
        self._seed = seed
        self._kept = complete_strategy(plan)
        self._sizes = {value: batch_sizes(plan, value) for value in values}
        self._space = self._space_of(plan)
        self.pairs = PairedTrials()
        self._steps: Steps | None = None
        self.searches: list[Search] = []
        self._search()
        self.notes: list[str] = []

    @property
    def best(self) -> Candidate:
        """The knobs that are better than those of the plan for certain."""
        before, now = complete_strategy(self._plan), replace(self._kept, **self._knobs(self.searches[-1].best))
        named = ((name, getattr(now, name)) for name in self._space)
        return tuple(sorted((name, value) for name, value in named if value != getattr(before, name)))

    def begin(self, index: int, boundaries: Sequence[BatchBoundaries], readers: Sequence[Reader]) -> None:
        """Begin a pass.

        Args:
            index: which of the plan's.
            boundaries: of its root clocks.
            readers: of its sources.
        """
        self._steps = None
        if len(boundaries) == 1 and self._space:
            self._steps = _Pass(self, index, boundaries[0], readers).steps()
            next(self._steps)

    def computed(self, event: BatchComputed) -> None:
        """Take note of a batch that has been computed; called in the trio thread."""
        if self._steps is not None:
            self._steps.send((event.stop, event.at_s))

    # -- for a pass ---------------------------------------------------------------------------------------

    def next_candidate(self, part_s: float) -> Candidate | None:
        """Return what to measure next, if the budget affords it; None where nothing is left, or too little time.

        Args:
            part_s: what a part takes with what is in use.
        """
        search = self.searches[-1]
        candidate = search.ask()
        if candidate is None:
            return None
        known = search.judge(candidate) if candidate in search.ratios else None
        return candidate if self._cost.affords(part_s * (1.0 if known is None else max(-known.gain, 0.0))) else None

    @property
    def is_done(self) -> bool:
        """True when nothing is left to learn."""
        return self.searches[-1].ask() is None

    def tell(self, candidate: Candidate, ratio: float, lost_s: float) -> None:
        """Note that a candidate took `ratio` times the seconds of what is in use, and `lost_s` more than these."""
        search, lost_s = self.searches[-1], max(lost_s, 0.0)
        search.tell(candidate, ratio)
        self._cost.spent_s += lost_s
        self._stream.emit(TrialMeasured("run", search, candidate, ratio, lost_s))

    def open_again(self, drift: float) -> None:
        """Search again: records take another time than they did, and what was learnt may no longer hold."""
        self.notes.append(f"a record took {drift:.2f} times as long as before: searched again while the job ran")
        self._kept = replace(self._kept, **self._knobs(self.searches[-1].best))
        self._search()

    def items_of(self, index: int, candidate: Candidate, most: int) -> int:
        """Return the records in a batch of a pass."""
        sizes = self._sizes.get(self._knob("batch_bytes", candidate))
        return most if sizes is None else min(most, sizes[index])

    def threads_of(self, candidate: Candidate) -> int:
        """Return the threads that read a batch together."""
        return self._knob("reader_threads", candidate)

    @property
    def in_use(self) -> Candidate:
        """The knobs that the job goes on with."""
        return self.searches[-1].best

    @property
    def spent_s(self) -> float:
        """Seconds of all trials."""
        return self._cost.spent_s

    # -- inside -------------------------------------------------------------------------------------------

    def _knob(self, name: str, candidate: Candidate) -> int:
        value: int = {name: getattr(self._kept, name), **self._knobs(candidate)}[name]
        return value

    @staticmethod
    def _knobs(candidate: Candidate) -> dict[str, Any]:
        return dict(candidate)

    def _space_of(self, plan: Plan) -> Space:
        own = [one.batch_items for one in plan.passes]
        smaller = [
            value
            for value, sizes in self._sizes.items()
            if sizes != own and all(size <= most for size, most in zip(sizes, own, strict=True))
        ]
        space: dict[str, tuple[int | str, ...]] = {"batch_bytes": tuple(smaller)}
        mapped = self._kept.input == "mapped"
        if any(is_read_in_parts(source.element, mapped) for one in plan.passes for source in one.sources):
            space["reader_threads"] = (1, 2, 4)
        return {name: tried for name, tried in space.items() if tried and getattr(plan.pinned, name) is None}

    def _search(self) -> None:
        default = {name: getattr(self._kept, name) for name in self._space}
        self.searches.append(Climb(self._space, default, self._seed + len(self.searches)))


class _TimedPart(NamedTuple):
    """A run of records that were computed with the same knobs.

    Attributes:
        record_s: seconds of one.
        records: how many, those included that were not measured.
        disturbed: whether other trials took a part of the seconds.
    """

    record_s: float
    records: int
    disturbed: bool


class _Pass:
    """The trials of one pass, batch by batch."""

    def __init__(self, trials: LiveTrials, index: int, boundaries: BatchBoundaries, readers: Sequence[Reader]) -> None:
        self._trials = trials
        self._index = index
        self._boundaries = boundaries
        self._readers = readers
        self._used: Candidate | None = None
        self._length = 0
        self._record_s = 0.0

    def steps(self) -> Steps:
        """See `Steps`."""
        trials, watch = self._trials, DriftWatch()
        self._use(trials.in_use)
        yield from self._warm()
        while True:
            candidate = trials.next_candidate(self._length * self._record_s)
            if candidate is not None:
                yield from self._pair(candidate)
            elif not trials.is_done:
                self._use(trials.in_use)
                yield
            else:
                part = yield from self._part(trials.in_use)
                drift = None if part.disturbed else watch.drift(part.record_s)
                if drift is not None:
                    trials.open_again(drift)
                    watch = DriftWatch()

    def _warm(self) -> Generator[None, tuple[int, float], None]:
        """Let the first batches pass, and see how long the next ones take."""
        for _ in range(WARM_BATCHES):
            first, began_s = yield
        for _ in range(WARM_BATCHES):
            stop, now_s = yield
        self._record_s = max((now_s - began_s) / (stop - first), 1e-12)
        self._length = max(PART_BATCHES * self._boundaries.most_items, math.ceil(PART_S / self._record_s))

    def _pair(self, candidate: Candidate) -> Generator[None, tuple[int, float], None]:
        """Measure a candidate and what is in use, one after the other."""
        measured: dict[Candidate, _TimedPart] = {}
        for one in self._trials.pairs.order(candidate):
            measured[one] = part = yield from self._part(one)
            if part.disturbed:
                return
        tried, used = measured[candidate], measured[()]
        self._record_s = used.record_s
        lost_s = (tried.record_s - used.record_s) * tried.records
        self._trials.tell(candidate, tried.record_s / used.record_s, lost_s)

    def _part(self, candidate: Candidate) -> Generator[None, tuple[int, float], _TimedPart]:
        """Compute some records with these knobs."""
        settle = 0 if candidate == self._used else 1
        begins = self._use(candidate)
        while True:
            first, began_s = yield
            # The first batches of another size were partly read before.
            if settle <= 0:
                break
            settle -= first > begins
        spent_s, limit_s = self._trials.spent_s, GIVE_UP * self._length * self._record_s
        while True:
            stop, now_s = yield
            if stop - first >= self._length or (candidate and now_s - began_s > limit_s):
                record_s = max((now_s - began_s) / (stop - first), 1e-15)
                return _TimedPart(record_s, stop - min(begins, first), self._trials.spent_s != spent_s)

    def _use(self, candidate: Candidate) -> int:
        """Go on with other knobs; gives the record from which on they count."""
        self._used = candidate
        for reader in self._readers:
            reader.threads = self._trials.threads_of(candidate)
        return self._boundaries.change(self._trials.items_of(self._index, candidate, self._boundaries.most_items))
