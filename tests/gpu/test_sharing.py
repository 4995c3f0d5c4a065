"""Several devices that share the batches of a job: the bits of one device, whoever computes what, whatever fails."""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.backend import PlannedJob
from flowcompute.engine.step_runner import StepRunner
from flowcompute.errors import DeviceError, KernelError, PlanError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.memory.device_memory import DeviceMemory
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.run.shared_batches import _Share
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.schedule.memory.buffer_assignment import HostIntermediates
from flowcompute.schedule.placement.shared_passes import alignment
from tests.gpu.faulty_driver import LOST, REFUSED, driver_error
from tests.gpu.shapes import gpu_shaped, twin
from tests.support.slow import slow_but
from tests.support.starting import start

DATA = np.random.default_rng(6).standard_normal((9_000, 5), dtype=np.float32)


def several(count: int, shape: str) -> OpenCLBackend:
    first = gpu_shaped().device if shape == "gpu" else select_device("cpu", needs_float64=True)
    return OpenCLBackend(first, *(twin(first) for _ in range(count - 1)))


DEVICES = {(shape, count): several(count, shape) for shape in ("cpu", "gpu") for count in (1, 2, 3)}


def run_on(backend: OpenCLBackend, *roots: fc.Element, **options: Any) -> fc.Run:
    with mock.patch.object(OpenCLBackend, "select", return_value=backend):
        return fc.run(*roots, progress=False, **options)


def jobs() -> dict[str, list[fc.Element]]:
    x = fc.source(DATA)
    return {
        "maps and folds": [x * 2 + 1, x.sum(axis=1), x.max(axis=0), x.mean(), x],
        "two passes": [(x - x.mean(axis=0)) * 2, x.sum(axis=1).var()],
        "folds on the host": [fc.histogram(x * 2, range=(-1, 1))[0], (x * 3).T @ (x + 1)],
        "other clocks": [x[x[:, 0] > 0] * 3, fc.window(x, 3).sum(axis=1)],
        "alone": [fc.cumulative_sum(x, axis=0), fc.host(np.sort, x, shape=(5,), dtype="float32") + 1, x[:30] * 2],
    }


def test_what_several_batches_hold_at_a_time_is_planned() -> None:
    """Devices go on while the first batches wait for their turn: each has memory between its steps."""
    live, peaks, lock = [0], [0], threading.Lock()
    array = HostIntermediates.array

    def watched(between: HostIntermediates, *arguments: int) -> np.ndarray:
        known = {*between._memory}
        made = array(between, *arguments)
        for key in between._memory.keys() - known:
            size = between._memory[key].nbytes
            weakref.finalize(between._memory[key], counted, -size)
            counted(size)
        return made

    def nothing(*_: Any, **__: Any) -> None:
        pass

    def counted(size: int) -> None:
        with lock:
            live[0] += size
            peaks.append(live[0])

    x = fc.source(DATA)
    roots = [x @ np.ones((5, 40), "f4") @ np.ones((40, 3), "f4"), x.sum(axis=1)]
    with (
        mock.patch.object(HostIntermediates, "array", watched),
        mock.patch.multiple(LocalLauncher, build=nothing, launch=nothing),
    ):
        run = run_on(DEVICES["cpu", 3], *roots, strategy=fc.Strategy(joined_batches=1, depth=6, batch_bytes=1 << 14))
    lines = {what: size for what, size in run.plan.memory.items if "between kernels" in what or "computed" in what}
    assert all(what.endswith(" x 6") for what in lines)
    assert 0 < max(peaks) <= sum(lines.values())


@pytest.mark.parametrize("name", slow_but(["maps and folds", "other clocks"], jobs()))
@pytest.mark.parametrize(("shape", "count"), [("cpu", 3), ("gpu", 2)])
def test_any_number_of_devices_gives_the_bits_of_one(shape: str, count: int, name: str) -> None:
    roots = jobs()[name]
    whole = [np.asarray(value).tobytes() for value in run_on(DEVICES[shape, 1], *roots).values]
    # The last batches are smaller than the blocks of folds.
    for depth, size in ((None, 1 << 17), (1, 1 << 17), (4, 1 << 13)):
        strategy = fc.Strategy(joined_batches=1, depth=depth, batch_bytes=size)
        run = run_on(DEVICES[shape, count], *roots, strategy=strategy)
        assert [np.asarray(value).tobytes() for value in run.values] == whole, (depth, size)
        if size == 1 << 17:
            alone = [str(reason) for reason in run.plan.reasons if "alone" in str(reason)]
            folds_there = shape == "gpu" and name == "folds on the host"
            assert bool(alone) == (name == "alone" or folds_there), alone
    assert not gpu_shaped().device.pinned.lent_bytes


@pytest.mark.parametrize("made", [fc.source, lambda data: fc.source(fc.pinned(data.copy()))])
def test_whoever_is_free_takes_the_next_batch(made: Callable[[np.ndarray], fc.Element]) -> None:
    """While one device is held, the others do the rest, also of what is read without a copy; results are in order."""
    takers: list[_Share] = []
    others_done = threading.Event()
    real = _Share.take

    def take(self: _Share, batch: Any, slot: int) -> Any:
        if batch.seq == 0:
            assert others_done.wait(20), "the others wait for the one that is held"
        takers.append(self)
        # As many as are in flight beside it, whoever came first.
        if len(takers) >= 3:
            others_done.set()
        return real(self, batch, slot)

    x = made(DATA)
    with mock.patch.object(_Share, "take", take):
        strategy = fc.Strategy(joined_batches=1, batch_bytes=1 << 13, depth=4)
        run = run_on(DEVICES["gpu", 2], x * 2, strategy=strategy)
    np.testing.assert_array_equal(run.value, DATA * 2)
    assert len(set(takers)) == 2


@pytest.mark.parametrize("shared", [False, True])
def test_each_device_holds_what_is_planned(shared: bool) -> None:
    """Also the one that computes alone: it has no more batches in flight than where all share them."""
    memories: list[DeviceMemory] = []
    made = DeviceMemory.__init__

    def watch(self: DeviceMemory, *arguments: Any) -> None:
        made(self, *arguments)
        memories.append(self)

    x, limit = fc.source(np.tile(DATA, (10, 1))), 1 << 18
    root = x * 2 if shared else fc.cumulative_sum(x, axis=0) * 2
    with mock.patch.object(DeviceMemory, "__init__", watch):
        run = run_on(
            DEVICES["gpu", 3], root, device_memory=limit, strategy=fc.Strategy(joined_batches=1, batch_bytes=1 << 18)
        )
    assert run.plan.batch_items < len(DATA) == x.spec.length // 10  # type: ignore[operator]
    assert [memory._arena.peak_bytes > 0 for memory in memories] == ([False, True, True, True] if shared else [True])
    assert not run.notes
    assert np.asarray(run.value).tobytes() == run_on(DEVICES["gpu", 1], root).value.tobytes()


def test_batches_are_cut_where_no_fold_has_an_open_block() -> None:
    x = fc.source(DATA)
    with mock.patch.object(OpenCLBackend, "select", return_value=DEVICES["gpu", 2]):
        plan = fc.plan(x.max(axis=0), (x * 2).sum(axis=1), strategy=fc.Strategy(joined_batches=1, batch_bytes=1 << 17))
    assert alignment(plan.passes[0]) > 1024
    assert plan.batch_items % alignment(plan.passes[0]) == 0
    assert "2 x" in str(plan)


def test_a_job_that_was_frozen_inside_a_block_goes_on(tmp_path: Path) -> None:
    def resolve(backend: OpenCLBackend, stop_after: int | None, size: int) -> Any:
        seen: list[int] = []

        def stop(_: fc.Run) -> None:
            seen.append(1)
            if len(seen) == stop_after:
                raise KeyError("enough")

        x = fc.source(DATA)
        options = {"checkpoint": tmp_path / "job", "checkpoint_every": 0, "throttle": 0.08 if stop_after else 0.0}
        strategy = fc.Strategy(joined_batches=1, batch_bytes=size)
        return run_on(backend, x.max(axis=0), x * 2, strategy=strategy, on_batch=stop, **options).values

    with pytest.raises(fc.RunError, match="enough"):
        resolve(DEVICES["gpu", 1], 4, 3000)
    most, doubled = resolve(DEVICES["gpu", 3], None, 1 << 14)
    np.testing.assert_array_equal(most, DATA.max(axis=0))
    np.testing.assert_array_equal(doubled, DATA * 2)


@pytest.mark.parametrize(("code", "kind"), [(REFUSED, KernelError), (LOST, DeviceError)])
@pytest.mark.parametrize("at", [0, 5])
def test_a_device_that_fails_is_named_with_its_records(code: int, kind: type[Exception], at: int) -> None:
    real, begun = OpenCLRunner._compute, []

    def compute(self: OpenCLRunner, *arguments: Any) -> None:
        begun.append(self)
        if len(begun) == at + 1:
            with self._told(arguments[0]):
                raise driver_error(code, "a launch")
        real(self, *arguments)

    with (
        mock.patch.object(OpenCLRunner, "_compute", compute),
        mock.patch.object(Device, "give_up"),
        pytest.raises(kind, match="a launch") as caught,
    ):
        run_on(DEVICES["gpu", 2], fc.source(DATA) * 2, strategy=fc.Strategy(joined_batches=1, batch_bytes=1 << 13))
    assert caught.value.element == "multiply"  # type: ignore[attr-defined]
    assert caught.value.records is not None  # type: ignore[attr-defined]
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("flowcompute")]
    assert not gpu_shaped().device.pinned.lent_bytes


def test_a_job_that_has_lost_one_of_its_devices_goes_on_with_the_others(tmp_path: Path) -> None:
    first = gpu_shaped().device
    both = [one.with_reason(f"device='gpu:{i}' names it") for i, one in enumerate((first, twin(first)))]
    begun: list[int] = []
    lost: list[Device] = []
    real = OpenCLRunner._compute

    def compute(self: OpenCLRunner, step: Any, batch_slice: Any, outputs: Any) -> None:
        if step.region.stream:
            begun.append(batch_slice.start)
        if self.device in lost:
            with self._told(step):
                raise driver_error(LOST, "a launch")
        real(self, step, batch_slice, outputs)

    def resolve(*devices: Device, **options: Any) -> Any:
        begun.clear()
        x = fc.source(DATA)
        strategy = fc.Strategy(joined_batches=1, batch_bytes=1 << 13, depth=4)
        roots = x * 2, x.sum(axis=1)
        return run_on(OpenCLBackend(*devices), *roots, strategy=strategy, checkpoint=tmp_path / "job", **options)

    with mock.patch.object(OpenCLRunner, "_compute", compute):
        with pytest.raises(fc.RunError, match="was frozen into"):
            resolve(*both, on_batch=lambda run: run.freeze())
        frozen = max(begun)
        lost.append(both[1])
        with mock.patch.object(Device, "give_up"), pytest.raises(DeviceError, match="'gpu:1' names it") as caught:
            resolve(*both)
        assert caught.value.records is not None
        assert caught.value.records[0] in begun
        assert "goes on from the last checkpoint" in str(caught.value)
        doubled, sums = resolve(both[0]).values
        assert min(begun) > frozen
    np.testing.assert_array_equal(doubled, DATA * 2)
    assert sums.tobytes() == run_on(DEVICES["gpu", 1], fc.source(DATA).sum(axis=1)).value.tobytes()


def test_where_a_device_has_no_room_the_first_one_computes_in_slices() -> None:
    real = OpenCLRunner._compute

    def compute(self: OpenCLRunner, step: Any, batch_slice: Any, outputs: Any) -> None:
        if batch_slice.items > 200:
            with self._told(step):
                raise driver_error(-4, "no room")
        real(self, step, batch_slice, outputs)

    x = fc.source(DATA)
    with mock.patch.object(OpenCLRunner, "_compute", compute), pytest.warns(fc.DeviceWarning, match="no room"):
        run = run_on(
            DEVICES["gpu", 2], x * 2, x.max(axis=0), strategy=fc.Strategy(joined_batches=1, batch_bytes=1 << 14)
        )
    np.testing.assert_array_equal(run.values[0], DATA * 2)
    np.testing.assert_array_equal(run.values[1], DATA.max(axis=0))
    assert run.notes


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (["cpu", "cpu:0"], "cannot use a device twice"),
        ([], "a list of devices' names"),
        (["cpu", 3], "a list of devices' names"),
        (["cpu", "gpu:7"], "does not exist"),
    ],
)
def test_devices_that_cannot_share(device: list[Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        fc.plan(fc.source(DATA) * 2, device=device)


def test_devices_that_share_are_not_isolated() -> None:
    first = DEVICES["cpu", 2].devices
    chosen = mock.patch("flowcompute.jobs.backend_choice.select_devices", return_value=first)
    with chosen, pytest.raises(PlanError, match="cannot isolate kernels where devices share the batches"):
        fc.plan(fc.source(DATA) * 2, device=["cpu", "cpu:1"], isolate=True)


def test_devices_of_several_kinds_share_no_batches() -> None:
    one = select_device("cpu", needs_float64=False)
    other = twin(one)
    other.capabilities, other.platform = dataclasses.replace(one.capabilities, kind="of another kind"), "another"
    with mock.patch("flowcompute.gpu.device.discovery.select_device", side_effect=[one, other]):
        made = fc.plan(fc.source(DATA) * 2, device=["cpu", "gpu"])
    assert made.backend.capabilities.devices == 1
    assert made.backend.capabilities.kind == one.capabilities.kind


def test_metrics_count_what_all_devices_did() -> None:
    run = run_on(DEVICES["gpu", 2], fc.source(DATA) * 2, strategy=fc.Strategy(joined_batches=1, batch_bytes=1 << 13))
    row = run.metrics["multiply"]
    assert row.launches == row.batches == -(-len(DATA) // run.plan.batch_items)
    assert start(PlannedJob(run.plan, DEVICES["gpu", 2]), progress=False).wait().progress.done


def test_all_that_runs_steps_is_closed() -> None:
    """Else matrices that records have chosen stay in the system's cache."""
    made: list[StepRunner] = []
    closed: list[StepRunner] = []
    init, close = StepRunner.__init__, StepRunner.close

    def noted(self: StepRunner, *arguments: Any) -> None:
        made.append(self)
        init(self, *arguments)

    def ended(self: StepRunner) -> None:
        closed.append(self)
        close(self)

    with mock.patch.object(StepRunner, "__init__", noted), mock.patch.object(StepRunner, "close", ended):
        run_on(DEVICES["cpu", 2], *jobs()["maps and folds"])
    assert len(made) > 2
    assert all(any(one is other for other in closed) for one in made)
