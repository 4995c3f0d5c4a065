"""Rules by which cotangents pass through operations: one for each record, found by the name that kept jobs have for it.

A rule takes an operation and the cotangent of its result, and returns one for each operand. Rules are linear in the
cotangent: a resident number that scales it stays outside, and is multiplied after a fold (see `cotangents`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowcompute.elements import Compute, Element, user_site
from flowcompute.errors import SpecError
from flowcompute.imports import dataclass


@dataclass(frozen=True)
class Scaled:
    """A cotangent times a resident number, which is left for later.

    Attributes:
        scale: a resident number.
        value: what it scales.
    """

    scale: Element
    value: Element


@dataclass(frozen=True)
class Through:
    """A cotangent of what an operand is a view of: it skips views that no user sees.

    Attributes:
        viewed: an element that the operand is made of, by views alone.
        value: its cotangent.
    """

    viewed: Element
    value: Element


@dataclass(frozen=True)
class Equivalent:
    """Another expression of the same value, whose operations have rules.

    Attributes:
        value: made of the operands of the operation.
    """

    value: Element


@dataclass(frozen=True)
class Refused:
    """A reason why an operation has no gradient although its result depends on its operands.

    Attributes:
        expected: what could be differentiated.
        hint: what to do.
    """

    expected: str
    hint: str


class NoGradient:
    """The rule of an operation whose result does not change, or jumps, where its operands change a little."""


Contribution = Element | Scaled | Through | None
Vjp = Callable[[Compute, Any], Sequence[Contribution] | Equivalent]
"""`vjp(operation, cotangent of its result)`; the cotangent may lack axes along which it has one value."""

Rule = Vjp | Refused | NoGradient
NO_GRADIENT = NoGradient()

RULES: dict[str, Rule] = {}
"""The rule of each operation by its kept name, as "elementwise.sin"."""


def rule(*names: str) -> Callable[[Vjp], Vjp]:
    """Register a function as the rule of operations."""

    def registered(vjp: Vjp) -> Vjp:
        for name in names:
            assert name not in RULES, name
            RULES[name] = vjp
        return vjp

    return registered


def no_gradient(kind: str, names: str) -> None:
    """Register operations of a kind, their names apart by spaces, as such without a gradient."""
    RULES.update({f"{kind}.{name}": NO_GRADIENT for name in names.split()})


def refused(kind: str, names: str, expected: str, hint: str) -> None:
    """Register operations of a kind as refused where a gradient would pass through them."""
    RULES.update({f"{kind}.{name}": Refused(expected, hint) for name in names.split()})


def refusal(node: Compute, expected: str, hint: str) -> SpecError:
    """Return the error of an operation that has no gradient, with the user's line."""
    return SpecError(
        f"cannot find the gradient of {node.op.name}",
        element=node.name or node.label,
        site=node.site or user_site(),
        expected=expected,
        got=str(node.spec),
        hint=hint,
    )
