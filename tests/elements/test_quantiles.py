"""Quantiles of columns and of items, and descriptions of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.engine.accumulators.sketch import rank_error
from flowcompute.errors import SpecError
from flowcompute.spec import SUPPORTED_DTYPES, is_float

CUBE = np.random.default_rng(3).integers(-9, 10, (9, 4, 3))


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype("f8")


@given(data=st.data())
def test_any_axis_dtype_and_batch_size(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(SUPPORTED_DTYPES))
    array = CUBE.astype(dtype)
    if is_float(array.dtype):
        array[2, 1, 0] = np.nan
    q = data.draw(st.floats(0, 1))
    axis, keepdims = data.draw(st.sampled_from([None, 0, 1, 2, -1])), data.draw(st.booleans())
    x = fc.source(array) if data.draw(st.booleans()) else fc.constant(array)
    made = fc.quantile(x, q, axis, keepdims=keepdims)
    strategy = fc.Strategy(batch_bytes=data.draw(st.integers(8, 500)))
    value = made.resolve(device="numpy", progress=False, strategy=strategy)
    with np.errstate(all="ignore"):
        want = np.quantile(wide(array), q, axis, keepdims=keepdims)
    assert made.shape == value.shape == want.shape
    assert value.dtype == made.dtype == (array.dtype if is_float(array.dtype) else np.dtype("f8"))
    rounding = {"bfloat16": 2e-2, "float16": 2e-3, "float32": 1e-6}.get(array.dtype.name, 1e-12)
    np.testing.assert_allclose(wide(value), want, rtol=rounding, atol=10 * rounding)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_several_at_once(device: str) -> None:
    array = CUBE.astype("f4")
    x, y = fc.source(array), fc.constant(array)
    q = np.array([[0.1, 0.5, 0.5], [0, 1, 0.9]])
    for made, want in [
        (fc.quantile(x, [0.25, 0.75], axis=0), np.quantile(array, [0.25, 0.75], axis=0)),
        (fc.quantile(x, q, axis=0, keepdims=True), np.quantile(array, q, axis=0, keepdims=True)),
        (fc.percentile(x, [10, 90]), np.percentile(array, [10, 90])),
        (fc.percentile(y, [10, 90], axis=1), np.percentile(array, [10, 90], axis=1)),
        (fc.quantile(y, q, axis=-1, keepdims=True), np.quantile(array, q, axis=-1, keepdims=True)),
        (fc.median(x, axis=0), np.median(array, axis=0)),
        (fc.median(x), np.median(array)),
        (fc.median(x * 2, axis=1) + 1, np.median(array * 2, axis=1) + 1),
    ]:
        value = made.resolve(device=device, progress=False)
        assert value.shape == made.shape == want.shape
        np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-5)


@given(q=st.floats(0, 1))
def test_beside_infinities_sketches_and_sorts_agree(q: float) -> None:
    array = CUBE[:, :, 0].astype("f8")
    array[0, 0], array[3:5, 1], array[1, 2], array[2, 3] = np.inf, -np.inf, np.nan, np.inf
    array[5, 3] = -np.inf
    made = [fc.quantile(make(array), q, axis=0) for make in (fc.source, fc.constant)]
    values = fc.resolve(*made, device="numpy", progress=False)
    np.testing.assert_array_equal(*values)


def test_columns_are_what_each_is_alone() -> None:
    rng = np.random.default_rng(5)
    array = np.stack([rng.permutation(100_000), rng.pareto(0.5, 100_000), np.arange(100_000)], axis=1).astype("f4")
    array[77_777, 2] = np.nan
    q = [0.01, 0.5, 0.99]
    x = fc.source(array)
    alone = [fc.quantile(x[:, column], q) for column in range(3)]
    for batch in (1 << 12, 1 << 18):
        strategy = fc.Strategy(batch_bytes=batch)
        together, *others = fc.resolve(
            fc.quantile(x, q, axis=0), *alone, device="numpy", progress=False, strategy=strategy
        )
        np.testing.assert_array_equal(together, np.stack(others, axis=1))
    ranks = np.searchsorted(np.sort(array[:, 0]), together[:, 0])
    assert (np.abs(ranks - np.array(q) * (len(array) - 1)) <= rank_error(len(array)) + 1).all()


def test_the_plan_counts_each_column() -> None:
    x = fc.source(np.ones((20_000, 50), "f4"))
    fc.quantile(x, 0.5, axis=0).resolve(memory="256MiB", progress=False, device="numpy")
    with pytest.raises(fc.PlanError, match="quantile"):
        fc.plan(fc.quantile(x, 0.5, axis=0), memory="16MiB", device="numpy")


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_descriptions_are_of_columns(device: str) -> None:
    array = CUBE.reshape(-1, 4).astype("f8")
    array[3, 2] = np.nan
    wanted = {
        "count": (array == array).sum(axis=0),
        "mean": array.mean(axis=0),
        "std": array.std(axis=0, ddof=1),
        "min": array.min(axis=0),
        **{f"{q}%": np.percentile(array, q, axis=0) for q in (25, 50, 75)},
        "max": array.max(axis=0),
    }
    for x in (fc.source(array), fc.constant(array), fc.iterate([array[:5], array[5:]], shape=(4,), dtype="f8")):
        made = fc.describe(x)
        values = made.resolve(device=device, progress=False)
        assert list(values) == list(made) == list(wanted)
        for name, want in wanted.items():
            np.testing.assert_allclose(values[name], want, err_msg=name)
    numbers = fc.describe(fc.source(array[:, 0])).resolve(device=device, progress=False)
    assert (numbers["count"], numbers["50%"]) == (len(array), np.median(array[:, 0]))


def test_a_description_reads_once() -> None:
    plan = fc.plan(*fc.describe(fc.source(np.ones((50, 3)))).values())
    assert len(plan.passes) == 1
    assert "describe" in str(plan)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: fc.quantile(x, 1.5, axis=0), "cannot take q="),
        (lambda x: fc.quantile(x, 0.5, axis=2), "cannot find axis 2"),
        (lambda x: fc.quantile(x, [0.5, 1], axis=1), r"cannot put quantiles before the stream(.|\n)*fc.stack"),
        (lambda x: fc.percentile(x, 101), "cannot take q="),
        (lambda x: fc.median(x, axis=0, keepdims="no"), "keepdims="),
        (lambda x: fc.median(x[:, :0], axis=1), "empty axis"),
        (lambda x: fc.describe(fc.constant(1)), "cannot describe a number"),
    ],
)
def test_what_is_refused(call: Callable[..., Any], text: str) -> None:
    with pytest.raises((SpecError, AttributeError), match=text):
        call(fc.source(np.zeros((5, 3))))
