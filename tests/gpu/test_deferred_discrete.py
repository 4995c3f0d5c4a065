"""Launches over few records are not waited for one by one on discrete devices, where nothing between crosses the bus."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements import Kind
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.memory.device_memory import DeviceMemory
from flowcompute.gpu.memory.transfers import Transfers
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.schedule import NodeStep
from tests.gpu.shapes import gpu_shaped
from tests.gpu.test_deferred import CONTEXT, WEIGHTS, WIDTH, attending, layers, numbers, wanted
from tests.quantized.blocks import tame

pytestmark = pytest.mark.slow


@pytest.fixture
def discrete() -> Iterator[None]:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        yield


@pytest.mark.usefixtures("discrete")
def test_a_discrete_device_is_waited_for_once_a_batch() -> None:
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    with layers(feed).flow(device="gpu") as flow:
        for seed in range(12):
            flow.send(numbers(3, seed))
            np.testing.assert_array_equal(flow.receive(), wanted(numbers(3, seed)))
        with (
            mock.patch.object(DeviceMemory, "finish", autospec=True, side_effect=DeviceMemory.finish) as waits,
            mock.patch.object(Transfers, "upload", autospec=True, side_effect=Transfers.upload) as uploads,
            mock.patch.object(Transfers, "download", autospec=True, side_effect=Transfers.download) as downloads,
            mock.patch.object(OpenCLRunner, "_argument", autospec=True, side_effect=OpenCLRunner._argument) as looked,
        ):
            flow.send(numbers(3))
            np.testing.assert_array_equal(flow.receive(), wanted(numbers(3)))
    # What was sent crosses once, and so does what is received.
    assert (waits.call_count, uploads.call_count, downloads.call_count) == (1, 1, 1)
    # All launches are repeated: what was sent is uploaded to where the first one reads, and the last one is fetched from.
    looked.assert_not_called()


@pytest.mark.usefixtures("discrete")
def test_numbers_that_the_host_counts_come_from_no_device() -> None:
    """The host adds up one number for each record. It came from a kernel, for which each record waited."""
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    made = layers(feed + fc.nn.position(feed).astype("float32")[:, None])
    data, start = numbers(40), 0
    expected = wanted(data + np.arange(40, dtype=np.float32)[:, None])
    with (
        made.flow(device="gpu") as flow,
        mock.patch.object(Transfers, "download", autospec=True, side_effect=Transfers.download) as downloads,
    ):
        steps = flow.plan.passes[0].steps[:3]
        assert [isinstance(step, NodeStep) and step.node.kind for step in steps] == [Kind.ELEMENTWISE, Kind.SCAN, False]
        for records in (3, *[1] * 9, 4, *[3] * 8):
            downloads.reset_mock()
            flow.send(data[start : start + records])
            np.testing.assert_array_equal(flow.receive(), expected[start : start + records])
            start += records
            assert downloads.call_count == 1


@pytest.mark.usefixtures("discrete")
@pytest.mark.parametrize("with_text", [False, True], ids=["one text", "texts"])
def test_a_discrete_device_repeats_launches_with_a_carry(with_text: bool) -> None:
    data = np.concatenate([numbers(CONTEXT), np.arange(CONTEXT, dtype=np.float32)[:, None] // 17], axis=1)
    whole = attending(fc.source(data), with_text).resolve(device="gpu", progress=False)
    lengths: list[int] = []
    original = OpenCLRunner.repeat

    def repeat(runner: OpenCLRunner, known: list[object], taken: object) -> bool:
        done = original(runner, known, taken)  # type: ignore[arg-type]
        lengths.append(len(known) if done else 0)
        return done

    made = attending(fc.feed(shape=(WIDTH + 1,), dtype="float32"), with_text)
    with mock.patch.object(OpenCLRunner, "repeat", repeat), made.flow(device="gpu") as flow:
        start = 0
        # More records than before need larger buffers, of which repeated launches must not know the old ones.
        for records in (2, *[1] * 9, 7, *[1] * 7, 3, 3, 3, 3, *[1] * 11):
            flow.send(data[start : start + records])
            np.testing.assert_array_equal(flow.receive(), whole[start : start + records])
            start += records
    assert start == CONTEXT
    assert max(lengths) > 0


@pytest.mark.compiles
@pytest.mark.usefixtures("discrete")
def test_kernels_of_few_records_are_repeated_in_stretches() -> None:
    """Their launches were looked up one by one: a stretch was sought among the kernels of many records."""
    x: fc.Element = fc.feed(shape=(64,), dtype="float32")
    for seed in range(4):
        x = fc.clip(x @ fc.dequantize(fc.constant(tame("Q8_0", 64, 2, seed)), "Q8_0").T, -1, 1)
    batches = np.random.default_rng(0).standard_normal((12, 1, 64), dtype=np.float32)
    with (
        mock.patch.object(OpenCLRunner, "repeat", autospec=True, side_effect=OpenCLRunner.repeat) as repeat,
        x.flow(device="gpu") as flow,
    ):
        kernels = [one.ir for one in flow.plan.kernels]
        assert all(one.few is not None for one in kernels)
        made = [(flow.send(batch), flow.receive())[1] for batch in batches]
        lengths = [len(call.args[1]) for call in repeat.call_args_list]
    # All kernels but the one that writes what is received.
    assert max(lengths, default=0) == len(kernels) - 1
    with x.flow(device="gpu") as flow:
        flow.send(batches.reshape(-1, 64))
        np.testing.assert_array_equal(np.concatenate(made), flow.receive())


@pytest.mark.usefixtures("discrete")
def test_weights_that_come_in_parts_are_waited_for() -> None:
    weights = np.random.default_rng(3).integers(-1, 2, (4, 64, 64)).astype(np.float32)
    feed = fc.feed(shape=(64,), dtype="float32")
    made: fc.Element = feed
    for one in weights:
        made = fc.clip(made @ fc.constant(one), -8, 8)
    with made.flow(device="gpu", device_memory="60KiB") as flow:
        assert flow.plan.passes[0].streamed
        for seed in range(6):
            expected = batch = np.random.default_rng(seed).integers(-2, 3, (2, 64)).astype(np.float32)
            for one in weights:
                expected = np.clip(expected @ one, -8, 8)
            flow.send(batch)
            np.testing.assert_array_equal(flow.receive(), expected)


@pytest.mark.parametrize("device", ["gpu", "numpy"])
@pytest.mark.usefixtures("discrete")
def test_views_that_only_kernels_read_are_no_steps(device: str) -> None:
    """A step of their own would bring what they are views of to the host."""
    x = fc.source(numbers(40))
    heads = fc.reshape(x @ fc.constant(WEIGHTS[0]), (-1, 2, 4))
    seen = fc.sum(heads[:, :, ::-1] * heads, axis=2) @ fc.constant(np.ones((2, 3), np.float32))
    asked = fc.host(np.negative, heads[:, 0], shape=(4,), dtype="float32")

    def views(*roots: fc.Element) -> list[str]:
        (one_pass,) = fc.plan(*roots, device=device).passes
        return [step.name for step in one_pass.steps if isinstance(step, NodeStep) and step.node.kind is Kind.VIEW]

    assert bool(views(seen)) == (device == "numpy")
    # What the host asks for is there.
    assert len(views(asked)) == 2
    options = {"device": device, "progress": False}
    np.testing.assert_array_equal(fc.resolve(asked, **options), -(numbers(40) @ WEIGHTS[0]).reshape(-1, 2, 4)[:, 0])
