"""Plans of graphs that were planned before: an equal graph gets the same steps and kernels, bound to its elements.

Equal is everything that planning looks at: the structure with its names and lines, attributes and small constants,
settings, knobs and devices. What sources and destinations say of themselves belongs to it. A graph with an element
whose class is not known here is planned each time. A plan is kept without its elements, so that it keeps no array
alive.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from flowcompute.elements import Compute, Constant, Element, Op
from flowcompute.elements.streams import KernelScan
from flowcompute.graph import Graph, Node, TheVeryObject, UnknownError, exact, operation_key
from flowcompute.model_files import PlacedWeight, Weight
from flowcompute.schedule.backend_description import BackendDescription
from flowcompute.schedule.explain import Plan
from flowcompute.schedule.plan import Clock, Pass, SinkStage
from flowcompute.schedule.steps import NodeStep, Step
from flowcompute.sinks import DiscardSink, MemorySink, NpySink, RawSink
from flowcompute.sources import FeedSource, MemorySource, NpySource, RawSource
from flowcompute.spec import BOOL, Spec

_T = TypeVar("_T")

_MOST_PLANS = 64
_MOST_NODES = 8192
"""Nodes of the graphs of all plans that are kept, at most. Each takes 1.5 kB."""

_MOST_CONSTANT_BYTES = 1 << 20
"""Bytes of an array that is compared, at most: a millisecond is taken for each MB. Numbers of all words of a language
model have as many."""


class PlanCache:
    """The plans that were used last, by everything that they depend on. May be used from any thread."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Any, tuple[Plan, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._plans)

    def clear(self) -> None:
        """Forget all plans."""
        with self._lock:
            self._plans.clear()

    def get(self, key: object, graph: Graph, asked: Graph) -> Plan | None:
        """Return the plan of an equal graph, bound to this one; None where there is none."""
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
        return None if found is None else bound(found[0], graph, asked)

    def keep(self, key: object, plan: Plan) -> Plan | None:
        """Keep a plan, and forget the one that was not used for longest where there are too many.

        Returns:
            The plan as it is kept, without elements; None where it belongs to one run.
        """
        if any(stage.root == SinkStage.NO_ROOT for each in plan.passes for stage in each.sinks):
            # Temporary files belong to one run.
            return None
        nothing = Graph((), plan.graph.roots)
        bare = _bound(plan, _place, nothing, nothing)
        with self._lock:
            self._plans[key] = bare, len(plan.graph.nodes)
            while len(self._plans) > _MOST_PLANS or self._nodes() > _MOST_NODES:
                self._plans.popitem(last=False)
        return bare

    def _nodes(self) -> int:
        return sum(nodes for _, nodes in self._plans.values())


def plan_key(graph: Graph, backend: BackendDescription, *settings: object) -> object:
    """Return what a plan depends on, hashable; None where some of it cannot be compared.

    Args:
        graph: as rewritten. It follows from the graph that was asked for.
        backend: the devices.
        settings: further arguments of the planner, hashable.
    """
    if len(graph.nodes) > _MOST_NODES:
        return None
    try:
        facts = _Facts()
        nodes = [(node.name, node.inputs, facts.of(node.element)) for node in graph.nodes]
        # Names and numbers alone: a text of them is made, hashed and written out much faster than the tuples.
        return repr(nodes), facts.parts, graph.roots, _backend_facts(backend), settings
    except UnknownError:
        return None


class _Facts:
    """Reader of what planning may ask elements for. Equal facts have one number, since most are shared by many nodes.

    What is looked up by an identity is held by its element for as long as the key is made.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._specs: dict[tuple[object, ...], int] = {}
        self._operations: dict[int, int] = {}
        self._attrs: dict[int, int] = {}

    @property
    def parts(self) -> tuple[object, ...]:
        """The facts, by number. They name others by these."""
        return tuple(self._numbers)

    def of(self, element: Element) -> int:
        """Return the number of what planning may ask an element for.

        Raises:
            UnknownError: if its class is not known, or may say something else each time.
        """
        return self._number(self._told_by(element))

    def _told_by(self, element: Element) -> tuple[object, ...]:
        kind = type(element)
        spec = self._spec(element)
        if isinstance(element, Compute) and kind in _OPERATIONS:
            pin = None if element.pin is None else (element.pin.device, element.pin.site)
            # Those that it was made of, which rewriting may have replaced in the graph.
            operands = tuple([self._spec(operand) for operand in element.inputs])
            begin: tuple[object, ...] = ()
            if isinstance(element, KernelScan):
                begin = operation_key(element.step), *map(_contents, element.inits)
            operation = self._operation(element.op), self._attributes(element), *begin
            return kind, spec, self._number(element.site), operation, operands, pin, element.again
        if isinstance(element, Weight) and kind in _WEIGHTS:
            # The state of its file stands for its numbers.
            site, own = self._number(element.site), element.tensor.type
            return kind, spec, site, element.identity, own, element.memory_bytes
        if isinstance(element, Constant) and kind is Constant:
            return kind, spec, self._number(element.site), _contents(element.value)
        if isinstance(element, MemorySink | DiscardSink | NpySink | RawSink) and kind in _SINKS:
            # Verbs make some at their own line, so that `plan` and `run` would have plans of their own.
            return kind, spec, element.in_memory, element.lent, element.takes_numbers
        if isinstance(element, MemorySource | NpySource | RawSource | FeedSource) and kind in _SOURCES:
            columns = isinstance(element, NpySource | RawSource) and element.layout.is_columns
            how = (element.must_read(), element.must_read(mapped=False), element.rereadable, element.seekable)
            return kind, spec, self._number(element.site), columns, *how
        raise UnknownError

    def _number(self, fact: object) -> int:
        return self._numbers.setdefault(fact, len(self._numbers))

    def _spec(self, element: Element) -> int:
        spec = element.spec
        # To hash a dtype takes longer.
        key = id(spec.dtype), spec.shape, spec.stream is None, spec.length
        found = self._specs.get(key)
        if found is None:
            found = self._specs[key] = self._number(exact(spec))
        return found

    def _operation(self, op: Op) -> int:
        found = self._operations.get(id(op))
        if found is None:
            found = self._operations[id(op)] = self._number(operation_key(op))
        return found

    def _attributes(self, element: Compute) -> int:
        found = self._attrs.get(id(element.attrs))
        if found is None:
            found = self._attrs[id(element.attrs)] = self._number(exact(element.attrs))
        return found


def _contents(array: np.ndarray) -> tuple[object, ...]:
    """Return what tells an array from others.

    Raises:
        UnknownError: if it is too large to be read for that.
    """
    if array.nbytes > _MOST_CONSTANT_BYTES:
        raise UnknownError
    raw = np.ascontiguousarray(array).view(np.uint8).data
    return exact(array.dtype), array.shape, hashlib.blake2b(raw, digest_size=16).digest()


_OPERATIONS = (Compute, KernelScan)
_WEIGHTS = (Weight, PlacedWeight)
_SOURCES = (MemorySource, NpySource, RawSource, FeedSource)
_SINKS = (MemorySink, DiscardSink, NpySink, RawSink)


def _backend_facts(backend: BackendDescription) -> tuple[object, ...]:
    pins, parts = tuple(backend.pins.items()), tuple(map(_backend_facts, backend.parts))
    return backend.capabilities, TheVeryObject(backend.source_text), backend.main, pins, parts, backend.number


_NOTHING = Element(Spec(BOOL, ()))
"""An element that holds no data and no other element."""


def _place(number: int) -> Node:
    """Return a node that holds its place in a graph alone."""
    return Node(number, "", _NOTHING, ())


def bound(plan: Plan, graph: Graph, asked: Graph) -> Plan:
    """Return a plan whose nodes, sources and destinations are those of an equal graph."""
    return _bound(plan, graph.nodes.__getitem__, graph, asked)


def _bound(plan: Plan, node_at: Callable[[int], Node], graph: Graph, asked: Graph) -> Plan:
    # Elements are of the classes that the stages had, since the graphs are equal.
    def element_at(value: int) -> Any:
        return node_at(value).element

    def step_of(step: Step) -> Step:
        return replace(step, node=node_at(step.node.id)) if isinstance(step, NodeStep) else step

    def node_of(node: Node | None) -> Node | None:
        return None if node is None else node_at(node.id)

    def clock_of(clock: Clock) -> Clock:
        return replace(
            clock,
            sources=_each(clock.sources, lambda stage: replace(stage, element=element_at(stage.value))),
            entries=_each(clock.entries, lambda entry: replace(entry, node=node_of(entry.node))),
            steps=_each(clock.steps, step_of),
        )

    def pass_of(one: Pass) -> Pass:
        return replace(
            one,
            clocks=_each(one.clocks, clock_of),
            before=_each(one.before, step_of),
            after=_each(one.after, step_of),
            sinks=_each(one.sinks, lambda stage: replace(stage, element=element_at(graph.roots[stage.root]))),
        )

    return replace(plan, graph=graph, asked=asked, passes=_each(plan.passes, pass_of))


def _each(several: tuple[_T, ...], function: Callable[[_T], _T]) -> tuple[_T, ...]:
    return tuple(map(function, several))
