"""NumPy's functions on elements build the graph of ours, with NumPy's arguments and values; others are refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from tests.support.slow import compiled_but

ARRAY = np.random.default_rng(11).normal(size=(6, 4, 3)).astype(np.float32)
CALLS: list[Callable[[Any], Any]] = [
    lambda x: np.sum(x),
    lambda x: np.sum(x, 1, np.float64, keepdims=True),
    lambda x: np.sum(x, axis=(0, 2), dtype="f8", out=None),
    lambda x: np.prod(x, 2),
    lambda x: np.mean(x, axis=0),
    lambda x: np.var(x, 1, ddof=1),
    lambda x: np.std(x, axis=(1, 2), correction=1, keepdims=True),
    lambda x: np.min(x, axis=1),
    lambda x: np.max(x, keepdims=True),
    lambda x: np.amax(x, 2),
    lambda x: np.any(x > 2, axis=1),
    lambda x: np.all(x > -2, 0),
    lambda x: np.argmin(x),
    lambda x: np.argmax(x, axis=1, keepdims=True),
    lambda x: np.cumsum(x, axis=1),
    lambda x: np.cumprod(x, 0),
    lambda x: np.count_nonzero(x > 0, axis=1),
    lambda x: np.where(x > 0, x, 0),
    lambda x: np.clip(x, -1, 1),
    lambda x: np.clip(x, a_min=0, a_max=None),
    lambda x: np.clip(x, max=0.5),
    lambda x: np.round(x),
    lambda x: np.round(x, 2),
    lambda x: np.around(x, decimals=-1),
    lambda x: np.astype(x, np.int16),
    lambda x: np.concatenate([x, x * 2]),
    lambda x: np.concatenate((x, x), axis=None),
    lambda x: np.concat([x, x], axis=2),
    lambda x: np.stack([x, -x], axis=1),
    lambda x: np.reshape(x, (6, 12)),
    lambda x: np.transpose(x, (0, 2, 1)),
    lambda x: np.transpose(x, axes=(0, 2, 1)),
    lambda x: np.permute_dims(x, (0, 2, 1)),
    lambda x: np.moveaxis(x, 1, -1),
    lambda x: np.flip(x, 2),
    lambda x: np.expand_dims(x, (1, 2)),
    lambda x: np.squeeze(x[:, :1], 1),
    lambda x: np.broadcast_to(x[:, :1], (6, 4, 3)),
    lambda x: np.take(x, [0, 2], axis=2),
    lambda x: np.repeat(x, 2, axis=1),
    lambda x: np.diff(x, prepend=0),
    lambda x: np.pad(x, ((0, 0), (1, 2), (0, 1))),
    lambda x: np.full_like(x, 2, dtype="i2"),
    lambda x: np.zeros_like(x),
    lambda x: np.real(x),
    lambda x: np.linalg.norm(x, axis=1),
    lambda x: np.linalg.matrix_norm(x, ord=1, keepdims=True),
    lambda x: np.linalg.svdvals(x),
    lambda x: np.linalg.pinv(a=x, rtol=1e-3),
    lambda x: np.linalg.qr(x)[1],
    lambda x: np.linalg.solve(x[:, :3] + 10 * np.eye(3, dtype="f4"), x[:, :3, :1]),
]


@pytest.mark.parametrize(
    ("device", "of"),
    compiled_but(
        [("numpy", fc.source), ("numpy", fc.constant)], itertools.product(("numpy", "cpu"), (fc.source, fc.constant))
    ),
)
def test_functions_build_the_graph(device: str, of: Any) -> None:
    x = of(ARRAY)
    made = [call(x) for call in CALLS]
    for element, value, call in zip(made, fc.resolve(*made, device=device, progress=False), CALLS, strict=True):
        want = call(ARRAY)
        assert element.shape == value.shape == want.shape
        assert value.dtype == want.dtype
        np.testing.assert_allclose(value, want, rtol=2e-6, atol=2e-6)


def test_what_is_known_is_told() -> None:
    x = fc.source(ARRAY)
    assert (np.shape(x), np.ndim(x)) == ((6, 4, 3), 3)


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3, np.int8(2)])
def test_rounding_to_decimals_has_numpys_bits(decimals: Any) -> None:
    rng = np.random.default_rng(2)
    arrays = [
        (rng.normal(size=300) * 10.0 ** rng.integers(-3, 4, 300)).astype("f8"),
        np.array([0.5, 2.5, 1.005, 2.675, np.nan, np.inf, -0.0, -12.5, 1e30], "f4"),
        np.array([15, 25, -15, -25, 149, 2**30, -(2**31)], "i4"),
        np.arange(0, 250, 5, dtype="u1"),
    ]
    for device in ("numpy", "cpu"):
        for array in arrays:
            value = fc.round(fc.source(array), decimals).resolve(device=device, progress=False)
            with np.errstate(all="ignore"):
                want = np.round(array, decimals)
            assert value.dtype == want.dtype
            np.testing.assert_array_equal(value, want)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: np.median(x), r"cannot build numpy\.median of a lazy element(.|\n)*use fc\."),
        (lambda x: np.linalg.lstsq(x, x), r"numpy\.linalg\.lstsq(.|\n)*use fc\.linalg\.solve"),
        (lambda x: np.histogram(x), "fc.histogram"),
        (lambda x: np.kron(x, x), "fc.host runs NumPy on batches"),
        (lambda x: np.sum(x, initial=3), r"cannot build numpy\.sum with these arguments(.|\n)*initial"),
        (lambda x: np.sum(x, where=[True]), "where"),
        (lambda x: np.mean(x, dtype="f8"), "dtype"),
        (lambda x: np.sum(x, out=np.ones(3)), r"out=(.|\n)*fc\.to_array"),
        (lambda x: np.where(x > 0), "missing"),
        (lambda x: np.reshape(x, (6, 12), order="F"), "order"),
    ],
)
def test_others_are_refused_and_say_what_to_use(call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(fc.SpecTypeError, match=text) as caught:
        call(fc.source(ARRAY))
    assert isinstance(caught.value, TypeError)
