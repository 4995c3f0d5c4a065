"""Loops of training by Adam in float32: `fit`, `Trainer`, torch and jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flowcompute as fc
from benchmarks.training.models import RATE, Model

Train = Callable[[], np.ndarray]
"""Takes all steps from the first parameters, and returns their losses."""


def parameters(model: Model) -> dict[str, Any]:
    """Return the first parameters as elements."""
    return {name: fc.parameter(value, name=name) for name, value in model.first.items()}


def by_fit(model: Model, device: str) -> Train:
    """Return a training that is composed, planned and run as one graph."""

    def train() -> np.ndarray:
        loss = model.by_flowcompute(parameters(model), *map(fc.source, model.data))
        return fc.train.fit(loss, fc.train.adam(RATE), batch=model.batch).losses.resolve(device=device, progress=False)

    return train


def by_trainer(model: Model, device: str) -> Train:
    """Return a loop that composes a graph each step."""

    def train() -> np.ndarray:
        p = parameters(model)
        with fc.train.Trainer([*p.values()], fc.train.adam(RATE), device=device) as trainer:
            losses = []
            for part in map(model.part, range(model.steps)):
                x, y = (fc.source(one[part]) for one in model.data)
                losses.append(trainer.step(model.by_flowcompute(p, x, y)))
            return np.array(losses)

    return train


def by_torch(model: Model, device: str, compiled: str | None = None) -> Train:
    """Return a loop of torch. On a GPU each step uploads its records, as flowcompute's does.

    Args:
        model: what is trained.
        device: of flowcompute; torch computes on a GPU where that one does.
        compiled: mode of `torch.compile`, whose loops update by the fused Adam; None without the compiler.
    """
    import torch  # noqa: PLC0415 - a peer that may be missing

    there = "cuda" if device.startswith("gpu") else "cpu"
    loss_of = model.by_torch if compiled is None else torch.compile(model.by_torch, mode=compiled, dynamic=False)

    def train() -> np.ndarray:
        p = {name: torch.tensor(value, requires_grad=True, device=there) for name, value in model.first.items()}
        adam = torch.optim.Adam([*p.values()], lr=RATE, fused=None if compiled is None else True)
        data = [torch.from_numpy(one) for one in model.data]
        losses = []
        for step in range(model.steps):
            loss = loss_of(p, *(one[model.part(step)].to(there) for one in data))
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
        return np.array(losses)

    return train


def by_jax(model: Model) -> Train:
    """Return a loop over one compiled step of jax."""
    import jax  # noqa: PLC0415 - a peer that may be missing

    @jax.jit
    def step(state: tuple[Any, Any, Any], x: Any, y: Any, number: Any) -> tuple[tuple[Any, Any, Any], Any]:
        p, m, v = state
        loss, g = jax.value_and_grad(model.by_jax)(p, x, y)
        m = {name: 0.9 * m[name] + 0.1 * g[name] for name in p}
        v = {name: 0.999 * v[name] + 0.001 * g[name] * g[name] for name in p}
        roots = {name: jax.numpy.sqrt(v[name] / (1 - 0.999**number)) + 1e-8 for name in p}
        return ({name: p[name] - RATE * m[name] / (1 - 0.9**number) / roots[name] for name in p}, m, v), loss

    def train() -> np.ndarray:
        zeros = {name: np.zeros_like(value) for name, value in model.first.items()}
        state, losses = (model.first, zeros, zeros), []
        for number in range(model.steps):
            x, y = (one[model.part(number)] for one in model.data)
            state, loss = step(state, x, y, number + 1.0)
            losses.append(float(loss))
        return np.array(losses)

    return train
