"""Nodes built one after the other. What cannot be built is collected, and what hangs on it left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowcompute.elements import Element, of_operands
from flowcompute.errors import FlowError, SpecTypeError
from flowcompute.onnx._onnx import definition_of
from flowcompute.onnx.graphs import DEEPEST, GraphReader, OnnxGraph, Reference
from flowcompute.onnx.logical_value import APART, NarrowIntegers, Value
from flowcompute.onnx.operators import LATEST, REQUIRED, NodeCall, OnnxNode, Operator, as_dtype, record_of
from flowcompute.onnx.problems import Refusal, UnsupportedNode
from flowcompute.onnx.scaled_integers import move_integers
from flowcompute.onnx.sizes import MOST_KNOWN, UndecidedError, known_array
from flowcompute.onnx.tensors import NarrowTensor, dtype_of, no_external, number_of

Functions = Mapping[tuple[str, str], OnnxGraph]
Scope = dict[str, Value | None]
"""Values by name; None for one that hangs on a problem."""

OwnBuilder = Callable[[Operator, NodeCall], Sequence[Value] | None]

IN_BRANCHES = frozenset({"then_branch", "else_branch"})


MOST_WITHIN = 1 << 16
"""Nodes of unrolled loops, inlined branches and functions, all together."""


class LeftOutError(Exception):
    """A graph whose problems have been collected already."""


def problem_of(node: OnnxNode, refusal: Refusal) -> UnsupportedNode:
    """Return what users see of a refusal."""
    return UnsupportedNode(node.name, node.full_op, node.domain, node.opset, refusal.reason, refusal.hint, refusal.text)


def found_problems(graph: OnnxGraph, functions: Functions, *, inner: bool = False) -> Iterator[UnsupportedNode]:
    """Yield the nodes whose operators cannot be computed, whatever they are given.

    Branches of an `If` are left out, since only one of them is built. What an `inner` graph is given may be sequences.
    """
    refused = {port.name: port.refusal for port in graph.inputs if port.refusal is not None}
    if inner:
        refused = {name: one for name, one in refused.items() if one.reason != "sequence"}
    refused |= {name: value for name, value in graph.values.items() if isinstance(value, Refusal)}
    for node in graph.nodes:
        own = [refused.pop(name) for name in node.inputs if name in refused]
        try:
            for refusal in own:
                raise refusal
            if (node.domain, node.op) in functions:
                continue
            record = record_of(node)
            _check_attributes(node, record)
        except Refusal as refusal:
            yield problem_of(node, refusal)
            continue
        for name, held in node.attributes.items():
            if isinstance(held, OnnxGraph) and name not in IN_BRANCHES:
                yield from found_problems(held, functions, inner=True)


def _check_attributes(node: OnnxNode, record: Operator) -> None:
    for name, value in node.attributes.items():
        if name not in record.attributes:
            raise Refusal("attribute", f"attribute {name!r} is not known", "leave it out")
        if isinstance(value, Refusal):
            raise value


class GraphBuilder:
    """Builder of the nodes of a model.

    Args:
        functions: those of the model, by domain and name.
        stream: of the model's inputs, beside which values may be repeated.
        own: builds nodes in a way of its own; None for one that is built as ever.

    Attributes:
        problems: what could not be built.
    """

    def __init__(self, functions: Functions, stream: Element | None, own: OwnBuilder | None = None) -> None:
        self.problems: list[UnsupportedNode] = []
        self._functions, self._stream, self._own = functions, stream, own
        self._depth = self._unrolled = 0
        self._defined_by: OnnxNode | None = None

    def build(self, graph: OnnxGraph, inputs: Sequence[Value | None], outer: Mapping[str, Value | None]) -> Scope:
        """Build a graph, and return all of its values.

        Args:
            graph: what is built.
            inputs: values of its inputs.
            outer: values of graphs around it.
        """
        scope: Scope = dict(outer)
        for name, constant in graph.values.items():
            if isinstance(constant, NarrowTensor):
                scope[name] = NarrowIntegers(constant)
            else:
                scope[name] = None if isinstance(constant, Refusal) else Value.of(constant)
        scope.update(zip((port.name for port in graph.inputs), inputs, strict=True))
        for node in graph.nodes:
            self._node(node, scope)
        return scope

    def _count(self, graph: OnnxGraph) -> None:
        """Count the nodes of a graph within a node, so that graphs within graphs end."""
        self._unrolled += len(graph.nodes)
        if self._unrolled > MOST_WITHIN:
            raise Refusal(
                "unbounded", f"more than {MOST_WITHIN} nodes within nodes", "make loops and functions shorter"
            )

    def _node(self, node: OnnxNode, scope: Scope) -> None:
        made: Sequence[Value | None] = ()
        given = [scope[name] if name else None for name in node.inputs]
        if all(value is not None for name, value in zip(node.inputs, given, strict=True) if name):
            try:
                made = self._made(node, given, scope)
            except LeftOutError:
                pass
            except Refusal as refusal:
                self._refuse(node, refusal)
            except FlowError as error:
                self._refuse(node, _refusal_of(error))
            except UndecidedError:
                self._refuse(node, Refusal("batch axis", "a size is compared with the number of records", APART))
            except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
                text = str(error).split("\n", 1)[0][:200] or type(error).__name__
                self._refuse(node, Refusal("invalid", text, "correct the model, or its inputs"))
        for place, name in enumerate(node.outputs):
            if name:
                scope[name] = made[place] if place < len(made) else None

    def _refuse(self, node: OnnxNode, refusal: Refusal) -> None:
        """Collect a problem. What is wrong in the definition of an operator is told of the node that has it."""
        outer = self._defined_by
        if outer is not None:
            node, refusal = outer, Refusal(refusal.reason, f"{node.op} of its definition: {refusal}", refusal.hint)
        self.problems.append(problem_of(node, refusal))

    def _made(self, node: OnnxNode, given: Sequence[Value | None], scope: Scope) -> Sequence[Value | None]:
        function = self._functions.get((node.domain, node.op))
        if function is not None:
            return self._called(function, node, given)
        record = record_of(node)
        _check_attributes(node, record)
        if record.build is None:
            return self._defined(record, node, given)
        call = NodeCall(
            node, tuple(given), record.attributes, self._stream, lambda graph, inputs: self._whole(graph, inputs, scope)
        )
        known = _known(record, call)
        if known is not None and not all(value.has_element for value in call.given):
            dtype = _dtype_of(known, call)
            followed = _in_dtype(known, dtype)
            if followed is not None:
                return (Value.of_known(followed, dtype),)
        name = _shown_name(node)
        own = None if self._own is None else of_operands(name, self._own, record, call)
        if own is not None:
            return own
        made = of_operands(name, record.build, call)
        if made is None:
            return self._defined(record, node, given)
        made = [made] if isinstance(made, Value) else list(made)
        for value in made:
            value.mark_made_by(name)
        if record.moves:
            move_integers(record.build, call, made)
        # Numbers that are followed are those that are computed: in the dtype of the result, or none.
        followed = None if known is None or known.shape != made[0].shape else _in_dtype(known, made[0].dtype)
        if followed is not None:
            made[0] = made[0].with_known(followed)
        missing = [name for name in node.outputs[len(made) :] if name]
        if missing:
            raise Refusal("missing", f"output {missing[0]!r}, number {len(made)}", "leave it out")
        return made

    def _inner(self, graph: OnnxGraph, inputs: Sequence[Value | None], scope: Scope) -> list[Value | None]:
        """Build a graph that a node holds. What none of its nodes makes is None.

        Raises:
            LeftOutError: if it has problems, which are collected.
        """
        self._depth += 1
        if self._depth > 2 * DEEPEST:
            raise Refusal("unbounded", "graphs within graphs", "make the model flatter")
        self._count(graph)
        try:
            inner = self.build(graph, inputs, scope)
        finally:
            self._depth -= 1
        made = [inner.get(port.name) for port in graph.outputs]
        if any(value is None and port.name in inner for port, value in zip(graph.outputs, made, strict=True)):
            raise LeftOutError
        return made

    def _whole(self, graph: OnnxGraph, inputs: Sequence[Value], scope: Scope) -> list[Value]:
        """Build a graph that a node holds, all of whose outputs are there."""
        return [value for value in self._inner(graph, inputs, scope) if value is not None]

    def _defined(self, record: Operator, node: OnnxNode, given: Sequence[Value | None]) -> list[Value | None]:
        """Build a node by the definition of its operator.

        Raises:
            LeftOutError: if it has problems, which are collected.
        """
        types = [None if value is None else (number_of(value.dtype), value.shape) for value in given]
        proto = definition_of(node.serialized, node.op, node.domain, node.opset, types)
        usual = {
            name: value for name, value in record.attributes.items() if value is not None and value is not REQUIRED
        }
        body = GraphReader({"": LATEST if node.domain else node.opset}, no_external).function(proto)
        outer, self._defined_by = self._defined_by, self._defined_by or node
        try:
            return self._called(body, replace(node, attributes=usual | dict(node.attributes)), given)
        finally:
            self._defined_by = outer

    def _called(self, function: OnnxGraph, node: OnnxNode, given: Sequence[Value | None]) -> list[Value | None]:
        """Build the body of a function of the model in place of a node."""
        values = [*given, *(None for _ in function.inputs[len(given) :])]
        names = {port.name for port, value in zip(function.inputs, values, strict=True) if value is None}
        nodes = tuple(
            replace(
                one,
                name=f"{node.name}/{one.name}",
                inputs=tuple("" if name in names else name for name in one.inputs),
                attributes=_bound(one.attributes, node.attributes),
            )
            for one in function.nodes
        )
        return self._inner(replace(function, nodes=nodes), values, {})


def _bound(attributes: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes in which references are what they refer to; those to nothing are left out."""
    return {
        name: given[value.name] if isinstance(value, Reference) else value
        for name, value in attributes.items()
        if not isinstance(value, Reference) or value.name in given
    }


def _refusal_of(error: FlowError) -> Refusal:
    sides = [
        text for text in (error.expected and f"expected {error.expected}", error.got and f"got {error.got}") if text
    ]
    text = ": ".join([error.message, ", ".join(sides)] if sides else [error.message])
    if error.element:
        text = f"{error.element}: {text}"
    reason = "dtype" if isinstance(error, SpecTypeError) else "element"
    return Refusal(reason, text, error.hint or "correct the model, or its inputs")


def _known(record: Operator, call: NodeCall) -> np.ndarray | None:
    """Return the numbers of the first output, if those of all inputs are known and it is part of a shape."""
    if record.integers is None or not call.given:
        return None
    needed = call.given if record.integers_of is None else call.given[: record.integers_of]
    if any(value.known is None or _has_nan(value.known) for value in needed):
        return None
    try:
        with np.errstate(all="ignore"):
            known = known_array(record.integers(call))
    except (UndecidedError, Refusal, ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return known if known.size <= MOST_KNOWN else None


def _has_nan(known: np.ndarray) -> bool:
    return any(isinstance(one, float) and math.isnan(one) for one in known.flat)


def _in_dtype(known: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Return numbers rounded to a dtype, as they are where they are computed; None where one does not fit."""
    try:
        with np.errstate(all="ignore"):
            return known_array(np.frompyfunc(lambda number: as_dtype(number, dtype), 1, 1)(known))
    except (ArithmeticError, TypeError, ValueError):
        return None


def _dtype_of(known: np.ndarray, call: NodeCall) -> np.dtype:
    if known.size and all(isinstance(one, bool) for one in known.flat):
        return np.dtype(np.bool_)
    to = call.node.attributes.get("to")
    if call.node.op == "Cast" and to is not None:
        return dtype_of(to)
    if call.node.op == "CastLike":
        return call[1].dtype
    return call.given[-1].dtype if call.node.op == "Where" else call.given[0].dtype


def _shown_name(node: OnnxNode) -> str:
    """Return the name under which plans and errors show what a node makes."""
    output = next((name for name in node.outputs if name and name.isprintable()), node.op)
    return output if node.name.startswith("#") else node.name
