"""Linear algebra, public as `fc.linalg`: on matrices that a stream was folded to, and on those in its items.

Factorisations are computed on the host by NumPy's LAPACK, in float32 or float64, one call for each stack of matrices.
They are lazy as everything else, and a job that holds them is frozen and thawed as any other. A matrix that LAPACK
refuses is a RunError, which names the element and its line. Norms are composed of element-wise functions and
reductions, and run where these run.
"""

from flowcompute.elements.linalg.array_norms import matrix_norm, norm, vector_norm
from flowcompute.elements.linalg.factorising import EIGH as EIGH
from flowcompute.elements.linalg.factorising import EIGVALSH as EIGVALSH
from flowcompute.elements.linalg.factorising import QR as QR
from flowcompute.elements.linalg.factorising import SLOGDET as SLOGDET
from flowcompute.elements.linalg.factorising import SVD as SVD
from flowcompute.elements.linalg.factorising import SVDVALS as SVDVALS
from flowcompute.elements.linalg.factorising import (
    EighResult,
    QRResult,
    SlogdetResult,
    SVDResult,
    eigh,
    eigvalsh,
    qr,
    slogdet,
    svd,
    svdvals,
)
from flowcompute.elements.linalg.solving import CHOLESKY as CHOLESKY
from flowcompute.elements.linalg.solving import DET as DET
from flowcompute.elements.linalg.solving import INV as INV
from flowcompute.elements.linalg.solving import MATRIX_POWER as MATRIX_POWER
from flowcompute.elements.linalg.solving import MATRIX_RANK as MATRIX_RANK
from flowcompute.elements.linalg.solving import PINV as PINV
from flowcompute.elements.linalg.solving import SOLVE as SOLVE
from flowcompute.elements.linalg.solving import (
    cholesky,
    det,
    inv,
    matrix_power,
    matrix_rank,
    pinv,
    solve,
)
from flowcompute.elements.math import matmul, vecdot

__all__ = [
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "det",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return __all__
