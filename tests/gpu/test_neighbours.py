"""Kernels that read neighbours, against NumPy on padded arrays and against their own Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from tests.gpu.shapes import resolve_on_gpu


def spread(u, weight, *, i, j):
    here = u[i, j]
    near = u[i - 1, j] + u[i + 1, j] + u[i, j - 2]
    return weight * (near - here) + i * 10 + j, here > near


def expected(u: np.ndarray, weight: float, boundary: Any) -> tuple[np.ndarray, np.ndarray]:
    widths = ((0, 0), (1, 1), (2, 2))
    fill = {"mode": boundary} if isinstance(boundary, str) else {"constant_values": boundary}
    p = np.pad(u, widths, **fill)
    near = p[:, :-2, 2:-2] + p[:, 2:, 2:-2] + p[:, 1:-1, :-4]
    places = np.arange(u.shape[1])[:, None] * 10, np.arange(u.shape[2])
    one = u.dtype.type(weight) * (near - u)
    return one + places[0].astype(u.dtype) + places[1].astype(u.dtype), u > near


@pytest.mark.parametrize("boundary", ["edge", "reflect", "wrap", 0, -1.5])
def test_stencils_of_items(boundary: Any) -> None:
    u = np.random.default_rng(1).standard_normal((9, 5, 19)).astype(np.float32)
    made = fc.kernel(boundary=boundary)(spread)(fc.source(u), 0.5)
    want = expected(u, 0.5, boundary)
    assert len(fc.plan(*made).kernels) == 1
    several = [fc.resolve(*made), fc.resolve(*made, device="numpy"), resolve_on_gpu(*made)]
    several.append(fc.resolve(*made, strategy=fc.Strategy(batch_bytes=800)))
    for got in several:
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_array_equal(got[1], want[1])
        assert got[0].dtype == np.float32


def wide(u, v, *, i):
    return u[i - 2] * 2 + u[i + 3] - v[i + 1]


@pytest.mark.parametrize(
    ("columns", "dtype", "boundary"), [(4, "f4", "reflect"), (24, "f8", 5), (53, "f2", "wrap"), (37, "i4", 5)]
)
def test_what_surrounds_a_stencil_and_both_ends_of_rows(columns: int, dtype: str, boundary: Any) -> None:
    rng = np.random.default_rng(columns)
    u, v = rng.integers(-9, 9, (2, 7, columns)).astype(dtype)
    x, y = fc.source(u), fc.source(v)
    made = fc.kernel(boundary=boundary)(wide)(x, y) * 2 + y
    fill = {"mode": boundary} if isinstance(boundary, str) else {"constant_values": boundary}
    p, q = (np.pad(one, ((0, 0), (3, 3)), **fill) for one in (u, v))
    want = (p[:, 1 : columns + 1] * 2 + p[:, 6:] - q[:, 4 : columns + 4]) * 2 + v
    assert len(fc.plan(made).kernels) == 1
    for got in (fc.resolve(made), fc.resolve(made, device="numpy"), *resolve_on_gpu(made, fc.constant(0))[:1]):
        np.testing.assert_array_equal(got, want)


@pytest.mark.slow
def test_where_a_border_is_more_than_index_arithmetic() -> None:
    u = np.random.default_rng(3).integers(-9, 9, (6, 20)).astype(np.float32)
    x, weight = fc.source(u), np.eye(20, dtype=np.float32)
    near = fc.kernel(boundary="edge")(beside)
    p = np.pad(u * 2, ((0, 0), (1, 1)), mode="edge")
    want = p[:, :-2] + p[:, 2:]
    padded = fc.pad(x * 2, ((0, 0), (1, 1)), "edge")
    both = padded[:, :-2] + padded[:, 2:]
    several = {
        "its operand is computed": (near(x * 2), want, 2),
        "a reduction follows": (near(x * 2).sum(axis=1), want.sum(1), 3),
        "a product computes what it loads": (near(x * 2) @ weight, want, None),
        "written by hand": (both, want, 2),
        "the border is asked for as well": ((both, padded), (want, p), None),
        "another one sees other numbers": (
            (both, padded[:, 1:-1] + 1, padded[:, ::2]),
            (want, u * 2 + 1, p[:, ::2]),
            None,
        ),
    }
    for name, (made, wanted, kernels) in several.items():
        roots = made if isinstance(made, tuple) else (made,)
        values = wanted if isinstance(made, tuple) else (wanted,)
        assert kernels is None or len(fc.plan(*roots).kernels) == kernels, name
        for device in ("cpu", "numpy"):
            for got, value in zip(fc.resolve(*roots, fc.constant(0), device=device)[:-1], values, strict=True):
                np.testing.assert_array_equal(got, value, err_msg=name)


@pytest.mark.parametrize("boundary", ["edge", "reflect", 0, 7.5])
def test_neighbours_along_a_stream_of_numbers(boundary: Any) -> None:
    @fc.kernel(boundary=boundary)
    def change(x, *, t):
        return x[t + 1] - x[t - 1] + t

    x = np.random.default_rng(2).standard_normal(1027)
    fill = {"mode": boundary} if isinstance(boundary, str) else {"constant_values": boundary}
    p = np.pad(x, 1, **fill)
    want = p[2:] - p[:-2] + np.arange(1027)
    for options in ({}, {"device": "numpy"}, {"strategy": fc.Strategy(batch_bytes=512)}):
        np.testing.assert_array_equal(change(fc.source(x)).resolve(**options), want)
    inner = [change.python(x, t=t) for t in range(1, 1026)]
    np.testing.assert_array_equal(want[1:-1], inner)


def test_resident_values_and_several_operands() -> None:
    @fc.kernel(boundary="wrap")
    def blend(a, b, *, i):
        return a[i] * b[i - 1]

    a, b = np.arange(4.0), np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(blend(a, b).resolve(), a * np.roll(b, 1))
    stream = fc.source(np.ones((3, 4)))
    np.testing.assert_array_equal(blend(stream, b).resolve(), np.tile(np.roll(b, 1), (3, 1)))


def test_only_the_place_is_read_without_a_boundary() -> None:
    @fc.kernel
    def ramp(x, *, i):
        return x[i] * i if i % 2 == 0 else -x[i]

    x = np.ones((2, 5), np.float32)
    assert ramp(fc.source(x)).resolve().tolist() == [[0, -1, 2, -1, 4]] * 2


def test_what_does_not_fit_is_refused() -> None:
    x = fc.source(np.ones((3, 4), np.float32))

    def near(u, *, i):
        return u[i - 1]

    with pytest.raises(fc.SpecError, match="cannot read neighbours without a boundary"):
        fc.kernel(near)(x)
    with pytest.raises(fc.SpecError, match="an index for each item axis"):
        fc.kernel(boundary=0)(near)(fc.source(np.ones((3, 4, 5))))
    with pytest.raises(fc.SpecError, match="cannot wrap around a stream"):
        fc.kernel(boundary="wrap")(near)(fc.source(np.ones(3)))
    with pytest.raises(fc.SpecError, match="cannot take boundary="):
        fc.kernel(boundary="mirror")(near)  # type: ignore[arg-type]
    with pytest.raises(fc.SpecError, match="cannot index operands of different axes"):
        fc.kernel(boundary=0)(pair)(x, fc.source(np.ones((3, 5), np.float32)))

    def plain(u):
        return u

    with pytest.raises(fc.KernelError, match="cannot take a boundary without an index"):
        fc.kernel(boundary=0)(plain)

    def far(u, n, *, i):
        return u[i - n]

    with pytest.raises(fc.KernelError, match="no known distance"):
        fc.kernel(far)

    def mixed(u, *, i):
        return u[i] + u

    with pytest.raises(fc.KernelError, match="both with an index and without"):
        fc.kernel(mixed)

    def short(u, *, i, j):
        return u[i]

    with pytest.raises(fc.KernelError, match="an index for each axis"):
        fc.kernel(short)

    def moved(u, *, i):
        i = i + 1
        return u[i]

    with pytest.raises(fc.KernelError, match="cannot assign to i"):
        fc.kernel(moved)
    stencil = fc.kernel(boundary=0)(near)

    @fc.kernel
    def calling(u):
        return stencil(u)

    with pytest.raises(fc.KernelError, match="cannot be called by another kernel"):
        calling(x)


def beside(u, *, i):
    return u[i - 1] + u[i + 1]


def pair(a, b, *, i):
    return a[i] + b[i]
