"""Transposed streams: what takes them, what refuses them, and products that contract the stream axis."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.math.transposition import TransposedStream
from flowcompute.spec import BFLOAT16

RNG = np.random.default_rng(7)
LENGTH = 5000
X, Y = RNG.integers(-9, 9, (2, LENGTH, 3)).astype(np.float32)
WIDE = RNG.standard_normal((LENGTH, 40), dtype=np.float32)
V = RNG.integers(-9, 9, LENGTH).astype(np.float32)


def x() -> Any:
    return fc.source(X, name="x")


PRODUCTS: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    "two streams": (lambda: x().T @ fc.source(Y), X.T @ Y),
    "a stream and itself": (lambda: (s := x()).T @ s, X.T @ X),
    "equal streams": (lambda: x().T @ x(), X.T @ X),
    "computed": (lambda: (x() + 1).T @ (fc.source(Y) * 2), (X + 1).T @ (Y * 2)),
    "a matrix and a vector": (lambda: x().T @ fc.source(V), X.T @ V),
    "a vector and a matrix": (lambda: fc.source(V) @ x(), V @ X),
    "two vectors": (lambda: fc.source(V) @ fc.source(V), V @ V),
    "an array on the left": (lambda: X.T @ x(), X.T @ X),
    "a constant on the left": (lambda: fc.constant(Y.T) @ x(), Y.T @ X),
    "a vector on the left": (lambda: V @ x(), V @ X),
    "an array on the right": (lambda: x().T @ Y, X.T @ Y),
    "a vector on the right": (lambda: x().T @ V, X.T @ V),
    "a vector and an array": (lambda: fc.source(V) @ X, V @ X),
    "a resident matrix and a vector": (lambda: X.T @ fc.source(V), X.T @ V),
    "numpy's matmul": (lambda: np.matmul(x().T, fc.source(Y)), X.T @ Y),
    "an array before a transposed stream's": (lambda: np.ones(3, np.float32) @ (x().T @ x()), X.sum(axis=1) @ X),
}


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str, device: str) -> None:
    make, want = PRODUCTS[name]
    made = make()
    assert made.shape == want.shape
    assert not made.spec.is_stream
    for strategy in (None, fc.Strategy(batch_bytes=1 << 10)):
        value = fc.resolve(made, device=device, strategy=strategy, progress=False)
        assert value.dtype == want.dtype
        assert np.array_equal(value, want)


def test_bits_depend_on_no_batch_size_and_no_device() -> None:
    found = set()
    for device in ("numpy", "cpu"):
        for size in (1 << 12, 100_000, 1 << 24):
            s, other = fc.source(WIDE), fc.source(WIDE[:, ::-1].copy())
            options = {"device": device, "strategy": fc.Strategy(batch_bytes=size), "progress": False}
            values = fc.resolve(s.T @ s, s.T @ other, fc.source(V) @ s, **options)
            found.add(tuple(value.tobytes() for value in values))
    assert len(found) == 1


@pytest.mark.parametrize("dtype", ["i1", "u8", "i4", "f2", BFLOAT16, "f8"], ids=str)
def test_dtypes_are_numpys(dtype: Any) -> None:
    array = RNG.integers(0, 3, (50, 3)).astype(dtype)
    s = fc.source(array)
    made = s.T @ s
    want = array.T @ array
    assert made.dtype == want.dtype
    assert np.array_equal(made.resolve(device="numpy", progress=False), want)
    mixed = s.T @ fc.source(np.ones((50, 2), np.float32))
    assert mixed.dtype == (array.T @ np.ones((50, 2), np.float32)).dtype


def test_an_empty_stream() -> None:
    s = fc.source(np.ones((0, 3), np.float32))
    value = (s.T @ s).resolve(device="numpy", progress=False)
    assert np.array_equal(value, np.zeros((3, 3)))
    assert value.dtype == np.float32


def test_no_columns() -> None:
    s = fc.source(np.ones((5, 0), np.float32))
    assert (s.T @ fc.source(np.ones((5, 2)))).resolve(device="numpy", progress=False).shape == (0, 2)


def test_nan_and_infinity_stand_where_numpys_do() -> None:
    array = X[:100].copy()
    array[3, 1], array[70, 2] = np.nan, np.inf
    s = fc.source(array)
    with np.errstate(invalid="ignore"):
        assert np.array_equal((s.T @ s).resolve(device="numpy", progress=False), array.T @ array, equal_nan=True)


# -- the transposed stream itself -------------------------------------------------------------


def test_what_it_is() -> None:
    s = fc.source(np.ones((4, 2, 3)), name="s")
    turned = s.T
    assert isinstance(turned, TransposedStream)
    assert (turned.shape, turned.ndim, turned.dtype) == ((3, 2, 4), 3, np.float64)
    assert turned.T is s
    assert turned.mT.shape == (3, 4, 2)
    assert x().mT.shape == (3, LENGTH)
    assert x().mT.mT.shape == (LENGTH, 3)
    assert fc.source(V).T.shape == (LENGTH,)
    unknown = fc.iterate(iter([]), shape=(3,), dtype="f4")
    assert unknown.T.shape == (3, None)
    assert "(3, 2, 4)" in repr(turned)
    assert "s" in repr(turned)


def test_resolving_it() -> None:
    cube = RNG.standard_normal((4, 2, 3))
    assert np.array_equal(fc.source(cube).T.resolve(device="numpy", progress=False), cube.T)
    assert np.array_equal(x().T.resolve(device="numpy", progress=False), X.T)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda t: t + 1,
        lambda t: 1 - t,
        lambda t: np.ones(3) * t,
        lambda t: x() / t,
        lambda t: -t,
        lambda t: abs(t),
        lambda t: t > 0,
        lambda t: t[0],
        lambda t: t >> fc.discard(),
        lambda t: np.add(t, 1),
        lambda t: np.asarray(t),
        lambda t: list(t),
        lambda t: len(t),
        lambda t: bool(t),
        fc.sum,
        fc.exp,
        lambda t: fc.vecdot(t, t),
        lambda t: fc.cov(t),
    ],
)
def test_everything_else_refuses_it(attempt: Callable[[Any], Any]) -> None:
    with pytest.raises(fc.SpecError) as caught:
        attempt(x().T)
    assert "cannot use a transposed stream but in matmul and resolve" in str(caught.value)
    assert "(x + 1).T" in str(caught.value)


def test_it_has_no_methods() -> None:
    with pytest.raises(AttributeError, match="a transposed stream has no sum: compute before transposing"):
        operator.attrgetter("sum")(x().T)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: x() @ x().T, "cannot multiply by a transposed stream from the right"),
    (lambda: np.ones((2, 3)) @ x().T, "cannot multiply by a transposed stream from the right"),
    (lambda: x().T @ x().T, "cannot multiply by a transposed stream from the right"),
    (lambda: x() @ x(), "cannot contract the stream axis with another one"),
    (lambda: x().T @ fc.source(Y[:-1]), "4999"),
    (lambda: x().T @ Y[:-1], "4999"),
    (lambda: Y[:-1].T @ x(), "(3, 4999) @ (5000, 3)"),
    (lambda: V[:-1] @ x(), "(4999,) @ (5000, 3)"),
    (lambda: x().T @ 2.0, "cannot multiply a transposed stream by this"),
    (lambda: x().T @ np.ones((LENGTH, 2, 2)), "cannot multiply a transposed stream by this"),
    (lambda: fc.source(np.ones((4, 2, 3))).T @ np.ones(4), "cannot multiply a transposed stream by this"),
    (lambda: (x() > 0).T @ (x() > 0), "cannot multiply bools"),
    (lambda: fc.source(V).mT, "cannot transpose fewer than two axes"),
]


@pytest.mark.parametrize(("attempt", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_what_does_not_fit_is_refused(attempt: Callable[[], Any], text: str) -> None:
    with pytest.raises(fc.SpecError) as caught:
        attempt()
    assert text in str(caught.value)
    assert __file__ in str(caught.value)
