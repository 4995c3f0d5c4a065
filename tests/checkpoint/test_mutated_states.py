"""States that somebody has changed and sealed again: the job goes on as far as can be told, or CheckpointError, at once.

A number in a sum that is another one is a state that the job might have had, so that values are not compared here.
"""

from __future__ import annotations

import copy
import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.checkpoint.store.folder import CheckpointFolder
from tests.properties.cases import cases

DATA = (np.arange(256, dtype="f4") % 23 - 11).reshape(64, 4)
SMALL = fc.Strategy(batch_bytes=128)
OPTIONS: dict[str, Any] = {"device": "numpy", "progress": False, "strategy": SMALL}
PATIENCE_S = 30.0


def clocks(x: Any, y: Any) -> list[Any]:
    """Streams of many paces."""
    return [
        fc.repeat(x[:, 0], 2).sum(),
        fc.window(x, 9).mean(axis=1).sum(axis=0),
        fc.cut(x, 5, tail="drop").max(axis=1),
        x[x[:, 1] > 0][:, 2],
        fc.concat([x[:40], y]).sum(axis=0),
        x[10:50:3].sum(axis=0),
        fc.diff(y, n=2),
    ]


def states(x: Any, y: Any) -> list[Any]:
    """Something of each kind that holds a state."""
    return [
        fc.cumulative_sum(x, axis=0),
        fc.ema(x[:, 0], alpha=0.5),
        x.sum(axis=0),
        x.argmin(axis=0),
        fc.histogram(x[:, 3], bins=5, range=(-12, 12))[0],
        fc.top_k(x[:, 1], 3)[0],
        fc.quantile(y[:, 0], 0.5),
        *fc.unique_counts(x[:, 2], max_values=40),
        fc.linalg.pinv(x.T @ x),
        fc.first(y),
        fc.last(y),
    ]


def passes(x: Any, y: Any) -> list[Any]:
    """Several passes, and what is kept between them."""
    kept = fc.spool(x[:, :2] * 2)
    return [x - x.mean(axis=0), kept - kept.min(axis=0), y.sum()]


JOBS: dict[str, Callable[[Any, Any], list[Any]]] = {"clocks": clocks, "states": states, "passes": passes}


def roots(name: str) -> list[Any]:
    x, y = fc.source(DATA, name="x"), fc.source(DATA[::-1], name="y")
    return [one >> fc.to_array() for one in JOBS[name](x, y)]


@cache
def frozen(name: str, after: int) -> tuple[Path, dict[str, Any], list[tuple[Any, ...]]]:
    """The folder of a job that was frozen after so many batches, its state, and what comes of it."""
    path = Path(mkdtemp()) / "kept"
    batches = iter(range(after - 1))
    with pytest.raises(fc.RunError, match="was frozen"):
        fc.run(
            *roots(name), checkpoint=path, on_batch=lambda run: next(batches, None) is None and run.freeze(), **OPTIONS
        )
    with CheckpointFolder.peek(path) as folder:
        body = folder.newest().body
    return path, body, [kind(value) for value in fc.resolve(*roots(name), **OPTIONS)]


def kind(value: Any) -> tuple[Any, ...]:
    return (np.asarray(value).dtype, np.asarray(value).shape)


def go_on(path: Path, body: dict[str, Any]) -> list[tuple[Any, ...]] | None:
    """What comes of a state, None for CheckpointError; anything else is raised."""
    with CheckpointFolder.open(path) as folder:
        folder.newest()
        folder.commit(body)
    try:
        run = fc.thaw(path).start(**OPTIONS)
        try:
            return [kind(value) for value in run.wait(PATIENCE_S).values]
        except TimeoutError:
            run.stop()
            raise
    except fc.CheckpointError as error:
        assert len(str(error)) < 4000
        return None


def outcome(name: str, after: int, change: Callable[[dict[str, Any]], object]) -> None:
    base, body, expected = frozen(name, after)
    mutated = copy.deepcopy(body)
    change(mutated)
    folder = Path(mkdtemp())
    try:
        shutil.copytree(base, folder / "kept")
        with warnings.catch_warnings():
            # An overflow in a number that nobody has computed is none of ours.
            warnings.simplefilter("ignore", RuntimeWarning)
            found = go_on(folder / "kept", mutated)
    finally:
        shutil.rmtree(folder)
    if found is not None:
        # Selections give as many records as they find.
        assert [one[0] for one in found] == [one[0] for one in expected]
        assert [one[1][1:] for one in found] == [one[1][1:] for one in expected]


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value."""
    if path:
        yield path
    if isinstance(data, dict | list | tuple):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*path, key))


JUNK: tuple[Any, ...] = (None, True, -1, 0, 1, 2**40, 2**70, 0.5, float("nan"), "", "x", b"", [], {}, [0], {"a": 1},
                         np.zeros(3), np.zeros((2, 4), "f4"), np.array(5), np.zeros((0, 4), "f4"))  # fmt: skip


def changed(draw: Any, body: dict[str, Any]) -> None:
    """One change, anywhere below."""
    found = list(places(body))
    *way, key = found[draw(st.integers(0, len(found) - 1))]
    holder: Any = body
    for one in way:
        if isinstance(holder[one], tuple):
            holder[one] = list(holder[one])
        holder = holder[one]
    value = holder[key]
    how = draw(st.sampled_from(["junk", "nudge", "nudge", "nudge", "other", "remove"]))
    if how == "junk":
        holder[key] = copy.deepcopy(draw(st.sampled_from(JUNK)))
    elif how == "remove":
        del holder[key]
    elif how == "other":
        way = list(found[draw(st.integers(0, len(found) - 1))])
        other: Any = body
        for one in way:
            other = other[one]
        holder[key] = copy.deepcopy(other)
    elif isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = value + draw(st.sampled_from([-1, 1, 2, 8, 64, -8, 1 << 40]))
    elif isinstance(value, np.ndarray):
        how = draw(st.sampled_from(["shorter", "longer", "dtype", "flat", "numbers"]))
        if how == "shorter":
            holder[key] = value[:-1] if value.ndim else value.reshape(1)
        elif how == "longer":
            holder[key] = np.concatenate([value, value]) if value.ndim else np.stack([value, value])
        elif how == "dtype":
            holder[key] = value.astype("f8" if value.dtype != np.dtype("f8") else "i4")
        elif how == "flat":
            holder[key] = value.reshape(-1)
        else:
            holder[key] = np.full_like(value, draw(st.sampled_from([0, 1, 100])))
    elif isinstance(value, list) and value:
        holder[key] = draw(st.sampled_from([value[:-1], [*value, value[0]], value[::-1]]))


@cases(16)
@given(st.data())
def test_a_changed_state_goes_on_or_is_refused(data: st.DataObject) -> None:
    name, after = data.draw(st.sampled_from(sorted(JOBS))), data.draw(st.sampled_from([1, 3, 7]))

    def change(body: dict[str, Any]) -> None:
        for _ in range(data.draw(st.integers(1, 2))):
            changed(data.draw, body)

    outcome(name, after, change)


def flipped(make: Callable[[Any], Any], after: int, folder: Path) -> Path:
    """A job that was frozen after so many batches, with a clock that is said to have ended."""
    batches = iter(range(after - 1))
    with pytest.raises(fc.RunError, match="was frozen"):
        fc.run(
            make(fc.source(DATA)),
            checkpoint=folder / "kept",
            on_batch=lambda run: next(batches, None) is None and run.freeze(),
            **OPTIONS,
        )
    with CheckpointFolder.open(folder / "kept") as checkpoint:
        body = checkpoint.newest().body
        ended = body["executor"]["clocks"]["ended"]
        ended[1] = not ended[1]
        checkpoint.commit(body)
    return folder / "kept"


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize(
    "make", [lambda x: fc.repeat(x[:, 0], 2).sum(), lambda x: fc.window(x, 9).mean(axis=1).sum(axis=0)]
)
def test_a_clock_that_has_not_ended_is_not_said_to_have(make: Any, after: int, tmp_path: Path) -> None:
    path = flipped(make, after, tmp_path)
    with pytest.raises(fc.CheckpointError, match="is not one that this job can have"):
        fc.thaw(path).start(**OPTIONS).wait(PATIENCE_S)


def test_clocks_that_advance_nothing_are_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("flowcompute.engine.pass_state.PassState._check_streams", lambda _: None)
    path = flipped(lambda x: fc.repeat(x[:, 0], 2).sum(), 1, tmp_path)
    with CheckpointFolder.open(path) as folder:
        body = folder.newest().body
        for waiting in body["executor"]["clocks"]["inlets"][1].values():
            waiting.update(pieces=[np.zeros(4, "f4")], ended=True)
        folder.commit(body)
    run = fc.thaw(path).start(**OPTIONS)
    try:
        with pytest.raises(fc.CheckpointError, match="records wait for a stream that does not take them"):
            run.wait(PATIENCE_S)
    finally:
        run.stop()
