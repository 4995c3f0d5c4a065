"""Formulas of `benchmarks.kernels` in jax, each compiled as one, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")


def _of(formula: Callable[..., Any]) -> Callable[[np.ndarray, Any], Callable[[], Any]]:
    compiled = jax.jit(formula)

    def prepare(x: np.ndarray, operand: Any) -> Callable[[], Any]:
        operands = [jnp.asarray(one) for one in (x, operand) if one is not None]
        return lambda: jax.block_until_ready(compiled(*operands))

    return prepare


def _attention(x: jax.Array) -> jax.Array:
    shares = jax.nn.softmax(x @ x.swapaxes(-1, -2) * x.shape[-1] ** -0.5)
    return shares @ x


FORMULAS = {
    "W1": _of(lambda x: jax.nn.sigmoid(1.5 * x - 0.25) * jnp.tanh(x) + x * x),
    "W3": _of(lambda x: jax.nn.softmax(x, axis=1)),
    "W4": _of(lambda x, weight: (x / jnp.sqrt((x * x).sum(axis=1, keepdims=True))) @ weight),
    "W5": _of(lambda x: (x.mean(axis=0), x.var(axis=0))),
    "sum": _of(lambda x: x.sum()),
    "layer norm": _of(lambda x: jax.nn.standardize(x, axis=1, epsilon=1e-5)),
    "argmax": _of(lambda x: x.argmax(axis=1)),
    "scan": _of(jnp.cumsum),
    "conv": _of(lambda x, weight: jax.lax.conv(x, weight, (1, 1), "VALID")),
    "attention": _of(_attention),
}
