"""`diff` and `repeat` along every axis, by default NumPy's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.errors import SpecError
from tests.support.slow import compiled_but

ARRAY = np.random.default_rng(7).integers(-9, 10, (6, 4, 3)).astype(np.float32)
DEVICES = ("numpy", "cpu")
CALLS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda x: fc.diff(x), lambda a: np.diff(a)),
    (lambda x: fc.diff(x, 2, 1), lambda a: np.diff(a, 2, 1)),
    (lambda x: fc.diff(x, axis=0), lambda a: np.diff(a, axis=0)),
    (lambda x: fc.diff(x, 0), lambda a: np.diff(a, 0)),
    (lambda x: fc.diff(x, 9), lambda a: np.diff(a, 9)),
    (lambda x: fc.diff(x > 0), lambda a: np.diff(a > 0)),
    (lambda x: fc.diff(x, prepend=0), lambda a: np.diff(a, prepend=0)),
    (lambda x: fc.diff(x, append=np.nan, axis=0), lambda a: np.diff(a, append=np.nan, axis=0)),
    (lambda x: fc.diff(x, 2, 1, prepend=1, append=-1.5), lambda a: np.diff(a, 2, 1, prepend=1, append=-1.5)),
    (lambda x: fc.diff(x, axis=0, prepend=ARRAY[:2]), lambda a: np.diff(a, axis=0, prepend=ARRAY[:2])),
    (lambda x: fc.diff(x, append=ARRAY[..., :1]), lambda a: np.diff(a, append=ARRAY[..., :1])),
    (lambda x: fc.diff(x, append=x), lambda a: np.diff(a, append=a)),
    (lambda x: fc.diff(x[..., :0], prepend=3), lambda a: np.diff(a[..., :0], prepend=3)),
    (lambda x: fc.repeat(x, 2), lambda a: np.repeat(a, 2)),
    (lambda x: fc.repeat(x, 3, axis=0), lambda a: np.repeat(a, 3, axis=0)),
    (lambda x: fc.repeat(x, 2, 1), lambda a: np.repeat(a, 2, 1)),
    (lambda x: fc.repeat(x, 0, axis=-1), lambda a: np.repeat(a, 0, axis=-1)),
]


@pytest.mark.parametrize("device", compiled_but(["numpy"], DEVICES))
@pytest.mark.parametrize("of", [fc.source, fc.constant])
def test_defaults_and_axes_are_numpys(device: str, of: Any) -> None:
    made = [call(of(ARRAY)) for call, _ in CALLS]
    for element, value, (_, numpy) in zip(made, fc.resolve(*made, device=device, progress=False), CALLS, strict=True):
        want = numpy(ARRAY)
        assert element.shape == value.shape == want.shape
        assert value.dtype == want.dtype
        np.testing.assert_array_equal(value, want)


@pytest.mark.parametrize("device", DEVICES)
def test_streams_of_numbers_and_of_unknown_length(device: str) -> None:
    column = ARRAY[:, 0, 0]
    x = fc.iterate([column[:2], column[2:]], shape=(), dtype="f4")
    made = [fc.diff(x), fc.repeat(x, 2), fc.diff(x, prepend=1.5, append=x)]
    wanted = [np.diff(column), np.repeat(column, 2), np.diff(column, prepend=1.5, append=column)]
    for value, want in zip(fc.resolve(*made, device=device, progress=False), wanted, strict=True):
        np.testing.assert_array_equal(value, want)


@given(data=st.data())
def test_any_batch_size(data: st.DataObject) -> None:
    axis, n = data.draw(st.integers(-3, 2)), data.draw(st.integers(0, 3))
    batch = data.draw(st.integers(48, 400))
    made = [fc.diff(fc.source(ARRAY), n, axis, prepend=2), fc.repeat(fc.source(ARRAY), n, axis)]
    values = fc.resolve(*made, device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=batch))
    np.testing.assert_array_equal(values[0], np.diff(ARRAY, n, axis, prepend=2))
    np.testing.assert_array_equal(values[1], np.repeat(ARRAY, n, axis))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: fc.diff(x, axis=3), "cannot find axis 3"),
        (lambda x: fc.diff(x, -1), "n="),
        (lambda x: fc.diff(x, prepend=[1.0, 2.0]), "cannot put this beside the value"),
        (lambda x: fc.diff(x, prepend=np.zeros((6, 5, 1))), "cannot"),
        (lambda x: fc.diff(fc.constant(2)), "cannot find axis -1"),
        (lambda x: fc.repeat(x, [1, 2], axis=1), "repeats="),
        (lambda x: fc.repeat(x, 1 << 40, axis=1), "repeats="),
    ],
)
def test_refusals(call: Any, text: str) -> None:
    with pytest.raises(SpecError, match=text):
        call(fc.source(ARRAY))
