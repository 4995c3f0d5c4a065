"""Searches over knobs: which candidate to measure next, and whether one is better than the default.

A measurement is a pair: the seconds of a candidate by those of the default on the same data, one
after the other. What is compared with each other is the logarithm of that ratio, 0 for the
default itself, since machines become slower and faster by factors. Searches know no clock.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Candidate = tuple[tuple[str, int | str], ...]
"""Values of knobs that differ from the default, in the order of their names."""

Space = Mapping[str, Sequence[int | str]]
"""Knobs with their values; the default is not among them unless it is one."""

LEAST_GAIN = 0.02
"""What a candidate must save, however sure that is: less is not worth another kernel."""

JUDGED_PAIRS = 12
"""Pairs by which a candidate is kept or not. Those by which it was picked are not among them: who won a
lottery would seem to be lucky. Among equals one in 150 searches keeps a candidate; with eight pairs one in 25 would."""

ALLOWED_AGAINST = 1
"""Pairs of them in which it may take longer: a machine may stumble once."""

_NORMAL = 1.4826
"""The standard deviation of normal numbers by their median absolute deviation."""

_OF_MEDIAN = 1.2533
"""The standard error of their median by that of their mean."""


@dataclass(frozen=True)
class Judgement:
    """What the pairs of a candidate say.

    Attributes:
        gain: the share of the default's time that it saves, as the median of its pairs.
        noise: two standard errors of that, from the spread of the pairs; at least as much as a lone pair can say.
        pairs: how many there are.
        against: in how many of them the candidate took longer.
    """

    gain: float
    noise: float
    pairs: int
    against: int = 0

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Judgement:
        """Of logarithms of seconds by the default's seconds."""
        if not ratios:
            return cls(0.0, math.inf, 0)
        values = np.asarray(ratios)
        middle, error = spread_of(values)
        noise = math.inf if len(values) < 3 else 2 * error
        return cls(1 - math.exp(middle), noise, len(values), int(np.sum(values >= 0)))

    @property
    def is_better(self) -> bool:
        """Whether the candidate is to be kept in place of the default."""
        sure = self.gain > self.noise and self.against <= ALLOWED_AGAINST
        return self.pairs >= JUDGED_PAIRS and self.gain >= LEAST_GAIN and sure


def spread_of(values: np.ndarray) -> tuple[float, float]:
    """Median of measurements, and its standard error from their median absolute deviation."""
    middle = float(np.median(values))
    spread = _NORMAL * float(np.median(np.abs(values - middle)))
    return middle, _OF_MEDIAN * spread / math.sqrt(len(values))


class Search(ABC):
    """Proposes candidates one pair at a time.

    Args:
        space: knobs and their values.
        default: what the default has.
        seed: of the random choices, so that equal runs try equal things.

    Attributes:
        ratios: of each candidate that was measured, the logarithms, in the order of first measurement.
        failed: those that could not be measured.
        same: those of them that are the default by another name.
        picked: those that were picked, with the pairs that they had by then.
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
        """What to measure next; None when there is nothing left to learn."""

    def tell(self, candidate: Candidate, ratio: float) -> None:
        """The candidate took `ratio` times the seconds of the default."""
        self.ratios.setdefault(candidate, []).append(math.log(ratio))

    def fail(self, candidate: Candidate) -> None:
        """The candidate cannot be measured."""
        self.ratios.setdefault(candidate, [])
        self.failed.add(candidate)

    def skip(self, candidate: Candidate) -> None:
        """The candidate is what the default is: there is nothing to measure."""
        self.fail(candidate)
        self.same.add(candidate)

    def judge(self, candidate: Candidate) -> Judgement:
        """What is known of a candidate: by the pairs since it was picked, if it was."""
        fresh = self.ratios.get(candidate, [])[self.picked.get(candidate, 0) :]
        return Judgement.of(fresh or self.ratios.get(candidate, ()))

    def wants(self, candidate: Candidate) -> bool:
        """Whether a candidate, picked now or before, needs more pairs to be judged."""
        self.picked.setdefault(candidate, len(self.ratios[candidate]))
        return len(self.ratios[candidate]) - self.picked[candidate] < JUDGED_PAIRS

    @property
    def best(self) -> Candidate:
        """The best of the candidates that are better for certain; the default, `()`, if there is none."""
        better = [one for one in self.picked if one not in self.failed and self.judge(one).is_better]
        return max(better, key=lambda one: self.judge(one).gain, default=())

    def draw(self, count: int) -> list[Candidate]:
        """Candidates of any values that were not measured yet."""
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
        """Candidates that differ from `centre` in one knob and were not measured yet, in random order."""
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
    """The baseline: candidates drawn at random, each measured equally often; the best is measured until judged.

    Args:
        count: how many are drawn.
        pairs: how often each is measured.
    """

    def __init__(
        self, space: Space, default: Mapping[str, int | str], seed: int, *, count: int = 12, pairs: int = 2
    ) -> None:
        super().__init__(space, default, seed)
        self._drawn = self.draw(count)
        self._pairs = pairs

    def ask(self) -> Candidate | None:
        """See `Search.ask`."""
        alive = [one for one in self._drawn if one not in self.failed]
        for one in alive:
            if len(self.ratios.get(one, ())) < self._pairs:
                return one
        if not alive:
            return None
        first = next(iter(self.picked), None) or max(alive, key=lambda one: self.judge(one).gain)
        return first if self.judge(first).gain > 0 and self.wants(first) else None


class Climb(Search):
    """Successive halving among neighbours, from the winner on again, and from random places when none wins.

    A pool holds a few candidates: neighbours of the best so far (at first the default), in one
    knob each, and a random one. After a round of pairs the better half stays and is measured
    twice as often; the last one is measured until judged. Halving spends little on what is
    clearly worse (Jamieson and Talwalkar, 2016); neighbours find the knob that matters, and the
    random ones leave what is only locally best.

    Args:
        first: candidates of the first pool.
        pool: candidates in a pool.
        dry: pools without a better candidate after which it ends.
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
        """See `Search.ask`."""
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
