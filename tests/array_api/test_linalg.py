"""The extension linalg: results by what the standard says of them, of resident matrices and of matrices in items."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
import flowcompute.array_api as xp
from flowcompute.errors import SpecError, SpecTypeError

MATRICES = np.random.default_rng(5).standard_normal((4, 3, 3))
WIDE = np.random.default_rng(6).standard_normal((4, 2, 3))
SYMMETRIC = MATRICES @ np.swapaxes(MATRICES, -1, -2) + np.eye(3)


@pytest.fixture(params=["resident", "stream"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(array: np.ndarray, form: str) -> xp.LazyArray:
    return xp.asarray(array if form == "resident" else fc.source(array))


def values(*arrays: xp.LazyArray) -> Any:
    got = fc.resolve(*(one.element for one in arrays), device="numpy")
    for array, one in zip(arrays, got if len(arrays) > 1 else (got,), strict=True):
        assert (array.shape, array.dtype) == (np.shape(one), np.asarray(one).dtype)
    return got


def test_systems_and_inverses(form: str) -> None:
    a, b = made(MATRICES, form), made(WIDE.mT, form)
    solved, inverse, pseudo, power, vector = values(
        xp.linalg.solve(a, b),
        xp.linalg.inv(a),
        xp.linalg.pinv(made(WIDE, form)),
        xp.linalg.matrix_power(a, -2),
        xp.linalg.solve(a, xp.asarray([1.0, 2.0, 3.0])),
    )
    np.testing.assert_allclose(MATRICES @ solved, WIDE.mT, atol=1e-10)
    np.testing.assert_allclose(MATRICES @ vector[..., None], np.tile([[1.0], [2.0], [3.0]], (4, 1, 1)), atol=1e-10)
    np.testing.assert_allclose(MATRICES @ inverse, np.tile(np.eye(3), (4, 1, 1)), atol=1e-10)
    np.testing.assert_allclose(WIDE @ pseudo @ WIDE, WIDE, atol=1e-10)
    np.testing.assert_allclose(power, np.linalg.matrix_power(MATRICES, -2), rtol=1e-8)


def test_factorisations(form: str) -> None:
    x, wide = made(SYMMETRIC, form), made(WIDE, form)
    pairs, factors, decomposed = xp.linalg.eigh(x), xp.linalg.qr(wide), xp.linalg.svd(wide, full_matrices=False)
    assert pairs._fields == ("eigenvalues", "eigenvectors")
    assert factors._fields == ("Q", "R")
    assert decomposed._fields == ("U", "S", "Vh")
    numbers, vectors, q, r, u, s, vh, lower, upper, only, singular = values(
        *pairs, *factors, *decomposed, xp.linalg.cholesky(x), xp.linalg.cholesky(x, upper=True),
        xp.linalg.eigvalsh(x), xp.linalg.svdvals(wide),
    )  # fmt: skip
    np.testing.assert_allclose(SYMMETRIC @ vectors, vectors * numbers[:, None, :], atol=1e-9)
    assert (np.diff(numbers) >= 0).all()
    np.testing.assert_allclose(q @ r, WIDE, atol=1e-12)
    np.testing.assert_allclose((u * s[:, None, :]) @ vh, WIDE, atol=1e-12)
    np.testing.assert_allclose(lower @ lower.mT, SYMMETRIC, atol=1e-9)
    np.testing.assert_allclose(upper, lower.mT)
    np.testing.assert_allclose(only, numbers)
    np.testing.assert_allclose(singular, s)
    assert xp.linalg.svd(wide).Vh.shape == (4, 3, 3)
    assert xp.linalg.qr(made(WIDE.mT.copy(), form), mode="complete").Q.shape == (4, 3, 3)


def test_numbers_of_matrices(form: str) -> None:
    x, wide = made(MATRICES, form), made(WIDE, form)
    signed = xp.linalg.slogdet(x)
    assert signed._fields == ("sign", "logabsdet")
    sign, logarithm, det, rank, trace, diagonal = values(
        *signed, xp.linalg.det(x), xp.linalg.matrix_rank(wide), xp.linalg.trace(wide, offset=1),
        xp.linalg.diagonal(wide, offset=-1),
    )  # fmt: skip
    np.testing.assert_allclose(sign * np.exp(logarithm), det)
    np.testing.assert_allclose(det, np.linalg.det(MATRICES))
    assert rank.tolist() == [2] * 4
    np.testing.assert_allclose(trace, WIDE[:, 0, 1] + WIDE[:, 1, 2])
    np.testing.assert_array_equal(diagonal, WIDE[:, 1, :1])
    integers = made(np.ones((2, 2, 2), np.int8), form)
    assert (xp.linalg.trace(integers).dtype, xp.linalg.trace(integers, dtype=xp.int16).dtype) == (xp.int64, xp.int16)


def test_norms(form: str) -> None:
    x = made(WIDE, form)
    for order in (0, 1, 2, 3, 0.5, -1, math.inf, -math.inf):
        for axis in (None, -1, (0, 2)):
            got = values(xp.linalg.vector_norm(x, axis=axis, ord=order, keepdims=axis == -1))
            expected = np.linalg.vector_norm(WIDE, axis=axis, ord=order, keepdims=axis == -1)
            np.testing.assert_allclose(got, expected)
    for kind in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        got = values(xp.linalg.matrix_norm(x, ord=kind, keepdims=kind == 1))  # type: ignore[arg-type]
        np.testing.assert_allclose(got, np.linalg.matrix_norm(WIDE, ord=kind, keepdims=kind == 1))  # type: ignore[arg-type]


def test_products(form: str) -> None:
    x, other = made(MATRICES, form), xp.asarray(MATRICES[0])
    crossed, row, outer, dots = values(
        xp.linalg.cross(x, other),
        xp.linalg.cross(x, x[..., ::-1], axis=-2),
        xp.linalg.outer(x[:, 0, 0], xp.asarray([1.0, 2.0])),
        xp.linalg.vecdot(x, x),
    )
    np.testing.assert_allclose(crossed, np.cross(MATRICES, MATRICES[0]))
    np.testing.assert_allclose(row, np.cross(MATRICES, MATRICES[..., ::-1], axis=-2))
    np.testing.assert_allclose(outer, np.outer(MATRICES[:, 0, 0], [1.0, 2.0]))
    np.testing.assert_allclose(dots, (MATRICES**2).sum(-1))


def test_what_the_standard_refuses() -> None:
    x = xp.asarray(MATRICES)
    with pytest.raises(SpecError, match="cannot multiply these as vectors"):
        xp.linalg.outer(x, x)
    for function in (xp.linalg.solve, xp.linalg.cross, xp.linalg.tensordot, xp.linalg.matmul, xp.linalg.outer):
        with pytest.raises(SpecTypeError, match="cannot mix kinds of dtypes"):
            function(x, xp.astype(x, xp.int64))
    with pytest.raises(SpecTypeError, match="cannot take rtol="):
        xp.linalg.pinv(x, rtol=xp.asarray([0.1] * 4))  # type: ignore[arg-type]
    assert {name.removeprefix("linalg.") for name in xp.COVERAGE if name.startswith("linalg.")} >= set(
        xp.linalg.__all__
    )
