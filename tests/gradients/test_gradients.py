"""Gradients against known slopes, at kinks and edges, over streams of any length and for any batch size."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc

RNG = np.random.default_rng(20)


def slope(make: Callable[[Any], Any], x: Any, dtype: str = "float64", **options: Any) -> Any:
    """Return the gradient of the sum of a function of one stream of numbers or rows."""
    source = fc.source(np.asarray(x, dtype))
    return fc.grad(make(source).sum(), source).resolve(device="numpy", progress=False, **options)


def steps(make: Callable[[Any], Any], x: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Return the gradient by finite differences."""
    made = np.empty_like(x)
    ends = []
    for place in np.ndindex(x.shape):
        for sign in (1, -1):
            moved = x.copy()
            moved[place] += sign * h
            ends.append(make(fc.source(moved)).sum())
    values = fc.resolve(*ends, device="numpy", progress=False)
    for place, high, low in zip(np.ndindex(x.shape), values[::2], values[1::2], strict=True):
        made[place] = (high - low) / (2 * h)
    return made


# -- kinks and ties ---------------------------------------------------------------------------------------------------


def test_slopes_at_kinks() -> None:
    assert slope(fc.nn.relu, [-1, -0.0, 0, 2]).tolist() == [0, 0, 0, 1]
    assert slope(fc.abs, [-1, 0, 2]).tolist() == [-1, 0, 1]
    assert slope(lambda x: fc.maximum(x, 1.0), [0, 1, 2]).tolist() == [0, 1, 1]
    assert slope(lambda x: fc.minimum(1.0, x), [0, 1, 2]).tolist() == [1, 0, 0]
    assert slope(lambda x: fc.clip(x, 0.0, 1.0), [-1, 0.5, 2]).tolist() == [0, 1, 0]


@pytest.mark.parametrize("function", [fc.max, fc.min, fc.cumulative_max, fc.cumulative_min])
def test_the_first_of_equal_numbers_takes_all(function: Any) -> None:
    made = slope(
        lambda x: function(x, axis=1)[:, -1] if "cumulative" in function.__name__ else function(x, axis=1),
        [[2, 2, 2.0]],
    )
    assert made.tolist() == [[1, 0, 0]]


def test_the_first_of_equal_records_takes_all() -> None:
    assert slope(lambda x: fc.max(x, axis=0), [[1, 5], [3, 5], [3, 2]]).tolist() == [[0, 1], [1, 0], [0, 0]]
    keys = fc.source(np.array([1, 0, 1, 1]))
    assert slope(lambda x: fc.segment_max(x, keys, 2), [4, 1, 4, 2]).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("row", [[2, 3, 4], [0, 3, 4], [0, 3, 0], [0, 0, 0]])
@pytest.mark.parametrize("axis", [0, 1])
def test_products_with_zeros(row: list[float], axis: int) -> None:
    x = np.array([row], float) if axis else np.array(row, float)[:, None]
    others = np.array([math.prod(row[:i] + row[i + 1 :]) for i in range(3)], float).reshape(x.shape)
    np.testing.assert_array_equal(slope(lambda s: fc.prod(s, axis=axis), x), others)
    if axis:
        np.testing.assert_array_equal(slope(lambda s: fc.cumulative_prod(s, axis=1)[:, 2], x), others)


@pytest.mark.parametrize("row", [[2, 3, 4], [0, 3, 4], [0, 3, 0], [0, 0, 0]])
def test_second_derivatives_of_products_with_zeros(row: list[float]) -> None:
    x = fc.source(np.array([row], float))
    first = fc.grad(fc.prod(x, axis=1).sum(), x)
    made = fc.grad((first * np.array([1.0, 10, 100])).sum(), x).resolve(device="numpy", progress=False)
    a, b, c = row
    assert made.tolist() == [[10 * c + 100 * b, c + 100 * a, b + 10 * a]]


def test_an_edge_of_powers() -> None:
    assert slope(lambda x: fc.pow(x, 2.0), [0, 3]).tolist() == [0, 6]
    assert slope(lambda x: fc.pow(x, 0.0), [0, 3]).tolist() == [0, 0]
    assert slope(lambda x: fc.pow(0.0, x), [1, 2]).tolist() == [0, 0]
    assert slope(lambda x: fc.hypot(x, 0.0), [0, 3, -3]).tolist() == [0, 1, -1]


# -- broadcasting, residents and streams ------------------------------------------------------------------------------


def test_what_was_broadcast_is_summed() -> None:
    x = RNG.standard_normal((5, 3, 4))
    w, row, number = (fc.parameter(RNG.standard_normal(shape)) for shape in ((3, 1), (4,), ()))
    loss = (fc.source(x) * w * row * number).sum()
    by_w, by_row, by_number = fc.resolve(*fc.grad(loss, [w, row, number]), progress=False, device="numpy")
    a, b, c = (one.inputs[0].value for one in (w, row, number))
    np.testing.assert_allclose(by_w, (x.sum(0) * b * c).sum(1, keepdims=True))
    np.testing.assert_allclose(by_row, (x.sum(0) * a * c).sum(0))
    np.testing.assert_allclose(by_number, (x.sum(0) * a * b).sum())


def test_residents_alone() -> None:
    w = fc.parameter(np.arange(6.0).reshape(2, 3))
    made = fc.grad((w @ w.T).sum() + fc.vecdot(w[0], w[1]), w).resolve(device="numpy", progress=False)
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(made, 2 * a.sum(0) + a[::-1])


@pytest.mark.parametrize("batch_bytes", [64, 1 << 20])
def test_bits_do_not_depend_on_batches_or_on_how_a_stream_comes(batch_bytes: int) -> None:
    x, y = RNG.standard_normal((1000, 4)).astype("f4"), RNG.standard_normal(1000).astype("f4")
    w = fc.parameter(np.ones(4, "f4"))

    def made(rows: Any, targets: Any) -> bytes:
        loss = fc.nn.mse(rows @ w, targets, reduction="mean") * 0.5
        strategy = fc.Strategy(batch_bytes=batch_bytes)
        return fc.grad(loss, w).resolve(device="numpy", strategy=strategy, progress=False).tobytes()

    def iterated(array: np.ndarray) -> Any:
        return fc.iterate(np.split(array, range(7, 1000, 7)), shape=array.shape[1:], dtype="float32")

    known = made(fc.source(x), fc.source(y))
    assert known == made(iterated(x), iterated(y))
    exact = x.astype("f8").T @ (x.astype("f8").sum(1) - y) / 1000
    np.testing.assert_allclose(np.frombuffer(known, "f4"), exact, rtol=1e-4)


def test_a_mean_loss_is_one_reading() -> None:
    x = fc.source(RNG.standard_normal((100, 4)))
    w = fc.parameter(np.ones(4))
    loss = fc.nn.softplus(x @ w).mean()
    gradient = fc.grad(loss, w)
    assert len(fc.plan(loss, gradient, fc.grad(fc.vecdot(gradient, gradient.named("g")), w), memory="8MiB").passes) <= 2
    assert len(fc.plan(loss, gradient, memory="8MiB").passes) == 1


@pytest.mark.parametrize("make", [fc.source, fc.parameter])
def test_where_one_is_made_of_another(make: Any) -> None:
    a = np.array([0.3, 1.2, -0.7])
    x = make(a)
    y = x * x
    z = fc.sin(y)
    loss = (z * x).sum()
    made = fc.resolve(*fc.grad(loss, [x, y, z, x, loss]), device="numpy", progress=False)
    whole, inner = 2 * a**2 * np.cos(a**2) + np.sin(a**2), np.cos(a**2) * a
    for got, exact in zip(made, (whole, inner, a, whole, 1.0), strict=True):
        np.testing.assert_allclose(got, exact)


def test_the_second_derivative() -> None:
    x = fc.source(np.array([0.3, 1.2, -0.7]))
    first = fc.grad((x**3 * fc.sin(x)).sum(), x)
    second = fc.grad(first.sum(), x).resolve(device="numpy", progress=False)
    a = np.array([0.3, 1.2, -0.7])
    np.testing.assert_allclose(second, 6 * a * np.sin(a) + 6 * a**2 * np.cos(a) - a**3 * np.sin(a))


def test_a_deep_chain_of_sums_takes_time_in_proportion() -> None:
    """Each level reads the one before it twice, times numbers that are not known yet."""
    x = fc.source(np.array([1.0, 2.0]))
    a, b = (x.sum(), x.max())
    y = x
    for _ in range(40):
        y = y * a / b + y * b / a
    made = fc.grad(y.sum(), x)
    assert len(str(made)) > 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradients_have_the_dtype_of_what_they_are_of(dtype: str) -> None:
    w = fc.parameter(np.ones(3), dtype=dtype)
    made = fc.grad((fc.source(np.ones((4, 3), "f4")) * w).sum(), w)
    assert (made.dtype, made.shape) == (w.dtype, (3,))
    assert made.resolve(device="numpy", progress=False).astype("f4").tolist() == [4, 4, 4]


def test_sums_over_many_records_of_halves_do_not_overflow() -> None:
    """The factor 1/N comes after the sum, which is larger than the largest number of float16."""
    rows = fc.astype(fc.source(np.ones((70_000, 2), "f4")), "float16")
    w = fc.parameter(np.ones(2), dtype="float16")
    first = fc.source(np.zeros(70_000, int))
    losses = [(rows * w).mean(), (rows @ w).mean(), (rows @ fc.stack([w, w], axis=1)).mean(), (rows * w.sum()).mean()]
    losses.append(fc.take(w, first, axis=0).mean())
    made = fc.resolve(*(fc.grad(loss, w) for loss in losses), device="numpy", progress=False)
    assert [one.tolist() for one in made] == [[0.5, 0.5], [1, 1], [1, 1], [1, 1], [1, 0]]
    assert {one.dtype for one in made} == {np.dtype("float16")}


def test_empty_streams_have_gradients_of_zero() -> None:
    w = fc.parameter(np.ones(3))
    made = fc.grad((fc.source(np.ones((0, 3))) * w).sum(), w)
    assert made.resolve(device="numpy", progress=False).tolist() == [0, 0, 0]


# -- products ---------------------------------------------------------------------------------------------------------

Shape = tuple[int, ...]


@pytest.mark.parametrize(
    ("product", "left", "right"),
    [
        (fc.matmul, (4,), (2, 4, 3)),
        (fc.matmul, (4,), (5, 2, 4, 3)),
        (lambda x, y: fc.vecdot(x, y, axis=0), (5, 1), (5, 3)),
        (lambda x, y: fc.vecdot(x, y, axis=0), (5, 2, 3), (5, 1, 3)),
        (lambda x, y: fc.vecdot(x, y, axis=0), (5, 3), (3,)),
    ],
)
def test_products_that_broadcast(product: Any, left: Shape, right: Shape) -> None:
    arrays = [RNG.standard_normal(shape) for shape in (left, right)]

    def operand(array: np.ndarray) -> Any:
        return fc.source(array) if len(array) == 5 else fc.parameter(array)

    leaves = [operand(array) for array in arrays]
    made = fc.resolve(*fc.grad((product(*leaves) ** 2).sum(), leaves), device="numpy", progress=False)
    for at, got in enumerate(made):
        others = list(leaves)
        exact, ends = np.empty_like(arrays[at]), []
        for place in np.ndindex(exact.shape):
            for sign in (1, -1):
                moved = arrays[at].copy()
                moved[place] += sign * 1e-6
                others[at] = operand(moved)
                ends.append((product(*others) ** 2).sum())
        values = fc.resolve(*ends, device="numpy", progress=False)
        exact.flat[:] = [(high - low) / 2e-6 for high, low in zip(values[::2], values[1::2], strict=True)]
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-7)


def test_what_is_left_out_gives_nothing() -> None:
    x = np.array([[1, np.nan, 3], [2, 5, np.nan], [1, 2, 4.0]])
    for axis in (0, 1):
        known = np.isfinite(x)
        exact = 2 * (x - np.nanmean(x, axis, keepdims=True)) / known.sum(axis, keepdims=True)
        made = slope(lambda s, axis=axis: fc.nanvar(s, axis=axis), x)
        np.testing.assert_allclose(made, np.where(known, exact, 0), atol=1e-15)
        assert np.isfinite(slope(lambda s, axis=axis: fc.nanstd(s, axis=axis), x)).all()


# -- views and the stream axis ----------------------------------------------------------------------------------------

VIEWS: dict[str, Callable[[Any], Any]] = {
    "padded edges": lambda x: fc.pad(x, (2, 1), mode="edge") ** 2,
    "reflected": lambda x: fc.pad(x, (2, 1), mode="reflect") ** 2,
    "wrapped": lambda x: fc.pad(x, (2, 1), mode="wrap") ** 2,
    "sorted": lambda x: fc.sort(x, axis=1) * fc.constant(np.arange(4.0)),
    "taken along": lambda x: fc.take_along_axis(x, fc.argsort(x, axis=1)[:, ::-2], axis=1) ** 2,
    "scattered": lambda x: fc.scatter_elements(x**2, np.array([[1, 1]]), x[:, :2] * 3, axis=1),
    "scattered sums": lambda x: fc.scatter_elements(x**2, np.array([[1, 1]]), x[:, :2] * 3, axis=1, reduction="add"),
    "dilated windows": lambda x: fc.nn.unfold(x, 2, axis=1, step=1, dilation=2) ** 2,
    "windows side by side": lambda x: fc.nn.unfold(x, 2, axis=1, step=2) ** 2,
    "windows side by side with a rest": lambda x: fc.nn.unfold(x, 3, axis=1, step=3) ** 2,
    "windows that leave gaps": lambda x: fc.nn.unfold(x, 1, axis=1, step=2) ** 2,
    "cut with a rest": lambda x: fc.cut(x, every=2, tail="drop").prod(axis=1),
    "cut and padded": lambda x: fc.cut(x, every=2, tail="pad", fill=2).prod(axis=1),
    "padded windows": lambda x: fc.window(x, size=3, pad=1.5).prod(axis=1),
    "every second record summed": lambda x: (x**2)[1::2].sum(axis=0),
    "tiled": lambda x: fc.tile(x, (1, 2)) ** 2,
    "rolled": lambda x: fc.roll(x, 1, axis=1) * x,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    x = RNG.uniform(0.5, 2.0, (5, 4))
    np.testing.assert_allclose(slope(VIEWS[name], x), steps(VIEWS[name], x), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("lift", [fc.source, fc.parameter])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_pools_side_by_side_move_their_cotangents(dtype: str, lift: Callable[[Any], Any], device: str) -> None:
    """They go to the first of the largest numbers, with their bits, but for -0; all else is +0."""
    x = np.random.default_rng(5).integers(0, 3, (4, 2, 7, 6)).astype(dtype)
    factors = np.random.default_rng(6).standard_normal((4, 2, 3, 3)).astype(dtype)
    factors[0] = -0.0
    expected = np.zeros_like(x)
    for n, c, i, j in np.ndindex(*factors.shape):
        window = x[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        a, b = np.unravel_index(window.argmax(), (2, 2))
        expected[n, c, 2 * i + a, 2 * j + b] += factors[n, c, i, j]
    images = lift(x)
    loss = (fc.nn.max_pool2d(images, 2) * lift(factors)).sum(dtype="float64")
    gradient = fc.grad(loss, images)
    assert gradient.resolve(device=device, progress=False).tobytes() == expected.tobytes()
    # Only the row that no window reads is put in.
    assert set(re.findall(r"grad\.pad\w*", str(gradient.plan(device=device)))) <= {"grad.pad"}


@pytest.mark.parametrize("take", [fc.take, fc.take_along_axis])
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_computed_places_that_count_from_the_end(take: Any, dtype: str) -> None:
    count = 200
    places = fc.constant(np.array([0, -1, 2, -1], dtype)) * 1
    x = fc.source(np.ones((2, count)))
    taken = take(x, places if take is fc.take else fc.expand_dims(places, 0), axis=1)
    made = fc.grad(taken.sum(), x).resolve(device="numpy", progress=False)
    np.testing.assert_array_equal(made[:, [0, 1, 2, 3, -1]], [[1, 0, 1, 0, 2]] * 2)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_windows_of_more_records_than_there_are(count: int) -> None:
    x = np.ones((count, 2))
    np.testing.assert_array_equal(slope(lambda s: fc.window(s, size=4), x), np.zeros_like(x))
    rows = fc.iterate([x], shape=(2,), dtype="float64")
    with pytest.raises(fc.FlowError, match="different lengths"):
        fc.grad(fc.window(rows, size=4).sum(), rows).resolve(device="numpy", progress=False)


def test_masked_attention_with_shared_keys() -> None:
    x = RNG.standard_normal((2, 4, 3, 2))
    mask = fc.constant(np.array([[True, False, True], [True, True, True], [False, False, False]]))

    def attended(q: Any) -> Any:
        return fc.nn.attention(q, q[:, :2] * 0.5, fc.sin(q[:, :2]), mask=mask) ** 2

    np.testing.assert_allclose(slope(attended, x), steps(attended, x), rtol=1e-5, atol=1e-8)


# -- what stays constant, and what is refused -------------------------------------------------------------------------


def test_nothing_flows_through_what_was_stopped() -> None:
    x = fc.source(np.array([1.0, 2.0]))
    assert fc.grad((x * fc.stop_gradient(x)).sum(), x).resolve(device="numpy", progress=False).tolist() == [1, 2]
    assert fc.grad(fc.floor(x).sum(), x).resolve(device="numpy", progress=False).tolist() == [0, 0]
    assert fc.stop_gradient(x).resolve(device="numpy", progress=False).tolist() == [1, 2]


def test_a_parameter_is_what_it_was_made_of() -> None:
    held = np.arange(3.0)
    w = fc.parameter(held, name="w")
    held[:] = 7
    assert (w + 0).resolve(device="numpy", progress=False).tolist() == [0, 1, 2]
    assert w.resolve(device="numpy", progress=False).tolist() == [0, 1, 2]
    with pytest.raises(fc.SpecError, match="cannot make a parameter of this"):
        fc.parameter([1, 2])


def test_refusals_name_the_users_line() -> None:
    x = fc.source(np.ones((4, 3)))
    w = fc.parameter(np.ones(3))
    scanned = fc.linear_recurrence(x * w, x, axis=0)
    with pytest.raises(fc.SpecError, match="linear_recurrence") as caught:
        fc.grad(scanned.sum(), w)
    assert "test_gradients.py" in str(caught.value)
    for loss, words in (
        (fc.quantile((x * w)[:, 0], 0.5), "quantile"),
        (fc.scatter_elements(x * w, np.zeros((1, 3), int), 2.0, axis=1, reduction="max").sum(), "scatter"),
        ((x * w)[x[:, 0] > 0][:, 0].sum() + fc.sin((x * w)[x[:, 0] > 0]).sum(), "select"),
        (fc.concat([x * w, x], axis=0).sum(), "concat"),
    ):
        with pytest.raises(fc.SpecError, match=words):
            fc.grad(loss, w)
    with pytest.raises(fc.SpecError, match="does not depend"):
        fc.grad(x.sum(), w)


# -- users' functions -------------------------------------------------------------------------------------------------


@fc.kernel
def helper(x, y):
    return x * y, x / (1.0 + y * y)


@fc.kernel
def branching(x, y):
    a = [0.0, 0.0, 0.0]
    total = 0.0
    for i in range(3):
        a[i] = x * (i + 1) if i % 2 == 0 else math.sin(y * x)
        total += a[i] * a[i]
    p, q = helper(total, y)
    while abs(p) > 2.0:
        p = p * 0.5
        q += math.hypot(p, y)
    if q > 1.0:
        return max(p, q) + math.copysign(x, y), p - q
    return min(p, q), math.atan2(p, q) + abs(x) ** 1.5


@pytest.mark.parametrize("result", [0, 1])
@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_functions_with_loops_branches_and_arrays(result: int, device: str) -> None:
    x, y = RNG.uniform(0.2, 2, 20), RNG.uniform(-2, 2, 20)
    sources = fc.source(x), fc.source(y)
    made = fc.resolve(*fc.grad(branching(*sources)[result].sum(), sources), device=device, progress=False)
    for at, got in enumerate(made):
        h = np.zeros((2, 20))
        h[at] = 1e-6
        ends = [
            np.array([branching.python(*one)[result] for one in zip(x + s * h[0], y + s * h[1], strict=True)])
            for s in (1, -1)
        ]
        np.testing.assert_allclose(got, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-7)


def test_a_function_with_a_gradient_of_its_own() -> None:
    @fc.kernel
    def step(x, y):
        return math.floor(x * y)

    @step.vjp
    def through(x, y, g):
        return g * 2, None

    x, y = fc.source(np.array([0.5, 1.5])), fc.source(np.array([3.0, 3.0]))
    by_x, by_y = fc.resolve(*fc.grad((step(x, y) * 3).sum(), [x, y]), device="numpy", progress=False)
    assert (by_x.tolist(), by_y.tolist()) == ([6, 6], [0, 0])

    @step.vjp
    def too_few(x, y, g):
        return (g,)

    with pytest.raises(fc.SpecError, match="cannot take so many gradients of step"):
        fc.grad(step(x, y).sum(), x)


# -- dropout ----------------------------------------------------------------------------------------------------------


def test_dropout_keeps_the_mean_and_its_own_numbers() -> None:
    x = fc.source(np.ones((1000, 8)))
    made = fc.nn.dropout(x, 0.25, seed=5)
    once, again = (made.resolve(device=device, progress=False) for device in ("numpy", "cpu"))
    assert once.tobytes() == again.tobytes()
    assert set(np.unique(once)) == {0, 1 / 0.75}
    assert abs(once.mean() - 1) < 0.03
    np.testing.assert_array_equal(slope(lambda s: fc.nn.dropout(s, 0.25, seed=5), np.ones((1000, 8))), once)
    assert fc.nn.dropout(x, 0.0, seed=5).sum().resolve(device="numpy", progress=False) == 8000
    for bad in (1.0, -0.1):
        with pytest.raises(fc.SpecError, match="rate"):
            fc.nn.dropout(x, bad, seed=1)
    with pytest.raises(fc.SpecError, match="known length"):
        fc.nn.dropout(fc.iterate([np.ones(3)], shape=(), dtype="float64"), 0.5, seed=1)
