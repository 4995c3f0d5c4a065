"""Products with numbers that CPUs decode from blocks: their order of summation, which nothing but the graph decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.quantized import BLOCK_FORMATS
from flowcompute.lower.matmul.staged_matmul import FEW_GROUPS, LINES
from tests.gpu.shapes import gpu_shaped, plan_for_gpu, resolve_on_gpu
from tests.quantized.blocks import any_bytes, assert_bits, kernels, meant, sizes, tame
from tests.support.slow import slow_but

FORM = "dequantized matmul"
LANES, RUN = 16, 512


def weights(name: str, columns: int, inner: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Blocks of `columns` rows of `inner` numbers, and the numbers. Those of floats have 12 bits."""
    if sizes(name)[0] == 1:
        drawn = np.random.default_rng(seed).standard_normal((columns, inner)).astype("f2").astype("f4")
        raw = (drawn if name == "F32" else drawn.astype("f2")).view(np.uint8).reshape(columns, -1)
    else:
        raw = tame(name, columns, inner // sizes(name)[0], seed)
    return fc.dequantize(fc.constant(raw), name), meant(raw, name)


def few_bits(*shape: int, seed: int = 1) -> np.ndarray:
    """Numbers of four bits, whose products with decoded numbers are exact: only sums are rounded."""
    return np.random.default_rng(seed).integers(-15, 16, shape).astype(np.float32)


def in_order(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The product with the transposed matrix, added as the documentation says."""
    products = x[:, None, :] * w
    inner = x.shape[1] // LANES * LANES
    lanes = np.full((*products.shape[:2], LANES), -0.0, np.float32)
    for first in range(0, inner, RUN * LANES):
        own = np.full_like(lanes, -0.0)
        for k in range(first, min(inner, first + RUN * LANES), LANES):
            own += products[..., k : k + LANES]
        lanes += own
    lanes[..., : x.shape[1] - inner] += products[..., inner:]
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return np.asarray(lanes[..., 0]) if x.shape[1] else np.zeros(lanes.shape[:2], np.float32)


def steps(inner: int) -> int:
    """Roundings of a product, as docs/precision.md counts them."""
    return min(inner, 512) + -(-inner // 512)


# Several strips of columns and a part of one; vectors, tails and panels of k; one row, pairs of rows and a last one.
SHAPES = [
    ("Q8_0", 7, 576, 37),
    ("F16", 5, 45, 3),
    ("F32", 1, 16, 16),
    ("F32", 2, 3, 20),
    ("Q8_0", 3, 2 * RUN * LANES + 96, 5),
    ("F16", 4, 33000, 2),
]


@pytest.mark.parametrize(("name", "rows", "inner", "columns"), SHAPES)
def test_lanes_are_summed_along_k(name: str, rows: int, inner: int, columns: int) -> None:
    w, numbers = weights(name, columns, inner)
    x = few_bits(rows, inner)
    product = fc.source(x) @ w.T
    assert [kernel.ir.form for kernel in fc.plan(product, device="cpu").kernels] == [FORM]
    assert_bits(product.resolve(device="cpu"), in_order(x, numbers))


@pytest.mark.parametrize("name", ["IQ1_S", "Q4_K"])
def test_any_format_is_added_like_floats(name: str) -> None:
    """Of IQ1_S a product lost half of each vector that a library function of PoCL returned."""
    w, numbers = weights(name, 19, 512)
    x = np.random.default_rng(6).standard_normal((3, 512), dtype=np.float32)
    floats = fc.dequantize(fc.constant(numbers.view(np.uint8)), "F32")
    assert_bits((fc.source(x) @ w.T).resolve(device="cpu"), (fc.source(x) @ floats.T).resolve(device="cpu"))


@pytest.mark.parametrize("columns", [3, 16, 27])
def test_wider_numbers_are_computed_before_and_after(columns: int) -> None:
    """Functions of PoCL misread vectors of more bytes than the device takes, or crashed."""
    w, numbers = weights("Q4_0", columns, 96)
    x = few_bits(5, 96)
    sums = in_order(x, numbers)
    product = fc.source(x / 2.0).astype("float64") * 2
    product = product.astype("float32") @ w.T
    assert_bits(product.astype("float64").resolve(device="cpu"), sums.astype(np.float64))
    assert_bits(fc.round(product).astype("int64").resolve(device="cpu"), np.round(sums).astype(np.int64))


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("inner", [96, 2304])
def test_the_error_is_within_the_documented_bound(device: str, inner: int) -> None:
    w, numbers = weights("Q5_0", 21, inner)
    x = np.random.default_rng(2).standard_normal((9, inner), dtype=np.float32)
    got = (fc.source(x) @ w.T).resolve(device=device)
    size = np.abs(x).astype(np.float64) @ np.abs(numbers.T).astype(np.float64)
    error = np.abs(got - x.astype(np.float64) @ numbers.T.astype(np.float64))
    assert (error <= steps(inner) * 2.0**-24 * size).all()


@pytest.mark.parametrize(("rows", "inner", "columns"), [(0, 32, 3), (4, 32, 0), (4, 0, 3)])
def test_empty_products(rows: int, inner: int, columns: int) -> None:
    w, _ = weights("Q8_0", columns, inner) if columns and inner else (None, None)
    raw = np.zeros((columns, inner // 32 * 34), np.uint8)
    w = fc.dequantize(fc.constant(raw), "Q8_0") if w is None else w
    got = (fc.source(np.ones((rows, inner), np.float32)) @ w.T).resolve(device="cpu")
    assert_bits(got, np.zeros((rows, columns), np.float32))


def test_a_single_product_keeps_the_sign_of_zero() -> None:
    w = fc.dequantize(fc.constant(np.array([[-0.0]], np.float32).view(np.uint8)), "F32")
    assert_bits((fc.source(np.ones((2, 1), np.float32)) @ w.T).resolve(device="cpu"), np.full((2, 1), -0.0, np.float32))


def test_what_is_not_there_is_not_multiplied() -> None:
    """Lanes behind the last k, and columns behind the last one, meet neither infinities nor NaNs."""
    x, w = np.full((3, 19), np.inf, np.float32), np.ones((5, 19), np.float32)
    product = fc.source(x) @ fc.dequantize(fc.constant(w.view(np.uint8)), "F32").T
    assert_bits(product.resolve(device="cpu"), np.full((3, 5), np.inf, np.float32))


# -- whatever is on the left, behind and around -------------------------------------------------------

NAME, COLUMNS, INNER = "Q5_1", 21, 96
W, NUMBERS = weights(NAME, COLUMNS, INNER)
X = np.random.default_rng(3).standard_normal((37, INNER), dtype=np.float32)
STACK = tame(NAME, 3 * COLUMNS, INNER // 32, seed=5).reshape(3, COLUMNS, -1)
T = NUMBERS.T.astype(np.float64)


def normed(x: Any) -> Any:
    return fc.nn.rms_norm(x, weight=fc.constant(np.linspace(1, 2, INNER, dtype=np.float32)), eps=1e-6)


def normed_array(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * np.linspace(1, 2, INNER, dtype=np.float32)


CASES: dict[str, tuple[Callable[[], Any], Callable[[], np.ndarray]]] = {
    "normed": (lambda: normed(fc.source(X)) @ W.T, lambda: normed_array(X) @ T),
    "halves": (lambda: fc.source(X.astype("f2")) @ W.T, lambda: X.astype("f2").astype("f8") @ T),
    "every other number": (lambda: fc.source(np.repeat(X, 2, axis=1))[:, ::2] @ W.T, lambda: X @ T),
    "with an epilogue": (
        lambda: (lambda x: fc.maximum(x @ W.T + fc.constant(X[0, :COLUMNS]), 0) * x[:, :COLUMNS])(fc.source(X)),
        lambda: np.maximum(X @ T + X[0, :COLUMNS], 0) * X[:, :COLUMNS],
    ),
    "matrices": (
        lambda: fc.source(X[:36].reshape(12, 3, INNER)) @ W.T,
        lambda: X[:36].reshape(12, 3, INNER) @ T,
    ),
    "a stack of matrices": (
        lambda: fc.source(X[:36].reshape(4, 3, 3, INNER)) @ fc.dequantize(fc.constant(STACK), NAME).mT,
        lambda: X[:36].reshape(4, 3, 3, INNER) @ meant(STACK, NAME).swapaxes(1, 2).astype("f8"),
    ),
    "a stream of matrices": (
        lambda: fc.source(X[:15].reshape(3, 5, INNER)) @ fc.dequantize(fc.source(STACK), NAME).mT,
        lambda: X[:15].reshape(3, 5, INNER) @ meant(STACK, NAME).swapaxes(1, 2).astype("f8"),
    ),
    "a part of each row": (lambda: fc.source(X[:, :40]) @ W[:, 7:47].T, lambda: X[:, :40] @ T[7:47]),
    "many rows": (lambda: fc.source(np.tile(X, (8, 1))) @ W.T, lambda: np.tile(X, (8, 1)) @ T),
}


@pytest.mark.compiles
@pytest.mark.parametrize("case", CASES)
def test_rows_have_the_same_bits_alone_and_together(case: str) -> None:
    make, meaning = CASES[case]
    whole = np.asarray(make().resolve(device="cpu"))
    np.testing.assert_allclose(whole, meaning(), rtol=1e-4, atol=2e-3)
    for batch_bytes in (1, 3000):
        assert_bits(
            make().resolve(device="cpu", strategy=fc.Strategy(batch_bytes=batch_bytes)), whole, (case, batch_bytes)
        )
    assert FORM in {kernel.ir.form for kernel in fc.plan(make(), device="cpu").kernels}


@pytest.mark.compiles
def test_tiles_change_no_bit() -> None:
    """Tiles of three rows, and of two where they are left, have the sums that each row has alone."""
    alone = fc.source(X) @ W.T
    each = alone.resolve(device="cpu", strategy=fc.Strategy(batch_bytes=1))
    with (fc.feed(shape=X.shape[1:], dtype=X.dtype) @ W.T).flow(device="cpu") as flow:
        for rows in range(2, 9):
            flow.send(X[:rows])
            assert_bits(flow.receive(), each[:rows], rows)


def test_a_product_alone_uses_no_row_but_its_own() -> None:
    product = fc.constant(X[:1]) @ W.T
    assert_bits(product.resolve(device="cpu"), (fc.source(X) @ W.T).resolve(device="cpu")[:1])


def test_stored_numbers_are_added_like_decoded_ones() -> None:
    """Whether blocks are decoded in the product or before is a matter of the plan."""
    d, x = fc.dequantize(fc.constant(tame(NAME, COLUMNS, 3)), NAME), fc.source(X)
    stored, whole = fc.resolve(x @ d.T, d, device="cpu")
    assert kernels(x @ d.T, d, device="cpu") == 2
    assert_bits(whole, NUMBERS)
    assert_bits(stored, (x @ W.T).resolve(device="cpu"))


@pytest.mark.compiles
def test_chosen_matrices_are_summed_like_single_ones() -> None:
    chosen = np.random.default_rng(4).integers(0, 3, (37, 2))
    made = fc.nn.experts(fc.source(X), fc.dequantize(fc.constant(STACK), NAME), fc.source(chosen))
    assert [kernel.ir.form for kernel in fc.plan(made, device="cpu").kernels] == [FORM]
    matrices = [fc.dequantize(fc.constant(one), NAME) for one in STACK]
    single = np.stack(fc.resolve(*(fc.source(X) @ one.T for one in matrices), device="cpu"))
    assert_bits(made.resolve(device="cpu"), single[chosen, np.arange(37)[:, None]])
    # A view of the matrices, which is stored before, changes no bit.
    part = fc.source(X) @ fc.dequantize(fc.constant(STACK), NAME)[1].T
    assert_bits(part.resolve(device="cpu"), single[1])


@pytest.mark.compiles
@pytest.mark.parametrize("computed", slow_but([False], [False, True]))
def test_rows_are_grouped_by_the_matrix_that_they_choose(computed: bool) -> None:
    """More rows than a block of them has, and a matrix that nobody chooses."""
    chosen = np.random.default_rng(5).integers(0, 2, (37, 30)) * 2
    x = fc.tanh(fc.source(X)) if computed else fc.source(X)
    made = fc.nn.experts(x, fc.dequantize(fc.constant(STACK), NAME), fc.source(chosen))
    matrices = [fc.dequantize(fc.constant(one), NAME) for one in STACK]
    single = np.stack(fc.resolve(*(x @ one.T for one in matrices), device="cpu"))
    wanted = single[chosen, np.arange(37)[:, None]]
    for batch_bytes in (1 << 20, 1, 3 * X[0].nbytes):
        assert_bits(made.resolve(device="cpu", strategy=fc.Strategy(batch_bytes=batch_bytes)), wanted)


# Whole blocks and parts of blocks; one row, some, and a tile of many with a part of one; fewer columns than a tile;
# several panels. Few rows go through local memory where columns begin at multiples of four bytes.
GROUPS = [
    ("Q8_0", 1, 64, 37, True),
    ("Q4_0", 7, 576, 16, True),
    ("Q4_K", 33, 512, 21, True),
    ("Q8_0", 2, 2 * RUN * LANES + 256, 3, True),
    ("Q4_0", 16, 128, 70, True),
    ("Q5_K", 9, 256, 65, True),
    ("Q6_K", 77, 256, 5, False),
    ("MXFP4", 2, 2 * RUN * LANES + 96, 3, False),
    ("F16", 3, 45, 18, False),
    ("F32", 34, 33, 1, False),
]


@pytest.mark.parametrize(
    "case",
    [
        *GROUPS[1:3],
        *(pytest.param(one, marks=pytest.mark.slow) for one in (GROUPS[3], GROUPS[8])),
        *(pytest.param(GROUPS[i], marks=pytest.mark.compiles) for i in (0, 4, 5, 6, 7, 9)),
    ],
)
def test_gpus_add_like_cpus(case: tuple[str, int, int, int, bool]) -> None:
    name, rows, inner, columns, staged = case
    w, _ = weights(name, columns, inner)
    x = np.random.default_rng(5).standard_normal((rows, inner), dtype=np.float32)
    product = fc.tanh(fc.source(x) @ w.T) + 1
    (kernel,) = plan_for_gpu(product).kernels
    assert (kernel.ir.form, kernel.ir.few is not None) == ("dequantized group matmul", staged)
    (whole,) = resolve_on_gpu(product)
    (single,) = resolve_on_gpu(product, strategy=fc.Strategy(batch_bytes=1))
    assert_bits(whole, single)
    # A function of the device rounds by itself, a product does not.
    (plain,) = resolve_on_gpu(fc.source(x) @ w.T)
    assert_bits(plain, (fc.source(x) @ w.T).resolve(device="cpu"))


BLOCKS = [name for name in BLOCK_FORMATS if sizes(name)[0] > 1]


@pytest.mark.compiles
@pytest.mark.parametrize("name", slow_but(["Q3_K", "Q6_K", "IQ3_S"], BLOCKS))
def test_words_of_blocks_are_decoded_like_numbers(name: str) -> None:
    """Take any bytes, so scales are infinite, NaN, negative or zero; a column of zeros keeps their sign."""
    raw = any_bytes(name, 9, 1024 // sizes(name)[0])
    raw[3] = 0
    x = few_bits(2, 1024)
    product = fc.source(x) @ fc.dequantize(fc.constant(raw), name).T
    assert plan_for_gpu(product).kernels[0].ir.few is not None
    (got,) = resolve_on_gpu(product)
    (single,) = resolve_on_gpu(product, strategy=fc.Strategy(batch_bytes=1))
    wanted = product.resolve(device="cpu")
    assert_bits(got, wanted)
    assert_bits(single, wanted)


@pytest.mark.compiles
def test_few_columns_are_shared_by_more_work_items() -> None:
    """Take as many columns as are few, and one more: work-items have two numbers of a column, or four."""
    few = FEW_GROUPS * gpu_shaped().device.capabilities.units * LINES
    x = few_bits(1, 512)
    for columns, together in ((few, LINES // 2), (few + 1, LINES)):
        w, _ = weights("Q4_0", columns, 512)
        product = fc.source(x) @ w.T
        (kernel,) = plan_for_gpu(product).kernels
        assert kernel.ir.of_items(1).tile == (1, -(-columns // together))
        (got,) = resolve_on_gpu(product)
        assert_bits(got, product.resolve(device="cpu"))


@pytest.mark.compiles
def test_products_of_few_rows_share_a_launch() -> None:
    """Formats have chunks of different sizes in the same local memory."""
    x = fc.source(np.random.default_rng(8).standard_normal((3, 512), dtype=np.float32))
    products = [x @ weights(*each, inner=512)[0].T for each in (("Q4_K", 21), ("Q6_K", 40), ("Q8_0", 7))]
    (kernel,) = plan_for_gpu(*products).kernels
    assert kernel.ir.few is not None
    assert kernel.ir.few.parts == kernel.ir.parts == 3
    for got, product in zip(resolve_on_gpu(*products), products, strict=True):
        assert_bits(got, product.resolve(device="cpu"))


def test_few_rows_have_kernels_of_their_own() -> None:
    w, _ = weights("Q4_0", 21, 128)
    (kernel,) = plan_for_gpu(fc.source(few_bits(33, 128)) @ w.T).kernels
    tiles = [kernel.ir.of_items(rows).tile[0] for rows in range(1, 34)]
    assert tiles == [1] + [8] * 15 + [32] * 17


@pytest.mark.compiles
def test_gpus_add_any_count_of_few_rows_like_cpus() -> None:
    """Sums of rows that do not exist are skipped, and results are stored in rounds of two rows."""
    w, _ = weights("Q5_0", 67, 192)
    for rows in (1, 2, 3, 5, 8, 9, 16):
        product = fc.source(np.random.default_rng(rows).standard_normal((rows, 192), dtype=np.float32)) @ w.T
        assert plan_for_gpu(product).kernels[0].ir.of_items(rows).tile[0] == (1 if rows == 1 else 8)
        (got,) = resolve_on_gpu(product)
        assert_bits(got, product.resolve(device="cpu"), rows)


@pytest.mark.parametrize("rows", slow_but([1], [1, 40]))
def test_gpus_add_stacks_of_products_like_cpus(rows: int) -> None:
    """Each record has a matrix of its own, or some share one; and parts of the blocks are seen through a view."""
    d = fc.dequantize(fc.constant(tame("Q4_0", 3 * 20, 4)), "Q4_0").reshape((3, 20, 128))
    x = fc.source(np.random.default_rng(6).standard_normal((2, 3, rows, 128), dtype=np.float32))
    for product in (x @ fc.matrix_transpose(d), x[..., 32:] @ fc.matrix_transpose(d[:, 2:, 32:])):
        (got,) = resolve_on_gpu(product)
        assert_bits(got, product.resolve(device="cpu"))
