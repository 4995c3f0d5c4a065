"""Iterables as sources: any batches, any misuse, closed when done."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.elements.source import AsyncReader
from flowcompute.errors import SourceError, SpecError
from flowcompute.sources.iterate_source import IterateReader, IterateSource, iterate
from flowcompute.spec import BFLOAT16, FLOAT32, SUPPORTED_DTYPES, is_float
from flowcompute.testing.contracts import assert_same, read_rest

pytestmark = pytest.mark.trio


def read_in(source: IterateSource, *sizes: int) -> np.ndarray:
    reader = source.open()
    assert isinstance(reader, IterateReader)
    pieces = []
    for size in sizes:
        out = np.full((size, *source.spec.shape), 0, source.spec.dtype)
        pieces.append(out[: reader.read(out)])
    reader.close()
    return np.concatenate(pieces)


def refused(values: list[Any], *words: str, items: bool = False, shape: Any = (), dtype: Any = "f4") -> SourceError:
    with pytest.raises(SourceError) as caught:
        read_in(iterate(values, shape=shape, dtype=dtype, items=items, name="rows"), 1000)
    text = str(caught.value)
    for word in ("rows", os.path.basename(__file__), *words):
        assert word in text, text
    return caught.value


@given(
    st.lists(st.integers(0, 7), max_size=30),
    st.lists(st.integers(0, 9), max_size=30),
    st.sampled_from([(), (3,), (400,), (0,)]),
    st.sampled_from(["<f4", "<f8", ">f4", "<i2"]),
)
async def test_any_batches_come_out_in_any_reads(
    batches: list[int], reads: list[int], item_shape: tuple[int, ...], dtype: str
) -> None:
    numbers = np.arange(sum(batches) * int(np.prod(item_shape))).reshape(sum(batches), *item_shape)
    boundaries = np.split(numbers.astype(dtype), np.cumsum(batches)[:-1]) if batches else []
    source = iterate(boundaries, shape=item_shape, dtype="f4")
    got = read_in(source, *reads, sum(batches) + 1)
    np.testing.assert_array_equal(got, numbers)


async def test_large_and_small_batches_of_changing_dtypes_keep_their_order() -> None:
    lengths = [1, 5000, 3, 3, 3, 0, 200_000, 2, 7000, 1, 1, 1]
    dtypes = ["f4", "f8", "f8", "i8", "f4", ">f8", "i2", "f2", "f4", "f4", "u1", "f8"]
    values = [(np.arange(length) % 100).astype(dtype) for length, dtype in zip(lengths, dtypes, strict=True)]
    want = np.concatenate([value.astype("f4") for value in values])
    for size in (1000, 1 << 18, len(want)):
        got = read_in(iterate(values, shape=(), dtype="f4"), *[size] * (len(want) // size + 2))
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("value", [1, 2.5, True, np.float32(3), np.float64(2), np.int8(4), np.array(5.0), [6][0]])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "bfloat16"])
async def test_items_of_any_scalar_type_are_taken(value: Any, dtype: str) -> None:
    got = read_in(iterate([value, 1.0, value], shape=(), dtype=dtype, items=True), 2, 2)
    np.testing.assert_array_equal(got.astype("f8"), [float(value), 1, float(value)])


async def test_scalars_round_as_numpy_does() -> None:
    values = [0.1, 1e-46, 1e300, -1e300, float("nan"), float("inf"), -0.0, 65519.9, 65520.0, 2049.0]
    for dtype in ("f2", "f4", "f8"):
        got = read_in(iterate(values, shape=(), dtype=dtype, items=True), 100)
        with np.errstate(all="ignore"):
            assert_same(got, np.array(values).astype(dtype))


@pytest.mark.parametrize("target", SUPPORTED_DTYPES, ids=str)
@pytest.mark.parametrize("source", SUPPORTED_DTYPES, ids=str)
async def test_dtypes_cast_by_same_kind(source: np.dtype, target: np.dtype) -> None:
    batch = np.array([0, 1, 1], source)
    allowed = np.can_cast(source, target, "same_kind") if BFLOAT16 not in (source, target) else (
        is_float(target)
    )  # fmt: skip
    if not allowed:
        refused([batch], source.name, target.name, dtype=target)
        return
    assert_same(read_in(iterate([batch], shape=(), dtype=target), 5), np.array([0, 1, 1], target))


@pytest.mark.parametrize("items", [True, False])
@pytest.mark.parametrize(
    ("value", "dtype"), [(300, "i1"), (-129, "i1"), (256, "u1"), (-1, "u8"), (2**63, "i8"), (2**31, "i4")]
)
async def test_integers_that_do_not_fit_are_refused(value: int, dtype: str, items: bool) -> None:
    good = [1] if not items else 1
    error = refused([good, good, value if items else [value]], str(value), items=items, dtype=dtype)
    assert error.records == (2, 3)


async def test_narrower_arrays_of_integers_keep_their_values() -> None:
    values = [np.array([127, -128]), np.array([5], np.int16)]
    assert_same(read_in(iterate(values, shape=(), dtype="i1"), 9), np.array([127, -128, 5], np.int8))
    refused([np.array([1, 128])], "128", dtype="i1")


@pytest.mark.parametrize("dtype", ["u1", "i4", "u8"])
async def test_pythons_own_integers_are_weak(dtype: str) -> None:
    np.testing.assert_array_equal(read_in(iterate([[1, 2], [3]], shape=(), dtype=dtype), 9), [1, 2, 3])
    np.testing.assert_array_equal(read_in(iterate([1, 2, 3], shape=(), dtype=dtype, items=True), 9), [1, 2, 3])
    np.testing.assert_array_equal(read_in(iterate([[1, 2]], shape=2, dtype=dtype, items=True), 9), [[1, 2]])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([np.zeros((2, 3), "f4"), np.zeros((2, 4), "f4")], ["(k, 3)", "(2, 4)", "2 to 3"]),
        ([np.zeros((2, 3), "f4"), np.zeros(3, "f4")], ["(k, 3)", "(3,)", "items=True"]),
        ([np.zeros((2, 3), "f4"), np.float32(1)], ["(k, 3)", "()"]),
        ([np.zeros((1, 2, 3), "f4")], ["(1, 2, 3)"]),
        ([np.zeros((2, 3), "c8")], ["complex64", "float32"]),
        ([np.full((2, 3), "a")], ["float32"]),
        ([[[1, 2, None]]], ["object"]),
        ([[[1, 2, 3], [4]]], ["list"]),
        (["abc"], ["()"]),
        ([None], ["()"]),
        ([{}], ["()"]),
        ([np.ma.masked_array(np.zeros((2, 3)))], ["mask"]),
        ([iterate([], shape=(), dtype="f4")], ["lazy"]),
        ([np.zeros((2, 1), "f4")], ["(2, 1)"]),
    ],
    ids=range(14),
)
async def test_batches_of_another_kind_are_refused_with_their_record(values: list[Any], words: list[str]) -> None:
    refused(values, *words, shape=(3,))


async def test_items_of_another_shape_are_refused() -> None:
    refused([np.zeros(3), np.zeros((1, 3))], "(1, 3)", "items=True", "1 to 2", items=True, shape=3)
    refused([1.0, 2.0, [3.0]], "(1,)", "2 to 3", items=True)
    refused([np.float64(1)], "float64", items=True, dtype="i4")
    refused([1.5], "float64", items=True, dtype="i4")
    refused([1], "int64", items=True, dtype="?")


async def test_zero_records_are_batches_too() -> None:
    values = [[], np.empty((0, 3), "f4"), np.ones((1, 3)), ()]
    assert_same(read_in(iterate(values, shape=3, dtype="f4"), 5), np.ones((1, 3), FLOAT32))


async def test_an_array_may_be_used_again_by_the_iterable() -> None:
    def batches(size: int) -> Iterator[np.ndarray]:
        room = np.empty(size, np.float32)
        for k in range(10):
            room[:] = k
            yield room

    for size in (3, 5000):
        got = read_in(iterate(batches(size), shape=(), dtype="f4"), *[2 * size + 1] * 6)
        np.testing.assert_array_equal(got, np.repeat(np.arange(10), size))


async def test_no_more_is_pulled_than_was_asked_for() -> None:
    pulled = []

    def batches() -> Iterator[np.ndarray]:
        for k in range(100):
            pulled.append(k)
            yield np.full(4, k, np.float32)

    source = iterate(batches(), shape=(), dtype="f4")
    reader = source.open()
    assert not pulled, "composing and opening pull nothing"
    reader.read(np.empty(0, np.float32))
    assert not pulled
    reader.read(np.empty(6, np.float32))
    assert pulled == [0, 1]
    reader.read(np.empty(2, np.float32))
    assert pulled == [0, 1]
    reader.close()


async def test_a_generator_is_closed() -> None:
    closed = []

    def batches() -> Iterator[np.ndarray]:
        try:
            while True:
                yield np.zeros(4, np.float32)
        finally:
            closed.append(True)

    reader = iterate(batches(), shape=(), dtype="f4").open()
    reader.read(np.empty(6, np.float32))
    assert not closed
    reader.close()
    reader.close()
    assert closed == [True]
    assert reader.read(np.empty(2, np.float32)) == 2, "what was pulled is still there"
    assert reader.read(np.empty(2, np.float32)) == 0


async def test_an_exception_in_the_iterable_is_the_cause() -> None:
    def batches() -> Iterator[np.ndarray]:
        yield np.zeros(4, np.float32)
        yield np.zeros(3, np.float32)
        raise LookupError("no such sensor")

    reader = iterate(batches(), shape=(), dtype="f4", name="sensor").open()
    assert reader.read(np.empty(5, np.float32)) == 5
    with pytest.raises(SourceError, match="no such sensor") as caught:
        reader.read(np.empty(5, np.float32))
    assert isinstance(caught.value.__cause__, LookupError)
    assert caught.value.records == (7, 8)
    assert caught.value.element == "sensor"
    reader.close()


async def test_an_exception_while_closing_is_a_source_error() -> None:
    def batches() -> Iterator[np.ndarray]:
        try:
            yield np.zeros(4, np.float32)
        finally:
            raise OSError("port is gone")

    reader = iterate(batches(), shape=(), dtype="f4").open()
    reader.read(np.empty(2, np.float32))
    with pytest.raises(SourceError, match="port is gone"):
        reader.close()
    reader.close()


async def test_an_interrupt_passes_through() -> None:
    def batches() -> Iterator[np.ndarray]:
        yield np.zeros(4, np.float32)
        raise KeyboardInterrupt

    reader = iterate(batches(), shape=(), dtype="f4").open()
    with pytest.raises(KeyboardInterrupt):
        reader.read(np.empty(9, np.float32))
    reader.close()


class Held:
    """Gives one iterator again and again."""

    def __init__(self) -> None:
        self.iterator = iter([np.zeros(2)])

    def __iter__(self) -> Iterator[np.ndarray]:
        return self.iterator


class Sequence:
    def __getitem__(self, index: int) -> np.ndarray:
        if index >= 3:
            raise IndexError
        return np.full(2, index, np.float32)


class Fails:
    def __iter__(self) -> Iterator[np.ndarray]:
        raise RuntimeError("not today")


async def test_what_begins_anew_is_read_again_and_an_iterator_is_not() -> None:
    for again in ([np.zeros(2)], (np.zeros(2),), Sequence(), {1: 2}.values(), range(3)):
        assert iterate(again, shape=(), dtype="f4").rereadable
    for once in (iter([]), map(abs, []), (x for x in [])):
        source = iterate(once, shape=(), dtype="f4")
        assert not source.rereadable
        source.open().close()
        with pytest.raises(SourceError, match="only once"):
            source.open()


async def test_the_same_iterator_given_out_twice_is_noticed() -> None:
    source = iterate(Held(), shape=(), dtype="f4")
    reader = source.open()
    assert reader.read(np.empty(5, np.float32)) == 2
    reader.close()
    with pytest.raises(SourceError, match="only once"):
        source.open()


async def test_sequences_of_the_old_protocol_are_read() -> None:
    np.testing.assert_array_equal(read_in(iterate(Sequence(), shape=(), dtype="f4"), 9), [0, 0, 1, 1, 2, 2])


async def test_an_iter_that_fails_is_a_source_error() -> None:
    with pytest.raises(SourceError, match="not today"):
        iterate(Fails(), shape=(), dtype="f4").open()


@pytest.mark.parametrize("iterable", [None, 3, lambda: iter([])], ids=["None", "int", "function"])
async def test_what_is_no_iterable_is_refused(iterable: Any) -> None:
    with pytest.raises(SpecError, match="iterate over"):
        iterate(iterable, shape=(), dtype="f4")


@pytest.mark.parametrize(
    ("shape", "dtype"), [((-1,), "f4"), ("3", "f4"), (None, "f4"), ((), "O"), ((), "c8"), ((), "x")]
)
async def test_declarations_that_make_no_sense_are_refused(shape: Any, dtype: Any) -> None:
    with pytest.raises(SpecError):
        iterate([], shape=shape, dtype=dtype)


async def test_the_spec_is_declared_and_its_length_unknown() -> None:
    source = iterate([], shape=3, dtype=">f8", name="rows")
    assert source.shape == (None, 3)
    assert source.spec.dtype == np.float64
    assert not source.seekable
    assert source.must_read() is not None
    assert source.name == "rows"


# -- asynchronous ---------------------------------------------------------------------------


async def numbers(log: list[str], wait: bool = False) -> AsyncIterator[np.ndarray]:
    try:
        for k in range(5):
            await trio.lowlevel.checkpoint()
            log.append(f"pull {k}")
            yield np.full(3, k, np.float32)
    finally:
        if wait:
            await trio.sleep(0)
        log.append("closed")


async def test_an_async_generator_is_read_in_any_sizes() -> None:
    log: list[str] = []
    source = iterate(numbers(log), shape=(), dtype="f4")
    assert not source.rereadable
    reader = source.open()
    assert isinstance(reader, AsyncReader)
    with pytest.raises(NotImplementedError):
        reader.read(np.empty(3, np.float32))
    np.testing.assert_array_equal(await read_rest(reader, source.spec, 4), np.repeat(np.arange(5), 3))
    assert log[-1] == "closed"
    reader.close()
    with pytest.raises(SourceError, match="only once"):
        source.open()


@pytest.mark.parametrize("wait", [True, False])
async def test_an_async_generator_is_closed_early(wait: bool) -> None:
    log: list[str] = []
    reader = iterate(numbers(log, wait), shape=(), dtype="f4").open()
    assert isinstance(reader, AsyncReader)
    await reader.read_async(np.empty(4, np.float32))
    assert log == ["pull 0", "pull 1"]
    reader.close()
    reader.close()
    assert log == (["pull 0", "pull 1"] if wait else ["pull 0", "pull 1", "closed"])


async def test_an_exception_in_an_async_iterable_is_the_cause() -> None:
    async def batches() -> AsyncIterator[np.ndarray]:
        yield np.zeros(4, np.float32)
        raise LookupError("no such sensor")

    reader = iterate(batches(), shape=(), dtype="f4").open()
    assert isinstance(reader, AsyncReader)
    with pytest.raises(SourceError, match="no such sensor") as caught:
        await reader.read_async(np.empty(9, np.float32))
    assert isinstance(caught.value.__cause__, LookupError)
    reader.close()


async def test_a_wrong_async_batch_is_refused() -> None:
    async def batches() -> AsyncIterator[Any]:
        yield np.zeros(4, np.float32)
        yield np.zeros((4, 1), np.float32)

    reader = iterate(batches(), shape=(), dtype="f4").open()
    assert isinstance(reader, AsyncReader)
    with pytest.raises(SourceError, match=r"\(4, 1\)"):
        await reader.read_async(np.empty(9, np.float32))
    reader.close()


async def test_waiting_can_be_cancelled() -> None:
    async def batches() -> AsyncIterator[np.ndarray]:
        yield np.zeros(4, np.float32)
        await trio.sleep_forever()

    reader = iterate(batches(), shape=(), dtype="f4").open()
    assert isinstance(reader, AsyncReader)
    with trio.CancelScope() as scope:
        scope.cancel()
        await reader.read_async(np.empty(9, np.float32))
    assert scope.cancelled_caught
    reader.close()
