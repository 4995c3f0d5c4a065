"""Recurrent layers: RNN, GRU and LSTM, unrolled along the steps of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.elements.creation import zeros
from flowcompute.onnx.logical_value import Value
from flowcompute.onnx.operators.control_flow import MOST_UNROLLED
from flowcompute.onnx.operators.record import NodeCall, Operator
from flowcompute.onnx.problems import Refusal

_PLAIN: dict[str, Callable[[Any], Any]] = {
    "tanh": fc.tanh,
    "sigmoid": nn.sigmoid,
    "relu": nn.relu,
    "softsign": lambda x: fc.divide(x, fc.add(fc.abs(x), 1)),
    "softplus": nn.softplus,
}
_BY_ALPHA: dict[str, tuple[Callable[[Any, float, float], Any], float, float]] = {
    "leakyrelu": (lambda x, alpha, _: nn.leaky_relu(x, alpha), 0.01, 0.0),
    "elu": (lambda x, alpha, _: nn.elu(x, alpha), 1.0, 0.0),
    "affine": (lambda x, alpha, beta: fc.add(fc.multiply(x, alpha), beta), 1.0, 0.0),
    "scaledtanh": (lambda x, alpha, beta: fc.multiply(fc.tanh(fc.multiply(x, beta)), alpha), 1.0, 1.0),
    "hardsigmoid": (lambda x, alpha, beta: fc.clip(fc.add(fc.multiply(x, alpha), beta), 0, 1), 0.2, 0.5),
    "thresholdedrelu": (lambda x, alpha, _: fc.where(fc.greater(x, alpha), x, 0), 1.0, 0.0),
}

Step = Callable[[Any, Sequence[Any]], tuple[Any, ...]]
"""Makes the next states of the projected input and the states before."""


def _activations(call: NodeCall, usual: Sequence[str], direction: int) -> list[Callable[[Any], Any]]:
    """Return the functions of a direction."""
    names = call.node.attributes.get("activations")
    count = len(usual)
    own = usual if names is None else names[direction * count : (direction + 1) * count]
    if len(own) != count:
        raise Refusal("attribute", f"{len(names or ())} activations", f"give {count} for each direction")
    alphas, betas = (list(call.attribute(name) or ()) for name in ("activation_alpha", "activation_beta"))
    if direction and (alphas or betas):
        raise Refusal("missing", "parameters of activations in two directions", "use those without parameters")
    clip = call.attribute("clip")
    return [_limited(_function(name.lower(), alphas, betas), clip) for name in own]


def _function(name: str, alphas: list[float], betas: list[float]) -> Callable[[Any], Any]:
    if name in _PLAIN:
        return _PLAIN[name]
    if name not in _BY_ALPHA:
        raise Refusal("attribute", f"activation {name!r}", f"use one of {', '.join((*_PLAIN, *_BY_ALPHA))}")
    function, alpha, beta = _BY_ALPHA[name]
    alpha, beta = (alphas.pop(0) if alphas else alpha), (betas.pop(0) if betas else beta)
    return lambda x: function(x, alpha, beta)


def _limited(function: Callable[[Any], Any], clip: float | None) -> Callable[[Any], Any]:
    return function if clip is None else lambda x: function(fc.clip(x, -clip, clip))


class _Direction:
    """The weights of one direction, and its steps."""

    def __init__(self, call: NodeCall, place: int, gates: int, usual: Sequence[str]) -> None:
        self.hidden = call.attribute("hidden_size") or call[2].size(2)
        self.input = fc_axes.permute_dims(call[1].resident("W")[place], (1, 0))
        self.again = fc_axes.permute_dims(call[2].resident("R")[place], (1, 0))
        bias = call.get(3)
        self.functions = _activations(call, usual, place)
        wide = gates * self.hidden
        self.biases = None if bias is None else (bias.resident("B")[place][:wide], bias.resident("B")[place][wide:])

    def gate(self, x: Any, place: int) -> Any:
        """Return the numbers of one gate."""
        return x[:, place * self.hidden : (place + 1) * self.hidden]

    def projected(self, x: Any) -> Any:
        """Return the input of a step times its weights."""
        made = fc.matmul(x, self.input)
        return made if self.biases is None else fc.add(made, self.biases[0])

    def repeated(self, state: Any) -> Any:
        """Return the state times its weights."""
        made = fc.matmul(state, self.again)
        return made if self.biases is None else fc.add(made, self.biases[1])


def _rnn_step(one: _Direction, _: NodeCall, __: int) -> Step:
    def step(x: Any, states: Sequence[Any]) -> tuple[Any, ...]:
        return (one.functions[0](fc.add(x, one.repeated(states[0]))),)

    return step


def _gru_step(one: _Direction, call: NodeCall, _: int) -> Step:
    f, g = one.functions
    before = call.attribute("linear_before_reset")

    def step(x: Any, states: Sequence[Any]) -> tuple[Any, ...]:
        (h,) = states
        again = one.repeated(h)
        update = f(fc.add(one.gate(x, 0), one.gate(again, 0)))
        reset = f(fc.add(one.gate(x, 1), one.gate(again, 1)))
        if before:
            inner = fc.multiply(reset, one.gate(again, 2))
        else:
            inner = fc.matmul(fc.multiply(reset, h), one.again[:, 2 * one.hidden :])
            inner = inner if one.biases is None else fc.add(inner, one.biases[1][2 * one.hidden :])
        new = g(fc.add(one.gate(x, 2), inner))
        return (fc.add(fc.multiply(fc.subtract(1, update), new), fc.multiply(update, h)),)

    return step


def _lstm_step(one: _Direction, call: NodeCall, place: int) -> Step:
    f, g, last = one.functions
    holes = call.get(7)
    peep = [0.0] * 3
    if holes is not None:
        row = holes.resident("P")[place]
        peep = [row[at * one.hidden : (at + 1) * one.hidden] for at in range(3)]
    coupled = call.attribute("input_forget")

    def step(x: Any, states: Sequence[Any]) -> tuple[Any, ...]:
        h, c = states
        total = fc.add(x, one.repeated(h))
        add = f(_seen(one.gate(total, 0), c, peep[0]))
        keep = fc.subtract(1, add) if coupled else f(_seen(one.gate(total, 2), c, peep[2]))
        made = fc.add(fc.multiply(keep, c), fc.multiply(add, g(one.gate(total, 3))))
        out = f(_seen(one.gate(total, 1), made, peep[1]))
        return fc.multiply(out, last(made)), made

    return step


def _seen(x: Any, state: Any, weights: Any) -> Any:
    return x if isinstance(weights, float) else fc.add(x, fc.multiply(weights, state))


def _layer(gates: int, usual: Sequence[str], make: Callable[[_Direction, NodeCall, int], Step], states: int) -> Any:
    def build(call: NodeCall) -> list[Value]:
        x, by_batch = call[0], bool(call.attribute("layout"))
        if x.axis is not None:
            raise Refusal("missing", "a recurrent layer of a stream", "give a resident array")
        element = fc_axes.permute_dims(x.element, (1, 0, 2)) if by_batch else x.element
        steps, batch, _ = element.shape
        directions = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}
        turned = directions[call.choice("direction", tuple(directions))]
        if not 1 <= steps * len(turned) * 8 <= 8 * MOST_UNROLLED:
            raise Refusal("unbounded", f"{steps} steps", f"use at most {MOST_UNROLLED // len(turned)}")
        lengths = call.get(4)
        if lengths is not None and any(one != steps for one in lengths.ints("sequence_lens")):
            raise Refusal("missing", "sequences of unequal length", "pad them, and leave sequence_lens out")
        made, lasts = [], []
        for place, back in enumerate(turned):
            one = _Direction(call, place, gates, usual)
            step = make(one, call, place)
            carried = [_initial(call, 5 + at, place, batch, one.hidden, x.dtype, by_batch) for at in range(states)]
            results: list[Any] = [None] * steps
            for at in range(steps - 1, -1, -1) if back else range(steps):
                carried = list(step(one.projected(element[at]), carried))
                results[at] = carried[0]
            made.append(fc_axes.stack(results, axis=0))
            lasts.append(carried)
        # (steps, directions, batch, hidden), and (directions, batch, hidden) of each state.
        outputs = [fc_axes.stack(made, axis=1)]
        outputs += [fc_axes.stack([one[at] for one in lasts], axis=0) for at in range(states)]
        if by_batch:
            outputs[0] = fc_axes.permute_dims(outputs[0], (2, 0, 1, 3))
            outputs[1:] = [fc_axes.permute_dims(one, (1, 0, 2)) for one in outputs[1:]]
        return [Value.of(one) for one in outputs]

    return build


def _initial(call: NodeCall, at: int, place: int, batch: int, hidden: int, dtype: np.dtype, by_batch: bool) -> Any:
    """Return a state before the first step."""
    given = call.get(at)
    if given is None:
        return zeros((batch, hidden), dtype)
    element = given.resident("an initial state")
    return element[:, place] if by_batch else element[place]


_COMMON = {
    "activation_alpha": None,
    "activation_beta": None,
    "activations": None,
    "clip": None,
    "direction": "forward",
    "hidden_size": None,
    "layout": 0,
    "output_sequence": 0,
}

OPERATORS: tuple[Operator, ...] = (
    Operator("RNN", _layer(1, ("Tanh",), _rnn_step, 1), 7, attributes=_COMMON),
    Operator("GRU", _layer(3, ("Sigmoid", "Tanh"), _gru_step, 1), 7, attributes={**_COMMON, "linear_before_reset": 0}),
    Operator(
        "LSTM", _layer(4, ("Sigmoid", "Tanh", "Tanh"), _lstm_step, 2), 7, attributes={**_COMMON, "input_forget": 0}
    ),
)
