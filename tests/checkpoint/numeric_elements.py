"""Jobs of values that are filled, of transforms, of linear algebra, and of chosen matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowcompute as fc
from tests.checkpoint.operands import Build, items, numbers, rows, unknown


def definite() -> Any:
    return items(3, 3) * 0 + 2 * np.eye(3, dtype="f4")


NUMERIC: dict[str, Build] = {
    "bits": lambda _: (fc.view(rows("f4"), "i4"), fc.view(rows("f4"), "u4"), fc.view(rows("i4"), "f4")),
    "filled": lambda _: (
        fc.full_like(rows(), -0.0),
        fc.full_like(unknown(), math.nan),
        fc.ones_like(rows("?"), dtype="bfloat16") + fc.full((6,), 3, dtype="f4"),
        fc.zeros((2, 3)),
        fc.eye(3, 4, k=1),
        fc.linspace(0, 1, 5),
    ),
    "experts": lambda _: (
        fc.nn.experts(rows(), np.ones((4, 3, 6), "f4"), fc.source(np.ones((12, 2), "i4"))),
        fc.nn.experts(rows("f2"), np.ones((4, 3, 6), "f2"), numbers("i4")),
    ),
    "transforms": lambda _: (
        *fc.fft.fft(rows()),
        *fc.fft.ifft((items(3, 300), items(3, 300)), axis=2, norm="ortho"),
        *fc.fft.rfft(items(263)),
        fc.fft.irfft(rows(), 7),
        fc.fft.fftshift(rows(), axes=1),
    ),
    "linear algebra": lambda _: (
        fc.linalg.solve(definite(), items(3, 2)),
        fc.linalg.solve(fc.constant(np.eye(3)), np.ones(3)),
        fc.linalg.solve(rows().T @ rows(), rows().T @ numbers("f4")),
        fc.linalg.cholesky(definite(), upper=True),
        fc.linalg.inv(definite()),
        fc.linalg.det(definite()),
        fc.linalg.pinv(items(3, 2)),
        fc.linalg.pinv(np.ones((2, 3)), rtol=1e-3),
        fc.linalg.matrix_rank(items(3, 2)),
        fc.linalg.matrix_power(definite(), -3),
        *fc.linalg.eigh(fc.cov(rows())),
        fc.linalg.eigvalsh(definite()),
        *fc.linalg.svd(items(3, 2)),
        *fc.linalg.svd(np.ones((2, 3)), full_matrices=False),
        fc.linalg.svdvals(items(3, 2)),
        *fc.linalg.qr(items(3, 2), mode="complete"),
        *fc.linalg.slogdet(definite()),
        fc.linalg.matrix_norm(items(3, 2), ord="nuc"),
    ),
}
