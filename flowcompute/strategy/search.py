"""Searches over knobs: the next candidate to measure, and whether one is better than the default.

A measurement is a pair: the seconds of a candidate divided by those of the default on the same data, measured one after
the other. Comparisons use the logarithm of this ratio, which is 0 for the default, since machines become slower and
faster by factors. Searches use no clock.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from flowcompute.imports import dataclass

Candidate = tuple[tuple[str, int | str], ...]
"""Values of the knobs that differ from the default, sorted by name."""

Space = Mapping[str, Sequence[int | str]]
"""Knobs with their values. The default value need not be among them."""

LEAST_GAIN = 0.02
"""Smallest share of time that a candidate must save. Less is not worth another kernel."""

JUDGED_PAIRS = 12
"""Pairs by which a candidate is accepted or rejected.

The pairs by which it was selected are not among them, since the best of many has an optimistic bias. If all candidates
are equal, one in 150 searches accepts a candidate; with eight pairs one in 25 would.
"""

ALLOWED_AGAINST = 1
"""Number of these pairs in which the candidate may be slower, since a machine may stall once."""

_NORMAL = 1.4826
"""Ratio of the standard deviation of a normal distribution to its median absolute deviation."""

_OF_MEDIAN = 1.2533
"""Ratio of the standard error of the median of a normal distribution to that of the mean."""


@dataclass(frozen=True)
class Judgement:
    """Statistics of the pairs of a candidate.

    Attributes:
        gain: share of the default's time that it saves, as the median of its pairs.
        noise: two standard errors of the gain, from the spread of the pairs; infinite for fewer than three.
        pairs: number of pairs.
        against: number of pairs in which the candidate was slower.
    """

    gain: float
    noise: float
    pairs: int
    against: int = 0

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Judgement:
        """Compute the statistics from logarithms of ratios of the candidate's seconds to the default's."""
        if not ratios:
            return cls(0.0, math.inf, 0)
        values = np.asarray(ratios)
        middle, error = spread_of(values)
        noise = math.inf if len(values) < 3 else 2 * error
        return cls(1 - math.exp(middle), noise, len(values), int(np.sum(values >= 0)))

    @property
    def is_better(self) -> bool:
        """Flag that the candidate is to replace the default."""
        sure = self.gain > self.noise and self.against <= ALLOWED_AGAINST
        return self.pairs >= JUDGED_PAIRS and self.gain >= LEAST_GAIN and sure


def spread_of(values: np.ndarray) -> tuple[float, float]:
    """Return the median of measurements, and its standard error from their median absolute deviation."""
    middle = float(np.median(values))
    spread = _NORMAL * float(np.median(np.abs(values - middle)))
    return middle, _OF_MEDIAN * spread / math.sqrt(len(values))


class Search(ABC):
    """Base class of searches, which propose candidates one pair at a time.

    Args:
        space: knobs and their values.
        default: the default values.
        seed: seed of the random choices, so that equal runs try equal candidates.

    Attributes:
        ratios: logarithms of the ratios of each measured candidate, in the order of first measurement.
        failed: candidates that could not be measured.
        same: failed candidates that are equivalent to the default.
        picked: selected candidates, with the number of pairs that each had by then.
    """

    def __init__(self, space: Space, default: Mapping[str, int | str], seed: int) -> None:
        self.default = dict(default)
        self.space = {name: tuple(v for v in values if v != self.default.get(name)) for name, values in space.items()}
        self.ratios: dict[Candidate, list[float]] = {}
        self.failed: set[Candidate] = set()
        self.same: set[Candidate] = set()
        self.picked: dict[Candidate, int] = {}
        self._random = np.random.default_rng(seed)

    @abstractmethod
    def ask(self) -> Candidate | None:
        """Return the candidate to measure next; None if the search has ended."""

    def tell(self, candidate: Candidate, ratio: float) -> None:
        """Record that the candidate took `ratio` times the seconds of the default."""
        self.ratios.setdefault(candidate, []).append(math.log(ratio))

    def fail(self, candidate: Candidate) -> None:
        """Record that the candidate cannot be measured."""
        self.ratios.setdefault(candidate, [])
        self.failed.add(candidate)

    def skip(self, candidate: Candidate) -> None:
        """Record that the candidate is equivalent to the default and need not be measured."""
        self.fail(candidate)
        self.same.add(candidate)

    def judge(self, candidate: Candidate) -> Judgement:
        """Return the statistics of a candidate, from the pairs since it was selected, if it was."""
        fresh = self.ratios.get(candidate, [])[self.picked.get(candidate, 0) :]
        return Judgement.of(fresh or self.ratios.get(candidate, ()))

    def wants(self, candidate: Candidate) -> bool:
        """Select a candidate and check whether it needs more pairs to be judged."""
        self.picked.setdefault(candidate, len(self.ratios[candidate]))
        return len(self.ratios[candidate]) - self.picked[candidate] < JUDGED_PAIRS

    @property
    def best(self) -> Candidate:
        """Best of the candidates that are significantly better; the default, `()`, if there is none."""
        better = [one for one in self.picked if one not in self.failed and self.judge(one).is_better]
        return max(better, key=lambda one: self.judge(one).gain, default=())

    def draw(self, count: int) -> list[Candidate]:
        """Draw random candidates that were not measured yet."""
        drawn: dict[Candidate, None] = {}
        for _ in range(20 * count):
            if len(drawn) == count:
                break
            values = {
                name: (self.default[name], *others)[int(self._random.integers(len(others) + 1))]
                for name, others in self.space.items()
            }
            one = self._candidate(values)
            if one and one not in self.ratios:
                drawn[one] = None
        return list(drawn)

    def neighbours(self, centre: Candidate) -> list[Candidate]:
        """Return the unmeasured candidates that differ from `centre` in one knob, in random order."""
        values = {**self.default, **dict(centre)}
        found = [
            self._candidate({**values, name: value})
            for name, others in self.space.items()
            for value in (self.default[name], *others)
            if value != values[name]
        ]
        new = [one for one in found if one and one not in self.ratios]
        return [new[i] for i in self._random.permutation(len(new))]

    def _candidate(self, values: Mapping[str, int | str]) -> Candidate:
        return tuple(sorted((name, value) for name, value in values.items() if value != self.default[name]))


class RandomSearch(Search):
    """Random search, the baseline: each drawn candidate is measured equally often, then the best until judged.

    Args:
        count: number of candidates drawn.
        pairs: measurements of each.
    """

    def __init__(
        self, space: Space, default: Mapping[str, int | str], seed: int, *, count: int = 12, pairs: int = 2
    ) -> None:
        super().__init__(space, default, seed)
        self._drawn = self.draw(count)
        self._pairs = pairs

    def ask(self) -> Candidate | None:
        """Return the candidate to measure next; see `Search.ask`."""
        alive = [one for one in self._drawn if one not in self.failed]
        for one in alive:
            if len(self.ratios.get(one, ())) < self._pairs:
                return one
        if not alive:
            return None
        first = next(iter(self.picked), None) or max(alive, key=lambda one: self.judge(one).gain)
        return first if self.judge(first).gain > 0 and self.wants(first) else None


class Climb(Search):
    """Successive halving among neighbours, repeated from each winner, and from random candidates if none wins.

    A pool holds neighbours of the best candidate so far (at first the default) and a random candidate. Each neighbour
    differs in one knob. After a round of pairs the better half stays and is measured twice as often. The last one is
    measured until judged. Halving spends little on clearly worse candidates (Jamieson and Talwalkar, 2016). Neighbours
    find the knob that matters, and random candidates escape local optima.

    Args:
        first: candidates of the first pool.
        pool: candidates in a pool.
        dry: number of pools without a better candidate after which the search ends.
    """

    def __init__(
        self,
        space: Space,
        default: Mapping[str, int | str],
        seed: int,
        *,
        first: Sequence[Candidate] = (),
        pool: int = 4,
        dry: int = 2,
    ) -> None:
        super().__init__(space, default, seed)
        self._first = [one for one in first if one]
        self._size = pool
        self._dry = dry
        self._centre: Candidate = ()
        self._pairs = 1
        self._pool = self._next_pool()

    def ask(self) -> Candidate | None:
        """Return the candidate to measure next; see `Search.ask`."""
        while self._pool:
            self._pool = [one for one in self._pool if one not in self.failed]
            for one in self._pool:
                if len(self.ratios.get(one, ())) < self._pairs:
                    return one
            if len(self._pool) == 1 and self.wants(self._pool[0]):
                return self._pool[0]
            self._halve()
        return None

    def _halve(self) -> None:
        self._pool.sort(key=lambda one: -self.judge(one).gain)
        self._pool = [one for one in self._pool[: len(self._pool) // 2] if self.judge(one).gain > 0]
        self._pairs *= 2
        if self._pool:
            return
        better = self.best
        if better == self._centre:
            self._dry -= 1
        self._centre, self._pairs = better, 1
        self._pool = self._next_pool() if self._dry > 0 else []

    def _next_pool(self) -> list[Candidate]:
        near = self.neighbours(self._centre)
        far = [one for one in self.draw(self._size) if one not in near[: self._size - 1]]
        first, self._first = self._first, []
        return list(dict.fromkeys([*first, *near[: self._size - 1], *far[:1], *near, *far]))[: self._size]
