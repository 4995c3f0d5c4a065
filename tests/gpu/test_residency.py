"""Resident operands that do not fit a discrete device together pass through it: the same bits, within its budget."""

from __future__ import annotations

import threading
from typing import Any
from unittest import mock

import gguf
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import DeviceError, PlanError
from flowcompute.gpu.device.device import Device
from flowcompute.gpu.device.pinned_memory import PinnedMemory
from flowcompute.gpu.memory.device_memory import DeviceMemory
from flowcompute.gpu.memory.transfers import Transfers
from tests.gpu.faulty_driver import LOST, driver_error
from tests.gpu.shapes import plan_for_gpu, run_on_gpu

DRAW = np.random.default_rng(8)
DATA = DRAW.standard_normal((2_000, 64), dtype=np.float32)
WEIGHTS = [DRAW.standard_normal((64, 64), dtype=np.float32) / 8 for _ in range(4)]
"""16 KiB each."""


def network(data: np.ndarray = DATA) -> fc.Element:
    """Four layers, and a small operand that is read cyclically."""
    x: fc.Element = fc.source(data) + np.arange(64, dtype=np.float32)
    for weight in WEIGHTS:
        x = fc.maximum(x @ weight, 0)
    return x


@pytest.fixture(scope="module")
def whole() -> fc.Run:
    run = run_on_gpu(network())
    assert not run.plan.passes[0].streamed
    assert not any("between kernels" in what for what, _ in run.plan.memory.items), "on the device only"
    return run


@pytest.mark.parametrize(("budget", "streamed"), [("150KiB", 3), ("140KiB", 4)])
def test_what_does_not_fit_passes_through(whole: fc.Run, budget: str, streamed: int) -> None:
    memories: list[DeviceMemory] = []
    made = DeviceMemory.__init__

    def watch(self: DeviceMemory, *arguments: Any) -> None:
        made(self, *arguments)
        memories.append(self)

    unpin = PinnedMemory.unpin
    with (
        mock.patch.object(DeviceMemory, "__init__", watch),
        mock.patch.object(PinnedMemory, "unpin", autospec=True, side_effect=unpin) as unpinned,
    ):
        run = run_on_gpu(network(), device_memory=budget)
    assert len(unpinned.mock_calls) == streamed, "each is pinned once, for the whole run"
    assert run.value.tobytes() == whole.value.tobytes()
    [one] = run.plan.passes
    assert len(one.streamed) == streamed
    said = [reason.element for reason in run.plan.reasons if "uploaded anew for each of" in str(reason)]
    assert len(said) == streamed
    assert "buffers of streamed operands x 2" in str(run.plan)
    limit = int(budget.removesuffix("KiB")) << 10
    assert run.plan.memory.device_bytes <= limit
    assert max(memory._arena.peak_bytes for memory in memories) <= limit


def test_the_next_operand_comes_while_a_kernel_works(whole: fc.Run) -> None:
    """A launch and the upload of what the next one reads wait for each other."""
    meeting, real = threading.Barrier(2), DeviceMemory.finish
    prefetch, met = DeviceMemory.prefetch, []

    def uploading(self: DeviceMemory, key: Any, array: np.ndarray, pinned: np.ndarray | None = None) -> None:
        prefetch(self, key, array, pinned)
        assert self._prefetcher is not None
        if not met:
            met.append(self._prefetcher.submit(meeting.wait, 20))

    def finish(self: DeviceMemory, outputs: Any) -> None:
        if len(met) == 1:
            met.append(meeting.wait(20))
        real(self, outputs)

    with (
        mock.patch.object(DeviceMemory, "prefetch", uploading),
        mock.patch.object(DeviceMemory, "finish", finish),
    ):
        run = run_on_gpu(network(), device_memory="140KiB")
    assert len(met) == 2
    assert run.value.tobytes() == whole.value.tobytes()


def test_batches_shrink_before_a_job_is_refused(whole: fc.Run) -> None:
    run = run_on_gpu(network(DATA[:300]), device_memory="100KiB")
    assert run.plan.batch_items < whole.plan.batch_items
    assert run.value.tobytes() == whole.value[:300].tobytes()


def test_an_upload_ahead_that_fails_is_told() -> None:
    real, calls = DeviceMemory.prefetch, []

    def failing(self: DeviceMemory, key: Any, array: np.ndarray, pinned: np.ndarray | None = None) -> None:
        calls.append(key)
        if len(calls) != 3:
            real(self, key, array, pinned)
            return
        with mock.patch.object(self._transfers, "upload", side_effect=driver_error(LOST, "a wire")):
            real(self, key, array, pinned)
            assert self._prefetcher is not None
            self._prefetcher.submit(lambda: None).result()

    with (
        mock.patch.object(DeviceMemory, "prefetch", failing),
        mock.patch.object(Device, "give_up"),
        pytest.raises(DeviceError, match="a wire") as caught,
    ):
        run_on_gpu(network(), device_memory="140KiB")
    assert caught.value.records is not None
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("flowcompute")]


@pytest.mark.slow
def test_only_chosen_matrices_pass_through() -> None:
    """Of 64 matrices of 4 KiB in blocks records choose three; ordinary factors come before and after them."""
    matrices = DRAW.standard_normal((3, 64, 64, 64), dtype=np.float32) / 8
    chosen = fc.source(DRAW.integers(0, 3, (300, 2)) * 20)
    x: Any = fc.source(DATA[:300]) @ WEIGHTS[0]
    for every in matrices:
        blocks = gguf.quants.quantize(every, gguf.GGMLQuantizationType.Q8_0)
        x = fc.nn.experts(x, fc.dequantize(fc.constant(blocks), "Q8_0"), chosen)
    x = (x * 2).sum(axis=1) @ WEIGHTS[1]
    table_bytes = blocks.nbytes
    uploaded: list[int] = []
    upload = Transfers.upload

    def count(self: Transfers, array: np.ndarray, *arguments: Any, **options: Any) -> Any:
        uploaded.append(array.nbytes)
        return upload(self, array, *arguments, **options)

    with mock.patch.object(Transfers, "upload", count):
        alone = run_on_gpu(x)
        at_once, uploaded[:] = max(uploaded), []
        run = run_on_gpu(x, device_memory=table_bytes * 5 // 2)
    [one] = run.plan.passes
    assert at_once == table_bytes
    assert len(one.streamed) >= 2
    assert one.length is not None
    assert one.length > one.batch_items
    assert run.value.tobytes() == alone.value.tobytes()
    assert max(uploaded) < table_bytes // 8
    assert "the chosen matrices of" in str(run.plan)


@pytest.mark.parametrize("size", ["nothing", 0, "-1MiB"])
def test_a_budget_that_is_none(size: Any) -> None:
    with pytest.raises(PlanError, match="device_memory="):
        fc.plan(fc.source(DATA) * 2, device_memory=size)


def test_an_operand_that_fits_needs_no_second_buffer() -> None:
    """Keys that are values too: read as a whole, and larger than half of the budget."""
    keys = fc.constant(DATA[:400])
    plan = plan_for_gpu(fc.nn.attention(fc.source(DATA[:32].reshape(4, 8, 64)), keys, keys), device_memory="130KiB")
    assert not plan.passes[0].streamed
    assert plan.memory.device_bytes < 130 << 10 < 2 * keys.spec.item_bytes
