"""Factors of products that are larger than a discrete device pass through it in panels: the same bits, within budget."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import DeviceFullError, PlanError
from flowcompute.fuse.weight_tiles import WeightTiles
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.memory.device_buffers import as_lines, copy_lines
from flowcompute.gpu.memory.device_memory import DeviceMemory
from flowcompute.gpu.memory.streamed_weights import StreamedWeights
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.lower.forms import lower
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.schedule.placement import weight_residency as residency
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import NVIDIA
from tests.gpu import shapes
from tests.gpu.emulator import emulate
from tests.gpu.shapes import gpu_shaped
from tests.gpu.tensor_devices import GROUPS, plan_on_paper
from tests.gpu.test_sharing import twin
from tests.support.slow import compiled_but


def numbers(*shape: int, dtype: Any = "f4") -> np.ndarray:
    drawn = np.random.default_rng(shape).standard_normal(shape)
    return (drawn * 100 if np.dtype(dtype).kind == "i" else drawn).astype(dtype)


def layer(records: int = 60) -> fc.Element:
    """Rows of 40 times 40 x 999 (156 KiB), a bias and an activation."""
    x = fc.source(numbers(records, 40)) @ numbers(40, 999)
    return fc.maximum(x + numbers(999), 0)


JOBS: dict[str, tuple[Callable[[], fc.Element], str]] = {
    "columns, bias and activation": (layer, "120KiB"),
    "columns of integers": (lambda: fc.source(numbers(60, 40, dtype="i4")) @ numbers(40, 999, dtype="i4"), "120KiB"),
    "columns of halves, a long sum": (
        lambda: fc.maximum(fc.source(numbers(60, 600, dtype="f2")) @ numbers(600, 250, dtype="f2"), 0),
        "160KiB",
    ),
    "columns of a stack of matrices": (
        lambda: fc.source(numbers(5, 3, 8, 40)) @ numbers(3, 40, 333) + numbers(8, 333),
        "180KiB",
    ),
    "rows of a stack of matrices": (
        lambda: numbers(3, 333, 40) @ fc.source(numbers(5, 3, 40, 8)) + numbers(333, 1),
        "150KiB",
    ),
    "columns of weights kept as integers": (
        lambda: fc.source(numbers(60, 40)) @ (fc.constant(numbers(40, 999, dtype="i1")).astype("f4") * numbers(999)),
        "30KiB",
    ),
    "rows of weights kept as integers": (
        lambda: (
            (fc.constant(numbers(999, 40, dtype="i1")).astype("f4") * numbers(999, 1)) @ fc.source(numbers(4, 40, 8))
        ),
        "140KiB",
    ),
    "weights of a convolution": (
        lambda: fc.nn.gelu(fc.nn.conv2d(fc.source(numbers(6, 7, 5, 6)), numbers(300, 7, 3, 3), numbers(300))),
        "70KiB",
    ),
}


WHOLE = fc.Strategy(joined_batches=1, batch_bytes=1 << 14, tile_rows=16, tile_columns=32)
PANELS = fc.Strategy(joined_batches=1, batch_bytes=1 << 14, tile_rows=16, tile_columns=16)


def run_on_gpu(*roots: fc.Element, **options: Any) -> fc.Run:
    """With tiles of another size where operands come in panels; smaller ones are compiled in less time."""
    strategy = PANELS if "device_memory" in options else WHOLE
    return shapes.run_on_gpu(*roots, **{"strategy": strategy, **options})


def values_of(run: fc.Run) -> bytes:
    return np.asarray(run.value).tobytes()


@pytest.mark.parametrize("name", compiled_but(["columns, bias and activation", "rows of a stack of matrices"], JOBS))
def test_panels_have_the_bits_of_the_whole(name: str) -> None:
    make, budget = JOBS[name]
    run = run_on_gpu(make(), device_memory=budget)
    [weight_tiles] = run.plan.passes[0].weight_tiles.values()
    assert weight_tiles.count > 2
    assert weight_tiles.total % weight_tiles.size, "the last panel shares numbers with the one before it"
    assert values_of(run) == values_of(run_on_gpu(make()))
    if run.value.dtype.kind == "i":
        np.testing.assert_array_equal(run.value, numbers(60, 40, dtype="i4") @ numbers(40, 999, dtype="i4"))


def test_a_factor_that_the_device_computes_is_read_whole() -> None:
    """It stays, while the other residents of the kernel that reads it may be streamed."""
    scale, weights = fc.constant(numbers(8)), fc.exp(fc.constant(numbers(8, 8)))
    x = fc.source(numbers(40, 8)) * scale + 1
    run = run_on_gpu(x @ weights)
    assert run.plan.passes[0].weight_tiles == {}
    np.testing.assert_allclose(run.value, np.asarray(x.resolve()) @ np.asarray(weights.resolve()), rtol=1e-5)


@pytest.fixture(scope="module")
def whole() -> bytes:
    return values_of(run_on_gpu(layer()))


@contextlib.contextmanager
def counted_panels() -> Iterator[list[int]]:
    """The bytes of each panel of `layer` that is uploaded."""
    crossed: list[int] = []
    upload = Transfers.upload

    def count(self: Transfers, array: np.ndarray, *arguments: Any, **options: Any) -> Any:
        crossed.extend([array.nbytes] * (len(array) == 40))
        return upload(self, array, *arguments, **options)

    with mock.patch.object(Transfers, "upload", count):
        yield crossed


@pytest.mark.parametrize(("budget", "launch_bytes"), [(190_000, 3 << 20), (50_000, 3 << 20), (170_000, 1000)])
def test_what_the_plan_says_crosses_the_bus_within_the_budget(budget: int, launch_bytes: int, whole: bytes) -> None:
    memories: list[DeviceMemory] = []
    made = DeviceMemory.__init__

    def watch(self: DeviceMemory, *arguments: Any) -> None:
        made(self, *arguments)
        memories.append(self)

    with (
        mock.patch.object(DeviceMemory, "__init__", watch),
        mock.patch.object(residency, "LAUNCH_COST_BYTES", launch_bytes),
        counted_panels() as crossed,
    ):
        small = dataclasses.replace(PANELS, batch_bytes=min(1 << 14, launch_bytes))
        run = run_on_gpu(layer(), device_memory=budget, strategy=small)
    assert values_of(run) == whole
    assert run.plan.memory.device_bytes <= budget
    assert max(memory._arena.peak_bytes for memory in memories) <= budget
    [one] = run.plan.passes
    [weight_tiles] = one.weight_tiles.values()
    assert (weight_tiles.kept > 1) == (launch_bytes < 1 << 20), (
        "where launches cost little, panels are small and some stay"
    )
    batches, panel_bytes = -(-60 // one.batch_items), 40 * 4 * weight_tiles.size
    streamed = weight_tiles.count - weight_tiles.kept
    # Those that stay come once, and at the end one waits for a batch that does not come.
    assert crossed == [panel_bytes] * (streamed * batches + weight_tiles.kept + 1)
    [said] = [str(reason) for reason in run.plan.reasons if "uploaded anew" in str(reason)]
    assert f"{streamed * panel_bytes} bytes are uploaded anew for each of {batches} batches" in said
    assert f"in {streamed} tiles of {weight_tiles.size} columns" in said
    assert f"(matmul in {weight_tiles.count} tiles): " in str(run.plan)
    assert run.metrics["maximum"].launches == batches * weight_tiles.count


def test_larger_budgets_are_used_for_fewer_uploads(whole: bytes) -> None:
    transfer_plan = []
    for budget in (50_000, 100_000, 190_000, 280_000):
        [one] = shapes.plan_for_gpu(layer(), device_memory=budget, strategy=PANELS).passes
        launches = [weight_tiles.count - 1 for weight_tiles in one.weight_tiles.values()]
        transfer_plan.append((sum(launches), bool(one.streamed), -one.batch_items))
    assert transfer_plan == sorted(transfer_plan, reverse=True)
    assert transfer_plan[-1][:2] == (0, False), "there all of it stays"


def test_what_does_not_fit_in_panels_is_refused_with_the_number() -> None:
    with pytest.raises(PlanError, match="into the device's memory") as caught:
        run_on_gpu(layer(9), device_memory="20KiB")
    least = int(str(caught.value.expected).split()[2])
    assert least < 40 * 999 * 4
    run = run_on_gpu(layer(9), device_memory=least)
    assert values_of(run) == values_of(run_on_gpu(layer(9)))
    with pytest.raises(PlanError, match="cannot fit the smallest batch"):
        run_on_gpu(layer(9), device_memory=least - 200)


def test_what_is_read_as_a_whole_is_named() -> None:
    weight = fc.constant(numbers(40, 999), name="weight")
    read_twice = (fc.source(numbers(9, 40, 40)) @ weight) * weight
    with pytest.raises(PlanError, match=r"weight is read as a whole: only factors of products"):
        run_on_gpu(read_twice, device_memory="100KiB")


def test_a_batch_without_room_begins_again_with_the_first_panel(whole: bytes) -> None:
    real, calls = StreamedWeights.buffer, []

    def buffer(self: StreamedWeights, value: int, launch: int, array: Any) -> Any:
        calls.append(launch)
        if len(calls) == 5:
            raise DeviceFullError("no room", got="a test")
        return real(self, value, launch, array)

    with (
        mock.patch.object(StreamedWeights, "buffer", buffer),
        pytest.warns(fc.DeviceWarning, match="no room on"),
        counted_panels() as crossed,
    ):
        run = run_on_gpu(layer(), device_memory=100_000)
    assert calls[:6] == [0, 1, 2, 3, 4, 0]
    # The fifth had come and was not used, and at the end one waits for a batch that does not come.
    assert len(crossed) == len(calls) - 1 + 2
    assert values_of(run) == whole


def test_a_frozen_job_goes_on_with_another_budget(tmp_path: Path, whole: bytes) -> None:
    np.save(tmp_path / "x.npy", numbers(60, 40))

    def job() -> list[fc.Element]:
        made = fc.maximum(fc.open(tmp_path / "x.npy") @ numbers(40, 999) + numbers(999), 0)
        return [made, made.sum(axis=0)]

    expected = run_on_gpu(*job()).values
    frozen = {"checkpoint": tmp_path / "kept", "on_batch": lambda run: run.freeze()}
    with pytest.raises(fc.RunError, match="frozen"):
        run_on_gpu(*job(), device_memory=100_000, **frozen)
    assert 0 < fc.thaw(tmp_path / "kept").progress.items < 60
    values = run_on_gpu(*job(), device_memory=190_000, checkpoint=tmp_path / "kept").values
    assert [np.asarray(one).tobytes() for one in values] == [np.asarray(one).tobytes() for one in expected]
    assert np.asarray(expected[0]).tobytes() == whole


def test_each_of_several_devices_has_panels(whole: bytes) -> None:
    first = gpu_shaped().device
    run = run_on_gpu(layer(), backend=OpenCLBackend(first, twin(first)), device_memory=190_000)
    assert run.plan.passes[0].weight_tiles
    assert values_of(run) == whole


@pytest.mark.parametrize("left", [False, True])
def test_panels_of_tensor_cores_have_the_bits_of_the_whole(left: bool) -> None:
    x, weight = numbers(3, 24, 40, dtype="f2"), numbers(50, 24, dtype="f2") if left else numbers(40, 50, dtype="f2")
    bias = numbers(50, 1 if left else 50)[:, 0].astype("f2")
    element = weight @ fc.source(x) if left else fc.source(x) @ weight
    plan = plan_on_paper(element + (bias[:, None] if left else bias))
    [step] = [step for step in plan.steps if isinstance(step, RegionStep)]
    assert step.kernel is not None
    assert step.kernel.tensor
    nodes, (out,) = plan.graph.nodes, step.region.outputs
    arrays = {a.value: getattr(nodes[a.value].element, "value", x) for a in step.kernel.arguments}
    arrays[out] = np.empty((3, *nodes[out].spec.shape), nodes[out].spec.dtype)
    [made] = emulate(step.kernel, arrays, 3 * step.kernel.units, GROUPS).values()
    axis = -2 if left else -1
    value = next(i for i, array in arrays.items() if array.shape == weight.shape)
    weight_tiles = WeightTiles.within(value, nodes[value].spec, axis, 1)
    assert weight_tiles is not None
    region = dataclasses.replace(step.region, weight_tiles=weight_tiles)
    kernel = lower(plan.graph, region, KernelStyle(NVIDIA), {}, "k0")
    assert kernel.tensor
    whole = made.reshape(arrays[out].shape)
    for panel in range(weight_tiles.count):
        start, given = weight_tiles.start(panel), {**arrays, value: np.array(weight_tiles.seen(weight, panel))}
        [part] = emulate(kernel, given, 3 * kernel.units, GROUPS, at0=start).values()
        places = range(start, start + weight_tiles.size)
        got = part.reshape(whole.shape).take(places, axis)
        assert got.tobytes() == whole.take(places, axis).tobytes()


@pytest.mark.parametrize(("lines", "width"), [(1, 40), (7, 5), (3, 64)])
def test_lines_are_put_together_wherever_a_piece_begins(lines: int, width: int) -> None:
    base = np.random.default_rng(0).integers(0, 256, (lines, width + 9), np.uint8)
    seen = as_lines(base[:, 3 : 3 + width])
    expected = np.ascontiguousarray(base[:, 3 : 3 + width]).reshape(-1)
    for start in range(lines * width):
        for stop in (start + 1, (start + lines * width + 1) // 2, lines * width):
            target = np.zeros(stop - start, np.uint8)
            copy_lines(seen, start, target)
            assert target.tobytes() == expected[start:stop].tobytes()
