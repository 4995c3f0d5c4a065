"""Streams with clocks of their own: the edges, what fails in their middle, and what endless ones leave behind."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import flowcompute as fc
from flowcompute.errors import RunError, SpecError
from tests.support.slow import slow_but

DEVICES = ["numpy", "cpu"]


def rows(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(-9, 9, (length, 3)).astype(np.float32)


class Feed:
    """A generator of one record at a time that knows how many were taken and whether it was closed."""

    def __init__(self, records: int | None, fail_at: int | None = None) -> None:
        self.records = records
        self.fail_at = fail_at
        self.taken = 0
        self.closed = 0
        self.opened = 0

    def __iter__(self) -> Iterator[np.ndarray]:
        self.opened += 1
        try:
            for i in itertools.count() if self.records is None else range(self.records):
                if i == self.fail_at:
                    raise ValueError("the wire is cut")
                self.taken += 1
                yield np.full(3, i, np.float32)
        finally:
            self.closed += 1

    @property
    def stream(self) -> fc.Element:
        return fc.iterate(self, shape=(3,), dtype="float32", items=True)


def assert_nothing_runs() -> None:
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("flowcompute")] == []


# -- few records ------------------------------------------------------------------------------


def numpy_windows(x: np.ndarray, size: int, pad: str | None = None) -> np.ndarray:
    if pad is not None and len(x):
        x = np.pad(x, (((size - 1) // 2, size // 2), (0, 0)), mode=pad)
    return np.moveaxis(sliding_window_view(x, size, axis=0), -1, 1) if len(x) >= size else np.empty((0, size, 3), "f4")


def numpy_runs(x: np.ndarray, every: int, tail: str) -> np.ndarray:
    rest = -len(x) % every if tail == "pad" else 0
    x = np.concatenate([x, np.zeros((rest, 3), x.dtype)])[: (len(x) + rest) // every * every]
    return x.reshape(-1, every, 3)


def numpy_filtered(x: np.ndarray) -> np.ndarray:
    """`numpy.convolve(column, [1, 2], "same")`, which refuses what is empty."""
    return (x + 2 * np.concatenate([x[:1] * 0, x[:-1]])).astype("f4")


Meaning = tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]

ALONG: dict[str, Meaning] = {
    "select": (lambda x: x[x[:, 0] > 0], lambda x: x[x[:, 0] > 0]),
    "select none": (lambda x: x[x[:, 0] > 100], lambda x: x[:0]),
    "head": (lambda x: x[:2], lambda x: x[:2]),
    "behind": (lambda x: x[2:], lambda x: x[2:]),
    "step": (lambda x: x[1::3], lambda x: x[1::3]),
    "cut": (lambda x: fc.cut(x, 2, tail="drop"), lambda x: numpy_runs(x, 2, "drop")),
    "cut and pad": (lambda x: fc.cut(x, 2, tail="pad"), lambda x: numpy_runs(x, 2, "pad")),
    "cut and emit": (
        lambda x: fc.cut(x, 2, tail="emit").sum(axis=1),
        lambda x: np.array([x[i : i + 2].sum(axis=0) for i in range(0, len(x), 2)], "f4").reshape(-1, 3),
    ),
    "flatten": (fc.flatten, lambda x: x.reshape(-1)),
    "repeat": (lambda x: fc.repeat(x, 3, axis=0), lambda x: np.repeat(x, 3, axis=0)),
    "repeat never": (lambda x: fc.repeat(x, 0, axis=0), lambda x: x[:0]),
    "concat": (lambda x: fc.concat([x, x * 2]), lambda x: np.concatenate([x, x * 2])),
    "concat with none": (lambda x: fc.concat([x[:0], x, x[:0]]), lambda x: x),
    "window": (lambda x: fc.window(x, 2), lambda x: numpy_windows(x, 2)),
    "window edge": (lambda x: fc.window(x, 3, pad="edge"), lambda x: numpy_windows(x, 3, "edge")),
    "window reflect": (lambda x: fc.window(x, 3, pad="reflect"), lambda x: numpy_windows(x, 3, "reflect")),
    "window of one": (lambda x: fc.window(x, 1), lambda x: x[:, None]),
    "window larger": (lambda x: fc.window(x, 9, step=2), lambda x: numpy_windows(x, 9)),
    "moving mean": (
        lambda x: x - fc.window(x, 5, pad="edge").mean(axis=1),
        lambda x: x - numpy_windows(x, 5, "edge").mean(axis=1),
    ),
    "diff": (lambda x: fc.diff(x, axis=0), lambda x: np.diff(x, axis=0)),
    "diff twice": (lambda x: fc.diff(x, 2, axis=0), lambda x: np.diff(x, 2, axis=0)),
    "convolve": (lambda x: fc.convolve(x, np.array([1, 2], "f4"), "same"), numpy_filtered),
    "cumulative_sum": (lambda x: fc.cumulative_sum(x, axis=0), lambda x: np.cumsum(x, axis=0)),
    "cumulative_max": (lambda x: fc.cumulative_max(x, axis=0), lambda x: np.maximum.accumulate(x, axis=0)),
    "ema": (lambda x: fc.ema(x, 1.0), lambda x: x),
    "scan": (lambda x: fc.scan(lambda s, r: s + r, x, init=np.zeros(3, "f4")), lambda x: np.cumsum(x, axis=0)),
    "centred": (lambda x: x - x.sum(axis=0), lambda x: x - x.sum(axis=0)),
    "sum of a selection": (lambda x: x[x[:, 0] > 0].sum(axis=0), lambda x: x[x[:, 0] > 0].sum(axis=0)),
    "mean of a selection": (lambda x: x[x[:, 0] > 100].mean(axis=0), lambda x: np.full(3, np.nan, "f4")),
    "segments": (
        lambda x: fc.segment_sum(x, (x[:, 0] > 0).astype("int8"), 2),
        lambda x: np.stack([x[x[:, 0] <= 0].sum(axis=0), x[x[:, 0] > 0].sum(axis=0)]),
    ),
    "histogram": (lambda x: fc.histogram(x, [-9, 0, 10])[0], lambda x: np.histogram(x, [-9, 0, 10])[0]),
    "products": (lambda x: x.T @ x, lambda x: x.T @ x),
    "count": (lambda x: fc.count_nonzero(x), lambda x: np.count_nonzero(x)),
}  # fmt: skip


def known(data: np.ndarray) -> fc.Element:
    return fc.source(data)


def unknown(data: np.ndarray) -> fc.Element:
    return fc.iterate([data], shape=(3,), dtype="float32")


def selected(data: np.ndarray) -> fc.Element:
    """These records among others."""
    among = np.concatenate([data, np.full((2, 3), 77, "f4")])
    keep = np.arange(len(among)) < len(data)
    return fc.source(among)[keep]


@pytest.mark.parametrize("device", slow_but(["numpy"], DEVICES))
@pytest.mark.parametrize("made", [known, unknown, selected])
@pytest.mark.parametrize("name", ALONG)
def test_few_records(name: str, made: Callable[[np.ndarray], fc.Element], device: str) -> None:
    build, meaning = ALONG[name]
    for length in (0, 1, 2, 5):
        data = rows(length)
        element = build(made(data))
        result, wanted = np.asarray(element.resolve(device=device, progress=False)), np.asarray(meaning(data))
        assert len(element.shape) == wanted.ndim
        np.testing.assert_allclose(result, wanted, rtol=1e-6, err_msg=f"{length} records")


NEEDS_ONE: dict[str, Callable[[Any], fc.Element]] = {
    "first": fc.first,
    "last": fc.last,
    "max": lambda x: x.max(axis=0),
    "argmin": lambda x: x.argmin(),
    "record": lambda x: x[0],
    "last record": lambda x: x[-1],
    "top_k": lambda x: fc.top_k(x[:, 0], 1)[0],
}


@pytest.mark.parametrize("name", NEEDS_ONE)
def test_what_needs_a_record_says_so(name: str) -> None:
    with pytest.raises(SpecError):
        NEEDS_ONE[name](known(rows(0)))
    for made in (unknown, selected):
        with pytest.raises(RunError) as caught:
            NEEDS_ONE[name](made(rows(0))).resolve(device="numpy", progress=False)
        assert "0" in str(caught.value), "it says how many there were"
        assert caught.value.element
        assert caught.value.site is not None


# -- lengths that turn out to differ ------------------------------------------------------------


def halves(x: fc.Element) -> fc.Element:
    return x[x[:, 0] > -100]


UNEQUAL: dict[str, Callable[[fc.Element, fc.Element], fc.Element]] = {
    "side by side": lambda x, y: x + y,
    "from the left": lambda x, y: halves(x) + y,
    "from the right": lambda x, y: x + halves(y),
    "both": lambda x, y: halves(x) + halves(y),
    "behind a scan": lambda x, y: fc.cumulative_sum(halves(x), axis=0) - y,
    "three": lambda x, y: halves(x) + x[:, ::-1] * halves(y),
    "mask": lambda x, y: x[halves(y)[:, 0] > 0],
    "stacked": lambda x, y: fc.stack([halves(x), y], axis=1),
    "segments": lambda x, y: fc.segment_sum(x, (halves(y)[:, 0] > 0).astype("int8"), 2),
    "runs": lambda x, y: fc.cut(x, 1) - fc.cut(y, 1),
    "a fold of both": lambda x, y: fc.vecdot(halves(x), y, axis=0),
}


@pytest.mark.parametrize("batch_bytes", [12, 100, 1 << 20])
@pytest.mark.parametrize(("first", "second"), [(7, 10), (10, 7), (0, 3), (3, 0), (40, 41)])
@pytest.mark.parametrize("name", UNEQUAL)
def test_unequal_lengths_are_refused_with_both_counts(name: str, first: int, second: int, batch_bytes: int) -> None:
    x, y = unknown(rows(first)), unknown(rows(second))
    with pytest.raises(RunError) as caught:
        UNEQUAL[name](x, y).resolve(device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=batch_bytes))
    error = caught.value
    counts = f"{error.message} {error.expected} {error.got}"
    assert str(min(first, second)) in counts
    # The longer one may go on for longer than anybody has looked.
    assert str(max(first, second)) in counts or "at least" in counts
    assert error.element


# -- records that wait --------------------------------------------------------------------------


def test_what_waits_is_held_to_the_budget() -> None:
    length = 40_000

    def far_apart() -> fc.Element:
        x = Feed(length).stream
        return (x[length // 2 :] - x[: length // 2]).sum(axis=0)

    assert far_apart().resolve(device="numpy", progress=False)[0] == (length // 2) ** 2
    with pytest.raises(RunError, match="wait for partners") as caught:
        far_apart().resolve(device="numpy", progress=False, memory=1 << 16)
    error = caught.value
    assert "memory=" in str(error.hint)
    assert error.element
    assert "65536" in str(error) or "bytes" in str(error.got)
    assert_nothing_runs()


def test_what_is_read_again_need_not_wait() -> None:
    data = rows(40_000)
    x = fc.source(data)
    result = (x[20_000:] - x[:20_000]).sum(axis=0).resolve(device="numpy", progress=False, memory=1 << 16)
    np.testing.assert_array_equal(result, (data[20_000:] - data[:20_000]).sum(axis=0))


# -- endless streams ----------------------------------------------------------------------------

COUNT = np.repeat(np.arange(200, dtype=np.float32)[:, None], 3, axis=1)

ENDLESS: dict[str, Meaning] = {
    "head": (lambda x: x[:10], lambda x: x[:10]),
    "part": (lambda x: x[5:90:7], lambda x: x[5:90:7]),
    "nothing": (lambda x: x[:0], lambda x: x[:0]),
    "head of a selection": (lambda x: x[x[:, 0] % 3 == 0][:10], lambda x: x[x[:, 0] % 3 == 0][:10]),
    "head of a scan": (lambda x: fc.cumulative_sum(x, axis=0)[:10], lambda x: np.cumsum(x, axis=0)[:10]),
    "head of windows": (lambda x: fc.window(x, 4, pad="edge")[:10], lambda x: numpy_windows(x, 4, "edge")[:10]),
    "head of runs": (lambda x: fc.cut(x, 4)[:5], lambda x: numpy_runs(x, 4, "drop")[:5]),
    "fold of the head": (lambda x: x[:10].sum(axis=0), lambda x: x[:10].sum(axis=0)),
    "head beside a part": (lambda x: x[:10] - x[20:30], lambda x: x[:10] - x[20:30]),
    "end to end": (lambda x: fc.concat([x[:3], x[100:103]]), lambda x: np.concatenate([x[:3], x[100:103]])),
    "first": (fc.first, lambda x: x[0]),
    "record": (lambda x: x[17], lambda x: x[17]),
}


@pytest.mark.parametrize("batch_bytes", [12, 1200])
@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_stream_ends_when_enough_has_come(name: str, batch_bytes: int) -> None:
    build, meaning = ENDLESS[name]
    feed = Feed(None)
    strategy = fc.Strategy(batch_bytes=batch_bytes, depth=2)
    result = build(feed.stream).resolve(device="numpy", progress=False, strategy=strategy)
    np.testing.assert_array_equal(result, meaning(COUNT))
    assert feed.closed == feed.opened
    # Beyond what was needed no more than what is in flight is taken.
    assert feed.taken <= 3 * (104 + 4 * 100)
    assert_nothing_runs()


def test_two_endless_streams_meet() -> None:
    feeds = Feed(None), Feed(None)
    x, y = (feed.stream for feed in feeds)
    result = (x[x[:, 0] > 4] * y)[:10].resolve(device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=36))
    np.testing.assert_array_equal(result, COUNT[5:15] * COUNT[:10])
    assert [feed.closed for feed in feeds] == [1, 1]


@pytest.mark.parametrize("stop", [0, 1, 3])
def test_nothing_waits_for_the_turn_of_streams_that_nobody_reads(stop: int) -> None:
    data = np.arange(5, dtype=np.float32)
    x = fc.source(data)
    v = x[fc.source(data != 2)]
    joined = fc.concat([v[0:stop], v])
    head, whole = fc.resolve(joined[0:0], x * 1, device="numpy")
    assert head.shape == (0,)
    np.testing.assert_array_equal(whole, data)
    head, whole = fc.resolve(joined[0:2], x * 1, device="numpy", strategy=fc.Strategy(batch_bytes=4))
    np.testing.assert_array_equal(head, np.concatenate([data[data != 2][:stop], data[data != 2]])[:2])
    np.testing.assert_array_equal(whole, data)
