"""Rows of few numbers, lane by lane: the bits of rows walked one by one (small batches are) and of NumPy's backend."""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import mmap
import os
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.engine.backend import PlannedJob
from flowcompute.gpu import OpenCLBackend
from flowcompute.gpu.device.discovery import select_device
from flowcompute.graph.graph import build_graph
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.planner import make_plan
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy.config import Config
from tests.golden.test_golden import CPU
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu
from tests.gpu.tensor_devices import plan_on_paper
from tests.support.starting import start

pytestmark = pytest.mark.compiles

DTYPES = [np.dtype(name) for name in ("f4", "f8", "i4", "i1", "?", "f2")] + [np.dtype(ml_dtypes.bfloat16)]
ODD = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40]
RECORDS = 16 * 5 + 7
SIZES = [1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 33, 64]
if os.environ.get("HYPOTHESIS_PROFILE") == "full":
    SIZES = list(range(1, 65))


def numbers(shape: tuple[int, ...], dtype: Any = "f4", seed: int = 0, odd: bool = True) -> np.ndarray:
    """Numbers with special ones strewn in, many of them equal."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind in "bi":
        return rng.integers(0 if dtype.kind == "b" else -100, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    values = np.round(rng.standard_normal(shape) * 4, 1)
    if odd:
        values = np.where(rng.random(shape) < 0.1, rng.choice(ODD, shape), values)
    return values.astype(np.float32).astype(dtype)


def same(left: Any, right: Any) -> bool:
    """Whether arrays have the same dtype, shape and bits; any NaN is like any other."""
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    word = np.dtype(f"u{left.dtype.itemsize}")
    equal = np.ascontiguousarray(left).view(word) == np.ascontiguousarray(right).view(word)
    if left.dtype.kind not in "biu":
        equal |= np.isnan(left) & np.isnan(right)
    return bool(equal.all())


def resolved(roots: Sequence[Element], **options: Any) -> list[Any]:
    results = fc.resolve(*roots, **options)
    return list(results) if len(roots) > 1 else [results]


def shorts(plan: Plan) -> list[bool]:
    """Of each kernel of a plan whether its lanes are neighbouring rows."""
    return ["short" in step.kernel.notes for step in plan.steps if isinstance(step, RegionStep) and step.kernel]


STRATEGIES = (
    fc.Strategy(batch_bytes=1),  # batches of one record: rows one by one
    fc.Strategy(batch_bytes=300, items_per_work_item=1),  # some whole vectors and a rest
)


def check(exact: Sequence[Element], *rounded: Element, short: bool = True) -> list[Any]:
    """Resolve; rows that fill vectors and rows walked one by one must give the same bits, `exact` ones also NumPy's."""
    roots = [*exact, *rounded]
    # Which form is taken depends on the vectors of the device: that of the paper has those of 16 lanes.
    assert set(shorts(plan_on_paper(*roots, capabilities=CPU))) == {short}
    whole = resolved(roots)
    others = [resolved(roots, strategy=strategy) for strategy in STRATEGIES]
    if exact:
        others.append(resolved(exact, device="numpy"))
    for results in others:
        for root, one, other in zip(roots, whole, results, strict=False):
            assert same(one, other), root
    return whole


def reductions(x: Element) -> list[Element]:
    """Every reduction of rows that is exact or correctly rounded at each step."""
    named = [x.sum(axis=1), x.prod(axis=1), x.min(axis=1), x.max(axis=1), (x > x.dtype.type(0)).any(axis=1)]
    return [*named, x.astype(bool).all(axis=1), x.argmin(axis=1), x.argmax(axis=1)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_reduction_of_every_dtype(dtype: np.dtype) -> None:
    x = fc.source(numbers((RECORDS, 5), dtype))
    check(reductions(x))


@pytest.mark.parametrize("size", SIZES)
def test_every_length(size: int) -> None:
    windows = fc.window(fc.source(numbers((RECORDS + size - 1,), seed=size)), size=size)
    taps = fc.constant(numbers((size,), seed=1, odd=False))
    # A product of two is added with one rounding; NumPy has no such step.
    check([windows.sum(axis=1)], fc.vecdot(windows, taps))
    if size < 31:
        check([windows.argmin(axis=1), windows.min(axis=1)])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 12])
def test_rows_that_are_used_again_after_they_were_reduced(size: int) -> None:
    array = numbers((RECORDS, size), odd=False)
    x = fc.source(array)
    e = fc.exp(x - x.max(axis=1, keepdims=True))
    total = e.sum(axis=1, keepdims=True)
    softmax, _ = check([], e / total, fc.log(total))
    wide = np.exp(array.astype("f8") - array.max(axis=1, keepdims=True))
    # 16 is the largest difference, half a unit of which exp makes a relative error.
    np.testing.assert_allclose(softmax, wide / wide.sum(axis=1, keepdims=True), rtol=3e-6)
    centred = x - x.mean(axis=1, keepdims=True)
    check([centred, x / fc.sqrt((x * x).sum(axis=1, keepdims=True)), x.var(axis=1)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_windows_of_every_dtype(dtype: np.dtype) -> None:
    stream = fc.source(numbers((3 * RECORDS,), dtype, odd=False))
    for step in (1, 3):
        windows = fc.window(stream, size=6, step=step)
        check([windows.mean(axis=1), windows.max(axis=1)])


def test_windows_of_items_are_rows_of_every_number() -> None:
    windows = fc.window(fc.source(numbers((RECORDS, 3))), size=4)
    check([windows.sum(axis=1), windows.max(axis=1), windows.mean(axis=(1, 2))])
    check([fc.window(fc.source(numbers((RECORDS, 3))), size=4, step=2).sum(axis=1)], short=False)
    check([fc.window(fc.source(numbers((RECORDS, 2, 3))), size=4).sum(axis=1)])


def test_views() -> None:
    x = fc.source(numbers((RECORDS, 4, 6)))
    check([x[:, 1, ::-1].sum(axis=1), x[:, 0, 1::2].max(axis=1), x[:, 3].argmax(axis=1)])
    check([fc.permute_dims(x, (0, 2, 1))[:, :, ::2].sum(axis=2)], short=False)
    check([x[:, 1:3, 2:5].sum(axis=(1, 2))])


def test_rows_and_numbers_beside_each_other_without_a_reduction() -> None:
    x = fc.source(numbers((RECORDS, 3)))
    scale = fc.source(numbers((RECORDS, 1), seed=1))
    weights = fc.constant(numbers((3,), seed=3))
    check([x * scale + weights, scale + x[:, ::-1]])


def test_rows_of_several_axes() -> None:
    x = fc.source(numbers((RECORDS, 5, 3)))
    check([x.sum(axis=2), x - x.max(axis=2, keepdims=True)])
    check([x.sum(axis=(1, 2)), x - x.mean(axis=(1, 2), keepdims=True)])


def test_numbers_that_are_generated() -> None:
    x = fc.random.normal(RECORDS, shape=(3,), seed=5, dtype="f4")
    check([], x.max(axis=1), x + x.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("records", [0, 1, 15, 16, 17, 1023, 1024, 1025])
def test_every_number_of_rows(records: int) -> None:
    x = fc.source(numbers((records, 3)))
    check([x.sum(axis=1), x - x.sum(axis=1, keepdims=True)])


def test_a_nan_stays_in_its_row() -> None:
    array = np.zeros((33, 3), "f4")
    array[7, 1] = np.nan
    total = fc.resolve(fc.source(array).sum(axis=1))
    assert np.isnan(total).nonzero()[0].tolist() == [7]


# -- where it is chosen ----------------------------------------------------------------------------


def chosen(root: Element) -> bool:
    [short] = shorts(plan_on_paper(root, capabilities=CPU))
    return short


def test_where_rows_are_walked_side_by_side() -> None:
    def rows(size: int) -> Element:
        return fc.source(np.zeros((8, size), "f4"))

    def windows(size: int) -> Element:
        return fc.window(fc.source(np.zeros(500, "f4")), size=size)

    assert chosen(rows(15).sum(axis=1))
    assert not chosen(rows(16).sum(axis=1))
    assert chosen(windows(64).mean(axis=1))
    assert chosen(windows(128).mean(axis=1))
    # Too much to write out.
    assert not chosen(windows(300).mean(axis=1))
    assert not chosen(fc.sin(windows(64)).mean(axis=1))
    # Folds keep to records, and the rows of an inner axis have no one stride.
    assert not chosen(rows(3).sum(axis=0))
    assert not chosen(fc.source(np.zeros((8, 2, 3, 4), "f4")).sum(axis=(1, 3)))


def test_not_on_gpus_and_not_of_residents() -> None:
    x = fc.source(np.zeros((8, 3), "f4"))
    assert shorts(plan_for_gpu(x.sum(axis=1))) == [False]
    y = x * fc.constant(np.ones((2, 3), "f4")).sum(axis=1, keepdims=True).sum(axis=0)
    assert not any(shorts(fc.plan(y))[:-1])


# -- vectors whose numbers lie apart ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_that_lie_apart(dtype: np.dtype) -> None:
    """One number of each record, at every distance up to where they are read one by one."""
    first = fc.source(numbers((RECORDS,), dtype))
    arrays = [numbers((RECORDS, size), dtype, seed=size) for size in (2, 3, 4, 5, 7, 13)]
    roots = [fc.maximum(first, fc.source(array)[:, -1]) for array in arrays]
    check(roots, short=False)


@pytest.mark.parametrize(("size", "dtype"), [*((16 + c, "f4") for c in (1, 7, 14)), (31, "?"), (27, "f2"), (30, "i1")])
def test_vectors_of_which_the_first_numbers_exist(size: int, dtype: str) -> None:
    x = fc.source(numbers((9, size), dtype))
    check([x.max(axis=1), fc.maximum(x, x.max(axis=1, keepdims=True))], short=False)


def test_nothing_behind_the_last_number_is_touched() -> None:
    """The stream ends where the process's memory ends: a page that cannot be read follows it."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(begin + page, page, 0) == 0
    whole = np.frombuffer(memory, "f4", count=page // 4)
    for size in (3, 5):
        array = whole[len(whole) % size :].reshape(-1, size)
        x = fc.source(array)
        assert fc.resolve(x.sum(axis=1)).tolist() == [0.0] * len(array)
        assert not fc.resolve(x[:, size - 1] > 0).any()


@pytest.mark.parametrize("size", [3, 11, 16])
def test_dot_products_have_the_same_bits_for_every_vector(size: int) -> None:
    """Dot products round once in a step, so their steps must be the same whatever the vector."""
    x, y = (numbers((40, size), seed=seed, odd=False) for seed in (1, 2))
    root = fc.vecdot(fc.source(x), fc.source(y))
    device = copy.copy(select_device("cpu", needs_float64=True))
    device.programs = {}
    device.capabilities = dataclasses.replace(device.capabilities, lanes=8)
    backend = OpenCLBackend(device)
    plan = make_plan(build_graph([fc.to_array().bind(root)]), Config(1 << 28), fc.Strategy(), backend.description)
    [narrow] = start(PlannedJob(plan, backend), progress=False).wait().values
    assert same(narrow, fc.resolve(root))
    assert same(narrow, resolve_on_gpu(root)[0])
