"""Recurrent layers against loops in NumPy: gates, directions, lengths, and what they begin with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.errors import SpecError
from tests.gpu.shapes import resolve_on_gpu

RNG = np.random.default_rng(7)
N, TIME, INPUTS, HIDDEN = 5, 4, 3, 2
X = RNG.standard_normal((N, TIME, INPUTS))
LENGTHS = np.array([4, 1, 0, 3, 2])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def weights(gates: int) -> dict[str, np.ndarray]:
    shapes = {"weight": (gates * HIDDEN, INPUTS), "recurrent": (gates * HIDDEN, HIDDEN), "bias": (gates * HIDDEN,)}
    return {name: RNG.standard_normal(shape) for name, shape in shapes.items()}


def looped(step: Any, states: list[np.ndarray], lengths: np.ndarray, *, reverse: bool) -> list[np.ndarray]:
    """Each record by itself, up to its length."""
    every, last = np.zeros((N, TIME, HIDDEN)), [one.copy() for one in states]
    for record in range(N):
        state = [one[record] for one in states]
        times = range(lengths[record])
        for time in reversed(times) if reverse else times:
            state = step(X[record, time], *state)
            every[record, time] = state[0]
        for at, one in enumerate(state):
            last[at][record] = one
    return [every, *last]


def same(made: Any, wanted: list[np.ndarray]) -> None:
    values = fc.resolve(*made, device="numpy", strategy=fc.Strategy(batch_bytes=100), progress=False)
    for got, want in zip(values, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("begun", [False, True])
def test_layers_are_their_loops(reverse: bool, lengths: np.ndarray | None, begun: bool) -> None:
    counts = np.full(N, TIME) if lengths is None else lengths
    h0, c0 = (RNG.standard_normal((N, HIDDEN)) if begun else np.zeros((N, HIDDEN)) for _ in range(2))
    how: dict[str, Any] = {"reverse": reverse, "lengths": lengths}
    first: dict[str, Any] = {"initial": fc.source(h0)} if begun else {}

    w = weights(1)
    wanted = looped(
        lambda x, h: [np.tanh(w["weight"] @ x + w["bias"] + w["recurrent"] @ h)], [h0], counts, reverse=reverse
    )
    same(fc.nn.rnn(fc.source(X), **w, **how, **first), wanted)

    w4, holes = weights(4), RNG.standard_normal((3, HIDDEN))

    def memory(x: np.ndarray, h: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        i, f, g, o = np.split(w4["weight"] @ x + w4["bias"] + w4["recurrent"] @ h, 4)
        new = sigmoid(f + holes[1] * c) * c + sigmoid(i + holes[0] * c) * np.tanh(g)
        return [sigmoid(o + holes[2] * new) * np.tanh(new), new]

    both = {"initial": (h0, fc.source(c0))} if begun else {}
    wanted = looped(memory, [h0, c0], counts, reverse=reverse)
    same(fc.nn.lstm(fc.source(X), **w4, peephole=holes, **how, **both), wanted)

    w3, more = weights(3), RNG.standard_normal(3 * HIDDEN)
    for after in (True, False):

        def units(x: np.ndarray, h: np.ndarray, after: bool = after) -> list[np.ndarray]:
            r, z, n = np.split(w3["weight"] @ x + w3["bias"], 3)
            big_r, big_z, big_n = np.split(w3["recurrent"] @ h + more, 3)
            r, z = sigmoid(r + big_r), sigmoid(z + big_z)
            reset = r * big_n if after else w3["recurrent"][2 * HIDDEN :] @ (r * h) + more[2 * HIDDEN :]
            return [(1 - z) * np.tanh(n + reset) + z * h]

        wanted = looped(units, [h0], counts, reverse=reverse)
        same(fc.nn.gru(fc.source(X), **w3, recurrent_bias=more, reset_after=after, **how, **first), wanted)


def test_what_is_resident_and_other_activations() -> None:
    w = weights(1)
    made = fc.nn.rnn(fc.constant(X), w["weight"], w["recurrent"], initial=np.ones(HIDDEN), activation=fc.nn.relu)
    wanted = looped(
        lambda x, h: [np.maximum(w["weight"] @ x + w["recurrent"] @ h, 0)],
        [np.ones((N, HIDDEN))],
        np.full(N, TIME),
        reverse=False,
    )
    same(made, wanted)
    halves = fc.nn.gru(fc.source(X.astype("f2")), *(one.astype("f2") for one in weights(3).values()))
    assert [one.dtype for one in halves] == [np.float16] * 2


@pytest.mark.slow
def test_on_devices() -> None:
    w = {name: one.astype("f4") for name, one in weights(1).items()}
    made = fc.nn.rnn(fc.source(X[:, :2].astype("f4")), **w)
    wanted = fc.resolve(*made, device="numpy", progress=False)
    for values in (fc.resolve(*made, device="cpu", progress=False), resolve_on_gpu(*made)):
        for got, want in zip(values, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weight": np.ones((2, 4))}, "cannot take weight="),
        ({"recurrent": np.ones((2, 3))}, "cannot take recurrent="),
        ({"bias": np.ones(3)}, "cannot take bias="),
        ({"initial": np.ones(3)}, "cannot begin with this state"),
        ({"lengths": LENGTHS * 1.0}, "cannot take lengths="),
        ({"x": fc.source(X[:, 0])}, "cannot run a layer along time of this"),
        ({"x": fc.source(X[:, :0])}, "cannot run a layer along time of this"),
        ({"activation": "tanh"}, "cannot take these activations"),
        ({"activation": lambda: 1}, "TypeError"),
        ({"activation": lambda x: x[:, :1]}, "a function that returns"),
    ],
)
def test_refusals(change: dict[str, Any], said: str) -> None:
    sound = {"x": fc.source(X), "weight": np.ones((2, 3)), "recurrent": np.ones((2, 2))}
    with pytest.raises(SpecError, match=said):
        fc.nn.rnn(**sound | change)
    w = weights(4)
    for wrong in ({"initial": [np.ones(2)]}, {"peephole": np.ones((2, 2))}, {"activations": [fc.tanh]}):
        with pytest.raises(SpecError, match="cannot take"):
            fc.nn.lstm(fc.source(X), **w, **wrong)
