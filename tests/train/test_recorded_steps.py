"""Steps on a discrete device that are recorded and done again: what they read, and what an interrupt leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import RunError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device import BoundKernel
from flowcompute.gpu.memory.device_memory import DeviceMemory
from tests.gpu.shapes import gpu_shaped
from tests.support.interrupts import Interrupt
from tests.train.test_discrete_devices import X, Y, problem, same, through_the_host

pytestmark = pytest.mark.compiles


@pytest.fixture(autouse=True)
def _discrete() -> Iterator[None]:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        yield


@pytest.mark.parametrize("kind", ["scalar", "factor", "two losses", "loss of a mean"])
def test_steps_read_what_the_host_has_added_up(kind: str) -> None:
    (a, b, _), _ = problem()
    number = fc.parameter(np.float32(0.3), name="number")
    x = fc.source(X)
    scores = (x @ a)[:, :3]
    crossed = fc.nn.cross_entropy(scores * number if kind == "factor" else scores, fc.source(Y), reduction="mean")
    held, loss = {
        "scalar": ([a, number], ((x @ a + number) ** 2).mean()),
        "factor": ([a, number], crossed),
        "two losses": ([a, b], crossed + ((x @ a + b) ** 2).mean()),
        "loss of a mean": ([a], fc.sqrt(crossed)),
    }[kind]

    def train() -> list[Any]:
        with fc.train.Trainer(held, fc.train.adam(0.05), device="gpu") as trainer:
            return [*(trainer.step(loss) for _ in range(12)), *trainer.values.values()]

    with through_the_host():
        wanted = train()
    same(train(), wanted)


def test_a_step_that_is_interrupted_between_any_two_lines_leaves_nothing_behind(tmp_path: Path) -> None:
    a, b, c, table = held = [*problem()[0], fc.parameter(np.ones((3, 6), np.float32), name="table")]
    x, y = fc.source(X), fc.source(Y)
    hidden = fc.nn.relu((x.astype("float16") @ a.astype("float16")).astype("float32") + b)
    loss = fc.nn.cross_entropy(hidden @ c, y, reduction="mean") + (fc.take(table, y, axis=0) ** 2).mean()
    places = set()
    with fc.train.Trainer(held, fc.train.adam(0.05), device="gpu") as trainer:
        wanted = [trainer.step(loss) for _ in range(250)]
        last = [*trainer.values.values()]
    with fc.train.Trainer(held, fc.train.adam(0.05), device="gpu") as trainer:

        def check_steps(count: int) -> None:
            first = trainer.steps
            same([trainer.step(loss) for _ in range(count)], wanted[first : first + count])

        check_steps(1)
        with Interrupt() as whole:
            check_steps(1)
        trainer.save(tmp_path)
        for k in range(60):
            # Steps are derived, recorded, recorded again and repeated: each of them is interrupted, soon and late.
            interrupt = Interrupt(whole.lines * k // 60)
            with contextlib.suppress(KeyboardInterrupt), interrupt:
                trainer.step(loss)
            places.add(interrupt.place)
            try:
                check_steps(1 + k % 3)
            except RunError as refusal:
                # While the device handed on its values.
                assert "a step was interrupted" in str(refusal)
                trainer.load(tmp_path)
                check_steps(1 + k % 3)
        check_steps(len(wanted) - trainer.steps)
        same([*trainer.values.values()], last)
    assert len(places) > 20


def test_values_of_two_steps_are_refused(tmp_path: Path) -> None:
    held, loss = problem()
    with fc.train.Trainer(held, fc.train.adam(0.05), device="gpu") as trainer:
        trainer.step(loss)
        trainer.save(tmp_path)
        wanted = trainer.step(loss)
        calls: list[int] = []
        original = DeviceMemory.hand_on

        def hand_on(memory: DeviceMemory, *values: Any) -> Any:
            calls.append(1)
            if len(calls) == 4:
                raise KeyboardInterrupt
            return original(memory, *values)

        with mock.patch.object(DeviceMemory, "hand_on", hand_on), pytest.raises(KeyboardInterrupt):
            trainer.step(loss)
        assert trainer.steps == 2
        for use in (lambda: trainer.step(loss), lambda: trainer.values["a"], lambda: trainer.save(tmp_path)):
            with pytest.raises(RunError, match="a step was interrupted"):
                use()
        trainer.load(tmp_path)
        assert trainer.step(loss) == wanted
        with (
            mock.patch.object(DeviceMemory, "hand_on", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            trainer.step(loss)
    with pytest.raises(RunError, match="load what was saved"):
        _ = trainer.values


def test_repeated_steps_keep_the_arguments_of_their_launches() -> None:
    """But for the number of the step: pyopencl took all of them again for each launch."""
    (a, b, c), loss = problem()

    def train() -> list[Any]:
        with fc.train.Trainer([a, b, c], fc.train.adam(0.05), device="gpu") as trainer:
            return [*(trainer.step(loss) for _ in range(24)), *trainer.values.values()]

    launched: list[int] = []
    launch = BoundKernel.launch

    def noted(bound: BoundKernel) -> None:
        launched.append(id(bound))
        launch(bound)

    with mock.patch.object(BoundKernel, "launch", noted):
        made = train()
    # Steps alternate between two sets of buffers.
    assert len(launched) > len(set(launched)) > 2
    with mock.patch("flowcompute.gpu.memory.recording.driver_functions", return_value=None):
        same(made, train())
