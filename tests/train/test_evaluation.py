"""Measures between steps, and trainings that end by them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import PlanError, RunError, SpecError
from flowcompute.gpu import OpenCLBackend
from tests.gpu.shapes import gpu_shaped
from tests.properties.cases import cases
from tests.train.problems import RNG, X, Y, loss, weights

NUMPY: dict[str, Any] = {"device": "numpy", "progress": False}
HELD_X = RNG.standard_normal((33, 6), dtype=np.float32)
HELD_Y = np.abs(HELD_X[:, :3]).argmax(1)


class Fitted:
    """A training of 5 steps an epoch, and the share of other records that it tells right."""

    def __init__(self, x: Any = X, y: Any = Y, **options: Any) -> None:
        w, b = weights()
        held_x, held_y = fc.source(HELD_X), fc.source(HELD_Y)
        self.right = (fc.argmax(held_x @ w + b, axis=1) == held_y).astype("float32").mean()
        self.loss = loss(fc.source(x), fc.source(y), w, b)
        self.mean = loss(held_x - held_x.mean(axis=0), held_y, w, b)
        self.options = {"batch": 10, "epochs": 6, "shuffle": 3, **options}

    def fit(self, **options: Any) -> fc.train.Trained:
        return fc.train.fit(self.loss, fc.train.adam(0.1), **{**self.options, **options})


@pytest.mark.parametrize("every", [None, 1, 7])
def test_measures_are_those_of_a_training_that_ends_there(every: int | None) -> None:
    problem = Fitted()
    trained = problem.fit(evaluate={"right": problem.right, "mean": problem.mean}, every=every)
    right, mean, w, losses = fc.resolve(*trained.measures.values(), trained["w"], trained.losses, **NUMPY)
    assert trained.losses.spec.length == 30
    assert len(right) == len(mean) == 30 // (every or 5)
    plain = problem.fit()
    assert all(
        one.tobytes() == other.tobytes()
        for one, other in zip((w, losses), fc.resolve(plain["w"], plain.losses, **NUMPY), strict=True)
    )
    if every is None:
        for epochs in (1, 4):
            ended = problem.fit(epochs=epochs)
            expected = fc.resolve(ended.apply(problem.right), ended.apply(problem.mean), **NUMPY)
            assert (right[epochs - 1], mean[epochs - 1]) == expected


def test_a_function_of_the_measures_ends_it() -> None:
    problem = Fitted(epochs=100)
    trained = problem.fit(evaluate=problem.mean, stop=lambda measures: measures["measure"] > 1.3)
    run = fc.run(trained["w"], trained.losses, trained.measures["measure"], trained.apply(problem.mean), **NUMPY)
    w, losses, mean, last = run.values
    epochs = len(mean)
    assert 1 < epochs < 100
    assert mean[-1] > 1.3 >= mean[:-1].max()
    assert last == mean[-1]
    # The other records are read twice, for their mean.
    assert run.progress.items == len(losses) + 2 * len(HELD_X) == 5 * epochs + 2 * len(HELD_X)
    plain = problem.fit(epochs=epochs)
    expected = fc.resolve(plain["w"], plain.losses, **NUMPY)
    assert (w.tobytes(), losses.tobytes()) == (expected[0].tobytes(), expected[1].tobytes())


def test_patience_ends_it() -> None:
    problem = Fitted(epochs=60)
    criterion = fc.train.patience(2, least=0.002, measure="mean")
    trained = problem.fit(evaluate={"right": problem.right, "mean": problem.mean}, stop=criterion)
    mean, losses, total = fc.resolve(trained.measures["mean"], trained.losses, trained.losses.sum(), **NUMPY)
    state, stops = criterion.init(), []
    for value in mean:
        stop, state = criterion.update(float(value), state)
        stops.append(stop)
    assert stops == [*[False] * (len(mean) - 1), True]
    assert len(losses) == 5 * len(mean) < 300
    np.testing.assert_allclose(total, losses.sum(), rtol=1e-6)


numbers = st.floats(-4, 4, width=32) | st.sampled_from([float("nan"), float("inf"), -float("inf")])


@cases(50)
@given(
    values=st.lists(numbers, max_size=12),
    most=st.integers(1, 3),
    least=st.sampled_from([0.0, 0.5]),
    largest=st.booleans(),
)
def test_patience_over_elements_is_that_over_numbers(
    values: list[float], most: int, least: float, largest: bool
) -> None:
    criterion = fc.train.patience(most, least=least, largest=largest)
    value = fc.constant(np.float32(0))
    state, kept = criterion.init(), [one.value for one in criterion.begin(value)]  # type: ignore[attr-defined]
    for number in values:
        stop, state = criterion.update(number, state)
        ends, after = criterion.advance(fc.constant(np.float32(number)), [fc.constant(one) for one in kept])
        found, *kept = fc.resolve(ends, *after, **NUMPY)
        assert (bool(found), float(kept[0]), int(kept[1])) == (stop, *state)


def bytes_of(values: Any) -> list[bytes]:
    return [Path(one).read_bytes() if isinstance(one, str) else np.asarray(one).tobytes() for one in values]


class TestResumed:
    def job(self, folder: Path, stop: Any = None) -> list[Any]:
        if not (folder / "x.npy").exists():
            np.save(folder / "x.npy", X)
        problem = Fitted(epochs=40)
        w, b = weights()
        x, y = fc.open(folder / "x.npy"), fc.source(Y)
        problem.loss = loss(x, y, w, b, 0.25)
        share = (fc.argmax(x @ w + b, axis=1) == y).astype("float32").mean()
        stop = stop or fc.train.patience(3)
        trained = problem.fit(evaluate=share, every=2, stop=stop)
        return [
            trained["w"],
            trained.losses >> fc.save(folder / "l.npy"),
            trained.measures["measure"],
            trained.apply(share),
        ]

    def frozen(self, folder: Path, steps: int) -> bool:
        def watch(run: fc.Run) -> None:
            if run.progress.items >= steps:
                run.freeze()

        try:
            fc.run(*self.job(folder), checkpoint=folder / "kept", on_batch=watch, **NUMPY)
        except RunError as error:
            assert "was frozen" in str(error)
            return True
        return False

    def test_it_takes_the_same_decisions(self, tmp_path: Path) -> None:
        whole = bytes_of(fc.run(*self.job(tmp_path), **NUMPY).values)
        steps = len(np.load(tmp_path / "l.npy"))
        assert 8 <= steps < 200
        (tmp_path / "l.npy").unlink()
        for stop in (1, 2, 5, steps - 2, steps - 1):
            assert self.frozen(tmp_path, stop)
        assert bytes_of(fc.run(*self.job(tmp_path), checkpoint=tmp_path / "kept", **NUMPY).values) == whole

    def test_it_stays_ended(self, tmp_path: Path) -> None:
        whole = bytes_of(fc.run(*self.job(tmp_path), **NUMPY).values)
        steps = len(np.load(tmp_path / "l.npy"))
        (tmp_path / "l.npy").unlink()
        assert self.frozen(tmp_path, steps)
        assert bytes_of(fc.run(*self.job(tmp_path), checkpoint=tmp_path / "kept", **NUMPY).values) == whole

    def test_it_goes_on_without_the_program(self, tmp_path: Path) -> None:
        whole = bytes_of(fc.run(*self.job(tmp_path), **NUMPY).values)
        (tmp_path / "l.npy").unlink()
        assert self.frozen(tmp_path, 3)
        assert bytes_of(fc.thaw(tmp_path / "kept").resolve(**NUMPY)) == whole

    def test_another_criterion_is_another_job(self, tmp_path: Path) -> None:
        assert self.frozen(tmp_path, 3)
        other = self.job(tmp_path, fc.train.patience(4))
        with pytest.raises(fc.CheckpointError, match=r"is 4 .*, and was 3"):
            fc.run(*other, checkpoint=tmp_path / "kept", **NUMPY)


@pytest.mark.compiles
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_kernels_measure_and_end_as_numpy_does(device: str) -> None:
    """On a device across a bus batches overlap: steps behind the end are on their way when it comes."""
    problem = Fitted(epochs=60)
    trained = problem.fit(evaluate=problem.mean, stop=lambda measures: measures["measure"] > 1.3)
    roots = trained["w"], trained.losses, trained.measures["measure"]
    other = fc.resolve(*roots, **NUMPY)
    shaped = mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped())
    with shaped if device == "gpu" else nullcontext():
        one = fc.resolve(*roots, device=device, progress=False)
    assert len(one[1]) == len(other[1]) < 300
    for found, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_whole_numbers_are_measured_as_floats() -> None:
    w, b = weights()
    measures = {"positive": (w > 0).astype("int64").sum(), "any": (w > 9).any()}
    trained = fc.train.fit(loss(fc.source(X), fc.source(Y), w, b), fc.train.sgd(0.5), batch=None, evaluate=measures)
    positive, found = fc.resolve(*trained.measures.values(), **NUMPY)
    assert positive.dtype == found.dtype == np.float64
    assert positive.tolist() == [(trained["w"].resolve(**NUMPY) > 0).sum()]
    assert found.tolist() == [0.0]


def test_it_must_fit_the_budget_too() -> None:
    rows = np.zeros((64, 4096), np.float32)
    w = fc.parameter(np.zeros(6, "f4"), name="w")
    heavy = (fc.source(rows).T @ fc.source(rows)).sum() * w.sum()
    trained = fc.train.fit(((fc.source(X) @ w) ** 2.0).mean(), fc.train.sgd(0.1), evaluate=heavy)
    with pytest.raises(PlanError, match="budget"):
        trained["w"].plan(memory="1MiB", device="numpy")


def test_the_plan_and_the_progress_tell_of_it() -> None:
    problem = Fitted(epochs=1)
    trained = problem.fit(evaluate={"right": problem.right})
    run = fc.run(trained["w"], **NUMPY)
    assert "train at fit: its evaluation runs" in str(run.plan)
    assert run.notes[0].startswith("loss ")
    assert ", right 0." in run.notes[0]


def test_a_loss_that_is_lost_is_told_with_its_first_step() -> None:
    w = fc.parameter(np.ones(6, "f4"), name="w")
    loss = ((fc.source(X) @ w) ** 2.0).mean()
    trained = fc.train.fit(loss, fc.train.sgd(1e30), batch=len(X) // 4, evaluate={"loss": loss})
    run = fc.run(trained.losses, **NUMPY)
    first = 1 + int(np.isfinite(run.value).argmin())
    assert 1 < first < 4
    assert f" records/s, not finite since step {first}, measured loss nan" in run.notes[0]


def test_an_error_in_an_evaluation_says_so() -> None:
    w, b = weights()

    def refusing(x: Any) -> Any:
        raise ValueError("this one")

    x = fc.host(refusing, fc.source(X), shape=(6,), dtype="float32", name="refusing")
    trained = fc.train.fit(
        loss(fc.source(X), fc.source(Y), w, b), fc.train.sgd(0.1), batch=10, evaluate=(x @ w).sum(), every=2
    )
    with pytest.raises(RunError, match="in the evaluation after step 2 of 5") as error:
        trained["w"].resolve(**NUMPY)
    assert error.value.element == "refusing"


class TestRefusals:
    def refused(self, match: str, **options: Any) -> None:
        with pytest.raises(SpecError, match=match) as error:
            Fitted().fit(**options)
        assert "test_evaluation.py" in str(error.value.site)

    def test_measures(self) -> None:
        w, b = weights()
        x = fc.source(X)
        self.refused("resident number", evaluate=3)
        self.refused("resident number", evaluate={})
        self.refused("resident number as 'a'", evaluate={"a": x @ w})
        self.refused("resident number as 'a'", evaluate={"a": 1.0})
        self.refused("names", evaluate={3: (w * w).sum()})
        self.refused("depend on a parameter", evaluate=x.sum())
        self.refused("depend on a parameter", evaluate=(x @ w).sum() + b.sum())

    def test_streams_that_are_read_once(self) -> None:
        w, b = weights()
        ticks = fc.iterate(iter(X), shape=(6,), dtype="float32")
        with pytest.raises(SpecError, match="read again"):
            fc.train.fit(loss(fc.source(X), fc.source(Y), w, b), fc.train.sgd(0.1), evaluate=(ticks @ w).sum())

    def test_criteria(self) -> None:
        self.refused("evaluate=", stop=fc.train.patience(2))
        self.refused("evaluate=", every=2)
        problem = Fitted()

        def refused(match: str, **options: Any) -> None:
            with pytest.raises(SpecError, match=match):
                problem.fit(**options)

        refused("at most the 30 steps", evaluate=problem.right, every=31)
        refused("every=", evaluate=problem.right, every=0)
        refused("truth value", evaluate=problem.right, stop=lambda measures: measures["measure"])
        refused("truth value", evaluate=problem.right, stop=lambda _: 1)
        refused("patience", evaluate=problem.right, stop=0.5)
        both = {"a": problem.right, "b": problem.mean}
        refused("to be one of a, b", evaluate=both, stop=fc.train.patience(2))
        refused("to be one of a, b", evaluate=both, stop=fc.train.patience(2, measure="c"))
        with pytest.raises(SpecError, match="measure="):
            fc.train.patience(2, measure=3)  # type: ignore[arg-type]
