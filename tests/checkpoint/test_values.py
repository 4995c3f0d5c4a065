"""Plain data and arrays come back with the same bits, and what cannot be stored is refused by its place."""

from __future__ import annotations

import math
import struct
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from flowcompute.checkpoint.store import values
from flowcompute.checkpoint.store.decode import decode
from flowcompute.checkpoint.store.encode import encode
from flowcompute.checkpoint.store.values import ArrayPlace, Blob, DamagedError, SideMark
from flowcompute.errors import CheckpointError
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES


def round_trip(value: object) -> Any:
    encoded = encode(value)
    content = b"".join(encoded.arrays)

    def take(place: ArrayPlace) -> np.ndarray:
        array, data = values.empty_array(place.dtype, place.shape)
        data[:] = content[place.offset : place.offset + place.size_bytes]
        return values.native(array)

    decoded = decode(encoded.data, take)
    assert decoded.arrays_bytes == len(content)
    assert decoded.blobs == encoded.blobs
    assert decoded.marks == encoded.marks
    return decoded.value


def same(one: Any, other: Any) -> bool:
    """Whether two values are of one type and have the same bits."""
    if isinstance(one, list | tuple):
        return type(other) is list and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return type(other) is dict and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray | np.generic):
        return (
            type(other) is (np.ndarray if isinstance(one, np.ndarray) else type(one))
            and (other.dtype, other.shape)
            == (one.dtype.newbyteorder("=") if one.dtype != BFLOAT16 else one.dtype, one.shape)
            and one.astype(other.dtype).tobytes() == other.tobytes()
        )
    if isinstance(one, float):
        return type(other) is float and struct.pack("d", one) == struct.pack("d", other)
    return type(one) is type(other) and one == other


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**127), 2**128 - 1)
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
    | st.binary(max_size=8)
    | npst.arrays(
        npst.integer_dtypes(endianness="?") | npst.floating_dtypes(endianness="?", sizes=(16, 32, 64)) | st.just("?"),
        npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_plain_data_comes_back_with_the_same_bits(value: object) -> None:
    assert same(value, round_trip(value))


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES, ids=str)
def test_arrays_and_scalars_of_every_dtype_come_back_whatever_their_layout(dtype: np.dtype) -> None:
    bits = np.random.default_rng(7).integers(0, 256, 6 * 5 * 4 * dtype.itemsize, dtype=np.uint8)
    array = (bits % 2 if dtype == np.bool_ else bits).view(dtype).reshape(6, 5, 4)
    arrays = [
        array,
        array[::2, ::-1, 1:],
        array.T,
        np.asfortranarray(array),
        array[0, 0, :1].reshape(()),
        array[:0],
        array[:, :0],
    ]
    assert same(arrays, round_trip(arrays))
    scalars = list(array[0, 0]) + list(array[3, 2])
    assert same(scalars, round_trip(scalars))
    assert all(one.flags.c_contiguous and one.flags.owndata | (one.base is not None) for one in round_trip(arrays))


def test_nothing_of_a_float_is_lost() -> None:
    patterns = [0x7FF0000000000001, 0xFFF8000000000123, 0x8000000000000000, 1, 0x7FEFFFFFFFFFFFFF]
    floats = [struct.unpack("<d", struct.pack("<Q", one))[0] for one in patterns]
    assert [struct.unpack("<Q", struct.pack("<d", one))[0] for one in round_trip(floats)] == patterns


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**128 - 1, -(2**63), -(2**63) - 1, -(2**127)])
def test_integers_of_up_to_128_bits(value: int) -> None:
    assert round_trip(value) == value


class Pair(NamedTuple):
    left: int
    right: str


def test_sequences_and_mappings_become_lists_and_dicts() -> None:
    value = {"pair": Pair(1, "x"), "map": MappingProxyType({"a": (1, (2,))}), "undecoded": "\udcff\ud800"}
    assert round_trip(value) == {"pair": [1, "x"], "map": {"a": [1, [2]]}, "undecoded": "\udcff\ud800"}


def test_references_come_back_and_are_counted() -> None:
    blob, data = values.blob_of(np.arange(3, dtype=">i2"))
    assert bytes(data) == b"\0\0\1\0\2\0"
    assert blob.size_bytes == 6
    mark = SideMark("results-1", 12, bytes(range(32)))
    assert round_trip({"b": [blob, blob], "m": mark}) == {"b": [blob, blob], "m": mark}
    assert isinstance(round_trip(blob), Blob)


class Name(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "place", "got"),
    [
        ({"a": [1, {1, 2}]}, "a[1]", "type set"),
        pytest.param({"a": {"b": object()}}, "a.b", "type object", id="object"),
        ({1: 2}, "the value", "map key of type int"),
        ({"x": {Name("k"): 1}}, "x", "map key of type Name"),
        ({"x": Name("k")}, "x", "type Name"),
        ({"n": 2**128}, "n", "integer of 129 bits"),
        ({"n": -(2**127) - 1}, "n", "integer of 128 bits"),
        ([np.array(["x"])], "[0]", "dtype <U1"),
        ([np.array([None])], "[0]", "dtype object"),
        ([np.zeros(2, "i4,i4")], "[0]", "dtype [('f0'"),
        ([np.ma.masked_array([1, 2])], "[0]", "array of type MaskedArray"),
        ([np.datetime64("2026-01-01")], "[0]", "dtype datetime64"),
        ([1j], "[0]", "type complex"),
        ([np.complex64(1)], "[0]", "dtype complex64"),
        ([bytearray(2)], "[0]", "type bytearray"),
    ],
    ids=str,
)
def test_what_cannot_be_stored_is_refused_by_its_place(value: object, place: str, got: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        encode(value)
    assert str(caught.value).startswith(f"cannot store {place} in a checkpoint")
    assert got in str(caught.value)
    assert caught.value.hint


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_what_is_written_can_be_read_up_to_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert round_trip(nested(values.MAX_DEPTH)) == nested(values.MAX_DEPTH)
    with pytest.raises(CheckpointError, match=f"more than {values.MAX_DEPTH} levels"):
        encode(nested(values.MAX_DEPTH + 1))
    # An array at the deepest place, whose own fields are lists.
    deep = nested(values.MAX_DEPTH - 1)
    innermost = deep
    while isinstance(innermost[0], list):  # type: ignore[index]
        innermost = innermost[0]  # type: ignore[index]
    innermost[0] = np.arange(4).reshape(2, 2)  # type: ignore[index]
    assert same(deep, round_trip(deep))
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(CheckpointError, match="levels of lists"):
        encode(endless)
    for module in ("encode", "decode"):
        monkeypatch.setattr(f"flowcompute.checkpoint.store.{module}.MAX_VALUES", 11)
    full = encode(list(range(10))).data
    assert decode(full, lambda _: None).value == list(range(10))
    with pytest.raises(CheckpointError, match="more than 11 values"):
        encode(list(range(11)))
    monkeypatch.setattr("flowcompute.checkpoint.store.decode.MAX_VALUES", 10)
    with pytest.raises(DamagedError, match="more than 10 values"):
        decode(full, lambda _: None)


def test_nan_is_no_obstacle_to_keys_and_order() -> None:
    value = {"z": math.nan, "a": -0.0, "": None}
    assert same(value, round_trip(value))
