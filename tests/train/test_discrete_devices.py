"""Training on a device across a bus: what steps hand on stays there, to the bits of what the host would carry."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.batch_slice import BatchSlice
from flowcompute.engine.training.inner_job import InnerJob
from flowcompute.engine.training.training_scan import TrainingScan
from flowcompute.errors import DeviceFullError, DeviceWarning, RunError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.memory.device_buffers import DeviceArena
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.runtime.stages import group_size
from flowcompute.runtime.stages.computing import ComputeTask
from flowcompute.schedule.memory import StayingValues
from flowcompute.schedule.steps import RegionStep
from flowcompute.train import trainer as trainer_module
from tests.gpu.shapes import gpu_shaped

pytestmark = pytest.mark.compiles

RNG = np.random.default_rng(5)
X = RNG.standard_normal((36, 6), dtype=np.float32)
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


def problem(x: np.ndarray = X, y: np.ndarray = Y) -> tuple[list[Any], Any]:
    """Parameters of two layers, and their loss. The way back reads the second matrix transposed."""
    a, b, c = held = [fc.parameter(value, name=name) for name, value in FIRST.items()]
    return held, fc.nn.cross_entropy(fc.nn.relu(fc.source(x) @ a + b) @ c, fc.source(y), reduction="mean")


def fitted(**options: Any) -> tuple[fc.train.Trained, list[Any]]:
    options = {"batch": 12, "epochs": 3, "clip_norm": 0.5, **options}
    trained = fc.train.fit(problem()[1], fc.train.adam(0.05), **options)
    return trained, [*(trained[name] for name in FIRST), trained.losses]


def through_the_host() -> Any:
    """Let nothing stay on the device: the host carries all values, as it does where kernels work in its memory."""
    nothing = lambda plan, pairs: StayingValues({}, *((frozenset(),) * len(plan.passes) for _ in range(2)))  # noqa: E731
    return mock.patch.object(StayingValues, "of", nothing)


@contextmanager
def watched_transfers(note: Callable[[str, np.ndarray], None]) -> Iterator[None]:
    """Note direction and array of all that crosses the bus."""
    up, down = Transfers.upload, Transfers.download

    def upload(self: Transfers, array: np.ndarray, *rest: Any, **more: Any) -> Any:
        note("up", array)
        return up(self, array, *rest, **more)

    def download(self: Transfers, buffer: Any, array: np.ndarray, *rest: Any) -> None:
        note("down", array)
        down(self, buffer, array, *rest)

    with mock.patch.object(Transfers, "upload", upload), mock.patch.object(Transfers, "download", download):
        yield


@contextmanager
def counted_transfers() -> Iterator[list[tuple[str, tuple[int, ...]]]]:
    """Note direction and shape of each array that crosses the bus."""
    crossed: list[tuple[str, tuple[int, ...]]] = []
    with watched_transfers(lambda way, array: crossed.append((way, array.shape))):
        yield crossed


class Steps:
    """A trainer of two layers, and a step of so many records, of which `bytes` cross the bus."""

    def __init__(self, trainer: Any, held: list[Any]) -> None:
        self.trainer, self.held, self.bytes = trainer, held, 0

    def take(self, records: int, first: int = 0) -> np.float32:
        x, y = X[first : first + records], Y[first : first + records]
        scores = fc.nn.relu(fc.source(x) @ self.held[0] + self.held[1]) @ self.held[2]
        crossed: list[int] = []
        with watched_transfers(lambda _, array: crossed.append(array.nbytes)):
            loss: np.float32 = self.trainer.step(fc.nn.cross_entropy(scores, fc.source(y), reduction="mean"))
        self.bytes = sum(crossed)
        return loss

    def of_records(self, records: int) -> int:
        """Bytes of records, of their labels and losses, and of the number of the step."""
        return records * (6 * 4 + 8 + 4) + 8


@contextmanager
def steps(**options: Any) -> Iterator[Steps]:
    held, _ = problem()
    with fc.train.Trainer(held, fc.train.adam(0.05), device="gpu", **options) as trainer:
        yield Steps(trainer, held)


def failing() -> Any:
    """Let steps fail when all of them is computed."""
    original = InnerJob.run

    def run(self: InnerJob, *of: Any, **options: Any) -> Any:
        original(self, *of, **options)
        raise RunError("no")

    return mock.patch.object(InnerJob, "run", run)


def same(one: list[Any], other: list[Any]) -> None:
    for mine, wanted in zip(one, other, strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(wanted).tobytes()


@pytest.mark.parametrize("options", [{}, {"loss_scale": "dynamic", "batch": 36}], ids=["plain", "scaled"])
def test_no_parameter_and_no_moment_crosses_the_bus(options: dict[str, Any]) -> None:
    with through_the_host():
        wanted = fc.resolve(*fitted(**options)[1], **GPU)
    steps: list[int] = []
    original = TrainingScan._step

    def step(scan: TrainingScan, **options: bool) -> Any:
        steps.append(len(crossed))
        return original(scan, **options)

    with counted_transfers() as crossed, mock.patch.object(TrainingScan, "_step", step):
        got = fc.resolve(*fitted(**options)[1], **GPU)
    same(got, wanted)
    # From the second step on no array of a parameter's shape crosses. No activation of a mini-batch leaves the device.
    shapes = [value.shape for value in FIRST.values()]
    batch = options.get("batch", 12)
    assert len(steps) == 3 * 36 // batch
    for first, last in zip(steps[1:], steps[2:], strict=False):
        again = [one for one in crossed[first:last] if one[1] in (*shapes, *(shape[::-1] for shape in shapes))]
        assert again == []
        assert not {("down", (batch, 5)), ("down", (batch, 3))}.intersection(crossed[first:last])


def test_a_view_without_strides_is_stored_by_a_kernel() -> None:
    first = RNG.standard_normal((6, 4), dtype=np.float32), RNG.standard_normal((4, 3), dtype=np.float32)

    def job() -> list[Any]:
        a, c = (fc.parameter(value, name=name) for value, name in zip(first, "ac", strict=True))
        turned = fc.permute_dims(fc.reshape(fc.nn.relu(fc.source(X) @ a), (-1, 2, 2)), (0, 2, 1))
        loss = fc.nn.cross_entropy(fc.reshape(turned, (-1, 4)) @ c, fc.source(Y), reduction="mean")
        trained = fc.train.fit(loss, fc.train.adam(0.05), batch=12, epochs=1)
        return [trained["a"], trained["c"], trained.losses]

    with counted_transfers() as crossed:
        got = fc.resolve(*job(), **GPU)
    # Records, the loss of each of them, and what is trained.
    assert not {(12, 4), (12, 2, 2), (12, 3)}.intersection(shape for _, shape in crossed)
    for mine, wanted in zip(got, fc.resolve(*job(), device="numpy", progress=False), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-6)


def test_gradients_of_looked_up_rows_stay() -> None:
    table, places = RNG.standard_normal((7, 4), dtype=np.float32), RNG.integers(0, 7, (36, 5))

    def job() -> list[Any]:
        letters = fc.parameter(table, name="letters")
        scores = fc.tanh(fc.take(letters, fc.source(places), axis=0)).sum(axis=1)[:, :3]
        loss = fc.nn.cross_entropy(scores, fc.source(Y), reduction="mean")
        trained = fc.train.fit(loss, fc.train.sgd(0.5), batch=12, epochs=1)
        return [trained["letters"], trained.losses]

    with through_the_host():
        wanted = fc.resolve(*job(), **GPU)
    with counted_transfers() as crossed:
        same(fc.resolve(*job(), **GPU), wanted)
    # The first values, and those that are trained.
    assert [one for one in crossed if one[1] == (7, 4)] == [("up", (7, 4)), ("down", (7, 4))]
    assert not {(12, 5, 4), (12, 4)}.intersection(shape for _, shape in crossed)


def test_steps_of_two_sizes_and_measures_between_them() -> None:
    made = []
    for how in (through_the_host, nullcontext):
        held, loss = problem()
        scores = fc.nn.relu(fc.source(X[:8]) @ held[0] + held[1]) @ held[2]
        measure = fc.nn.cross_entropy(scores, fc.source(Y[:8]), reduction="mean")
        stop = fc.train.patience(2, least=1.0)
        trained = fc.train.fit(loss, fc.train.adam(0.05), batch=16, epochs=4, evaluate=measure, stop=stop)
        with how():
            made.append(fc.resolve(trained["a"], trained["c"], trained.losses, trained.measures["measure"], **GPU))
    same(made[1], made[0])
    assert len(made[0][3]) == 3


def test_a_checkpoint_has_what_is_on_the_device(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)

    def job() -> list[Any]:
        a, b, c = [fc.parameter(value, name=name) for name, value in FIRST.items()]
        scores = fc.nn.relu(fc.open(tmp_path / "x.npy") @ a + b) @ c
        loss = fc.nn.cross_entropy(scores, fc.open(tmp_path / "y.npy"), reduction="mean")
        trained = fc.train.fit(loss, fc.train.adam(0.05), batch=12, epochs=3)
        return [trained["a"], trained["c"], trained.losses]

    def freeze(run: fc.Run) -> None:
        if run.progress.items >= 4:
            run.freeze()

    wanted = fc.resolve(*job(), **GPU)
    with pytest.raises(RunError, match="was frozen"):
        fc.run(*job(), checkpoint=tmp_path / "kept", on_batch=freeze, **GPU)
    same(list(fc.run(*job(), checkpoint=tmp_path / "kept", **GPU).values), wanted)


def test_a_step_is_taken_back_where_a_later_kernel_has_no_room() -> None:
    trained, roots = fitted()
    wanted = fc.resolve(*roots, fc.exp(trained.losses), **GPU)
    failed: list[int] = []
    original = OpenCLRunner.run

    def run(self: OpenCLRunner, step: RegionStep, taken: BatchSlice, outputs: Any) -> None:
        if "exp" in step.name and taken.start not in failed:
            failed.append(taken.start)
            raise DeviceFullError("no room", element=step.name)
        original(self, step, taken, outputs)

    trained, roots = fitted()
    with mock.patch.object(OpenCLRunner, "run", run), pytest.warns(DeviceWarning):
        got = fc.resolve(*roots, fc.exp(trained.losses), **GPU)
    same(got, wanted)
    assert len(failed) == 9


@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.5, "loss_scale": "dynamic"}], ids=["plain", "scaled"])
def test_steps_of_a_trainer_move_records_and_losses_alone(options: dict[str, Any]) -> None:
    """Also those of another graph, which takes what that of the step before has left on the device."""
    sizes = (12, 12, 9, 9, 12, 9, 12, 12, 12)
    with steps(**options) as some:
        losses = []
        for number, records in enumerate(sizes):
            losses.append(some.take(records, number))
            if number > 2:
                assert some.bytes == some.of_records(records)
        with counted_transfers() as crossed:
            values = {**some.trainer.values, **some.trainer.values}
        # Asked for twice, brought once.
        assert crossed == [("down", value.shape) for value in FIRST.values()]
        some.take(12)
        assert some.bytes == some.of_records(12)
        assert some.trainer.compiled == 2
    with through_the_host(), steps(**options) as others:
        same([losses, *values.values()], [[others.take(records, i) for i, records in enumerate(sizes)],
                                          *others.trainer.values.values()])  # fmt: skip


@pytest.mark.parametrize("of", [12, 9], ids=["the graph", "another graph"])
@pytest.mark.parametrize("loaded", [True, False])
def test_a_step_of_a_trainer_that_fails_leaves_the_device_as_it_was(of: int, loaded: bool, tmp_path: Path) -> None:
    made = []
    for fails in (False, True):
        with steps() as some:
            losses = [some.take(12)]
            some.trainer.save(tmp_path)
            losses.append(some.take(12))
            if fails:
                with failing(), pytest.raises(RunError, match="no"):
                    some.take(of)
            assert some.trainer.steps == 2
            if loaded:
                some.trainer.load(tmp_path)
            losses += [some.take(records) for records in (9, 12, 12)]
            made.append([losses, *some.trainer.values.values()])
    same(*made)


@pytest.mark.parametrize("closed", [True, False])
def test_a_trainer_that_is_closed_or_dropped_gives_its_memory_back(closed: bool) -> None:
    arenas: list[weakref.ref[DeviceArena]] = []
    original = DeviceArena.__init__

    def made(self: DeviceArena, *of: Any) -> None:
        original(self, *of)
        arenas.append(weakref.ref(self))

    def allocated() -> int:
        return sum(0 if (one := arena()) is None else one.allocated_bytes for arena in arenas)

    with mock.patch.object(DeviceArena, "__init__", made):
        held, _ = problem()
        trainer = fc.train.Trainer(held, fc.train.adam(0.05), device="gpu")
        Steps(trainer, held).take(12)
    assert allocated() > 0
    if closed:
        trainer.close()
    else:
        del trainer
        gc.collect()
    assert allocated() == 0


def test_steps_of_several_passes_move_records_and_losses_alone() -> None:
    """A normed layer: what a pass makes of parameters and records stays there for the passes behind it."""

    def train(passes: int) -> list[Any]:
        held, _ = problem()
        with fc.train.Trainer(held, fc.train.adam(0.05), device="gpu", clip_norm=0.5) as trainer:
            losses = []
            for first in range(5):
                crossed: list[int] = []
                x, y = X[first : first + 12], Y[first : first + 12]
                hidden = fc.nn.relu(fc.source(x) @ held[0] + held[1])
                scores = (hidden - hidden.mean(axis=0)) @ held[2]
                with watched_transfers(lambda _, array, crossed=crossed: crossed.append(array.nbytes)):
                    losses.append(trainer.step(fc.nn.cross_entropy(scores, fc.source(y), reduction="mean")))
                if passes and first > 1:
                    assert sum(crossed) == passes * x.nbytes + y.nbytes + 12 * 4 + 8
            return [losses, *trainer.values.values()]

    with through_the_host():
        wanted = train(0)
    same(train(3), wanted)


def test_graphs_of_a_trainer_take_over_from_each_other(tmp_path: Path) -> None:
    def train(most: int, saved: Path) -> list[Any]:
        held, _ = problem()
        with (
            mock.patch.object(trainer_module, "MOST_PLANS", most),
            fc.train.Trainer(held, fc.train.adam(0.05), device="gpu") as trainer,
        ):
            losses = []
            for number, records in enumerate((12, 12, 9, 12, 9, 9, 12, 12)):
                x, y = X[number : number + records], Y[number : number + records]
                scores = fc.nn.relu(fc.source(x) @ held[0] + held[1]) @ held[2]
                losses.append(trainer.step(fc.nn.cross_entropy(scores, fc.source(y), reduction="mean")))
                if number == 3:
                    trainer.save(saved)
                if number == 6:
                    # What was saved three steps before is put in the place of what the device has.
                    trainer.load(saved)
        return [losses, trainer.steps, *trainer.values.values()]

    with through_the_host():
        wanted = train(16, tmp_path / "host")
    assert wanted[1] == 5
    for most in (16, 1):
        same(train(most, tmp_path / f"device{most}"), wanted)


def test_a_step_after_a_load_finds_its_buffers(tmp_path: Path) -> None:
    def train(saved: Path) -> list[Any]:
        held, loss = problem()
        made: list[Any] = []
        with fc.train.Trainer(held, fc.train.adam(0.05), device="gpu") as trainer:
            # Results lie in one of two buffers, alternately: twice in the same one after a load, then in the other.
            for steps in (1, 2, 1, 1, 2, 2, 1):
                made += [trainer.step(loss) for _ in range(steps)]
                trainer.save(saved)
                trainer.load(saved)
            return [*made, *trainer.values.values()]

    with through_the_host():
        wanted = train(tmp_path / "host")
    same(train(tmp_path / "device"), wanted)


def test_values_stay_where_a_step_reads_its_records_several_times() -> None:
    def job() -> list[Any]:
        (a, b, _), _ = problem()
        scores = fc.source(X) @ a + b
        scores = scores - scores.mean(axis=0)
        loss = fc.nn.cross_entropy(scores, fc.source(Y), reduction="mean")
        trained = fc.train.fit(loss, fc.train.sgd(0.5, momentum=0.9), batch=36, epochs=3)
        return [trained["a"], trained["b"], trained.losses]

    with through_the_host():
        wanted = fc.resolve(*job(), **GPU)
    found: list[StayingValues] = []
    original = StayingValues.of

    def of(*given: Any) -> StayingValues:
        found.append(original(*given))
        return found[-1]

    with mock.patch.object(StayingValues, "of", of):
        same(fc.resolve(*job(), **GPU), wanted)
    assert [len(one.made) > 1 for one in found] == [True]
    # All parameters and what momentum has made of their gradients.
    assert len(found[0].handed_on) == 4


def test_steps_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outer run moves nothing across the bus, so its batches need no tasks of their own for that."""
    groups: list[int] = []
    work = ComputeTask._work_through

    def count(self: ComputeTask, turns: Any) -> Any:
        groups.append(len(turns))
        return work(self, turns)

    monkeypatch.setattr(ComputeTask, "_work_through", count)
    monkeypatch.setattr(group_size, "LONGEST_S", 1e9)
    fc.resolve(*fitted(epochs=6)[1], **GPU)
    assert groups == [1, 16, 1]


def test_kernels_are_built_before_the_second_step() -> None:
    built: list[int] = []
    original, take_step = LocalLauncher.build, TrainingScan._step

    def build(self: LocalLauncher, *of: Any) -> Any:
        built[-1] += 1
        return original(self, *of)

    def step(scan: TrainingScan, **options: bool) -> Any:
        built.append(0)
        return take_step(scan, **options)

    built.append(0)
    with mock.patch.object(LocalLauncher, "build", build), mock.patch.object(TrainingScan, "_step", step):
        fc.resolve(*fitted()[1], **GPU)
    assert built[1] > 0
    assert built[2:] == [0] * 8
