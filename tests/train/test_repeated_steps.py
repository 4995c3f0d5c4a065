"""Steps on a device across a bus that are done again as they were recorded, to the bits of steps that are derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.repeats import RepeatedRuns
from flowcompute.engine.training.training_scan import TrainingScan
from flowcompute.errors import DeviceFullError, RunError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.memory.device_memory import DeviceMemory
from flowcompute.gpu.worker.launcher import LocalLauncher
from tests.gpu.shapes import gpu_shaped

pytestmark = pytest.mark.compiles

RNG = np.random.default_rng(11)
X = RNG.standard_normal((60, 6), dtype=np.float32)
Y = np.abs(X[:, :3]).argmax(1)
FIRST = {
    "a": RNG.standard_normal((6, 5), dtype=np.float32),
    "b": np.zeros(5, np.float32),
    "c": RNG.standard_normal((5, 3), dtype=np.float32),
}
GPU: dict[str, Any] = {"device": "gpu", "progress": False}


@pytest.fixture(autouse=True)
def _discrete() -> Iterator[None]:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        yield


def layers(x: np.ndarray = X, y: np.ndarray = Y) -> tuple[list[Any], Any]:
    a, b, c = held = [fc.parameter(value, name=name) for name, value in FIRST.items()]
    return held, fc.nn.cross_entropy(fc.nn.relu(fc.source(x) @ a + b) @ c, fc.source(y), reduction="mean")


def fitted(**options: Any) -> list[Any]:
    options = {"batch": 12, "epochs": 3, "clip_norm": 0.5, **options}
    trained = fc.train.fit(layers()[1], fc.train.adam(options.pop("rate", 0.05)), **options)
    return [*(trained[name] for name in FIRST), trained.losses]


def looked_up(places: np.ndarray) -> list[Any]:
    letters = fc.parameter(RNG.standard_normal((7, 4), dtype=np.float32) * 0 + 0.5, name="letters")
    more = fc.parameter(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), name="more")
    scores = fc.tanh(fc.take(letters, fc.source(places), axis=0)).sum(axis=1) @ more
    loss = fc.nn.cross_entropy(scores, fc.source(Y), reduction="mean")
    trained = fc.train.fit(loss, fc.train.adam(0.1), batch=6)
    return [trained["letters"], trained["more"], trained.losses]


@contextmanager
def counted() -> Iterator[list[int]]:
    """Note how many commands each repeated run has."""
    found: list[int] = []
    original = DeviceMemory.repeat

    def repeat(self: DeviceMemory, recording: Any, *rest: Any) -> Any:
        found.append(len(recording.commands))
        return original(self, recording, *rest)

    with mock.patch.object(DeviceMemory, "repeat", repeat):
        yield found


def derived() -> Any:
    """Let each step be derived anew."""
    return mock.patch.object(RepeatedRuns, "of", return_value=None)


def same(one: list[Any], other: list[Any]) -> None:
    for mine, wanted in zip(one, other, strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(wanted).tobytes()


PLACES = RNG.integers(0, 7, (60, 5))
JOBS: dict[str, tuple[Callable[[], list[Any]], int]] = {
    "plain": (fitted, 10),
    "shuffled": (lambda: fitted(shuffle=3), 10),
    "another rate each step": (lambda: fitted(rate=fc.train.cosine(0.05, steps=15)), 10),
    "scaled loss": (lambda: fitted(loss_scale="dynamic"), 10),
    "looked up": (lambda: looked_up(PLACES), 5),
}


@pytest.mark.parametrize("name", JOBS)
def test_bits_are_those_of_steps_that_are_derived(name: str) -> None:
    job, least = JOBS[name]
    with derived(), counted() as runs:
        wanted = fc.resolve(*job(), **GPU)
    assert runs == []
    with counted() as runs:
        same(fc.resolve(*job(), **GPU), wanted)
    assert len(runs) >= least
    assert len(set(runs)) == 1


def test_a_step_that_is_repeated_derives_no_launch() -> None:
    launched: list[int] = []
    original, take_step = LocalLauncher.launch, TrainingScan._step

    def launch(self: LocalLauncher, *of: Any, **options: Any) -> Any:
        launched[-1] += 1
        return original(self, *of, **options)

    def step(scan: TrainingScan, **options: bool) -> Any:
        launched.append(0)
        return take_step(scan, **options)

    launched.append(0)
    with mock.patch.object(LocalLauncher, "launch", launch), mock.patch.object(TrainingScan, "_step", step):
        fc.resolve(*fitted(), **GPU)
    assert all(launched[1:6])
    assert launched[7:] == [0] * 9


def test_steps_of_two_sizes_measures_and_checkpoints_between_them(tmp_path: Any) -> None:
    def job() -> list[Any]:
        held, loss = layers()
        scores = fc.nn.relu(fc.source(X[:8]) @ held[0] + held[1]) @ held[2]
        measure = fc.nn.cross_entropy(scores, fc.source(Y[:8]), reduction="mean")
        trained = fc.train.fit(loss, fc.train.adam(0.05), batch=7, epochs=4, evaluate=measure)
        return [trained["a"], trained["c"], trained.losses, trained.measures["measure"]]

    with derived():
        wanted = fc.resolve(*job(), **GPU)
    with counted() as runs:
        same(fc.resolve(*job(), **GPU), wanted)
    assert runs


def test_a_trainer_repeats_steps_and_saves_between_them(tmp_path: Any) -> None:
    def train() -> list[Any]:
        held, _ = layers()
        with fc.train.Trainer(held, fc.train.adam(0.05), device="gpu") as trainer:
            losses = []
            for number in range(16):
                x, y = X[number : number + 12], Y[number : number + 12]
                scores = fc.nn.relu(fc.source(x) @ held[0] + held[1]) @ held[2]
                losses.append(trainer.step(fc.nn.cross_entropy(scores, fc.source(y), reduction="mean")))
                if number == 8:
                    trainer.save(tmp_path / "saved")
                if number == 11:
                    trainer.load(tmp_path / "saved")
            return [losses, *trainer.values.values()]

    with derived():
        wanted = train()
    with counted() as runs:
        same(train(), wanted)
    assert len(runs) >= 5


def test_without_room_a_step_is_derived_anew() -> None:
    with derived():
        wanted = fc.resolve(*fitted(), **GPU)
    failed: list[int] = []
    original = DeviceMemory.repeat

    def repeat(self: DeviceMemory, recording: Any, *rest: Any) -> Any:
        found = original(self, recording, *rest)
        if not failed:
            failed.append(1)
            raise DeviceFullError("no room")
        return found

    with mock.patch.object(DeviceMemory, "repeat", repeat):
        same(fc.resolve(*fitted(), **GPU), wanted)
    assert failed


def test_a_key_out_of_range_is_refused_before_anything_is_launched() -> None:
    places = PLACES.copy()
    places[57] = 7
    with counted() as runs, pytest.raises(RunError, match="step 10 of 10") as caught:
        fc.resolve(*looked_up(places), **GPU)
    assert caught.value.records == (57, 58)
    assert len(runs) >= 3
