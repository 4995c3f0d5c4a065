"""A small problem to train on, and the same by hand in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowcompute as fc

RNG = np.random.default_rng(19)
X = RNG.standard_normal((50, 6), dtype=np.float32)
Y = np.abs(X[:, :3]).argmax(1)
FIRST = RNG.standard_normal((6, 3), dtype=np.float32) * np.float32(0.3)


def weights() -> Any:
    return fc.parameter(FIRST, name="w"), fc.parameter(np.zeros(3, "f4"), name="b")


def loss(x: Any, y: Any, w: Any, b: Any, rate: float = 0.0) -> Any:
    dropped = fc.nn.dropout(x, rate, seed=2) if rate else x
    return fc.nn.cross_entropy(dropped @ w + b, y, reduction="mean")


def by_hand(order: np.ndarray, batch: int, rate: float) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Return weights, biases and losses of plain gradient descent in float64.

    Args:
        order: records of all steps, one epoch a row.
        batch: records in a step.
        rate: of the descent.
    """
    w, b, losses = FIRST.astype("f8"), np.zeros(3), []
    for records in order:
        for start in range(0, len(records), batch):
            mine = records[start : start + batch]
            x, y = X[mine].astype("f8"), Y[mine]
            z = x @ w + b
            p = np.exp(z - z.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            losses.append(-np.log(p[range(len(y)), y]).mean())
            p[range(len(y)), y] -= 1
            w, b = w - rate * x.T @ p / len(y), b - rate * p.mean(0)
    return w, b, losses
