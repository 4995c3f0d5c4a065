"""Reductions over no axis, of numbers and by axis=(): values, shapes and dtypes as NumPy's."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.spec import BFLOAT16, SUPPORTED_DTYPES
from tests.support.slow import compiled_but

SEVERAL = ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all")
NAMES = (*SEVERAL, "argmin", "argmax")
DEVICES = ("numpy", "cpu")
ROWS = np.random.default_rng(5).integers(-4, 5, (7, 3)).astype(np.float32)


def check_all(made: list[Any], wanted: list[Any], device: str) -> None:
    for element, value, want in zip(made, fc.resolve(*made, device=device, progress=False), wanted, strict=True):
        assert element.shape == np.shape(value) == np.shape(want), element
        assert element.dtype == value.dtype == np.asarray(want).dtype, element
        np.testing.assert_array_equal(value, want)


@pytest.mark.parametrize("device", compiled_but(["numpy"], DEVICES))
def test_reductions_of_numbers(device: str) -> None:
    made, wanted = [], []
    dtypes = SUPPORTED_DTYPES if device == "numpy" else SUPPORTED_DTYPES[::3]
    for name, dtype, keepdims in itertools.product(NAMES, dtypes, (False, True)):
        number = dtype.type(0 if keepdims else 3)
        made.append(getattr(fc, name)(fc.constant(number), keepdims=keepdims))
        want = getattr(np, name)(number.astype("f4") if dtype == BFLOAT16 else number, keepdims=keepdims)
        kept = dtype == BFLOAT16 and name not in ("any", "all", "argmin", "argmax")
        wanted.append(np.asarray(want).astype(dtype)[()] if kept else want)
    check_all(made, wanted, device)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions_of_reductions(device: str) -> None:
    x = fc.source(ROWS)
    made, wanted = [], []
    for first, second in itertools.product(("sum", "max"), NAMES):
        made += [getattr(getattr(x, first)(), second)(), getattr(x[0, 0], second)()]
        wanted += [getattr(getattr(np, first)(ROWS), second)(), getattr(ROWS[0, 0], second)()]
    made += [fc.source(np.arange(3.0))[1].sum(), fc.all(fc.constant(3) == 3), x.sum().sum().sum() * 2]
    wanted += [np.float64(1), np.True_, ROWS.sum() * 2]
    check_all(made, wanted, device)


@pytest.mark.parametrize("device", compiled_but(["numpy"], DEVICES))
def test_no_axis_of_streams_and_of_resident_values(device: str) -> None:
    made, wanted = [], []
    for array in (ROWS, ROWS[:, 0], ROWS.astype("i1"), ROWS[:0]):
        for name, keepdims, of in itertools.product(SEVERAL, (False, True), (fc.source, fc.constant)):
            made.append(getattr(fc, name)(of(array), axis=(), keepdims=keepdims))
            wanted.append(getattr(np, name)(array, axis=(), keepdims=keepdims))
    made += [(fc.source(ROWS) * 2).sum(axis=()).max(axis=1), fc.source(ROWS).sum(keepdims=True).mean(axis=())]
    wanted += [(ROWS * 2).max(axis=1), ROWS.sum(keepdims=True)]
    check_all(made, wanted, device)


@pytest.mark.parametrize("device", DEVICES)
def test_special_numbers_and_corrections(device: str) -> None:
    array = np.array([np.nan, np.inf, -np.inf, -0.0, 2], np.float32)
    x = fc.source(array)
    made = [x.sum(axis=()), x.max(axis=()), x.mean(axis=()), x.var(axis=()), x.var(axis=(), correction=1)]
    with np.errstate(invalid="ignore", divide="ignore"):
        wanted = [array, array, array, array.var(axis=()), np.full(5, np.nan, "f4")]
    check_all(made, wanted, device)


def test_several_axes_to_search_are_refused_also_none() -> None:
    with pytest.raises(fc.SpecError, match="cannot search several axes"):
        fc.argmax(fc.source(ROWS), axis=())  # type: ignore[arg-type]


@pytest.mark.parametrize("device", DEVICES)
def test_a_job_is_resumed(device: str, tmp_path: Path) -> None:
    array = np.arange(40_000, dtype=np.float32).reshape(-1, 4)
    x = fc.source(array)
    made = [x.sum().sum(keepdims=True), x.max().argmax(), x.mean(axis=()).max(axis=0), x.min().var(), x.std().any()]
    expected = fc.resolve(*made, device=device, progress=False)
    with pytest.raises(fc.RunError, match="frozen"):
        fc.run(
            *made,
            device=device,
            progress=False,
            checkpoint=tmp_path / "kept",
            strategy=fc.Strategy(batch_bytes=16_000),
            on_batch=lambda run: run.freeze(),
        )
    frozen = fc.thaw(tmp_path / "kept")
    assert not frozen.done
    for value, want in zip(frozen.resolve(device=device, progress=False), expected, strict=True):
        np.testing.assert_array_equal(value, want)
    again = fc.resolve(*made, device=device, progress=False, checkpoint=tmp_path / "kept")
    assert [value.tobytes() for value in again] == [value.tobytes() for value in expected]


def test_the_plan_has_no_step_for_it() -> None:
    plan = fc.plan((fc.source(ROWS) * 2).sum(axis=()), device="cpu")
    assert len(plan.kernels) == 1
