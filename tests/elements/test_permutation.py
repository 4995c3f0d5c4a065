"""Orders of records: permutations, of which any part is known by itself, and which never change."""

from __future__ import annotations

from collections import Counter
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.elements.generated import Permutation

ORDERS = st.builds(
    Permutation,
    seed=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**32 - 1),
    length=st.integers(0, 300),
    block=st.sampled_from([1, 2, 3, 16, 400]),
    window=st.sampled_from([1, 2, 5, 64, 1000]),
)


@given(order=ORDERS, data=st.data())
def test_each_record_stands_once_and_any_part_is_known(order: Permutation, data: st.DataObject) -> None:
    everything = np.arange(order.length)
    records = order.records(everything)
    assert sorted(records) == everything.tolist()
    np.testing.assert_array_equal(order.positions(records), everything)
    if order.length:
        some = np.array(data.draw(st.lists(st.integers(0, order.length - 1), max_size=9)), np.int64)
        np.testing.assert_array_equal(order.records(some), records[some])
        np.testing.assert_array_equal(order.positions(some), np.argsort(records)[some])


@given(length=st.integers(1, 300), block=st.integers(1, 40))
def test_blocks_stay_together(length: int, block: int) -> None:
    records = Permutation(3, 0, length, block).records(np.arange(length))
    begins = np.flatnonzero(np.diff(records, prepend=-2) != 1)
    assert all(records[begin] % block == 0 for begin in begins)
    assert len(set(records[begins] // block)) == len(begins)


@given(length=st.integers(1, 300), block=st.integers(2, 20), window=st.integers(2, 70))
def test_records_are_mixed_inside_of_windows_only(length: int, block: int, window: int) -> None:
    plain = Permutation(3, 1, length, block).records(np.arange(length))
    mixed = Permutation(3, 1, length, block, window).records(np.arange(length))
    for begin in range(0, length, window):
        assert sorted(mixed[begin : begin + window]) == sorted(plain[begin : begin + window])


@pytest.mark.parametrize("count", [2, 3, 5])
def test_all_orders_of_a_few_are_about_as_frequent(count: int) -> None:
    """Chi-squared over the orders: 6 sigma above its mean is refused. Without the swap 5 records are 60 above."""
    times = 40 if count < 5 else 9
    draws = times * factorial(count)
    found = Counter(tuple(Permutation(seed, 0, count).records(np.arange(count)).tolist()) for seed in range(draws))
    freedom = factorial(count) - 1
    squared = sum((one - times) ** 2 / times for one in found.values()) + times * (freedom + 1 - len(found))
    assert squared < freedom + 6 * (2 * freedom) ** 0.5 + 1


@pytest.mark.parametrize("block", [1, 8])
def test_neighbours_and_epochs_are_unrelated(block: int) -> None:
    orders = [Permutation(5, epoch, 4096, block, 512) for epoch in range(3)]
    records = [order.records(np.arange(4096)) for order in orders]
    for mixed in records:
        assert abs(np.corrcoef(mixed[:-1], mixed[1:])[0, 1]) < 0.3
        assert (np.diff(mixed) == 1).mean() < 0.02
    assert (records[0] != records[1]).mean() > 0.99
    windows = [mixed.reshape(-1, 512).argsort(1).argsort(1) for mixed in records]
    assert (windows[0][0] == windows[0][1]).mean() < 0.05
    assert (windows[0][0] == windows[1][0]).mean() < 0.05


def test_an_order_never_changes() -> None:
    """Jobs that were begun by an older version go on in its order."""
    assert Permutation(11, 0, 10).records(np.arange(10)).tolist() == [0, 1, 9, 7, 2, 6, 3, 8, 4, 5]
    assert Permutation(2**64 - 1, 2**32 - 1, 2**62).records(np.array([0, 2**62 - 1])).tolist() == [
        3303332671111374500,
        2129189233361867426,
    ]
    assert Permutation(7, 3, 10, 3, 4).records(np.arange(10)).tolist() == [4, 3, 5, 6, 7, 8, 0, 9, 1, 2]
