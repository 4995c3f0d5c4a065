"""Linear systems and what follows from a factorisation in one piece: solutions, inverses, determinants, ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowcompute.elements.arguments import flag, real, whole
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand, as_element, cast
from flowcompute.elements.linalg.host_records import (
    aligned,
    check_matrix,
    lapack_dtype,
    lapack_op,
    matrices,
    of_one,
    stacks,
)
from flowcompute.elements.op import KeptOp
from flowcompute.elements.site import user_site
from flowcompute.errors import SpecError
from flowcompute.spec import INT64, Spec, format_shape

MOST_POWER = 1 << 31
"""Powers of matrices are below this on either side of 0."""


def _cholesky(x: np.ndarray, upper: bool) -> np.ndarray:
    return np.linalg.cholesky(x, upper=upper)


def _pinv(x: np.ndarray, rtol: float | None) -> np.ndarray:
    return np.linalg.pinv(x, rtol=_tolerance(x, rtol))


def _matrix_rank(x: np.ndarray, rtol: float | None) -> np.ndarray:
    if not min(x.shape[-2:]):
        return np.zeros(x.shape[:-2], INT64)
    return np.asarray(np.linalg.matrix_rank(x, rtol=_tolerance(x, rtol)), INT64)


def _tolerance(x: np.ndarray, rtol: float | None) -> float:
    """Return what the largest singular value is multiplied by: `max(M, N) * eps` by default, as in the Array API."""
    return float(max(x.shape[-2:]) * np.finfo(x.dtype).eps) if rtol is None else rtol


def _matrix_power(x: np.ndarray, n: int) -> np.ndarray:
    return np.linalg.matrix_power(x, n)


def _solve(x1: np.ndarray, x2: np.ndarray, vector: bool) -> np.ndarray:
    return np.linalg.solve(x1, x2[..., None])[..., 0] if vector else np.linalg.solve(x1, x2)


def _rebuild_solve(kept: KeptOp) -> Compute:
    made = solve(*kept.operands(2))
    kept.require(made.attrs["vector"] == kept.attrs.flag("vector"), "operands of these ranks")
    return made


def _rebuild_cholesky(kept: KeptOp) -> Compute:
    return cholesky(kept.one(), upper=kept.attrs.flag("upper"))


def _rebuild_inv(kept: KeptOp) -> Compute:
    return inv(kept.one())


def _rebuild_det(kept: KeptOp) -> Compute:
    return det(kept.one())


def _rebuild_pinv(kept: KeptOp) -> Compute:
    return pinv(kept.one(), rtol=kept.attrs.maybe("rtol", kept.attrs.real))


def _rebuild_matrix_rank(kept: KeptOp) -> Compute:
    return matrix_rank(kept.one(), rtol=kept.attrs.maybe("rtol", kept.attrs.real))


def _rebuild_matrix_power(kept: KeptOp) -> Compute:
    return matrix_power(kept.one(), kept.attrs.whole("n", least=1 - MOST_POWER, most=MOST_POWER - 1))


SOLVE = lapack_op("solve", _solve, _rebuild_solve, "The solution of linear systems.", 2)
CHOLESKY = lapack_op("cholesky", _cholesky, _rebuild_cholesky, "The Cholesky factor.")
INV = lapack_op("inv", np.linalg.inv, _rebuild_inv, "The inverse.")
DET = lapack_op("det", np.linalg.det, _rebuild_det, "The determinant.")
PINV = lapack_op("pinv", _pinv, _rebuild_pinv, "The Moore-Penrose inverse.")
MATRIX_RANK = lapack_op("matrix_rank", _matrix_rank, _rebuild_matrix_rank, "The rank.")
MATRIX_POWER = lapack_op("matrix_power", _matrix_power, _rebuild_matrix_power, "A power of matrices.")


@public
def solve(x1: Operand, x2: Operand) -> Compute:
    """Solve `x1 @ result = x2` by LU factorisation with partial pivoting (LAPACK's gesv).

    Args:
        x1: square matrices `(..., n, n)`.
        x2: a resident vector `(n,)`, or matrices `(..., n, k)`. Stacks broadcast.

    Returns:
        Solutions of the shape of `x2`, or of what stacks broadcast to.

    Raises:
        SpecError: if shapes do not fit, or for half formats. When it runs, a singular matrix is a RunError.
    """
    left, right = as_element(x1, "solve"), as_element(x2, "solve")
    vector = right.ndim == 1 and not right.spec.is_stream
    check_matrix("solve", left, square=True)
    if not vector:
        check_matrix("solve", right)
    dtype = lapack_dtype("solve", (left, right))
    n = left.spec.shape[-1]
    rows = right.spec.shape[-1 if vector else -2]
    if rows != n:
        raise SpecError(
            "cannot solve systems whose sides differ in size",
            element="solve",
            site=user_site(),
            expected=f"{n} rows on the right, as there are equations",
            got=f"{format_shape(left.shape)} and {format_shape(right.shape)}",
        )
    left, right, stream = aligned("solve", cast(left, dtype), cast(right, dtype))
    columns = () if vector else right.spec.shape[-1:]
    stack = stacks("solve", left.spec.shape[:-2], () if vector else right.spec.shape[:-2])
    return Compute(SOLVE, (left, right), Spec(left.dtype, (*stack, n, *columns), stream), {"vector": vector})


@public
def cholesky(x: Operand, *, upper: bool = False) -> Compute:
    """Factor symmetric positive definite matrices as `L @ L.T`, with `L` lower triangular.

    Args:
        x: matrices `(..., n, n)`; one triangle is read.
        upper: whether the result is `U` of `U.T @ U`.

    Raises:
        SpecError: if matrices are not square, or for half formats. When it runs, a matrix that is not positive
            definite is a RunError.
    """
    (element,) = matrices("cholesky", x, square=[0])
    return of_one(CHOLESKY, element, element.spec.shape[-2:], upper=flag("cholesky", "upper", upper))


@public
def inv(x: Operand) -> Compute:
    """Invert square matrices `(..., n, n)`. To solve a system `solve` is faster and more precise.

    Raises:
        SpecError: if matrices are not square, or for half formats. When it runs, a singular matrix is a RunError.
    """
    (element,) = matrices("inv", x, square=[0])
    return of_one(INV, element, element.spec.shape[-2:])


@public
def det(x: Operand) -> Compute:
    """Return the determinants of square matrices `(..., n, n)`, of shape `(...)`.

    Raises:
        SpecError: if matrices are not square, or for half formats.
    """
    (element,) = matrices("det", x, square=[0])
    return of_one(DET, element, ())


@public
def pinv(x: Operand, *, rtol: float | None = None) -> Compute:
    """Return the Moore-Penrose inverses `(..., n, m)` of matrices `(..., m, n)`, by singular values.

    Args:
        x: matrices.
        rtol: singular values up to `rtol` times the largest count as 0; by default `max(m, n) * eps` of the dtype.

    Raises:
        SpecError: if `x` is no matrix, or for half formats.
    """
    (element,) = matrices("pinv", x)
    rows, columns = element.spec.shape[-2:]
    return of_one(PINV, element, (columns, rows), rtol=_rtol("pinv", rtol))


@public
def matrix_rank(x: Operand, *, rtol: float | None = None) -> Compute:
    """Count the singular values of matrices `(..., m, n)` above a tolerance, as int64 `(...)`.

    Args:
        x: matrices.
        rtol: singular values up to `rtol` times the largest do not count; by default `max(m, n) * eps` of the dtype.

    Raises:
        SpecError: if `x` is no matrix, or for half formats.
    """
    (element,) = matrices("matrix_rank", x)
    return of_one(MATRIX_RANK, element, (), INT64, rtol=_rtol("matrix_rank", rtol))


def _rtol(op: str, rtol: Any) -> float | None:
    if rtol is None:
        return None
    number = real(op, "rtol", rtol, "a number from 0 on, or None")
    if not 0 <= number < np.inf:
        raise SpecError(
            "cannot take rtol=", element=op, site=user_site(), expected="a finite number from 0 on", got=str(number)
        )
    return number


@public
def matrix_power(x: Operand, n: int) -> Compute:
    """Multiply square matrices `(..., k, k)` n times by themselves; a negative n inverts them first.

    Args:
        x: matrices. Integers become float64, where NumPy would wrap around.
        n: a whole number.

    Raises:
        SpecError: if matrices are not square, or for half formats. When it runs, a singular matrix with a negative
            n is a RunError.
    """
    (element,) = matrices("matrix_power", x, square=[0])
    power = whole("matrix_power", "n", n, 1 - MOST_POWER, MOST_POWER - 1)
    return of_one(MATRIX_POWER, element, element.spec.shape[-2:], n=power)
