"""Whatever reads decoded numbers: products, element-wise operations, reductions, folds, scans, views and gathers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu, two_gpus
from tests.quantized.blocks import assert_bits, kernels, meant, sizes, tame

NAME, ROWS, BLOCKS = "Q4_0", 21, 4
RAW = tame(NAME, ROWS, BLOCKS)
"""Rows of 72 bytes, which mean 128 numbers."""
W = meant(RAW, NAME)
X = np.random.default_rng(3).standard_normal((7, 128), dtype=np.float32)
DEVICES: dict[str, Callable[..., np.ndarray]] = {
    "cpu": lambda x: x.resolve(strategy=fc.Strategy(batch_bytes=2048)),
    "gpu": lambda x: resolve_on_gpu(x)[0],
    "numpy": lambda x: x.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=2048)),
}


@fc.kernel
def squared_beside(x: Any, y: Any) -> Any:
    return x * x + y


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {
    # Element-wise, in the shape of the numbers and broadcast.
    "map": (lambda d: 2 * d + 1, lambda w: 2 * w + 1),
    "broadcast": (lambda d: d[:, None, :] - fc.constant(X[:3]), lambda w: w[:, None, :] - X[:3]),
    "kernel": (lambda d: squared_beside(d, -d), lambda w: w * w + -w),
    "twice": (lambda d: d * d.max(axis=1, keepdims=True), lambda w: w * w.max(axis=1, keepdims=True)),
    # Views.
    "slice": (lambda d: d[:, 5:77:3], lambda w: w[:, 5:77:3]),
    "reversed": (lambda d: fc.flip(d, axis=1) + 0, lambda w: w[:, ::-1] + 0),
    "matrices": (lambda d: fc.permute_dims(fc.reshape(d, (-1, 16, 8)), (0, 2, 1)) * 3,
                 lambda w: w.reshape(-1, 16, 8).transpose(0, 2, 1) * 3),
    "column": (lambda d: d[:, 40], lambda w: w[:, 40]),
    "rows": (lambda d: d[4:17:2], lambda w: w[4:17:2]),
    # Of two zeros of either sign the maximum may be either.
    "window": (lambda d: fc.window(d, 3).max(axis=1) + 0,
               lambda w: np.stack([w[i : i + 3].max(axis=0) for i in range(ROWS - 2)]) + 0),
    # Gathers.
    "take": (lambda d: fc.take(d, [3, 0, 127, 3], axis=1) + 1, lambda w: w[:, [3, 0, 127, 3]] + 1),
    "pad": (lambda d: fc.pad(d, ((0, 0), (3, 2))) * 2, lambda w: np.pad(w, ((0, 0), (3, 2))) * 2),
    "concat": (lambda d: fc.concat([d, -d], axis=1) + 1, lambda w: np.concatenate([w, -w], axis=1) + 1),
    # Reductions and scans that round nothing.
    "max": (lambda d: d.max(axis=1), lambda w: w.max(axis=1)),
    "argmin": (lambda d: fc.argmin(d, axis=1), lambda w: w.argmin(axis=1)),
    "fold": (lambda d: d.min(axis=0), lambda w: w.min(axis=0)),
    "fold of numbers": (lambda d: d.max(), lambda w: w.max()),
    "scan": (lambda d: fc.cumulative_max(d, axis=0), lambda w: np.maximum.accumulate(w, axis=0)),
    "scan of items": (lambda d: fc.cumulative_max(d, axis=1), lambda w: np.maximum.accumulate(w, axis=1)),
    "selection": (lambda d: d[d[:, 0] > 0], lambda w: w[w[:, 0] > 0]),
}  # fmt: skip


@pytest.mark.compiles
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_streams_are_read_by_all(case: str, device: str) -> None:
    ours, theirs = CASES[case]
    got, expected = DEVICES[device](ours(fc.dequantize(fc.source(RAW), NAME))), np.asarray(theirs(W))
    assert np.asarray(got).tobytes() == expected.tobytes(), (case, device)


@pytest.mark.parametrize("case", CASES)
def test_numpy_reads_streams_in_batches(case: str) -> None:
    ours, theirs = CASES[case]
    got = ours(fc.dequantize(fc.source(RAW), NAME)).resolve(device="numpy", strategy=fc.Strategy(batch_bytes=600))
    assert np.asarray(got).tobytes() == np.asarray(theirs(W)).tobytes(), case


RAWS: dict[str, tuple[Any, np.ndarray]] = {
    "computed": (lambda: fc.source(RAW ^ 5) ^ 5, RAW),
    "a slice": (lambda: fc.source(np.pad(RAW, ((0, 0), (18, 7))))[:, 18:90], RAW),
    "every other record": (lambda: fc.source(np.repeat(RAW, 2, axis=0))[::2], RAW),
    "transposed": (
        lambda: fc.permute_dims(fc.source(RAW.reshape(-1, 4, 18).transpose(0, 2, 1).copy()), (0, 2, 1)),
        RAW.reshape(-1, 4, 18),
    ),
    "reshaped": (lambda: fc.reshape(fc.source(RAW), (-1, 2, 36)), RAW.reshape(-1, 2, 36)),
    "windows": (lambda: fc.window(fc.source(RAW), 2), np.stack([RAW[:-1], RAW[1:]], axis=1)),
    "joined": (lambda: fc.concat([fc.source(RAW[:, :36]), fc.source(RAW[:, 36:])], axis=1), RAW),
    "cut": (lambda: fc.cut(fc.source(RAW), 3), RAW.reshape(7, 3, -1)),
    "selected": (lambda: (lambda x: x[x[:, 2] > 100])(fc.source(RAW)), RAW[RAW[:, 2] > 100]),
    "not aligned": (lambda: fc.source(np.frombuffer(b"x" + RAW.tobytes(), np.uint8)[1:].reshape(RAW.shape)), RAW),
    "a resident slice": (lambda: fc.constant(np.pad(RAW, ((0, 0), (0, 18))))[3:, :72], RAW[3:]),
    "a record": (lambda: fc.source(RAW)[4], RAW[4]),
}


@pytest.mark.compiles
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("what", RAWS)
def test_blocks_may_come_from_anywhere(what: str, device: str) -> None:
    make, raw = RAWS[what]
    assert_bits(DEVICES[device](fc.dequantize(make(), NAME) + 0), meant(raw, NAME) + 0, (what, device))


@pytest.mark.parametrize("what", RAWS)
def test_numpy_takes_blocks_from_anywhere(what: str) -> None:
    make, raw = RAWS[what]
    got = fc.dequantize(make(), NAME).resolve(device="numpy", strategy=fc.Strategy(batch_bytes=600))
    assert_bits(got, meant(raw, NAME), what)


# -- products ---------------------------------------------------------------------------------------

PRODUCTS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "x @ w.T": (lambda x, d: x @ d.T, lambda x, w: x @ w.T),
    "x @ (2 w).T": (lambda x, d: x @ (2 * d).T, lambda x, w: x @ (2 * w).T),
    "relu(x @ w.T)": (lambda x, d: fc.maximum(x @ d.T, 0), lambda x, w: np.maximum(x @ w.T, 0)),
    "x @ part of w": (lambda x, d: x[:, :64] @ d[:16, 32:96].T, lambda x, w: x[:, :64] @ w[:16, 32:96].T),
    "x @ heads of w": (
        lambda x, d: x[:, :16] @ fc.reshape(d, (ROWS * 8, 16)).T,
        lambda x, w: x[:, :16] @ w.reshape(-1, 16).T,
    ),
    "x @ wide heads of w": (
        lambda x, d: x[:, :32] @ fc.reshape(d, (ROWS * 4, 32)).T,
        lambda x, w: x[:, :32] @ w.reshape(-1, 32).T,
    ),
    "x @ w": (lambda x, d: x[:, :ROWS] @ d, lambda x, w: x[:, :ROWS] @ w),
}


@pytest.mark.compiles
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("what", PRODUCTS)
def test_products_decode_in_their_loads(what: str, device: str) -> None:
    ours, theirs = PRODUCTS[what]
    product = ours(fc.source(X), fc.dequantize(fc.constant(RAW), NAME))
    if device != "numpy":
        # BLAS adds in an order that depends on the strides. Products on devices add along blocks of any format.
        floats = fc.dequantize(fc.constant(W.view(np.uint8)), "F32")
        assert_bits(DEVICES[device](product), DEVICES[device](ours(fc.source(X), floats)), (what, device))
    np.testing.assert_allclose(DEVICES[device](product), theirs(X, W), rtol=1e-4, atol=1e-3)


@pytest.mark.compiles
@pytest.mark.parametrize(("name", "inner"), [("Q4_1", 8224), ("Q8_0", 96), ("Q4_K", 8448), ("Q6_K", 256)])
def test_runs_that_share_scales_keep_the_order_of_sums(name: str, inner: int) -> None:
    rng = np.random.default_rng(inner)
    raw = tame(name, 19, inner // sizes(name)[0], seed=3)
    single = fc.dequantize(fc.constant(meant(raw, name).view(np.uint8)), "F32")
    for rows in (1, 2, 35):
        x = fc.source(rng.standard_normal((rows, inner), dtype=np.float32))
        # Blocks of one number share nothing.
        wanted = (x @ single.T).resolve(device="cpu", progress=False)
        assert_bits((x @ fc.dequantize(fc.constant(raw), name).T).resolve(device="cpu", progress=False), wanted)


@pytest.mark.compiles
@pytest.mark.parametrize("inner", [5, 8, 13, 24, 40, 8192 + 40])
def test_many_rows_keep_the_order_of_sums_of_one(inner: int) -> None:
    rng = np.random.default_rng(inner)
    numbers = rng.standard_normal((19, inner), dtype=np.float32)
    w = fc.dequantize(fc.constant(numbers.view(np.uint8)), "F32")
    x = rng.standard_normal((7, inner), dtype=np.float32)
    # Rows in memory, rows that are computed as they are kept, and rows that a norm makes.
    for product in (lambda one: one @ w.T, lambda one: (one * 3) @ w.T, lambda one: fc.nn.rms_norm(one) @ w.T):
        each = [product(fc.source(x[i : i + 1])).resolve(device="cpu", progress=False) for i in range(7)]
        assert_bits(product(fc.source(x)).resolve(device="cpu", progress=False), np.concatenate(each), inner)


# A slice of rows is a copy of resident numbers.
@pytest.mark.parametrize("what", [name for name in PRODUCTS if name != "x @ part of w"])
def test_products_store_no_weights(what: str) -> None:
    product = PRODUCTS[what][0](fc.source(X), fc.dequantize(fc.constant(RAW), NAME))
    assert kernels(product) == 1
    assert len(plan_for_gpu(product).kernels) == 1


def test_products_that_share_blocks_store_none_of_them() -> None:
    x, d = fc.source(X), fc.dequantize(fc.constant(np.tile(RAW, (50, 1))), NAME)
    plan = fc.plan(fc.tanh(x @ d.T) @ d, x @ d.T + 1, memory="1MiB", device="cpu")
    # Two products, and the two element-wise results of the first one are in its kernel.
    assert sorted(kernel.ir.form for kernel in plan.kernels) == ["cpu matmul", "dequantized matmul"]
    assert plan.memory.host_bytes < 1 << 20


def test_attention_decodes_keys_and_values() -> None:
    rng = np.random.default_rng(0)
    q = rng.standard_normal((3, 5, 64), dtype=np.float32)
    raw = [tame("Q8_0", 20, 2, seed) for seed in (1, 2)]
    k, v = (fc.dequantize(fc.constant(one), "Q8_0") for one in raw)
    plain = [fc.constant(meant(one, "Q8_0")) for one in raw]
    ours = fc.nn.attention(fc.source(q), k, v)
    theirs = fc.nn.attention(fc.source(q), *plain)
    assert_bits(ours.resolve(), theirs.resolve())


def test_resident_products_decode_in_their_loads() -> None:
    product = fc.constant(X) @ fc.dequantize(fc.constant(RAW), NAME).T
    assert kernels(product) == 1
    assert_bits(product.resolve(), (fc.source(X) @ fc.dequantize(fc.constant(RAW), NAME).T).resolve())


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["Q4_1", "Q4_K"])
def test_fast_kernels_decode_the_same_numbers(name: str) -> None:
    raw = tame(name, 9, 2)
    assert_bits(fc.dequantize(fc.source(raw), name).resolve(precision="fast"), meant(raw, name))
    plan = plan_for_gpu(fc.dequantize(fc.source(raw), name), precision="fast")
    assert plan.kernels[0].source.count("FP_CONTRACT OFF") == 1


@pytest.mark.compiles
def test_a_worker_process_decodes() -> None:
    product = fc.source(X) @ fc.dequantize(fc.constant(RAW), NAME).T
    assert_bits(product.resolve(isolate=True), product.resolve())


@pytest.mark.compiles
def test_devices_share_what_is_decoded() -> None:
    """Each of two devices reads blocks, and one the numbers that the other has decoded."""
    x, d = fc.source(X), fc.dequantize(fc.constant(RAW), NAME)
    roots = [(x @ d.T).on("gpu") + 1, ((x + 1) @ d.T).on("gpu:1"), (d.on("gpu") * 2).on("gpu:1")]
    with mock.patch("flowcompute.jobs.job_planner.choose_backend", return_value=two_gpus()):
        run = fc.run(*roots, progress=False)
    np.testing.assert_allclose(run.values[0], X @ W.T + 1, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(run.values[1], (X + 1) @ W.T, rtol=1e-4, atol=1e-3)
    assert_bits(run.values[2], W * 2)


def test_what_is_asked_for_is_stored() -> None:
    d = fc.dequantize(fc.constant(RAW), NAME)
    product, whole = fc.resolve(fc.source(X) @ d.T, d)
    assert_bits(whole, W)
    assert_bits(product, (fc.source(X) @ d.T).resolve())


def test_the_plan_names_the_format() -> None:
    text = str(fc.plan(fc.source(X) @ fc.dequantize(fc.constant(RAW), NAME).T))
    assert "Q4_0" in text


# -- errors -----------------------------------------------------------------------------------------


def refused(make: Callable[[], object]) -> fc.SpecError:
    with pytest.raises(fc.SpecError) as caught:
        make()
    assert "test_consumers.py" in str(caught.value)
    return caught.value


def test_rows_that_are_no_whole_blocks_are_refused() -> None:
    error = refused(lambda: fc.dequantize(fc.constant(RAW[:, :-1]), NAME))
    assert str(error).startswith("dequantize: cannot decode Q4_0 from rows that are no whole blocks")
    assert (error.element, error.got) == ("dequantize", "uint8(21, 71)")
    assert "a multiple of 18 bytes (32 numbers)" in str(error)
    refused(lambda: fc.dequantize(fc.source(RAW[:, 0]), NAME))
    refused(lambda: fc.dequantize(fc.constant(np.uint8(7)), NAME))


@pytest.mark.parametrize("other", [X, RAW.view(np.int8), RAW.view(np.uint16)], ids=lambda one: one.dtype.name)
def test_other_dtypes_are_refused(other: np.ndarray) -> None:
    error = refused(lambda: fc.dequantize(other, NAME))
    assert "uint8" in str(error)
    assert isinstance(error, TypeError)


@pytest.mark.parametrize("wrong", ["Q9_9", "q4_0", "", None, 2, np.uint8])
def test_unknown_formats_are_refused(wrong: Any) -> None:
    error = refused(lambda: fc.dequantize(RAW, wrong))
    assert "IQ4_XS" in str(error)
    if wrong == "q4_0":
        assert "did you mean Q4_0" in str(error)
