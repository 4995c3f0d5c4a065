"""Names and habits of NumPy and of others: they work, or the refusal says what is meant."""

from __future__ import annotations

import functools
import itertools
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.arguments import ATTRIBUTES, FUNCTIONS
from tests.support.slow import compiled_but

DEVICES = ("numpy", "cpu")
ARRAY = np.array([[1, np.nan, 3], [np.nan, np.nan, 2], [7, np.nan, -4], [0.5, np.nan, np.nan]], np.float32)
NAN_FOLDS = ("nansum", "nanmean", "nanmin", "nanmax", "nanvar", "nanstd")


@pytest.mark.parametrize(
    ("device", "dtype"),
    [
        *itertools.product(DEVICES, ["f4"]),
        *compiled_but([("numpy", "f2")], itertools.product(DEVICES, ["f2", "f8", "i4"])),
    ],
)
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


@pytest.mark.parametrize(("device", "dtype"), [("numpy", "f2"), ("numpy", "f4"), ("cpu", "f4")])
def test_numbers_in_the_place_of_nan(device: str, dtype: str) -> None:
    array = np.array([[1, np.nan, np.inf, 1e4], [-np.inf, 0, -0.0, np.nan]], dtype)
    given: list[dict[str, Any]] = [{}, {"nan": -1}, {"posinf": 5, "neginf": np.nan}]
    for of in (fc.source, fc.constant):
        made = [call(of(array), **options) for options in given for call in (fc.nan_to_num, np.nan_to_num)]
        for i, value in enumerate(fc.resolve(*made, device=device, progress=False)):
            np.testing.assert_array_equal(value, np.nan_to_num(array, **given[i // 2]), strict=True)
    whole = fc.source(np.arange(3))
    assert fc.nan_to_num(whole, nan=7) is whole


@pytest.mark.filterwarnings("ignore:.*NaN slice|.*nan|Degrees of freedom|Mean of empty:RuntimeWarning")
def test_reductions_without_nan_by_numpys_functions() -> None:
    x = fc.source(ARRAY)
    made = [getattr(np, name)(x, axis=1) for name in NAN_FOLDS]
    made += [np.nanstd(x, axis=0, ddof=1), np.nansum(x, dtype="f8")]
    wanted = [getattr(np, name)(ARRAY, axis=1) for name in NAN_FOLDS]
    wanted += [np.nanstd(ARRAY, axis=0, ddof=1), np.nansum(ARRAY, dtype="f8")]
    for value, want in zip(fc.resolve(*made, device="numpy", progress=False), wanted, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6, strict=True)


def test_a_variance_by_keys_as_proposed() -> None:
    rng = np.random.default_rng(5)
    array, keys = rng.normal(3, 1, 500), rng.integers(0, 4, 500)
    x, of = fc.source(array), fc.source(keys)
    found = fc.segment_mean((x - fc.segment_mean(x, of, 4)[of]) ** 2, of, 4).resolve(device="numpy", progress=False)
    np.testing.assert_allclose(found, [array[keys == key].var() for key in range(4)], rtol=1e-12)


def test_a_join_by_keys_as_proposed() -> None:
    keys, values = np.array([3, 5, 9]), np.array([[0.3, 1], [0.5, 2], [0.9, 3]])
    x = fc.source(np.array([9, 3, 3, 5]))
    joined = fc.constant(values)[fc.searchsorted(keys, x)].resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(joined, values[[2, 0, 0, 1]])


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
    described = x.describe().resolve(device=device, progress=False)
    assert list(described) == ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]
    np.testing.assert_allclose(described["std"], array.std(axis=0, ddof=1), rtol=1e-6)


def test_sizes_are_told_where_they_are_known() -> None:
    x, unknown = fc.source(np.ones((6, 4), "f4")), fc.iterate([np.ones(3)], shape=(2,), dtype="f8")
    assert (len(x), x.size, x.nbytes, len(x[0])) == (6, 24, 96, 4)
    assert (unknown.size, unknown.nbytes, x.sum().size) == (None, None, 1)
    for element in (unknown, x.sum()):
        with pytest.raises(TypeError, match=r"cannot tell the len\(\) of a lazy value"):
            len(element)
    np.testing.assert_array_equal(fc.arange(1, 9, 2).resolve(device="numpy", progress=False), np.arange(1, 9, 2))


X: Any = fc.source(np.ones((6, 4), "f4"))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: X >> "out.npy", r"`>>` takes a destination(.|\n)*x >> fc\.save\(\"out\.npy\"\)"),
        (lambda: X >> Path("out.npy"), r"x >> fc\.save\(\"out\.npy\"\)"),
        (lambda: fc.reshape(X, (-1,)), r"fc\.flatten"),
        (lambda: fc.reshape(X, (-1, 3, 4)), r"fc\.cut\(x, 3\) joins 3 records"),
        (lambda: X.__setitem__(X < 0, 0), r"x = fc\.where\(mask, value, x\)"),
        (lambda: iter(X), r"fc\.callback"),
        (lambda: X.apply(np.sum), r"fc\.host\(function, x\)"),
        (lambda: np.percentile(X, 5), r"use fc\.percentile\(x, q\)"),
        (lambda: np.nanmedian(X), r"use fc\.median\(x\[~fc\.isnan\(x\)\]\)"),
        (lambda: fc.open("a.npz"), r"cannot open(.|\n)*\.npz(.|\n)*np\.save"),
        (lambda: fc.open("a.mat"), r"\.mat(.|\n)*np\.save"),
        (lambda: fc.open("a.csv"), r"do        read it in batches: fc\.iterate\("),
        (lambda: fc.open("a.png"), r"do        fc\.iterate\(\(np\.asarray\(Image\.open"),
        (lambda: fc.open("a.gguf"), r"do        fc\.models\.load"),
        (lambda: fc.source(np.array(["2020"], "M8[D]")), r'array\.view\("int64"\)'),
        (lambda: fc.constant(np.array(["a"])), r"do        numbers stand for texts"),
        (
            lambda: fc.source(np.array(["a"], np.dtypes.StringDType())),
            r"StringDType\(\) is not supported(.|\n)*do        numbers stand for texts",
        ),
        (lambda: X + np.ones(4, complex), r"do        array\.real and array\.imag"),
        (
            lambda: X + np.ones(6),
            r"do        a number for each record is a stream, too: fc\.source\(array\)\[:, None\]",
        ),
        (lambda: fc.abs(fc.fft.rfft(X)), r"fc\.hypot\(\*pair\)"),
        (lambda: fc.nn.cross_entropy(X, X), r"fc\.argmax\(labels, axis=1\)"),
        (lambda: fc.train.fit(X.mean(), fc.train.adam()), r'w = fc\.parameter\(array, name="w"\)'),
        (lambda: fc.train.adam(lr=1e-3), "is rate= meant"),
        (lambda: fc.train.fit(X.mean(), fc.train.adam(), batch_size=3), "is batch= meant"),
        (lambda: fc.save(X), r"do        x >> fc\.save\(path\)"),
        (lambda: X[X[:, 0] > 0][-5:], r"fc\.last\(x\) is the last record"),
        (lambda: fc.run("x.npy"), r"do        fc\.open\(path\)"),
        (lambda: fc.run(fc.table({"speed": X[:, 0]})), r"do .*fc\.run\(values\['speed'\]\)"),
        (lambda: {"a": X} >> fc.save("a.npy"), r"do        .*fc\.table\(streams\)"),
        (lambda: [*X], "cannot tell the items of a lazy value"),
        (lambda: fc.save("a.csv"), r"cannot save(.|\n)*\.csv(.|\n)*\.npy"),
        (lambda: fc.open("a.xyz"), "say which: format="),
        (lambda: fc.var(X, ddof=1), "is correction= meant"),
        (lambda: X.std(ddof=1), "is correction= meant"),
        (lambda: fc.cov(X, ddof=1), "is correction= meant"),
        (lambda: fc.nanvar(X, ddof=1), "is correction= meant"),
        (lambda: fc.bincount(X, minlength=3), "is length= meant"),
        (lambda: bool(X[:, 0] > 0 and X[:, 1] > 0), r"use & for and(.|\n)*\.resolve\(\)"),
        (lambda: fc.histogram(X, 10, range=(X.min(), X.max())), r"range=(.|\n)*fc\.resolve\(x\.min\(\), x\.max\(\)\)"),
        (lambda: fc.histogram(X, X.min(axis=0)), r"bins=(.|\n)*fc\.resolve"),
        (lambda: fc.source(i for i in range(3)), r"fc\.iterate\("),
        (lambda: fc.top_k(X, 2), "axis=1"),
        (lambda: fc.bincount(fc.source(np.ones((6, 4), "i4")), 5), r"x\[:, j\]"),
        (lambda: fc.stack([X, X], 1.5), r"expected  a whole number\n"),
        (lambda: fc.concat(X, X), r"fc\.concat\(\[x, y\]\)"),
        (lambda: fc.stack(X, X), r"fc\.stack\(\[x, y\]\)"),
        (lambda: fc.concat([X, X[:, 0]], axis=1), r"y\[:, None\]"),
        (lambda: X + fc.source(np.ones((5, 4), "f4")), r"x\[:5\]"),
        (lambda: fc.random.uniform((6,)), "shape="),
        (lambda: np.lib.stride_tricks.sliding_window_view(X, 3), r"fc\.window"),
        (lambda: np.median(X), r"use fc\.median"),
        (lambda: np.compress([True], X), r"x\[mask\]"),
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
        (lambda: fc.filter, r"use x\[mask\]$"),
        (lambda: fc.softmax, r"did you mean fc\.nn\.softmax\?$"),
        (lambda: fc.solve, r"did you mean fc\.linalg\.solve\?$"),
        (lambda: fc.normal, r"did you mean fc\.random\.normal\?$"),
        (lambda: fc.Conv2d, r"did you mean fc\.nn\.conv2d\?$"),
        (lambda: fc.cdist, r"use fc\.linalg\.norm\(x\[:, None\] - table, axis=2\)"),
        (lambda: fc.rolling_mean, r"use fc\.window\(x, size\)\.mean\(axis=1\)$"),
        (lambda: fc.nn.Linear, r"flowcompute\.nn has no 'Linear'; use x @ w\.T \+ b$"),
        (lambda: fc.nn.maxpool2d, r"did you mean fc\.nn\.max_pool2d\?$"),
        (lambda: fc.train.Adam, r"flowcompute\.train has no 'Adam'; did you mean fc\.train\.adam\?$"),
        (lambda: fc.random.randn, r"use fc\.random\.normal\("),
        (lambda: fc.linalg.lstsq, r"use fc\.linalg\.solve\("),
        (lambda: fc.fft.rfftt, r"did you mean fc\.fft\.rfft\?$"),
        (lambda: fc.fft.zzzzzz, r"flowcompute\.fft has no 'zzzzzz'$"),
        (lambda: X.quantile, r"use fc\.quantile\(x, q, axis\)$"),
        (lambda: X.relu, r"use fc\.nn\.relu\(x\)$"),
        (lambda: X.map_batches, r"use fc\.host"),
        (lambda: X.fillna, r"use fc\.nan_to_num\(x, nan=number\)$"),
        (lambda: X.backward, r"use fc\.grad\("),
        (lambda: fc.shift, r"use x\[:-1\] beside x\[1:\]"),
        (lambda: fc.nn.mse_loss, r"use fc\.nn\.mse$"),
        (lambda: X.nanmean, r"use fc\.nanmean$"),
        (lambda: X.logaddexp, r"use fc\.logaddexp$"),
        (lambda: X.conv2d, r"use fc\.nn\.conv2d$"),
        (lambda: X.eigh, r"use fc\.linalg\.eigh$"),
        (lambda: X.Vector, "has no attribute 'Vector'$"),
        (lambda: fc.split, r"use x\[:, :k\] and x\[:, k:\]"),
        (lambda: fc.gradient, r"fc\.grad\(loss, parameters\)"),
        (lambda: X.nothing_like_it, "has no attribute 'nothing_like_it'$"),
    ],
)
def test_unknown_names_are_answered(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(AttributeError, match=text):
        call()


@pytest.mark.parametrize("table", [FUNCTIONS, ATTRIBUTES])
def test_what_is_proposed_is_there(table: dict[str, str]) -> None:
    for proposal in table.values():
        for dotted in re.findall(r"\bfc\.([a-z_.]+[a-z_])", proposal):
            assert functools.reduce(getattr, dotted.split("."), fc) is not None


def test_magnitudes_of_complex_pairs() -> None:
    array = np.random.default_rng(2).normal(size=(5, 8))
    found = abs(fc.fft.rfft(fc.source(array))).resolve(device="numpy", progress=False)
    np.testing.assert_allclose(found, np.abs(np.fft.rfft(array)), rtol=1e-12)


def test_kernels_say_how_they_are_written() -> None:
    def choose(x: float) -> Any:
        return np.where(x > 0, x, 0)

    def total(x: Any) -> Any:
        found = 0.0
        for one in x:
            found += one
        return found

    for function, text in (
        (lambda x: x, "def f\\(x\\)"), (choose, "write a if test else b"), (total, "each argument is a single number")
    ):  # fmt: skip
        with pytest.raises(fc.KernelError, match=text):
            fc.kernel(function)(X)


def test_errors_of_runs_show_no_frames_of_the_runtime() -> None:
    def fails(batch: np.ndarray) -> np.ndarray:
        raise ValueError(len(batch))

    with pytest.raises(fc.RunError, match="ValueError: 6") as caught:
        fc.host(fails, X).resolve(device="numpy", progress=False)
    files = [Path(frame.filename).parts[-2:] for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files[0] == Path(__file__).parts[-2:]
    assert {parts[0] for parts in files[1:]} <= {"flowcompute", "elements", "run"}
    assert caught.value.__cause__ is not None
    assert traceback.extract_tb(caught.value.__cause__.__traceback__)[-1].name == "fails"


def test_distances_to_a_table_as_proposed() -> None:
    table = np.arange(12, dtype="f4").reshape(3, 4)
    found = fc.linalg.norm(X[:, None] - table, axis=2).resolve(progress=False)
    np.testing.assert_allclose(found, np.linalg.norm(np.ones((6, 1, 4)) - table, axis=2), rtol=1e-6)


@pytest.mark.parametrize(("made", "hint"), [(np.ones((3, 2), "f4"), "say dtype="), (np.ones(2, "i4"), "yield batches")])
def test_a_wrong_dtype_is_answered_by_dtype_and_a_wrong_shape_by_shape(made: np.ndarray, hint: str) -> None:
    x = fc.iterate([made], shape=(2,), dtype="int32")
    with pytest.raises(fc.SourceError, match=hint):
        x.resolve(device="numpy", progress=False)
