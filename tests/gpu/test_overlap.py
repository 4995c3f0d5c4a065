"""Batches that overlap on a device with memory of its own: the same bits for any depth, in the memory of the plan."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.batch import Batch
from flowcompute.engine.pass_executor import PassExecutor
from flowcompute.engine.stream_scheduler import DRAIN, Made
from flowcompute.errors import KernelError, RunError
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.memory.device_buffers import size_class
from flowcompute.gpu.memory.device_memory import DeviceMemory
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from tests.gpu.faulty_driver import REFUSED, driver_error
from tests.gpu.shapes import gpu_shaped, job_on_gpu, plan_for_gpu, resolve_on_gpu
from tests.runtime.changing import Changing
from tests.support.starting import start

DATA = np.random.default_rng(5).standard_normal((3_000, 3), dtype=np.float32)


def jobs(x: fc.Element) -> dict[str, list[fc.Element]]:
    """By what they are made of: what crosses the bus early, late, in between and not at all."""
    return {
        "map, folds and the source itself": [x * 2, x.sum(axis=1), x.max(axis=0), x.mean(), x],
        "two passes": [x - x.mean(axis=0), x.sum()],
        "carried": [fc.cumulative_sum(x, axis=0), fc.cumulative_sum(x, axis=0)[7:] * 3],
        "through the host": [
            fc.host(np.sort, x * 2, shape=(3,), dtype="float32") + 1,
            fc.histogram(x, range=(-1, 1))[0],
        ],
        "other clocks": [x[x[:, 0] > 0], fc.window(x, 3).sum(axis=1), fc.cut(x, 7, tail="drop") + 1, x[:20] * 2],
    }


@pytest.mark.parametrize("name", jobs(fc.source(DATA)))
def test_any_depth_and_batch_size_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", DATA)
    # Read into pinned memory, and from where it lies.
    for x in (fc.source(DATA), fc.open(tmp_path / "x.npy")):
        roots = jobs(x)[name]
        whole = resolve_on_gpu(*roots, strategy=fc.Strategy(depth=1))
        for depth, size in ((2, 1 << 14), (3, 1 << 13), (4, 1 << 12)):
            again = resolve_on_gpu(*roots, strategy=fc.Strategy(depth=depth, batch_bytes=size))
            assert [one.tobytes() for one in again] == [one.tobytes() for one in whole], (depth, size)
    for got, expected in zip(whole, fc.resolve(*roots, device="numpy", progress=False), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-3)
    assert not gpu_shaped().device.pinned.lent_bytes


@pytest.mark.parametrize("name", ["map, folds and the source itself", "carried"])
def test_batches_may_change_their_size_while_they_overlap(name: str) -> None:
    roots = jobs(fc.source(DATA, name="x"))[name]
    whole = resolve_on_gpu(*roots, strategy=fc.Strategy(depth=1))
    job = job_on_gpu(plan_for_gpu(*roots, strategy=fc.Strategy(depth=3, batch_bytes=1 << 13)))
    run = start(job, tuner=Changing(job, seed=2), progress=False).wait()
    assert len({batch.items for batch in run.metrics["x"].recent}) > 2
    assert [np.asarray(one).tobytes() for one in run.values] == [one.tobytes() for one in whole]


def test_the_plan_says_what_lies_on_the_device() -> None:
    x = fc.source(np.tile(DATA, (20, 1)))
    y = fc.source(np.ones(3, np.float32)).sum()
    roots = [x * 2 + y, x.sum(axis=0)]
    for depth in (1, 3):
        strategy = fc.Strategy(depth=depth, batch_bytes=1 << 16)
        plan = plan_for_gpu(*roots, strategy=strategy)
        memories: list[DeviceMemory] = []
        made = DeviceMemory.__init__

        def watch(self: DeviceMemory, *args: object, made=made, memories=memories) -> None:  # type: ignore[no-untyped-def]
            made(self, *args)  # type: ignore[arg-type]
            memories.append(self)

        with mock.patch.object(DeviceMemory, "__init__", watch):
            resolve_on_gpu(*roots, strategy=strategy)
        peak = max(memory._arena.peak_bytes for memory in memories)
        # Sizes are rounded up by an eighth at most, and small ones to 256 bytes.
        assert peak <= sum(max(size_class(size), 256 * 4) for _, size in plan.memory.device_items)
        assert peak >= plan.memory.device_bytes / 2
        assert any(f"x {depth}" in what for what, _ in plan.memory.device_items)


def test_small_batches_are_joined_where_there_is_room() -> None:
    x = fc.source(np.zeros(1 << 24, np.float32))

    def made(memory: int, device: OpenCLBackend | None = None, **knobs: int) -> tuple[int, int]:
        with mock.patch.object(OpenCLBackend, "select", return_value=device or gpu_shaped()):
            plan = fc.plan(x * 2 >> fc.discard(), memory=memory, strategy=fc.Strategy(**knobs))
        assert plan.memory.host_bytes <= memory
        (clock,) = plan.passes[0].clocks
        assert plan.batch_items == clock.batch_items
        joined = [reason for reason in plan.reasons if reason.element == "joined_batches"]
        assert len(joined) == (clock.cut_items is not None or device is not None)
        return clock.cut_items or clock.batch_items, clock.batch_items

    items = 1 << 18
    assert made(1 << 28, batch_bytes=1 << 20) == (items, items << 5)
    assert made(1 << 28, batch_bytes=1 << 12) == (items >> 8, items >> 2), "64 at most"
    assert made(1 << 28, batch_bytes=5 << 20) == (5 * items, 30 * items)
    assert made(1 << 28, batch_bytes=33 << 20) == (33 * items, 33 * items)
    assert made(1 << 28, batch_bytes=1 << 20, joined_batches=3) == (items, 3 * items)
    assert made(1 << 28, batch_bytes=1 << 20, joined_batches=1) == (items, items)
    cut, joined = made(20 << 20, batch_bytes=1 << 20)
    assert cut == items < joined < items << 5, "not all that there might be, but none smaller for it"
    assert made(1 << 28)[0] == made(1 << 28)[1]
    in_place = gpu_shaped(in_place=True)
    assert made(1 << 28, in_place, batch_bytes=1 << 20, joined_batches=4) == (items, items)


def computed(job: fc.Element, **options: Any) -> tuple[fc.Run, list[tuple[int, int]]]:
    """A run on the device with batches that may be joined, and what was uploaded at a time."""
    uploads: list[tuple[int, int]] = []
    real = OpenCLRunner.upload

    def count(self: OpenCLRunner, batch: Batch) -> int:
        uploads.append((batch.start, batch.stop))
        return real(self, batch)

    with (
        mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()),
        mock.patch.object(OpenCLRunner, "upload", count),
    ):
        run = fc.run(job, progress=False, **{"strategy": fc.Strategy(batch_bytes=1 << 10), **options})
    # Several are uploaded at a time, each in a thread of its own.
    uploads.sort()
    assert all(before[1] == after[0] for before, after in itertools.pairwise(uploads))
    return run, uploads


def test_batches_of_a_known_stream_are_read_as_one() -> None:
    data = np.arange(100_000, dtype=np.float32)
    run, uploads = computed(fc.source(data, name="x") * 2)
    np.testing.assert_array_equal(run.value, data * 2)
    assert [stop - start for start, stop in uploads] == [64 * 256] * 6 + [100_000 % (64 * 256)]
    assert run.metrics["x"].batches == 7


def test_a_callback_sees_each_batch() -> None:
    seen: list[int] = []
    job = fc.source(np.arange(3000, dtype=np.float32)) * 2
    run, uploads = computed(job, on_batch=lambda run: seen.append(run.progress.items))
    assert [stop - start for start, stop in uploads] == [256] * 11 + [3000 % 256]
    assert len(seen) == 12
    np.testing.assert_array_equal(run.value, np.arange(3000, dtype=np.float32) * 2)


def test_what_comes_little_by_little_is_joined_where_it_is_there() -> None:
    data = np.arange(60_000, dtype=np.float32).reshape(-1, 2)
    given, changed = [0], threading.Condition()

    def little_by_little() -> Iterator[np.ndarray]:
        for one in data.reshape(-1, 100, 2):
            yield one
            with changed:
                given[0] += len(one)
                changed.notify()

    x = fc.iterate(little_by_little(), shape=(2,), dtype="float32", name="x")
    real = PassExecutor.process

    def wait(self: PassExecutor, batch: Batch, outputs: Mapping[int, np.ndarray]) -> Made:
        # Until two batches more are there: what waits for this one is joined.
        with changed:
            assert changed.wait_for(lambda: given[0] >= min(batch.stop + 256, len(data)), timeout=600)
        return real(self, batch, outputs)

    with mock.patch.object(PassExecutor, "process", wait):
        run, uploads = computed(fc.cumulative_sum(x, axis=0))
    np.testing.assert_allclose(run.value, np.cumsum(data, axis=0, dtype=np.float64), rtol=1e-6)
    sizes = [stop - start for start, stop in uploads]
    assert sum(sizes) == len(data)
    assert max(sizes) > 128, "some waited for others to be computed"
    assert min(sizes[:-1]) >= 128
    assert run.metrics["x"].batches == -(-len(data) // 128)


def test_two_streams_are_joined_together() -> None:
    data = np.arange(20_000, dtype=np.float32)
    # One comes little by little, the other one lies in memory.
    x = fc.iterate((one for one in data.reshape(-1, 50)), shape=(), dtype="float32")
    run, uploads = computed(x * fc.source(data) + 1)
    np.testing.assert_array_equal(run.value, data * data + 1)
    assert uploads[-1][1] == len(data)


def test_endless_streams_end_where_nobody_wants_more() -> None:
    asked = []

    def endless():  # type: ignore[no-untyped-def]
        for i in itertools.count():
            asked.append(i)
            yield np.full((100, 3), i, np.float32)

    x = fc.iterate(endless(), shape=(3,), dtype="float32")
    [head] = resolve_on_gpu((x * 2)[:250], strategy=fc.Strategy(batch_bytes=1200, depth=3))
    np.testing.assert_array_equal(head[:, 0], np.repeat(np.arange(3), 100)[:250] * 2)
    assert len(asked) < 50


@pytest.mark.parametrize("operation", ["upload", "download"])
def test_a_transfer_that_fails_names_the_records(operation: str) -> None:
    real = getattr(DeviceMemory, operation)

    def fail(self: DeviceMemory, key: Hashable, array: np.ndarray, slot: int) -> None:
        # That of the third batch: several are moved at a time, in any order.
        if slot == 2:
            raise driver_error(REFUSED, "no such wire")
        real(self, key, array, slot)

    with mock.patch.object(DeviceMemory, operation, fail), pytest.raises(KernelError, match="no such wire") as caught:
        resolve_on_gpu(fc.source(DATA) * 2, strategy=fc.Strategy(batch_bytes=1 << 13, depth=3))
    items = plan_for_gpu(fc.source(DATA) * 2, strategy=fc.Strategy(batch_bytes=1 << 13, depth=3)).batch_items
    assert caught.value.records == (2 * items, 3 * items)
    assert not gpu_shaped().device.pinned.lent_bytes


def test_files_are_read_into_pinned_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", DATA)
    os.utime(tmp_path / "x.npy", (1e9, 1e9))
    plan = plan_for_gpu(fc.open(tmp_path / "x.npy") * 2)
    assert any(reason.kind == "input" and "pinned" in str(reason) for reason in plan.reasons)
    assert plan.depth == 3
    assert any("(read) x 3" in what for what, _ in plan.memory.items)


def test_no_checkpoint_is_cut_while_clocks_advance_without_a_batch(tmp_path: Path) -> None:
    draining: list[int] = []
    boundaries: list[int] = []
    asked = itertools.count()
    wants, drain, snapshot = PassExecutor.wants, PassExecutor.drain, PassExecutor.snapshot

    def wants_twice(self: PassExecutor) -> int | None:
        wanted = wants(self)
        return DRAIN if wanted is not None and next(asked) % 2 else wanted

    def drain_slowly(self: PassExecutor, outputs: dict[int, np.ndarray]) -> Made:
        draining.append(1)
        time.sleep(0.02)
        made = drain(self, outputs)
        draining.pop()
        return made

    def copy(self: PassExecutor) -> Any:
        assert not draining, "the state changes while it is copied"
        boundaries.append(1)
        return snapshot(self)

    x = fc.source(np.tile(DATA, (3, 1)))
    with mock.patch.multiple(PassExecutor, wants=wants_twice, drain=drain_slowly, snapshot=copy):
        [got] = resolve_on_gpu_kept(fc.window(x, 3).sum(axis=1), tmp_path)
    assert len(boundaries) > 2
    [expected] = resolve_on_gpu(fc.window(x, 3).sum(axis=1))
    assert got.tobytes() == expected.tobytes()


def resolve_on_gpu_kept(root: fc.Element, folder: Path) -> list[np.ndarray]:
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
        strategy = fc.Strategy(batch_bytes=1 << 12, depth=3, joined_batches=1)
        options: dict[str, Any] = {"checkpoint": folder / "job", "checkpoint_every": 0}
        return [fc.resolve(root, strategy=strategy, progress=False, **options)]


def test_a_checkpoint_counts_what_has_arrived(tmp_path: Path) -> None:
    computed: list[int] = []

    def resolve(stop_after: int | None, **options: object) -> list[np.ndarray]:
        computed.append(0)

        def stop(_: fc.Progress) -> None:
            computed[-1] += 1
            if computed[-1] == stop_after:
                raise KeyError("enough")

        x = fc.source(DATA)
        roots = [x * 2 >> fc.save(tmp_path / "y.raw"), fc.cumulative_sum(x, axis=0), x.max(axis=0), x.sum(axis=1)]
        with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped()):
            strategy = fc.Strategy(batch_bytes=1 << 12, depth=3)
            _, *values = fc.resolve(*roots, strategy=strategy, progress=False, on_batch=stop, **options)  # type: ignore[arg-type]
        return [np.fromfile(tmp_path / "y.raw", np.float32), *values]

    expected = resolve(None)
    for after in (2, 6):
        with pytest.raises(RunError, match="enough"):
            # Commits go on beside the batches: they are given the time.
            resolve(after, checkpoint=tmp_path / "job", checkpoint_every=0, throttle=0.08)
    got = resolve(None, checkpoint=tmp_path / "job", checkpoint_every=0)
    assert [one.tobytes() for one in got] == [one.tobytes() for one in expected]
    assert 0 < computed[-1] < computed[0], "it went on, and did not begin again"
