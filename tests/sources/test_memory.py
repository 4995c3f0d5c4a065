"""Arrays as sources: referred to, never copied, never objects."""

import os

import numpy as np
import pytest

from flowcompute.errors import SpecError
from flowcompute.sources.array_source import MemorySource, source
from flowcompute.spec import BFLOAT16


def test_the_array_is_referred_to_and_read_when_run() -> None:
    array = np.zeros(4)
    element = source(array, "x")
    array[:] = 7
    reader = element.open()
    out = np.empty(4)
    reader.read(out)
    np.testing.assert_array_equal(out, 7)
    assert element.array is array
    assert element.name == "x"


def test_views_share_memory_and_cannot_be_written() -> None:
    array = np.arange(12.0).reshape(6, 2)
    view = source(array).open(position=2).view(3)
    assert view is not None
    assert np.shares_memory(view, array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    array[3] = -1
    np.testing.assert_array_equal(view[1], -1)
    assert array.flags.writeable


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.arange(12.0).reshape(6, 2)[:, ::-1], "contiguous"),
        (np.arange(12.0).reshape(6, 2).T, "contiguous"),
        (np.broadcast_to(np.float32(1), (5, 3)), "contiguous"),
        (np.arange(5, dtype=">f4"), "byte order"),
        (np.empty(9, np.uint8)[1:].view("u2"), "aligned"),
    ],
    ids=["reversed", "transposed", "broadcast", "swapped", "unaligned"],
)
def test_the_reason_for_copying_is_named(array: np.ndarray, word: str) -> None:
    element = MemorySource(array)
    assert word in str(element.must_read())
    reader = element.open()
    assert reader.view(2) is None
    out = np.empty(array.shape, element.spec.dtype)
    assert reader.read(out) == len(array)
    np.testing.assert_array_equal(out, array)


def test_items_without_numbers_keep_their_count() -> None:
    element = source(np.empty((5, 0), np.float32))
    assert element.shape == (5, 0)
    reader = element.open()
    assert reader.read(np.empty((3, 0), np.float32)) == 3
    view = reader.view(9)
    assert view is not None
    assert view.shape == (2, 0)


@pytest.mark.parametrize("array", [3, 3.5, np.float32(1), np.array(1), True])
def test_single_numbers_are_refused_with_a_hint(array: object) -> None:
    with pytest.raises(SpecError, match=r"fc\.constant") as caught:
        source(array)
    assert os.path.basename(__file__) in str(caught.value)


@pytest.mark.parametrize(
    "array",
    [
        [[1, 2], [3]],
        [{}, {}],
        "text",
        None,
        np.array([1, None]),
        np.array(["a"]),
        np.zeros(3, complex),
        np.zeros(3, "M8[s]"),
        np.zeros(3, [("a", "f4")]),
        [2**70],
        np.ma.masked_array([1, 2], [True, False]),
        source(np.zeros(3)),
        {1, 2},
        (number for number in [1, 2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_array_of_numbers_is_refused(array: object) -> None:
    with pytest.raises(SpecError) as caught:
        MemorySource(array)
    assert caught.value.site is not None


def test_lists_and_bfloat16_are_accepted() -> None:
    assert source([[1, 2], [3, 4]]).spec.dtype == np.int64
    assert source(np.zeros(3, BFLOAT16)).spec.dtype == BFLOAT16


def test_identity_follows_object_and_memory() -> None:
    array = np.zeros(10)
    assert source(array).identity == source(array).identity
    assert source(array).identity != source(array.copy()).identity
    assert source(array).identity != source(array[:5]).identity
