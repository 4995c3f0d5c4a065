"""A store of arrays beside a description, and what has to be given again by name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import flowcompute as fc
from flowcompute.checkpoint.job.describe import describe_job
from flowcompute.checkpoint.job.rebuild import rebuild_job
from flowcompute.checkpoint.store.decode import decode
from flowcompute.checkpoint.store.encode import encode
from flowcompute.elements.destination import Destination
from flowcompute.elements.element import Element
from flowcompute.elements.functions.opencl_function import SourceOp
from flowcompute.graph.graph import Graph, build_graph


class Store:
    """Keeps arrays by their content."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def put(self, array: np.ndarray) -> str:
        assert array.flags.c_contiguous
        assert array.dtype.isnative
        key = hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()
        self.arrays[key] = array.copy()
        return key

    def get(self, key: Any) -> np.ndarray:
        if not isinstance(key, str) or key not in self.arrays:
            raise fc.CheckpointError("there is no such array")
        return self.arrays[key]


def graph_of(*roots: Element) -> Graph:
    """The graph that `fc.resolve` begins with."""
    return build_graph([root if isinstance(root, Destination) else fc.to_array().bind(root) for root in roots])


def written(data: Any) -> Any:
    """Data as it is read again from a file."""
    encoded = encode(data)
    assert not encoded.arrays
    return decode(encoded.data, lambda _: np.empty(0)).value


def described(*roots: Element, store: Store | None = None) -> dict[str, Any]:
    """The job of these roots as data, read again from a file."""
    made: dict[str, Any] = written(describe_job(graph_of(*roots), (store or Store()).put))
    return made


def bindings(graph: Graph, texts: Sequence[str] = ()) -> dict[str, object]:
    """What the elements of a graph that cannot be kept were made of, by name; OpenCL texts in their order."""
    given = iter(texts)
    bound: dict[str, object] = {}
    for node in graph.nodes:
        for field in ("function", "iterable"):
            if hasattr(node.element, field):
                bound[node.name] = getattr(node.element, field)
        if isinstance(node.op, SourceOp):
            bound[node.name] = next(given)
    return bound


def round_trip(*roots: Element, texts: Sequence[str] = ()) -> list[Element]:
    """The roots made again, having checked that nothing of the job was lost on the way."""
    graph, store = graph_of(*roots), Store()
    data = describe_job(graph, store.put)
    kept = written(data)
    again = rebuild_job(kept, store.get, bindings(graph, texts), allow=("/",))
    assert kept == data, "rebuilding wrote into the description"
    made = build_graph(again)
    assert describe_job(made, store.put) == data
    assert [node.name for node in made.nodes] == [node.name for node in graph.nodes]
    assert [node.element.site for node in made.nodes] == [node.element.site for node in graph.nodes]
    return again
