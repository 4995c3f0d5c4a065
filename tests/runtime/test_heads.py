"""The head of a stream without an end: no more of it is asked for than is of use."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import flowcompute as fc

Head = Callable[[fc.Element], fc.Element]

HEADS: dict[str, tuple[Head, Head, int]] = {
    "a slice": (lambda x: x[:60], lambda a: a[:60], 60),
    "nothing": (lambda x: x[:0], lambda a: a[:0], 0),
    "with a step, from later on": (lambda x: x[5:50:3], lambda a: a[5:50:3], 50),
    "after a map": (lambda x: (x * 2 + 1)[:7], lambda a: (a * 2 + 1)[:7], 7),
    "after a scan": (lambda x: fc.cumulative_sum(x)[:7], lambda a: np.cumsum(a)[:7], 7),
    "before a fold": (lambda x: x[:10].sum(), lambda a: a[:10].sum(), 10),
    "the first": (lambda x: fc.first(x), lambda a: a[0], 1),
    "twice": (lambda x: x[:9].max() - x[2:4].min(), lambda a: a[:9].max() - a[2:4].min(), 9),
}


class Numbers:
    """Counts without an end, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __iter__(self) -> Iterator[np.ndarray]:
        for number in itertools.count():
            self.asked += 1
            yield np.array([number])


@pytest.mark.parametrize("batch_bytes", [16, 1 << 20])
@pytest.mark.parametrize(("head", "of_array", "needed"), HEADS.values(), ids=HEADS)
def test_no_more_is_asked_for_than_is_of_use(head: Head, of_array: Head, needed: int, batch_bytes: int) -> None:
    numbers = Numbers()
    x = fc.iterate(numbers, shape=(), dtype="int64")
    result = head(x).resolve(device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=batch_bytes))
    np.testing.assert_array_equal(result, of_array(np.arange(100)))
    assert numbers.asked == needed


def test_two_streams_that_meet_are_read_equally_far() -> None:
    first, second = Numbers(), Numbers()
    x, y = (fc.iterate(numbers, shape=(), dtype="int64") for numbers in (first, second))
    np.testing.assert_array_equal((x * 10 + y)[:5].resolve(device="numpy", progress=False), np.arange(5) * 11)
    assert (first.asked, second.asked) == (5, 5)


def test_what_is_wanted_whole_is_read_whole() -> None:
    data = np.arange(1000)
    x = fc.iterate([data[:300], data[300:]], shape=(), dtype="int64")
    head, total, doubled = fc.resolve(x[:5], x.sum(), x[:400] * 2, device="numpy", progress=False)
    np.testing.assert_array_equal(head, data[:5])
    np.testing.assert_array_equal(doubled, data[:400] * 2)
    assert total == data.sum()


def test_a_stream_that_ends_before_its_head_does_gives_what_there_is() -> None:
    x = fc.iterate([np.arange(3)], shape=(), dtype="int64")
    np.testing.assert_array_equal(x[:60].resolve(device="numpy", progress=False), np.arange(3))


def test_selections_of_endless_streams_end_too() -> None:
    numbers = Numbers()
    x = fc.iterate(numbers, shape=(), dtype="int64")
    strategy = fc.Strategy(batch_bytes=80)
    found = x[x % 3 == 0][:4].resolve(device="numpy", progress=False, strategy=strategy)
    np.testing.assert_array_equal(found, [0, 3, 6, 9])
    assert numbers.asked < 200, "how many must be read nobody can know, but not many more than a few batches"
