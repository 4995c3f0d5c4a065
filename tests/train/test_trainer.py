"""Training step by step from Python: the bits of `fit`, and graphs that are found again."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.training import DrawnRecords
from flowcompute.errors import SpecError
from flowcompute.gpu.memory.device_memory import HostMemory
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.worker.launcher import LocalLauncher
from tests.train.problems import FIRST, X, Y, loss, weights


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.compiles)])
def test_both_styles_give_the_same_bits(device: str) -> None:
    w, b = weights()
    adam = fc.train.adam(fc.train.cosine(0.05, steps=12, warmup=2))
    static = fc.train.fit(loss(fc.source(X), fc.source(Y), w, b, 0.25), adam, batch=20, epochs=4, clip_norm=0.5)
    after = fc.resolve(static["w"], static["b"], static.losses, device=device, progress=False)
    with fc.train.Trainer([w, b], adam, clip_norm=0.5, device=device) as trainer:
        losses = []
        for _ in range(4):
            for start in range(0, 50, 20):
                x, y = X[start : start + 20], Y[start : start + 20]
                losses.append(trainer.step(loss(fc.source(x), fc.source(y), w, b, 0.25)))
        assert trainer.compiled == 2
        assert trainer.steps == 12
    assert np.array_equal(losses, after[2])
    assert trainer.values["w"].tobytes() == after[0].tobytes()
    assert trainer.values["b"].tobytes() == after[1].tobytes()


def test_graphs_of_other_structure_are_compiled() -> None:
    w, b = weights()
    with fc.train.Trainer([w, b], fc.train.sgd(0.1), device="numpy") as trainer:
        x, y = fc.source(X), fc.source(Y)
        trainer.step(loss(x, y, w, b))
        trainer.step(loss(fc.source(X + 1), y, w, b))
        assert trainer.compiled == 1
        trainer.step(loss(x, y, w, b) * 2.0)
        trainer.step(loss(x, y, w, b) * 3.0)
        trainer.step(loss(fc.source(X[:20]), fc.source(Y[:20]), w, b))
        assert trainer.compiled == 4
        trainer.step(loss(x, y, w, b) * 2.0)
        assert trainer.compiled == 4


def test_a_parameter_that_a_step_does_not_use_is_refused() -> None:
    w, b = weights()
    with (
        fc.train.Trainer([w, b], fc.train.sgd(0.1), device="numpy") as trainer,
        pytest.raises(SpecError, match="depend"),
    ):
        trainer.step((fc.source(X) @ w).sum())


def test_a_step_that_fails_changes_nothing() -> None:
    w, b = weights()

    def failing(x: Any) -> Any:
        raise ValueError("no")

    with fc.train.Trainer([w, b], fc.train.sgd(0.1), device="numpy") as trainer:
        x, y = fc.source(X), fc.source(Y)
        first = trainer.step(loss(x, y, w, b))
        before = trainer.values["w"].tobytes()
        broken = fc.stop_gradient(fc.host(failing, x, shape=(6,), dtype="float32"))
        with pytest.raises(fc.RunError, match="no"):
            trainer.step(loss(broken, y, w, b))
        assert trainer.values["w"].tobytes() == before
        assert trainer.steps == 1
        assert trainer.step(loss(x, y, w, b)) < first


def test_a_step_counts_though_it_is_interrupted_at_its_end() -> None:
    w, b = weights()
    adam = fc.train.adam(0.05)

    def step(trainer: fc.train.Trainer) -> Any:
        return trainer.step(loss(fc.source(X), fc.source(Y), w, b, 0.25))

    with fc.train.Trainer([w, b], adam, device="numpy") as trainer:
        wanted = [step(trainer) for _ in range(3)]
    with fc.train.Trainer([w, b], adam, device="numpy") as trainer:
        assert step(trainer) == wanted[0]
        with mock.patch.object(DrawnRecords, "close", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            step(trainer)
        assert trainer.steps == 2
        assert step(trainer) == wanted[2]


def test_values_are_read_only_and_outlive_the_trainer() -> None:
    w, b = weights()
    trainer = fc.train.Trainer([w, b], fc.train.sgd(0.1), device="numpy")
    assert trainer.values["w"].tobytes() == FIRST.tobytes()
    trainer.step(loss(fc.source(X), fc.source(Y), w, b))
    trainer.close()
    trainer.close()
    with pytest.raises(ValueError, match="read-only"):
        trainer.values["w"][0] = 1
    with pytest.raises(SpecError, match="closed"):
        trainer.step(loss(fc.source(X), fc.source(Y), w, b))


def test_a_saved_trainer_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    w, b = weights()
    adam = fc.train.adam(0.05)
    losses = [loss(fc.source(X[i : i + 25]), fc.source(Y[i : i + 25]), w, b, 0.25) for i in (0, 25)]
    with fc.train.Trainer([w, b], adam, device="numpy") as whole:
        for _ in range(2):
            whole.step(losses[0])
            if whole.steps == 1:
                whole.save(tmp_path / "kept")
            whole.step(losses[1])
    trainer = fc.train.Trainer([w, b], adam, device="numpy")
    with trainer:
        trainer.load(tmp_path / "kept")
        assert trainer.steps == 1
        for place in (1, 0, 1):
            trainer.step(losses[place])
        assert trainer.values["w"].tobytes() == whole.values["w"].tobytes()
    assert fc.weights(tmp_path / "kept" / "trainer.safetensors")["w"].shape == (6, 3)
    with pytest.raises(fc.SourceError, match="another optimizer"):
        fc.train.Trainer([w, b], fc.train.sgd(0.1)).load(tmp_path / "kept")
    with pytest.raises(fc.SourceError):
        fc.train.Trainer([w, b], adam).load(tmp_path / "none")
    other = fc.parameter(1.0, name="optimizer.steps")
    with pytest.raises(SpecError, match="begin with"):
        fc.train.Trainer([other], adam).save(tmp_path)


def test_arguments() -> None:
    w, b = weights()
    for parameters in ([], w, [fc.source(X)], [w, w], [fc.parameter(1.0)]):
        with pytest.raises(SpecError, match="parameters="):
            fc.train.Trainer(parameters, fc.train.sgd(0.1))
    with pytest.raises(SpecError, match="optimizer="):
        fc.train.Trainer([w, b], None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="checkpoint"):
        fc.train.Trainer([w, b], fc.train.sgd(0.1), checkpoint="x")  # type: ignore[call-arg]
    other = fc.parameter(np.zeros(3, "f4"), name="other")
    with fc.train.Trainer([w, b], fc.train.sgd(0.1)) as trainer, pytest.raises(SpecError, match="'other'"):
        trainer.step(loss(fc.source(X), fc.source(Y), w, other))


@pytest.mark.compiles
def test_a_step_repeats_the_launches_of_the_step_before() -> None:
    w, b = weights()
    counted = {LocalLauncher: "launch", HostMemory: "finish", OpenCLRunner: "_argument"}

    def took_step() -> list[mock.Mock]:
        with ExitStack() as patches:
            watched = [
                patches.enter_context(mock.patch.object(owner, name, autospec=True, side_effect=getattr(owner, name)))
                for owner, name in counted.items()
            ]
            trainer.step(loss(fc.source(X), fc.source(Y), w, b))
        return watched

    with fc.train.Trainer([w, b], fc.train.adam(0.05), clip_norm=0.5, device="cpu") as trainer:
        first, _, all_arguments = took_step()
        took_step()
        launches, waits, arguments = took_step()
    # What depends on nothing that is given, as 1/n, is computed once.
    assert before_products(launches) < before_products(first)
    # Nothing is waited for by itself: kernels are at the end, before NumPy adds up the loss that they make.
    assert all(call.kwargs["deferred"] for call in launches.call_args_list)
    assert waits.call_count == 1
    # Numbers that stay are asked for by no launch.
    assert numbers(arguments) < numbers(all_arguments) / 3


def before_products(launched: mock.Mock) -> int:
    names = [call.args[1].function_name for call in launched.call_args_list]
    return names.index("fused_matmul")


def numbers(asked: mock.Mock) -> int:
    return sum(call.args[1].kind == "scalar" for call in asked.call_args_list)


@pytest.mark.compiles
def test_host_functions_of_whole_values_are_called_in_each_step() -> None:
    calls: list[int] = []

    def growing(value: np.ndarray) -> np.ndarray:
        calls.append(1)
        return value * np.float32(len(calls))

    w, _ = weights()
    scale = fc.host(growing, fc.constant(np.float32(1)))
    with fc.train.Trainer([w], fc.train.sgd(0.1), device="cpu") as trainer:
        losses = [trainer.step((fc.source(X) @ w).sum() * fc.constant(np.float32(0)) + scale) for _ in range(3)]
    assert losses == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.compiles)])
def test_values_that_depend_on_no_step_are_handed_on(device: str) -> None:
    w, b = weights()
    still = fc.sqrt(fc.constant(np.full(3, 4, "f4"))) * 2
    optimizer = fc.train.Optimizer(lambda p: (), lambda g, s, p, step: (still if p.spec.shape == (3,) else p - g, s))
    with fc.train.Trainer([w, b], optimizer, device=device) as trainer:
        for _ in range(3):
            trainer.step(loss(fc.source(X), fc.source(Y), w, b))
            assert trainer.values["b"].tolist() == [4, 4, 4]
