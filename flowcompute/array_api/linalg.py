"""The extension `linalg` of the standard, by `fc.linalg`. Factorisations are computed by LAPACK on the host."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from flowcompute.array_api.array import Array, element_of, elements_of
from flowcompute.array_api.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from flowcompute.elements import axes, linalg, products, user_site
from flowcompute.errors import SpecError

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangular matrix."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values, and right singular vectors in rows."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Factor symmetric positive definite matrices; see `fc.linalg.cholesky`."""
    return Array(linalg.cholesky(element_of("cholesky", x), upper=upper))


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of three numbers; see `fc.cross`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    left, right = elements_of("cross", x1, x2)
    return Array(products.cross(left, right, axis))


def det(x: Array, /) -> Array:
    """Return the determinants of square matrices; see `fc.linalg.det`."""
    return Array(linalg.det(element_of("det", x)))


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices; see `fc.diagonal`."""
    return Array(axes.diagonal(element_of("diagonal", x), offset))


def eigh(x: Array, /) -> EighResult:
    """Return eigenvalues and eigenvectors of symmetric matrices; see `fc.linalg.eigh`."""
    return EighResult(*map(Array, linalg.eigh(element_of("eigh", x))))


def eigvalsh(x: Array, /) -> Array:
    """Return the eigenvalues of symmetric matrices; see `fc.linalg.eigvalsh`."""
    return Array(linalg.eigvalsh(element_of("eigvalsh", x)))


def inv(x: Array, /) -> Array:
    """Invert square matrices; see `fc.linalg.inv`."""
    return Array(linalg.inv(element_of("inv", x)))


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro") -> Array:
    """Return norms of matrices; see `fc.linalg.matrix_norm`."""
    return Array(linalg.matrix_norm(element_of("matrix_norm", x), keepdims=keepdims, ord="fro" if ord is None else ord))


def matrix_power(x: Array, n: int, /) -> Array:
    """Multiply square matrices n times by themselves; see `fc.linalg.matrix_power`."""
    return Array(linalg.matrix_power(element_of("matrix_power", x), n))


def matrix_rank(x: Array, /, *, rtol: float | None = None) -> Array:
    """Count the singular values of matrices above a tolerance; see `fc.linalg.matrix_rank`."""
    return Array(linalg.matrix_rank(element_of("matrix_rank", x), rtol=rtol))


def outer(x1: Array, x2: Array, /) -> Array:
    """Multiply each number of a vector by each number of another one; see `fc.outer`.

    Raises:
        SpecError: for what are no vectors.
        SpecTypeError: if kinds of dtypes are mixed.
    """
    left, right = elements_of("outer", x1, x2)
    if left.ndim != 1 or right.ndim != 1:
        raise SpecError(
            "cannot multiply these as vectors",
            element="outer",
            site=user_site(),
            expected="one axis each",
            got=f"{x1.shape} and {x2.shape}",
        )
    return Array(products.outer(left, right))


def pinv(x: Array, /, *, rtol: float | None = None) -> Array:
    """Return the Moore-Penrose inverses of matrices; see `fc.linalg.pinv`."""
    return Array(linalg.pinv(element_of("pinv", x), rtol=rtol))


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Factor matrices as `Q @ R`; see `fc.linalg.qr`."""
    return QRResult(*map(Array, linalg.qr(element_of("qr", x), mode=mode)))


def slogdet(x: Array, /) -> SlogdetResult:
    """Return signs and logarithms of determinants; see `fc.linalg.slogdet`."""
    return SlogdetResult(*map(Array, linalg.slogdet(element_of("slogdet", x))))


def solve(x1: Array, x2: Array, /) -> Array:
    """Solve `x1 @ result = x2`; see `fc.linalg.solve`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return Array(linalg.solve(*elements_of("solve", x1, x2)))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Decompose matrices as `(U * S) @ Vh`; see `fc.linalg.svd`."""
    return SVDResult(*map(Array, linalg.svd(element_of("svd", x), full_matrices=full_matrices)))


def svdvals(x: Array, /) -> Array:
    """Return the singular values of matrices; see `fc.linalg.svdvals`."""
    return Array(linalg.svdvals(element_of("svdvals", x)))


def trace(x: Array, /, *, offset: int = 0, dtype: np.dtype | None = None) -> Array:
    """Sum the diagonals of matrices; see `fc.trace`."""
    return Array(axes.trace(element_of("trace", x), offset, dtype=dtype))


def vector_norm(
    x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Return norms of vectors over `axis`; see `fc.linalg.vector_norm`."""
    return Array(linalg.vector_norm(element_of("vector_norm", x), axis=axis, keepdims=keepdims, ord=ord))
