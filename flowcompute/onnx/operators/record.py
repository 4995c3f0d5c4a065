"""The record of an operator, and what its builder is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from flowcompute.elements import Element
from flowcompute.imports import dataclass
from flowcompute.onnx.logical_value import Value
from flowcompute.onnx.problems import Refusal

REQUIRED = object()
"""The default of an attribute that must be given."""


@dataclass(frozen=True)
class OnnxNode:
    """A node of a model.

    Attributes:
        name: its own, or "#n" by its place.
        op, domain: its operator.
        opset: version of the domain that the model asks for.
        inputs, outputs: names; empty where an optional one is left out.
        attributes: as Python values, arrays and graphs.
        serialized: the node as bytes, where its operator is built by its definition.
    """

    name: str
    op: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    serialized: bytes = field(default=b"", repr=False)

    @property
    def full_op(self) -> str:
        """The operator with its domain, where that is not ONNX's own."""
        return f"{self.domain}.{self.op}" if self.domain else self.op


@dataclass(frozen=True)
class NodeCall:
    """A node with the values of its inputs, as its builder is given it.

    Attributes:
        node: the node.
        values: of its inputs, None where one is left out.
        defaults: of its attributes.
        stream: a stream of the model's inputs, beside which others may be repeated.
        run: builds a graph that the node holds, given the values of its inputs.
    """

    node: OnnxNode
    values: tuple[Value | None, ...]
    defaults: Mapping[str, Any]
    stream: Element | None
    run: Callable[[Any, Sequence[Value]], list[Value]]

    @property
    def opset(self) -> int:
        """Version of the domain."""
        return self.node.opset

    @property
    def count(self) -> int:
        """Number of outputs that are asked for: up to the last one with a name."""
        return max((at + 1 for at, name in enumerate(self.node.outputs) if name), default=0)

    def wants(self, place: int) -> bool:
        """Check whether an output is asked for."""
        return place < len(self.node.outputs) and bool(self.node.outputs[place])

    def __getitem__(self, place: int) -> Value:
        """Return an input that must be there.

        Raises:
            Refusal: if it is not.
        """
        value = self.get(place)
        if value is None:
            raise Refusal("invalid", f"input {place} is missing", "correct the model")
        return value

    def get(self, place: int) -> Value | None:
        """Return an input, None where it is left out."""
        return self.values[place] if place < len(self.values) else None

    @property
    def given(self) -> list[Value]:
        """All inputs that are there."""
        return [value for value in self.values if value is not None]

    def attribute(self, name: str) -> Any:
        """Return an attribute, or its default.

        Raises:
            Refusal: if it must be given, and is not.
        """
        found = self.node.attributes.get(name, self.defaults.get(name))
        if found is REQUIRED:
            raise Refusal("attribute", f"attribute {name!r} is missing", "correct the model")
        return found

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return an attribute of text that must be one of these.

        Raises:
            Refusal: if it is another.
        """
        found = self.attribute(name)
        if found not in choices:
            raise Refusal("attribute", f"{name}={found!r}", f"use one of {', '.join(choices)}")
        return str(found)


Builder = Callable[[NodeCall], Value | Sequence[Value] | None]
Integers = Callable[[NodeCall], Any]


@dataclass(frozen=True)
class Operator:
    """An operator of ONNX.

    Attributes:
        name: the operator.
        build: makes the values of its outputs; None for one that is refused or defined. One that has a definition, too,
            returns None where that is to be taken.
        since, until: the opsets in which it means this: from `since` on, before `until`.
        domain: empty for ONNX's own.
        attributes: their defaults by name.
        integers: makes the known numbers of its first output of those of its inputs, as an array of objects.
        integers_of: how many inputs have to be known for it; None for all.
        by_definition: whether it is built of the operators by which the standard defines it.
        moves: whether each number of its results is one of its inputs, picked by place or as the largest: integers that
            floats stand for move as these do.
        reason, hint: why it is refused, and what to do.
    """

    name: str
    build: Builder | None
    since: int = 1
    until: int | None = None
    domain: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    integers: Integers | None = None
    integers_of: int | None = None
    by_definition: bool = False
    moves: bool = False
    reason: str = ""
    hint: str = ""

    def covers(self, opset: int) -> bool:
        """Check whether it is the operator's meaning in a version of the domain."""
        return self.since <= opset and (self.until is None or opset < self.until)


def known_of(call: NodeCall) -> list[np.ndarray]:
    """Return the known numbers of the inputs."""
    return [value.known for value in call.given if value.known is not None]


def refused(reason: str, hint: str, *names: str, domain: str = "") -> tuple[Operator, ...]:
    """Return records of operators that are refused for one reason."""
    return tuple(Operator(name, None, domain=domain, reason=reason, hint=hint) for name in names)


def defined(
    name: str, since: int, domain: str = "", build: Builder | None = None, until: int | None = None, **attributes: Any
) -> Operator:
    """Return the record of an operator that is built of those by which the standard defines it.

    Args:
        name, since, until, domain, attributes: as of the record.
        build: tried first; it returns None where it cannot.
    """
    return Operator(name, build, since, until, domain=domain, attributes=attributes, by_definition=True)
