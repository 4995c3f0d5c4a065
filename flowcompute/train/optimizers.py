"""Optimizers: pure functions over elements, from a gradient to the next value of a parameter.

An optimizer has no state of its own. Its state of a parameter is some resident values, which whoever trains carries
from update to update. All arithmetic is in float32, or in float64 for parameters of float64, in the order of the
formulas below; a product is rounded before it is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowcompute.elements import Element, as_element, cast, user_site
from flowcompute.elements.arguments import flag, meant, several
from flowcompute.elements.creation import zeros
from flowcompute.elements.math import expm1, sqrt
from flowcompute.errors import SpecError, short_repr
from flowcompute.spec import FLOAT32, FLOAT64, Spec, is_float
from flowcompute.train.schedules import Rate, checked_rate, rate_at
from flowcompute.train.settings import as_call, between, called

Init = Callable[[Any], Sequence[Any]]
"""Returns what the state of a parameter begins with."""

Update = Callable[[Any, tuple[Any, ...], Any, Any], tuple[Any, Sequence[Any]]]
"""Takes gradient, state, parameter and number of the update, from 1 on; returns the next parameter and state."""

MOST_STATE_VALUES = 16
"""Values that the state of one parameter may have."""


class Optimizer:
    """A way to update parameters by gradients: two pure functions over elements.

    Attributes:
        init: takes a parameter and returns the values that its state begins with: resident values, or arrays.
        update: takes the gradient of a parameter, its state as a tuple, the parameter, and the number of the update.
            Returns the next parameter and its state. The number is a resident int64, 1 for the first update.
        name: the function that made it.
        settings: what it was called with, by name; each prints.
    """

    init: Init
    update: Update
    name: str
    settings: Mapping[str, object]

    __slots__ = ("init", "name", "settings", "update")

    def __init__(
        self, init: Init, update: Update, *, name: str = "Optimizer", settings: Mapping[str, object] | None = None
    ) -> None:
        for what, value in (("init", init), ("update", update)):
            if not callable(value):
                raise SpecError(
                    f"cannot take {what}=",
                    element="Optimizer",
                    site=user_site(),
                    expected="a function over elements",
                    got=short_repr(value),
                )
        self.init = init
        self.update = update
        self.name = name
        self.settings = dict(settings or {})

    def __repr__(self) -> str:
        return as_call(self.name, self.settings)

    def begin(self, parameter: Element) -> tuple[Element, ...]:
        """Return the state of a parameter before the first update.

        Args:
            parameter: a resident value of a float dtype.

        Raises:
            SpecError: if `init` gives anything but resident values.
        """
        if parameter.spec.is_stream or not is_float(parameter.dtype):
            raise self._refused("a resident parameter of floats", str(parameter.spec))
        return self._state(called(self.name, "init", self.init, parameter))

    def advance(
        self, gradient: Element, state: Sequence[Element], parameter: Element, step: Element
    ) -> tuple[Element, tuple[Element, ...]]:
        """Return a parameter and its state after an update.

        Args:
            gradient: of the loss, of the parameter's shape.
            state: what the update before gave, or `begin`.
            parameter: its value before.
            step: the number of the update, a resident int64 from 1 on.

        Raises:
            SpecError: if `update` gives values of other dtypes or shapes than it took: these could not be carried on.
        """
        if gradient.spec.shape != parameter.spec.shape:
            raise self._refused(f"a gradient {parameter.spec}", str(gradient.spec))
        operands = (gradient, tuple(state), parameter, step)
        takes = " (gradient, state, parameter, number of the update)"
        value, after = self._pair(called(self.name, "update", self.update, *operands, takes=takes))
        taken, made = ([one.spec for one in ones] for ones in ((parameter, *state), (value, *after)))
        if taken != made:
            raise self._refused(f"update to keep dtypes and shapes: {_listed(taken)}", _listed(made))
        return value, after

    def _pair(self, given: Any) -> tuple[Element, tuple[Element, ...]]:
        if isinstance(given, tuple | list) and len(given) == 2:
            return self._value(given[0]), self._state(given[1])
        raise self._refused("update to return the next parameter and the next state", short_repr(given))

    def _state(self, values: Any) -> tuple[Element, ...]:
        listed = several(self.name, "state", values, "a list of resident values", MOST_STATE_VALUES)
        return tuple(self._value(one) for one in listed)

    def _value(self, value: Any) -> Element:
        element = as_element(value, self.name)
        if element.spec.is_stream:
            raise self._refused("resident values", str(element.spec))
        return element

    def _refused(self, expected: str, got: str) -> SpecError:
        return SpecError(
            "cannot update by this optimizer", element=self.name, site=user_site(), expected=expected, got=got
        )


def _listed(specs: Sequence[Spec]) -> str:
    return ", ".join(map(str, specs))


@meant(lr="rate", learning_rate="rate")
def sgd(rate: Rate, *, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0) -> Optimizer:
    """Return stochastic gradient descent: p - rate * g.

    With d = g + weight_decay * p, and a momentum: v = momentum * v + d, which begins as 0. Then the next p is
    p - rate * v; of Nesterov's it is p - rate * (d + momentum * v). These are the formulas of Sutskever and others,
    "On the importance of initialization and momentum in deep learning" (2013), with the rate outside of v.

    Args:
        rate: a number, or a function of the number of the update; see `fc.train.cosine`.
        momentum: from 0 on and below 1.
        nesterov: whether the momentum is Nesterov's.
        weight_decay: 0 or more.

    Raises:
        SpecError: for a number out of range, or Nesterov's momentum of 0.
    """
    rate = checked_rate("sgd", rate)
    mu = between("sgd", "momentum", momentum, 0, 1, open_at_most=True)
    ahead = flag("sgd", "nesterov", nesterov)
    decay = between("sgd", "weight_decay", weight_decay, 0)
    if ahead and not mu:
        raise SpecError(
            "cannot take nesterov=", element="sgd", site=user_site(), expected="a momentum above 0", got="momentum=0"
        )

    def init(parameter: Element) -> tuple[Element, ...]:
        return _zeros(parameter, 1) if mu else ()

    def update(
        gradient: Element, state: tuple[Element, ...], parameter: Element, step: Element
    ) -> tuple[Element, tuple[Element, ...]]:
        g, p, number = _in_one_dtype(gradient, parameter, step)
        d = g + decay * p if decay else g
        if not mu:
            return cast(p - rate_at("sgd", rate, number) * d, parameter.dtype), ()
        v = mu * state[0] + d
        direction = d + mu * v if ahead else v
        return cast(p - rate_at("sgd", rate, number) * direction, parameter.dtype), (v,)

    settings = {"rate": rate, "momentum": mu, "nesterov": ahead, "weight_decay": decay}
    return Optimizer(init, update, name="sgd", settings=settings)


@meant(lr="rate", learning_rate="rate")
def adam(rate: Rate = 1e-3, *, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8) -> Optimizer:
    """Return Adam: p - rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps), with t = 1 for the first update.

    The moments are m = b1 * m + (1 - b1) * g and v = b2 * v + (1 - b2) * (g * g); both begin as 0.
    1 - b^t is computed as -expm1(t * log(b)). Kingma and Ba, "Adam: a method for stochastic optimization" (2015).

    Args:
        rate: a number, or a function of the number of the update; see `fc.train.cosine`.
        betas: b1 and b2, from 0 on and below 1.
        eps: above 0.

    Raises:
        SpecError: for a number out of range.
    """
    rate, (b1, b2), small = checked_rate("adam", rate), _betas("adam", betas), _eps("adam", eps)
    return _adam("adam", rate, b1, b2, small, 0.0, {"rate": rate, "betas": (b1, b2), "eps": small})


@meant(lr="rate", learning_rate="rate")
def adamw(
    rate: Rate = 1e-3, *, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01
) -> Optimizer:
    """Return Adam with decoupled weight decay: p - rate * (a + weight_decay * p), where Adam is p - rate * a.

    Loshchilov and Hutter, "Decoupled weight decay regularization" (2019).

    Args:
        rate: a number, or a function of the number of the update; see `fc.train.cosine`.
        betas: b1 and b2, from 0 on and below 1.
        eps: above 0.
        weight_decay: 0 or more.

    Raises:
        SpecError: for a number out of range.
    """
    rate, (b1, b2), small = checked_rate("adamw", rate), _betas("adamw", betas), _eps("adamw", eps)
    decay = between("adamw", "weight_decay", weight_decay, 0)
    settings = {"rate": rate, "betas": (b1, b2), "eps": small, "weight_decay": decay}
    return _adam("adamw", rate, b1, b2, small, decay, settings)


def _adam(
    name: str, rate: Rate, b1: float, b2: float, eps: float, decay: float, settings: Mapping[str, object]
) -> Optimizer:
    def init(parameter: Element) -> tuple[Element, ...]:
        return _zeros(parameter, 2)

    def update(
        gradient: Element, state: tuple[Element, ...], parameter: Element, step: Element
    ) -> tuple[Element, tuple[Element, ...]]:
        g, p, number = _in_one_dtype(gradient, parameter, step)
        m = b1 * state[0] + (1.0 - b1) * g
        v = b2 * state[1] + (1.0 - b2) * (g * g)
        direction = (m / _unbiased(b1, number)) / (sqrt(v / _unbiased(b2, number)) + eps)
        if decay:
            direction = direction + decay * p
        return cast(p - rate_at(name, rate, number) * direction, parameter.dtype), (m, v)

    return Optimizer(init, update, name=name, settings=settings)


def _unbiased(beta: float, number: Element) -> Any:
    """Return 1 - beta^t without cancellation: in float32 the power itself would lose digits for a beta near 1."""
    return -expm1(number * math.log(beta)) if beta else 1.0


def _betas(op: str, betas: object) -> tuple[float, float]:
    listed = several(op, "betas", betas, "two numbers", 2)
    if len(listed) != 2:
        raise SpecError("cannot take betas=", element=op, site=user_site(), expected="two numbers",
                        got=short_repr(betas))  # fmt: skip
    first, second = (between(op, "betas", one, 0, 1, open_at_most=True) for one in listed)
    return first, second


def _eps(op: str, eps: object) -> float:
    small = between(op, "eps", eps, 0)
    if not small:
        raise SpecError("cannot take eps=", element=op, site=user_site(), expected="above 0", got="0")
    return small


def _zeros(parameter: Element, count: int) -> tuple[Element, ...]:
    """Return values of 0 of a parameter's shape."""
    dtype = FLOAT64 if parameter.dtype == FLOAT64 else FLOAT32
    return tuple(zeros(parameter.spec.shape, dtype=dtype) for _ in range(count))


def _in_one_dtype(*values: Element) -> tuple[Element, ...]:
    """Return gradient, parameter and number in the dtype of the update's arithmetic."""
    dtype = FLOAT64 if values[1].dtype == FLOAT64 else FLOAT32
    return tuple(cast(value, dtype) for value in values)
