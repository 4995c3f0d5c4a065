"""The operator Attention: one kernel where that can do it, and its definition where more is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements import Compute
from tests.onnx.models import model, node, port

rng = np.random.default_rng(29)
Q, K, V = (rng.standard_normal((3, heads, length, 4)).astype("f4") for heads, length in ((4, 5), (2, 7), (2, 7)))


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: Any, seen: Any) -> np.ndarray:
    """The formula of the standard, in float64; a query that sees no key gives zeros."""
    k, v = (np.repeat(one, q.shape[1] // one.shape[1], axis=1).astype("f8") for one in (k, v))
    scores = q @ k.swapaxes(2, 3) / 2
    mask = np.zeros(()) if mask is None else np.where(mask, 0, -np.inf) if mask.dtype == bool else mask
    scores = np.where(seen, scores + mask, -np.inf)
    best = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(best), 0, best))
    total = weights.sum(-1, keepdims=True)
    return np.where(total == 0, 0, weights / np.where(total == 0, 1, total)) @ v


def operations(element: Any) -> set[str]:
    found, todo = set(), [element]
    while todo:
        one = todo.pop()
        if isinstance(one, Compute):
            found.add(one.op.name)
            todo.extend(one.inputs)
    return found


def seen_by(how: dict[str, Any]) -> np.ndarray:
    ahead = np.arange(7) - np.arange(5)[:, None]
    seen = ahead <= 0 if how.get("is_causal") else ahead < 99
    left, right = how.get("left_window_size", -1), how.get("right_window_size", -1)
    return seen & (ahead >= (-left if left >= 0 else -99)) & (ahead <= (right if right >= 0 else 99))


MASKS = {
    "none": None,
    "floats": rng.standard_normal((5, 7)).astype("f4"),
    "bools": rng.random((4, 5, 7)) > 0.4,
    "nothing": np.zeros((1, 1, 5, 7), bool),
    "keys": rng.random(7) > 0.4,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    "how", [{}, {"is_causal": 1}, {"left_window_size": 1, "right_window_size": 2}, {"is_causal": 1, "left_window_size": 2}],
    ids=str,
)  # fmt: skip
def test_it_is_its_formula(how: dict[str, Any], mask: str) -> None:
    """Heads that share keys, of arrays and record by record."""
    added = MASKS[mask]
    values = {} if added is None else {"m": added}
    nodes = [node("Attention", "q k v" + (" m" if values else ""), "y", **how)]
    ports = [port(name, ("N", *one.shape[1:])) for name, one in zip("qkv", (Q, K, V), strict=True)]
    loaded = fc.onnx.load(model(nodes, ports, opset=25, values=values))
    wanted = attended(Q, K, V, added, seen_by(how))
    streams = loaded(*map(fc.source, (Q, K, V)))
    assert "attention" in operations(streams)
    np.testing.assert_allclose(streams.resolve(device="numpy"), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(loaded(Q, K, V).resolve(device="numpy"), wanted, rtol=1e-4, atol=1e-5)
    beside = loaded(fc.source(Q), K, V)
    assert "attention" in operations(beside)
    np.testing.assert_allclose(beside.resolve(device="numpy"), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", [{}, {"softcap": 2.0}], ids=str)
def test_heads_that_lie_side_by_side(how: dict[str, Any]) -> None:
    """What one kernel cannot do goes by the definition."""
    q, k, v = (one.swapaxes(1, 2).reshape(3, one.shape[2], -1) for one in (Q, K, V))
    nodes = [node("Attention", "q k v", "y", q_num_heads=4, kv_num_heads=2, **how)]
    ports = [port(name, one.shape) for name, one in zip("qkv", (q, k, v), strict=True)]
    loaded = fc.onnx.load(model(nodes, ports, opset=25))
    y, beside = loaded(*map(fc.source, (q, k, v))), loaded(fc.source(q), k, v)
    assert ("attention" in operations(y)) == (not how)
    if not how:
        wanted = attended(Q, K, V, None, True).swapaxes(1, 2).reshape(3, 5, 16)
        for made in (y, beside):
            np.testing.assert_allclose(made.resolve(device="numpy"), wanted, rtol=1e-4, atol=1e-5)
