"""The graph of one step of a session: records are steps, and what a state holds is carried from one to the next."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

import flowcompute.elements.math as fc
from flowcompute.elements import Constant
from flowcompute.elements.functions import kernel
from flowcompute.elements.streams import scan
from flowcompute.graph import Made, Placeholder, build_graph, per_record, structural_hash
from flowcompute.imports import dataclass
from flowcompute.onnx.graph_builder import Functions, GraphBuilder
from flowcompute.onnx.graphs import OnnxGraph
from flowcompute.onnx.logical_value import Value
from flowcompute.onnx.problems import UnsupportedError, UnsupportedNode
from flowcompute.onnx.sessions.growing_rules import build_over_rows
from flowcompute.onnx.sessions.growing_values import Appended, GrowingRows, growing_axis
from flowcompute.onnx.sizes import Length
from flowcompute.sources import FeedSource, feed

LENGTH = "rows before the step"
"""The feed of how many rows the states hold."""


@dataclass(frozen=True)
class StatePort:
    """A state of a session.

    Attributes:
        past, present: the ports that it is read from and written to.
        axis: along which it grows.
        shape, dtype: of its buffer.
    """

    past: str
    present: str
    axis: int
    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class StepPort:
    """An input of a step that is no state.

    Attributes:
        name, dtype: as the model says.
        shape: of what is given.
        axis: along which it has an entry for each row that the states hold then; None for none.
        known: its numbers, where they choose a branch.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    axis: int | None
    known: tuple[bool, ...] | None


@dataclass(frozen=True)
class StepGraph:
    """Computation of a step.

    Attributes:
        roots: streams, a record each step: the outputs, and what keeps states alive that no output reads.
        outputs: names of the first roots, each with the axis that is cut to the rows there are.
        added: rows that a step adds.
        feeds: names of what the roots are made of.
        begins: whether a step looks at no rows before it, and the states begin anew.
    """

    roots: tuple[Any, ...]
    outputs: tuple[tuple[str, int | None], ...]
    added: int
    feeds: frozenset[str]
    begins: bool

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the graph and all of its weights."""
        graph = build_graph(self.roots)
        made = hashlib.sha256(structural_hash(graph).encode())
        for node in graph.nodes:
            if isinstance(node.element, Constant):
                made.update(np.ascontiguousarray(node.element.value).reshape(-1).view(np.uint8).data)
        return made.hexdigest()


@kernel
def _kept(before: Any, row: Any, is_new: Any) -> Any:
    return row if is_new else before


def compose_step(
    graph: OnnxGraph,
    functions: Functions,
    states: Sequence[StatePort],
    given: Mapping[str, StepPort],
    added: int | None,
    name: str,
) -> StepGraph:
    """Compose a step of a model.

    Args:
        graph, functions: the model.
        states: its states.
        given: what else it is given, by port.
        added: rows that the step adds, where what is given says so.
        name: of the model, for errors.

    Raises:
        UnsupportedError: naming all nodes that cannot be computed in a session.
    """
    rows = Placeholder(np.int64, (), LENGTH)
    streams: dict[Any, Any] = {rows: feed(shape=(), dtype="int64", name=LENGTH)}
    kept = {one.past: Placeholder(one.dtype, one.shape, one.past) for one in states}
    inputs = []
    for port in graph.inputs:
        state = next((one for one in states if one.past == port.name), None)
        if state is not None:
            inputs.append(_growing(kept[port.name], state.axis, Length(1, rows)))
            continue
        one = given[port.name]
        if one.known is not None:
            inputs.append(Value.of(Constant(np.array(one.known, one.dtype).reshape(one.shape))))
            continue
        stand_in = Placeholder(one.dtype, one.shape, one.name)
        streams[stand_in] = feed(shape=one.shape, dtype=one.dtype, name=one.name)
        size = Length(1, rows, added or 0)
        inputs.append(Value.of(stand_in) if one.axis is None else _growing(stand_in, one.axis, size))
    grown = GrowingRows(states[0].shape[states[0].axis])
    builder = GraphBuilder(functions, None, partial(build_over_rows, grown))
    scope = builder.build(graph, inputs, {})
    found = [] if builder.problems else [_after(one, kept[one.past], scope, grown, builder) for one in states]
    after = [one for one in found if one is not None]
    if builder.problems:
        raise UnsupportedError(builder.problems, name)
    presents = {one.present for one in states}
    values = {port.name: scope[port.name] for port in graph.outputs if port.name not in presents}
    outputs = tuple((port, growing_axis(value)) for port, value in values.items() if value is not None)
    roots = [value.element for value in values.values() if value is not None]
    read = _parts(roots)
    for state, appended in zip(states, after, strict=True):
        streams[appended.after] = _carried(appended, state.past)
        if appended.after not in read:
            # A step whose answer does not read a state keeps it all the same.
            roots.append(fc.max(appended.after))
    made = tuple(per_record(roots, streams))
    steps = {(appended.count, appended.begins) for appended in after}
    parts = _parts(made)
    if len(steps) > 1 or any(isinstance(one, Placeholder) for one in parts):
        unequal = "states grow by unequal numbers of rows"
        text = unequal if len(steps) > 1 else "a state is read without the rows behind it"
        raise UnsupportedError([_problem(text, states[0].present)], name)
    ((count, begins),) = steps
    feeds = frozenset(one.name for one in parts if isinstance(one, FeedSource) and one.name)
    return StepGraph(made, outputs, count, feeds, begins)


def _problem(text: str, port: str) -> UnsupportedNode:
    hint = "a state is one that a Concat, or attention with past keys, adds rows to"
    return UnsupportedNode(port, "output", "", 0, "missing", hint, text)


def compose_kept(states: Sequence[StatePort]) -> tuple[Any, ...]:
    """Return streams that do nothing but carry the states, so that a checkpoint of them fits every step."""
    carried = []
    for state in states:
        row = feed(shape=state.shape, dtype=state.dtype, name=f"rows of {state.past}")
        is_new = feed(shape=(1,) * len(state.shape), dtype="bool", name=f"new rows of {state.past}")
        carried.append(fc.max(_state(row, is_new, state.past), axis=tuple(range(1, 1 + len(state.shape)))))
    return tuple(carried)


def _growing(element: Any, axis: int, size: Length) -> Value:
    shape = (*element.spec.shape[:axis], size, *element.spec.shape[axis + 1 :])
    return Value(element.dtype, shape, None, element)


def _after(
    state: StatePort, kept: Placeholder, scope: Mapping[str, Value | None], grown: GrowingRows, builder: GraphBuilder
) -> Appended | None:
    """Return how a state is made by the step; None, with a problem noted, if it neither grows nor begins anew."""
    value = scope[state.present]
    assert value is not None
    own = grown.appended.get(value.element)
    if own is not None and own.state is kept:
        return own
    fits = value.dtype == state.dtype and value.ndim == len(state.shape)
    if own is None and fits and growing_axis(value) is None and kept not in _parts([value.element]):
        return grown.began(kept, value, state.axis)
    text = f"output {state.present!r} is not {state.past!r} with rows behind it"
    builder.problems.append(_problem(text, state.present))
    return None


def _carried(made: Appended, past: str) -> Made:
    """Return the stream of a state after each step."""

    def make(row: Any, is_new: Any) -> Any:
        return _state(row, is_new, past)

    return Made((made.rows, made.is_new), make)


def _state(row: Any, is_new: Any, past: str) -> Any:
    """Return a state along the steps, in which new rows take the place of what was there."""
    return scan(_kept, row, is_new, init=np.zeros(row.spec.shape, row.dtype), name=f"state of {past}")


def _parts(roots: Sequence[Any]) -> set[Any]:
    """Return all elements that some are made of."""
    found: set[Any] = set()
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += one.inputs
    return found
