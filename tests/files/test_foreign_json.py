"""JSON of others: it has the shape that is asked for, or there is one error, whatever is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowcompute.files import Each, ForeignJsonError, Maybe, expect, read_json, read_json_file

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
SHAPES: list[Any] = [
    str, bool, int, float, object, ("a", "b"), [int], [[float]], Each(int), Maybe(str), {"a": int}, {"a": Maybe([str])},
    {"a": {"b": Each([Maybe(float)])}},
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 200_000, "{\"a\":" * 100_000, "1" * 10_000, "\ud800", b"\xff\xfe\x00", b"\x80", '{"a": 1} x'],
    ids=range(9),
)  # fmt: skip
def test_what_cannot_be_parsed_is_one_error(text: Any) -> None:
    with pytest.raises(ForeignJsonError):
        read_json(text, lambda data: expect(data, {"a": str}), limit_bytes=1 << 20)


@pytest.mark.parametrize("error", [KeyError, TypeError, IndexError, AttributeError, OverflowError, ZeroDivisionError,
                                   RecursionError, MemoryError, UnicodeError])  # fmt: skip
def test_what_a_reader_fails_with_is_the_same_error(error: type[Exception]) -> None:
    def read(_: object) -> None:
        raise error

    with pytest.raises(ForeignJsonError, match=error.__name__):
        read_json("1", read, limit_bytes=10)


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ForeignJsonError, match="at most 100 are read"):
        read_json_file(str(path), lambda data: data, limit_bytes=100)
    with pytest.raises(ForeignJsonError, match="at most 3 are read"):
        read_json("[1, 2]", lambda data: data, limit_bytes=3)
    path.write_text('{"a": [1]}')
    assert read_json_file(str(path), lambda data: expect(data, {"a": [int]}), limit_bytes=100) == {"a": [1]}


@pytest.mark.parametrize("data", [10**400, -(2**63), True, None, "1", [1], float("inf")])
def test_a_whole_number_has_64_bits(data: Any) -> None:
    with pytest.raises(ForeignJsonError, match="the place is no number"):
        expect(data, int, "the place")


def test_the_place_is_named() -> None:
    with pytest.raises(ForeignJsonError, match=r"it\.a\.x\[1\] is no number"):
        expect({"a": {"x": [1, "2"]}}, {"a": Each([int])})


def has(data: Any, shape: Any) -> bool:
    """The meaning of a shape, said once more."""
    match shape:
        case Maybe(inner):
            return data is None or has(data, inner)
        case Each(inner):
            return isinstance(data, dict) and all(has(one, inner) for one in data.values())
        case dict():
            return isinstance(data, dict) and all(name in data and has(data[name], one) for name, one in shape.items())
        case list():
            return isinstance(data, list) and all(has(one, shape[0]) for one in data)
        case tuple():
            return isinstance(data, str) and data in shape
    if shape in (int, float):
        return type(data) in ((int,) if shape is int else (int, float)) and not (
            type(data) is int and abs(data) >= 2**63
        )
    return isinstance(data, shape)


@given(VALUES, st.sampled_from(SHAPES))
def test_what_is_given_has_the_shape(data: Any, shape: Any) -> None:
    try:
        found = read_json(json.dumps(data), lambda parsed: expect(parsed, shape), limit_bytes=1 << 20)
    except ForeignJsonError:
        assert not has(data, shape)
    else:
        assert has(found, shape)
