"""Gradients of drawn graphs of up to thirty operations, in float64: against finite differences, and against jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from tests.properties.cases import cases

RECORDS, WIDTH, MOST = 4, 3, 30
DATA = np.random.default_rng(11).uniform(-1.5, 1.5, (RECORDS, WIDTH))
FIRST = np.random.default_rng(12).uniform(-1, 1, (WIDTH, WIDTH))
SCALE = np.random.default_rng(13).uniform(0.5, 1.5, WIDTH)
"""A number for each column, which is also a leaf."""


def softmax(f: Any, a: Any) -> Any:
    powers = f.exp(a - f.max(a, axis=1, keepdims=True))
    return powers / f.sum(powers, axis=1, keepdims=True)


def normed(f: Any, a: Any) -> Any:
    centred = a - f.mean(a, axis=1, keepdims=True)
    return centred / f.sqrt(f.mean(centred * centred, axis=1, keepdims=True) + 0.1)


UNARY: list[Callable[[Any, Any], Any]] = [
    lambda f, a: f.tanh(a),
    lambda f, a: f.sin(a),
    lambda f, a: f.cos(a) * 1.1,
    lambda f, a: f.exp(-f.square(a)),
    lambda f, a: f.log1p(f.exp(f.tanh(a))),
    lambda f, a: f.sqrt(f.square(a) + 1.0),
    lambda f, a: f.atan(a),
    lambda f, a: f.asinh(a),
    lambda f, a: f.expm1(f.tanh(a)),
    lambda f, a: f.abs(a) * 0.9,
    lambda f, a: f.maximum(a, 0.05 * a),
    lambda f, a: f.where(a > 0.1, a * a, f.sin(a)),
    lambda f, a: f.cumulative_sum(f.tanh(a), axis=1),
    lambda f, a: f.flip(a, axis=1) * a,
    lambda f, a: f.concat([a[:, 1:], a[:, :1]], axis=1),
    lambda f, a: f.permute_dims(f.reshape(a, (-1, WIDTH, 1)), (0, 2, 1))[:, 0],
    lambda f, a: a - f.sum(f.tanh(a), axis=1, keepdims=True),
    lambda f, a: f.max(a, axis=1, keepdims=True) + f.sin(a),
    softmax,
    normed,
]
BINARY: list[Callable[[Any, Any, Any], Any]] = [
    lambda f, a, b: a + b,
    lambda f, a, b: a - 0.5 * b,
    lambda f, a, b: a * f.tanh(b),
    lambda f, a, b: a / (1.5 + f.square(b)),
    lambda f, a, b: f.maximum(a, b + 0.01),
    lambda f, a, b: f.minimum(f.sin(a), b),
    lambda f, a, b: f.hypot(a, b + 3.0),
    lambda f, a, b: f.logaddexp(a, b),
    lambda f, a, b: f.atan2(a, f.square(b) + 1.0),
    lambda f, a, b: f.where(a > b, a, b * 0.3),
]

Graph = list[tuple[int, int, int]]
"""For each operation its kind and two operands, as numbers of any size."""

graphs = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=MOST)


def value(
    f: Any, graph: Graph, x: Any, w: Any, s: Any, weights: Any, mark: Callable[[Any], Any] = lambda one: one
) -> Any:
    """Return the loss of a graph, in the operations of any namespace of the array API.

    Args:
        f: the namespace.
        graph: what is computed.
        x, w, s: the leaves: rows, a matrix and a number for each column.
        weights: of the sum at the end.
        mark: put around every fifth value.
    """
    values = [x, x @ w, x * s]
    for place, (kind, first, second) in enumerate(graph):
        a, b = values[-1 - first % min(len(values), 4)], values[second % len(values)]
        if kind % 8 == 0:
            made = f.tanh(a) @ w
        elif kind % 3:
            made = UNARY[kind % len(UNARY)](f, a)
        else:
            made = BINARY[kind % len(BINARY)](f, a, b)
        values.append(mark(made) if place % 5 == 4 else made)
    total = values[-1] + 0.1 * values[len(values) // 2]
    return f.sum(total * weights) + f.sum(f.mean(total, axis=0) ** 2.0)


WEIGHTS = np.random.default_rng(14).uniform(0.5, 1.5, WIDTH)


def gradients(graph: Graph, mark: Callable[[Any], Any] = lambda one: one) -> tuple[Any, ...]:
    """Return the loss of a graph and its gradients by the leaves."""
    x, w, s = fc.source(DATA), fc.parameter(FIRST), fc.parameter(SCALE)
    loss = value(fc, graph, x, w, s, fc.constant(WEIGHTS), mark)
    # A leaf that the last values do not depend on has none.
    return tuple(fc.resolve(loss, *fc.grad(loss + 0.0 * (x @ w * s).sum(), [x, w, s]), device="numpy", progress=False))


@cases(60)
@given(graphs)
def test_drawn_graphs_have_the_slopes_of_finite_differences(graph: Graph) -> None:
    loss, *slopes = gradients(graph)
    leaves = DATA, FIRST, SCALE
    np.testing.assert_allclose(loss, value(np, graph, *leaves, WEIGHTS), rtol=1e-9, atol=1e-9)
    rng, h = np.random.default_rng(len(graph)), 1e-6
    for place, slope in enumerate(slopes):
        step = rng.standard_normal(leaves[place].shape)
        ahead, behind = (
            value(np, graph, *(one + sign * h * step if i == place else one for i, one in enumerate(leaves)), WEIGHTS)
            for sign in (1, -1)
        )
        expected = (ahead - behind) / (2 * h)
        # Where a graph is steep its differences are as inexact as they are large.
        np.testing.assert_allclose((slope * step).sum(), expected, rtol=1e-4, atol=1e-5 * (1 + abs(float(loss))))


@cases(20)
@given(graphs)
def test_marks_change_no_bit_of_drawn_graphs(graph: Graph) -> None:
    for one, other in zip(gradients(graph), gradients(graph, fc.recompute), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.peer
@cases(200)
@given(graphs)
def test_drawn_graphs_have_the_gradients_of_jax(graph: Graph) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def loss(x: Any, w: Any, s: Any) -> Any:
        return value(jax.numpy, graph, x, w, s, WEIGHTS)

    expected = jax.value_and_grad(loss, argnums=(0, 1, 2))(DATA, FIRST, SCALE)
    loss_here, *slopes = gradients(graph)
    np.testing.assert_allclose(loss_here, expected[0], rtol=1e-9, atol=1e-9)
    for one, other in zip(slopes, expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8 * (1 + np.abs(other).max()))
