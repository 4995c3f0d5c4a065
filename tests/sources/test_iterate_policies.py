"""`on_error=` of iterables: what is not as declared is dropped, by its place among all that was yielded."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import RunError, SourceError, SpecError

BAD: list[Any] = [
    "text", None, 2j, np.zeros(2), np.zeros((2, 2, 2)), np.array(["a"]), [[1, 2, 3], [1, 2]], 10**5000,
    np.ma.masked_array(np.zeros((1, 3)), True), object(), np.zeros((2, 3), complex),
]  # fmt: skip


def run(*roots: Any, items: int = 10, **options: Any) -> Any:
    strategy = fc.Strategy(batch_bytes=items * 12)
    return fc.run(*roots, strategy=strategy, progress=False, device="numpy", **options)


def plain(values: list[Any]) -> list[Any]:
    return values


def generated(values: list[Any]) -> Iterator[Any]:
    yield from values


async def awaited(values: list[Any]) -> AsyncIterator[Any]:
    for value in values:
        yield value


@given(
    st.lists(st.one_of(st.integers(0, 30), st.sampled_from(range(len(BAD))).map(lambda i: -1 - i)), max_size=25),
    st.integers(1, 40),
    st.sampled_from([plain, generated, awaited]),
)
def test_batches_that_do_not_fit_are_gone_and_counted(
    kinds: list[int], items: int, given_as: Callable[[list[Any]], Any]
) -> None:
    good = {place: np.full((kind, 3), place, "f4") for place, kind in enumerate(kinds) if kind >= 0}
    values = [good[place] if place in good else BAD[-1 - kind] for place, kind in enumerate(kinds)]
    x = fc.iterate(given_as(values), shape=(3,), dtype="f4", name="x", on_error="skip")
    done = run(x, items=items)
    np.testing.assert_array_equal(done.value, np.concatenate([np.empty((0, 3), "f4"), *good.values()]))
    bad = [place for place in range(len(kinds)) if place not in good]
    assert [one.record for one in done.skipped["x"].first] == bad
    assert done.skipped["x"].count == done.progress.skipped == len(bad)
    assert {one.error for one in done.skipped["x"].first} <= {"SourceError"}


@pytest.mark.parametrize("items", [1, 2, 3, 100])
@pytest.mark.parametrize("dtype", ["i1", "i8", "f4"])
def test_items_between_others_of_several_types(items: int, dtype: str) -> None:
    values: list[Any] = [1, "x", np.int8(2), 3, None, np.int16(4), True, [5], 6, 7, 2j]
    x = fc.iterate(values, shape=(), dtype=dtype, items=True, name="x", on_error="skip")
    done = run(x, items=items)
    np.testing.assert_array_equal(done.value, np.array([1, 2, 3, 4, 1, 6, 7], dtype))
    assert [one.record for one in done.skipped["x"].first] == [1, 4, 7, 10]


def test_integers_that_do_not_fit_are_dropped_alone() -> None:
    x = fc.iterate([1, 300, -129, 127, 2**70], shape=(), dtype="i1", items=True, name="x", on_error="skip")
    done = run(x)
    np.testing.assert_array_equal(done.value, [1, 127])
    assert [one.record for one in done.skipped["x"].first] == [1, 2, 4]
    assert "300" in done.skipped["x"].first[0].text


def test_the_file_shows_what_was_yielded(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    values = [np.zeros((2, 3)), np.array([1, np.nan]), "text", np.zeros((1, 3)), np.zeros((40, 2))]
    x = fc.iterate(values, shape=(3,), dtype="f4", name="x", on_error="dead_letter", dead_letter=path)
    assert len(run(x).value) == 3
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["record"], line["inputs"]) for line in lines] == [(1, [[1.0, "nan"]]), (2, ["'text'"]), (4, [None])]
    assert {line["element"] for line in lines} == {"x"}
    assert "(k, 3)" in lines[0]["text"]
    assert "shape (2,)" in lines[0]["text"]


def test_what_was_dropped_can_be_looked_at_while_the_run_goes_on(tmp_path: Path) -> None:
    seen = []

    def looking() -> Iterator[Any]:
        for _ in range(3):
            yield "bad"
            yield np.zeros((10, 3), "f4")
            # Asked for more, after a buffer was full.
            (path,) = tmp_path.iterdir()
            seen.append(len(path.read_text().splitlines()))

    path = tmp_path / "d.jsonl"
    run(fc.iterate(looking(), shape=(3,), dtype="f4", on_error="dead_letter", dead_letter=path), items=10)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize("given_as", [generated, awaited])
def test_what_the_iterable_raises_fails_the_run_and_leaves_the_file(tmp_path: Path, given_as: Any) -> None:
    async def awaited_until() -> AsyncIterator[Any]:
        yield "bad"
        raise ValueError("the wire is cut")

    def until() -> Iterator[Any]:
        yield "bad"
        raise ValueError("the wire is cut")

    path = tmp_path / "d.jsonl"
    values = until() if given_as is generated else awaited_until()
    x = fc.iterate(values, shape=(), dtype="f4", name="x", on_error="dead_letter", dead_letter=path)
    with pytest.raises(SourceError, match="the wire is cut"):
        run(x)
    assert [json.loads(line)["record"] for line in path.read_text().splitlines()] == [0]
    assert [one.name for one in tmp_path.iterdir()] == ["d.jsonl"]


def test_several_readings_of_one_iterable_drop_the_same(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    values = [np.ones((4, 3)), "a", np.zeros((3, 3)), "b", np.ones((2, 3)), "c"]
    for expression, passes in (
        (lambda x: x - x.mean(axis=0), 2),
        (lambda x: fc.concat([x, x]), 1),
        (lambda x: fc.concat([x[:2], x]), 1),
        (lambda x: x - x[:5].mean(axis=0), 2),
    ):
        x = fc.iterate(values, shape=(3,), dtype="f4", name="x", on_error="dead_letter", dead_letter=path)
        done = run(expression(x), items=2)
        assert len(done.plan.passes) == passes
        assert done.skipped["x"].count == 3
        assert [json.loads(line)["record"] for line in path.read_text().splitlines()] == [1, 3, 5]


def test_raise_is_the_default() -> None:
    with pytest.raises(SourceError, match="differs from what was declared"):
        run(fc.iterate(["text"], shape=(), dtype="f4"))


def test_what_was_dropped_is_missing_where_streams_meet() -> None:
    x = fc.iterate([np.ones((4, 3)), "a"], shape=(3,), dtype="f4", name="x", on_error="skip")
    y = fc.source(np.ones((5, 3), "f4"), name="y")
    with pytest.raises(RunError, match="different lengths") as caught:
        run(x + y)
    assert "5" in str(caught.value.expected)
    assert "4" in str(caught.value.got)


def test_one_that_is_read_once_is_read_once() -> None:
    x = fc.iterate(generated([np.ones((4, 3)), "a"]), shape=(3,), dtype="f4", on_error="skip")
    with pytest.raises((SpecError, fc.PlanError), match="once"):
        fc.plan(x - x.mean(axis=0))
    y = fc.spool(x)
    np.testing.assert_array_equal(run(y - y.mean(axis=0)).value, np.zeros((4, 3)))
