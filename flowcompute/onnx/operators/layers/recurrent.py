"""Recurrent layers: RNN, GRU and LSTM, as core's own; their gates stand in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flowcompute.elements.axes as fc_axes
import flowcompute.elements.math as fc
from flowcompute.elements import nn
from flowcompute.onnx.logical_value import APART, Value, repeated_beside
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

Activation = Callable[[Any], Any]


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


class _Direction(NamedTuple):
    """Operands of one direction of a layer.

    Attributes:
        call: the node.
        place: 0 or 1, where its weights stand.
        functions: its activations.
        hidden: numbers of a state.
    """

    call: NodeCall
    place: int
    functions: Sequence[Activation]
    hidden: int

    def weights(self, order: Sequence[int]) -> tuple[Any, Any, Any, Any]:
        """Return weights and biases of the inputs and of the state, whose gates stand in that order; as core has it."""
        w, r, bias = self.call[1].resident("W")[self.place], self.call[2].resident("R")[self.place], self.call.get(3)
        if bias is None:
            return self._ordered(w, order), self._ordered(r, order), None, None
        row, wide = bias.resident("B")[self.place], len(order) * self.hidden
        parts = (w, r, row[:wide], row[wide:])
        first, again, before, after = (self._ordered(one, order) for one in parts)
        return first, again, before, after

    def _ordered(self, one: Any, order: Sequence[int]) -> Any:
        if tuple(order) == tuple(range(len(order))):
            return one
        size = self.hidden
        return fc_axes.concat([one[gate * size : (gate + 1) * size] for gate in order], axis=0)


def _rnn(one: _Direction, x: Any, states: Sequence[Any], how: dict[str, Any]) -> tuple[Any, ...]:
    w, r, before, after = one.weights((0,))
    bias = None if before is None else fc.add(before, after)
    return nn.rnn(x, w, r, bias, initial=states[0], activation=one.functions[0], **how)


def _gru(one: _Direction, x: Any, states: Sequence[Any], how: dict[str, Any]) -> tuple[Any, ...]:
    # Update, reset, new; core has the reset first.
    w, r, before, after = one.weights((1, 0, 2))
    how = {**how, "reset_after": bool(one.call.attribute("linear_before_reset")), "activations": one.functions}
    return nn.gru(x, w, r, before, after, initial=states[0], **how)


def _lstm(one: _Direction, x: Any, states: Sequence[Any], how: dict[str, Any]) -> tuple[Any, ...]:
    # Input, output, forget, cell; core has input, forget, cell, output.
    w, r, before, after = one.weights((0, 2, 3, 1))
    bias, holes, size = None if before is None else fc.add(before, after), None, one.hidden
    given = one.call.get(7)
    if given is not None:
        row = given.resident("P")[one.place]
        holes = fc_axes.stack([row[at * size : (at + 1) * size] for at in (0, 2, 1)], axis=0)
    if one.call.attribute("input_forget"):
        _check_mirrored(one.call, one.place)
        w, r, bias = (None if each is None else _mirrored(each, size) for each in (w, r, bias))
        holes = None if holes is None else _mirrored(holes, 1)
    initial = None
    if any(state is not None for state in states):
        other = next(state for state in states if state is not None)
        initial = [fc.multiply(other, 0) if state is None else state for state in states]
    return nn.lstm(x, w, r, bias, initial=initial, peephole=holes, activations=one.functions, **how)


def _mirrored(one: Any, size: int) -> Any:
    """Return rows of gates in which those of forgetting are the opposites of those of the input."""
    return fc_axes.concat([one[:size], fc.negative(one[:size]), one[2 * size :]], axis=0)


def _check_mirrored(call: NodeCall, place: int) -> None:
    """Check that 1 - f(x) is f(-x)."""
    names = call.node.attributes.get("activations")
    name = "sigmoid" if names is None else names[3 * place].lower()
    betas = call.attribute("activation_beta")
    if name != "sigmoid" and (name != "hardsigmoid" or (betas and betas[0] != 0.5)):
        raise Refusal("missing", f"input_forget=1 with {name}", "use Sigmoid for the gates")


Layer = Callable[[_Direction, Any, Sequence[Any], dict[str, Any]], tuple[Any, ...]]
"""Runs one direction over (N, steps, inputs): the states at all steps, and the last ones."""


def _layer(usual: Sequence[str], run: Layer, states: int) -> Any:
    def build(call: NodeCall) -> list[Value]:
        x, by_batch = call[0], bool(call.attribute("layout"))
        if x.ndim != 3:
            raise Refusal("invalid", f"sequences {x.shape}", "correct the model")
        records = 0 if by_batch else 1
        if x.axis not in (None, records):
            raise Refusal("batch axis", "a recurrent layer over the records", f"set batch_axis= to axis {records}")
        steps = x.size(1 - records)
        element = x.element if by_batch or x.axis is not None else fc_axes.permute_dims(x.element, (1, 0, 2))
        directions = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}
        turned = directions[call.choice("direction", tuple(directions))]
        if not 1 <= steps * len(turned) <= MOST_UNROLLED:
            raise Refusal("unbounded", f"{steps} steps", f"use at most {MOST_UNROLLED // len(turned)}")
        made, lasts = [], []
        for place, back in enumerate(turned):
            hidden = call.attribute("hidden_size") or call[2].size(2)
            one = _Direction(call, place, _activations(call, usual, place), hidden)
            begin = [_initial(call, 5 + at, place, x, records) for at in range(states)]
            every, *last = run(one, element, begin, {"reverse": bool(back), "lengths": _lengths(call, x, steps)})
            made.append(every)
            lasts.append(last)
        # (N, steps, directions, hidden), and (N, directions, hidden) of each state.
        outputs = [fc_axes.stack(made, axis=2)]
        outputs += [fc_axes.stack([one[at] for one in lasts], axis=1) for at in range(states)]
        if x.axis is None and not by_batch:
            outputs = [
                fc_axes.permute_dims(one, order)
                for one, order in zip(outputs, ((1, 2, 0, 3), *[(1, 0, 2)] * states), strict=True)
            ]
        if x.axis is None:
            return [Value.of(one) for one in outputs]
        places = [0] * len(outputs) if by_batch else [2, *[1] * states]
        return [x.like(one, place) for one, place in zip(outputs, places, strict=True)]

    return build


def _lengths(call: NodeCall, x: Value, steps: int) -> Any:
    """Return how many steps of each record count; None where all do."""
    given = call.get(4)
    if given is None or (given.known is not None and all(one == steps for one in given.known.reshape(-1))):
        return None
    if x.axis is None or given.axis == 0:
        return given.resident("sequence_lens") if x.axis is None else given.element
    if given.size(0) != 1:
        raise Refusal("batch axis", "lengths of a resident value beside a stream", "give sequence_lens as a stream")
    return repeated_beside(fc_axes.squeeze(given.element, 0), x.element)


def _initial(call: NodeCall, at: int, place: int, x: Value, records: int) -> Any:
    """Return a state before the first step, (hidden,) or one of each record; None for zeros."""
    given = call.get(at)
    if given is None:
        return None
    if x.axis is None:
        element = given.resident("an initial state")
        return element[place] if records else element[:, place]
    if given.axis is None:
        if given.size(records) != 1:
            raise Refusal("batch axis", "states of a resident value beside a stream", "give the states as a stream")
        return fc_axes.reshape(given.element, (-1, given.size(2)))[place]
    if given.axis != records:
        raise Refusal("batch axis", f"a state whose records stand along axis {given.axis}", APART)
    return given.element[:, place]


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
    Operator("RNN", _layer(("Tanh",), _rnn, 1), 7, attributes=_COMMON),
    Operator("GRU", _layer(("Sigmoid", "Tanh"), _gru, 1), 7, attributes={**_COMMON, "linear_before_reset": 0}),
    Operator("LSTM", _layer(("Sigmoid", "Tanh", "Tanh"), _lstm, 2), 7, attributes={**_COMMON, "input_forget": 0}),
)
