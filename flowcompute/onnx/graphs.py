"""Models as plain records: graphs of nodes, and the ports at which values go in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from flowcompute.elements import Constant
from flowcompute.errors import short_repr
from flowcompute.imports import dataclass
from flowcompute.onnx._onnx import attribute_kind
from flowcompute.onnx.operators import DEFINED, OnnxNode
from flowcompute.onnx.problems import Refusal
from flowcompute.onnx.tensors import External, NarrowTensor, damaged, dtype_of, tensor_value, text_of

MOST_NODES = 1 << 20
DEEPEST = 16
"""Graphs within nodes of graphs."""


@dataclass(frozen=True)
class Port:
    """A value that a model takes or gives.

    Attributes:
        name: as in the model.
        dtype: of its numbers; None where elements have no such dtype.
        shape: sizes; the name of one that is not fixed, or None. None where even the rank is not known.
        refusal: why it is no array, else None.
    """

    name: str
    dtype: np.dtype | None
    shape: tuple[int | str | None, ...] | None
    refusal: Refusal | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Reference:
    """An attribute of a function that a node of its body refers to."""

    name: str


@dataclass(frozen=True)
class OnnxGraph:
    """A graph, or the body of a function.

    Attributes:
        inputs, outputs: its ports, without inputs that have an initial value.
        values: initial values by name; a `Refusal` where elements cannot have one.
        nodes: in an order in which each comes after those that it needs.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    values: Mapping[str, Constant | NarrowTensor | Refusal]
    nodes: tuple[OnnxNode, ...]


NARROW_ATTRIBUTE = Refusal("dtype", "numbers of less than 8 bits in an attribute", "make them an initializer")


class GraphReader:
    """Reader that makes records of an `onnx.ModelProto`.

    Args:
        opsets: version of each domain.
        external: for tensors in other files.
    """

    def __init__(self, opsets: Mapping[str, int], external: External) -> None:
        self._opsets, self._external = opsets, external
        self._count = 0

    def graph(self, proto: Any, depth: int = 0, outer: frozenset[str] = frozenset()) -> OnnxGraph:
        """Read a graph.

        Args:
            proto: an `onnx.GraphProto`.
            depth: of the node that holds it.
            outer: names that it may use of graphs around it.

        Raises:
            SourceError: if it is not sound.
        """
        if depth > DEEPEST:
            raise damaged("its graphs lie within graphs", f"no more than {DEEPEST} deep")
        values: dict[str, Constant | NarrowTensor | Refusal] = {
            one.name: self._tensor(one) for one in proto.initializer
        }
        for sparse in proto.sparse_initializer:
            values[sparse.values.name] = Refusal("dtype", "a sparse tensor", "make it dense in the model")
        inputs = tuple(self._port(one) for one in proto.input if one.name not in values)
        names = set(outer)
        _add(names, (one.name for one in inputs), outer)
        names |= values.keys()
        nodes = self._nodes(proto.node, names, depth, outer)
        outputs = tuple(self._port(one) for one in proto.output)
        for port in outputs:
            if port.name not in names:
                raise damaged(f"nothing makes its output {short_repr(port.name)}")
        return OnnxGraph(inputs, outputs, values, nodes)

    def function(self, proto: Any) -> OnnxGraph:
        """Read the body of a function of the model.

        Raises:
            SourceError: if it is not sound.
        """
        own = GraphReader({**self._opsets, **opsets_of(proto.opset_import)}, self._external)
        nodes = own._nodes(proto.node, set(proto.input), 0, frozenset())
        ports = [tuple(Port(name, None, None) for name in names) for names in (proto.input, proto.output)]
        return OnnxGraph(ports[0], ports[1], {}, nodes)

    def _nodes(self, protos: Any, names: set[str], depth: int, outer: frozenset[str]) -> tuple[OnnxNode, ...]:
        made = []
        for place, proto in enumerate(protos):
            self._count += 1
            if self._count > MOST_NODES:
                raise damaged("it has too many nodes", f"at most {MOST_NODES}")
            name = text_of(proto.name)
            name = name if name and name.isprintable() else f"#{place}"
            for one in proto.input:
                if one and one not in names:
                    raise damaged(f"node {short_repr(name)} reads {short_repr(one)}, which nothing makes before it")
            domain = "" if proto.domain == "ai.onnx" else text_of(proto.domain)
            attributes = {one.name: self._attribute(one, depth, frozenset(names)) for one in proto.attribute}
            _add(names, (one for one in proto.output if one), outer)
            opset = self._opsets.get(domain, 0)
            names_in, names_out = tuple(proto.input), tuple(proto.output)
            kept = proto.SerializeToString() if (domain, proto.op_type) in DEFINED else b""
            made.append(OnnxNode(name, text_of(proto.op_type), domain, opset, names_in, names_out, attributes, kept))
        return tuple(made)

    def _tensor(self, proto: Any) -> Constant | NarrowTensor | Refusal:
        try:
            return tensor_value(proto, self._external)
        except Refusal as refusal:
            return refusal

    def _attribute(self, proto: Any, depth: int, names: frozenset[str]) -> Any:
        """Return an attribute as a Python value."""
        if proto.ref_attr_name:
            return Reference(proto.ref_attr_name)
        kind = attribute_kind(proto)
        if kind in ("INT", "FLOAT"):
            return proto.i if kind == "INT" else proto.f
        if kind == "STRING":
            return proto.s.decode(errors="replace")
        if kind == "INTS":
            return tuple(proto.ints)
        if kind == "FLOATS":
            return tuple(proto.floats)
        if kind == "STRINGS":
            return tuple(one.decode(errors="replace") for one in proto.strings)
        if kind == "TENSOR":
            made = self._tensor(proto.t)
            return NARROW_ATTRIBUTE if isinstance(made, NarrowTensor) else made
        if kind == "GRAPH":
            return self.graph(proto.g, depth + 1, names)
        return Refusal("attribute", f"attribute {proto.name!r} of type {kind or proto.type}", "leave it out")

    @staticmethod
    def _port(proto: Any) -> Port:
        kind, given = proto.type.WhichOneof("value"), proto.type
        if kind == "optional_type":
            given = proto.type.optional_type.elem_type
            kind = given.WhichOneof("value")
        if kind is None:
            return Port(proto.name, None, None)
        if kind != "tensor_type":
            refusal = Refusal("sequence", f"{proto.name!r} is a {kind.removesuffix('_type')}", "give arrays one by one")
            return Port(proto.name, None, None, refusal)
        tensor = given.tensor_type
        shape = tuple(_size(one) for one in tensor.shape.dim) if tensor.HasField("shape") else None
        try:
            return Port(proto.name, dtype_of(tensor.elem_type) if tensor.elem_type else None, shape)
        except Refusal as refusal:
            return Port(proto.name, None, shape, refusal)


def _size(proto: Any) -> int | str | None:
    if proto.HasField("dim_value") and proto.dim_value >= 0:
        return int(proto.dim_value)
    # Some exporters write a question mark for each size that is not known, also for several of one value.
    return str(proto.dim_param) if proto.dim_param not in ("", "?") else None


def _add(names: set[str], more: Iterable[str], outer: frozenset[str]) -> None:
    """Add names of values, each of which is made once."""
    for name in more:
        if not isinstance(name, str):
            raise damaged(f"the name {short_repr(name)} is no text")
        if name in names and name not in outer:
            raise damaged(f"two nodes make {short_repr(name)}")
        names.add(name)


def opsets_of(imports: Any) -> dict[str, int]:
    """Return the version of each domain."""
    return {"" if one.domain == "ai.onnx" else one.domain: int(one.version) for one in imports}
