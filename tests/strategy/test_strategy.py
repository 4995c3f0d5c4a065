"""Strategies: ranges, text, and one set before another."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import PlanError
from flowcompute.strategy.knobs import KERNEL_KNOBS, KernelKnobs


def _values(record: type) -> dict[str, st.SearchStrategy]:
    """For each knob with a range its ends, what lies between, and nothing."""
    drawn = {}
    for field in dataclasses.fields(record):
        if (range_ := field.metadata.get("range")) is not None:
            powers = [1 << i for i in range(35) if 1 << i in range_]
            drawn[field.name] = st.sampled_from([None, range_.low, range_.high, *powers])
    return drawn


KERNELS = st.dictionaries(st.sampled_from(["k0", "k1", "k10", "k2"]), st.builds(KernelKnobs, **_values(KernelKnobs)))
STRATEGIES = st.builds(
    fc.Strategy, **_values(fc.Strategy), input=st.sampled_from([None, "mapped", "read"]), kernels=KERNELS
)


@given(STRATEGIES)
def test_text_gives_the_same_strategy(strategy):
    again = fc.Strategy.from_json(strategy.to_json())
    assert (again, hash(again), str(again)) == (strategy, hash(strategy), str(strategy))


@given(STRATEGIES, STRATEGIES)
def test_what_is_set_goes_before_what_is_stored(pinned, stored):
    both = pinned.with_defaults(stored)
    for name in ("batch_bytes", "depth", "input", "reader_threads"):
        own = getattr(pinned, name)
        assert getattr(both, name) == (getattr(stored, name) if own is None else own)
    for kernel in ("k0", "k1", "k2", "k3"):
        for name in KERNEL_KNOBS:
            own = getattr(pinned.of_kernel(kernel), name)
            assert getattr(both.of_kernel(kernel), name) == (
                getattr(stored.of_kernel(kernel), name) if own is None else own
            )
    assert both.with_defaults(stored) == both


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"unroll": 0}, ("cannot set unroll outside of its range", "a power of two from 1 to 16")),
        ({"unroll": 3}, ("cannot set unroll outside of its range",)),
        ({"unroll": True}, ("cannot set unroll outside of its range", "True")),
        ({"batch_bytes": 0}, ("cannot set batch_bytes outside of its range", "a whole number from 1 to")),
        ({"depth": 65}, ("cannot set depth outside of its range",)),
        ({"depth": 2.0}, ("cannot set depth outside of its range",)),
        ({"work_group": 2048}, ("cannot set work_group outside of its range",)),
        ({"reader_threads": 0}, ("cannot set reader_threads outside of its range",)),
        ({"input": "maped"}, ("'mapped' or 'read'", "maped")),
        ({"kernels": {"k0": {"unroll": 0}}}, ("cannot set unroll outside of its range",)),
        ({"kernels": {"k0": {"depth": 1}}}, ("kernel k0", "unknown knobs ['depth']")),
        ({"kernels": 3}, ("cannot read kernels= as knobs", "got       3")),
        ({"kernels": {0: {}}}, ("cannot read kernels= as knobs",)),
    ],
)
def test_out_of_range_is_an_error_when_made(knobs, said):
    with pytest.raises(PlanError) as caught:
        fc.Strategy(**knobs)
    for words in said:
        assert words in str(caught.value)


@pytest.mark.parametrize("text", ["", "3", "[1]", '{"unrol": 2}', '{"unroll": "2"}', '{"kernels": {"k0": 3}}', "{} {}"])
def test_other_text_is_an_error(text):
    with pytest.raises(PlanError):
        fc.Strategy.from_json(text)
