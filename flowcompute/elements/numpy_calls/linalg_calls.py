"""Functions of `numpy.linalg` for elements, with NumPy's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowcompute.elements import linalg


def _one(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any) -> Any:
        return function(a)

    return call


def _solve(a: Any, b: Any) -> Any:
    return linalg.solve(a, b)


def _cholesky(a: Any, /, *, upper: Any = False) -> Any:
    return linalg.cholesky(a, upper=upper)


def _svd(a: Any, full_matrices: Any = True) -> Any:
    return linalg.svd(a, full_matrices=full_matrices)


def _qr(a: Any, mode: Any = "reduced") -> Any:
    return linalg.qr(a, mode=mode)


def _pinv(a: Any, *, rtol: Any = None) -> Any:
    return linalg.pinv(a, rtol=rtol)


def _matrix_rank(A: Any, *, rtol: Any = None) -> Any:  # noqa: N803 - NumPy's name
    return linalg.matrix_rank(A, rtol=rtol)


def _matrix_power(a: Any, n: Any) -> Any:
    return linalg.matrix_power(a, n)


LINALG_CALLS: dict[Any, Callable[..., Any]] = {
    np.linalg.solve: _solve,
    np.linalg.inv: _one(linalg.inv),
    np.linalg.det: _one(linalg.det),
    np.linalg.slogdet: _one(linalg.slogdet),
    np.linalg.eigh: _one(linalg.eigh),
    np.linalg.eigvalsh: _one(linalg.eigvalsh),
    np.linalg.svdvals: _one(linalg.svdvals),
    np.linalg.cholesky: _cholesky,
    np.linalg.svd: _svd,
    np.linalg.qr: _qr,
    np.linalg.pinv: _pinv,
    np.linalg.matrix_rank: _matrix_rank,
    np.linalg.matrix_power: _matrix_power,
    np.linalg.norm: linalg.norm,
    np.linalg.vector_norm: linalg.vector_norm,
    np.linalg.matrix_norm: linalg.matrix_norm,
}
"""The functions of `numpy.linalg` that build the graph."""
