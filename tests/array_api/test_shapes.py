"""Shapes of results: broadcasting, reduced axes, manipulation. NumPy, whose functions are the standard's, is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
import flowcompute.array_api as xp
from flowcompute.errors import SpecError, SpecIndexError, SpecTypeError


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) % 7 - 2


def made(array: np.ndarray, *, stream: bool) -> xp.LazyArray:
    return xp.asarray(fc.source(array)) if stream else xp.asarray(array)


def check(lazy: xp.LazyArray | list[xp.LazyArray] | tuple[xp.LazyArray, ...], expected: Any) -> None:
    """Same shapes, dtypes and numbers, all computed in one run."""
    several = isinstance(lazy, list | tuple)
    arrays, wanted = (list(lazy), list(expected)) if several else ([lazy], [expected])
    if several and len(arrays) > 1:
        values = fc.resolve(*(one.element for one in arrays), device="numpy")
    else:
        values = [one.resolve(device="numpy") for one in arrays]
    for one, got, array in zip(arrays, values, wanted, strict=True):
        assert one.shape == np.shape(array) == np.shape(got)
        assert one.dtype == np.asarray(array).dtype
        np.testing.assert_array_equal(got, array)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0))
def test_broadcasting(shapes: hnp.BroadcastableShapes) -> None:
    left, right = map(numbers, shapes.input_shapes)
    x1, x2 = xp.asarray(left), xp.asarray(right)
    check(x1 + x2, left + right)
    check(xp.where(x1 > 0, x1, x2), np.where(left > 0, left, right))
    check(xp.broadcast_arrays(x1, x2), np.broadcast_arrays(left, right))


def test_broadcasting_beside_a_stream() -> None:
    rows, column, row, number = numbers((4, 3)), numbers((4, 1)), numbers((3,)), numbers(())
    operands = [made(rows, stream=True), made(column, stream=True), xp.asarray(row), xp.asarray(number)]
    check(xp.broadcast_arrays(*operands), np.broadcast_arrays(rows, column, row, number))
    check(xp.broadcast_arrays(*operands[1:]), np.broadcast_arrays(column, row, number))
    check(xp.broadcast_arrays(operands[0]), [rows])
    assert xp.broadcast_arrays() == []


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    for call in (
        lambda: xp.asarray(numbers((2, 3))) + xp.asarray(numbers((2,))),
        lambda: xp.broadcast_arrays(xp.asarray(numbers((2, 3))), xp.asarray(numbers((2,)))),
        lambda: xp.broadcast_to(xp.asarray(numbers((2, 3))), (3, 3)),
    ):
        with pytest.raises(SpecError, match="cannot broadcast"):
            call()


AXES = st.one_of(st.none(), st.integers(-3, 2), st.sets(st.integers(0, 2)).map(lambda axes: tuple(sorted(axes))))


@given(axis=AXES, keepdims=st.booleans(), stream=st.booleans())
def test_reductions(axis: Any, keepdims: bool, stream: bool) -> None:
    array = numbers((3, 2, 2))
    x = made(array, stream=stream)
    names = ("sum", "prod", "min", "max", "any", "all", "mean")
    lazy = [getattr(xp, name)(x, axis=axis, keepdims=keepdims) for name in names]
    check(lazy, [getattr(np, name)(array, axis=axis, keepdims=keepdims) for name in names])
    check(
        xp.count_nonzero(x, axis=axis, keepdims=keepdims),
        np.asarray(np.count_nonzero(array, axis=axis, keepdims=keepdims)),
    )
    if not isinstance(axis, tuple):
        lazy = [xp.argmax(x, axis=axis, keepdims=keepdims), xp.argmin(x, axis=axis, keepdims=keepdims)]
        check(lazy, [f(array, axis=axis, keepdims=keepdims) for f in (np.argmax, np.argmin)])


@pytest.mark.parametrize("stream", [False, True], ids=["resident", "stream"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_running_sums_and_differences(axis: int, stream: bool) -> None:
    array = numbers((3, 2, 2)).astype(np.int16)
    x = made(array, stream=stream)
    for initial in (False, True):
        check(
            [xp.cumulative_sum(x, axis=axis, include_initial=initial),
             xp.cumulative_prod(x, axis=axis, include_initial=initial)],
            [np.cumulative_sum(array, axis=axis, include_initial=initial),
             np.cumulative_prod(array, axis=axis, include_initial=initial)],
        )  # fmt: skip
    check([xp.diff(x, axis=axis), xp.diff(x, axis=axis, n=2)], [np.diff(array, axis=axis), np.diff(array, 2, axis)])
    check(xp.diff(x, axis=axis, prepend=x, append=x), np.diff(array, axis=axis, prepend=array, append=array))


def test_reshaped_streams_of_unknown_length() -> None:
    x = xp.asarray(fc.iterate(iter([numbers((4, 6))]), shape=(6,), dtype="int64"))
    made = [xp.reshape(x, (-1,)), xp.reshape(x, (-1, 2, 3)), xp.reshape(x, (-1, 2, 4))]
    assert [one.shape for one in made] == [(None,), (None, 2, 3), (None, 2, 4)]
    np.testing.assert_array_equal(made[2].resolve(device="numpy"), numbers((4, 6)).reshape(-1, 2, 4))
    for shape in ((24,), (-1, -1, 2), (8, 3), (4, -1), (-1, 0), ()):
        with pytest.raises(SpecError):
            xp.reshape(x, shape)


def test_reshapes_that_do_not_fit_are_refused() -> None:
    for stream in (False, True):
        for shape in ((5, 5), (-1, 5), (3, 7), (-1, -1), (), (0,), (-2, -12), (5, -1)):
            with pytest.raises(SpecError):
                xp.reshape(made(numbers((4, 6)), stream=stream), shape)


def test_running_sums_of_vectors_need_no_axis() -> None:
    for stream in (False, True):
        x = made(numbers((4,)), stream=stream)
        check(xp.cumulative_sum(x, include_initial=True), np.cumulative_sum(numbers((4,)), include_initial=True))
        with pytest.raises(SpecError, match="axis"):
            xp.cumulative_sum(made(numbers((4, 2)), stream=stream))


MANIPULATIONS: list[tuple[Callable[[Any, Any], Any], bool]] = [
    (lambda xp, x: xp.reshape(x, (4, 6)), True),
    (lambda xp, x: xp.reshape(x, (-1, 3, 2), copy=True), True),
    (lambda xp, x: xp.reshape(x, (-1,)), True),
    (lambda xp, x: xp.reshape(x, (24,)), True),
    (lambda xp, x: xp.reshape(x, (8, 3)), True),
    (lambda xp, x: xp.reshape(x, (2, -1, 4)), True),
    (lambda xp, x: xp.reshape(x, (-1, 12)), True),
    (lambda xp, x: xp.reshape(x[..., 0], (-1, 1)), True),
    (lambda xp, x: xp.permute_dims(x, (0, 2, 1)), True),
    (lambda xp, x: xp.permute_dims(x, (2, 0, 1)), True),
    (lambda xp, x: xp.moveaxis(x, 1, -1), True),
    (lambda xp, x: xp.moveaxis(x, (0, 1), (1, 2)), False),
    (lambda xp, x: xp.flip(x, axis=-1), True),
    (lambda xp, x: xp.flip(x), False),
    (lambda xp, x: xp.expand_dims(x, 1), True),
    (lambda xp, x: xp.expand_dims(x, axis=-1), True),
    (lambda xp, x: xp.expand_dims(x, 0), False),
    (lambda xp, x: xp.squeeze(x[:, :1], 1), True),
    (lambda xp, x: xp.broadcast_to(x[:, :1], (4, 5, 3)), True),
    (lambda xp, x: xp.broadcast_to(x, (2, 4, 2, 3)), False),
    (lambda xp, x: xp.concat([x, x], axis=0), True),
    (lambda xp, x: xp.concat((x, x[:, :1]), axis=1), True),
    (lambda xp, x: xp.concat([x, x], axis=None), True),
    (lambda xp, x: xp.stack([x, x + 1], axis=-1), True),
    (lambda xp, x: xp.stack([x, x], axis=0), False),
    (lambda xp, x: xp.repeat(x, 2, axis=0), True),
    (lambda xp, x: xp.repeat(x, 3, axis=2), True),
    (lambda xp, x: xp.repeat(x, 2), True),
    (lambda xp, x: xp.take(x, xp.asarray([2, -3, 1]), axis=2), True),
    (lambda xp, x: xp.take(x, xp.asarray([2, 0]), axis=0), False),
    (lambda xp, x: xp.matmul(x, xp.asarray([[1], [2], [3]])), True),
    (lambda xp, x: xp.matrix_transpose(x), True),
    (lambda xp, x: xp.vecdot(x, x[..., ::-1]), True),
    (lambda xp, x: xp.vecdot(x, x, axis=-2), True),
    (lambda xp, x: xp.astype(x, xp.float32), True),
    (lambda xp, x: xp.tensordot(x, xp.asarray([[1, 2], [3, 4], [5, 6]]), axes=1), True),
    (lambda xp, x: xp.tensordot(x, x, axes=((1, 2), (1, 2))), False),
    (lambda xp, x: xp.tensordot(x, x, axes=((0, 1), (0, 1))), True),
    (lambda xp, x: xp.roll(x, 1, axis=2), True),
    (lambda xp, x: xp.roll(x, (1, -2), axis=(1, 2)), True),
    (lambda xp, x: xp.roll(x, 1), False),
    (lambda xp, x: xp.tile(x, (2, 1, 3)), True),
    (lambda xp, x: xp.tile(x, (2,)), True),
    (lambda xp, x: xp.tile(x, (2, 1, 1, 1)), False),
    (lambda xp, x: xp.unstack(x, axis=-1), True),
    (lambda xp, x: xp.unstack(x), False),
    (lambda xp, x: xp.take_along_axis(x, xp.asarray([[[2, 0]]]), axis=2), True),
    (lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0), False),
    (lambda xp, x: xp.tril(x), True),
    (lambda xp, x: xp.triu(x, k=-1), True),
]
"""Calls, and whether they are for streams, too: the others would hold all of one, or move its axis."""


@pytest.mark.parametrize("position", range(len(MANIPULATIONS)))
def test_manipulation(position: int) -> None:
    call, of_streams = MANIPULATIONS[position]
    array = numbers((4, 2, 3))
    expected = call(np, array)
    check(call(xp, xp.asarray(array)), expected)
    if of_streams:
        check(call(xp, made(array, stream=True)), expected)
    else:
        with pytest.raises(SpecError):
            call(xp, made(array, stream=True))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_grids(indexing: Any, count: int) -> None:
    vectors = [numbers((size,)) for size in (2, 3, 4)][:count]
    expected = np.meshgrid(*vectors, indexing=indexing)
    lazy = xp.meshgrid(*map(xp.asarray, vectors), indexing=indexing)
    assert len(lazy) == count
    if count:
        check(lazy, expected)
        first = 1 if indexing == "xy" and count > 1 else 0
        streamed = [made(vector, stream=place == first) for place, vector in enumerate(vectors)]
        check(xp.meshgrid(*streamed, indexing=indexing), expected)


def test_grids_are_made_of_vectors() -> None:
    with pytest.raises(SpecError, match="cannot make a grid"):
        xp.meshgrid(xp.asarray(numbers((2, 2))))
    with pytest.raises(SpecError, match="cannot take indexing="):
        xp.meshgrid(xp.asarray(numbers((2,))), indexing="yx")  # type: ignore[arg-type]


@given(st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([-2, -1, 1, 3, 0.5, -0.25]))
def test_ranges(start: int, stop: int, step: float) -> None:
    for arguments in ((start, stop, step), (start, stop), (stop,)):
        check(xp.arange(*arguments), np.arange(*arguments))
    check(xp.arange(start, stop, dtype=xp.float32), np.arange(start, stop, dtype=np.float32))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "float64", None])
def test_filled_arrays(dtype: str | None) -> None:
    wanted = None if dtype is None else getattr(xp, dtype)
    for shape in ((), (3,), 4, (2, 0), (2, 3)):
        check(xp.zeros(shape, dtype=wanted), np.zeros(shape, dtype or float))
        check(xp.ones(shape, dtype=wanted), np.ones(shape, dtype or float))
        check(xp.empty(shape, dtype=wanted), np.zeros(shape, dtype or float))
        check(xp.full(shape, True, dtype=wanted), np.full(shape, True, dtype))
    for arguments, k in (((3,), 0), ((2, 4), 1), ((4, 2), -1), ((2, 2), 5), ((0,), 0)):
        check(xp.eye(*arguments, k=k, dtype=wanted), np.eye(*arguments, k=k, dtype=dtype or float))
    array = numbers((4, 2)).astype(np.int16)
    for stream in (False, True):
        x = made(array, stream=stream)
        check(xp.zeros_like(x, dtype=wanted), np.zeros_like(array, dtype=dtype))
        check(xp.ones_like(x, dtype=wanted), np.ones_like(array, dtype=dtype))
        check(xp.empty_like(x, dtype=wanted), np.zeros_like(array, dtype=dtype))
        check(xp.full_like(x, 1, dtype=wanted), np.full_like(array, 1, dtype=dtype))


def test_dtypes_of_what_fills() -> None:
    assert [xp.full(2, value).dtype for value in (True, 3, 0.5)] == [xp.bool, xp.int64, xp.float64]
    for value in (1j, xp.asarray(1.0)):
        with pytest.raises(SpecTypeError, match="cannot take fill_value="):
            xp.full(2, value)  # type: ignore[arg-type]
    for call in (
        lambda: xp.zeros(2, device="cpu"),
        lambda: xp.ones_like(xp.asarray([1]), device="cpu"),
        lambda: xp.eye(2, device="cpu"),
        lambda: xp.linspace(0, 1, 3, device="cpu"),
        lambda: xp.full_like(xp.asarray([1]), 1, device="cpu"),
    ):
        with pytest.raises(SpecError, match="cannot take device="):
            call()


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_spaced_numbers(count: int, endpoint: bool) -> None:
    check(xp.linspace(-1, 2.5, count, endpoint=endpoint), np.linspace(-1, 2.5, count, endpoint=endpoint))
    check(
        xp.linspace(3, 1, num=count, dtype=xp.float32, endpoint=endpoint),
        np.linspace(3, 1, num=count, dtype=np.float32, endpoint=endpoint),
    )


@pytest.mark.parametrize("stream", [False, True], ids=["resident", "stream"])
def test_parts_of_real_numbers(stream: bool) -> None:
    array = numbers((4, 2)).astype(np.float32)
    x = made(array, stream=stream)
    check([xp.real(x), xp.imag(x), xp.conj(x)], [array, np.zeros_like(array), array])


@pytest.mark.parametrize("stream", [False, True], ids=["resident", "stream"])
def test_sorting(stream: bool) -> None:
    array = numbers((4, 3, 5)).astype(np.float64)
    x = made(array, stream=stream)
    for axis in (-1, 1, *(() if stream else (0,))):
        check([xp.sort(x, axis=axis), xp.argsort(x, axis=axis)],
              [np.sort(array, axis), np.argsort(array, axis, stable=True)])  # fmt: skip
        check(xp.sort(x, axis=axis, descending=True), -np.sort(-array, axis))
        check(xp.argsort(x, axis=axis, descending=True, stable=True), np.argsort(-array, axis, stable=True))
    if stream:
        for function in (xp.sort, xp.argsort):
            with pytest.raises(SpecError, match="cannot sort a stream"):
                function(x, axis=0)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("size", [3, 100])
def test_searching_a_sorted_vector(size: int, side: Any) -> None:
    table, array = np.sort(numbers((size,))), numbers((4, 5))
    for stream in (False, True):
        x = made(array, stream=stream)
        check(xp.searchsorted(xp.asarray(table), x, side=side), np.searchsorted(table, array, side=side))
        turned, sorter = xp.asarray(table[::-1].copy()), xp.asarray(np.arange(size)[::-1].copy())
        check(xp.searchsorted(turned, x, side=side, sorter=sorter), np.searchsorted(table, array, side=side))
    with pytest.raises(SpecTypeError, match="cannot mix kinds of dtypes"):
        xp.searchsorted(xp.asarray(table), xp.asarray(0.5), side=side)


def test_shapes_that_depend_on_numbers() -> None:
    array = numbers((4, 3)).astype(np.int16)
    for stream in (False, True):
        x = made(array, stream=stream)
        places = xp.nonzero(x)
        assert [one.shape for one in places] == [(None,), (None,)]
        for got, expected in zip(fc.resolve(*(one.element for one in places)), np.nonzero(array), strict=True):
            np.testing.assert_array_equal(got, expected)
        counted = xp.unique_counts(x)
        assert counted._fields == ("values", "counts")
        values = fc.resolve(counted.values.element, counted.counts.element, xp.unique_values(x).element)
        for got, expected in zip(values, (*np.unique(array, return_counts=True), np.unique(array)), strict=True):
            np.testing.assert_array_equal(got, expected)
        assert (counted.values.dtype, counted.counts.dtype) == (xp.int16, xp.int64)


def test_ranges_that_are_none() -> None:
    for arguments in ((0, 3, 0), (0, float("nan")), ("a",), (0, 2**62)):
        with pytest.raises(SpecTypeError, match="cannot make these numbers"):
            xp.arange(*arguments)


def test_errors_are_of_the_classes_that_the_standard_names() -> None:
    x = xp.asarray(numbers((2, 3)))
    with pytest.raises(IndexError):
        xp.expand_dims(x, 4)
    with pytest.raises(ValueError, match="size is not 1"):
        xp.squeeze(x, 1)
    for call in (lambda: xp.sum(x, axis=2), lambda: xp.argmax(x, axis=-3), lambda: xp.stack([x, x], axis=3)):
        with pytest.raises(SpecIndexError):
            call()
    for call in (lambda: xp.concat([]), lambda: xp.stack(())):
        with pytest.raises(SpecError, match="cannot join no arrays"):
            call()
    with pytest.raises(SpecTypeError, match="cannot take repeats="):
        xp.repeat(x, xp.asarray([1, 2]), axis=0)  # type: ignore[arg-type]
    for axis in (0, -2):
        with pytest.raises(SpecError, match="cannot take axis="):
            xp.vecdot(xp.asarray(numbers((3,))), xp.asarray(numbers((3,))), axis=axis)
