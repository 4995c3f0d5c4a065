"""Values that are computed again where a record does not fit a device with memory of its own: equal bits, in less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import flowcompute as fc
from flowcompute.engine.batch_slice import BatchSlice
from flowcompute.errors import DeviceFullError, DeviceWarning, PlanError, RunError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.schedule.steps import RegionStep
from tests.gpu.shapes import gpu_shaped, two_gpus
from tests.gpu.test_sharing import DEVICES
from tests.schedule.test_tight_plans import (
    ROWS,
    SIZE,
    chain,
    convolved,
    fitted,
    gradients,
    parameter,
    parameters_of,
    recomputes,
    value_bytes,
)

pytestmark = pytest.mark.compiles

GPU: dict[str, Any] = {"device": "gpu"}
AMPLE = 1 << 23


@pytest.fixture(autouse=True)
def _discrete() -> Iterator[None]:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        yield


def least_room(elements: tuple[Any, ...], **options: Any) -> int:
    """Return about the least `device_memory=` that a job fits."""
    fails, fits = 0, AMPLE
    while fits - fails > fits // 100:
        room = (fits + fails) // 2
        try:
            fc.plan(*elements, device_memory=room, **GPU, **options)
        except PlanError as error:
            assert "into the device's memory" in error.message or "placed on" in error.message
            fails = room
        else:
            fits = room
    return fits


def resolved(elements: tuple[Any, ...], room: int, **options: Any) -> list[bytes]:
    return value_bytes(fc.resolve(*elements, device_memory=room, **GPU, progress=False, **options))


@pytest.mark.parametrize("made", [fitted, gradients])
@pytest.mark.parametrize("loss", [convolved, lambda: chain(["residual", "attending", "dense"])], ids=["images", "rows"])
def test_no_device_memory_changes_a_bit(made: Callable[[Any], tuple[Any, ...]], loss: Callable[[], Any]) -> None:
    elements = made(loss())
    least = least_room(elements)
    plans = [fc.plan(*elements, device_memory=room, **GPU) for room in (least, AMPLE)]
    assert [recomputes(plan) for plan in plans] == [True, False]
    whole = resolved(elements, AMPLE)
    for room in (least, least * 9 // 8):
        assert resolved(elements, room) == whole


def test_a_refusal_names_the_least_device_memory() -> None:
    elements = gradients(convolved())
    with pytest.raises(PlanError, match="device's memory") as caught:
        fc.plan(*elements, device_memory=1 << 12, **GPU)
    assert "although values are computed again" in str(caught.value.hint)
    told = int(str(caught.value.expected).split()[2])
    assert recomputes(fc.plan(*elements, device_memory=told, **GPU))
    with pytest.raises(PlanError, match="device's memory"):
        fc.plan(*elements, device_memory=told * 99 // 100, **GPU)


def test_a_trainer_computes_again() -> None:
    def trained(room: int) -> tuple[list[bytes], bool]:
        loss = convolved()
        with fc.train.Trainer(parameters_of(loss), fc.train.adam(0.1), device_memory=room, **GPU) as trainer:
            losses = [trainer.step(loss) for _ in range(3)]
            (_, job), *_ = trainer._jobs
            return [*value_bytes(losses), *value_bytes(trainer.values.values())], recomputes(job.plan)

    with pytest.raises(PlanError) as caught:
        trained(1 << 12)
    (tight, again), (whole, at_ample) = trained(int(str(caught.value.expected).split()[2])), trained(AMPLE)
    assert (again, at_ample) == (True, False)
    assert tight == whole


@pytest.mark.parametrize("made", [fitted, gradients])
@pytest.mark.parametrize("first_is_tight", [True, False])
def test_a_frozen_job_goes_on_in_another_device_memory(
    made: Callable[[Any], Any], first_is_tight: bool, tmp_path: Path
) -> None:
    elements = made(convolved(4))
    least = least_room(elements, checkpoint=tmp_path / "none")
    rooms = (least, AMPLE) if first_is_tight else (AMPLE, least)
    small = {"strategy": fc.Strategy(batch_bytes=1)}
    seen: list[int] = []

    def watch(run: fc.Run) -> None:
        seen.append(1)
        if len(seen) == 2:
            run.freeze()

    options: dict[str, Any] = {**GPU, **small, "progress": False}
    with pytest.raises(RunError, match="frozen"):
        fc.run(*elements, checkpoint=tmp_path / "kept", on_batch=watch, device_memory=rooms[0], **options)
    thawed = fc.thaw(tmp_path / "kept")
    assert value_bytes(thawed.resolve(device_memory=rooms[1], **options)) == resolved(elements, AMPLE)


def pinned(h: Any, name: str, device: str) -> Any:
    return fc.nn.gelu(h @ parameter(name, SIZE, SIZE)).on(device)


def test_a_graph_on_two_devices_computes_again() -> None:
    """Folds wait for the end of a batch there: one device may compute later records before."""
    h = fc.source(ROWS)
    for place in range(4):
        h = pinned(h, f"w{place}", "gpu:1" if place == 1 else "gpu")
    elements = gradients((h * h).mean())
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=two_gpus()):
        least = least_room(elements)
        plan = fc.plan(*elements, device_memory=least, **GPU)
        assert recomputes(plan)
        assert not any(one.folds_at_once for one in plan.passes)
        assert "take their records at once" not in str(plan)
        assert resolved(elements, least) == resolved(elements, AMPLE)


@pytest.mark.parametrize("made", [fitted, gradients])
def test_devices_that_share_batches_compute_again(made: Callable[[Any], Any]) -> None:
    elements = made(convolved(4))
    whole = resolved(elements, AMPLE)
    with mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", 2]):
        least = least_room(elements)
        assert recomputes(fc.plan(*elements, device_memory=least, **GPU))
        for room in (least, AMPLE):
            assert resolved(elements, room) == whole


@pytest.mark.parametrize("place", [0, -1], ids=["before any fold", "behind folds"])
def test_a_slice_without_room_is_tried_again_as_long_as_no_fold_has_taken_it(place: int) -> None:
    elements = gradients(convolved(4))
    least, failed = least_room(elements), list[str]()
    plan = fc.plan(*elements, device_memory=least, **GPU)
    names = [step.name for step in plan.passes[0].steps if isinstance(step, RegionStep)]
    whole, original = resolved(elements, AMPLE), OpenCLRunner.run

    def run(self: OpenCLRunner, step: RegionStep, taken: BatchSlice, outputs: Any) -> None:
        if step.name == names[place] and not failed:
            failed.append(step.name)
            raise DeviceFullError("no room", element=step.name)
        original(self, step, taken, outputs)

    with mock.patch.object(OpenCLRunner, "run", run):
        if place == 0:
            with pytest.warns(DeviceWarning, match="no room on"):
                assert resolved(elements, least) == whole
        else:
            with pytest.raises(DeviceFullError, match="no room"):
                resolved(elements, least)
    assert failed
