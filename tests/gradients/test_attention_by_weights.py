"""Attention whose weights are few goes back by products that read stored weights and their slopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.gradients import attention_rules
from flowcompute.schedule.planner import make_plan
from flowcompute.strategy.config import Config
from tests.golden.test_golden import CPU, graph_of, on_paper
from tests.support.slow import compiled_but

CASES: dict[str, tuple[tuple[int, int, int, int, int, int], dict[str, Any]]] = {
    # Queries, keys, heads, heads of keys, numbers of a key and of a value.
    "all keys": ((19, 33, 3, 3, 8, 5), {}),
    "one head": ((1, 1, 1, 1, 1, 1), {"scale": 2.0}),
    "causal": ((37, 37, 4, 2, 9, 7), {"causal": True}),
    "causal, more keys": ((5, 21, 2, 2, 4, 4), {"causal": True}),
    "causal, fewer keys": ((21, 5, 2, 2, 4, 4), {"causal": True}),
    "window": ((50, 50, 2, 1, 4, 3), {"causal": True, "window": 9}),
}


def drawn(name: str, records: int) -> list[np.ndarray]:
    (queries, keys, heads, kv_heads, size, columns), _ = CASES[name]
    shapes = (heads, queries, size), (kv_heads, keys, size), (kv_heads, keys, columns), (heads, queries, columns)
    rng = np.random.default_rng(records)
    return [rng.standard_normal((records, *shape)) for shape in shapes]


def seen_keys(name: str) -> np.ndarray:
    (queries, keys, *_), given = CASES[name]
    last = np.arange(queries)[:, None] + keys - queries
    ahead = np.arange(keys) - last if given.get("causal") else np.full((queries, keys), -1)
    return np.asarray((ahead <= 0) & (ahead > -given.get("window", keys + queries)))


def by_hand(name: str, q: np.ndarray, k: np.ndarray, v: np.ndarray, g: np.ndarray) -> list[np.ndarray]:
    """Return the gradients in float64 (Dao et al., "FlashAttention", 2022, appendix B)."""
    heads, kv_heads = q.shape[1], k.shape[1]
    scale = CASES[name][1].get("scale", q.shape[-1] ** -0.5)
    k, v = (np.repeat(one, heads // kv_heads, axis=1) for one in (k, v))
    scores = np.where(seen_keys(name), scale * q @ k.swapaxes(2, 3), -np.inf)
    highest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(highest == -np.inf, 0, highest))
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    cotangent = g @ v.swapaxes(2, 3)
    slopes = scale * weights * (cotangent - (weights * cotangent).sum(-1, keepdims=True))
    of_k, of_v = slopes.swapaxes(2, 3) @ q, weights.swapaxes(2, 3) @ g
    shared = (one.reshape(len(one), kv_heads, -1, *one.shape[2:]).sum(2) for one in (of_k, of_v))
    return [slopes @ k, *shared]


def checked(name: str, records: int, dtype: str, device: str) -> None:
    arrays = drawn(name, records)
    *operands, g = (fc.source(one.astype(dtype)) for one in arrays)
    gradients = fc.grad((fc.nn.attention(*operands, **CASES[name][1]) * g).sum(), operands)
    found = fc.resolve(*gradients, device=device, progress=False)
    tolerance = 1e-12 if dtype == "f8" else 1e-5
    for one, exact in zip(found, by_hand(name, *arrays), strict=True):
        np.testing.assert_allclose(one, exact, rtol=tolerance, atol=tolerance * np.abs(exact).max())


@pytest.mark.parametrize("records", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", CASES)
def test_slopes_are_those_in_float64(name: str, dtype: str, records: int) -> None:
    checked(name, records, dtype, "numpy")


@pytest.mark.parametrize("name", compiled_but(["one head"], CASES))
def test_kernels_give_them_too(name: str) -> None:
    checked(name, 3, "f4", "cpu")


@pytest.mark.parametrize("name", compiled_but(["causal"], ["causal", "all keys"]))
def test_batches_change_no_bit(name: str) -> None:
    *operands, g = (fc.source(one.astype("f4")) for one in drawn(name, 5))
    gradients = fc.grad((fc.nn.attention(*operands, **CASES[name][1]) * g).sum(), operands)
    whole = fc.resolve(*gradients, device="cpu", progress=False)
    single = fc.resolve(*gradients, device="cpu", progress=False, strategy=fc.Strategy(batch_bytes=1))
    assert [one.tobytes() for one in whole] == [one.tobytes() for one in single]


def test_three_matrices_of_scores_are_stored() -> None:
    q, k, v = (fc.source(np.zeros((2, 4, 128, 32), np.float32), name=name) for name in "qkv")
    gradients = fc.grad((fc.nn.attention(q, k, v, causal=True) ** 2).sum(), [q, k, v])
    plan = make_plan(graph_of(gradients, CPU), Config(1 << 32), fc.Strategy(), on_paper(CPU))
    nodes = {node.id: node for node in plan.graph.nodes}
    made = [one.value for kernel in plan.kernels for one in kernel.ir.arguments if one.kind == "output"]
    # Scores, weights, and slopes of scores.
    assert sum(nodes[value].spec.shape == (4, 128, 128) for value in made) == 3


@pytest.mark.parametrize("shape", [(19, 33), (1, 33), (19, 1)])
def test_a_mask_is_learnt_by_the_slopes_of_scores(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    *operands, g = (fc.source(one) for one in drawn("all keys", 3))
    mask = fc.parameter(np.random.default_rng(6).standard_normal(shape), name="mask")

    def slopes() -> Any:
        return fc.grad((fc.nn.attention(*operands, mask=mask) * g).sum(), mask)

    found = slopes()
    monkeypatch.setattr(attention_rules, "_are_alike", lambda *_: False)
    one, other = fc.resolve(found, slopes(), device="numpy", progress=False)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["all keys", "causal"])
def test_second_derivatives(name: str) -> None:
    *arrays, g = drawn(name, 2)
    rng = np.random.default_rng(4)
    weighing = [rng.standard_normal(one.shape) for one in arrays]

    def first(operands: list[Any]) -> Any:
        gradients = fc.grad((fc.nn.attention(*operands, **CASES[name][1]) * fc.source(g)).sum(), operands)
        parts = [(one * fc.source(weight)).sum() for one, weight in zip(gradients, weighing, strict=True)]
        return parts[0] + parts[1] + parts[2]

    operands = [fc.source(one) for one in arrays]
    found = fc.resolve(*fc.grad(first(operands), operands), device="numpy", progress=False)
    steps = [1e-6 * rng.standard_normal(one.shape) for one in arrays]
    ends = [first([fc.source(one + sign * step) for one, step in zip(arrays, steps, strict=True)]) for sign in (1, -1)]
    ahead, behind = fc.resolve(*ends, device="numpy", progress=False)
    told = sum((one * step).sum() for one, step in zip(found, steps, strict=True))
    np.testing.assert_allclose(told, (ahead - behind) / 2, rtol=1e-5)
