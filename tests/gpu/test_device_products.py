"""Folds of products whose state lies on a discrete device, in code for GPUs that PoCL runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.accumulators import make_fold
from flowcompute.engine.batch_slice import BatchSlice
from flowcompute.errors import DeviceFullError, DeviceWarning, RunError
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.gpu.run.built_kernels import BuiltKernels
from flowcompute.gpu.run.folds.device_products import DeviceProducts
from flowcompute.gpu.run.folds.fold_device import FoldDevice, KeptForFolds
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.graph import build_graph
from flowcompute.ir import ProductShape, host_fold
from flowcompute.lower import KernelStyle
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy.strategy import Strategy
from tests.gpu.shapes import gpu_shaped, plan_for_gpu, resolve_on_gpu, run_on_gpu

pytestmark = pytest.mark.compiles

RNG = np.random.default_rng(11)
X = RNG.standard_normal((9001, 300), dtype=np.float32)
Y = RNG.standard_normal((9001, 3), dtype=np.float32)
BLOCK = 2048


def product() -> Any:
    """A product of a source and of what a kernel makes."""
    return fc.source(X, name="x").T @ fc.tanh(fc.source(Y, name="y"))


def in_small_batches(records: int) -> Strategy:
    return Strategy(batch_bytes=records * (X.shape[1] + Y.shape[1]) * 4, joined_batches=1)


@contextmanager
def states(left: int, right: int | None, dtype: str) -> Iterator[Any]:
    """Make states of a fold of rows of so many numbers; of one operand where `right` is None."""
    one = fc.source(np.zeros((1, left), dtype))
    made = one.T @ (one if right is None else fc.source(np.zeros((1, right), dtype)))
    graph = build_graph([made])
    node = graph.nodes[graph.roots[0]]
    assert node.op is not None
    spec = host_fold(node.op.name, [graph.nodes[i].spec for i in node.inputs], node.attrs, node.spec)
    device, built = gpu_shaped().device, BuiltKernels()
    launcher = LocalLauncher(device, 0)
    style = KernelStyle(device.capabilities)
    there = FoldDevice(
        device, launcher.memory, launcher, lambda kernel: built.get(kernel, launcher), style, KeptForFolds()
    )
    try:
        yield spec, lambda length=None, **of: DeviceProducts(node, spec, there, length, stays=False, **of)
    finally:
        launcher.close()


def test_bits_follow_from_the_records_alone() -> None:
    assert ProductShape(1, X.shape[1], Y.shape[1]).block == BLOCK
    found = [resolve_on_gpu(product(), strategy=in_small_batches(records))[0] for records in (700, 3000, 20_000)]
    wanted = X.astype("f8").T @ np.tanh(Y.astype("f8"))
    np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=2e-4)
    assert found[0].dtype == np.float32
    assert len({one.tobytes() for one in found}) == 1


@pytest.mark.parametrize("records", [0, 1, 5])
def test_few_records_and_none(records: int) -> None:
    x, y = fc.source(X[:records, :4]), fc.exp(fc.source(Y[:records]))
    (made,) = resolve_on_gpu(x.T @ y)
    np.testing.assert_allclose(made, X[:records, :4].T @ np.exp(Y[:records]), rtol=1e-5, atol=1e-5)


def test_rows_of_matrices_count_like_records() -> None:
    x, y = X[:600, :280].reshape(600, 14, 20), Y[:600]

    def gradient() -> Any:
        weights = fc.parameter(np.ones((20, 3), np.float32))
        return fc.grad((fc.exp(fc.source(x) @ weights * 0.01) * fc.source(y)[:, None]).sum(), weights)

    found = [resolve_on_gpu(gradient(), strategy=Strategy(batch_bytes=size))[0] for size in (1 << 14, 1 << 20)]
    slopes = np.exp(x.astype("f8").sum(-1) * 0.01)[..., None] * y[:, None] * 0.01
    np.testing.assert_allclose(found[0], np.einsum("ntd,nte->de", x, slopes), rtol=1e-4, atol=1e-4)
    assert found[0].tobytes() == found[1].tobytes()
    assert "fold grad on the device" in str(plan_for_gpu(gradient()))


def test_nothing_of_a_batch_is_brought_to_the_host() -> None:
    with mock.patch.object(Transfers, "download", autospec=True, side_effect=Transfers.download) as download:
        resolve_on_gpu(product(), strategy=in_small_batches(3000))
    assert [call.args[2].shape for call in download.call_args_list] == [(300, 3)]


@pytest.mark.parametrize(("left", "right", "dtype"), [(20, 12, "f4"), (17, None, "f8")])
def test_states_go_on_from_any_record(left: int, right: int | None, dtype: str) -> None:
    with states(left, right, dtype) as (spec, begin):
        block = ProductShape.of(spec).block
        values = [RNG.standard_normal((5 * block + 77, one.item_numbers)).astype(dtype) for one in spec.operands]
        whole = begin()
        whole.push_records(values)
        wanted = whole.result()
        exact = values[0].astype("f8").T @ values[-1]
        np.testing.assert_allclose(wanted, exact, rtol=1e-4, atol=1e-2 if dtype == "f4" else 1e-9)
        # In pieces, each by a state that was put back from the one before.
        state, places = begin(), [0, 1, block - 1, block + 5, 3 * block, 5 * block + 76, len(values[0])]
        for first, stop in zip(places, places[1:], strict=False):
            state.push_records([one[first:stop] for one in values])
            kept = state.snapshot()
            state = begin()
            state.restore(kept)
        assert state.result().tobytes() == wanted.tobytes()
        # What a device has begun the host goes on with, to other last bits of the blocks that it multiplies.
        host = make_fold(spec)
        host.restore(kept)
        np.testing.assert_allclose(host.result(), exact, rtol=1e-4, atol=1e-2 if dtype == "f4" else 1e-9)


@pytest.mark.parametrize("right", [12, None])
def test_records_that_are_all_there_are_multiplied_where_they_lie(right: int | None) -> None:
    with states(20, right, "f4") as (spec, begin):
        block = ProductShape.of(spec).block
        for records, is_whole in ((64, True), (60, False), (block, True), (block + 64, False)):
            made = []
            for in_step in (False, True):
                state = begin(records, in_step=in_step)
                there, places = state._there, range(len(spec.operands))
                arrays = [np.float32(X[:records, i : i + one.item_numbers]) for i, one in enumerate(spec.operands)]
                operands = [there.buffer(("test", records, i), np.dtype("f4"), arrays[i].size) for i in places]
                for array, buffer in zip(arrays, operands, strict=True):
                    there.upload(array, buffer)
                with mock.patch.object(FoldDevice, "copy", autospec=True, side_effect=FoldDevice.copy) as copy:
                    state.prepare(records)(operands)
                assert bool(copy.call_count) is not (is_whole and in_step)
                made.append(state.result().tobytes())
            assert made[0] == made[1]


def test_parts_that_begin_inside_of_a_block_are_joined_to_the_bits_of_the_whole() -> None:
    with states(20, 12, "f4") as (spec, begin):
        block = ProductShape.of(spec).block
        values = [RNG.standard_normal((4 * block + 9, one.item_numbers), dtype=np.float32) for one in spec.operands]
        whole = begin()
        whole.push_records(values)
        parts = []
        for first, stop in ((0, block), (block, 3 * block), (3 * block, len(values[0]))):
            part = begin()
            part.restore(make_fold(spec, first).snapshot())
            part.push_records([one[first:stop] for one in values])
            parts.append(make_fold(spec, first))
            parts[-1].restore(part.snapshot())
            alone = make_fold(spec, first)
            alone.push_records([one[first:stop] for one in values])
            np.testing.assert_allclose(part.result(), alone.result(), rtol=1e-3, atol=1e-2)
        for part in parts[1:]:
            parts[0].merge(part)
        again = begin()
        again.restore(parts[0].snapshot())
        assert again.result().tobytes() == whole.result().tobytes()
        inside = begin()
        inside.restore(make_fold(spec, 5).snapshot())
        inside.push_records([one[5:] for one in values])
        np.testing.assert_allclose(inside.result(), values[0][5:].T @ values[1][5:], rtol=1e-3, atol=1e-2)


def test_a_device_joins_what_others_have_made_of_the_records_that_follow() -> None:
    with states(20, 12, "f4") as (spec, begin):
        block = ProductShape.of(spec).block
        values = [RNG.standard_normal((9 * block + 9, one.item_numbers), dtype=np.float32) for one in spec.operands]
        whole = begin()
        whole.push_records(values)
        wanted = whole.result().tobytes()
        for places in ((0, 4 * block, 8 * block), (0, 3 * block, 5 * block + 1), (0, 7, block + 3), (0, 0, 2 * block)):
            # One after the other: all states of a fold lie in the same buffers.
            parts = []
            for first, stop in zip(places, [*places[1:], len(values[0])], strict=True):
                part = begin()
                part.restore(make_fold(spec, first).snapshot())
                part.push_records([one[first:stop] for one in values])
                parts.append(make_fold(spec, first))
                parts[-1].restore(part.snapshot())
            joined = begin()
            joined.restore(parts[0].snapshot())
            for host in parts[1:]:
                joined.merge(host)
            assert joined.records == len(values[0])
            assert joined.result().tobytes() == wanted, places
        with pytest.raises(ValueError, match="do not follow"):
            joined.merge(make_fold(spec, 3))
        with pytest.raises(ValueError, match="different folds"):
            joined.merge(begin())


def test_blocks_that_are_multiplied_together_have_the_bits_of_single_ones() -> None:
    with states(20, 12, "f4") as (spec, begin):
        block = ProductShape.of(spec).block
        values = [RNG.standard_normal((21 * block + 9, one.item_numbers), dtype=np.float32) for one in spec.operands]
        found = []
        for length in (block, len(values[0])):
            with mock.patch.object(LocalLauncher, "launch", autospec=True, side_effect=LocalLauncher.launch) as launch:
                state = begin(length)
                for first, stop in ((0, block), (block, 5 * block - 1), (5 * block - 1, len(values[0]))):
                    state.push_records([one[first:stop] for one in values])
            found.append((state.result().tobytes(), launch.call_count))
            assert state._together == (1 if length == block else 16)
        assert found[0][0] == found[1][0]
        assert found[0][1] > 2 * found[1][1]


def test_folds_of_several_sizes_share_what_is_used_within_a_launch() -> None:
    x, y = X[:, :20], np.tanh(X[:, 20:32])
    found = []
    for size in (1 << 18, 1 << 20):
        one, other = fc.source(x), fc.source(y)
        # The second fold replaces the buffers of the first, before either multiplies.
        strategy = Strategy(batch_bytes=size, joined_batches=1)
        found.append(resolve_on_gpu((other * 2).T @ other, (one * 2).T @ other, (one + 1).T @ one, strategy=strategy))
    for mine, again, wanted in zip(*found, (2 * y.T @ y, 2 * x.T @ y, (x + 1).T @ x), strict=True):
        assert mine.tobytes() == again.tobytes()
        np.testing.assert_allclose(mine, wanted, rtol=1e-3, atol=1e-2)
    plan = plan_for_gpu((fc.source(y) * 2).T @ fc.source(y), (fc.source(x) * 2).T @ fc.source(x))
    assert [what for what, _ in plan.memory.device_items].count("products of blocks x 1") == 1


def test_a_plan_counts_the_largest_of_each_buffer_that_folds_share() -> None:
    """One fold is wide on the left, and one on the right."""
    x, y = fc.source(np.zeros((20_000, 300), np.float32)), fc.source(np.zeros((20_000, 3), np.float32))
    items = dict(plan_for_gpu(x.T @ y, (y * 2).T @ (x * 2)).memory.device_items)
    assert items["products of blocks x 1"] == 4 * (8 * BLOCK * (300 + 300) + 8 * 900)


def test_a_short_stream_has_the_buffers_that_its_plan_counts() -> None:
    x, y = fc.source(X[:100]), fc.source(Y[:100])
    taken: dict[Any, int] = {}
    buffer = FoldDevice.buffer

    def noted(self: FoldDevice, key: Any, dtype: Any, numbers: int) -> Any:
        taken[key] = numbers * dtype.itemsize
        return buffer(self, key, dtype, numbers)

    with mock.patch.object(FoldDevice, "buffer", noted):
        plan = run_on_gpu(x.T @ (y * 2)).plan
    items = {what: size for what, size in plan.memory.device_items if "fold" in what or "products of" in what}
    assert sum(taken.values()) == sum(items.values())


def test_states_of_other_folds_are_refused() -> None:
    with states(20, 12, "f4") as (spec, begin):
        state = begin()
        state.push_records([np.ones((ProductShape.of(spec).block + 1, n), np.float32) for n in (20, 12)])
        kept = state.snapshot()
    with states(21, 12, "f4") as (_, begin):
        with pytest.raises(ValueError, match=r"records of .* in place of rows of"):
            begin().restore(kept)
        kept["tail"] = []
        with pytest.raises(ValueError, match="a node of float64"):
            begin().restore(kept)


def test_a_frozen_job_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)

    def job() -> Any:
        return fc.open(tmp_path / "x.npy").T @ fc.tanh(fc.open(tmp_path / "y.npy"))

    def freeze(run: fc.Run) -> None:
        if run.progress.items >= 3000:
            run.freeze()

    strategy = in_small_batches(900)
    (wanted,) = run_on_gpu(job(), strategy=strategy).values
    with pytest.raises(RunError, match="was frozen"):
        run_on_gpu(job(), strategy=strategy, checkpoint=tmp_path / "kept", on_batch=freeze)
    (got,) = run_on_gpu(job(), strategy=in_small_batches(2500), checkpoint=tmp_path / "kept").values
    assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()


def test_records_count_once_where_a_later_kernel_has_no_room() -> None:
    original, failed = OpenCLRunner.run, []

    def run(self: OpenCLRunner, step: RegionStep, taken: BatchSlice, outputs: Any) -> None:
        if "exp" in step.name and len(failed) < 2:
            failed.append(taken.start)
            raise DeviceFullError("no room", element=step.name)
        original(self, step, taken, outputs)

    def job() -> list[Any]:
        y = fc.tanh(fc.source(Y))
        return [fc.source(X).T @ y, fc.exp(fc.sum(y, axis=1))]

    wanted = resolve_on_gpu(*job(), strategy=in_small_batches(3000))
    with mock.patch.object(OpenCLRunner, "run", run), pytest.warns(DeviceWarning):
        got = resolve_on_gpu(*job(), strategy=in_small_batches(3000))
    assert failed
    assert [one.tobytes() for one in got] == [one.tobytes() for one in wanted]


def test_plans_say_where_the_state_lies() -> None:
    text = str(plan_for_gpu(product()))
    assert "fold matmul on the device" in text
    assert "cut at matmul: its state lies on the device" in text
    whole = fc.source(np.ones((8, 3), np.int64))
    viewed = fc.source(X).T @ fc.source(Y)[:, ::-1]
    for made in (whole.T @ whole, viewed):
        assert "on the device" not in str(plan_for_gpu(made)).partition("memory")[0]
