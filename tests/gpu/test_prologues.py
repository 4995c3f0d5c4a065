"""Operands of products, convolutions and attention that are computed where they are loaded, in both code shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu

pytestmark = pytest.mark.compiles

Case = Callable[[], tuple[Element, np.ndarray]]


def numbers(*shape: int, dtype: Any = "f4", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    kind = np.dtype(dtype).kind
    return (rng.integers(-9, 9, shape) if kind in "iu" else rng.standard_normal(shape)).astype(dtype)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype("f8")


def layer(rows: int, inner: int, columns: int) -> tuple[Element, np.ndarray]:
    x, w, scale, shift = numbers(rows, inner), numbers(inner, columns), numbers(inner, seed=1), numbers(inner, seed=2)
    made = fc.nn.relu(fc.source(x) * scale + shift)
    return made @ fc.constant(w), wide(relu(x * scale + shift)) @ wide(w)


def dequantised(dtype: Any) -> tuple[Element, np.ndarray]:
    q, x, scale = numbers(40, 21, dtype="i1"), numbers(70, 40).astype(dtype), numbers(21, seed=1)
    weight = fc.constant(q).astype("f4") * scale
    return fc.source(x).astype("f4") @ weight, wide(x) @ wide(q.astype("f4") * scale)


def stacks() -> tuple[Element, np.ndarray]:
    a, b, rows, columns = numbers(9, 13, 21), numbers(9, 21, 18), numbers(13, 1), numbers(21, 1, seed=1)
    left, right = fc.source(a) * rows + numbers(21), fc.nn.relu(fc.source(b) + columns) * numbers(18)
    return left @ right, wide(a * rows + numbers(21)) @ wide(relu(b + columns) * numbers(18))


def both_of_one() -> tuple[Element, np.ndarray]:
    a = numbers(9, 13, 21)
    y = fc.source(a) * numbers(21) + numbers(13, 1)
    made = wide(a * numbers(21) + numbers(13, 1))
    return y @ fc.permute_dims(y, (0, 2, 1)), made @ made.transpose(0, 2, 1)


def backwards() -> tuple[Element, np.ndarray]:
    a, b = numbers(9, 13, 21), numbers(21, 6)
    return fc.flip(fc.source(a) * numbers(21), axis=2) @ fc.constant(b), wide(a * numbers(21))[:, :, ::-1] @ wide(b)


def resident() -> tuple[Element, np.ndarray]:
    a, b = fc.constant(numbers(30, 17)), numbers(17, 20)
    return (a + 0.5) @ (fc.constant(b) * numbers(20)), wide(numbers(30, 17) + np.float32(0.5)) @ wide(b * numbers(20))


def of_bools() -> tuple[Element, np.ndarray]:
    x, w = numbers(33, 19), numbers(19, 5)
    return fc.where(fc.source(x) > 0, x[0], 0) @ fc.constant(w), wide(np.where(x > 0, x[0], 0)) @ wide(w)


def convolved(kernel: int, **options: Any) -> tuple[Element, np.ndarray]:
    """A convolution of what is computed; another kernel stores it first for what it is held against."""
    groups = options.get("groups", 1)
    x, w = numbers(4, 6, 12, 11), numbers(4, 6 // groups, kernel, kernel)
    channels, lines = numbers(6, 1, 1), numbers(12, 1)
    made = relu(x * channels + lines)
    root = fc.nn.conv2d(fc.nn.relu(fc.source(x) * channels + lines), w, **options)
    return root, np.asarray(fc.nn.conv2d(fc.source(made), w, **options).resolve(device="numpy"))


CASES: dict[str, Case] = {
    "a layer": lambda: layer(130, 40, 21),
    "a long row": lambda: layer(21, 530, 130),
    "a row that is no vector": lambda: layer(5, 3, 2),
    "integers in floats": lambda: dequantised("i1"),
    "weights in a quarter of their bytes": lambda: dequantised("f4"),
    "both factors": stacks,
    "both factors of one": both_of_one,
    "backwards": backwards,
    "residents": resident,
    "of comparisons": of_bools,
    "windows": lambda: convolved(3, bias=numbers(4)),
    "windows apart": lambda: convolved(2, stride=3, dilation=2),
    "windows of groups": lambda: convolved(3, groups=2, stride=2),
    "windows of one number": lambda: convolved(1),
}


COMPILED_FOR_GPUS = ("both factors", "windows of groups")
"""Code for GPUs takes PoCL seconds to compile."""


@pytest.mark.parametrize("name", CASES)
def test_what_is_multiplied_is_computed_where_it_is_loaded(name: str) -> None:
    root, wanted = CASES[name]()
    plans = fc.plan(root), plan_for_gpu(root)
    assert [len(plan.kernels) for plan in plans] == [1, 1], plans[0]
    whole = np.asarray(root.resolve())
    np.testing.assert_allclose(whole, wanted, rtol=1e-4, atol=1e-4)
    if name in COMPILED_FOR_GPUS:
        np.testing.assert_array_equal(resolve_on_gpu(root)[0], whole)
    if root.spec.is_stream:
        np.testing.assert_array_equal(root.resolve(strategy=fc.Strategy(batch_bytes=1)), whole)
    np.testing.assert_allclose(root.resolve(device="numpy"), wanted, rtol=1e-4, atol=1e-4)


def test_the_bits_are_those_of_what_is_stored_first() -> None:
    """Each value is rounded to its dtype: what is loaded is what would have been stored."""
    x, w = numbers(70, 40, dtype=ml_dtypes.bfloat16), fc.constant(numbers(40, 21))
    y = (fc.source(x) * 3 + 0.1).astype("f4")
    fused, kept = (y @ w), (y, y @ w)
    assert len(fc.plan(fused).kernels) == 1
    assert len(fc.plan(*kept).kernels) == 2
    np.testing.assert_array_equal(fused.resolve(), fc.resolve(*kept)[1])


def test_attention_to_what_is_computed() -> None:
    x, scale = numbers(3, 2, 70, 16), numbers(16)
    h = fc.source(x)
    root = fc.nn.attention(h * scale, fc.nn.relu(h), h + 1, causal=True)
    stored = [fc.source(one) for one in (x * scale, relu(x), x + np.float32(1))]
    plans = fc.plan(root), plan_for_gpu(root)
    assert [len(plan.kernels) for plan in plans] == [1, 1], plans[0]
    apart = fc.nn.attention(*stored, causal=True)
    np.testing.assert_array_equal(root.resolve(), apart.resolve())


def test_in_every_pass() -> None:
    """A later pass computes operands anew, with what earlier ones found; a resident one is decided on once."""
    x, q = numbers(1500, 8), numbers(8, 4, dtype="i1")
    h = (fc.source(x) - fc.source(x).mean(axis=0)) @ (fc.constant(q).astype("f4") * 0.5)
    root = h - h.max(axis=0)
    product = (x - x.mean(axis=0)) @ (q * np.float32(0.5))
    for device in ("cpu", "numpy"):
        np.testing.assert_allclose(
            root.resolve(device=device, progress=False), product - product.max(axis=0), rtol=1e-4, atol=1e-4
        )


STORED: dict[str, tuple[Callable[[Element], list[Element]], str]] = {
    "others need it": (
        lambda h: [h @ fc.constant(numbers(8, 4)), h.sum(axis=1)],
        "relu is stored: sum needs it too",
    ),
    "rows": (
        lambda h: [fc.nn.softmax(h) @ fc.constant(numbers(8, 4))],
        "softmax is stored: it is made of whole rows, and a matrix product loads tiles",
    ),
    "another product": (
        lambda h: [fc.nn.relu(h @ fc.constant(numbers(8, 8))) @ fc.constant(numbers(8, 8))],
        "relu_2 is stored: it follows another product in its kernel",
    ),
    "too dear": (
        lambda h: [fc.tanh(h) @ fc.constant(numbers(8, 1000))],
        "tanh is stored: a matrix product would compute it 8 times, 42 instructions each",
    ),
    "once for all": (
        lambda h: [h @ fc.exp(fc.constant(numbers(8, 4)))],
        "exp is stored: it is computed once for all batches",
    ),
    "random": (
        lambda h: [fc.random.uniform(300, shape=(8,), seed=3, dtype="f4") @ fc.constant(numbers(8, 4))],
        "uniform(seed=3) is stored: it depends on random numbers, which are generated only once",
    ),
    "half formats": (
        lambda h: [h.astype("f2") @ fc.constant(numbers(8, 4).astype("f2"))],
        "astype is stored: tensor cores load half formats as they are stored",
    ),
    "attention of half formats": (
        lambda h: [fc.nn.attention(*[(h.astype("f2"))[:, None]] * 3)],
        "astype is stored: tensor cores load half formats as they are stored",
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_why_an_operand_is_stored(name: str) -> None:
    make, why = STORED[name]
    roots = make(fc.nn.relu(fc.source(numbers(300, 8))))
    said = [reason.text for reason in fc.plan(*roots, device="cpu").reasons if reason.kind == "cut"]
    assert why in said
    assert said == [reason.text for reason in fc.plan(*roots, device="numpy").reasons if reason.kind == "cut"]


def test_products_that_share_an_operand_all_compute_it() -> None:
    h = fc.nn.relu(fc.source(numbers(300, 8)))
    roots = [h @ fc.constant(numbers(8, 4)), h @ fc.constant(numbers(8, 5))]
    assert len(fc.plan(*roots).kernels) == 2
    for root, result in zip(roots, fc.resolve(*roots), strict=True):
        np.testing.assert_array_equal(root.resolve(device="cpu"), result)
