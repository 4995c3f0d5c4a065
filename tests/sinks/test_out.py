"""Results in arrays of the caller, and arrays that stay pinned."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gpu.device.discovery import select_device
from flowcompute.gpu.device.pinned_memory import PinnedMemory
from tests.gpu.shapes import run_on_gpu

DATA = np.random.default_rng(1).standard_normal((3000, 7), dtype=np.float32)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_the_result_is_the_array_that_was_given(device: str) -> None:
    x, small = fc.source(DATA), fc.Strategy(batch_bytes=4096)
    out, total, number = np.empty_like(DATA), np.empty(7, np.float32), np.empty((), np.float32)
    roots = [x * 2 >> fc.to_array(out=out), x.sum(axis=0) >> fc.to_array(out=total), x.max() >> fc.to_array(out=number)]
    values = fc.resolve(*roots, device=device, progress=False, strategy=small)
    for value, given in zip(values, (out, total, number), strict=True):
        assert value is given
    np.testing.assert_array_equal(out, DATA * 2)
    np.testing.assert_array_equal(total, (x.sum(axis=0)).resolve(device=device, progress=False))
    assert number == DATA.max()


def test_what_is_given_does_not_count_against_the_budget() -> None:
    x = fc.source(np.zeros((1 << 22, 2), np.float32))
    with pytest.raises(fc.PlanError, match="memory budget"):
        fc.plan(x + 1, memory=16 << 20)
    assert fc.plan(x + 1 >> fc.to_array(out=np.empty((1 << 22, 2), np.float32)), memory=16 << 20).memory.host_bytes == 0


READ_ONLY = np.empty((3000, 7), np.float32)
READ_ONLY.flags.writeable = False
UNALIGNED = np.empty(3000 * 7 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(3000, 7)


@pytest.mark.parametrize(
    ("out", "got", "hint"),
    [
        (np.empty((3000, 7)), "float64 of shape (3000, 7)", ', or cast the result to it: x.astype("float64")'),
        (np.empty((3000, 7), ">f4"), ">f4 of shape (3000, 7)", ""),
        (np.empty((3000, 6), np.float32), "float32 of shape (3000, 6)", ""),
        (np.empty((7, 3000), np.float32).T, "one that is not C-contiguous", ""),
        (READ_ONLY, "one that is not writeable", ""),
        (UNALIGNED, "one that is not aligned", ""),
        (np.broadcast_to(np.float32(0), (3000, 7)), "one that is not C-contiguous and not writeable", ""),
        ([0.0], "list", ""),
    ],
)
def test_an_array_that_cannot_take_the_result_is_refused(out: np.ndarray, got: str, hint: str) -> None:
    with pytest.raises(fc.SpecError, match="cannot take") as caught:
        fc.source(DATA) * 2 >> fc.to_array(out=out)
    assert caught.value.expected == "a C-contiguous float32 array of shape (3000, 7) that can be written to"
    assert caught.value.got == got
    assert caught.value.hint == f'out=np.empty((3000, 7), "float32"){hint}'
    assert caught.value.site is not None
    assert caught.value.site.file == __file__


def test_a_result_of_unknown_length_is_refused() -> None:
    x = fc.source(DATA)
    with pytest.raises(fc.SpecError, match="cannot take") as caught:
        x[x[:, 0] > 0] >> fc.to_array(out=np.empty_like(DATA))
    assert caught.value.got == "select, whose length is not known before the run"


def test_memory_that_the_job_reads_is_refused() -> None:
    data = DATA.copy()
    x, other = fc.source(data), np.empty_like(data)
    with pytest.raises(fc.PlanError, match="overlaps the memory of source"):
        fc.plan(x * 2 >> fc.to_array(out=data))
    with pytest.raises(fc.PlanError, match="overlaps the memory of to_array"):
        fc.plan(x * 2 >> fc.to_array(out=other), x * 3 >> fc.to_array(out=other))


def test_a_resumed_job_goes_on_in_the_array(tmp_path: Path) -> None:
    out, seen = np.zeros_like(DATA), []

    def stop(_: np.ndarray) -> None:
        seen.append(1)
        if len(seen) == 5:
            raise ValueError("stop")

    x = fc.source(DATA)
    options = {"device": "numpy", "progress": False, "checkpoint": tmp_path / "job", "checkpoint_every": "4KiB"}
    small = fc.Strategy(batch_bytes=4096)
    for attempt in range(2):
        roots = [x * 2 >> fc.to_array(out=out), x + 1 >> fc.callback(stop)]
        if attempt == 0:
            with pytest.raises(fc.FlowError, match="stop"):
                fc.resolve(*roots, strategy=small, **options)
            out[:] = 0
        else:
            assert fc.resolve(*roots, strategy=small, **options)[0] is out
    np.testing.assert_array_equal(out, DATA * 2)


def test_arrays_stay_pinned_as_long_as_they_live() -> None:
    device = select_device("cpu", needs_float64=False)
    memory, array = PinnedMemory(device.context), np.zeros((100, 100), np.float32)
    assert not memory.holds(array)
    assert fc.pinned(array) is array
    assert memory.holds(array[3:9])
    assert memory.holds(array[:, 4:8])
    assert not memory.holds(np.zeros(10))
    del array
    gc.collect()
    assert not memory._pinned_arrays


def test_only_arrays_with_memory_of_their_own_are_pinned(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", DATA)
    for wrong in (DATA[1:], np.load(tmp_path / "x.npy", mmap_mode="r"), np.frombuffer(b"abcd", np.uint8), [1.0]):
        with pytest.raises(fc.SpecError, match="cannot pin an array that does not own its memory"):
            fc.pinned(wrong)  # type: ignore[arg-type]
    assert fc.pinned(np.empty(0)).size == 0


def test_what_to_pin_instead_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", DATA)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for wrong, got, hint in (
        (mapped, "a mapped file", "fc.open(path)"),
        (np.asarray(mapped[1:]), "a mapped file", "fc.open(path)"),
        (np.arange(6.0).reshape(2, 3), "a view of ndarray", "a copy: fc.pinned(np.array(x))"),
        ([1.0], "list", "make it one: fc.pinned(np.array(x))"),
        (fc.source(DATA, name="data") * 2, "the element multiply", "fc.source(fc.pinned(array))"),
        (np.array(["a", None], object), "dtype object", 'array.astype("float32")'),
        (np.empty(0, [("a", object)]), "dtype [('a', 'O')]", 'array.astype("float32")'),
    ):
        with pytest.raises(fc.SpecError, match=r"pinned|Python objects") as caught:
            fc.pinned(wrong)  # type: ignore[arg-type]
        assert caught.value.got == got
        assert hint in str(caught.value.hint)


def test_a_device_reads_and_writes_pinned_arrays_by_itself() -> None:
    data, out = fc.pinned(DATA.copy()), fc.pinned(np.empty_like(DATA))
    run = run_on_gpu(fc.source(data) * 2 >> fc.to_array(out=out))
    assert run.values[0] is out
    np.testing.assert_array_equal(out, DATA * 2)
    # Again, where it is pinned already, and with other arrays beside it.
    np.testing.assert_array_equal(run_on_gpu(fc.source(data) + fc.source(DATA)).values[0], DATA + DATA)


def test_a_constant_of_a_pinned_array_is_no_copy():
    weights = fc.pinned(np.arange(12, dtype=np.float32).reshape(3, 4).copy())
    kept = fc.constant(weights)
    assert np.shares_memory(kept.value, weights)
    assert not kept.value.flags.writeable
    assert weights.flags.writeable
    for other in (weights.T, weights.astype(np.float64), weights.copy(), weights.tolist()):
        assert not np.shares_memory(fc.constant(other).value, weights)
    assert not np.shares_memory(fc.constant(weights, dtype="float64").value, weights)
    assert np.shares_memory(fc.constant(weights[1:]).value, weights)
    x = np.ones((5, 3), np.float32)
    np.testing.assert_array_equal((fc.source(x) @ weights).resolve(progress=False), x @ weights)
