"""Reverse-mode gradients as a rewrite from graph to graph: `fc.grad`.

From the loss back to what it depends on, each operation's rule turns the cotangent of its result into those of its
operands. (Griewank and Walther, "Evaluating Derivatives", 2008, chapter 3.) The result is ordinary elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from flowcompute.elements import CAST, Compute, Constant, Element, Kind, as_element, cast, public, user_site
from flowcompute.elements.creation import zeros_like
from flowcompute.elements.functions import HostFunction, SourceOp, UserOp
from flowcompute.elements.math import add, multiply
from flowcompute.errors import SpecError, short_repr
from flowcompute.gradients.cotangents import Term, full, summed_to, wide
from flowcompute.gradients.kernel_tangents import kernel_gradient
from flowcompute.gradients.recomputing import computed_again
from flowcompute.gradients.rules import NO_GRADIENT, RULES, Equivalent, NoGradient, Refused, Scaled, Through, refusal
from flowcompute.graph import postorder
from flowcompute.spec import BOOL, FLOAT64, is_float

Cotangent = list[Term]


@public
def grad(loss: Element, wrt: Element | Sequence[Element]) -> Any:
    """Return the gradient of a number with respect to elements, as elements of their shapes and dtypes.

    Nothing is computed before a verb asks. Of a stream the gradient is a stream, of a resident value a fold over what
    it was used with. Resident factors such as the 1/N of a mean are multiplied after the fold, so that a mean loss is
    one reading of the file. Gradients can be differentiated again.

    Args:
        loss: a resident number.
        wrt: an element on which the loss depends, or several of them, of float dtypes.

    Returns:
        One element, or a tuple of as many as `wrt` names. Where one of them is made of another, the gradient of the
        other counts what it does through the one too.

    Raises:
        SpecError: if the loss is no number or does not depend on one of `wrt`. Also if one is of another dtype than
            floats, or an operation between them has no gradient.
    """
    total = as_element(loss, "grad")
    alone = isinstance(wrt, Element)
    leaves: list[Any] = [wrt] if isinstance(wrt, Element) else list(wrt) if isinstance(wrt, list | tuple) else []
    if not leaves or not all(isinstance(one, Element) for one in leaves):
        raise SpecError(
            "cannot differentiate with respect to this",
            element="grad",
            site=user_site(),
            expected="an element, or a list or tuple of elements",
            got=short_repr(wrt),
        )
    made = tuple(times_gradient(total, leaves, Constant(np.ones((), _slope_dtype(total)))))
    return made[0] if alone else made


def times_gradient(loss: Any, leaves: Sequence[Any], factor: Element) -> list[Element]:
    """Return the gradient of a number times a factor, which all cotangents have on their way.

    Args:
        loss: a resident number.
        leaves: elements that it depends on.
        factor: a resident number. A loss that is multiplied by one gives the same, but leaves it for the end.

    Raises:
        SpecError: as `grad`.
    """
    _check(loss, leaves)
    found = pulled(loss, [Term(None, cast(factor, _slope_dtype(loss)))], leaves, through=True)
    return [_whole(leaf, found.get(id(leaf), [])) for leaf in leaves]


def _check(loss: Any, leaves: Sequence[Any]) -> None:
    if loss.spec.is_stream or loss.ndim or loss.dtype == BOOL:
        raise SpecError(
            "cannot differentiate what is no number",
            element="grad",
            site=user_site(),
            expected="a loss that is one resident number",
            got=str(loss.spec),
            hint="sum it, or take its mean",
        )
    above = {id(one) for one in _ordered([loss], ())}
    for leaf in leaves:
        if not is_float(leaf.dtype):
            raise SpecError(
                "cannot differentiate with respect to this",
                element="grad",
                site=user_site(),
                expected="an element of a float dtype",
                got=str(leaf.spec),
            )
        if id(leaf) not in above:
            raise SpecError(
                "cannot differentiate with respect to what the loss does not depend on",
                element="grad",
                site=user_site(),
                expected="an element that the loss depends on",
                got=str(leaf.spec) if leaf.name is None else leaf.name,
            )


def pulled(
    root: Element, cotangent: Cotangent, leaves: Iterable[Element], *, through: bool = False
) -> dict[int, Cotangent]:
    """Pull the cotangent of a value back to those that it depends on.

    Args:
        root: the value.
        cotangent: of it.
        leaves: what it is pulled back to.
        through: pass on through leaves that depend on other leaves; else what they depend on is not visited.

    Returns:
        The cotangents of the leaves, by their `id`.

    Raises:
        SpecError: if an operation in between has no gradient.
    """
    ends = {id(leaf) for leaf in leaves}
    stops = set() if through else ends
    order = _ordered([root], stops)
    passing = _passing(order, ends) - stops
    twins = computed_again(order, ends)
    first = {id(twin): key for key, twin in twins.items()}
    live = passing | ends
    live.update(id(twin) for key, twin in twins.items() if key in live)
    found: dict[int, Cotangent] = {id(root): list(cotangent)}
    for node in reversed(order):
        terms = found.get(id(node))
        if not terms or id(node) not in passing:
            continue
        assert isinstance(node, Compute)
        for operand, term in _passed(twins.get(id(node), node), _merged(terms), live):
            found.setdefault(first.get(id(operand), id(operand)), []).append(term)
    return {end: found[end] for end in ends if end in found}


def _ordered(roots: Sequence[Element], ends: Any) -> list[Element]:
    by_id = {id(root): root for root in roots}

    def operands(key: int) -> list[int]:
        inputs = () if key in ends else by_id[key].inputs
        by_id.update((id(one), one) for one in inputs)
        return [id(one) for one in inputs]

    return [by_id[key] for key in postorder([id(root) for root in roots], operands)]


def _passing(order: Sequence[Element], ends: set[int]) -> set[int]:
    """Return the values through which a gradient flows to the ends, by `id`."""
    found: set[int] = set()
    for node in order:
        if any(id(one) in ends or id(one) in found for one in node.inputs) and not isinstance(
            rule_of(node), NoGradient
        ):
            found.add(id(node))
    return found


def rule_of(node: Any) -> Any:
    """Return the rule of an operation."""
    if isinstance(node, Compute) and node.op is CAST and not is_float(node.dtype):
        return NO_GRADIENT
    if not isinstance(node, Compute):
        return NO_GRADIENT
    op = node.op
    # Not by their names, which users choose.
    if isinstance(op, UserOp | SourceOp):
        if op.vjp is not None:
            return functools.partial(_own, op.vjp)
        return kernel_gradient if isinstance(op, UserOp) else _OPENCL
    if isinstance(node, HostFunction) and node.vjp is not None:
        return functools.partial(_own, node.vjp)
    return RULES.get(op.kept_name, _UNKNOWN)


def _own(vjp: Callable[..., Any], node: Compute, g: Any) -> Sequence[Any]:
    """Ask the gradient that a user gave to a function."""
    op = node.op
    place, count = (op.result, len(op.function.results)) if isinstance(op, UserOp) else (0, 1)
    cotangents = [full(node, g) if i == place else zeros_like(node, _slope_dtype(node)) for i in range(count)]
    given = vjp(*node.inputs, *cotangents)
    made = given if isinstance(given, tuple | list) else (given,)
    if len(made) != len(node.inputs):
        raise SpecError(
            f"cannot take so many gradients of {op.name}",
            element=op.name,
            site=node.site or user_site(),
            expected=f"{len(node.inputs)}, one for each operand, None for 0",
            got=str(len(made)),
        )
    elements = [None if one is None else as_element(one, op.name) for one in made]
    if op.kind is Kind.ELEMENTWISE:
        # These are summed to the operand, where it was broadcast.
        return elements
    return [_shaped(node, *pair) for pair in zip(node.inputs, elements, strict=True)]


def _shaped(node: Compute, operand: Any, cotangent: Any) -> Any:
    """Return the cotangent that a user's gradient gave to an operand, with all of its axes.

    Raises:
        SpecError: if it does not fit.
    """
    if cotangent is None:
        return None
    own, given = operand.spec, cotangent.spec
    if given.is_stream > own.is_stream or not _broadcasts(given.shape, own.shape):
        raise SpecError(
            f"cannot take this gradient of {node.op.name}",
            element=node.name or node.label,
            site=node.site or user_site(),
            expected=f"a cotangent of an operand {own}",
            got=str(given),
            hint="sum over the records for an operand that is resident" if given.is_stream > own.is_stream else None,
        )
    return full(operand, cotangent)


def _broadcasts(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Check whether an array of a shape can be repeated to another shape."""
    padded = (1,) * (len(other) - len(shape)) + tuple(shape)
    return len(shape) <= len(other) and all(a in (1, b) for a, b in zip(padded, other, strict=True))


_OPENCL = Refused("a function with a gradient", "give it one: fc.opencl(..., vjp=...); or use fc.stop_gradient")
_UNKNOWN = Refused("operations that have a gradient", "fc.stop_gradient(x) lets nothing flow through it")


def _slope_dtype(value: Any) -> np.dtype:
    """Return the dtype of cotangents.

    It is that of the value, with two exceptions. Resident values of half formats have float32, where sums over a
    stream would overflow before a scale makes them small. Whole numbers have float64, which only a gradient of a
    user's own lets through.
    """
    if not is_float(value.dtype):
        return FLOAT64
    return value.dtype if value.spec.is_stream else wide(value.dtype)


def _passed(node: Compute, terms: Cotangent, live: set[int]) -> Iterable[tuple[Element, Term]]:
    """Yield the operands of an operation with their terms."""
    how = rule_of(node)
    if isinstance(how, Refused):
        raise refusal(node, how.expected, how.hint)
    for term in terms:
        given = how(node, term.value)
        if isinstance(given, Equivalent):
            operands = {id(one): one for one in node.inputs if id(one) in live}
            for key, found in pulled(given.value, [term], operands.values()).items():
                yield from ((operands[key], one) for one in found)
            continue
        for operand, made in zip(node.inputs, given, strict=True):
            if made is None or id(operand) not in live:
                continue
            if isinstance(made, Through):
                yield made.viewed, Term(term.scale, cast(made.value, _slope_dtype(made.viewed)))
                continue
            # A number that itself depends on what is differentiated scales as well: only its value counts here.
            scale = term.scaled(made.scale) if isinstance(made, Scaled) else term.scale
            value = made.value if isinstance(made, Scaled) else made
            if node.op.kind is Kind.ELEMENTWISE:
                value = summed_to(operand, value, node.spec.shape, node.spec.is_stream, node)
            yield operand, Term(scale, cast(value, _slope_dtype(operand)))


MOST_SCALES = 4
"""Scales of a cotangent that are kept apart: each is differentiated by itself."""


def _merged(terms: Cotangent) -> Cotangent:
    """Add the terms that have one scale; all of them where there would be too many."""
    by_scale: dict[int, Term] = {}
    for term in terms:
        known = by_scale.get(id(term.scale))
        by_scale[id(term.scale)] = term if known is None else Term(term.scale, add(known.value, term.value))
    if len(by_scale) <= MOST_SCALES:
        return list(by_scale.values())
    parts = [one.value if one.scale is None else multiply(one.value, one.scale) for one in by_scale.values()]
    return [Term(None, functools.reduce(add, parts))]


def _whole(leaf: Any, terms: Cotangent) -> Element:
    """Return a cotangent as one element of the spec of its value."""
    if not terms:
        return zeros_like(leaf)
    parts: list[Any] = []
    for term in _merged(terms):
        value = full(leaf, term.value)
        parts.append(value if term.scale is None else multiply(value, cast(term.scale, value.dtype)))
    made = parts[0]
    for part in parts[1:]:
        made = add(made, part)
    return cast(made, leaf.dtype)
