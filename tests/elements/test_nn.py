"""Functions of neural networks against formulas in wider numbers: every float dtype, axes anywhere, edges, one kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16, FLOAT16, FLOAT32, FLOAT64

Form = Callable[..., Any]
DTYPES = [
    # Its kernels take the compiler longest; bfloat16 goes the same way.
    pytest.param(FLOAT16, id="float16", marks=pytest.mark.compiles),
    *(pytest.param(dtype, id=str(dtype)) for dtype in (BFLOAT16, FLOAT32, FLOAT64)),
]
INF, NAN = math.inf, math.nan


def kernels(*elements: fc.Element) -> int:
    return len(fc.plan(*elements, device="cpu").kernels)


def numbers(shape: tuple[int, ...], dtype: Any = FLOAT32, seed: int = 0) -> np.ndarray:
    return (3 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def unit(dtype: np.dtype) -> float:
    """The distance from 1 to the next number, of what half formats are computed in where it is larger."""
    return float(ml_dtypes.finfo(dtype).eps)


def close(got: np.ndarray, wanted: np.ndarray, room: float = 8.0, scale: Any = None) -> None:
    """Equal places of NaN and infinities; the rest within `room` units of `scale` (of what is wanted)."""
    assert got.shape == wanted.shape
    value, eps = got.astype(np.float64), unit(got.dtype)
    size = np.abs(wanted) if scale is None else np.broadcast_to(np.asarray(scale, np.float64), wanted.shape)
    with np.errstate(invalid="ignore"):
        near = np.abs(value - wanted) <= room * eps * size + float(ml_dtypes.finfo(got.dtype).tiny)
    bad = ~(near | (value == wanted) | (np.isnan(value) & np.isnan(wanted)))
    assert not bad.any(), (value[bad][:5], wanted[bad][:5])


# -- activations ----------------------------------------------------------------------------------

POINTS = [
    0.0,
    0.1,
    0.5,
    0.9999,
    1.0,
    1.0001,
    2.0,
    3.0,
    3.999,
    4.5,
    6.5,
    10.0,
    19.9,
    88.0,
    90.0,
    104.0,
    800.0,
    1e4,
    1e-4,
]
EDGES = np.array([*POINTS, *(-point for point in POINTS), INF, -INF, NAN, 3e38, -3e38])


def phi(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x * math.sqrt(0.5)) + 1


ACTIVATIONS: dict[str, tuple[Form, Form]] = {
    "leaky_relu": (lambda x: fc.nn.leaky_relu(x, 0.25), lambda a: np.where(a > 0, a, 0.25 * a)),
    "elu": (lambda x: fc.nn.elu(x, alpha=1.5), lambda a: np.where(a > 0, a, 1.5 * np.expm1(np.minimum(a, 0)))),
    "silu": (fc.nn.silu, lambda a: a / (1 + np.exp(-a))),
    "gelu": (fc.nn.gelu, lambda a: 0.5 * a * phi(a)),
    "gelu by tanh": (
        lambda x: fc.nn.gelu(x, approximate="tanh"),
        lambda a: 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))),
    ),
    "softplus": (fc.nn.softplus, lambda a: np.logaddexp(a, 0)),
    "mish": (fc.nn.mish, lambda a: a * np.tanh(np.logaddexp(a, 0))),
    "hardswish": (fc.nn.hardswish, lambda a: a * np.clip(a + 3, 0, 6) / 6),
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_activations(dtype: np.dtype) -> None:
    """One kernel for all of them, whatever the numbers; errors are small beside the number itself."""
    with np.errstate(over="ignore"):
        points = np.tile(EDGES.astype(dtype), 3)
    made = [on_element(fc.source(points)) for on_element, _ in ACTIVATIONS.values()]
    assert kernels(*made) == 1
    exact = points.astype(np.float64)
    # Beside a step at the largest exponents, NaN arises where a * 0 does: as the formula in `dtype` has it.
    for device in ("numpy", "cpu"):
        results = fc.resolve(*made, device=device)
        for name, result in zip(ACTIVATIONS, results, strict=True):
            assert result.dtype == dtype
            with np.errstate(all="ignore"):
                wanted = ACTIVATIONS[name][1](exact)
            scale = np.maximum(np.abs(wanted), np.minimum(np.abs(exact), 1e30))
            close(
                result,
                np.where(np.isfinite(result.astype(np.float64)), wanted, result),
                scale=np.where(np.isfinite(scale), scale, 0),
            )
            unbounded = np.isneginf(exact) & (name not in ("leaky_relu", "elu", "softplus"))
            assert (np.isnan(result.astype(np.float64)) == np.isnan(exact) | unbounded).all(), name


def test_an_activation_of_small_numbers_below_zero_keeps_its_digits() -> None:
    tiny = -np.logspace(-30, -1, 64, dtype=np.float32)
    for function, wanted in ((fc.nn.elu, np.expm1), (fc.nn.silu, lambda a: a / (1 + np.exp(-a)))):
        close(function(fc.source(tiny)).resolve(), wanted(tiny.astype(np.float64)))


def test_relu_keeps_the_dtype() -> None:
    for dtype in (np.int8, np.uint16, np.float16, np.float32):
        array = np.array([-3, 0, 5]).astype(dtype)
        got = fc.nn.relu(fc.source(array)).resolve()
        np.testing.assert_array_equal(got, np.maximum(array, dtype(0)), strict=True)
    got = fc.nn.relu(fc.source(np.array([-0.0, NAN, -INF, INF]))).resolve()
    np.testing.assert_array_equal(got, [0, NAN, 0, INF])
    assert not np.signbit(got[0])


@pytest.mark.parametrize(
    ("dtype", "result"),
    [("bool", "float16"), ("int8", "float16"), ("uint16", "float32"), ("int32", "float64"), ("uint64", "float64")],
)
def test_integers_become_the_floats_of_exp(dtype: str, result: str) -> None:
    x = fc.source(np.ones((3, 2), dtype))
    functions = (fc.nn.gelu, fc.nn.softmax, fc.nn.logsumexp, fc.nn.layer_norm, fc.nn.erf)
    for value in fc.resolve(*(function(x) for function in functions), device="numpy"):
        assert value.dtype == result


# -- softmax --------------------------------------------------------------------------------------


def wide_softmax(a: np.ndarray, axis: Any) -> np.ndarray:
    e = np.exp(a - a.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))


def wide_logsumexp(a: np.ndarray, axis: Any) -> np.ndarray:
    largest = a.max(axis, keepdims=True)
    return np.asarray((largest + np.log(np.exp(a - largest).sum(axis, keepdims=True))).max(axis))


def log_share(a: np.ndarray, axis: Any) -> np.ndarray:
    y = a - a.max(axis, keepdims=True)
    return np.asarray(y - np.log(np.exp(y).sum(axis, keepdims=True)))


SHARES = ((fc.nn.softmax, wide_softmax), (fc.nn.log_softmax, log_share), (fc.nn.logsumexp, wide_logsumexp))


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_of_rows(dtype: np.dtype) -> None:
    """Rows of one number, of a prime length, and of more than a thousand; far from 0, where exp overflows."""
    for columns in (1, 7, 1025) if dtype == FLOAT32 else (257,):
        array = (numbers((9, columns), FLOAT64) * 30 + 200).astype(dtype)
        made = [function(fc.source(array)) for function, _ in SHARES]
        assert kernels(*made) == 1
        assert all(kernels(one) == 1 for one in made)
        exact = array.astype(np.float64)
        for device in ("numpy", "cpu"):
            shares, logs, total = fc.resolve(*made, device=device)
            assert shares.dtype == logs.dtype == total.dtype == dtype
            # An error of y is one of exp(y) times y.
            close(shares, wide_softmax(exact, 1), scale=1)
            close(logs, log_share(exact, 1), scale=np.abs(exact).max())
            close(total, wide_logsumexp(exact, 1), scale=np.abs(exact).max())


@pytest.mark.parametrize("axis", [1, 2, -1, (1, 3), (2, 3), (3, 1, 2)])
def test_softmax_along_any_item_axes(axis: Any) -> None:
    array = numbers((21, 3, 5, 4))
    wanted = [meaning(array.astype(np.float64), axis) for _, meaning in SHARES]
    for x in (fc.source(array), fc.constant(array)):
        made = [function(x, axis) for function, _ in SHARES]
        assert all(kernels(one) == kernels(one * 2 + 1) == 1 for one in made)
        for value, want in zip(fc.resolve(*made), wanted, strict=True):
            close(value, want, scale=10)


@pytest.mark.slow
def test_softmax_along_the_stream_takes_several_readings() -> None:
    array = numbers((3000, 3))
    for (function, wanted), axis in zip(SHARES, (0, (0, 1), (0, 1)), strict=True):
        got = [
            np.asarray(function(fc.source(array), axis).resolve(strategy=strategy))
            for strategy in (fc.Strategy(batch_bytes=1000), fc.Strategy())
        ]
        close(got[0], wanted(array.astype(np.float64), axis), room=64, scale=10)
        assert got[0].tobytes() == got[1].tobytes()


def test_softmax_where_the_largest_cannot_be_subtracted() -> None:
    """As PyTorch's (its documentation of logsumexp and the results of its softmax)."""
    rows = np.array([[1, INF, 2], [-INF] * 3, [1, NAN, 2], [1, -INF, 2], [-INF, -INF, 5]], np.float32)
    for device in ("numpy", "cpu"):
        shares, logs, total = fc.resolve(*(function(fc.source(rows)) for function, _ in SHARES), device=device)
        assert np.isnan(shares[:3]).all()
        assert np.isnan(logs[:3]).all()
        np.testing.assert_allclose(shares[3:], [[1 / (1 + math.e), 0, math.e / (1 + math.e)], [0, 0, 1]], rtol=1e-6)
        np.testing.assert_array_equal(logs[4], [-INF, -INF, 0])
        np.testing.assert_allclose(total, [INF, -INF, NAN, 2 + math.log1p(math.exp(-1)), 5], rtol=1e-6)


@settings(max_examples=6)
@given(st.data())
def test_bits_do_not_depend_on_batches(data: st.DataObject) -> None:
    length = data.draw(st.sampled_from([0, 1, 1023, 1025]))
    columns = data.draw(st.sampled_from([1, 5, 40]))
    array = numbers((length, columns))
    labels = np.arange(length) % columns

    def made() -> list[fc.Element]:
        x = fc.source(array)
        return [fc.nn.softmax(x), fc.nn.layer_norm(x), fc.nn.cross_entropy(x, fc.source(labels)), fc.nn.gelu(x)]

    whole = fc.resolve(*made())
    batch_bytes = data.draw(st.integers(1, 1 << 16))
    for one, other in zip(whole, fc.resolve(*made(), strategy=fc.Strategy(batch_bytes=batch_bytes)), strict=True):
        assert one.tobytes() == other.tobytes()


def test_an_empty_axis_has_no_share() -> None:
    for function in (*(function for function, _ in SHARES), fc.nn.layer_norm, fc.nn.rms_norm):
        with pytest.raises(SpecError, match=f"{function.__name__}.*an empty axis"):
            function(fc.source(np.ones((3, 0), np.float32)))


# -- norms ----------------------------------------------------------------------------------------


def wide_norm(a: np.ndarray, axis: Any, eps: float = 1e-5) -> np.ndarray:
    return np.asarray((a - a.mean(axis, keepdims=True)) / np.sqrt(a.var(axis, keepdims=True) + eps))


@pytest.mark.parametrize("dtype", [DTYPES[0], FLOAT32], ids=str)
def test_norms(dtype: np.dtype) -> None:
    array = numbers((17, 6, 3, 5), dtype) + dtype.type(2)
    six, five, grid = (numbers(shape, dtype, 1) for shape in ((6,), (5,), (6, 5)))
    exact, w6, w5, w65 = (one.astype(np.float64) for one in (array, six, five, grid))
    per_channel = w6[:, None, None]
    spread = exact.reshape(17, 2, 3, 3, 5)
    wanted = {
        "layer": wide_norm(exact, -1) * w5 + w5,
        "layer of a middle axis": wide_norm(exact, 1, 0.1) * per_channel,
        "layer of two": wide_norm(exact, (1, 3)) * w65[:, None] + w65[:, None],
        "rms": exact / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-5) * w5,
        "instance": wide_norm(exact, (2, 3)) * per_channel + per_channel,
        "group": wide_norm(spread, (2, 3, 4)).reshape(exact.shape) * per_channel + per_channel,
        "group without weights": wide_norm(spread, (2, 3, 4)).reshape(exact.shape),
    }

    def made(x: fc.Element) -> list[fc.Element]:
        return [
            fc.nn.layer_norm(x, weight=five, bias=five),
            fc.nn.layer_norm(x, axis=1, eps=0.1, weight=six),
            fc.nn.layer_norm(x, axis=(3, 1), weight=grid, bias=fc.constant(grid)),
            fc.nn.rms_norm(x, weight=five),
            fc.nn.instance_norm(x, weight=six, bias=six),
            fc.nn.group_norm(x, 2, weight=six, bias=six),
            fc.nn.group_norm(x, 2),
        ]

    assert [kernels(one) for one in made(fc.source(array))] == [1] * len(wanted)
    for x, device in ((fc.source(array), "cpu"), (fc.source(array), "numpy"), (fc.constant(array), "numpy")):
        for name, result in zip(wanted, fc.resolve(*made(x), device=device), strict=True):
            assert result.dtype == dtype, name
            close(result, wanted[name], room=16, scale=np.abs(wanted[name]).max())


def test_norms_far_from_zero_do_not_cancel() -> None:
    array = (numbers((5, 300), FLOAT64) + 1000).astype(np.float32)
    close(fc.nn.layer_norm(fc.source(array)).resolve(), wide_norm(array.astype(np.float64), 1), room=2000, scale=4)


def test_a_norm_along_the_stream() -> None:
    array = numbers((2500, 3))
    got = fc.nn.layer_norm(fc.source(array), axis=0).resolve(strategy=fc.Strategy(batch_bytes=999))
    close(got, wide_norm(array.astype(np.float64), 0), room=32, scale=4)


def test_constant_rows_have_norm_zero_and_wide_weights_widen() -> None:
    x = fc.source(np.full((4, 7), 3, np.float16))
    np.testing.assert_array_equal(fc.nn.layer_norm(x).resolve(), np.zeros((4, 7), np.float16), strict=True)
    assert fc.nn.layer_norm(x, weight=np.ones(7, np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: fc.nn.layer_norm(x, weight=np.ones(5)),
            r"resident\(4,\)|cannot convolve with weights of this shape",
        ),
        (lambda x: fc.nn.layer_norm(x, axis=0, weight=np.ones(9)), "cannot weigh the stream axis"),
        (lambda x: fc.nn.layer_norm(x, weight=x[:, 0, :]), "cannot weigh the normalised axes"),
        (lambda x: fc.nn.group_norm(x, 4), "cannot divide the channels into groups"),
        (lambda x: fc.nn.group_norm(x, 0), "cannot take groups="),
        (lambda x: fc.nn.instance_norm(x[:, 0]), "cannot normalise channels of this"),
        (lambda x: fc.nn.gelu(x, approximate="erf"), "cannot take approximate="),
        (lambda x: fc.nn.softmax(x, 3), "cannot find axis 3"),
        (lambda x: fc.nn.mse(x, x, "median"), "cannot take reduction="),
        (lambda x: fc.nn.cross_entropy(x, x), "cannot take these labels"),
        (lambda x: fc.nn.cross_entropy(x, fc.source(np.zeros((9, 4), np.int64))), "cannot take these labels"),
        (lambda x: fc.nn.cross_entropy(x, np.zeros((6, 4), np.int64), axis=0), "cannot find classes inside items"),
    ],
)
def test_refusals(call: Form, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        call(fc.source(np.ones((9, 6, 4), np.float32)))


# -- losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy(dtype: np.dtype) -> None:
    scores, labels = numbers((301, 7), dtype), np.random.default_rng(1).integers(0, 7, 301)
    losses = -log_share(scores.astype(np.float64), 1)[np.arange(301), labels]
    for label_dtype in (np.uint8, np.uint64) if dtype == FLOAT32 else (np.int64,):
        x, y = fc.source(scores), fc.source(labels.astype(label_dtype))
        made = [fc.nn.cross_entropy(x, y), *(fc.nn.cross_entropy(x, y, reduction=how) for how in ("mean", "sum"))]
        assert kernels(made[0]) == 1
        each, mean, total = fc.resolve(*made)
        assert {each.dtype, mean.dtype, total.dtype} == {dtype}
        close(each, losses, scale=10)
        close(np.asarray(mean), np.asarray(losses.mean()), scale=10)
        close(np.asarray(total), np.asarray(losses.sum()), room=16)


def test_cross_entropy_of_pictures_and_of_residents() -> None:
    scores, labels = numbers((33, 4, 3, 5)), np.random.default_rng(1).integers(0, 4, (33, 3, 5))
    wanted = -np.take_along_axis(log_share(scores.astype(np.float64), 1), labels[:, None], 1)[:, 0]
    for wrap in (fc.source, fc.constant):
        made = fc.nn.cross_entropy(wrap(scores), wrap(labels), axis=1)
        assert made.shape == wanted.shape
        close(made.resolve(), wanted, scale=10)
    assert kernels(fc.nn.cross_entropy(fc.source(scores), fc.source(labels), axis=1)) == 1


def test_labels_that_are_no_class_and_scores_without_a_largest() -> None:
    scores = np.array([[1, 2, 3]] * 4 + [[-INF] * 3, [1, INF, 0], [NAN, 0, 0], [0, -INF, 0]], np.float32)
    labels = np.array([0, -1, 3, 1 << 40, 0, 0, 1, 1])
    for device in ("numpy", "cpu"):
        got = fc.nn.cross_entropy(fc.source(scores), fc.source(labels)).resolve(device=device)
        assert np.isnan(got[1:7]).all()
        assert got[7] == INF
        assert got[0] == pytest.approx(-log_share(scores[0].astype(np.float64), 0)[0], rel=1e-6)


def test_losses_of_pairs() -> None:
    a, b = numbers((400, 3)), numbers((400, 3), seed=1)
    p = np.random.default_rng(2).random((400, 3)).astype(np.float32)
    x, y, labels = fc.source(a), fc.source(b), fc.source(p)
    wide, wide_b, wide_p = (one.astype(np.float64) for one in (a, b, p))
    d = np.abs(wide - wide_b)
    wanted = {
        "mse": d**2,
        "huber": np.where(d <= 0.7, d**2 / 2, 0.7 * (d - 0.35)),
        "binary": np.logaddexp(0, wide) * (1 - wide_p) + np.logaddexp(0, -wide) * wide_p,
    }
    forms: list[Form] = [
        lambda how: fc.nn.mse(x, y, how),
        lambda how: fc.nn.huber(x, y, 0.7, how),
        lambda how: fc.nn.binary_cross_entropy(x, labels, how),
    ]
    made = [form(how) for form in forms for how in (None, "mean", "sum")]
    results = iter(fc.resolve(*made))
    for values in wanted.values():
        close(next(results), values, room=16, scale=np.abs(values) + 1)
        close(np.asarray(next(results)), np.asarray(values.mean()))
        close(np.asarray(next(results)), np.asarray(values.sum()))
    extreme = fc.nn.binary_cross_entropy(fc.source(np.array([1e30, -1e30])), fc.source(np.array([1.0, 0.0])))
    np.testing.assert_array_equal(extreme.resolve(), [0, 0])
