"""One graph on several devices: the bits of one, whatever is pinned where."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.compute import Compute
from flowcompute.elements.element import Element
from flowcompute.engine.split_backend import SplitBackend
from flowcompute.errors import DeviceFullError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.reference import NumpyBackend
from flowcompute.schedule.memory.in_flight import pinned as in_all
from flowcompute.schedule.steps import RegionStep
from tests.gpu.shapes import gpu_shaped, two_gpus

DATA = np.random.default_rng(3).standard_normal((700, 24), dtype=np.float32)
SEATS = ("gpu", "cpu", "numpy")


def placements() -> SplitBackend:
    """A device across a bus, one in host memory, and NumPy."""
    cpu = OpenCLBackend(select_device("cpu", needs_float64=True))
    return SplitBackend([gpu_shaped(), cpu, NumpyBackend()], {name: at for at, name in enumerate(SEATS)})


def run_placed(*roots: Element, **options: Any) -> fc.Run:
    small = fc.Strategy(joined_batches=1, batch_bytes=1 << 13, depth=options.pop("depth", None))
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=placements()):
        return fc.run(*roots, progress=False, strategy=small, **options)


def pinned(element: Compute, where: str | None) -> Compute:
    return element if where is None else element.on(where)


def program(pins: list[str | None]) -> list[Element]:
    """Streams, rows, folds, a scan, a window, a selection and a second pass, of exact operations."""
    turn = iter(pins)
    x = fc.source(DATA)
    a = pinned(x * 2 + 1, next(turn))
    b = pinned(fc.abs(a - x), next(turn))
    rows = pinned(b.sum(axis=1), next(turn))
    mean = pinned(b.mean(axis=0), next(turn))
    centred = pinned(b - mean, next(turn))
    scanned = pinned(fc.cumulative_sum(rows, axis=0), next(turn))
    chosen = pinned(centred[rows > 30] * 3, next(turn))
    near = pinned(fc.window(a, 3).sum(axis=1), next(turn))
    total = pinned((centred * centred).sum(), next(turn))
    return [centred, scanned, chosen, near, total, rows]


@pytest.fixture(scope="module")
def alone() -> list[bytes]:
    return [np.asarray(value).tobytes() for value in fc.resolve(*program([None] * 9), device="numpy", progress=False)]


@pytest.mark.slow
@settings(max_examples=4)
@given(st.lists(st.sampled_from([None, *SEATS]), min_size=9, max_size=9), st.integers(1, 3))
def test_no_bit_depends_on_where_it_is_computed(alone: list[bytes], pins: list[str | None], depth: int) -> None:
    run = run_placed(*program(pins), depth=depth)
    assert [np.asarray(value).tobytes() for value in run.values] == alone


def test_each_device_computes_what_is_placed_there() -> None:
    x = fc.source(DATA)
    first = (x * 2).on("gpu")
    second = (first + 1).on("cpu")
    third = (second * second).on("gpu")
    fourth = third.sum(axis=0).on("numpy")
    ran: list[tuple[str, str]] = []
    real = OpenCLRunner.run

    def watch(self: OpenCLRunner, step: RegionStep, *rest: Any) -> None:
        ran.append((self.device.capabilities.code_shape, step.name))
        real(self, step, *rest)

    with mock.patch.object(OpenCLRunner, "run", watch):
        run = run_placed(fourth, first)
    assert set(ran) == {("gpu", "multiply"), ("cpu", "add"), ("gpu", "multiply_2")}
    assert run.values[1].tobytes() == (DATA * 2).tobytes()
    wanted = fc.resolve((((x * 2) + 1) * ((x * 2) + 1)).sum(axis=0), device="numpy")
    assert run.values[0].tobytes() == wanted.tobytes()


def test_a_job_with_pins_goes_on_from_its_checkpoint(tmp_path: Path, alone: list[bytes]) -> None:
    pins = ["gpu", "numpy", "cpu", "gpu", None, "gpu", "numpy", "cpu", "gpu"]
    path, seen = tmp_path / "kept", []

    def freeze(run: fc.Run) -> None:
        seen.append(run)
        if len(seen) == 4:
            run.freeze()

    with pytest.raises(fc.RunError, match="was frozen into"):
        run_placed(*program(pins), checkpoint=path, on_batch=freeze)
    done = run_placed(*program(pins), checkpoint=path)
    assert [np.asarray(value).tobytes() for value in done.values] == alone


def test_a_job_whose_equal_operations_are_pinned_differently_is_thawed(tmp_path: Path) -> None:
    """Without the pins there are no other nodes than with them."""
    np.save(tmp_path / "x.npy", DATA)
    x = fc.open(tmp_path / "x.npy")
    roots = [fc.cumulative_sum((x * 2).on("numpy"), axis=0).on("cpu"), (x * 2).sum(axis=0)]
    with pytest.raises(fc.RunError, match="was frozen into"):
        # With more in flight all batches have begun before the first is done.
        run_placed(*roots, checkpoint=tmp_path / "kept", depth=3, on_batch=lambda run: run.freeze())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fc.CheckpointWarning)
        values = fc.thaw(tmp_path / "kept").run(device="numpy", progress=False).values
    wanted = fc.resolve(*roots, device="numpy", progress=False)
    assert [np.asarray(value).tobytes() for value in values] == [value.tobytes() for value in wanted]


def test_a_device_without_room_computes_in_slices(alone: list[bytes]) -> None:
    pins: list[str | None] = ["gpu", "cpu", "gpu", "numpy", "gpu", "gpu", None, "gpu", "cpu"]
    real, failures = OpenCLRunner.run, [3, 9]

    def fail(self: OpenCLRunner, step: RegionStep, *rest: Any) -> None:
        if self.device.capabilities.code_shape == "gpu" and step.region.stream:
            failures[:] = [left - 1 for left in failures if left > 0]
            if 0 in failures:
                raise DeviceFullError("no room", element=step.name, got="as told")
        real(self, step, *rest)

    with mock.patch.object(OpenCLRunner, "run", fail), pytest.warns(fc.DeviceWarning, match="no room"):
        run = run_placed(*program(pins))
    assert [np.asarray(value).tobytes() for value in run.values] == alone
    assert run.notes
    assert all(note.startswith(f"no room on {gpu_shaped().capabilities.name} for ") for note in run.notes)


def test_batches_fit_each_device() -> None:
    x = fc.source(DATA)
    wide = (x * 2).on("gpu") @ np.ones((24, 512), np.float32)
    roots = [(x * 2).on("gpu").sum(axis=1), wide.on("gpu:1")]
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=two_gpus()):
        made = fc.plan(*roots, device_memory="300KiB")
        assert 1 < made.batch_items < 300
        assert made.memory.device_bytes <= 2 * 300 << 10
        with pytest.raises(fc.PlanError, match="cannot fit the operations placed on") as caught:
            fc.plan(*roots, device_memory="40KiB")
    assert "constant alone takes 49152" in str(caught.value)


def test_the_plan_counts_what_is_pinned_for_all_devices() -> None:
    x = fc.source(DATA)
    doubled = ((x * 2).on("gpu") + 1).on("gpu:1")
    # A job that is known to move little pins nothing; nobody knows how many records are selected.
    root = doubled[doubled[:, 0] > -1e9]
    with (
        mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=two_gpus()),
        mock.patch("flowcompute.gpu.memory.device_memory.Transfers", wraps=Transfers) as made,
    ):
        run = fc.run(root, progress=False, memory="1GiB")
    assert run.value.tobytes() == (DATA * 2 + 1).tobytes()
    taken = [call.args[1] for call in made.mock_calls if not call[0]]
    assert len(taken) == 2
    assert dict(run.plan.memory.items)["pinned memory for transfers"] == sum(map(in_all, taken)) > 0


def test_a_flow_with_pins() -> None:
    x = fc.feed((4,), "float32")
    y = ((x * 2).on("gpu") + 1).on("numpy")
    total = y.sum(axis=0).on("cpu")
    with (
        mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=placements()),
        fc.open_flow(y, total) as flow,
    ):
        for part in np.split(np.arange(64, dtype=np.float32).reshape(16, 4), 4):
            flow.send(part)
            assert flow.receive().tobytes() == (part * 2 + 1).tobytes()
        _, sums = flow.resolve()
    assert sums.tobytes() == (np.arange(64, dtype=np.float32).reshape(16, 4) * 2 + 1).sum(axis=0).tobytes()


def test_the_plan_counts_the_memory_of_each_device() -> None:
    weights = np.ones((24, 64), np.float32)
    h = (fc.source(DATA) @ weights).on("gpu")
    run = run_placed(fc.tanh(h).on("cpu"))
    lines = dict(run.plan.memory.device_items)
    assert any("constant" in line for line in lines)
    assert run.plan.memory.device_bytes > weights.nbytes
