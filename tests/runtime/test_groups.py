"""Small batches that are there go to a thread together, and each of them counts as if it had gone by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import RunError
from flowcompute.runtime.stages import computing, group_size
from flowcompute.runtime.stages.group_size import GroupSize
from tests.runtime.fakes import Scene, full_job, full_values
from tests.support.starting import start

BATCHES, DEPTH = 10, 16


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batches of each hand-over to the thread that computes; none is too long for another beside it."""
    seen: list[int] = []
    work = computing.ComputeTask._work_through

    def count(self, turns):
        seen.append(self._batches_in(turns))
        return work(self, turns)

    monkeypatch.setattr(computing.ComputeTask, "_work_through", count)
    monkeypatch.setattr(group_size, "LONGEST_S", 1e9)
    return seen


def scene_of_waiting_batches(fault: tuple[str, int] | None = None) -> Scene:
    """Return a scene whose first batch is computed when all the others have been read."""
    scene, read = Scene(fault), {name: threading.Event() for name in "ab"}

    def noting(name: str) -> Callable[[int], None]:
        return lambda number: read[name].set() if number == BATCHES - 1 else None

    def wait_first(number: int) -> None:
        if number == 0:
            assert all(each.wait(30) for each in read.values())

    scene.hooks |= {"read a": noting("a"), "read b": noting("b"), "process": wait_first}
    return scene


def started(scene: Scene, **options):
    job = full_job(scene, length=4 * BATCHES, depth=DEPTH)
    return start(job.planned(), progress=False, **options)


def test_what_is_there_is_computed_in_few_hand_overs(groups):
    scene = scene_of_waiting_batches()
    run = started(scene).wait(30)
    assert groups == [1, DEPTH // 2, BATCHES - 1 - DEPTH // 2]
    for value, wanted in zip(run.values, full_values(4 * BATCHES), strict=True):
        np.testing.assert_array_equal(value, wanted)
    assert scene.executors[0].seqs == [(seq, 4 * seq, 4 * seq + 4) for seq in range(BATCHES)]
    row = run.metrics["twice_1"]
    assert (row.batches, row.items) == (BATCHES, 4 * BATCHES)
    assert run.metrics["step"].batches == BATCHES
    scene.assert_put_away(committed=True)


@pytest.mark.parametrize("operation", ["process", "write placed", "write twice_1"])
@pytest.mark.parametrize("at", [0, 1, 4, BATCHES - 1])
def test_what_came_before_a_failure_was_passed_on(groups, operation, at):
    scene = scene_of_waiting_batches((operation, at))
    with pytest.raises(RunError) as caught:
        started(scene).wait(30)
    assert f"Boom: {operation} {at}" in str(caught.value)
    assert caught.value.records == (4 * at, 4 * at + 4)
    # What is computed after that may be dropped. What was before it may not.
    assert scene.counts["write placed"] >= at
    if operation != "write twice_1":
        assert max(groups[1:], default=1) > 1 or at == 0
    scene.assert_put_away(committed=False)


def test_who_looks_at_each_batch_gets_each_by_itself(groups):
    seen = []
    started(scene_of_waiting_batches(), on_batch=lambda run: seen.append(run.progress.items)).wait(30)
    assert groups == [1] * BATCHES
    assert len(seen) == BATCHES


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_kernels_of_several_batches_are_waited_for_together(groups, device, tmp_path: Path):
    x = np.random.default_rng(0).standard_normal((4000, 8), dtype=np.float32)
    options = {"device": device, "progress": False}
    expected = fc.resolve(fc.tanh(fc.source(x)).sum(axis=1), **options)
    small = fc.Strategy(batch_bytes=1 << 10)
    y = fc.tanh(fc.source(x)).sum(axis=1)
    run = fc.run(y >> fc.save(tmp_path / "y.npy"), y, (2 * y).sum(), strategy=small, **options)
    assert np.load(run.values[0]).tobytes() == run.values[1].tobytes() == expected.tobytes()
    assert run.values[2] == (2 * y).sum().resolve(**options)
    assert max(groups) > 1
    assert sum(groups) > 100


@pytest.mark.usefixtures("groups")
def test_a_callback_that_fails_has_the_records_of_its_batch():
    def refuse(array: np.ndarray) -> None:
        if array[0] == 500:
            raise ValueError("no more")

    x = fc.source(np.arange(1000))
    with pytest.raises(RunError) as caught:
        fc.run(x >> fc.callback(refuse), device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=800))
    assert caught.value.records == (500, 600)


@pytest.mark.parametrize(
    ("seconds", "batches", "following"),
    [(2e-3, 1, 1), (1e-3, 1, 2), (1e-4, 1, 8), (8e-3, 8, 2), (9.0, 3, 1), (0, 1, 8)],
)
def test_long_batches_go_by_themselves(seconds, batches, following):
    group = GroupSize(8)
    assert group.batches == 1
    group.took(seconds, batches)
    assert group.batches == following


def test_plans_count_the_bytes_of_small_batches_in_flight(tmp_path: Path):
    x = fc.source(np.ones((1 << 14, 16), np.float32)) * 2

    def depth(**options) -> int:
        plan = fc.plan(x >> fc.save(tmp_path / "x.npy"), device="numpy", **options)
        assert plan.memory.host_bytes <= plan.memory.budget_bytes
        return plan.depth

    small = fc.Strategy(batch_bytes=1 << 14)
    assert depth() == 2
    assert depth(strategy=small) == DEPTH
    assert depth(strategy=fc.Strategy(batch_bytes=1 << 20)) == 4
    assert depth(strategy=fc.Strategy(batch_bytes=1 << 14, depth=1)) == 1
    # The batch keeps the size that was asked for, as long as two fit.
    assert depth(strategy=small, memory="128KiB") == 8
    kept = fc.run(x >> fc.discard(), device="numpy", progress=False, strategy=small, checkpoint=tmp_path / "kept")
    assert kept.plan.depth == 2


@pytest.mark.parametrize("stops", [False, True])
def test_steps_of_a_training_go_together_unless_they_may_end_early(groups, stops):
    x = fc.source(np.linspace(-1, 1, 80, dtype=np.float32).reshape(40, 2))
    w = fc.parameter(np.zeros(2, np.float32), name="w")
    loss = (((x * w).sum(axis=1) - 1) ** 2).mean()
    criterion = {"evaluate": loss, "stop": fc.train.patience(5)} if stops else {}
    trained = fc.train.fit(loss, fc.train.sgd(0.1), batch=4, epochs=3, **criterion)
    trained.losses.resolve(device="numpy", progress=False)
    assert sum(groups) == 30
    assert max(groups) == (1 if stops else 16)
