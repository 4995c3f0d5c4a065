"""Items larger than the memory budget: the bits of whole items, or a refusal that names element and number."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import PlanError
from flowcompute.rewrite import item_splitting as pieces

N, SIZE = 4, 5000
RNG = np.random.default_rng(2)
X = RNG.standard_normal((N, SIZE)).astype(np.float32)
Y = RNG.standard_normal((N, SIZE)).astype(np.float32)
BUDGET = 14 << 10
"""Smaller than an item of 20 kB."""

READ = fc.Strategy(input="read")
"""Files that are mapped take no memory, however large their items."""


def settled(folder: Path, array: np.ndarray) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, array)
    os.utime(path, (1e9, 1e9))
    return path


def opened(folder: Path, array: np.ndarray) -> fc.Element:
    dtype = "bfloat16" if array.dtype == ml_dtypes.bfloat16 else None
    return fc.open(settled(folder, array), dtype=dtype)


def in_pieces(*elements: fc.Element, device: str, memory: int = BUDGET) -> tuple[Any, ...]:
    """The values, and only if items were split."""
    with mock.patch.object(
        pieces._Splitter, "rewritten", autospec=True, side_effect=pieces._Splitter.rewritten
    ) as split:
        values = fc.resolve(*elements, device=device, memory=memory, strategy=READ, progress=False)
    assert split.called, "the budget is too large for this test"
    return values if len(elements) > 1 else (values,)


def check_same_bits(elements: list[fc.Element], device: str, memory: int = BUDGET) -> None:
    values = fc.resolve(*elements, device=device, progress=False)
    whole = values if len(elements) > 1 else (values,)
    for one, value in zip(whole, in_pieces(*elements, device=device, memory=memory), strict=True):
        assert (np.shape(one), np.asarray(one).dtype) == (np.shape(value), np.asarray(value).dtype)
        assert np.asarray(one).tobytes() == np.asarray(value).tobytes()


REDUCED: dict[str, Callable[[Any, Any], list[Any]]] = {
    "reductions": lambda x, y: [x.sum(axis=1), x.max(axis=1, keepdims=True), x.mean(axis=1)],
    "of bools": lambda x, y: [(x > 3).any(axis=1), (x > -9).all(axis=1), fc.count_nonzero(x > 0, axis=1)],
    "of maps": lambda x, y: [fc.tanh(x * 2 + y).sum(axis=1), fc.where(x > y, x, y).prod(axis=1)],
    "dot products": lambda x, y: [fc.vecdot(x, y), fc.vecdot(x + 1, x)],
    "and what follows": lambda x, y: [fc.cumulative_sum(x.sum(axis=1)) * 2 + fc.range(N), fc.sqrt(fc.vecdot(x, x))],
    "and is selected": lambda x, y: [(s := x.sum(axis=1))[s > 0] * 2],
    "a section": lambda x, y: [x[1:3].sum(axis=1)],
    "no records": lambda x, y: [x[4:].sum(axis=1)],
}


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_have_the_bits_of_whole_items(name: str, device: str, tmp_path: Path) -> None:
    check_same_bits(REDUCED[name](opened(tmp_path, X), opened(tmp_path, Y)), device)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float32", 2048), ("float32", 5001), ("float64", 2049), ("float16", 4095), ("bfloat16", 4097), ("int16", 4096)],
)
def test_dot_products_of_every_dtype(dtype: str, size: int, tmp_path: Path) -> None:
    made = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    a, b = ((RNG.standard_normal((3, size)) * 3).astype(made) for _ in range(2))
    x, y = opened(tmp_path, a), opened(tmp_path, b)
    check_same_bits([fc.vecdot(x, y), x.sum(axis=1)], "cpu", memory=made.itemsize * size * 3 // 4 + 3000)


def test_special_numbers_of_large_items(tmp_path: Path) -> None:
    data = X.copy()
    data[0, 17], data[1, 4000], data[2, 1] = np.nan, np.inf, -np.inf
    x, y = opened(tmp_path, data), opened(tmp_path, Y)
    elements = [x.sum(axis=1), x.min(axis=1), fc.vecdot(x, y)]
    for device in ("numpy", "cpu"):
        whole = fc.resolve(*elements, device=device, progress=False)
        # Which NaN it is, is promised nowhere.
        for one, value in zip(whole, in_pieces(*elements, device=device), strict=True):
            np.testing.assert_array_equal(one, value)


def test_places_in_large_items(tmp_path: Path) -> None:
    x = opened(tmp_path, np.round(X))
    check_same_bits([x.argmin(axis=1), x.argmax(axis=1, keepdims=True)], "numpy")


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_resident_operands_repeat_along_the_numbers(device: str, tmp_path: Path) -> None:
    items = RNG.integers(-9, 9, (3, 50, 100)).astype(np.int32)
    z = opened(tmp_path, items)
    row = np.arange(100, dtype=np.int32)
    check_same_bits([(z * row + 1).sum(axis=(1, 2)), (z + np.int32(2)).max(axis=(1, 2))], device)


def test_a_fold_of_everything_is_one_of_numbers(tmp_path: Path) -> None:
    x = opened(tmp_path, X)
    for element in (x.sum(), (x * 2).max(), x.mean()):
        check_same_bits([element], "numpy")


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_large_items_are_written_in_parts(device: str, tmp_path: Path) -> None:
    x, y = opened(tmp_path, X), opened(tmp_path, Y)
    for element, wanted in ((x + y, X + Y), (x[1:3] * 2, X[1:3] * 2), (x, X)):
        target = tmp_path / "made.npy"
        (element >> fc.save(target)).run(device=device, memory=BUDGET, strategy=READ, progress=False)
        np.testing.assert_array_equal(np.load(target), wanted)


NEEDED_WHOLE: dict[str, Callable[[Any], Any]] = {
    "part of an axis": lambda x: fc.reshape(x, (-1, 50, 100)).sum(axis=1),
    "another place": lambda x: x[:, ::-1].sum(axis=1),
    "what the item itself gives": lambda x: (x - x.mean(axis=1, keepdims=True)).sum(axis=1),
    "a running sum": lambda x: fc.cumulative_sum(x, axis=1).max(axis=1),
}


@pytest.mark.parametrize("name", NEEDED_WHOLE)
def test_what_needs_a_whole_item_is_refused_with_the_number(name: str, tmp_path: Path) -> None:
    element = NEEDED_WHOLE[name](opened(tmp_path, X))
    assert element.resolve(device="numpy", progress=False).shape[0] == N
    with pytest.raises(PlanError, match="memory budget of 14336 bytes") as caught:
        element.resolve(device="numpy", memory=BUDGET, strategy=READ, progress=False)
    assert caught.value.element
    assert "at least" in str(caught.value.expected)


def test_items_that_fit_are_never_split(tmp_path: Path) -> None:
    with mock.patch("flowcompute.jobs.job_planner.split_items") as split:
        opened(tmp_path, X).sum(axis=1).resolve(device="numpy", strategy=READ, progress=False)
    split.assert_not_called()
