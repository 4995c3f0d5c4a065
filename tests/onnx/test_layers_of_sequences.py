"""Recurrent layers of models against their equations in the standard, of arrays and of streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from tests.onnx.models import model, node, port

rng = np.random.default_rng(23)
HIDDEN, STEPS, INPUTS, RECORDS = 3, 5, 4, 6
LENGTHS = np.array([5, 1, 3, 0, 4, 2], "i4")
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def step_of(
    op: str, x: np.ndarray, states: list[np.ndarray], weights: dict[str, np.ndarray], how: dict[str, Any]
) -> Any:
    """The equations of one step in the standard, of (N, inputs) and (N, hidden)."""
    limit = how.get("clip", np.inf)
    w, r, b, p = (weights[name] for name in "wrbp")
    bias_w, bias_r = np.split(b, 2)

    def f(z: np.ndarray) -> np.ndarray:
        return sigmoid(np.clip(z, -limit, limit))

    def g(z: np.ndarray) -> np.ndarray:
        return np.tanh(np.clip(z, -limit, limit))

    h = states[0]
    if op == "RNN":
        return [g(x @ w.T + h @ r.T + bias_w + bias_r)]
    given, again = x @ w.T + bias_w, h @ r.T + bias_r
    if op == "GRU":
        z, reset = (f(given[:, at : at + HIDDEN] + again[:, at : at + HIDDEN]) for at in (0, HIDDEN))
        if how.get("linear_before_reset"):
            inner = reset * again[:, 2 * HIDDEN :]
        else:
            inner = (reset * h) @ r[2 * HIDDEN :].T + bias_r[2 * HIDDEN :]
        return [(1 - z) * g(given[:, 2 * HIDDEN :] + inner) + z * h]
    c, (hole_i, hole_o, hole_f) = states[1], np.split(p, 3)
    i, o, forget, new = np.split(given + again, 4, axis=1)
    i = f(i + hole_i * c)
    forget = 1 - i if how.get("input_forget") else f(forget + hole_f * c)
    cell = forget * c + i * g(new)
    return [f(o + hole_o * cell) * g(cell), cell]


def by_steps(op: str, x: np.ndarray, given: dict[str, np.ndarray], how: dict[str, Any]) -> list[np.ndarray]:
    """All states (steps, directions, N, hidden) and the last ones (directions, N, hidden), record by record."""
    count = 2 if op == "LSTM" else 1
    every = np.zeros((STEPS, 2, RECORDS, HIDDEN))
    lasts = np.zeros((count, 2, RECORDS, HIDDEN))
    for record in range(RECORDS):
        for place in range(2):
            states = [given[name][place, record : record + 1] for name in ("h", "c")[:count]]
            weights = {name: given[name][place] for name in "wrbp"}
            times = range(LENGTHS[record])
            for time in reversed(times) if place else times:
                states = step_of(op, x[time, record : record + 1], states, weights, how)
                every[time, place, record] = states[0][0]
            lasts[:, place, record] = [state[0] for state in states]
    return [every, *lasts]


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize(
    ("op", "how"),
    [
        ("RNN", {"clip": 0.5}),
        ("GRU", {}),
        ("GRU", {"linear_before_reset": 1, "clip": 0.7}),
        ("LSTM", {"clip": 0.4}),
        ("LSTM", {"input_forget": 1}),
    ],
    ids=str,
)
def test_a_layer_is_its_equations(op: str, how: dict[str, Any], layout: int) -> None:
    """Both directions, sequences of all lengths, states to begin with; of arrays, and record by record."""
    wide, count = GATES[op] * HIDDEN, 2 if op == "LSTM" else 1
    shapes = {"w": (2, wide, INPUTS), "r": (2, wide, HIDDEN), "b": (2, 2 * wide), "p": (2, 3 * HIDDEN)}
    given = {name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
    given |= {name: rng.standard_normal((2, RECORDS, HIDDEN)).astype("f4") for name in "hc"}
    x = rng.standard_normal((STEPS, RECORDS, INPUTS)).astype("f4")
    wanted = by_steps(op, x, given, how)
    # Records first, as a stream has them.
    wanted = [wanted[0].transpose(2, 0, 1, 3), *(one.swapaxes(0, 1) for one in wanted[1:])]
    inputs = "x w r b n h" + (" c p" if op == "LSTM" else "")
    outputs = ["y", "last", "cell"][: count + 1]
    arrays = {"x": x, "n": LENGTHS, "h": given["h"], "c": given["c"]}
    arrays = {name: arrays[name] for name in arrays if name in inputs.split()}
    axes = {name: 0 if layout or name == "n" else 1 for name in arrays}
    arrays = {name: one.swapaxes(0, 1) if layout and name != "n" else one for name, one in arrays.items()}
    made = [node(op, inputs, " ".join(f"{one}0" for one in outputs), hidden_size=HIDDEN, direction="bidirectional",
                 layout=layout, **how)]  # fmt: skip
    orders = [(2, 0, 1, 3), *[(1, 0, 2)] * count] if not layout else [(0, 1, 2, 3), *[(0, 1, 2)] * count]
    made += [node("Transpose", f"{one}0", one, perm=order) for one, order in zip(outputs, orders, strict=True)]
    ports = [port(name, one.shape, 6 if name == "n" else 1) for name, one in arrays.items()]
    values = {name: given[name] for name in "wrbp" if name in inputs.split()}
    proto = model(made, ports, outputs, opset=22, values=values)
    resident = fc.resolve(*fc.onnx.load(proto)(**arrays), device="numpy", progress=False)
    for got, want in zip(resident, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    streams = {name: fc.source(np.moveaxis(one, axes[name], 0)) for name, one in arrays.items()}
    flowing = fc.onnx.load(proto, batch_axis=axes)(**streams)
    assert all(one.spec.is_stream for one in flowing)
    found = fc.resolve(*flowing, device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=64))
    for got, array in zip(found, resident, strict=True):
        np.testing.assert_allclose(got, array, rtol=1e-5, atol=1e-6)


def test_a_layer_over_the_records_is_refused() -> None:
    """A stream of steps: the state would go from record to record."""
    w, r = np.ones((1, 3, 4), "f4"), np.ones((1, 3, 3), "f4")
    made = model([node("RNN", "x w r", "y", hidden_size=3)], [port("x", ("T", 2, 4))], values={"w": w, "r": r})
    with pytest.raises(fc.onnx.UnsupportedError) as caught:
        fc.onnx.load(made)(fc.source(np.ones((5, 2, 4), "f4")))
    assert caught.value.reason == "batch axis"
    assert "batch_axis=" in caught.value.hint


def test_other_gates_that_forget_what_they_do_not_add_are_refused() -> None:
    w, r = np.ones((1, 12, 4), "f4"), np.ones((1, 12, 3), "f4")
    names = ["Softsign", "Tanh", "Tanh"]
    nodes = [node("LSTM", "x w r", "y", hidden_size=3, input_forget=1, activations=names)]
    made = model(nodes, [port("x", (2, 2, 4))], values={"w": w, "r": r})
    with pytest.raises(fc.onnx.UnsupportedError, match="input_forget=1 with softsign"):
        fc.onnx.load(made)(np.ones((2, 2, 4), "f4"))


def test_a_model_for_one_sequence_runs_over_a_stream_of_them() -> None:
    """Its length and its first state are those of each record."""
    values = {"w": rng.standard_normal((1, 3, 4)).astype("f4"), "r": rng.standard_normal((1, 3, 3)).astype("f4")}
    values["one"] = np.array([1])
    nodes = [node("RNN", "x w r _ n h", "all", hidden_size=3), node("Squeeze", "all one", "y1"),
             node("Transpose", "y1", "y", perm=[1, 0, 2])]  # fmt: skip
    ports = [port("x", (5, 1, 4)), port("n", (1,), 6), port("h", (1, 1, 3))]
    proto = model(nodes, ports, values=values, opset=22)
    x, length = rng.standard_normal((6, 5, 4)).astype("f4"), np.array([3], "i4")
    state = rng.standard_normal((1, 1, 3)).astype("f4")
    flowing = fc.onnx.load(proto, batch_axis={"x": 1})(fc.source(x), length, state)
    got = flowing.resolve(device="numpy", strategy=fc.Strategy(batch_bytes=64))
    for record, wanted in enumerate(got):
        alone = fc.onnx.load(proto)(x[record][:, None], length, state).resolve(device="numpy")
        np.testing.assert_allclose(wanted, alone[0], rtol=1e-5, atol=1e-6)
    assert (got[:, 3:] == 0).all()
