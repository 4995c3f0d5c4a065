"""Products of matrices and what follows them in the same kernel, in both code shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.errors import SpecError
from flowcompute.lower.matmul.matmul_anchor import PANEL
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu
from tests.support.slow import compiled_but, slow_but


def numbers(shape: tuple[int, ...], dtype: Any = "f4", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    kind = np.dtype(dtype).kind
    return (rng.integers(-9, 9, shape) if kind in "iu" else rng.standard_normal(shape)).astype(dtype)


def weight_tiles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product in the order that belongs to it, every step rounded once: exact in float64 for float32 operands."""
    inner = a.shape[-1]
    total = np.zeros((*a.shape[:-1], b.shape[-1]), a.dtype)
    for start in range(0, inner, PANEL):
        part = np.zeros_like(total)
        for k in range(start, min(start + PANEL, inner)):
            wide = a[..., k, None].astype("f8") * b[..., k, :].astype("f8") + part.astype("f8")
            part = wide.astype(a.dtype)
        total = total + part
    return total


def same(left: np.ndarray, right: np.ndarray) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype and np.array_equal(left, right, equal_nan=True)


def both(root: Element) -> np.ndarray:
    """Resolved by both code shapes and by batches of one record, with the same bits."""
    whole = np.asarray(fc.resolve(root, device="cpu"))
    assert same(whole, resolve_on_gpu(root)[0])
    if root.spec.is_stream:
        assert same(whole, fc.resolve(root, device="cpu", strategy=fc.Strategy(batch_bytes=1)))
    return whole


@pytest.mark.slow
@settings(max_examples=8)
@given(
    st.sampled_from([1, 3, 4, 5, 17, 64, 131]),
    st.sampled_from([1, 2, 15, 16, 17, 40, 512, 513]),
    st.sampled_from([1, 4, 7, 15, 16, 17, 33, 70, 130]),
)
def test_the_order_of_a_sum_belongs_to_the_product(rows: int, inner: int, columns: int) -> None:
    a, b = numbers((rows, inner)), numbers((inner, columns), seed=1)
    # Doubles round the product and the sum of floats once more than fma does, in few of the last places.
    np.testing.assert_allclose(both(fc.source(a) @ fc.constant(b)), weight_tiles(a, b), rtol=0, atol=2e-6 * inner**0.5)


@pytest.mark.parametrize("dtype", compiled_but(["f8", "f4", "i4", "i1"], ["f8", "f4", "i8", "i4", "u2", "i1"]))
def test_every_dtype(dtype: str) -> None:
    a, b = numbers((37, 530), dtype), numbers((530, 21), dtype, seed=1)
    product = both(fc.source(a) @ fc.constant(b))
    if np.dtype(dtype).kind == "f":
        np.testing.assert_allclose(product, a.astype("f8") @ b.astype("f8"), rtol=0, atol=40 * np.finfo(dtype).eps * 25)
    else:
        assert same(product, a @ b)


@pytest.mark.parametrize("dtype", slow_but(["f2"], ["f2", ml_dtypes.bfloat16]))
def test_half_formats_are_multiplied_in_float32(dtype: Any) -> None:
    a, b = numbers((37, 40), dtype), numbers((40, 21), dtype, seed=1)
    product = both(fc.source(a) @ fc.constant(b))
    assert product.dtype == (a @ b).dtype
    wanted = a.astype("f4") @ b.astype("f4")
    np.testing.assert_allclose(product.astype("f4"), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.compiles
def test_products_in_a_dtype_that_is_asked_for() -> None:
    """As NumPy's `dtype=`: narrow integers are read as they are, and add up exactly where they would wrap."""
    a, b = (np.random.default_rng(seed).integers(-128, 128, (70, 70)).astype("i1") for seed in (1, 2))
    x, wide = fc.source(a), a.astype("i8")
    product = fc.matmul(x, b[:, :21], dtype="int32")
    assert len(fc.plan(product).kernels) == 1
    assert same(both(product), np.matmul(a, b[:, :21], dtype=np.int32))
    roots = {
        "a vector": (fc.matmul(x, b[0], dtype="int32"), (wide @ b[0].astype("i8")).astype("i4")),
        "signed and not": (fc.matmul(fc.source(a.view("u1")), b, dtype="int64"), a.view("u1").astype("i8") @ b),
        "over the stream": (fc.matmul(x.T, x, dtype="int64"), wide.T @ wide),
    }
    for name, (root, wanted) in roots.items():
        for device in ("cpu", "numpy"):
            assert same(np.asarray(root.resolve(device=device)), wanted), name
    half = numbers((40, 30), "f2")
    kept = fc.matmul(fc.source(half), half[:30, :9], dtype="float32")
    assert same(np.asarray(kept.astype("f2").resolve()), np.asarray((fc.source(half) @ half[:30, :9]).resolve()))
    assert kept.dtype == np.float32


@pytest.mark.parametrize(("dtype", "operand"), [("int32", "f4"), ("bool", "i1"), ("float32", "?"), ("no such", "i1")])
def test_a_dtype_that_products_cannot_have(dtype: str, operand: str) -> None:
    with pytest.raises(SpecError, match=r"cannot multiply these in that dtype|not understood"):
        fc.matmul(fc.source(np.ones((3, 4), operand)), np.ones((4, 2), operand), dtype=dtype)


def layouts() -> dict[str, Callable[[], tuple[Element, np.ndarray]]]:
    a, b = numbers((9, 13, 21)), numbers((9, 21, 18), seed=1)
    x, y = fc.source(a), fc.source(b)
    turned = fc.permute_dims(fc.source(b.transpose(0, 2, 1).copy()), (0, 2, 1))
    flat = fc.source(a[:, 0])
    stacks = numbers((4, 2, 3, 5, 6)), numbers((4, 1, 3, 6, 7), seed=1)
    windows = np.moveaxis(sliding_window_view(a[:, 0], 4, axis=0), -1, 1)
    return {
        "streams of matrices": lambda: (x @ y, a @ b),
        "turned on the right": lambda: (x @ turned, a @ b),
        "turned on the left": lambda: (fc.permute_dims(x, (0, 2, 1)) @ x, a.transpose(0, 2, 1) @ a),
        "a resident on the left": lambda: (fc.constant(a[0]) @ y, a[0] @ b),
        "a resident on the right": lambda: (x @ fc.constant(b[0]), a @ b[0]),
        "a part of each": lambda: (x[:, 2:9, ::2] @ y[:, ::2, 5:], a[:, 2:9, ::2] @ b[:, ::2, 5:]),
        "backwards": lambda: (fc.flip(x, axis=2) @ fc.constant(b[0]), a[:, :, ::-1] @ b[0]),
        "stacks that are broadcast": lambda: (fc.source(stacks[0]) @ fc.source(stacks[1]), stacks[0] @ stacks[1]),
        "matrices of one row": lambda: (x[:, 3:4] @ fc.constant(b[0]), a[:, 3:4] @ b[0]),
        "stacks beside one matrix": lambda: (fc.source(stacks[0]) @ fc.constant(b[0, :6]), stacks[0] @ b[0, :6]),
        "parts of stacks beside one matrix": lambda: (
            fc.source(stacks[0])[:, 0, :, 1:] @ fc.constant(b[0, :6]),
            stacks[0][:, 0, :, 1:] @ b[0, :6],
        ),
        "residents": lambda: (fc.constant(a[0]) @ fc.constant(b[0]), a[0] @ b[0]),
        "a resident row": lambda: (fc.constant(a[0, 0]) @ fc.constant(b[0]), a[0, 0] @ b[0]),
        "rows that are views": lambda: (flat[:, ::-1] @ fc.constant(b[0]), a[:, 0, ::-1] @ b[0]),
        "windows": lambda: (fc.window(flat, size=4) @ fc.constant(b[0]), windows @ b[0]),
        "windows as rows": lambda: (
            fc.window(flat[:, 0], size=4) @ fc.constant(b[0, :4]),
            sliding_window_view(a[:, 0, 0], 4) @ b[0, :4],
        ),
    }


@pytest.mark.parametrize(
    "name", compiled_but(["streams of matrices", "turned on the left", "a part of each", "windows"], layouts())
)
def test_operands_are_read_where_they_lie(name: str) -> None:
    root, wanted = layouts()[name]()
    np.testing.assert_allclose(both(root), wanted, rtol=1e-5, atol=2e-5)
    assert len(fc.plan(root).kernels) == 1


def test_what_follows_a_product_is_part_of_its_kernel() -> None:
    a, w, b = numbers((70, 40)), numbers((40, 21), seed=1), numbers((21,), seed=2)
    x = fc.source(a)
    z = x @ fc.constant(w)
    beside = fc.source(numbers((70, 21), seed=3))
    roots = [z, fc.maximum(z + b, 0), z * beside, (z > 0).astype("i4"), fc.where(z > 0, z, beside).astype("f2"), -z * z]
    for plan in (fc.plan(*roots), plan_for_gpu(*roots)):
        assert len(plan.kernels) == 1, plan
    product, other = np.asarray(z.resolve()), numbers((70, 21), seed=3)
    wanted = [
        product,
        np.maximum(product + b, 0),
        product * other,
        (product > 0).astype("i4"),
        np.where(product > 0, product, other).astype("f2"),
        -product * product,
    ]
    for results in (
        fc.resolve(*roots),
        resolve_on_gpu(*roots),
        fc.resolve(*roots, strategy=fc.Strategy(batch_bytes=1)),
    ):
        for result, one in zip(results, wanted, strict=True):
            assert same(np.asarray(result), one)


def test_rows_and_columns_of_matrices_are_spread_over_their_product() -> None:
    a, b = numbers((9, 13, 21)), numbers((21, 18), seed=1)
    row, column, mask = numbers((18,), seed=2), numbers((13, 1), seed=3), numbers((9, 13, 1), seed=4)
    z = fc.source(a) @ fc.constant(b)
    root = (z + row) * column + fc.source(mask)
    assert len(fc.plan(root).kernels) == 1
    product = np.asarray(z.resolve())
    assert same(both(root), (product + row) * column + mask)


@pytest.mark.slow
def test_numbers_that_are_generated_follow_a_product() -> None:
    a, w = numbers((70, 40)), numbers((40, 21), seed=1)
    noise = fc.random.uniform(70, shape=(21,), seed=3, dtype="f4")
    z = fc.source(a) @ fc.constant(w)
    assert len(fc.plan(z + noise).kernels) == 1
    assert same(both(z + noise), np.asarray(z.resolve()) + np.asarray(noise.resolve()))


def test_nothing_to_multiply() -> None:
    x = fc.source(numbers((5, 0)))
    assert both(x @ fc.constant(numbers((0, 3))) + 1).tolist() == [[1.0] * 3] * 5
    assert both(fc.source(numbers((5, 4))) @ fc.constant(numbers((4, 0)))).shape == (5, 0)
    assert both(fc.source(numbers((0, 4))) @ fc.constant(numbers((4, 3)))).shape == (0, 3)


@pytest.mark.slow
def test_zeros_keep_their_sign_and_nan_and_infinity_spread() -> None:
    a = np.zeros((3, 2), "f4")
    a[1] = [np.inf, 1]
    a[2] = [np.nan, 1]
    w = np.array([[-1, 1], [-1, 1]], "f4")
    result = both(fc.source(a) @ fc.constant(w))
    assert np.signbit(result[0]).tolist() == [True, False]
    assert result[1].tolist() == [-np.inf, np.inf]
    assert np.isnan(result[2]).all()
    # A sum longer than a panel, and one that a GPU's tile does not divide.
    for inner in (PANEL + 1, 17):
        long = np.zeros((2, inner), "f4")
        wide = np.full((inner, 3), -1, "f4")
        assert np.signbit(both(fc.source(long) @ fc.constant(wide))).all()


def test_a_view_that_comes_from_another_clock_was_copied_out() -> None:
    a, b = numbers((6, 5, 4)), numbers((3, 5, 7), seed=1)
    left, right = fc.permute_dims(fc.source(a), (0, 2, 1)), fc.concat([fc.source(b), fc.source(b)])
    beside = fc.permute_dims(fc.source(numbers((6, 7, 4), seed=2)), (0, 2, 1))
    wanted = a.transpose(0, 2, 1) @ np.concatenate([b, b]) + numbers((6, 7, 4), seed=2).transpose(0, 2, 1)
    np.testing.assert_allclose((left @ right + beside).resolve(), wanted, rtol=1e-5, atol=2e-5)
