"""Trainings whose mini-batches several devices share: the bits of one device."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.batch import Batch
from flowcompute.engine.training.feeding import _BatchesUnderWay
from flowcompute.errors import KernelError, RunError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.run.shared_batches import _Share
from flowcompute.schedule.placement import divided_records
from flowcompute.thread_pool import PendingCalls, ThreadPool
from tests.gpu.faulty_driver import REFUSED, driver_error
from tests.gpu.test_sharing import DEVICES
from tests.properties.cases import cases
from tests.support.slow import compiled_but

RNG = np.random.default_rng(11)
X = RNG.standard_normal((20_000, 6), dtype=np.float32)
Y = np.abs(X[:, :3]).argmax(1)
FIRST = {
    "a": RNG.standard_normal((6, 5), dtype=np.float32),
    "b": np.zeros(5, np.float32),
    "c": RNG.standard_normal((5, 3), dtype=np.float32),
    "s": np.float32(1),
}
PARTS = fc.Strategy(joined_batches=1, batch_bytes=1 << 17, depth=4)
"""Lets a step have several batches, each of a block of its folds."""


def parameters() -> dict[str, Any]:
    return {name: fc.parameter(value, name=name) for name, value in FIRST.items()}


def loss_of(p: dict[str, Any], x: np.ndarray, y: np.ndarray) -> Any:
    z = fc.nn.relu(fc.source(x) @ p["a"] + p["b"]) @ p["c"] * p["s"]
    return fc.nn.cross_entropy(z, fc.source(y), reduction="mean")


@contextmanager
def divided() -> Iterator[None]:
    """Divide the records of steps among discrete devices wherever that can be done, as if it cost nothing."""
    with mock.patch.multiple(divided_records, OPERATIONS_PER_BYTE=0, HANDED_OVER=0, EVEN=1):
        yield


@contextmanager
def taken_batches() -> Iterator[Counter[int]]:
    """Count batches by the device that has computed them."""
    counts: Counter[int] = Counter()
    take = _Share.take

    def counted(share: _Share, batch: Batch, slot: int) -> int:
        counts[id(share.runner.device)] += 1
        return take(share, batch, slot)

    with mock.patch.object(_Share, "take", counted):
        yield counts


def fitted(backend: OpenCLBackend, strategy: fc.Strategy | None, **options: Any) -> tuple[fc.Run, list[bytes]]:
    trained = fc.train.fit(loss_of(parameters(), X, Y), fc.train.adam(0.05), **options)
    with mock.patch.object(OpenCLBackend, "select", return_value=backend):
        run = fc.run(*(trained[name] for name in FIRST), trained.losses, progress=False, strategy=strategy)
    return run, [np.asarray(value).tobytes() for value in run.values]


KINDS = [(*kind, batch, how) for kind in (("cpu", 2), ("gpu", 3)) for batch in (None, 9_000) for how in (None, PARTS)]


@pytest.mark.parametrize(
    ("shape", "count", "batch", "strategy"), compiled_but([KINDS[0], KINDS[3], KINDS[5], KINDS[6]], KINDS)
)
def test_fit_has_the_bits_of_one_device(
    shape: str, count: int, batch: int | None, strategy: fc.Strategy | None
) -> None:
    options = {"batch": batch, "epochs": 4}
    _, expected = fitted(DEVICES[shape, 1], None, **options)
    with taken_batches() as taken:
        _, given = fitted(DEVICES[shape, count], strategy, **options)
    assert given == expected
    # On a discrete device folds of products stay where they are.
    assert (len(taken) > 1) == (shape == "cpu")


def test_what_reads_no_products_is_shared() -> None:
    found = []
    for count in (1, 3):
        s, b = fc.parameter(np.ones(6, np.float32), name="s"), fc.parameter(np.float32(0), name="b")
        loss = fc.mean((fc.sum(fc.tanh(fc.source(X) * s), axis=1) + b - fc.source(Y)) ** 2)
        trained = fc.train.fit(loss, fc.train.adam(0.05), batch=None, epochs=4)
        with mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", count]), taken_batches() as taken:
            run = fc.run(trained["s"], trained["b"], trained.losses, progress=False, strategy=PARTS)
        found.append([np.asarray(value).tobytes() for value in run.values])
        assert len(taken) == (count if count > 1 else 0)
    assert found[0] == found[1]


def test_a_step_that_gains_nothing_is_planned_for_the_first_device_alone() -> None:
    run, _ = fitted(DEVICES["gpu", 2], None, batch=9_000, epochs=1)
    told = [str(reason) for reason in run.plan.reasons if "runs on the first device alone" in str(reason)]
    assert len(told) == 2, "steps of 9,000 and of 2,000 records"
    assert "bytes a step between devices takes longer than parts of the records save" in told[0]
    assert "2000 records are too few blocks of its folds" in told[1]


@given(records=st.integers(1, len(X)), count=st.integers(2, 3), batch_bytes=st.integers(1 << 15, 1 << 20))
@example(records=20_000, count=2, batch_bytes=1 << 17)
@example(records=8_193, count=2, batch_bytes=1 << 16)
@cases(4)
def test_devices_that_divide_a_step_have_the_bits_of_one(records: int, count: int, batch_bytes: int) -> None:
    found, parts = [], []
    for number in (1, count):
        trained = fc.train.fit(
            loss_of(parameters(), X[:records], Y[:records]), fc.train.adam(0.05), batch=None, epochs=2
        )
        strategy = fc.Strategy(joined_batches=1, batch_bytes=batch_bytes) if number > 1 else None
        with divided(), mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", number]):
            run = fc.run(*(trained[name] for name in FIRST), trained.losses, progress=False, strategy=strategy)
        found.append([np.asarray(value).tobytes() for value in run.values])
        parts = [str(reason) for reason in run.plan.reasons if f"is divided among {number} devices," in str(reason)]
    assert found[0] == found[1]
    assert parts or records < 4096 * count


def test_what_stays_on_a_device_is_brought_to_the_others_in_each_step() -> None:
    """Steps of two sizes, of which one is divided and one is not, and a measure in between."""

    def values(number: int) -> list[bytes]:
        held = fc.source(X[:50])
        p = parameters()
        measure = fc.mean(fc.sum(held @ p["a"], axis=1))
        trained = fc.train.fit(loss_of(p, X, Y), fc.train.adam(0.05), batch=9_000, epochs=2, evaluate=measure, every=2)
        with divided(), mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", number]):
            found = fc.resolve(*(trained[name] for name in FIRST), trained.losses, progress=False)
        return [np.asarray(value).tobytes() for value in found]

    assert values(2) == values(1)


def test_a_training_that_two_devices_began_goes_on_with_one_and_the_reverse(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)

    def run(number: int, **options: Any) -> list[bytes]:
        p = parameters()
        z = fc.nn.relu(fc.open(tmp_path / "x.npy") @ p["a"] + p["b"]) @ p["c"] * p["s"]
        loss = fc.nn.cross_entropy(z, fc.open(tmp_path / "y.npy"), reduction="mean")
        trained = fc.train.fit(loss, fc.train.adam(0.05), batch=10_000, epochs=3, shuffle=5)
        with divided(), mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", number]):
            made = fc.run(*(trained[name] for name in FIRST), trained.losses, progress=False, **options)
        return [np.asarray(value).tobytes() for value in made.values]

    def freeze(run: fc.Run) -> None:
        if run.progress.items >= 3:
            run.freeze()

    wanted = run(1)
    for first, then in ((2, 1), (1, 2)):
        folder = tmp_path / f"kept{first}"
        with pytest.raises(RunError, match="was frozen"):
            run(first, checkpoint=folder, on_batch=freeze)
        assert run(then, checkpoint=folder) == wanted


@pytest.mark.parametrize("failing", [0, 1])
def test_a_device_that_fails_at_its_part_is_named_and_the_next_step_goes_on(failing: int) -> None:
    real, device = OpenCLRunner._compute, DEVICES["gpu", 2].devices[failing]
    is_failing = False

    def compute(self: OpenCLRunner, step: Any, taken: Any, outputs: Any) -> None:
        if is_failing and self.device is device and taken.start >= 4096 * (failing + 1):
            with self._told(step):
                raise driver_error(REFUSED, "a launch")
        real(self, step, taken, outputs)

    held, found = parameters(), []
    with (
        divided(),
        mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", 2]),
        mock.patch.object(OpenCLRunner, "_compute", compute),
        fc.train.Trainer([*held.values()], fc.train.adam(0.05), strategy=PARTS) as trainer,
    ):
        for number in range(3):
            is_failing = number == 1
            if is_failing:
                with pytest.raises(KernelError, match="a launch") as caught:
                    trainer.step(loss_of(held, X, Y))
                assert caught.value.element is not None
                assert caught.value.records is not None
                assert caught.value.records[0] >= 4096 * (failing + 1)
            else:
                found.append(trainer.step(loss_of(held, X, Y)))
        found += [value.tobytes() for _, value in sorted(trainer.values.items())]
    with (
        mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", 1]),
        fc.train.Trainer([*held.values()], fc.train.adam(0.05)) as trainer,
    ):
        alone = [trainer.step(loss_of(held, X, Y)) for _ in range(2)]
        alone += [value.tobytes() for _, value in sorted(trainer.values.items())]
    assert found == alone


def test_an_interrupt_leaves_no_device_at_work() -> None:
    real, second = OpenCLRunner._compute, DEVICES["gpu", 2].devices[1]
    inside, hold, left = threading.Event(), threading.Event(), []
    is_interrupted = False
    wait, forget = PendingCalls.wait, PendingCalls.forget

    def compute(self: OpenCLRunner, step: Any, taken: Any, outputs: Any) -> None:
        if is_interrupted and self.device is second:
            inside.set()
            assert hold.wait(600)
            left.append(step)
        real(self, step, taken, outputs)

    def interrupted(self: Any) -> Any:
        if is_interrupted and threading.current_thread() is threading.main_thread():
            assert inside.wait(600)
            raise KeyboardInterrupt
        return wait(self)

    def waits(self: Any) -> None:
        hold.set()
        forget(self)

    held = parameters()
    with (
        divided(),
        mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", 2]),
        mock.patch.multiple(PendingCalls, wait=interrupted, forget=waits),
        mock.patch.object(OpenCLRunner, "_compute", compute),
        fc.train.Trainer([*held.values()], fc.train.adam(0.05)) as trainer,
    ):
        trainer.step(loss_of(held, X, Y))
        is_interrupted = True
        try:
            with pytest.raises(KeyboardInterrupt):
                trainer.step(loss_of(held, X, Y))
            assert left
        finally:
            is_interrupted = False
            hold.set()
        trainer.step(loss_of(held, X, Y))


def test_an_interrupt_leaves_no_upload_under_way() -> None:
    ended: list[int] = []

    class Overlapping:
        """An executor whose batches are uploaded while others are computed."""

        in_flight = lanes = 2

        def upload(self, batch: Batch) -> None:
            assert go.wait(600)
            ended.append(batch.start)

    def interrupted(self: Any) -> Any:
        raise KeyboardInterrupt

    def waits(self: Any) -> None:
        go.set()
        forget(self)

    go, forget, threads = threading.Event(), PendingCalls.forget, ThreadPool("flowcompute-test")
    overlapping: Any = Overlapping()

    def work() -> None:
        with _BatchesUnderWay(overlapping, threads) as under_way:
            under_way.begin(Batch(0, 0, 1, {}, 0), alone=False)
            under_way.process_next()

    with mock.patch.multiple(PendingCalls, wait=interrupted, forget=waits), pytest.raises(KeyboardInterrupt):
        work()
    assert ended == [0]
    threads.close()


@pytest.mark.parametrize("strategy", [None, PARTS], ids=["whole", "parts"])
@pytest.mark.parametrize(("shape", "count"), compiled_but([("gpu", 2)], [("cpu", 3), ("gpu", 2)]))
def test_trainer_has_the_bits_of_one_device(shape: str, count: int, strategy: fc.Strategy | None) -> None:
    found = []
    for number, chosen in ((1, None), (count, strategy)):
        held = parameters()
        with (
            mock.patch.object(OpenCLBackend, "select", return_value=DEVICES[shape, number]),
            fc.train.Trainer([*held.values()], fc.train.adam(0.05), strategy=chosen) as trainer,
        ):
            losses = [
                trainer.step(loss_of(held, X[part], Y[part]))
                for part in (slice(9_000 * i, 9_000 * (i + 1)) for i in (0, 1, 0, 1))
            ]
            found.append([*losses, *(value.tobytes() for _, value in sorted(trainer.values.items()))])
    assert found[0] == found[1]
