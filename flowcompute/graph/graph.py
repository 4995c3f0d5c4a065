"""The graph of a computation, found by traversal from its roots. Equal parts are merged."""

from __future__ import annotations

import copy
import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Any

import numpy as np

from flowcompute.elements import Compute, Constant, Destination, Element, HostFunction, Kind, Op, Pin, Source
from flowcompute.elements.functions import UserOp
from flowcompute.elements.streams import KernelScan, ScanFunction
from flowcompute.errors import SpecError
from flowcompute.function_ir import functions
from flowcompute.graph.traversal import postorder
from flowcompute.imports import dataclass
from flowcompute.spec import Spec

_COMPARED_BYTES = 1 << 20
"""Constants up to this size are merged if their values are equal, larger ones if they are identical."""

_LITERALS = (0, 1, -1, 2)
"""Scalars whose value belongs to the structure, since kernels are faster if they know it."""


_UNMERGED = (HostFunction, ScanFunction, KernelScan)
"""Operations that are one only where they are the very same element: nobody knows what their functions do."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the graph.

    Attributes:
        id: position in the graph's topological order, which identifies the value in later stages.
        name: unique among the graph's nodes, shown to users.
        element: the element that computes it (the first of several equal ones).
        inputs: ids of its operands.
        spec: spec of the value.
        op: the operation's record, None for sources, constants and destinations.
        kind: the operation's kind, None for sources, constants and destinations.
        again: whether the value is computed a second time; see `Compute`.
        pin: the device that its user wants it computed on; None if any will do.
    """

    id: int
    name: str
    element: Element
    inputs: tuple[int, ...]
    # Planning asks for these some sixty times a node, which a property would look up each time.
    spec: Spec = field(init=False, repr=False, compare=False)
    op: Op | None = field(init=False, repr=False, compare=False)
    kind: Kind | None = field(init=False, repr=False, compare=False)
    again: bool = field(init=False, repr=False, compare=False)
    pin: Pin | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Look up what is asked for often."""
        element, place = self.element, object.__setattr__
        place(self, "spec", element.spec)
        if isinstance(element, Compute):
            place(self, "op", element.op)
            place(self, "kind", element.op.kind)
            place(self, "again", element.again)
            place(self, "pin", element.pin)
        else:
            place(self, "op", None)
            place(self, "kind", None)
            place(self, "again", False)
            place(self, "pin", None)

    @property
    def returned(self) -> bool:
        """Flag that it is what a call of a public function returned, and not a step on the way to it."""
        return self.element.call is not None and not self.element.is_step

    @property
    def attrs(self) -> dict[str, Any]:
        """The operation's attributes."""
        return self.element.attrs if isinstance(self.element, Compute) else {}


@dataclass(frozen=True)
class Graph:
    """A graph: nodes in topological order (operands first), and the ids of the roots in the order requested.

    Attributes:
        nodes, roots: as above.
        origins: by node its id in the graph before values were computed again, of a twin that of what it is a twin of.
            Checkpoints keep state under these ids. Empty where they are the nodes' own.
        memo: what functions of later rooms have found out about its values, each under a key of its own.
    """

    nodes: tuple[Node, ...]
    roots: tuple[int, ...]
    origins: tuple[int, ...] = ()
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def users(self) -> list[list[int]]:
        """Return the ids of the users of each node."""
        users: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for source in node.inputs:
                users[source].append(node.id)
        return users

    def kept_id(self, value: int) -> int:
        """Return the id under which checkpoints keep the state of a node."""
        return self.origins[value] if self.origins else value

    def nodes_by_kept_id(self) -> dict[int, Node]:
        """Return nodes by the ids under which checkpoints keep their state; of twins there is none."""
        found: dict[int, Node] = {}
        for node in self.nodes:
            found.setdefault(self.kept_id(node.id), node)
        return found

    def ends(self) -> Iterator[Node]:
        """Yield the nodes that no operation computes: sources, constants and destinations."""
        return (node for node in self.nodes if node.kind is None)


def build_graph(roots: Sequence[Element]) -> Graph:
    """Build the graph of the given roots, with equal elements merged.

    Raises:
        SpecError: if two different elements have the same name, equal ones are pinned to different devices, or a
            destination has no input.
    """
    found, ids = _merged(roots)
    names = _unique_names([element for element, _ in found])
    nodes = tuple([Node(i, names[i], element, inputs) for i, (element, inputs) in enumerate(found)])
    return Graph(nodes, ids)


_Found = list[tuple[Element, tuple[int, ...]]]
"""The different elements of a graph in topological order, each with the positions of its operands."""


def _merged(roots: Sequence[Element]) -> tuple[_Found, tuple[int, ...]]:
    """Return the different elements that these roots depend on, and the positions of the roots among them.

    Raises:
        SpecError: if equal elements are pinned to different devices, or a destination has no input.
    """
    ids: dict[int, int] = {}
    merged: dict[Any, int] = {}
    found: _Found = []
    for element in postorder(roots, attrgetter("inputs")):
        inputs = tuple([ids[id(operand)] for operand in element.inputs])
        if isinstance(element, Compute):
            if element.op.transparent:
                (ids[id(element)],) = inputs
                continue
        elif not isinstance(element, Constant) and isinstance(element, Destination):
            _ = element.input
        key = _merge_key(element, inputs)
        position = merged.setdefault(key, len(found))
        if position == len(found):
            found.append((element, inputs))
        elif found[position][0] is not element:
            found[position] = (_either(found[position][0], element), inputs)
        ids[id(element)] = position
    return found, tuple([ids[id(root)] for root in roots])


def _either(one: Element, other: Element) -> Element:
    """Merge two equal elements into one that has the name, the call and the pin of either.

    Raises:
        SpecError: if they are pinned to different devices.
    """
    # What users called for is shown in place of an equal step of another call.
    chosen = other if _shown_rank(other) > _shown_rank(one) else one
    if not isinstance(one, Compute):
        return chosen
    pins = [element.pin for element in (one, other) if isinstance(element, Compute) and element.pin is not None]
    if len({pin.device for pin in pins}) == 2:
        raise SpecError(
            "cannot compute one operation on two devices",
            element=other.name or other.label,
            site=pins[1].site,
            expected="one device for the same operation on the same operands",
            got=f"on({pins[1].device!r}), and on({pins[0].device!r}) at {pins[0].site}",
            hint="remove one of the pins",
        )
    if not pins or not isinstance(chosen, Compute) or chosen.pin is not None:
        return chosen
    chosen = copy.copy(chosen)
    chosen.freeze_fields(pin=pins[0])
    return chosen


def _shown_rank(element: Element) -> tuple[bool, bool]:
    return element.name is not None, not element.is_step


def _merge_key(element: Element, inputs: tuple[int, ...]) -> Any:
    """Return a key that is equal for elements of equal values."""
    pin = element.pin if isinstance(element, Compute) else None
    made: Any = element if pin is None else pin.of
    element = made if made.twin_of is None else made.twin_of
    if isinstance(element, Compute):
        if not isinstance(element, _UNMERGED):
            # The device is no part of the key: a frozen job has the same nodes with other pins, and with none.
            op = element.op
            operands = tuple(sorted(inputs)) if op.commutes else inputs
            # To hash a whole spec takes longer.
            spec = element.spec
            stream = None if spec.stream is None else (spec.stream.length,)
            return (op.kind, op.name, _plain(element.attrs), operands, spec.dtype, spec.shape, stream, element.again)
    elif isinstance(element, Constant):
        value = element.value
        if element.identity is not None:
            return ("constant", element.identity, element.spec)
        if value.nbytes <= _COMPARED_BYTES:
            return ("constant", value.dtype, value.shape, value.tobytes())
    elif isinstance(element, Source):
        return ("source", type(element), element.identity, element.spec)
    return id(element)


def _plain(attrs: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(attrs.items()) if len(attrs) > 1 else attrs.items())


def _unique_names(elements: list[Element]) -> list[str]:
    given: dict[str, Element] = {}
    for element in elements:
        if element.name is not None and given.setdefault(element.name, element) is not element:
            raise SpecError(
                f"cannot give two elements the name {element.name!r}",
                element=element.name,
                site=element.site,
                hint=f"rename one; the other was made at {given[element.name].site}",
            )
    taken = set(given)
    counts: dict[str, int] = {}

    def unique(base: str) -> str:
        name = base
        while name in taken:
            counts[base] = counts.get(base, 1) + 1
            name = f"{base}_{counts[base]}"
        taken.add(name)
        return name

    # The steps of a call bear its name, which is that of what it returned: softmax_2, and softmax_2.exp within.
    returned = {id(element.call): element for element in reversed(elements) if element.call and not element.is_step}
    calls: dict[int, str] = {}
    names = []
    for element in elements:
        call, name = element.call, element.name
        if name is None and (call is None or not isinstance(element, Compute)):
            name = unique(element.base_name)
        elif name is None:
            result = returned.get(id(call), element)
            if id(call) not in calls:
                base = result.call.name if result.call and result.is_step else result.base_name
                calls[id(call)] = result.name or unique(base)
            of_call = calls[id(call)]
            name = of_call if result is element and not element.is_step else unique(_within(of_call, element))
        names.append(name)
    return names


def _within(call: str, element: Element) -> str:
    """Return what the name of a step of a call begins with, or that of a further result of it."""
    return f"{call}.{element.label}" if element.is_step else element.base_name


@functools.cache
def _name_of(dtype: np.dtype) -> str:
    # NumPy spells the name anew for each question, which takes microseconds.
    return dtype.name


def structural_hash(graph: Graph) -> str:
    """Hash the structure of a graph: operations, attributes, dtypes and item shapes, but no lengths or data.

    Leaves are identified by their position, so `x * x` and `a * b` differ. Scalars are leaves except 0, 1, -1 and 2.
    """
    return _hash_of(((node.element, node.inputs) for node in graph.nodes), graph.roots)


def hash_of_elements(roots: Sequence[Element]) -> str:
    """Return the `structural_hash` of the graph of these roots, which is not built: names are no part of it.

    Raises:
        SpecError: as for `build_graph`, but for names.
    """
    return _hash_of(*_merged(roots))


def _hash_of(found: Iterable[tuple[Element, tuple[int, ...]]], roots: tuple[int, ...]) -> str:
    text = "".join([repr(_structure(element, inputs)) for element, inputs in found]) + repr(roots)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _structure(element: Element, inputs: tuple[int, ...]) -> tuple[Any, ...]:
    spec = element.spec
    shape = (_name_of(spec.dtype), spec.shape, spec.is_stream)
    if isinstance(element, Constant):
        scalar = element.value[()] if element.value.ndim == 0 else None
        literal = repr(scalar) if scalar is not None and is_literal(element.value) else None
        return ("constant", shape, literal)
    if isinstance(element, HostFunction | ScanFunction):
        function = element.function
        return (element.op.name, getattr(function, "__qualname__", type(function).__qualname__), shape, inputs)
    if isinstance(element, Compute):
        attrs = tuple((key, str(value)) for key, value in _plain(element.attrs))
        pinned = () if element.pin is None else (element.pin.device,)
        return (element.op.kind.value, element.op.name, attrs, shape, inputs, *_written(element), *pinned)
    return (type(element).__name__, shape, inputs)


def _written(element: Compute) -> tuple[int, ...]:
    """Return the unroll factors of a user's functions. They affect the speed, not the result."""
    op = element.step if isinstance(element, KernelScan) else element.op
    unrolls = tuple(one.unroll for one in functions(op.function)) if isinstance(op, UserOp) else ()
    return unrolls if any(unrolls) else ()


def is_number(node: Node) -> bool:
    """Check whether a node is a constant of one number, which drawings show inside of what uses it."""
    return isinstance(node.element, Constant) and not node.spec.shape


def is_literal(value: np.ndarray) -> bool:
    """Check whether a constant's value is part of the structure (and of kernel text)."""
    return value.ndim == 0 and value[()] in _LITERALS and not (value == 0 and np.signbit(value.astype("f8")))
