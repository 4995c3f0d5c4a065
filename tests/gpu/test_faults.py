"""A device that runs out of memory, refuses, or is lost, at every call of its driver."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.gpu.device._cl import cl
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from tests.gpu.faulty_driver import FULL, LOST, REFUSED, RESOURCES, FaultyDriver, FlakyDriver, driver_error
from tests.gpu.shapes import gpu_shaped, job_on_gpu, plan_for_gpu, resolve_on_gpu
from tests.support.starting import start

DATA = np.random.default_rng(7).standard_normal((3000, 8), dtype=np.float32)
MEMORY = 1 << 20


@pytest.fixture(autouse=True)
def pinned() -> None:
    """Calls of the driver are counted: what is pinned for all runs is pinned before."""
    resolve_on_gpu(fc.source(DATA) * 2)


def some_of_everything() -> tuple[Element, ...]:
    """A scan, a softmax, folds of columns and on the host, windows, a selection, runs, a host function."""
    x = fc.source(DATA)
    y = fc.nn.softmax(x)
    picked = x[x[:, 0] > 0][:, 1]
    windows = fc.window(x[:, 0] * 2, size=5).mean(axis=1)
    shifted = fc.host(lambda a: a - 1, y[:, 0], shape=(), dtype="f4")
    return (fc.cumulative_sum(x, axis=0) - y, y.sum(axis=0), windows, picked, fc.cut(picked, 7, tail="drop"), shifted)


def two_kernels(path: Path) -> tuple[Element, ...]:
    """Two kernels that depend on each other, a scan and a fold, and a file."""
    x = fc.source(DATA[:300])
    return (x.sum(axis=0), (fc.cumulative_sum(x, axis=0) * 2) >> fc.save(path), fc.nn.softmax(x))


def same(left: object, right: object) -> bool:
    return np.asarray(left).tobytes() == np.asarray(right).tobytes()


def assert_nothing_is_left(folder: Path) -> None:
    assert not [one.name for one in threading.enumerate() if one.name.startswith("flowcompute-")]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("most_bytes", [60_000, 2_000])
def test_slices_change_no_bit(most_bytes: int) -> None:
    expected = resolve_on_gpu(*some_of_everything(), memory=MEMORY)
    with FaultyDriver(most_bytes=most_bytes), pytest.warns(fc.DeviceWarning, match="no room on .* records of "):
        run = start(job_on_gpu(plan_for_gpu(*some_of_everything(), memory=MEMORY)), progress=False).wait()
    assert [same(*pair) for pair in zip(run.values, expected, strict=True)] == [True] * len(expected)
    assert any("from there on" in note for note in run.notes)


def test_a_limit_of_all_buffers_together_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = resolve_on_gpu(*some_of_everything(), memory=MEMORY)
    device = gpu_shaped().device
    plan = plan_for_gpu(*some_of_everything(), memory=MEMORY)
    monkeypatch.setattr(device, "capabilities", dataclasses.replace(device.capabilities, memory_bytes=60_000))
    with pytest.warns(fc.DeviceWarning, match="the limit is 60000 bytes"):
        run = start(job_on_gpu(plan), progress=False).wait()
    assert [same(*pair) for pair in zip(run.values, expected, strict=True)] == [True] * len(expected)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_no_room_now_and_then_changes_no_bit_at_any_depth(depth: int) -> None:
    strategy = fc.Strategy(joined_batches=1, depth=depth, batch_bytes=8000)
    expected = resolve_on_gpu(*some_of_everything(), memory=MEMORY, strategy=strategy)
    for seed in (depth, depth + 4):
        with FlakyDriver(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore", fc.DeviceWarning)
            again = resolve_on_gpu(*some_of_everything(), memory=MEMORY, strategy=strategy)
        assert [same(*pair) for pair in zip(again, expected, strict=True)] == [True] * len(expected), seed


def test_no_room_to_note_where_a_scan_stands_changes_no_bit() -> None:
    """Before a batch that was uploaded, and after a selection was computed of the one before."""
    strategy = fc.Strategy(joined_batches=1, depth=4, batch_bytes=8000)
    expected = resolve_on_gpu(*some_of_everything(), memory=MEMORY, strategy=strategy)
    real, begun = OpenCLRunner.begin_scan, []

    def begin_scan(self: OpenCLRunner, *arguments: Any) -> Any:
        begun.append(self)
        with self._told(arguments[0]):
            if len(begun) == 4:
                raise driver_error(FULL, "a copy")
        return real(self, *arguments)

    with mock.patch.object(OpenCLRunner, "begin_scan", begin_scan), pytest.warns(fc.DeviceWarning, match="no room"):
        again = resolve_on_gpu(*some_of_everything(), memory=MEMORY, strategy=strategy)
    assert [same(*pair) for pair in zip(again, expected, strict=True)] == [True] * len(expected)


def test_blocks_that_a_kernel_reduces_are_the_floor() -> None:
    total = fc.source(DATA[:, 0].copy()).sum()
    with (
        FaultyDriver(most_bytes=1000),
        pytest.warns(fc.DeviceWarning),
        pytest.raises(fc.DeviceFullError) as caught,
    ):
        resolve_on_gpu(total, memory=MEMORY)
    error = caught.value
    assert (error.element, error.records) == ("sum", (0, 1024))
    assert error.expected == "room for 1024 records at a time"
    assert "MEM_OBJECT_ALLOCATION_FAILURE" in str(error)
    assert "device=" in str(error)


def run_two_kernels(path: Path) -> fc.Run:
    plan = plan_for_gpu(*two_kernels(path), memory=MEMORY, strategy=fc.Strategy(joined_batches=1, batch_bytes=5_000))
    assert plan.batch_items < 300
    return start(job_on_gpu(plan), progress=False).wait()


@pytest.mark.slow
@pytest.mark.parametrize(("code", "stride"), [(FULL, 1), (RESOURCES, 9)])
def test_every_call_may_find_no_room_once(tmp_path: Path, code: int, stride: int) -> None:
    path = tmp_path / "y.npy"
    with FaultyDriver() as sound:
        expected = run_two_kernels(path).values[::2]
    written = path.read_bytes()
    notes, failing = 0, range(0, len(sound.calls), stride)
    for k in failing:
        path.unlink()
        with FaultyDriver(k, code), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            run = run_two_kernels(path)
        assert [same(*pair) for pair in zip(run.values[::2], expected, strict=True)] == [True, True], k
        assert path.read_bytes() == written, k
        # An allocation is tried again, when what waits for its next user has been given back, and so are transfers.
        assert len(told) == len(run.notes) <= 1, k
        notes += len(told)
    assert len(failing) > notes > 0


@pytest.mark.slow
def test_every_call_may_lose_the_device(tmp_path: Path) -> None:
    path = tmp_path / "y.npy"
    # What the first run pins is there for all others.
    run_two_kernels(path)
    with FaultyDriver() as sound:
        run_two_kernels(path)
    path.unlink()
    for k in range(len(sound.calls)):
        # Kept, since a new context means to compile again.
        with (
            mock.patch.object(Device, "give_up") as given_up,
            FaultyDriver(k, LOST, lost=True),
            pytest.raises(fc.DeviceError, match="failed") as caught,
        ):
            run_two_kernels(path)
        error = caught.value
        assert error.element is not None, k
        assert error.site is not None, k
        assert error.records in ((0, 156), (156, 300)), k
        assert error.site.file == __file__
        assert "checkpoint=" in str(error)
        assert given_up.called, k
        assert_nothing_is_left(tmp_path)


def test_the_next_run_starts_the_device_anew(tmp_path: Path) -> None:
    device, doubled = gpu_shaped().device, fc.source(DATA) * 2
    for call in ("Buffer", "enqueue_nd_range_kernel"):
        context = device.context
        with FaultyDriver(call, LOST, lost=True), pytest.raises(fc.DeviceError):
            resolve_on_gpu(doubled)
        assert device.is_given_up(context)
        device.give_up(context)
        assert device.programs == {}
        assert np.array_equal(resolve_on_gpu(doubled)[0], DATA * 2)


def test_a_run_that_loses_its_device_gives_back_what_it_has_of_it(tmp_path: Path) -> None:
    """Pinned memory and threads, though the device has other memory by then."""
    path = tmp_path / "x.npy"
    np.save(path, np.ones(1 << 22, np.float32))
    device, real = gpu_shaped().device, OpenCLRunner._compute
    pinned = device.pinned

    def compute(self: OpenCLRunner, step: Any, batch_slice: Any, outputs: Any) -> None:
        if batch_slice.start:
            with self._told(step):
                raise driver_error(LOST, "a launch")
        real(self, step, batch_slice, outputs)

    with mock.patch.object(OpenCLRunner, "_compute", compute), pytest.raises(fc.DeviceError) as caught:
        resolve_on_gpu(fc.open(path) * 2, strategy=fc.Strategy(batch_bytes=4 << 20))
    path.unlink()
    assert "Key" not in "".join(getattr(caught.value, "__notes__", ()))
    assert device.pinned is not pinned
    assert not pinned.lent_bytes
    assert_nothing_is_left(tmp_path)


def test_a_poisoned_context_that_claims_to_be_full_is_lost(tmp_path: Path) -> None:
    """As NVIDIA's after a kernel that went astray."""
    with (
        mock.patch.object(Device, "give_up"),
        FaultyDriver("finish", RESOURCES, lost=True),
        pytest.raises(fc.DeviceError, match="OUT_OF_RESOURCES") as caught,
    ):
        run_two_kernels(tmp_path / "y.npy")
    assert type(caught.value) is fc.DeviceError


def test_what_had_begun_has_ended_before_it_is_tried_again() -> None:
    """Also in the queue of launches that are timed."""
    job = fc.source(DATA) * 3
    with FaultyDriver() as sound:
        resolve_on_gpu(job)
    at = sound.calls.index("wait", sound.calls.index("enqueue_nd_range_kernel"))
    with FaultyDriver(at) as driver, pytest.warns(fc.DeviceWarning):
        assert np.array_equal(resolve_on_gpu(job)[0], DATA * 3)
    queues = [one for one in gpu_shaped().device._made.values() if isinstance(one, cl.CommandQueue)]
    assert len(queues) > 1
    assert driver.calls[at + 1 : at + 1 + len(queues)] == ["finish"] * len(queues)


def test_a_launch_that_is_refused_is_the_kernels_error(tmp_path: Path) -> None:
    context = gpu_shaped().device.context
    with (
        FaultyDriver("enqueue_nd_range_kernel", REFUSED),
        pytest.raises(fc.KernelError, match="cannot launch or copy") as caught,
    ):
        run_two_kernels(tmp_path / "y.npy")
    assert caught.value.records is not None
    assert not gpu_shaped().device.is_given_up(context)


@pytest.mark.parametrize("device", ["cpu", "numpy"])
def test_a_job_goes_on_from_its_checkpoint(tmp_path: Path, device: str) -> None:
    """On the device started anew, or on another one."""
    data = np.arange(40_000).reshape(5000, 8)

    def job() -> tuple[Element, ...]:
        x = fc.source(data)
        return ((x * 3) >> fc.save(tmp_path / "y.npy"), x.sum(axis=0))

    options = {"checkpoint": tmp_path / "kept", "checkpoint_every": 0, "memory": MEMORY, "progress": False}
    small = fc.Strategy(joined_batches=1, batch_bytes=64 << 10)
    with FaultyDriver() as sound:
        fc.plan(*job(), memory=MEMORY)
        expected = fc.resolve(*job(), memory=MEMORY, device="cpu", strategy=small)
    written = (tmp_path / "y.npy").read_bytes()
    (tmp_path / "y.npy").unlink()
    with FaultyDriver(len(sound.calls) // 2, LOST, lost=True), pytest.raises(fc.DeviceError):
        fc.resolve(*job(), device="cpu", strategy=small, **options)
    assert " of 5,000 records" in str(fc.thaw(tmp_path / "kept"))
    warned = pytest.warns(fc.CheckpointWarning, match="goes on on")
    with warned if device == "numpy" else contextlib.nullcontext([]) as said:
        run = fc.run(*job(), device=device, **options)
    # The line that runs it, not the thread that found out.
    assert {one.filename for one in said} <= {__file__}
    assert run.values[1].tolist() == expected[1].tolist()
    assert (tmp_path / "y.npy").read_bytes() == written
