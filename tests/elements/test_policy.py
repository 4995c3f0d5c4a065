"""What `on_error=` may say, and the counting of what is dropped."""

from __future__ import annotations

import json
import math
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.policies.dead_letters import DeadLetters
from flowcompute.elements.policies.policy import ErrorPolicy
from flowcompute.elements.policies.skip_counter import SkipCounter
from flowcompute.errors import DestinationError, SpecError
from flowcompute.metrics import Skipped
from flowcompute.spec import SUPPORTED_DTYPES, is_float
from flowcompute.testing.contracts import assert_plain, sample
from tests.support.faulty_files import FaultyFiles


def composed_by_host(**options: Any) -> fc.Element:
    return fc.host(np.negative, fc.source(np.zeros(3)), name="made", **options)


def composed_by_iterate(**options: Any) -> fc.Element:
    return fc.iterate([], shape=(), dtype="f4", name="made", **options)


COMPOSED = [composed_by_host, composed_by_iterate]


@pytest.mark.parametrize("compose", COMPOSED)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on_error": "ignore"}, "'raise', 'skip' or 'dead_letter'"),
        ({"on_error": None}, "'raise', 'skip' or 'dead_letter'"),
        ({"on_error": True}, "'raise', 'skip' or 'dead_letter'"),
        ({"on_error": "dead_letter"}, "cannot take one of on_error='dead_letter' and dead_letter=path alone"),
        (
            {"on_error": "skip", "dead_letter": "d.jsonl"},
            "cannot take one of on_error='dead_letter' and dead_letter=path alone",
        ),
        ({"dead_letter": "d.jsonl"}, "cannot take one of on_error='dead_letter' and dead_letter=path alone"),
        ({"on_error": "dead_letter", "dead_letter": ""}, "cannot name a file so"),
        ({"on_error": "dead_letter", "dead_letter": "folder/"}, "cannot name a file so"),
        ({"on_error": "dead_letter", "dead_letter": "a\0b"}, "cannot name a file so"),
        ({"on_error": "dead_letter", "dead_letter": b"d.jsonl"}, "cannot name a file so"),
        ({"on_error": "dead_letter", "dead_letter": 3}, "cannot name a file so"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_written(compose, options, words):
    with pytest.raises(SpecError) as caught:
        compose(**options)
    for word in (words, "made", os.path.basename(__file__)):
        assert word in str(caught.value)


@pytest.mark.parametrize("compose", COMPOSED)
def test_the_path_is_settled_when_composed(compose, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    element = compose(on_error="dead_letter", dead_letter=Path("d.jsonl"))
    assert element.policy.path == str(tmp_path / "d.jsonl")
    assert os.listdir(tmp_path) == []


def test_records_of_no_stream_cannot_be_dropped():
    with pytest.raises(SpecError, match="cannot drop records where no input is a stream"):
        fc.host(np.negative, fc.constant(np.zeros(3)), on_error="skip")


def test_what_may_drop_records_has_an_unknown_length():
    x = fc.source(np.zeros((5, 2)))
    assert fc.host(np.negative, x, on_error="raise").shape == (5, 2)
    assert fc.host(np.negative, x, on_error="skip").shape == (None, 2)


# -- counting ---------------------------------------------------------------------------------


def opened(path: Path, files: FaultyFiles) -> tuple[ErrorPolicy, DeadLetters]:
    policy = ErrorPolicy("dead_letter", str(path), files)
    dead_letters = DeadLetters(policy, "made", None)
    dead_letters.open()
    return policy, dead_letters


def tally_of(policy: ErrorPolicy, dead_letters: DeadLetters | None = None) -> SkipCounter:
    skip_counter = SkipCounter("made", policy)
    skip_counter.dead_letters = dead_letters
    return skip_counter


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in path.read_bytes().splitlines()]


def test_millions_are_counted_in_little_memory(tmp_path):
    files = FaultyFiles(only=frozenset({"write"}))
    policy, dead_letters = opened(tmp_path / "d.jsonl", files)
    skip_counter = tally_of(policy, dead_letters)
    error = ValueError("x" * 100_000)
    for record in range(300):
        skip_counter.add(record, error, ())
    # Lines never wait beyond 64 KiB and the one that made them so many.
    ends = [sum(map(int, one.detail.split("+"))) for one in files.log]
    assert len(ends) > 3
    assert max(end - begin for begin, end in pairwise([0, *ends])) < (1 << 16) + 2000
    dead_letters.commit()
    assert [line["record"] for line in lines(tmp_path / "d.jsonl")] == list(range(300))

    skip_counter = tally_of(ErrorPolicy("skip"))
    texts = []

    class Told(Exception):
        def __str__(self) -> str:
            texts.append(self)
            return "y" * 5000

    told = Told()
    for record in range(200_000):
        skip_counter.add(record, told, ())
    assert skip_counter.skipped.count == 200_000
    assert len(skip_counter.skipped.first) == len(texts) == 100
    assert {len(one.text) for one in skip_counter.skipped.first} == {1000}
    assert skip_counter.skipped.first[-1].text.endswith("y\u2026")


@given(st.lists(st.booleans(), max_size=40))
def test_of_readings_side_by_side_the_first_at_a_record_writes_it(tmp_path_factory, turns):
    path = tmp_path_factory.getbasetemp() / "side by side.jsonl"
    policy, dead_letters = opened(path, FaultyFiles())
    skip_counters = [tally_of(policy, dead_letters), tally_of(policy, dead_letters)]
    for turn in turns:
        skip_counter = skip_counters[turn]
        skip_counter.add(7 * skip_counter.skipped.count, ValueError(), (skip_counter.skipped.count,))
    dead_letters.commit()
    longest = max(turns.count(False), turns.count(True))
    assert [(line["record"], line["inputs"]) for line in lines(path)] == [(7 * i, [i]) for i in range(longest)]
    path.unlink()


def test_a_tally_goes_on_from_its_snapshot():
    skip_counter = tally_of(ErrorPolicy("skip"))
    assert skip_counter.skipped == Skipped()
    for record in range(120):
        skip_counter.add(record, ValueError(f"at {record}"), ())
    state = skip_counter.snapshot()
    assert_plain(state)
    other = tally_of(skip_counter.policy)
    other.restore(state)
    assert other.skipped == skip_counter.skipped
    other.add(120, ValueError(), ())
    assert (other.skipped.count, skip_counter.skipped.count) == (121, 120)


# -- lines ------------------------------------------------------------------------------------


def line_of(path: Path, *inputs: object, error: BaseException | None = None) -> dict[str, Any]:
    policy, dead_letters = opened(path, FaultyFiles())
    tally_of(policy, dead_letters).add(3, error or ValueError(), inputs)
    dead_letters.commit()
    (line,) = lines(path)
    return line


@pytest.mark.parametrize("dtype", SUPPORTED_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (64,), (4, 4, 4)])
def test_inputs_can_be_had_back_from_their_line(tmp_path, dtype, shape):
    value = sample(dtype, shape)
    (found,) = line_of(tmp_path / "d.jsonl", value)["inputs"]
    assert np.shape(found) == shape
    want = value.astype("f8") if is_float(dtype) else value
    numbers = [float(one) if is_float(dtype) else one for one in np.array(found, dtype=object).reshape(-1)]
    np.testing.assert_array_equal(np.array(numbers, want.dtype).reshape(shape), want)
    assert [math.copysign(1, a) for a in numbers if a == 0] == [math.copysign(1, a) for a in want.flat if a == 0]


class Strange:
    """What neither becomes an array nor can be shown."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError

    def __repr__(self) -> str:
        raise KeyError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.zeros(65), None),
        (np.zeros((1, 65), ">i2"), None),
        (np.array([1.5, np.nan], ">f4"), [1.5, "nan"]),
        ("text", "'text'"),
        (b"\xff", "b'\\xff'"),
        (None, "None"),
        (2j, "2j"),
        ([1, [2, 3]], "[1, [2, 3]]"),
        (list(range(64)), list(range(64))),
        ("x" * 1000, "'xxxxxxxxxxxx...xxxxxxxxxxxxx'"),
        (np.array(["a"]), "array(['a'], dtype='<U1')"),
        (2**64 - 1, 2**64 - 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_array_of_a_few_numbers_is_shown_as_well_as_can_be(tmp_path, value, shown):
    assert line_of(tmp_path / "d.jsonl", value)["inputs"] == [shown]


@pytest.mark.parametrize("value", [Strange(), [Strange()], 10**5000, {"a": Strange()}], ids=["a", "b", "c", "d"])
def test_what_cannot_be_shown_has_a_line_too(tmp_path, value):
    (found,) = line_of(tmp_path / "d.jsonl", value)["inputs"]
    assert isinstance(found, str)
    assert 0 < len(found) < 200


def test_an_error_of_ours_says_what_was_expected_and_what_came(tmp_path):
    error = DestinationError("no", element="e", expected="a", got="b", hint="c")
    assert line_of(tmp_path / "d.jsonl", error=error)["text"] == "no: expected a, got b"
    assert line_of(tmp_path / "d.jsonl", error=DestinationError("no"))["text"] == "no"


def test_ending_a_file_twice_or_never_beginning_it_is_harmless(tmp_path):
    files = FaultyFiles()
    policy, dead_letters = opened(tmp_path / "d.jsonl", files)
    dead_letters.commit()
    dead_letters.commit()
    dead_letters.discard()
    assert os.listdir(tmp_path) == ["d.jsonl"]
    _, dead_letters = opened(tmp_path / "e.jsonl", files)
    dead_letters.discard()
    dead_letters.discard()
    dead_letters.commit()
    DeadLetters(policy, "made", None).commit()
    DeadLetters(policy, "made", None).discard()
    assert os.listdir(tmp_path) == ["d.jsonl"]
    assert not files.handles
