"""Searches: they find what is there to be found, spend little on it, and keep the default unless something is better."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from flowcompute.strategy.search import JUDGED_PAIRS, Climb, Judgement, RandomSearch

SPACE = {"a": (4, 8, 16), "b": (1, 2, 4, 8), "c": (1, 2, 3, 4, 5)}
DEFAULT = {"a": 16, "b": 1, "c": 3}
SEARCHES = pytest.mark.parametrize("kind", [RandomSearch, Climb])


def world(seed, spread=0.1):
    """Seconds of every candidate: each knob counts, and two of them together."""
    random = np.random.default_rng(seed)
    alone = {
        name: dict(zip(values, random.normal(0, spread, len(values)), strict=True)) for name, values in SPACE.items()
    }
    both = {pair: random.normal(0, spread / 3) for pair in itertools.product(SPACE["a"], SPACE["b"])}

    def seconds(candidate):
        values = {**DEFAULT, **dict(candidate)}
        return math.exp(sum(alone[name][values[name]] for name in SPACE) + both[values["a"], values["b"]])

    return seconds, random


def searched(search, seconds, random=None, noise=0.0):
    while (candidate := search.ask()) is not None:
        factor = math.exp(random.normal(0, noise)) if random is not None else 1.0
        search.tell(candidate, factor * seconds(candidate) / seconds(()))
    return seconds(search.best)


@SEARCHES
def test_one_that_is_clearly_better_is_found(kind):
    search = kind(SPACE, DEFAULT, seed=1)
    searched(search, lambda one: 0.5 if dict(one).get("b") in (2, 4, 8) else 1.0)
    assert dict(search.best)["b"] in (2, 4, 8)
    assert search.judge(search.best).gain == pytest.approx(0.5)


@SEARCHES
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.2])
def test_nothing_is_kept_where_all_are_equal(kind, noise):
    kept = 0
    for seed in range(40):
        search = kind(SPACE, DEFAULT, seed)
        searched(search, lambda _: 1.0, np.random.default_rng(seed), noise)
        kept += search.best != ()
    assert kept <= 5


@SEARCHES
def test_what_is_kept_is_not_worse_than_the_default(kind):
    worse = 0
    for seed in range(60):
        seconds, random = world(seed)
        worse += searched(kind(SPACE, DEFAULT, seed), seconds, random, 0.05) > 1.02 * seconds(())
    assert worse <= 1


def test_climbing_finds_more_than_chance_with_as_many_candidates():
    regret = {RandomSearch: 0.0, Climb: 0.0}
    count = dict.fromkeys(regret, 0)
    for seed in range(60):
        for kind in regret:
            seconds, random = world(seed)
            best = min(seconds(tuple(zip(SPACE, one, strict=True))) for one in itertools.product(*SPACE.values()))
            search = Climb(SPACE, DEFAULT, seed) if kind is Climb else RandomSearch(SPACE, DEFAULT, seed, count=18)
            regret[kind] += searched(search, seconds, random, 0.02) / best - 1
            count[kind] += len(search.ratios)
    assert count[Climb] <= count[RandomSearch]
    assert regret[Climb] < 0.7 * regret[RandomSearch]


@SEARCHES
def test_a_candidate_that_fails_is_asked_for_once(kind):
    search = kind(SPACE, DEFAULT, seed=3)
    asked = []
    while (candidate := search.ask()) is not None:
        asked.append(candidate)
        search.fail(candidate)
    assert len(asked) == len(set(asked)) >= 3
    assert search.best == ()


@SEARCHES
@pytest.mark.parametrize("space", [{}, {"a": (16,)}, {"a": (8, 16)}])
def test_small_spaces_end(kind, space):
    search = kind(space, dict.fromkeys(space, 16), seed=0)
    searched(search, lambda one: 0.9 if one else 1.0)
    assert search.best == ((("a", 8),) if space.get("a") == (8, 16) else ())


@SEARCHES
def test_equal_seeds_try_equal_things(kind):
    tried = []
    for _ in range(2):
        search = kind(SPACE, DEFAULT, seed=5)
        searched(search, world(0)[0])
        tried.append(list(search.ratios))
    assert tried[0] == tried[1]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_pool_is_full_where_there_are_candidates_enough(seed, size):
    search = Climb({"a": (1, 2, 3), "b": (1, 2, 3)}, {"a": 1, "b": 1}, seed, pool=size, dry=1)
    searched(search, lambda one: 2.0 if one else 1.0)
    assert len(search.ratios) == size


def test_a_judgement_needs_pairs_and_a_gain_beyond_the_noise():
    steady = [math.log(0.9)] * JUDGED_PAIRS
    assert Judgement.of(steady).is_better
    assert not Judgement.of(steady[:-1]).is_better
    assert not Judgement.of([math.log(0.99)] * 50).is_better
    assert not Judgement.of([math.log(0.9) + 0.5 * (-1) ** i for i in range(JUDGED_PAIRS)]).is_better
    assert not Judgement.of([]).is_better
    assert Judgement.of([math.log(1.25)] * 9).gain == pytest.approx(-0.25)
