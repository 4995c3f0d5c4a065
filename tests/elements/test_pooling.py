"""Padding, windows over item axes, pooling and convolution against loops in plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.nn.convolution import _naive_convolution
from flowcompute.errors import SpecError
from flowcompute.spec import BFLOAT16

pytestmark = pytest.mark.compiles

Pairs = tuple[tuple[int, int], ...]
MODES = ("constant", "edge", "reflect", "wrap")


def whole(shape: Sequence[int], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Small whole numbers, whose sums and products are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def same(element: fc.Element, wanted: np.ndarray, devices: Sequence[str] = ("numpy", "cpu")) -> None:
    """The very numbers, also in small batches."""
    assert element.shape == wanted.shape
    assert element.dtype == wanted.dtype
    for device in devices:
        for batch_bytes in (100, 1 << 20):
            got = element.resolve(device=device, strategy=fc.Strategy(batch_bytes=batch_bytes))
            np.testing.assert_array_equal(got, wanted, strict=True)


# -- pad ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.float16, BFLOAT16], ids=str)
def test_pad_is_numpys(mode: Any, dtype: Any) -> None:
    array = whole((9, 3, 4)).astype(dtype)
    options: dict[str, Any] = {"constant_values": 1} if mode == "constant" else {}
    for widths in (2, (1, 3), ((0, 2), (5, 0)), ((2,), (1,))):
        pairs = np.broadcast_to(np.array([*widths] if isinstance(widths, tuple) else widths), (2, 2))
        wanted = np.pad(array, [(0, 0), *map(tuple, pairs.tolist())], mode=mode, **options)
        same(fc.pad(fc.source(array), widths, mode, 1), wanted, ["numpy"])
    wanted = np.pad(array, ((0, 0), (1, 0), (0, 2)), mode=mode, **options)
    same(fc.pad(fc.source(array), ((0, 0), (1, 0), (0, 2)), mode, 1), wanted, ["numpy"])
    np.testing.assert_array_equal(
        fc.pad(fc.constant(array), ((1, 2), (1, 0), (0, 2)), mode, 1).resolve(),
        np.pad(array, ((1, 2), (1, 0), (0, 2)), mode=mode, **options),
    )


def test_pad_between_kernels() -> None:
    """Of computed values, with maps and folds after it, of results of folds, and beside the unpadded value."""
    array = whole((1025, 3, 4))
    x = fc.source(array) * 2
    padded = fc.pad(x, 1, "edge")
    wanted = np.pad(array * 2, ((0, 0), (1, 1), (1, 1)), "edge")
    plain, more, total, folded = fc.resolve(x, padded + 1, padded.sum(axis=0), fc.pad(x.sum(axis=0), (2, 0), "wrap"))
    np.testing.assert_array_equal(plain, array * 2)
    np.testing.assert_array_equal(more, wanted + 1)
    np.testing.assert_array_equal(total, wanted.sum(axis=0))
    np.testing.assert_array_equal(folded, np.pad((array * 2).sum(axis=0), (2, 0), "wrap"))


def test_pad_of_nothing_with_nothing_and_by_infinities() -> None:
    x = fc.source(np.ones((4, 0), np.float32))
    same(fc.pad(x, 2, constant_values=-math.inf), np.full((4, 4), -math.inf, np.float32))
    assert fc.pad(x, 0, "wrap") is x
    empty = fc.source(np.ones((0, 3), np.float32))
    same(fc.pad(empty, 1, "reflect"), np.ones((0, 5), np.float32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: fc.pad(x, -1), "cannot take pad_width="),
        (lambda x: fc.pad(x, 1.5), "cannot take pad_width="),
        (lambda x: fc.pad(x, (1, 2, 3)), "cannot take pad_width="),
        (lambda x: fc.pad(x, ((1, 0), (1, 1), (1, 1))), "cannot pad the stream"),
        (lambda x: fc.pad(x, ((1, 1),) * 4), "cannot pad with as many pairs"),
        (lambda x: fc.pad(x, 1, "symmetric"), "cannot take mode="),
        (lambda x: fc.pad(x.astype("int8"), 1, constant_values=200), "cannot take constant_values="),
        (lambda x: fc.pad(x.astype("int8"), 1, constant_values=0.5), "cannot take constant_values="),
        (lambda x: fc.pad(x, 1, constant_values=[1, 2]), "cannot take constant_values="),
        (lambda x: fc.pad(x[:, :0], 1, "edge"), "cannot repeat numbers of an empty axis"),
        (lambda x: fc.nn.unfold(x, 2, 0), "cannot slide windows along the stream"),
        (lambda x: fc.nn.unfold(x, 4, 1), "cannot fit a window into the axis"),
        (lambda x: fc.nn.unfold(x, (2, 2), 1), "cannot take size="),
        (lambda x: fc.nn.unfold(x, 2, (1, 1)), "cannot reduce an axis twice"),
        (lambda x: fc.nn.unfold(x, 2, 1, step=0), "cannot take step="),
        (lambda x: fc.nn.max_pool2d(x, 5), "cannot fit a window"),
        (lambda x: fc.nn.max_pool2d(x, 2, padding=2), "cannot pad so much that a window holds nothing else"),
        (lambda x: fc.nn.avg_pool2d(x[:, 0], 2), "cannot pool these axes"),
        (lambda x: fc.nn.conv2d(x, np.ones((1, 3, 1, 1), "f4")), "cannot convolve this"),
        (lambda x: fc.nn.conv1d(x, np.ones((2, 2, 1), "f4")), "cannot convolve with weights"),
        (lambda x: fc.nn.conv1d(x, np.ones((2, 3, 0), "f4")), "cannot convolve with weights"),
        (lambda x: fc.nn.conv1d(x, np.ones((2, 3, 1), "f4"), np.ones(3, "f4")), "cannot add a bias of this shape"),
        (lambda x: fc.nn.conv1d(x, np.ones((2, 3, 1), "f4"), groups=2), "cannot divide the channels into groups"),
        (
            lambda x: fc.nn.conv1d(x, np.ones((2, 3, 3), "f4"), padding="same", stride=2),
            'cannot keep the size by padding="same"',
        ),
        (lambda x: fc.nn.conv1d(x, np.ones((2, 3, 3), "f4"), padding=[1, 2]), "cannot take padding="),
        (lambda x: fc.nn.conv1d(x, x), "cannot convolve with a stream of weights or bias"),
        (lambda x: fc.nn.conv1d(x > 0, np.ones((2, 3, 1), bool)), "cannot multiply bools"),
    ],
)
def test_refusals(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        call(fc.source(np.ones((9, 3, 4), np.float32)))


# -- windows --------------------------------------------------------------------------------------


def unfolded(a: np.ndarray, axis: int, size: int, step: int, dilation: int) -> np.ndarray:
    """Windows along one axis, number by number."""
    count = (a.shape[axis] - (size - 1) * dilation - 1) // step + 1
    moved = np.moveaxis(a, axis, -1)
    made = [[moved[..., i * step + j * dilation] for j in range(size)] for i in range(count)]
    return np.moveaxis(np.moveaxis(np.array(made), (0, 1), (-2, -1)), -2, axis)


def test_windows_are_read_where_they_lie() -> None:
    array = whole((65, 4, 11))
    seen = fc.nn.unfold(fc.source(array), 3, 2, step=2, dilation=3)
    wanted = unfolded(array, 2, 3, 2, 3)
    same(seen, wanted)
    reduced = (seen * np.array([1, -1, 2], np.float32)).sum(axis=-1)
    plan = fc.plan(reduced, device="cpu")
    assert len(plan.kernels) == 1
    same(reduced, (wanted * [1, -1, 2]).sum(-1).astype(np.float32))
    both = fc.nn.unfold(fc.source(array) + 1, (2, 4), (2, 1), (1, 1), (5, 1))
    same(both.max(axis=(1, 3)), unfolded(unfolded(array + 1, 2, 2, 1, 5), 1, 4, 1, 1).max(axis=(1, 3)))
    np.testing.assert_array_equal(fc.nn.unfold(fc.constant(array), 3, 0, 2).resolve(), unfolded(array, 0, 3, 2, 1))
    resident = fc.source(array).sum(axis=0)
    np.testing.assert_array_equal(fc.nn.unfold(resident, 3, 1, 2).resolve(), unfolded(array.sum(0), 1, 3, 2, 1))


# -- pooling --------------------------------------------------------------------------------------


def pooled(
    a: np.ndarray, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, mean: bool, counted: bool
) -> np.ndarray:
    """Pooling over the last axes, window by window."""
    dims = len(kernel)
    sizes = a.shape[-dims:]
    counts = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        room = (n + 2 * p - d * (k - 1) - 1) / s
        count = (math.ceil(room) if ceil else math.floor(room)) + 1
        counts.append(count - 1 if ceil and (count - 1) * s >= n + p else count)
    made = np.empty((*a.shape[:-dims], *counts))
    for place in np.ndindex(*counts):
        values, inside = [], 0
        for tap in np.ndindex(*kernel):
            at = [i * s - p + j * d for i, s, p, j, d in zip(place, stride, padding, tap, dilation, strict=True)]
            if all(0 <= one < n for one, n in zip(at, sizes, strict=True)):
                values.append(a[(..., *at)])
            inside += all(-p <= one < n + p for one, n, p in zip(at, sizes, padding, strict=True))
        if mean:
            made[(..., *place)] = sum(values) / (inside if counted else len(values))
        else:
            made[(..., *place)] = np.max(values, axis=0)
    return made


@st.composite
def _pools(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Item sizes and windows of which each holds a number, not only padding."""
    dims = draw(st.integers(1, 2))
    sizes, how = [], {"kernel": [], "stride": [], "padding": [], "dilation": []}
    for _ in range(dims):
        kernel = draw(st.integers(1, 4))
        # Padding of less than half the kernel, and no step over everything.
        dilation = draw(st.integers(1, 2))
        padding = draw(st.integers(0, min(kernel // 2, (kernel - 1) * dilation // 2)))
        reach = (kernel - 1) * dilation + 1
        sizes.append(draw(st.integers(reach, reach + 5)))
        for key, value in (("kernel", kernel), ("padding", padding), ("dilation", dilation)):
            how[key].append(value)
        how["stride"].append(draw(st.integers(1, kernel)))
    return tuple(sizes), {key: tuple(values) for key, values in how.items()}


@settings(max_examples=8)
@given(_pools(), st.booleans(), st.booleans(), st.sampled_from([np.float32, np.int8, np.float16]))
def test_pooling(pool: Any, ceil: bool, counted: bool, dtype: Any) -> None:
    sizes, how = pool
    array = whole((5, 2, *sizes), dtype)
    x, wide = fc.source(array), array.astype(np.float64)
    largest = {1: fc.nn.max_pool1d, 2: fc.nn.max_pool2d}[len(sizes)](x, **how, ceil_mode=ceil)
    mean = {1: fc.nn.avg_pool1d, 2: fc.nn.avg_pool2d}[len(sizes)]
    average = mean(x, **how, ceil_mode=ceil, count_include_pad=counted)
    assert largest.dtype == dtype
    assert average.dtype == (np.float64 if dtype is np.int8 else dtype)
    for device in ("numpy", "cpu"):
        most, average_of = fc.resolve(largest, average, device=device)
        np.testing.assert_array_equal(most, pooled(wide, *how.values(), ceil, False, counted))
        # A quotient of exact numbers, rounded to float32 perhaps, and to the dtype.
        wanted = pooled(wide, *how.values(), ceil, True, counted)
        np.testing.assert_allclose(average_of, wanted, rtol=1e-3 if dtype is np.float16 else 1e-7)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"), [(5, 2, 2, 1), (6, 3, 2, 0), (2, 3, 2, 0), (7, 2, 5, 1)]
)
def test_a_last_window_reaches_beyond_the_padding_but_does_not_begin_there(
    size: int, kernel: int, stride: int, padding: int
) -> None:
    array = whole((3, size))
    x, how = fc.source(array), ((kernel,), (stride,), (padding,), (1,))
    most = fc.nn.max_pool1d(x, kernel, stride, padding, ceil_mode=True)
    same(most, pooled(array, *how, True, False, True).astype(np.float32), ["numpy"])
    for counted in (True, False):
        mean = fc.nn.avg_pool1d(x, kernel, stride, padding, ceil_mode=True, count_include_pad=counted)
        same(mean, pooled(array, *how, True, True, counted).astype(np.float32), ["numpy"])


def test_pooling_is_one_kernel_and_takes_its_stride_from_the_window() -> None:
    array = whole((130, 3, 8, 6))
    x = fc.source(array) * 0.5
    for made in (fc.nn.max_pool2d(fc.source(array), 2), fc.nn.avg_pool1d(fc.source(array), 3)):
        assert len(fc.plan(made, device="cpu").kernels) == 1
    blocks = (array * 0.5).reshape(130, 3, 4, 2, 3, 2).astype(np.float32)
    same(fc.nn.max_pool2d(x, 2), blocks.max((3, 5)))
    same(fc.nn.avg_pool2d(x, 2), blocks.mean((3, 5)))
    np.testing.assert_array_equal(fc.nn.max_pool2d(fc.constant(array), 2).resolve(), 2 * blocks.max((3, 5)))


def test_max_pool_of_nan_infinities_and_only_the_lowest_numbers() -> None:
    rows = np.array([[1, math.nan, 0, 2], [-math.inf] * 4, [math.inf, 0, -1, -2]], np.float32)
    nan = math.nan
    wanted = np.array([[nan, nan, 2], [-math.inf] * 3, [math.inf, 0, -1]], np.float32)
    same(fc.nn.max_pool1d(fc.source(rows), 2, 1), wanted)
    lowest = np.full((2, 3), -128, np.int8)
    same(fc.nn.max_pool1d(fc.source(lowest), 3, 1, 1), lowest)
    same(fc.nn.max_pool1d(fc.source(lowest > 0), 3, 1, 1), lowest > 0)


# -- convolution ----------------------------------------------------------------------------------


def convolved(
    a: np.ndarray, w: np.ndarray, bias: Any, stride: Any, padding: Pairs, dilation: Any, groups: int
) -> np.ndarray:
    """Convolution of (N, C, *sizes), product by product."""
    outs, channels, *kernel = w.shape
    per_group = outs // groups
    padded = np.pad(a, ((0, 0), (0, 0), *padding))
    counts = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded.shape[2:], kernel, stride, dilation, strict=True)
    ]
    made = np.zeros((len(a), outs, *counts), np.result_type(a, w))
    for out, place in itertools.product(range(outs), np.ndindex(*counts)):
        total = made[(slice(None), out, *place)]
        for channel, tap in itertools.product(range(channels), np.ndindex(*kernel)):
            at = [i * s + j * d for i, s, j, d in zip(place, stride, tap, dilation, strict=True)]
            total += padded[(slice(None), out // per_group * channels + channel, *at)] * w[(out, channel, *tap)]
        total += 0 if bias is None else bias[out]
    return made


@st.composite
def _convolutions(draw: st.DrawFn) -> tuple[Any, ...]:
    """Shapes of items and weights, and how they are convolved."""
    dims = draw(st.integers(1, 2))
    groups, per_group, channels = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
    dilation = tuple(draw(st.integers(1, 2)) for _ in range(dims))
    stride = tuple(draw(st.integers(1, 3)) for _ in range(dims))
    padding = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(dims))
    sizes = [(k - 1) * d + draw(st.integers(1, 4)) for k, d in zip(kernel, dilation, strict=True)]
    weights = (groups * per_group, channels, *kernel)
    return (groups * channels, *sizes), weights, stride, padding, dilation, groups


@settings(max_examples=8)
@given(_convolutions(), st.booleans())
def test_convolution(drawn: Any, with_bias: bool) -> None:
    item, weights, stride, padding, dilation, groups = drawn
    array, weight = whole((3, *item)), whole(weights, seed=1)
    bias = whole(weights[:1], seed=2) if with_bias else None
    convolve = fc.nn.conv1d if len(stride) == 1 else fc.nn.conv2d
    made = convolve(fc.source(array), weight, bias, stride, padding, dilation, groups)
    # Small whole numbers: exact, whatever the order.
    wanted = convolved(array, weight, bias, stride, padding, dilation, groups)
    assert made.shape == wanted.shape
    for device in ("numpy", "cpu"):
        np.testing.assert_array_equal(made.resolve(device=device), wanted, strict=True)
    resident = convolve(fc.constant(array), weight, bias, stride, padding, dilation, groups)
    np.testing.assert_array_equal(resident.resolve(device="numpy"), wanted, strict=True)


def test_convolution_pads_to_the_same_size_or_not_at_all() -> None:
    array, weight = whole((40, 4, 7, 6)), whole((4, 1, 3, 2), seed=1)
    x = fc.source(array)
    depthwise = fc.nn.conv2d(x, weight, padding="same", dilation=(1, 3), groups=4)
    same(depthwise, convolved(array, weight, None, (1, 1), ((1, 1), (1, 2)), (1, 3), 4))
    assert depthwise.shape == array.shape
    valid = fc.nn.conv2d(x * 2, weight, padding="valid", groups=4)
    same(valid, convolved(array * 2, weight, None, (1, 1), ((0, 0), (0, 0)), (1, 1), 4))
    assert len(fc.plan(fc.nn.conv2d(x, weight, groups=4), device="cpu").kernels) == 1


LINES: list[tuple[int, Any, Any, Any, int, str]] = [
    # width, kernel, stride, dilation, channels and outputs of a group, dtype
    (67, (3, 5), (2, 2), (1, 1), 1, "f4"),
    (57, (2, 3), (1, 3), (1, 1), 3, "f4"),
    (166, (1, 4), (2, 2), (1, 3), 1, "f8"),
    (90, (2, 3), (3, 2), (2, 1), 1, "i2"),
    (100, (2, 3), (1, 1), (1, 1), 2, "f4"),
]


@pytest.mark.parametrize(("width", "kernel", "stride", "dilation", "own", "dtype"), LINES)
def test_few_rows_to_a_matrix(width: int, kernel: Any, stride: Any, dilation: Any, own: int, dtype: str) -> None:
    """Lines of several vectors, also such as end with part of one, and columns that lie apart."""
    array, weight = whole((3, 2 * own, 7, width)).astype(dtype), whole((2 * own, own, *kernel), seed=1).astype(dtype)
    how: Any = (None, stride, dilation, 2)
    naive = _naive_convolution("conv2d", fc.source(array), fc.constant(weight), *how).resolve(device="numpy")
    made = fc.nn.conv2d(fc.source(array), weight, None, stride, 0, dilation, 2)
    same(made, naive)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, BFLOAT16, np.float64], ids=str)
def test_convolution_of_other_dtypes(dtype: Any) -> None:
    """Integers wrap as in matmul; half formats are added up in float32 and rounded once."""
    array, weight = (10 * whole((6, 3, 9))).astype(dtype), (3 * whole((2, 3, 4), seed=1)).astype(dtype)
    got = fc.nn.conv1d(fc.source(array), weight, whole(2).astype(dtype)).resolve()
    assert got.dtype == dtype
    wide = np.int64 if dtype is np.int8 else np.float64
    wanted = convolved(array.astype(wide), weight.astype(wide), whole(2).astype(wide), (1,), ((0, 0),), (1,), 1)
    np.testing.assert_array_equal(got, wanted.astype(dtype))


def test_weights_may_be_the_result_of_a_fold_and_streams_may_be_empty() -> None:
    array = whole((33, 2, 5))
    kernel = fc.reshape(fc.source(array).sum(axis=0), (1, 2, 5))
    wanted = convolved(array, array.sum(0)[None], None, (1,), ((2, 2),), (1,), 1)
    same(fc.nn.conv1d(fc.source(array), kernel, padding=2), wanted)
    empty = fc.nn.conv1d(fc.source(array[:0]), np.ones((3, 2, 4), np.float32))
    same(empty, np.zeros((0, 3, 2), np.float32))


def test_the_naive_form_is_what_the_public_one_is_held_against() -> None:
    array, weight = whole((12, 4, 9)), whole((6, 2, 3), seed=1)
    naive = _naive_convolution("conv1d", fc.source(array), fc.constant(weight), None, (2,), (2,), 2)
    same(naive, convolved(array, weight, None, (2,), ((0, 0),), (2,), 2))


def test_windows_longer_than_a_panel_are_walked_across_its_end() -> None:
    array, weight = whole((3, 70, 5, 6)), whole((17, 70, 3, 3), seed=1)
    same(fc.nn.conv2d(fc.source(array), weight), convolved(array, weight, None, (1, 1), ((0, 0),) * 2, (1, 1), 1))
