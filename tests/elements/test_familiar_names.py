"""Names and habits of NumPy and of others: they work, or the refusal says what is meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc

DEVICES = ("numpy", "cpu")
ARRAY = np.array([[1, np.nan, 3], [np.nan, np.nan, 2], [7, np.nan, -4], [0.5, np.nan, np.nan]], np.float32)
NAN_FOLDS = ("nansum", "nanmean", "nanmin", "nanmax", "nanvar", "nanstd")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4"])
@pytest.mark.filterwarnings("ignore:.*NaN slice|.*nan|Degrees of freedom|Mean of empty:RuntimeWarning")
def test_reductions_without_nan(device: str, dtype: str) -> None:
    array = np.nan_to_num(ARRAY).astype(dtype) if dtype == "i4" else ARRAY.astype(dtype)
    made, wanted = [], []
    for name in NAN_FOLDS:
        for axis in (None, 0, 1):
            for of in (fc.source, fc.constant):
                options = {"correction": 1} if name in ("nanvar", "nanstd") and axis == 1 else {}
                made.append(getattr(fc, name)(of(array), axis, keepdims=axis == 0, **options))
                wanted.append(getattr(np, name)(array, axis=axis, keepdims=axis == 0, **options))
    for element, value, want in zip(made, fc.resolve(*made, device=device, progress=False), wanted, strict=True):
        assert element.shape == np.shape(want)
        assert element.dtype == value.dtype == np.asarray(want).dtype
        np.testing.assert_allclose(value, want, rtol=2e-3 if dtype == "f2" else 1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_infinities_are_not_left_out_with_nan(device: str) -> None:
    array = np.array([[1, np.inf, np.nan], [np.inf, np.inf, np.nan], [-np.inf, np.inf, 1], [2, np.nan, 4]])
    cases = [(name, axis) for name in NAN_FOLDS for axis in (None, 0, 1)]
    made = [getattr(fc, name)(of(array), axis) for name, axis in cases for of in (fc.source, fc.constant)]
    wanted = [getattr(np, name)(array, axis=axis) for name, axis in cases for _ in range(2)]
    for value, want in zip(fc.resolve(*made, device=device, progress=False), wanted, strict=True):
        np.testing.assert_array_equal(value, want)


@pytest.mark.parametrize("device", DEVICES)
def test_quantiles_by_other_names(device: str) -> None:
    array = np.random.default_rng(3).normal(size=(301, 4))
    x = fc.source(array)
    made = [fc.median(x), fc.percentile(x, 25), fc.percentile(x, [5, 95.5])]
    wanted = [np.median(array), np.percentile(array, 25), np.percentile(array, [5, 95.5])]
    for value, want in zip(fc.resolve(*made, device=device, progress=False), wanted, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-14)


@pytest.mark.parametrize("device", DEVICES)
def test_methods(device: str) -> None:
    array = np.arange(24, dtype="f4").reshape(6, 4) / 7
    x = fc.source(array)
    made = [x.head(2), x.head(), x.reshape(-1, 2, 2), x.reshape((6, 4, 1)), x.cumsum(0), x.cumsum(axis=1, dtype="f8")]
    made += [x.round(2), round(x, 1), round(x), x[:, fc.constant(1)], x.clip(0, 1), x.astype("i4")]
    wanted = [array[:2], array[:5], array.reshape(-1, 2, 2), array.reshape(6, 4, 1), array.cumsum(0)]
    wanted += [array.cumsum(1, dtype="f8"), array.round(2), array.round(1), array.round(), array[:, np.array(1)]]
    wanted += [array.clip(0, 1), array.astype("i4")]
    for value, want in zip(fc.resolve(*made, device=device, progress=False), wanted, strict=True):
        assert value.dtype == want.dtype
        np.testing.assert_allclose(value, want, rtol=1e-6)
    np.testing.assert_array_equal((x * 2).to_numpy(device=device, progress=False), array * 2)
    assert x.sum().to_numpy(device=device, progress=False).shape == ()
    assert "read" in (x * 2).explain(device=device)


def test_sizes_are_told_where_they_are_known() -> None:
    x, unknown = fc.source(np.ones((6, 4), "f4")), fc.iterate([np.ones(3)], shape=(2,), dtype="f8")
    assert (len(x), x.size, x.nbytes, len(x[0])) == (6, 24, 96, 4)
    assert (unknown.size, unknown.nbytes, x.sum().size) == (None, None, 1)
    for element in (unknown, x.sum()):
        with pytest.raises(TypeError, match=r"has no len\(\) yet"):
            len(element)
    np.testing.assert_array_equal(fc.arange(1, 9, 2).resolve(device="numpy", progress=False), np.arange(1, 9, 2))


X: Any = fc.source(np.ones((6, 4), "f4"))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: X >> "out.npy", r"`>>` takes a destination(.|\n)*x >> fc\.save\(\"out\.npy\"\)"),
        (lambda: X >> Path("out.npy"), r"x >> fc\.save\(\"out\.npy\"\)"),
        (lambda: fc.reshape(X, (-1,)), r"fc\.flatten"),
        (lambda: fc.open("a.npz"), r"cannot open(.|\n)*\.npz(.|\n)*np\.save"),
        (lambda: fc.open("a.h5"), r"\.h5(.|\n)*np\.save"),
        (lambda: fc.save("a.csv"), r"cannot save(.|\n)*\.csv(.|\n)*\.npy"),
        (lambda: fc.open("a.xyz"), "say which: format="),
        (lambda: fc.var(X, ddof=1), "is correction= meant"),
        (lambda: X.std(ddof=1), "is correction= meant"),
        (lambda: fc.cov(X, ddof=1), "is correction= meant"),
        (lambda: fc.nanvar(X, ddof=1), "is correction= meant"),
        (lambda: fc.bincount(X, minlength=3), "is length= meant"),
    ],
)
def test_refusals_say_what_is_meant(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(fc.SpecError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fc.map_batches, r"use fc\.host\(function, x\)"),
        (lambda: fc.from_array, r"use fc\.source\(array\)"),
        (lambda: fc.histogramm, r"did you mean fc\.histogram\?"),
        (lambda: fc.zzzzzz, "flowcompute has no 'zzzzzz'$"),
        (lambda: X.map_batches, r"use fc\.host"),
        (lambda: X.describe, r"use fc\.describe\(x\)"),
        (lambda: X.nothing_like_it, "has no attribute 'nothing_like_it'$"),
    ],
)
def test_unknown_names_are_answered(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(AttributeError, match=text):
        call()
