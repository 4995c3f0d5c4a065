"""Trials: a candidate is measured alternately with what is in use, and its pairs are judged.

Kernels, knobs of the run and rehearsals share this. `Candidate` says what is tried, `PairedTrials` measures it,
`Search.best` is what is accepted, and `trials_of` tells of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.strategy.search import Candidate, Search
from flowcompute.strategy.trial import Trial

IN_USE: Candidate = ()
"""The candidate that changes nothing."""


class PairedTrials:
    """Measures pairs of a candidate and what is in use, on the same data.

    Args:
        least_s: seconds that a measurement counts at least, as a clock may stand still.
    """

    def __init__(self, least_s: float = 1e-12) -> None:
        self._least_s = least_s
        self._first = False

    def order(self, candidate: Candidate) -> tuple[Candidate, Candidate]:
        """Return the two in the order in which they are measured.

        Who goes first finds other caches: that changes with each pair.
        """
        self._first = not self._first
        return (candidate, IN_USE) if self._first else (IN_USE, candidate)

    def ratio(self, candidate: Candidate, seconds: Callable[[Candidate], float]) -> float:
        """Measure a pair, and return the seconds of the candidate by those of what is in use.

        Args:
            candidate: what is tried.
            seconds: measures one of the two.
        """
        measured = {one: max(seconds(one), self._least_s) for one in self.order(candidate)}
        return measured[candidate] / measured[IN_USE]


def trials_of(where: str, search: Search) -> list[Trial]:
    """Return what a search has tried, and what came of it.

    Args:
        where: "run", or the name of a kernel.
        search: whose judgement decides.
    """
    trials = []
    for candidate in (one for one in search.ratios if one not in search.same):
        judged = search.judge(candidate)
        noise = judged.noise if np.isfinite(judged.noise) else None
        trial = Trial(where, describe_candidate(candidate), judged.gain, noise, judged.pairs, "not better")
        if candidate in search.failed:
            trial = replace(trial, outcome="failed")
        elif candidate == search.best:
            trial = replace(trial, outcome="kept")
        elif judged.gain > 0:
            trial = replace(trial, outcome="not confirmed" if judged.pairs < 3 else "within the noise")
        trials.append(trial)
    return trials


def differing(knobs: Mapping[str, Any], others: Mapping[str, Any]) -> Candidate:
    """Return what others have in place of these knobs."""
    return tuple(sorted((name, others[name]) for name in knobs if others.get(name, knobs[name]) != knobs[name]))


def describe_candidate(candidate: Candidate) -> str:
    """Return a candidate in words."""
    return ", ".join(f"{name}={value}" for name, value in candidate)
