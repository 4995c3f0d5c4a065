"""Launches over few records are not waited for one by one, and the host never sees what is not done."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu.device import Device
from flowcompute.gpu.memory.device_buffers import HostBuffers
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.run.repeating_runner import FEW_IN_PLACE
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.lower.scan.host_reasons import LEAST_SEQUENCES

pytestmark = pytest.mark.slow

LAYERS = 5
WIDTH = 8
WEIGHTS = np.random.default_rng(0).integers(-3, 4, (LAYERS, WIDTH, WIDTH)).astype(np.float32)


def layers(x: fc.Element) -> fc.Element:
    """Return whole numbers out of a kernel for each layer, so that every order of sums has the same bits."""
    for weights in WEIGHTS:
        x = fc.clip(x @ fc.constant(weights), -8, 8)
    return x


def wanted(x: np.ndarray) -> np.ndarray:
    for weights in WEIGHTS:
        x = np.clip(x @ weights, -8, 8)
    return x


def numbers(records: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-5, 6, (records, WIDTH)).astype(np.float32)


@pytest.fixture
def waits() -> Iterator[mock.Mock]:
    with mock.patch.object(HostBuffers, "finish", autospec=True, side_effect=HostBuffers.finish) as counted:
        yield counted


def launches(element: fc.Element) -> int:
    return len(element.plan(device="cpu").kernels)


@pytest.mark.parametrize("records", [1, 2, FEW_IN_PLACE, FEW_IN_PLACE + 1])
def test_few_records_are_waited_for_once(waits: mock.Mock, records: int) -> None:
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    made = layers(feed)
    kernels = launches(made)
    assert kernels == LAYERS
    with made.flow(device="cpu") as flow:
        for seed in range(20):
            batch = numbers(records, seed)
            flow.send(batch)
            waits.reset_mock()
            np.testing.assert_array_equal(flow.receive(), wanted(batch))
        flow.send(batch)
    assert (waits.call_count < kernels) == (records <= FEW_IN_PLACE)


def test_launches_that_are_timed_are_waited_for_once(waits: mock.Mock) -> None:
    """A job of two batches times all of its launches, and waited for each: the processor stood still in between."""
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    with layers(feed).flow(device="cpu") as flow:
        for seed in range(2):
            waits.reset_mock()
            flow.send(numbers(3, seed))
            np.testing.assert_array_equal(flow.receive(), wanted(numbers(3, seed)))
            assert waits.call_count == 1
        rows = [row for row in flow.metrics.values() if row.launches]
        assert [row.launches for row in rows] == [2] * LAYERS
        assert all(row.device_s > 0 for row in rows)


def test_kernels_have_seconds_where_their_first_launches_fail() -> None:
    """Those were counted as timed: nobody looked again before launch 256."""
    finish, left = HostBuffers.finish, [2]

    def refused(self: HostBuffers, outputs: Any) -> None:
        finish(self, outputs)
        left[0] -= 1
        if left[0] >= 0:
            raise fc.DeviceFullError("no room")

    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    with mock.patch.object(HostBuffers, "finish", refused), layers(feed).flow(device="cpu") as flow:
        for seed in range(4):
            with pytest.warns(fc.DeviceWarning, match="no room") if not seed else contextlib.nullcontext():
                flow.send(numbers(8, seed))
            np.testing.assert_array_equal(flow.receive(), wanted(numbers(8, seed)))
        rows = [row for row in flow.metrics.values() if row.launches]
    assert len(rows) == LAYERS
    assert all(row.device_s > 0 for row in rows)


def test_traced_launches_are_waited_for_one_by_one(waits: mock.Mock, tmp_path: Path) -> None:
    """A trace says when each has ended."""
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    with layers(feed).flow(device="cpu", trace=tmp_path / "trace.json") as flow:
        flow.send(numbers(3))
        np.testing.assert_array_equal(flow.receive(), wanted(numbers(3)))
        assert waits.call_count >= LAYERS


def test_each_launch_is_waited_for_where_arrays_are_copied(waits: mock.Mock) -> None:
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    with (
        mock.patch.object(Device, "is_in_place", new=False),
        layers(feed).flow(device="cpu") as flow,
    ):
        for seed in range(20):
            waits.reset_mock()
            flow.send(numbers(3, seed))
            np.testing.assert_array_equal(flow.receive(), wanted(numbers(3, seed)))
    assert waits.call_count >= LAYERS


def test_the_host_reads_what_kernels_have_finished() -> None:
    def halved(x: np.ndarray) -> np.ndarray:
        return np.trunc(x / 2)

    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    between = fc.host(halved, layers(feed), shape=(WIDTH,), dtype="float32")
    again = layers(between)
    # Indices that a kernel computes are checked by the host, and so are sorted records and running sums.
    chosen = fc.take(fc.constant(np.arange(64, dtype=np.float32)), fc.abs(again).astype("int32"), axis=0)
    running = fc.cumulative_sum(chosen, axis=0)
    results = (again, chosen, running, fc.flip(again, axis=1))
    data = numbers(40)
    middle = wanted(np.trunc(wanted(data) / 2))
    expected = (middle, np.abs(middle), np.cumsum(np.abs(middle), axis=0), middle[:, ::-1])
    with fc.open_flow(*results, device="cpu") as flow:
        parts = []
        for start in range(0, len(data), 4):
            flow.send(data[start : start + 4])
            parts.append(flow.receive())
    for number, one in enumerate(expected):
        np.testing.assert_array_equal(np.concatenate([part[number] for part in parts]), one)


def test_kernels_have_ended_when_a_later_step_fails() -> None:
    def fails(x: np.ndarray) -> np.ndarray:
        raise ValueError(f"no {len(x)} records")

    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    made = fc.host(fails, feed[:, :1], shape=(1,), dtype="float32")
    pending = []

    def finish(self: HostBuffers, outputs: object) -> None:
        pending.clear()
        original(self, outputs)

    original, launch = HostBuffers.finish, "flowcompute.gpu.memory.device_memory.HostMemory.defer"
    with (
        mock.patch.object(HostBuffers, "finish", finish),
        mock.patch(launch, lambda memory, held, _: (pending.append(held), memory._deferred.append(held))),
        fc.open_flow(layers(feed), made, device="cpu") as flow,
    ):
        with pytest.raises(fc.FlowError, match="no 2 records"):
            flow.send(numbers(2))
        assert not pending


def test_launches_are_repeated_where_arrays_stay() -> None:
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    with layers(feed).flow(device="cpu") as flow:
        for seed, records in enumerate([3, 3, 3, 3, 1, 3, 3, FEW_IN_PLACE + 5, 3, 3, 0, 1, 1, 1]):
            flow.send(numbers(records, seed))
            np.testing.assert_array_equal(flow.receive(), wanted(numbers(records, seed)))
        with (
            mock.patch.object(OpenCLRunner, "_passing", autospec=True, side_effect=OpenCLRunner._passing) as passing,
            mock.patch.object(OpenCLRunner, "_argument") as derived,
        ):
            flow.send(numbers(1))
            np.testing.assert_array_equal(flow.receive(), wanted(numbers(1)))
    # The first kernel reads what was sent, and the last one writes what is received. All else stays.
    assert [call.args[-1].kind for call in passing.call_args_list] == ["input", "output"]
    derived.assert_not_called()


def test_what_was_sent_is_not_kept() -> None:
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    sent = []
    with layers(feed).flow(device="cpu") as flow:
        for seed in range(8):
            batch = numbers(2, seed)
            sent.append(weakref.ref(batch))
            flow.send(batch)
            flow.receive()
        del batch
        gc.collect()
        assert not any(one() is not None for one in sent)


HEADS, SIZE, CONTEXT = 2, 4, 48


def attending(x: fc.Element, with_text: bool) -> fc.Element:
    """Return layers that attend to earlier records, so that launches with a carry stand between others."""
    text = x[:, WIDTH].astype("int64") if with_text else None
    made = x[:, :WIDTH]
    for weights in WEIGHTS[:2]:
        heads = fc.reshape(made @ fc.constant(weights), (-1, HEADS, SIZE))
        seen = fc.nn.self_attention(heads, heads * 0.5, heads - 1, text=text, context=CONTEXT)
        made = fc.tanh(fc.reshape(seen, (-1, WIDTH)) @ fc.constant(weights))
    return made * 2


@pytest.mark.parametrize("with_text", [False, True], ids=["one text", "texts"])
def test_stretches_of_launches_are_repeated(with_text: bool) -> None:
    data = np.concatenate([numbers(CONTEXT), np.arange(CONTEXT, dtype=np.float32)[:, None] // 17], axis=1)
    whole = attending(fc.source(data), with_text).resolve(device="cpu", progress=False)
    lengths: list[int] = []
    original = OpenCLRunner.repeat

    def repeat(runner: OpenCLRunner, known: list[object], taken: object) -> bool:
        done = original(runner, known, taken)  # type: ignore[arg-type]
        lengths.append(len(known) if done else 0)
        return done

    made = attending(fc.feed(shape=(WIDTH + 1,), dtype="float32"), with_text)
    with mock.patch.object(OpenCLRunner, "repeat", repeat), made.flow(device="cpu") as flow:
        start = 0
        for records in (5, *[1] * 20, 3, *[1] * 8, 4, 4, 4):
            flow.send(data[start : start + records])
            np.testing.assert_array_equal(flow.receive(), whole[start : start + records])
            start += records
    # All kernels but those that read what was sent, or write what is received. The host makes positions in texts.
    assert max(lengths) >= (2 if with_text else launches(made) - 4)


@fc.kernel
def _halved(before: float, x: float) -> float:
    return before * 0.5 + x


def recurring(x: fc.Element) -> fc.Element:
    """Return layers with a recurrence each, wide enough for a kernel that changes what it carries in place."""
    wide = np.linspace(0, 1, LEAST_SEQUENCES // WIDTH, dtype=np.float32)
    for weights in WEIGHTS[:3]:
        spread = fc.reshape(x @ fc.constant(weights), (-1, WIDTH, 1)) * wide
        x = fc.tanh(fc.max(fc.scan(_halved, spread, init=np.zeros(spread.spec.shape, np.float32)), axis=2))
    return x @ fc.constant(WEIGHTS[3])


def test_recurrences_are_repeated_and_taken_back_where_there_is_no_room() -> None:
    data = numbers(40)
    whole = recurring(fc.source(data)).resolve(device="cpu", progress=False)
    made = recurring(fc.feed(shape=(WIDTH,), dtype="float32"))
    lengths: list[int] = []
    repeat, launch = OpenCLRunner.repeat, LocalLauncher.launch
    left = [0]

    def counted(runner: OpenCLRunner, known: list[object], taken: object) -> bool:
        lengths.append(len(known))
        return repeat(runner, known, taken)  # type: ignore[arg-type]

    def refused(own: LocalLauncher, *arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise fc.DeviceFullError("no room")
        return launch(own, *arguments, **options)

    with (
        mock.patch.object(OpenCLRunner, "repeat", counted),
        mock.patch.object(LocalLauncher, "launch", refused),
        made.flow(device="cpu") as flow,
    ):
        kernels = flow.plan.kernels
        assert sum(one.source.count("state0") > 0 for one in kernels) == 3
        for row, batch in enumerate(data):
            # The last launch of a record, behind all recurrences, twice.
            left[0] = len(kernels) if row in (20, 30) else 0
            with pytest.warns(fc.DeviceWarning, match="no room") if row == 20 else contextlib.nullcontext():
                flow.send(batch[None])
            np.testing.assert_array_equal(flow.receive(), whole[row : row + 1])
    assert max(lengths) == len(kernels) - 2


def test_stretches_end_where_arrays_change() -> None:
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    stays, made = layers(feed), layers(feed)[:, :3]
    with fc.open_flow(layers(fc.host(np.negative, stays, shape=(WIDTH,), dtype="float32")), made, device="cpu") as flow:
        for seed, records in enumerate([2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]):
            batch = numbers(records, seed)
            flow.send(batch)
            first, second = flow.receive()
            np.testing.assert_array_equal(first, wanted(-wanted(batch)))
            np.testing.assert_array_equal(second, wanted(batch)[:, :3])


def test_a_launch_that_fails_in_a_stretch_is_named() -> None:
    feed = fc.feed(shape=(WIDTH,), dtype="float32")
    heads = fc.reshape(layers(feed), (-1, HEADS, SIZE))
    seen = fc.nn.self_attention(heads, heads, heads, context=8)
    with fc.tanh(layers(fc.reshape(seen, (-1, WIDTH)))).flow(device="cpu") as flow:
        for seed in range(8):
            flow.send(numbers(1, seed))
            flow.receive()
        with pytest.raises(fc.RunError, match="at most 8 records, as context= says") as raised:
            flow.send(numbers(1))
    assert raised.value.records == (8, 9)
