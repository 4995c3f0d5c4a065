"""Training as one job: against NumPy, under any budget, and with what is no problem to train."""

from __future__ import annotations

import os
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import FlowError, PlanError, SpecError
from tests.train.problems import FIRST, X, Y, by_hand, loss, weights

NUMPY: dict[str, Any] = {"device": "numpy", "progress": False}


def fitted(**options: Any) -> fc.train.Trained:
    w, b = weights()
    return fc.train.fit(loss(fc.source(X), fc.source(Y), w, b), fc.train.sgd(0.5), **options)


@pytest.mark.parametrize("batch", [1, 7, 25, 50, "auto", None])
def test_it_is_descent_over_the_records_in_their_order(batch: Any) -> None:
    trained = fitted(batch=batch, epochs=2)
    w, b, losses = fc.resolve(trained["w"], trained["b"], trained.losses, **NUMPY)
    expected = by_hand(np.tile(np.arange(50), (2, 1)), batch if isinstance(batch, int) else 50, 0.5)
    np.testing.assert_allclose(w, expected[0], atol=1e-5)
    np.testing.assert_allclose(b, expected[1], atol=1e-5)
    np.testing.assert_allclose(losses, expected[2], rtol=1e-5, atol=1e-6)
    assert losses.dtype == np.float32
    assert len(trained.losses) == len(losses)


@pytest.mark.compiles
def test_kernels_give_what_numpy_gives() -> None:
    trained = fitted(batch=16, epochs=2, clip_norm=0.3)
    roots = trained["w"], trained["b"], trained.losses
    for one, other in zip(fc.resolve(*roots, device="cpu", progress=False), fc.resolve(*roots, **NUMPY), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


@pytest.mark.compiles
def test_a_small_matrix_is_read_turned_by_what_updates_another() -> None:
    """Kernels of steps read through views of it."""
    w, v = (fc.parameter(np.random.default_rng(i).standard_normal((5, 5)).astype("f4"), name="wv"[i]) for i in (0, 1))
    x = fc.source(np.resize(X, (50, 5)))
    total = fc.mean(fc.square(fc.sum(x @ w, axis=1))) + fc.sum(w * fc.permute_dims(v, (1, 0)))
    trained = fc.train.fit(total, fc.train.sgd(0.25), batch=25)
    made, known = (fc.resolve(trained["w"], trained["v"], **{**NUMPY, "device": one}) for one in ("cpu", "numpy"))
    for one, other in zip(made, known, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_no_budget_and_no_neighbour_changes_a_bit() -> None:
    trained = fitted(batch=None, epochs=3)
    first = fc.resolve(trained["w"], trained.losses, **NUMPY)
    small = fc.resolve(trained["w"], trained.losses, strategy=fc.Strategy(batch_bytes=64), memory="400KiB", **NUMPY)
    beside = fc.resolve(trained.losses.mean(), trained["w"], fc.source(X).sum(axis=0), trained.losses, **NUMPY)
    for w, losses in (small, (beside[1], beside[3])):
        assert w.tobytes() == first[0].tobytes()
        assert losses.tobytes() == first[1].tobytes()
    np.testing.assert_allclose(beside[0], first[1].mean(), rtol=1e-6)


def test_a_step_that_does_not_fit_is_refused_before_it_runs() -> None:
    with pytest.raises(PlanError, match="budget"):
        fitted(batch=None)["w"].plan(memory=2000, device="numpy")


def test_results_of_one_training_take_one_training() -> None:
    trained = fitted(batch=10)
    run = fc.run(trained["w"], trained["b"], trained.losses, **NUMPY)
    assert len(run.plan.passes) == 1
    assert [len(plans) for plans in run.plan.inner.values()] == [1]
    assert "train at fit: a step of 10 records" in str(run.plan)
    assert "loss" in " ".join(run.notes)


def test_parameters_stay_what_they_are() -> None:
    w, b = weights()
    trained = fc.train.fit(loss(fc.source(X), fc.source(Y), w, b), fc.train.sgd(0.5))
    assert not np.array_equal(trained[w].resolve(**NUMPY), FIRST)
    assert w.value.tobytes() == FIRST.tobytes()
    assert trained[w].resolve(**NUMPY).tobytes() == trained["w"].resolve(**NUMPY).tobytes()
    assert list(trained) == ["w", "b"] or list(trained) == ["b", "w"]


def test_equal_parameters_are_two() -> None:
    one, other = (fc.parameter(np.zeros(6, "f4"), name=name) for name in ("one", "other"))
    x = fc.source(X)
    error = (x * x) @ one + x @ other - fc.source(Y)
    trained = fc.train.fit((error * error).mean(), fc.train.sgd(0.01))
    assert not np.array_equal(*fc.resolve(trained["one"], trained["other"], **NUMPY))


def test_what_is_trained_is_applied_in_the_same_job() -> None:
    w, b = weights()
    x, y = fc.source(X), fc.source(Y)
    trained = fc.train.fit(loss(x, y, w, b), fc.train.sgd(0.5), batch=10)
    right = trained.apply((fc.argmax(x @ w + b, axis=1) == y).astype("float32").mean())
    found, whole, bias = fc.resolve(right, trained["w"], trained["b"], **NUMPY)
    np.testing.assert_allclose(found, ((X @ whole + bias).argmax(1) == Y).mean(), rtol=1e-6)
    with pytest.raises(SpecError, match="none of its parameters"):
        trained.apply(x.sum())


def test_gradients_that_are_too_long_are_scaled() -> None:
    w, b = weights()
    x, y = fc.source(X), fc.source(Y)
    gradients = fc.resolve(*fc.grad(loss(x, y, w, b), [w, b]), **NUMPY)
    length = np.sqrt(sum((one.astype("f8") ** 2).sum() for one in gradients))
    for most in (length / 3, length * 3):
        trained = fc.train.fit(loss(x, y, w, b), fc.train.sgd(1.0), batch=None, clip_norm=float(most))
        moved = FIRST - trained["w"].resolve(**NUMPY)
        np.testing.assert_allclose(moved, gradients[0] * min(1, most / length), rtol=1e-4, atol=1e-6)


def test_dropout_draws_other_numbers_in_each_step() -> None:
    w = fc.parameter(np.ones((), "f4"), name="w")
    steps = np.tile(np.random.default_rng(0).random(1000, "f4"), 4)
    trained = fc.train.fit((fc.nn.dropout(fc.source(steps), 0.5, seed=1) * w).sum(), fc.train.sgd(0.0), batch=1000)
    losses = trained.losses.resolve(**NUMPY)
    assert len(set(losses.tolist())) == 4
    np.testing.assert_allclose(losses, 500, atol=100)


def test_constants_cut_along_the_stream_are_records() -> None:
    w, b = weights()
    of_rows = fc.train.fit(loss(fc.source(X) * X[:, :1], fc.source(Y), w, b), fc.train.sgd(0.5), batch=16)
    of_sources = fc.train.fit(
        loss(fc.source(X) * fc.source(X[:, :1].copy()), fc.source(Y), w, b), fc.train.sgd(0.5), batch=16
    )
    one, other = fc.resolve(of_rows["w"], of_sources["w"], **NUMPY)
    assert one.tobytes() == other.tobytes()


def test_a_statistic_of_records_is_that_of_the_step() -> None:
    w, b = weights()
    x = fc.source(X)
    trained = fc.train.fit(loss(x - x.mean(axis=0), fc.source(Y), w, b), fc.train.sgd(0.0), batch=10)
    parts = [X[i : i + 10] for i in range(0, 50, 10)]
    losses = trained.losses.resolve(**NUMPY)
    whole = [
        loss(fc.source(part - part.mean(0)), fc.source(Y[10 * i : 10 * i + 10]), w, b) for i, part in enumerate(parts)
    ]
    np.testing.assert_allclose(losses, fc.resolve(*whole, **NUMPY), rtol=1e-5)


def test_files_are_read_in_bounded_memory(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((40_000, 8), dtype=np.float32)
    np.save(tmp_path / "x.npy", rows)
    os.utime(tmp_path / "x.npy", (1, 1))
    w = fc.parameter(np.zeros(8, "f4"), name="w")
    error = fc.open(tmp_path / "x.npy") @ w - 1.0
    trained = fc.train.fit((error * error).mean(), fc.train.sgd(0.1), batch=None, epochs=2)
    # What the first run imports, and compiles to bytecode, is not what files take.
    trained["w"].resolve(memory="400KiB", **NUMPY)
    tracemalloc.start()
    try:
        made = trained["w"].resolve(memory="400KiB", **NUMPY)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    expected = np.zeros(8)
    for _ in range(2):
        expected = expected - 0.1 * 2 * rows.astype("f8").T @ (rows.astype("f8") @ expected - 1) / len(rows)
    np.testing.assert_allclose(made, expected, atol=1e-6)


class TestRefusals:
    def refused(self, match: str, *operands: Any, **options: Any) -> None:
        with pytest.raises(FlowError, match=match) as error:
            fc.train.fit(*(operands or (fitted_loss(), fc.train.sgd(0.1))), **options)
        assert "test_fit.py" in str(error.value.site)

    def test_losses(self) -> None:
        w, b = weights()
        x = fc.source(X)
        self.refused("one resident number", x @ w, fc.train.sgd(0.1))
        self.refused("fc.parameter", x.sum(), fc.train.sgd(0.1))
        self.refused("fc.parameter", (w * w).sum(), fc.train.sgd(0.1))
        self.refused("names", (x @ fc.parameter(np.ones(6, "f4"))).sum(), fc.train.sgd(0.1))
        self.refused("one known length", (x @ w).sum() + fc.source(Y[:5]).sum() * b.sum(), fc.train.sgd(0.1))
        ticks = fc.iterate(iter(X), shape=(6,), dtype="float32")
        self.refused("read again", (ticks @ w).sum(), fc.train.sgd(0.1))
        self.refused("gradient", (fc.cumulative_sum(x @ w, axis=0)).sum(), fc.train.sgd(0.1))

    def test_arguments(self) -> None:
        self.refused("optimizer", fitted_loss(), 0.1)
        self.refused("batch", batch=0)
        self.refused("batch", batch="all")
        self.refused("at most 50, the records of each stream", batch=51)
        self.refused("batch=None takes all", batch=51)
        self.refused("epochs", epochs=0)
        self.refused("shuffle", shuffle="yes")
        self.refused(r"from 0 to 2\*\*64 - 1", shuffle=2**64)
        self.refused(r"from 0 to 2\*\*64 - 1", shuffle=-1)
        self.refused("clip_norm", clip_norm=0)

    def test_no_records(self) -> None:
        w, b = weights()
        none = fc.source(X[:0], name="nothing")
        self.refused("at least one record", loss(none, fc.source(Y[:0]), w, b), fc.train.sgd(0.1))
        with pytest.raises(SpecError, match="nothing: cannot train this"), fc.train.Trainer([w, b], adam()) as trainer:
            trainer.step(loss(none, fc.source(Y[:0]), w, b))

    def test_functions_that_raise(self) -> None:
        """They are called when the training is composed: the error names the optimizer and the user's line."""

        def raising(*_: Any) -> Any:
            raise KeyError("gone")

        nothing = fc.train.Optimizer(lambda _: (), raising)
        self.refused("adam: cannot take rate=: the function raised KeyError", fitted_loss(), fc.train.adam(raising))
        self.refused("Optimizer: cannot take update=: the function raised", fitted_loss(), nothing)
        self.refused(r"over elements \(gradient, state, parameter, number of the update\)", fitted_loss(), nothing)
        self.refused("cannot take init=", fitted_loss(), fc.train.Optimizer(raising, raising))
        measured = fitted_loss()
        self.refused("cannot take stop=", measured, fc.train.sgd(0.1), evaluate=measured, stop=raising)
        self.refused(r"fc\.where for if", fitted_loss(), fc.train.adam(lambda step: 0.1 if step < 9 else 0.01))
        with pytest.raises(SpecError) as error:
            fc.train.fit(fitted_loss(), fc.train.adam(raising))
        assert isinstance(error.value.__cause__, KeyError)

    def test_seeds_are_those_of_random_numbers(self) -> None:
        fitted(batch=10, shuffle=2**63)["w"].resolve(**NUMPY)

    def test_what_is_not_trained(self) -> None:
        with pytest.raises(SpecError, match="not trained"):
            _ = fitted()["other"]


def adam() -> Any:
    return fc.train.adam()


def fitted_loss() -> Any:
    return loss(fc.source(X), fc.source(Y), *weights())


def test_an_error_in_a_step_names_the_element_the_line_and_the_step() -> None:
    w, b = weights()

    def refusing(x: Any) -> Any:
        if (x == X[33]).all(axis=1).any():
            raise ValueError("this one")
        return x

    x = fc.stop_gradient(fc.host(refusing, fc.source(X), shape=(6,), dtype="float32", name="refusing"))
    trained = fc.train.fit(loss(x, fc.source(Y), w, b), fc.train.sgd(0.1), batch=10)
    with pytest.raises(fc.RunError, match="in step 4 of 5") as error:
        trained["w"].resolve(**NUMPY)
    assert (error.value.element, error.value.records) == ("refusing", (30, 40))
    assert "test_fit.py" in str(error.value.site)


def test_parts_of_sources_are_records(tmp_path: Path) -> None:
    flat = np.arange(240, dtype=np.float32) / 240
    np.save(tmp_path / "flat.npy", flat)
    runs = fc.cut(fc.open(tmp_path / "flat.npy"), 6)

    def trained(x: Any, y: Any) -> tuple[Any, ...]:
        made = fc.train.fit(loss(x, y, *weights()), fc.train.sgd(0.5), batch=7, epochs=2, shuffle=4)
        return made["w"], made.losses

    parts = trained(runs[10:30:2], fc.source(Y)[:10])
    arrays = trained(fc.source(flat.reshape(40, 6)[10:30:2].copy()), fc.source(Y[:10].copy()))
    expected = fc.resolve(*arrays, **NUMPY)
    for one, other in zip(fc.resolve(*parts, **NUMPY), expected, strict=True):
        assert one.tobytes() == other.tobytes()
    with pytest.raises(fc.RunError, match="frozen"):
        fc.run(*parts, checkpoint=tmp_path / "kept", on_batch=lambda run: run.freeze(), **NUMPY)
    for one, other in zip(fc.thaw(tmp_path / "kept").resolve(**NUMPY), expected, strict=True):
        assert one.tobytes() == other.tobytes()


def test_epochs_have_the_orders_of_shuffle() -> None:
    orders = fc.resolve(*(fc.shuffle(fc.source(np.arange(50)), seed=9, epoch=epoch) for epoch in range(3)), **NUMPY)
    trained = fitted(batch=16, epochs=3, shuffle=9)
    w, losses = fc.resolve(trained["w"], trained.losses, **NUMPY)
    expected = by_hand(np.stack(orders), 16, 0.5)
    np.testing.assert_allclose(w, expected[0], atol=1e-5)
    np.testing.assert_allclose(losses, expected[2], rtol=1e-5, atol=1e-6)


def test_all_parameters_are_written_by_name(tmp_path: Path) -> None:
    trained = fitted(batch=16)
    fc.run(trained >> fc.save(tmp_path / "w.safetensors"), **NUMPY)
    held = fc.weights(tmp_path / "w.safetensors")
    assert set(held) == {"w", "b"}
    assert np.array_equal(held["w"].resolve(**NUMPY), trained["w"].resolve(**NUMPY))


def test_streams_that_a_step_would_keep_are_refused() -> None:
    w, b = weights()
    kept = fc.spool(fc.source(X) * 2.0)
    trained = fc.train.fit(loss(kept - kept.mean(axis=0), fc.source(Y), w, b), fc.train.sgd(0.1))
    with pytest.raises(PlanError, match="between the passes of a step"):
        trained["w"].plan(device="numpy")


def test_steps_of_two_sizes_share_the_budget() -> None:
    """Of a whole step and a short one only one holds memory at a time."""
    rows = np.random.default_rng(1).standard_normal((700, 256), dtype=np.float32)
    w = fc.parameter(np.zeros((256, 256), "f4"), name="w")

    def peak_bytes(records: int) -> int:
        error = fc.tanh(fc.source(rows[:records]) @ w)
        trained = fc.train.fit((error * error).mean(), fc.train.sgd(0.1), batch=400)
        tracemalloc.start()
        try:
            trained["w"].resolve(memory="16MiB", **NUMPY)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak_bytes(400)
    assert peak_bytes(700) < peak_bytes(400) + (1 << 18)


def test_the_budget_that_a_refusal_names_is_enough() -> None:
    def plan(memory: int) -> Any:
        w, b = weights()
        by_row = fc.train.fit(loss(fc.source(X), fc.source(Y), w, b), fc.train.adam(0.1), batch=7)
        return fc.plan(by_row["w"], memory=memory, device="numpy")

    with pytest.raises(fc.PlanError) as refused:
        plan(5000)
    assert "memory budget of 5000 bytes" in str(refused.value)
    assert "a step of a training may take 75% of it" in str(refused.value)
    named = re.search(r"at least (\d+) bytes", str(refused.value))
    assert named is not None
    assert plan(int(named[1])).memory.host_bytes <= int(named[1])
    with pytest.raises(fc.PlanError):
        plan(int(named[1]) - 1)


def test_several_trainings_share_the_budget() -> None:
    def made(count: int) -> list[Any]:
        trained = []
        for rate in range(1, count + 1):
            x, w = fc.source(np.zeros((100_000, 4), "f4")), fc.parameter(np.ones((4, 8), "f4"), name="w")
            trained.append(fc.train.fit((fc.tanh(x @ w) ** 2).mean(), fc.train.sgd(rate / 8), batch=None)["w"])
        return trained

    for count in (1, 2, 3):
        plan = fc.plan(*made(count), memory="8MiB", device="numpy")
        assert plan.memory.host_bytes <= 8 << 20


def test_a_parameter_larger_than_the_budget_names_the_budget() -> None:
    x, w = fc.source(np.zeros((5, 1000), "f4")), fc.parameter(np.zeros((1000, 100), "f4"), name="w")
    trained = fc.train.fit((x @ w).mean(), fc.train.sgd(0.1), batch=5)
    # Values that steps hand on cannot go to a file: the advice for results would be of no use.
    with pytest.raises(fc.PlanError, match="memory of at least") as refused:
        fc.plan(trained.losses, memory="100KiB", device="numpy")
    assert "write it to a file" not in str(refused.value)


def test_a_loss_of_resident_arrays_says_how_to_make_records_of_them() -> None:
    w, b = weights()
    resident = loss(fc.constant(X), fc.constant(Y), w, b)
    with pytest.raises(SpecError, match=r"without records: an array is resident before fc.source\(array\)"):
        fc.train.fit(resident, fc.train.sgd(0.1))
    still = fc.nn.cross_entropy(fc.source(X) @ fc.constant(FIRST), fc.source(Y), reduction="mean")
    with pytest.raises(SpecError, match=r"float32\(\) without parameters"):
        fc.train.fit(still, fc.train.sgd(0.1))


@pytest.mark.parametrize("batch", [None, 1_000])
def test_a_step_is_what_the_gradient_says(batch: int | None) -> None:
    """Users check their gradients so: the sums of a training have the order of those of `fc.grad`."""
    rng = np.random.default_rng(4)
    x, first, last = (rng.standard_normal(shape, dtype=np.float32) for shape in ((1_000, 20), (20, 32), (32, 3)))
    a, b, y = fc.parameter(first, name="a"), fc.parameter(last, name="b"), np.abs(x[:, :3]).argmax(1)
    loss = fc.nn.cross_entropy(fc.nn.relu(fc.source(x) @ a) @ b, fc.source(y), reduction="mean")
    trained = fc.train.fit(loss, fc.train.sgd(0.5), batch=batch, epochs=1)
    made, slope = (fc.resolve(one, device="cpu", progress=False) for one in (trained["a"], fc.grad(loss, a)))
    assert np.asarray(made).tobytes() == (first - np.float32(0.5) * np.asarray(slope)).tobytes()
