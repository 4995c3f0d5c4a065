"""The structure of a loss: an equal one of another step is found again without a graph being built of it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

from flowcompute.elements import Compute, Constant, Element, Op
from flowcompute.elements.functions import HostFunction, SourceOp, UserOp
from flowcompute.elements.random import Random
from flowcompute.graph import TheVeryObject, UnknownError, exact, operation_key
from flowcompute.imports import dataclass
from flowcompute.rewrite import source_of
from flowcompute.spec import Spec
from flowcompute.train.composing import Problem

_MOST_CONSTANT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class _Fact:
    """Facts about one element, from which the plan of a step follows.

    Attributes:
        kind: class of the element; None for a parameter or a source.
        spec: its spec; equal specs of a pattern are one object.
        operands: places of its operands.
        parameter, stream: place of the parameter or the source that it is; None for what is none.
        op, op_key, attrs, pin, again: those of an operation.
        functions: the very functions of Python that it calls, and that gives its gradient; none of what calls none.
        numbers: bytes of a small constant.
        held: the very element, where nothing else can be told to be equal to it; of a constant its very array, which
            copies of one call share.
    """

    kind: type[Element] | None
    spec: Spec
    operands: tuple[int, ...] = ()
    parameter: int | None = None
    stream: int | None = None
    op: Op | None = None
    op_key: object = None
    attrs: Mapping[str, Any] | None = None
    pin: str | None = None
    again: bool = False
    functions: tuple[object, ...] = ()
    numbers: bytes | None = None
    held: weakref.ref[Any] | None = None


class LossPattern:
    """Operations, attributes and constants of a loss, sizes of records, and where parameters and sources are.

    What records hold is no part of it. It keeps no element alive, but the functions of Python that the plan calls.

    Args:
        problem: the loss, looked at.

    Attributes:
        records: of each source.
    """

    def __init__(self, problem: Problem) -> None:
        self.records = problem.records
        self._streams = len(problem.sources)
        places = {id(one): place for place, one in enumerate(problem.order)}
        parameters = {id(one): place for place, one in enumerate(problem.parameters)}
        specs: dict[Spec, Spec] = {}
        self._facts = [
            _fact(one, specs.setdefault(one.spec, one.spec), places, parameters.get(id(one)), problem.streams)
            for one in problem.order
        ]

    def sources(self, loss: object, parameters: Sequence[Element]) -> list[Element] | None:
        """Return the sources of a loss that has this structure, in the order of the first one; None for any other.

        Elements are met from the loss down, each by the place that it would have.

        Args:
            loss: what was composed.
            parameters: those that are trained.
        """
        if not isinstance(loss, Element):
            return None
        facts, specs = self._facts, dict[int, Spec]()
        found: list[Any] = [None] * len(facts)
        sources: list[Any] = [None] * self._streams
        found[-1] = loss
        for place in range(len(facts) - 1, -1, -1):
            one, fact = found[place], facts[place]
            spec = one.spec
            if specs.get(id(spec)) is not fact.spec:
                if spec != fact.spec:
                    return None
                specs[id(spec)] = fact.spec
            if fact.kind is None:
                if fact.stream is None:
                    if one is not parameters[fact.parameter or 0]:
                        return None
                elif source_of(one) is None:
                    return None
                else:
                    sources[fact.stream] = one
                continue
            if type(one) is not fact.kind or not _is_alike(one, fact):
                return None
            inputs, operands = one.inputs, fact.operands
            if len(inputs) != len(operands):
                return None
            # To ask `zip` to compare lengths takes longer than all that it is asked for here.
            for number, at in enumerate(operands):
                if found[at] is None:
                    found[at] = inputs[number]
                elif found[at] is not inputs[number]:
                    return None
        # One element in two places would be another graph.
        return sources if len({id(one) for one in found}) == len(found) else None


def _fact(
    element: Element, spec: Spec, places: Mapping[int, int], parameter: int | None, streams: Mapping[int, int]
) -> _Fact:
    if parameter is not None or id(element) in streams:
        return _Fact(None, spec, parameter=parameter, stream=streams.get(id(element)))
    kind, operands = type(element), tuple([places[id(one)] for one in element.inputs])
    if kind is Constant:
        assert isinstance(element, Constant)
        if element.value.nbytes <= _MOST_CONSTANT_BYTES:
            return _Fact(kind, spec, numbers=element.value.tobytes())
        return _Fact(kind, spec, held=weakref.ref(element.value))
    if kind is Compute or kind is Random or (isinstance(element, HostFunction) and not element.policy.drops):
        assert isinstance(element, Compute)
        op, attrs = element.op, element.attrs
        try:
            exact(attrs)
        except UnknownError:
            pass
        else:
            pin = None if element.pin is None else element.pin.device
            return _Fact(
                kind,
                spec,
                operands,
                op=op,
                op_key=_op_key(op),
                attrs=attrs,
                pin=pin,
                again=element.again,
                functions=_functions(element),
            )
    return _Fact(kind, spec, operands, held=weakref.ref(element))


def _functions(element: Compute) -> tuple[object, ...]:
    return (element.function, element.vjp) if isinstance(element, HostFunction) else ()


def _op_key(op: Op) -> object:
    return operation_key(op), TheVeryObject(op.vjp) if isinstance(op, UserOp | SourceOp) else None


def _is_alike(element: Any, fact: _Fact) -> bool:
    """Check whether an element of the same class and spec is equal in all but its operands."""
    if fact.held is not None:
        return fact.held() is (element.value if fact.kind is Constant else element)
    if fact.numbers is not None:
        return bool(element.value.tobytes() == fact.numbers)
    if fact.functions and not all(map(is_, _functions(element), fact.functions)):
        return False
    op, attrs, pin = element.op, element.attrs, element.pin
    if op is not fact.op and _op_key(op) != fact.op_key:
        return False
    if (attrs or fact.attrs) and not _same_attrs(attrs, fact.attrs or {}):
        return False
    return (pin is fact.pin or (None if pin is None else pin.device) == fact.pin) and element.again is fact.again


def _same_attrs(attrs: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    if attrs.keys() != others.keys():
        return False
    try:
        return all(_same(attrs[name], other) for name, other in others.items())
    except UnknownError:
        return False


def _same(value: Any, other: Any) -> bool:
    """Check whether two attributes are equal; 0.0 is neither -0.0 nor 0.

    Raises:
        UnknownError: for values of a kind that attributes do not usually have.
    """
    if value is other:
        return True
    if type(value) is tuple and type(other) is tuple:
        return len(value) == len(other) and (all(map(is_, value, other)) or all(map(_same, value, other)))
    return exact(value) == exact(other)
