"""Recurrent layers: a plain one, LSTM and GRU, step by step through time, which is the first axis of items.

What the inputs give is one product of all steps. Each step then is a product of the state with the recurrent weights,
and the gates beside it. So a step takes a launch or three, and sequences of a batch run beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowcompute.elements.arguments import flag, several
from flowcompute.elements.axes import stack
from flowcompute.elements.calls import public
from flowcompute.elements.compute import Operand, as_element, cast
from flowcompute.elements.element import Element
from flowcompute.elements.math import cut_along, greater, matmul, tanh, where
from flowcompute.elements.nn.activations import sigmoid
from flowcompute.elements.nn.floating import as_floats
from flowcompute.elements.site import user_site
from flowcompute.errors import FlowError, SpecError, short_repr

MOST_STEPS = 1024
"""Steps through time: each has operations of its own."""

Activation = Callable[[Any], Any]
"""A function of numbers, as `fc.tanh` or `fc.nn.sigmoid`."""


class _Layer(NamedTuple):
    """A layer's operands in the dtype that it is computed in.

    Attributes:
        given: by time, what inputs and bias give each gate, (records, gates * hidden) each.
        recurrent: (hidden, gates * hidden).
        states: what the layer begins with; None for zeros.
        extras: the other operands.
        there: by time, whether the sequence still runs; None where all run to the end.
        hidden: numbers of a state.
        order: in which times are gone through.
    """

    given: list[Any]
    recurrent: Any
    states: list[Any]
    extras: list[Any]
    there: list[Any] | None
    hidden: int
    order: list[int]


@public
def rnn(
    x: Operand,
    weight: Operand,
    recurrent: Operand,
    bias: Operand | None = None,
    *,
    initial: Operand | None = None,
    lengths: Operand | None = None,
    reverse: bool = False,
    activation: Activation = tanh,
) -> tuple[Any, Any]:
    """Run a plain recurrent layer: `h = activation(x[t] @ weight.T + bias + h @ recurrent.T)`.

    Args:
        x: a stream of items (time, inputs), or a resident value (N, time, inputs); of 1 to 1024 times.
        weight: resident, (hidden, inputs).
        recurrent: resident, (hidden, hidden).
        bias: resident, (hidden,).
        initial: the state at first, (hidden,) for all or one of each record; zeros by default.
        lengths: how many times of each record count, integers. States stay as they are behind them, and results are 0.
        reverse: whether time runs from the end to the beginning. A layer of both directions is
            `fc.concat([forwards, backwards], axis=2)`.
        activation: a function of numbers.

    Returns:
        The states at all times, (time, hidden) for each record, and the last state. Both have the dtype that the
        operands promote to; half formats are computed in float32.

    Raises:
        SpecError: for shapes that do not fit each other, or weights that are a stream.
    """
    layer, dtype = _layer("rnn", 1, x, weight, recurrent, bias, [initial], [], lengths, reverse)
    (act,) = _functions("rnn", [activation], 1)

    def step(given: Any, states: list[Any]) -> list[Any]:
        (h,) = states
        return [act(given if h is None else given + matmul(h, layer.recurrent))]

    every, (last,) = _run(layer, step)
    return cast(every, dtype), cast(last, dtype)


@public
def lstm(
    x: Operand,
    weight: Operand,
    recurrent: Operand,
    bias: Operand | None = None,
    *,
    initial: Sequence[Operand] | None = None,
    peephole: Operand | None = None,
    lengths: Operand | None = None,
    reverse: bool = False,
    activations: Sequence[Activation] = (sigmoid, tanh, tanh),
) -> tuple[Any, Any, Any]:
    """Run a layer of long short-term memory (S. Hochreiter and J. Schmidhuber, 1997; with forget gates).

    With gates `i, f, g, o` of `x[t] @ weight.T + bias + h @ recurrent.T`, in PyTorch's order:
    `c = sigmoid(f) * c + sigmoid(i) * tanh(g)`, `h = sigmoid(o) * tanh(c)`.

    Args:
        x: a stream of items (time, inputs), or a resident value (N, time, inputs); of 1 to 1024 times.
        weight: resident, (4 hidden, inputs).
        recurrent: resident, (4 hidden, hidden).
        bias: resident, (4 hidden,).
        initial: the states h and c at first, (hidden,) for all or one of each record; zeros by default.
        peephole: resident, (3, hidden): times c it is added to i, f and (times the new c) to o.
        lengths, reverse: as of `rnn`.
        activations: in place of sigmoid, of tanh of g, and of tanh of c.

    Returns:
        The states h at all times, the last h, and the last c; see `rnn`.

    Raises:
        SpecError: as `rnn`.
    """
    first = [None, None] if initial is None else several("lstm", "initial", initial, "h and c")
    if len(first) != 2:
        raise SpecError(
            "cannot take initial=", element="lstm", site=user_site(), expected="h and c", got=short_repr(initial)
        )
    layer, dtype = _layer("lstm", 4, x, weight, recurrent, bias, first, [peephole], lengths, reverse)
    gate, inner, outer = _functions("lstm", activations, 3)
    (holes,) = layer.extras
    if holes is not None:
        _shaped("lstm", "peephole", holes, (3, layer.hidden))

    def step(given: Any, states: list[Any]) -> list[Any]:
        h, c = states
        every = given if h is None else given + matmul(h, layer.recurrent)
        i, f, g, o = _gates(every, 4, layer.hidden)
        if holes is not None and c is not None:
            i, f = i + holes[0] * c, f + holes[1] * c
        new = gate(i) * inner(g)
        new = new if c is None else gate(f) * c + new
        return [gate(o if holes is None else o + holes[2] * new) * outer(new), new]

    every, (last, cell) = _run(layer, step)
    return cast(every, dtype), cast(last, dtype), cast(cell, dtype)


@public
def gru(
    x: Operand,
    weight: Operand,
    recurrent: Operand,
    bias: Operand | None = None,
    recurrent_bias: Operand | None = None,
    *,
    initial: Operand | None = None,
    lengths: Operand | None = None,
    reverse: bool = False,
    reset_after: bool = True,
    activations: Sequence[Activation] = (sigmoid, tanh),
) -> tuple[Any, Any]:
    """Run a layer of gated recurrent units (K. Cho et al., 2014).

    With `r, z, n` of `x[t] @ weight.T + bias`, and `R, Z, M` of `h @ recurrent.T + recurrent_bias`, in PyTorch's order:
    `r = sigmoid(r + R)`, `z = sigmoid(z + Z)`, `n = tanh(n + r * M)`, `h = (1 - z) * n + z * h`.

    Args:
        x: a stream of items (time, inputs), or a resident value (N, time, inputs); of 1 to 1024 times.
        weight: resident, (3 hidden, inputs).
        recurrent: resident, (3 hidden, hidden).
        bias: resident, (3 hidden,).
        recurrent_bias: resident, (3 hidden,).
        initial, lengths, reverse: as of `rnn`.
        reset_after: whether the product comes before the reset, as above. If not, M is that of `r * h`.
        activations: in place of sigmoid and tanh.

    Returns:
        The states at all times, and the last one; see `rnn`.

    Raises:
        SpecError: as `rnn`.
    """
    extras = [recurrent_bias]
    layer, dtype = _layer("gru", 3, x, weight, recurrent, bias, [initial], extras, lengths, reverse)
    gate, inner = _functions("gru", activations, 2)
    after, size = flag("gru", "reset_after", reset_after), layer.hidden
    (added,) = layer.extras
    if added is not None:
        _shaped("gru", "recurrent_bias", added, (3 * size,))

    def product(h: Any, start: int, stop: int) -> Any:
        """Return what the state gives some of the gates; None for nothing."""
        rows = slice(start * size, stop * size)
        made = None if h is None else matmul(h, layer.recurrent[:, rows])
        return made if added is None else added[rows] if made is None else made + added[rows]

    def step(given: Any, states: list[Any]) -> list[Any]:
        (h,) = states
        r, z, n = _gates(given, 3, size)
        beside = product(h, 0, 3 if after else 2)
        if beside is not None:
            r, z = r + beside[..., :size], z + beside[..., size : 2 * size]
        r, z = gate(r), gate(z)
        if after:
            n = n if beside is None else n + r * beside[..., 2 * size :]
        else:
            more = product(None if h is None else r * h, 2, 3)
            n = n if more is None else n + more
        n = inner(n)
        return [(1 - z) * n if h is None else (1 - z) * n + z * h]

    every, (last,) = _run(layer, step)
    return cast(every, dtype), cast(last, dtype)


def _layer(
    name: str,
    gates: int,
    x: Operand,
    weight: Operand,
    recurrent: Operand,
    bias: Operand | None,
    initial: Sequence[Operand | None],
    extras: Sequence[Operand | None],
    lengths: Operand | None,
    reverse: bool,
) -> tuple[_Layer, Any]:
    """Check what a layer is given; return it in the dtype that it is computed in, and the dtype of its results."""
    given = [bias, *initial, *extras]
    operands, dtype = as_floats(name, x, weight, recurrent, *(one for one in given if one is not None))
    items, weights, states, *rest = operands
    remaining = iter(rest)
    added, *others = (None if one is None else next(remaining) for one in given)
    if items.ndim != 3 or not 1 <= items.shape[1] <= MOST_STEPS:
        raise SpecError(
            "cannot run a layer along time of this",
            element=name,
            site=user_site(),
            expected=f"(N, time, inputs) of 1 to {MOST_STEPS} times",
            got=str(items.spec),
        )
    hidden = states.spec.shape[-1] if states.spec.shape else 0
    _shaped(name, "recurrent", states, (gates * hidden, hidden))
    _shaped(name, "weight", weights, (gates * hidden, items.shape[2]))
    if added is not None:
        _shaped(name, "bias", added, (gates * hidden,))
    firsts = others[: len(initial)]
    for one in firsts:
        if one is not None and one.spec.shape[-1:] != (hidden,):
            raise SpecError(
                "cannot begin with this state",
                element=name,
                site=user_site(),
                expected=f"({hidden},), or one of each record",
                got=str(one.spec),
            )
    every = matmul(items, weights.T)
    every = every if added is None else every + added
    times = range(items.shape[1])
    there = None
    if lengths is not None:
        counts = as_element(lengths, name)
        if counts.dtype.kind not in "iu" or counts.ndim != 1:
            raise SpecError(
                "cannot take lengths=",
                element=name,
                site=user_site(),
                expected="an integer for each record",
                got=str(counts.spec),
            )
        counts = cut_along(name, counts, items) if items.spec.is_stream else counts
        there = [greater(counts, time)[:, None] for time in times]
    order = list(reversed(times)) if flag(name, "reverse", reverse) else list(times)
    steps = [every[:, time] for time in times]
    return _Layer(steps, states.T, list(firsts), others[len(initial) :], there, hidden, order), dtype


def _run(layer: _Layer, step: Callable[[Any, list[Any]], list[Any]]) -> tuple[Any, list[Any]]:
    """Go through time; return the first state at all times, and all states at the end."""
    states, made = layer.states, [None] * len(layer.order)
    results: list[Any] = made
    for time in layer.order:
        new = step(layer.given[time], states)
        results[time] = new[0]
        if layer.there is not None:
            runs = layer.there[time]
            results[time] = where(runs, new[0], 0)
            # Behind its end a sequence keeps the state that it has.
            new = [where(runs, one, 0 if old is None else old) for one, old in zip(new, states, strict=True)]
        states = new
    return stack(results, axis=1), states


def _gates(every: Any, gates: int, hidden: int) -> list[Any]:
    return [every[..., gate * hidden : (gate + 1) * hidden] for gate in range(gates)]


def _functions(name: str, given: Any, count: int) -> list[Activation]:
    functions = several(name, "activations", given, "functions")
    if len(functions) != count or not all(callable(one) for one in functions):
        raise _no_activation(name, count, short_repr(given))
    return [_applied(name, count, one) for one in functions]


def _applied(name: str, count: int, function: Activation) -> Activation:
    """Return a function that says which layer applied another one, where that fails or changes shape or dtype."""

    def apply(x: Any) -> Any:
        try:
            made = function(x)
        except FlowError:
            raise
        except Exception as error:
            raise _no_activation(name, count, f"{type(error).__name__}: {error}") from error
        if not isinstance(made, Element) or made.spec != x.spec:
            raise _no_activation(name, count, f"a function that returns {short_repr(made)}")
        return made

    return apply


def _no_activation(name: str, count: int, got: str) -> SpecError:
    return SpecError(
        "cannot take these activations",
        element=name,
        site=user_site(),
        expected=f"{count} function{'s' if count > 1 else ''} of numbers",
        got=got,
    )


def _shaped(name: str, what: str, one: Any, shape: tuple[int, ...]) -> None:
    if one.spec.is_stream or one.spec.shape != shape or 0 in shape:
        raise SpecError(
            f"cannot take {what}=",
            element=name,
            site=user_site(),
            expected=f"a resident {shape}",
            got=str(one.spec),
        )
