"""Kernels written in Python against the Python that they are: every backend, code shape and batch size, bit for bit."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import flowcompute as fc
from tests.gpu.drawn_functions import Drawn, module
from tests.gpu.shapes import resolve_on_gpu

NUMBERS = 1035
"""Whole vectors, and a tail."""

FUNCTIONS = 6


def arguments() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((2, NUMBERS)) * 3
    x[:6] = [0.0, -0.0, np.inf, -np.inf, 1e300, 0.5]
    n, m = rng.integers(-100, 100, (2, NUMBERS))
    return x, y, n, m


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    where = (got == want) & (np.signbit(got) == np.signbit(want)) if got.dtype.kind == "f" else got == want
    where |= (got != got) & (want != want)
    assert where.all(), (np.flatnonzero(~where)[:5], got[~where][:5], want[~where][:5])


@pytest.mark.parametrize(("seed", "loops"), [*itertools.product((0, 100), (False, True)), (200, True)])
def test_drawn_functions_compute_what_python_computes(tmp_path: Path, seed: int, loops: bool) -> None:
    names = [f"f{i}" for i in range(FUNCTIONS)]
    text = "\n\n".join(Drawn(seed + i, loops=loops).source(name) for i, name in enumerate(names))
    made = module(tmp_path / "drawn.py", text)
    given = arguments()
    want = []
    for name in names:
        rows = [getattr(made, name).python(*row) for row in zip(*(one.tolist() for one in given), strict=True)]
        want += [
            np.array(column, dtype) for column, dtype in zip(zip(*rows, strict=True), ["f8", "i8", "?"], strict=True)
        ]
    sources = [fc.source(one) for one in given]
    outputs = [result for name in names for result in getattr(made, name)(*sources)]
    assert len(fc.plan(*outputs).kernels) == 1
    for device in ("numpy", "cpu"):
        for got, right, output in zip(fc.resolve(*outputs, device=device), want, outputs, strict=True):
            try:
                same_bits(got.astype(right.dtype) if right.dtype.kind == "f" and got.dtype.kind == "i" else got, right)
            except AssertionError as error:
                raise AssertionError(f"{device} {output}\n{text}") from error
    if seed == 0:
        for got, right in zip(resolve_on_gpu(*outputs), want, strict=True):
            same_bits(got, right)
