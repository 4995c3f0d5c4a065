"""Trainings whose mini-batches several devices share: the bits of one device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.batch import Batch
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.run.shared_batches import _Share
from tests.gpu.test_sharing import DEVICES

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


@pytest.mark.parametrize("strategy", [None, PARTS], ids=["whole", "parts"])
@pytest.mark.parametrize("batch", [None, 9_000])
@pytest.mark.parametrize(("shape", "count"), [("cpu", 2), ("gpu", 3)])
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


def test_a_step_with_products_is_planned_for_the_first_device_alone() -> None:
    run, _ = fitted(DEVICES["gpu", 2], None, batch=9_000, epochs=1)
    told = [str(reason) for reason in run.plan.reasons if "runs on the first device alone" in str(reason)]
    assert len(told) == 2, "steps of 9,000 and of 2,000 records"
    assert "folds of products stay there" in told[0]


@pytest.mark.parametrize("strategy", [None, PARTS], ids=["whole", "parts"])
@pytest.mark.parametrize(("shape", "count"), [("cpu", 3), ("gpu", 2)])
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
