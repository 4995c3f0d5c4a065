"""Sections, cuts and arms of concats that reach their sources: what is read, that nothing waits, and the values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import PlanError
from flowcompute.graph.graph import build_graph
from flowcompute.rewrite.parts import move_parts_to_sources
from flowcompute.sources.view import SourceView
from tests.properties.cases import cases
from tests.sources.tape import Tape

N = 1000
X = np.random.default_rng(1).integers(-9, 9, (N, 3)).astype(np.float32)


def resolve(element: fc.Element, **options: Any) -> Any:
    return element.resolve(device="numpy", progress=False, **options)


# -- what is read -------------------------------------------------------------------------------

READ: dict[str, tuple[Callable[[Any], Any], Any, int]] = {
    "a section": (lambda x: x[100:200], X[100:200], 100),
    "of a map": (lambda x: (x * 2 + 1)[100:200], X[100:200] * 2 + 1, 100),
    "of rows": (lambda x: x.max(axis=1)[100:200], X[100:200].max(axis=1), 100),
    "of a view": (lambda x: x[:, ::-1][100:200, 0], X[100:200, 2], 100),
    "of a section": (lambda x: x[50:][50:150], X[100:200], 100),
    "of a product": (lambda x: (x @ np.eye(3, dtype="f4"))[100:200], X[100:200], 100),
    "beside a resident": (lambda x: (x * np.arange(3, dtype="f4"))[100:200], X[100:200] * np.arange(3), 100),
    "one record": (lambda x: x[500], X[500], 1),
    "the last record": (lambda x: x[-1], X[-1], 1),
    "nothing": (lambda x: x[700:700], X[:0], 0),
    "the fold of a section": (lambda x: x[100:200].sum(axis=0), X[100:200].sum(axis=0), 100),
    "neighbours": (lambda x: x[1:] - x[:-1], np.diff(X, axis=0), 2 * (N - 1)),
    "halves": (lambda x: x[: N // 2] * x[N // 2 :], X[: N // 2] * X[N // 2 :], N),
    "the same section twice": (lambda x: x[5:10] * x[5:10], X[5:10] ** 2, 5),
    "runs": (lambda x: fc.cut(x, 100)[:2].sum(axis=1), X[:200].reshape(2, 100, 3).sum(axis=1), N),
    "runs of a section": (lambda x: fc.cut(x[100:150], 10), X[100:150].reshape(5, 10, 3), N),
    "two passes of a section": (lambda x: (y := x[10:30]) - y.sum(axis=0), X[10:30] - X[10:30].sum(axis=0), 40),
    "end to end": (lambda x: fc.concat([x[:10], x[900:]]), np.concatenate([X[:10], X[900:]]), 110),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_only_what_is_used_is_read(name: str) -> None:
    build, wanted, records = READ[name]
    tape = Tape(X)
    np.testing.assert_array_equal(resolve(build(tape)), wanted)
    assert tape.read_records <= records
    np.testing.assert_array_equal(resolve(build(tape), strategy=fc.Strategy(batch_bytes=100)), wanted)


@pytest.mark.parametrize("name", ["neighbours", "halves", "the same section twice", "end to end"])
def test_nothing_waits_for_what_comes_much_later(name: str) -> None:
    build, wanted, _ = READ[name]
    budget = np.asarray(wanted).nbytes + 2000
    np.testing.assert_array_equal(resolve(build(Tape(X)), memory=budget), wanted)


# -- the rewrite --------------------------------------------------------------------------------


def views(*elements: fc.Element) -> list[tuple[int, int, int, int | None]]:
    """First record, step, run and length of each part that a source is read for."""
    graph = move_parts_to_sources(build_graph(elements))
    found = [node.element for node in graph.nodes if isinstance(node.element, SourceView)]
    return sorted((view.first, view.step, view.every, view.spec.length) for view in found)


def test_parts_reach_every_source_of_an_expression() -> None:
    x, y = Tape(X), Tape(X)
    assert views((x + y)[10:20:3]) == [(10, 3, 0, 4), (10, 3, 0, 4)]
    assert views(fc.cut(x * y, 7, tail="drop")) == [(0, 7, 7, 142)] * 2
    assert views(x[3:][4:9]) == [(7, 1, 0, 5)]
    assert views(x[10:20], x[10:20] * 2) == [(10, 1, 0, 10)]


STAYS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda x: fc.cumulative_sum(x, axis=0)[10:20],
    "window": lambda x: fc.window(x, 3)[10:20],
    "selection": lambda x: x[x[:, 0] > 0][10:20],
    "function": lambda x: fc.host(lambda a: a, x)[10:20],
    "padded runs": lambda x: fc.cut(x, 7, tail="pad"),
    "steps of steps": lambda x: x[::2][::3],
    "runs of rows": lambda x: fc.cut(x.max(axis=1), 10),
    "beside generated numbers": lambda x: (x[:, 0] + fc.random.uniform(N, seed=1))[10:20],
    "beside a resident cut along": lambda x: (x[:, 0] + np.arange(N, dtype="f4"))[10:20],
}


@pytest.mark.parametrize("name", STAYS)
def test_what_hangs_on_its_place_in_the_stream_is_not_moved(name: str) -> None:
    build = STAYS[name]
    assert all(view == (0, 2, 0, 500) for view in views(build(Tape(X))))
    whole, part = resolve(build(fc.source(X))), resolve(build(fc.iterate([X], shape=(3,), dtype="float32")[:N]))
    np.testing.assert_array_equal(whole, part)


def test_generated_numbers_keep_their_places() -> None:
    numbers = fc.random.normal(N, seed=3)
    np.testing.assert_array_equal(resolve(numbers[400:410]), resolve(numbers)[400:410])
    np.testing.assert_array_equal(resolve((fc.range(N) * 2)[400:410:3]), np.arange(800, 820, 6))


def test_streams_of_unknown_length_are_cut_as_they_come() -> None:
    x = fc.iterate([X[:400], X[400:]], shape=(3,), dtype="float32")
    assert views(x[10:20]) == []
    np.testing.assert_array_equal(resolve(x[390:410]), X[390:410])


# -- end to end ---------------------------------------------------------------------------------


@cases(60)
@given(st.data())
def test_streams_end_to_end_beside_anything(data: st.DataObject) -> None:
    """Arms that share sources with each other, with themselves, and with what they meet."""
    x, y = X[:20, 0], X[20:40, 0]
    arms: list[tuple[Any, np.ndarray]] = [(fc.source(x), x), (fc.source(y), y)]
    for _ in range(data.draw(st.integers(1, 5))):
        one, other = (data.draw(st.sampled_from(arms)) for _ in range(2))
        place = data.draw(st.integers(0, 20))
        form = data.draw(st.sampled_from(["concat", "split", "meet", "scan", "window"]))
        if form == "concat" and len(one[1]) + len(other[1]) < 400:
            arms.append((fc.concat([one[0], other[0]]), np.concatenate([one[1], other[1]])))
        elif form == "split":
            arms.append((fc.concat([one[0][place:], one[0][:place]]), np.concatenate([one[1][place:], one[1][:place]])))
        elif form == "meet" and len(one[1]) == len(other[1]):
            arms.append((one[0] - other[0], one[1] - other[1]))
        elif form == "scan":
            arms.append((fc.cumulative_max(one[0]), np.maximum.accumulate(one[1])))
        elif form == "window":
            arms.append((fc.window(one[0], 1)[:, 0], one[1]))
    batch_bytes = data.draw(st.sampled_from([4, 40, 1 << 20]))
    roots = [arms[-1], *data.draw(st.lists(st.sampled_from(arms), max_size=2))]
    values = fc.resolve(
        *(root for root, _ in roots), device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=batch_bytes)
    )
    for value, (_, wanted) in zip(values if len(roots) > 1 else (values,), roots, strict=True):
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize(
    "build",
    [lambda x: fc.concat([x, x]), lambda x: fc.concat([x * 2, x]), lambda x: fc.concat([x[:3], x]) * 2],
)
def test_what_can_be_read_once_is_not_read_for_two_arms(build: Callable[[Any], Any]) -> None:
    x = fc.iterate(iter([X]), shape=(3,), dtype="float32", name="wire")
    with pytest.raises(PlanError, match="can be read only once") as caught:
        build(x).plan(device="numpy")
    assert caught.value.element == "wire"
    assert caught.value.hint


def test_windows_and_scans_go_on_over_the_edges_of_files(tmp_path: Path) -> None:
    paths = []
    whole = X[:200]
    for number, part in enumerate(np.array_split(whole, [1, 2, 60, 60, 199])):
        paths.append(tmp_path / f"{number}.npy")
        np.save(paths[-1], part)
    for build in (
        lambda x: fc.window(x, 7, pad="reflect").sum(axis=1),
        lambda x: fc.cumulative_sum(x, axis=0),
        lambda x: fc.diff(x, 2, axis=0),
        lambda x: x[3:] * x[:-3],
        lambda x: fc.cut(x, 50).max(axis=1),
        lambda x: fc.convolve(x, np.array([1, 2, 4], "f4"), "same"),
        lambda x: x - x.sum(axis=0),
    ):
        wanted = resolve(build(fc.source(whole)))
        for batch_bytes in (12, 1000, 1 << 20):
            result = resolve(build(fc.open(paths)), strategy=fc.Strategy(batch_bytes=batch_bytes))
            assert result.tobytes() == wanted.tobytes()
