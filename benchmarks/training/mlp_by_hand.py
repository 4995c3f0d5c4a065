"""The network of two layers, its gradient and Adam in NumPy, by hand."""

from __future__ import annotations

import numpy as np

from benchmarks.training.loops import Train
from benchmarks.training.models import RATE, Model


def by_hand(model: Model) -> Train:
    """Return a loop in NumPy that takes the steps of `models.mlp`."""

    def train() -> np.ndarray:
        p = {name: value.copy() for name, value in model.first.items()}
        m, v = ({name: np.zeros_like(value) for name, value in p.items()} for _ in range(2))
        losses = []
        for step in range(model.steps):
            x, y = (data[model.part(step)] for data in model.data)
            h = np.maximum(x @ p["a"] + p["b"], 0)
            z = h @ p["c"] + p["d"]
            z -= z.max(1, keepdims=True)
            powers = np.exp(z)
            total = powers.sum(1, keepdims=True)
            losses.append((np.log(total[:, 0]) - z[range(len(y)), y]).mean())
            g = powers / total
            g[range(len(y)), y] -= 1
            g /= np.float32(len(y))
            back = (g @ p["c"].T) * (h > 0)
            found = {"a": x.T @ back, "b": back.sum(0), "c": h.T @ g, "d": g.sum(0)}
            for name, gradient in found.items():
                m[name] += np.float32(0.1) * (gradient - m[name])
                v[name] += np.float32(0.001) * (gradient * gradient - v[name])
                unbiased = np.sqrt(v[name] / np.float32(1 - 0.999 ** (step + 1))) + np.float32(1e-8)
                p[name] -= np.float32(RATE / (1 - 0.9 ** (step + 1))) * m[name] / unbiased
        return np.array(losses)

    return train
