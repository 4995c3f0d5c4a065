"""Values taken apart, tiled and rolled, and matrices by their diagonals: NumPy's numbers, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SpecError
from flowcompute.spec import SUPPORTED_DTYPES

CUBE = np.random.default_rng(3).integers(-9, 10, (5, 4, 6))
Call = tuple[Callable[..., Any], Callable[..., Any]]

CALLS: list[Call] = [
    (lambda x: fc.tile(x, 2), lambda a: np.tile(a, 2)),
    (lambda x: fc.tile(x, (3, 1, 2)), lambda a: np.tile(a, (3, 1, 2))),
    (lambda x: fc.tile(x, (0, 1)), lambda a: np.tile(a, (0, 1))),
    (lambda x: np.tile(x[:, 0, 0], 3), lambda a: np.tile(a[:, 0, 0], 3)),
    (lambda x: fc.tile(x[:, 0, 0], 0), lambda a: np.tile(a[:, 0, 0], 0)),
    (lambda x: np.roll(x, 2, axis=1), lambda a: np.roll(a, 2, axis=1)),
    (lambda x: fc.roll(x, (1, -9), axis=(1, 2)), lambda a: np.roll(a, (1, -9), axis=(1, 2))),
    (lambda x: fc.roll(x, 3, axis=(-1, 1, -1)), lambda a: np.roll(a, 3, axis=(-1, 1, -1))),
    (lambda x: fc.roll(x, (1, 2), axis=1), lambda a: np.roll(a, (1, 2), axis=1)),
    (lambda x: fc.roll(x[..., :0], 1, axis=2), lambda a: np.roll(a[..., :0], 1, axis=2)),
    (lambda x: np.matrix_transpose(x), lambda a: np.matrix_transpose(a)),
    (lambda x: fc.diagonal(x, 1), lambda a: np.diagonal(a, 1, 1, 2)),
    (lambda x: np.diagonal(x, -2, 2, 1), lambda a: np.diagonal(a, -2, 2, 1)),
    (lambda x: fc.diagonal(x, 99), lambda a: np.diagonal(a, 99, 1, 2)),
    (lambda x: fc.diagonal(x[:, :0]), lambda a: np.diagonal(a[:, :0], 0, 1, 2)),
    (lambda x: fc.trace(x, -1), lambda a: np.trace(a, -1, 1, 2)),
    (lambda x: fc.trace(x, dtype="f8"), lambda a: np.trace(a, 0, 1, 2, "f8")),
    (lambda x: np.tril(x), lambda a: np.tril(a)),
    (lambda x: np.triu(x, 2), lambda a: np.triu(a, 2)),
    (lambda x: fc.tril(x[:, :, 0], -1), lambda a: np.tril(a[:, :, 0], -1)),
    (lambda x: fc.triu(x, -(2**62)), lambda a: a),
    (lambda x: fc.stack(np.unstack(x, axis=2), 1), lambda a: np.stack(np.unstack(a, axis=2), 1)),
]


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("of", [fc.source, fc.constant])
def test_they_are_numpys(device: str, of: Any) -> None:
    array = CUBE.astype("f4")
    made = [call(of(array)) for call, _ in CALLS]
    values = fc.resolve(*made, device=device, progress=False)
    for place, (element, value, (_, numpy)) in enumerate(zip(made, values, CALLS, strict=True)):
        want = numpy(array)
        assert element.shape == value.shape == want.shape, place
        assert value.dtype == want.dtype
        np.testing.assert_array_equal(value, want, err_msg=str(place))


def test_residents_have_more() -> None:
    array = CUBE.astype("i2")
    x = fc.constant(array)
    for made, want in [
        (fc.roll(x, 7), np.roll(array, 7)),
        (fc.roll(x, -1, axis=0), np.roll(array, -1, axis=0)),
        (fc.tile(x, (2, 1, 1, 3)), np.tile(array, (2, 1, 1, 3))),
        (fc.stack(fc.unstack(x), axis=2), np.stack(np.unstack(array), axis=2)),
        (fc.diagonal(x, 1, 0, 2), np.diagonal(array, 1, 0, 2)),
        (np.trace(x), np.trace(array)),
    ]:
        np.testing.assert_array_equal(made.resolve(device="numpy", progress=False), want)


@given(data=st.data())
def test_any_dtype_axis_and_batch_size(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(SUPPORTED_DTYPES))
    array = CUBE.astype(dtype)
    k, axis = data.draw(st.integers(-7, 7)), data.draw(st.sampled_from([1, 2, -1, -2]))
    x = fc.source(array) if data.draw(st.booleans()) else fc.iterate([array[:2], array[2:]], shape=(4, 6), dtype=dtype)
    made = [fc.roll(x, k, axis), fc.diagonal(x, k), fc.tril(x, k), fc.triu(x[:, :, 0], k)]
    strategy = fc.Strategy(batch_bytes=data.draw(st.integers(200, 2000)))
    values = fc.resolve(*made, device="numpy", progress=False, strategy=strategy)
    wanted = [np.roll(array, k, axis), np.diagonal(array, k, 1, 2), np.tril(array, k), np.triu(array[:, :, 0], k)]
    for value, want in zip(values, wanted, strict=True):
        assert value.dtype == want.dtype
        np.testing.assert_array_equal(value, want)


def test_numbers_that_are_left_out_do_not_count() -> None:
    array = np.full((2, 3, 3), np.nan)
    array[0] = -0.0
    low = fc.tril(fc.source(array)).resolve(progress=False)
    np.testing.assert_array_equal(low, np.tril(array))
    np.testing.assert_array_equal(np.signbit(low), np.signbit(np.tril(array)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: fc.unstack(x), "cannot take a stream apart into its records.*fc.callback"),
        (lambda x: fc.unstack(fc.constant(np.zeros(2000))), "so many"),
        (lambda x: fc.tile(x, (2, 1, 1, 1)), "cannot insert an axis before the stream"),
        (lambda x: fc.tile(x, (65, 1, 1)), "reps="),
        (lambda x: fc.tile(x, -1), "reps="),
        (lambda x: fc.roll(x, 1), "cannot move the last records.*fc.concat"),
        (lambda x: fc.roll(x, 1, axis=0), "cannot move the last records"),
        (lambda x: fc.roll(x, (1, 2), axis=(1, 2, 1)), "2 shifts and 3 axes"),
        (lambda x: fc.roll(x, 1, axis=3), "cannot find axis 3"),
        (lambda x: fc.diagonal(x, 0, 0, 1), "cannot find the diagonal"),
        (lambda x: fc.diagonal(x, 0, 1, 1), "cannot find the diagonal"),
        (lambda x: fc.trace(x[:, 0]), "cannot find the diagonal"),
        (lambda x: fc.tril(x[:, 0, 0]), "cannot find a triangle"),
        (lambda x: fc.matrix_transpose(x[:, 0, 0]), "cannot transpose fewer than two axes"),
    ],
)
def test_what_is_refused(call: Callable[..., Any], text: str) -> None:
    with pytest.raises(SpecError, match=f"(?s){text}"):
        call(fc.source(CUBE))
