"""Values between kernels have buffers in turns: who reads one finds what was meant, and no byte is unplanned."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.gpu.memory import device_buffers as buffers
from flowcompute.gpu.memory.device_memory import DeviceMemory
from flowcompute.gpu.run.opencl_runner import OpenCLRunner
from flowcompute.gpu.worker.launcher import LocalLauncher
from flowcompute.schedule.memory import buffer_assignment as reuse
from flowcompute.schedule.memory.buffer_assignment import HostIntermediates
from tests.gpu.shapes import job_on_gpu, plan_for_gpu, run_on_gpu
from tests.properties.cases import cases
from tests.support.starting import start

RECORDS = 400
DRAW = np.random.default_rng(11)
DATA = DRAW.integers(-4, 5, (RECORDS, 8)).astype(np.float32)
WIDTHS = (1, 4, 8, 24)
DTYPES = ("float32", "float64", "int16")
SMALL = fc.Strategy(joined_batches=1, batch_bytes=1 << 11, depth=3)


def negated(batch: np.ndarray) -> np.ndarray:
    return -batch


def itself(batch: np.ndarray) -> np.ndarray:
    return batch


@st.composite
def programs(draw: st.DrawFn, *, clocks: bool) -> list[Element]:
    """Products, sums and host functions that read one another in any order; with `clocks` also what waits or folds."""
    made: list[Element] = [fc.source(DATA), fc.source(DATA[:, :4])]

    def one(width: int | None = None) -> Element:
        # Mostly what has just been made, so that programs become deep; a last one from far back.
        near = made[draw(st.sampled_from([0, -2, -2, -2])) :]
        return draw(st.sampled_from([x for x in near if width in (None, x.shape[-1])] or [made[-1]]))

    kinds = ["product", "product", "sum", "host", "view", *(["window", "cut", "by key", "whole"] * clocks)]
    ends: list[Element] = []
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=4, max_size=10)):
        x = one()
        width, dtype = draw(st.sampled_from(WIDTHS)), draw(st.sampled_from(DTYPES))
        if kind == "product":
            made.append(x.astype(dtype) @ np.ones((x.shape[-1], width), dtype))
        elif kind == "sum":
            other = one(x.shape[-1])
            made.append(fc.maximum(x, other if other.shape == x.shape else 0) + 1)
        elif kind == "host":
            made.append(fc.host(draw(st.sampled_from([negated, itself])), x, shape=x.shape[1:], dtype=x.dtype))
        elif kind == "view":
            made.append(fc.concat([x[:, ::-1], x], axis=1)[:, : x.shape[-1]])
        elif kind == "window":
            ends.append(fc.window(x, 3).sum(axis=1))
        elif kind == "cut":
            ends.append(fc.cut(x, 7, tail="drop") @ np.ones((x.shape[-1], 2), x.dtype))
        elif kind == "by key":
            ends.append(fc.histogram(x, bins=4, range=(-9, 9))[0])
        else:
            ends.append(x.sum(axis=0))
    roots = draw(st.lists(st.sampled_from(made), max_size=2, unique_by=id))
    return [made[-1], *(root for root in roots if root is not made[-1]), *ends]


def read_late() -> list[Element]:
    """Layers of which early ones are read at the end of a batch: by folds on the host and another clock, and as views."""
    x: Element = fc.source(DATA)
    layers = [x := x @ np.eye(8, dtype=np.float32) * n for n in range(1, 7)]
    seen = fc.host(itself, fc.concat([layers[2][:, ::-1], x], axis=1)[:, :8], shape=(8,), dtype="float32")
    by_key = fc.histogram(layers[0], bins=4, range=(-9, 9))[0]
    return [by_key, layers[1].sum(axis=0), fc.window(layers[3], 3).sum(axis=1), layers[4][:, 0], seen, x]


def read_in_turns() -> list[Element]:
    """A source that a later kernel reads is there before the first one, and the first result until the end."""
    four, first = np.ones((4, 4), "f4"), fc.source(DATA[:, :4]) @ np.ones((4, 8), "f4")
    return [first, (first @ np.ones((8, 4), "f4") + fc.source(DATA[:, 4:]) @ four) @ four]


class Watched:
    """A device that computes nothing, and notices a kernel or download that finds another value than it was to find.

    Attributes:
        peaks: bytes that were taken on the device, by pass.
        between: bytes that lay between the steps on the host, by pass.
        given_back: bytes of buffers that were too small.
    """

    def __init__(self, plan: fc.Plan) -> None:
        self.peaks: list[int] = []
        self.between: list[int] = []
        self.given_back: list[int] = []
        self._kernels = {one.name: one.ir for one in plan.kernels}
        self._holds: dict[int, Any] = {}

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        taken_in, uploaded, fetch, download, close = (
            getattr(DeviceMemory, name) for name in ("input", "upload", "fetch", "download", "close")
        )
        forget, give = HostIntermediates.forget, buffers.DeviceArena.give

        def bring(own: DeviceMemory, key: Any, array: np.ndarray, *, fresh: bool) -> Any:
            there = key in own._current
            buffer = taken_in(own, key, array, fresh=fresh)
            if not there:
                assert any(array.strides), "it is not in host memory"
                self._holds[buffer.int_ptr] = key
            return buffer

        def upload(own: DeviceMemory, key: Any, array: np.ndarray, slot: int) -> None:
            uploaded(own, key, array, slot)
            self._holds[own._slot_values[slot][key].int_ptr] = key

        def fetched(own: DeviceMemory, key: Any, array: np.ndarray) -> None:
            assert isinstance(key, tuple) or self._holds[own._current[key].int_ptr] == key
            fetch(own, key, array)

        def downloaded(own: DeviceMemory, key: Any, array: np.ndarray, slot: int) -> None:
            assert self._holds[own._slots[slot][own._reused[key]].int_ptr] == key
            download(own, key, array, slot)

        def closed(own: DeviceMemory) -> None:
            self.peaks.append(own._arena.peak_bytes)
            close(own)

        def given(own: buffers.DeviceArena, buffer: Any) -> None:
            self.given_back.append(buffer.size)
            give(own, buffer)

        def forgotten(own: HostIntermediates) -> None:
            self.between.append(sum(array.nbytes for array in own._memory.values()))
            forget(own)

        with (
            mock.patch.object(OpenCLRunner, "_compiled", lambda _, kernel: kernel.name),
            mock.patch.object(LocalLauncher, "launch", self._launch),
            mock.patch.object(buffers, "size_class", lambda size: max(size, 1)),
            mock.patch.multiple(
                DeviceMemory, input=bring, upload=upload, fetch=fetched, download=downloaded, close=closed
            ),
            mock.patch.object(buffers.DeviceArena, "give", given),
            mock.patch.object(HostIntermediates, "forget", forgotten),
        ):
            yield

    def _launch(self, kernel: str, values: Sequence[Any], *_: Any, **__: Any) -> None:
        arguments = self._kernels[kernel].arguments
        for argument, value in zip(arguments, values, strict=False):
            if argument.kind == "input" and not argument.period:
                assert self._holds[value.int_ptr] in (argument.value, ("base", argument.value))
        for argument, value in zip(arguments, values, strict=False):
            if argument.kind == "output":
                self._holds[value.int_ptr] = argument.value


def watched(roots: list[Element]) -> tuple[fc.Plan, Watched]:
    plan = plan_for_gpu(*roots, strategy=SMALL)
    device = Watched(plan)
    with device.watch():
        start(job_on_gpu(plan), progress=False).wait()
    return plan, device


@pytest.mark.slow
def test_what_is_taken_is_what_was_planned() -> None:
    turns: list[int] = []

    @cases(40)
    @given(programs(clocks=False))
    @example(read_in_turns())
    def check(roots: list[Element]) -> None:
        plan, device = watched(roots)
        assert device.peaks == [plan.memory.device_bytes]
        assert not device.given_back
        assert device.between == [sum(size for what, size in plan.memory.items if "between kernels" in what)]
        turns.append(len([what for what, _ in plan.memory.device_items if "more in one buffer" in what]))

    check()
    assert sum(map(bool, turns)) > len(turns) / 4


@cases(15)
@given(programs(clocks=True))
def test_no_more_is_taken_where_streams_change_their_pace(roots: list[Element]) -> None:
    plan, device = watched(roots)
    assert max(device.peaks) <= plan.memory.device_bytes
    assert max(device.between) <= sum(size for what, size in plan.memory.items if "between kernels" in what)


@cases(25)
@given(programs(clocks=True))
@example(read_late())
def test_turns_on_the_host_change_no_bit(roots: list[Element]) -> None:
    options: dict[str, Any] = {"device": "numpy", "strategy": SMALL, "progress": False}
    got = fc.run(*roots, **options).values
    # As it was without: each value in memory of its own.
    with mock.patch.object(reuse, "assign_host_buffers", return_value=()):
        expected = fc.run(*roots, **options).values
    for one, other in zip(got, expected, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("refused", [None, 7])
def test_kernels_find_what_was_meant(refused: int | None) -> None:
    """Also in slices, where there was no room for a launch. Numbers are integers: NumPy's are the same."""
    real, launches = LocalLauncher.launch, itertools.count()

    def launch(own: LocalLauncher, *arguments: Any, **options: Any) -> Any:
        if next(launches) == refused:
            raise fc.DeviceFullError("no room")
        return real(own, *arguments, **options)

    with mock.patch.object(LocalLauncher, "launch", launch), contextlib.ExitStack() as stack:
        if refused is not None:
            stack.enter_context(pytest.warns(fc.DeviceWarning, match="no room on"))
        values = run_on_gpu(*read_late(), strategy=SMALL).values
    for one, other in zip(values, fc.resolve(*read_late(), device="numpy", progress=False), strict=True):
        np.testing.assert_array_equal(one, other)


def test_slices_of_a_batch_have_parts_of_their_own() -> None:
    """Each begins where its numbers may lie: one of 8 bytes does not follow records of 10."""
    ten = fc.source(DATA).astype("int16") @ np.ones((8, 5), "int16")
    eight = ((ten @ np.ones((5, 2), "int16")) @ np.ones((2, 1), "int16")).astype("float64")
    plan = fc.plan(eight @ np.ones((1, 1)), device="numpy")
    between = HostIntermediates(plan.graph, plan.passes[0])
    sizes = []
    for value in (i for one in reuse.assign_host_buffers(plan.graph, plan.passes[0], ()) for i in one.values):
        parts = [between.array(value, offset, 1) for offset in range(3)]
        assert all(part.flags.aligned for part in parts)
        assert not any(np.may_share_memory(*pair) for pair in itertools.combinations(parts, 2))
        sizes.append(parts[0].nbytes)
    assert sorted(sizes) == [4, 8, 10]
