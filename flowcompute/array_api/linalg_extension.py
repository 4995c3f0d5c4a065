"""The extension `linalg` of the standard, by `fc.linalg`. Factorisations are computed by LAPACK on the host."""

from __future__ import annotations

from typing import Literal

import numpy as np

from flowcompute.array_api.array import LazyArray, element_of, elements_of, in_arrays
from flowcompute.array_api.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from flowcompute.elements import axes, linalg, products, user_site
from flowcompute.elements.linalg import EighResult, QRResult, SlogdetResult, SVDResult
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


def cholesky(x: LazyArray, /, *, upper: bool = False) -> LazyArray:
    """Factor symmetric positive definite matrices; see `fc.linalg.cholesky`."""
    return LazyArray(linalg.cholesky(element_of("cholesky", x), upper=upper))


def cross(x1: LazyArray, x2: LazyArray, /, *, axis: int = -1) -> LazyArray:
    """Return the cross products of vectors of three numbers; see `fc.cross`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    left, right = elements_of("cross", x1, x2)
    return LazyArray(products.cross(left, right, axis))


def det(x: LazyArray, /) -> LazyArray:
    """Return the determinants of square matrices; see `fc.linalg.det`."""
    return LazyArray(linalg.det(element_of("det", x)))


def diagonal(x: LazyArray, /, *, offset: int = 0) -> LazyArray:
    """Return the diagonals of matrices; see `fc.diagonal`."""
    return LazyArray(axes.diagonal(element_of("diagonal", x), offset))


def eigh(x: LazyArray, /) -> EighResult:
    """Return eigenvalues and eigenvectors of symmetric matrices; see `fc.linalg.eigh`."""
    return in_arrays(linalg.eigh(element_of("eigh", x)))


def eigvalsh(x: LazyArray, /) -> LazyArray:
    """Return the eigenvalues of symmetric matrices; see `fc.linalg.eigvalsh`."""
    return LazyArray(linalg.eigvalsh(element_of("eigvalsh", x)))


def inv(x: LazyArray, /) -> LazyArray:
    """Invert square matrices; see `fc.linalg.inv`."""
    return LazyArray(linalg.inv(element_of("inv", x)))


def matrix_norm(
    x: LazyArray, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> LazyArray:
    """Return norms of matrices; see `fc.linalg.matrix_norm`."""
    return LazyArray(
        linalg.matrix_norm(element_of("matrix_norm", x), keepdims=keepdims, ord="fro" if ord is None else ord)
    )


def matrix_power(x: LazyArray, n: int, /) -> LazyArray:
    """Multiply square matrices n times by themselves; see `fc.linalg.matrix_power`."""
    return LazyArray(linalg.matrix_power(element_of("matrix_power", x), n))


def matrix_rank(x: LazyArray, /, *, rtol: float | None = None) -> LazyArray:
    """Count the singular values of matrices above a tolerance; see `fc.linalg.matrix_rank`."""
    return LazyArray(linalg.matrix_rank(element_of("matrix_rank", x), rtol=rtol))


def outer(x1: LazyArray, x2: LazyArray, /) -> LazyArray:
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
    return LazyArray(products.outer(left, right))


def pinv(x: LazyArray, /, *, rtol: float | None = None) -> LazyArray:
    """Return the Moore-Penrose inverses of matrices; see `fc.linalg.pinv`."""
    return LazyArray(linalg.pinv(element_of("pinv", x), rtol=rtol))


def qr(x: LazyArray, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Factor matrices as `Q @ R`; see `fc.linalg.qr`."""
    return in_arrays(linalg.qr(element_of("qr", x), mode=mode))


def slogdet(x: LazyArray, /) -> SlogdetResult:
    """Return signs and logarithms of determinants; see `fc.linalg.slogdet`."""
    return in_arrays(linalg.slogdet(element_of("slogdet", x)))


def solve(x1: LazyArray, x2: LazyArray, /) -> LazyArray:
    """Solve `x1 @ result = x2`; see `fc.linalg.solve`.

    Raises:
        SpecTypeError: if kinds of dtypes are mixed.
    """
    return LazyArray(linalg.solve(*elements_of("solve", x1, x2)))


def svd(x: LazyArray, /, *, full_matrices: bool = True) -> SVDResult:
    """Decompose matrices as `(U * S) @ Vh`; see `fc.linalg.svd`."""
    return in_arrays(linalg.svd(element_of("svd", x), full_matrices=full_matrices))


def svdvals(x: LazyArray, /) -> LazyArray:
    """Return the singular values of matrices; see `fc.linalg.svdvals`."""
    return LazyArray(linalg.svdvals(element_of("svdvals", x)))


def trace(x: LazyArray, /, *, offset: int = 0, dtype: np.dtype | None = None) -> LazyArray:
    """Sum the diagonals of matrices; see `fc.trace`."""
    return LazyArray(axes.trace(element_of("trace", x), offset, dtype=dtype))


def vector_norm(
    x: LazyArray, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: float = 2
) -> LazyArray:
    """Return norms of vectors over `axis`; see `fc.linalg.vector_norm`."""
    return LazyArray(linalg.vector_norm(element_of("vector_norm", x), axis=axis, keepdims=keepdims, ord=ord))
