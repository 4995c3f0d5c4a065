"""Attention in one kernel: its definition in float64, any shapes and masks, numbers that are none, in both code shapes."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.elements.nn.dot_product_attention import _naive_attention
from flowcompute.errors import SpecError
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu

pytestmark = pytest.mark.compiles

INF, NAN = math.inf, math.nan


def numbers(shape: tuple[int, ...], dtype: Any = "f4", seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def defined(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: Any = 0, causal: bool = False, window: int | None = None
) -> np.ndarray:
    """Query by query, over the keys that it sees and no others, in float64."""
    q, k, v = (one.astype("f8") for one in (q, k, v))
    heads = q.shape[-3]
    k, v = (np.repeat(one, heads // one.shape[-3], axis=-3) for one in (k, v))
    queries, keys = q.shape[-2], k.shape[-2]
    added = np.broadcast_to(np.asarray(mask, "f8"), (*q.shape[:-1], keys))
    made = np.zeros((*q.shape[:-1], v.shape[-1]))
    for i in range(queries):
        stop = max(0, min(keys, i + keys - queries + 1)) if causal else keys
        start = max(0, i + keys - queries + 1 - window) if window else 0
        with np.errstate(all="ignore"):
            scores = np.einsum("...d,...kd->...k", q[..., i, :], k[..., start:stop, :]) / math.sqrt(q.shape[-1] or 1)
            scores = scores + added[..., i, start:stop]
            highest = scores.max(-1, keepdims=True, initial=-1e300)
            weights = np.exp(scores - highest)
            total = weights.sum(-1, keepdims=True)
            shares = np.einsum("...k,...kd->...d", weights, v[..., start:stop, :]) / total
        made[..., i, :] = np.where(total == 0, 0, shares)
    return made


def same(left: np.ndarray, right: np.ndarray) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype and np.array_equal(left, right, equal_nan=True)


def every(root: Element, *, gpu: bool = True) -> list[np.ndarray]:
    """Resolved on the CPU, by NumPy, and by code for GPUs, with the same bits from batches of one record."""
    single = fc.Strategy(batch_bytes=1)
    results = [np.asarray(fc.resolve(root)), np.asarray(fc.resolve(root, device="numpy"))]
    assert same(results[0], np.asarray(fc.resolve(root, strategy=single)))
    if gpu:
        results.append(resolve_on_gpu(root)[0])
        assert same(results[2], resolve_on_gpu(root, strategy=single)[0])
    return results


def check(results: list[np.ndarray], wanted: np.ndarray, tolerance: float = 4e-6) -> None:
    for result in results:
        np.testing.assert_allclose(result.astype("f8"), wanted, rtol=tolerance, atol=tolerance)


@settings(max_examples=3)
@example(1, 1, 1, 1, (1, 1), False, None)
@example(2, 7, 131, 17, (4, 2), True, 5)
@example(2, 40, 19, 24, (2, 1), True, None)
@given(
    st.integers(1, 2),
    st.sampled_from([1, 5, 16, 31]),
    st.sampled_from([1, 63, 64, 65, 131]),
    st.sampled_from([1, 8, 17, 40]),
    st.sampled_from([(1, 1), (3, 1), (4, 2)]),
    st.booleans(),
    st.sampled_from([None, 1, 70]),
)
def test_any_shape_is_its_definition(
    items: int, queries: int, keys: int, size: int, heads: tuple[int, int], causal: bool, window: int | None
) -> None:
    window = window if causal else None
    q, k = numbers((items, heads[0], queries, size)), numbers((items, heads[1], keys, size), seed=1)
    v = numbers((items, heads[1], keys, size // 2 + 1), seed=2)
    root = fc.nn.attention(fc.source(q), fc.source(k), fc.source(v), causal=causal, window=window)
    assert root.shape == (items, heads[0], queries, size // 2 + 1)
    # Code for GPUs takes seconds to compile for a CPU: the shapes of the tests below are enough for it.
    check(every(root, gpu=False), defined(q, k, v, causal=causal, window=window))


def test_blocks_of_many_queries_and_the_naive_form() -> None:
    q, k, v = numbers((1, 2, 150, 16)), numbers((1, 2, 70, 16), seed=1), numbers((1, 2, 70, 16), seed=2)
    operands = [fc.source(one) for one in (q, k, v)]
    wanted = defined(q, k, v)
    check(every(fc.nn.attention(*operands), gpu=False), wanted)
    check([np.asarray(_naive_attention(*operands).resolve())], wanted)


def test_no_bit_depends_on_the_shape_of_a_work_group() -> None:
    q, k, v = numbers((1, 2, 30, 20)), numbers((1, 1, 192, 20), seed=1), numbers((1, 1, 192, 10), seed=2)
    root = fc.nn.attention(*(fc.source(one) for one in (q, k, v)))
    results = []
    for group, rows in ((128, 16), (128, 128), (256, 128)):
        strategy = fc.Strategy(work_group=group, block_rows=rows)
        (kernel,) = plan_for_gpu(root, strategy=strategy).kernels
        assert (kernel.ir.knobs.work_group, kernel.ir.knobs.block_rows) == (group, rows)
        results += resolve_on_gpu(root, strategy=strategy)
    check(results, defined(q, k, v))
    assert all(same(results[0], result) for result in results)


@pytest.mark.parametrize("kind", ["numbers", "heads", "keys", "bool", "stream"])
def test_masks(kind: str) -> None:
    q, k, v = numbers((3, 4, 6, 16)), numbers((3, 2, 70, 16), seed=1), numbers((3, 2, 70, 20), seed=2)
    shape = {"numbers": (6, 70), "heads": (4, 1, 70), "keys": (70,), "bool": (6, 70), "stream": (3, 1, 6, 70)}[kind]
    mask = numbers(shape, seed=3)
    mask[..., ::3] = -INF
    if kind != "keys":
        mask[..., :1, :] = -INF
    given_mask: Any = mask if kind != "bool" else mask > 0
    added = mask if kind != "bool" else np.where(mask > 0, 0, -INF)
    operand = fc.source(mask) if kind == "stream" else given_mask
    operands = [fc.source(one) for one in (q, k, v)]
    root = fc.nn.attention(*operands, mask=operand)
    results = every(root, gpu=kind == "stream")
    check(results, defined(q, k, v, mask=added))
    if kind != "keys" and kind != "heads":
        assert not results[0][:, :, 0].any(), "a query without keys has the result 0"
    if kind == "stream":
        check([np.asarray(_naive_attention(*operands, mask=operand).resolve())], defined(q, k, v, mask=added))


def test_numbers_that_are_none() -> None:
    q, k, v = numbers((1, 1, 16, 8)), numbers((1, 1, 70, 8), seed=1), numbers((1, 1, 70, 8), seed=2)
    q[0, 0, 3, 1] = NAN
    q[0, 0, 4] = INF
    k[0, 0, 69] = NAN
    v[0, 0, 68] = [INF, -INF, NAN, *[INF] * 5]
    v[0, 0, 69] = NAN
    root = fc.nn.attention(*(fc.source(one) for one in (q, k, v)), causal=True)
    wanted = defined(q, k, v, causal=True)
    # Queries that do not see the last two keys know nothing of them.
    assert np.isfinite(wanted[0, 0, 5:14]).all()
    assert np.isnan(wanted[0, 0, [3, 4, 15]]).all()
    assert np.isinf(wanted[0, 0, 14]).any()
    check(every(root), wanted)
    # Where scores are minus infinity without a mask no key has a weight.
    low = numbers((1, 1, 3, 4))
    low[0, 0, 0] = 1e38
    high = np.full((1, 1, 5, 4), -1e38, "f4")
    nothing = fc.nn.attention(fc.source(low), fc.source(high), fc.source(high)).resolve()
    assert not np.asarray(nothing)[0, 0, 0].any()


@pytest.mark.parametrize("dtype", ["f8", "f2", ml_dtypes.bfloat16])
def test_every_float(dtype: Any) -> None:
    q, k, v = numbers((2, 2, 9, 24), dtype), numbers((2, 2, 70, 24), dtype, 1), numbers((2, 2, 70, 24), dtype, 2)
    root = fc.nn.attention(*(fc.source(one) for one in (q, k, v)), causal=True)
    assert len(fc.plan(root).kernels) == len(plan_for_gpu(root).kernels) == 1, "half formats are read as they are"
    results = every(root, gpu=dtype == "f8")
    assert all(result.dtype == q.dtype for result in results)
    tolerance = 1e-14 if dtype == "f8" else float(ml_dtypes.finfo(dtype).eps)
    check(results, defined(q, k, v, causal=True), tolerance)


def test_what_follows_is_part_of_the_kernel_and_operands_are_read_where_they_lie() -> None:
    packed, bias = numbers((5, 10, 3, 2, 8)), numbers((8,), seed=1)
    x, beside = fc.source(packed), fc.source(numbers((5, 2, 10, 8), seed=2))
    q, k, v = (fc.permute_dims(x[:, :, i], (0, 2, 1, 3)) for i in range(3))
    z = fc.nn.attention(q, k, v)
    roots = [fc.maximum(z + bias, 0) * 2, z, z + beside]
    for plan in (fc.plan(*roots), plan_for_gpu(*roots)):
        assert len(plan.kernels) == 1, plan
    plain = np.moveaxis(packed, 2, 0).transpose(0, 1, 3, 2, 4)
    wanted = defined(*plain)
    for results in (fc.resolve(*roots), resolve_on_gpu(*roots)):
        product = np.asarray(results[1])
        check([product], wanted)
        assert same(np.asarray(results[0]), np.maximum(product + bias, 0) * 2)
        assert same(np.asarray(results[2]), product + numbers((5, 2, 10, 8), seed=2))


def test_residents_and_missing_heads() -> None:
    q, k, v = numbers((4, 7, 8)), numbers((30, 8), seed=1), numbers((4, 30, 5), seed=2)
    root = fc.nn.attention(fc.source(q), k, fc.source(v), scale=0.25)
    wanted = defined(q[:, None] * (0.25 * math.sqrt(8)), k[None, None], v[:, None])[:, 0]
    check(every(root, gpu=False), wanted)
    alone = fc.nn.attention(fc.constant(q), k, v, scale=0.25)
    assert not alone.spec.is_stream
    check([np.asarray(alone.resolve())], wanted)
    # A resident as long as the stream is cut along it.
    check([np.asarray(fc.nn.attention(fc.source(q), k, v, scale=0.25).resolve())], wanted)


def test_nothing_to_attend_to() -> None:
    def resolved(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> list[np.ndarray]:
        return every(fc.nn.attention(*(fc.source(numbers(shape)) for shape in (q, k, v))), gpu=0 in q[1:])

    for result in resolved((2, 1, 3, 4), (2, 1, 0, 4), (2, 1, 0, 5)):
        assert same(result, np.zeros((2, 1, 3, 5), "f4"))
    # The kernel of a GPU has no tile of keys to walk.
    empty = (fc.source(numbers(shape)) for shape in ((2, 1, 3, 0), (2, 1, 0, 0), (2, 1, 0, 5)))
    assert same(resolve_on_gpu(fc.nn.attention(*empty))[0], np.zeros((2, 1, 3, 5), "f4"))
    assert resolved((2, 1, 0, 4), (2, 1, 3, 4), (2, 1, 3, 5))[0].shape == (2, 1, 0, 5)
    assert resolved((0, 1, 3, 4), (0, 1, 3, 4), (0, 1, 3, 5))[0].shape == (0, 1, 3, 5)
    # Without numbers in queries all keys weigh the same.
    mean = numbers((2, 1, 3, 5)).mean(axis=2, keepdims=True, dtype="f8")
    check(resolved((2, 1, 2, 0), (2, 1, 3, 0), (2, 1, 3, 5)), np.broadcast_to(mean, (2, 1, 2, 5)))


def test_memory_grows_with_the_length_alone() -> None:
    def planned(length: int) -> int:
        x = fc.source(np.zeros((1, 2, length, 16), "f4"))
        return fc.plan(fc.nn.attention(x, x, x)).memory.host_bytes

    assert planned(4096) == 8 * planned(512)


@pytest.mark.parametrize(
    ("shapes", "options", "text"),
    [
        (((2, 3, 4), (2, 3, 5), (2, 3, 5)), {}, "cannot compare queries with keys of another size"),
        (((2, 3, 4), (2, 3, 4), (2, 2, 4)), {}, "cannot weigh another number of values than keys"),
        (((2, 3, 257), (2, 3, 257), (2, 3, 4)), {}, "cannot hold heads of this size"),
        (((4, 3, 8), (3, 3, 8), (3, 3, 8)), {}, "cannot share heads"),
        (((2, 2, 3, 8), (3, 2, 3, 8), (3, 2, 3, 8)), {}, "cannot broadcast axes before the heads"),
        (((2, 3, 4), (2, 3, 4), (2, 3, 4)), {"window": 2}, "cannot take window="),
        (((2, 3, 4), (2, 3, 4), (2, 3, 4)), {"window": 0, "causal": True}, "cannot take window="),
        (((2, 3, 4), (2, 3, 4), (2, 3, 4)), {"mask": np.zeros((2, 5))}, "cannot broadcast the mask to the scores"),
        (((2, 3, 4), (2, 3, 4), (2, 3, 4)), {"scale": "large"}, "cannot take scale="),
        (((4,), (2, 3, 4), (2, 3, 4)), {}, "cannot attend along this axis"),
    ],
)
def test_what_is_refused(shapes: tuple[tuple[int, ...], ...], options: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError, match=text):
        fc.nn.attention(*(fc.constant(np.zeros(shape, "f4")) for shape in shapes), **options)


def test_streams_line_up() -> None:
    x, mask = fc.source(np.zeros((5, 2, 3, 4), "f4")), fc.source(np.zeros((5, 3, 3), "f4"))
    with pytest.raises(SpecError, match="mask\\[:, None\\]"):
        fc.nn.attention(x, x, x, mask=mask)
    with pytest.raises(SpecError, match="cannot align streams of different length"):
        fc.nn.attention(x, x, fc.source(np.zeros((6, 2, 3, 4), "f4")))
