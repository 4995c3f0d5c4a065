"""Factorisations with several results. One call of LAPACK computes all of them; the results are parts of its own.

The parts of a factorisation lie one behind the other in one array, on its last axis. So a factorisation is one node of
the graph, which is computed once however many of its results are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from flowcompute.elements.arguments import flag, one_of
from flowcompute.elements.axes import reshape
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Compute, Operand
from flowcompute.elements.element import Element
from flowcompute.elements.linalg.host_records import lapack_op, matrices, of_one
from flowcompute.elements.op import KeptOp

Shapes = Sequence[tuple[int, ...]]
"""Shapes of the parts, without the axes of the stack."""


class EighResult(NamedTuple):
    """Eigenvalues ascending `(..., n)`, and eigenvectors in the columns of `(..., n, n)`."""

    eigenvalues: Element
    eigenvectors: Element


class QRResult(NamedTuple):
    """Orthonormal columns `Q`, and the upper triangular `R`."""

    Q: Element
    R: Element


class SlogdetResult(NamedTuple):
    """The sign (-1, 0 or 1) of determinants, and the logarithm of their absolute value."""

    sign: Element
    logabsdet: Element


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values descending, and right singular vectors in rows."""

    U: Element
    S: Element
    Vh: Element


def _packed(parts: Sequence[np.ndarray], shapes: Shapes) -> np.ndarray:
    """Return the parts of a factorisation one behind the other on the last axis."""
    stack = parts[0].shape[: parts[0].ndim - len(shapes[0])]
    sizes = [math.prod(shape) for shape in shapes]
    return np.concatenate(
        [part.reshape(*stack, size) for part, size in zip(parts, sizes, strict=True)], axis=len(stack)
    )


def _parts(made: Compute, shapes: Shapes) -> list[Any]:
    """Return the parts as elements of their own."""
    ends = accumulate((math.prod(shape) for shape in shapes), initial=0)
    stack = made.spec.shape[:-1]
    front = ((-1 if made.spec.length is None else made.spec.length), *stack) if made.spec.is_stream else stack
    return [
        reshape(made[..., start:stop], (*front, *shape))
        for (start, stop), shape in zip(pairwise(ends), shapes, strict=True)
    ]


def _made(op: Any, x: Any, shapes: Shapes, **attrs: Any) -> Compute:
    return of_one(op, x, (sum(math.prod(shape) for shape in shapes),), **attrs)


# -- eigenvalues -------------------------------------------------------------------------------------


def _eigh_shapes(shape: tuple[int, ...]) -> Shapes:
    return [(shape[-1],), (shape[-1], shape[-1])]


def _eigh(x: np.ndarray) -> np.ndarray:
    return _packed(np.linalg.eigh(x), _eigh_shapes(x.shape))


def _rebuild_eigh(kept: KeptOp) -> Compute:
    return _eigh_made(kept.one())


EIGH = lapack_op("eigh", _eigh, _rebuild_eigh, "Eigenvalues and eigenvectors of symmetric matrices.")


def _eigh_made(x: Operand) -> Compute:
    (element,) = matrices("eigh", x, square=[0])
    return _made(EIGH, element, _eigh_shapes(element.spec.shape))


@public
def eigh(x: Operand) -> EighResult:
    """Return eigenvalues and eigenvectors of symmetric matrices `(..., n, n)` (LAPACK's syevd).

    The lower triangle is read. An eigenvector's sign is that of LAPACK.

    Returns:
        `(eigenvalues, eigenvectors)`: ascending `(..., n)`, and in columns `(..., n, n)`. Both come of one call.

    Raises:
        SpecError: if matrices are not square, or for half formats. When it runs, a failure to converge is a RunError.
    """
    made = _eigh_made(x)
    return EighResult(*_parts(made, _eigh_shapes(made.inputs[0].spec.shape)))


def _rebuild_eigvalsh(kept: KeptOp) -> Compute:
    return eigvalsh(kept.one())


EIGVALSH = lapack_op("eigvalsh", np.linalg.eigvalsh, _rebuild_eigvalsh, "Eigenvalues of symmetric matrices.")


@public
def eigvalsh(x: Operand) -> Compute:
    """Return the eigenvalues of symmetric matrices `(..., n, n)`, ascending `(..., n)`; errors as of `eigh`."""
    (element,) = matrices("eigvalsh", x, square=[0])
    return of_one(EIGVALSH, element, element.spec.shape[-1:])


# -- singular values ---------------------------------------------------------------------------------


def _svd_shapes(shape: tuple[int, ...], full_matrices: bool) -> Shapes:
    rows, columns = shape[-2:]
    least = min(rows, columns)
    return [(rows, rows if full_matrices else least), (least,), (columns if full_matrices else least, columns)]


def _svd(x: np.ndarray, full_matrices: bool) -> np.ndarray:
    return _packed(np.linalg.svd(x, full_matrices=full_matrices), _svd_shapes(x.shape, full_matrices))


def _rebuild_svd(kept: KeptOp) -> Compute:
    return _svd_made(kept.one(), kept.attrs.flag("full_matrices"))


SVD = lapack_op("svd", _svd, _rebuild_svd, "The singular value decomposition.")


def _svd_made(x: Operand, full_matrices: bool) -> Compute:
    (element,) = matrices("svd", x)
    return _made(SVD, element, _svd_shapes(element.spec.shape, full_matrices), full_matrices=full_matrices)


@public
def svd(x: Operand, *, full_matrices: bool = True) -> SVDResult:
    """Decompose matrices `(..., m, n)` as `(U * S) @ Vh` (LAPACK's gesdd). Columns of U and rows of Vh are orthonormal.

    Args:
        x: matrices.
        full_matrices: whether U is `(..., m, m)` and Vh `(..., n, n)`; otherwise they have the `min(m, n)` columns and
            rows that belong to singular values.

    Returns:
        `(U, S, Vh)`, with singular values `S` descending `(..., min(m, n))`. All come of one call. Signs are LAPACK's.

    Raises:
        SpecError: if `x` is no matrix, or for half formats. When it runs, a failure to converge is a RunError.
    """
    full = flag("svd", "full_matrices", full_matrices)
    made = _svd_made(x, full)
    return SVDResult(*_parts(made, _svd_shapes(made.inputs[0].spec.shape, full)))


def _svdvals(x: np.ndarray) -> np.ndarray:
    return np.linalg.svd(x, compute_uv=False)


def _rebuild_svdvals(kept: KeptOp) -> Compute:
    return svdvals(kept.one())


SVDVALS = lapack_op("svdvals", _svdvals, _rebuild_svdvals, "Singular values.")


@public
def svdvals(x: Operand) -> Compute:
    """Return the singular values of matrices `(..., m, n)`, descending `(..., min(m, n))`; errors as of `svd`."""
    (element,) = matrices("svdvals", x)
    return of_one(SVDVALS, element, (min(element.spec.shape[-2:]),))


# -- QR ----------------------------------------------------------------------------------------------

QR_MODES = ("reduced", "complete")


def _qr_shapes(shape: tuple[int, ...], mode: str) -> Shapes:
    rows, columns = shape[-2:]
    inner = rows if mode == "complete" else min(rows, columns)
    return [(rows, inner), (inner, columns)]


def _qr(x: np.ndarray, mode: str) -> np.ndarray:
    return _packed(np.linalg.qr(x, mode=mode), _qr_shapes(x.shape, mode))  # type: ignore[call-overload]


def _rebuild_qr(kept: KeptOp) -> Compute:
    return _qr_made(kept.one(), kept.attrs.choice("mode", QR_MODES))


QR = lapack_op("qr", _qr, _rebuild_qr, "The QR factorisation.")


def _qr_made(x: Operand, mode: str) -> Compute:
    (element,) = matrices("qr", x)
    return _made(QR, element, _qr_shapes(element.spec.shape, mode), mode=mode)


@public
def qr(x: Operand, *, mode: str = "reduced") -> QRResult:
    """Factor matrices `(..., m, n)` as `Q @ R` by Householder reflections (LAPACK's geqrf).

    Args:
        x: matrices.
        mode: "reduced" for Q of `(..., m, min(m, n))`, "complete" for Q of `(..., m, m)`.

    Returns:
        `(Q, R)`: orthonormal columns, and an upper triangular matrix. Both come of one call.

    Raises:
        SpecError: if `x` is no matrix, for another mode, or for half formats.
    """
    wanted = one_of("qr", "mode", mode, QR_MODES)
    made = _qr_made(x, wanted)
    return QRResult(*_parts(made, _qr_shapes(made.inputs[0].spec.shape, wanted)))


# -- determinants ------------------------------------------------------------------------------------


def _slogdet(x: np.ndarray) -> np.ndarray:
    return np.stack(np.linalg.slogdet(x), axis=-1)


def _rebuild_slogdet(kept: KeptOp) -> Compute:
    return _slogdet_made(kept.one())


SLOGDET = lapack_op("slogdet", _slogdet, _rebuild_slogdet, "Sign and logarithm of determinants.")


def _slogdet_made(x: Operand) -> Compute:
    (element,) = matrices("slogdet", x, square=[0])
    return of_one(SLOGDET, element, (2,))


@public
def slogdet(x: Operand) -> SlogdetResult:
    """Return the sign of determinants of square matrices `(..., n, n)`, and the logarithm of their absolute value.

    Returns:
        `(sign, logabsdet)`, each of shape `(...)`; `(0, -inf)` for a singular matrix. Both come of one call.

    Raises:
        SpecError: if matrices are not square, or for half formats.
    """
    made = _slogdet_made(x)
    return SlogdetResult(made[..., 0], made[..., 1])
