"""A job as plain data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from flowcompute.checkpoint.job.fields import LONGEST_TEXT
from flowcompute.checkpoint.job.fingerprint import PYTHON
from flowcompute.checkpoint.job.kept_functions import describe_functions
from flowcompute.checkpoint.job.parts import Describing, part_of
from flowcompute.elements import UserCall
from flowcompute.errors import CheckpointError, Site
from flowcompute.files import shown
from flowcompute.graph import Graph, Node
from flowcompute.ir import ORDER_VERSION

FORMAT = 1
"""Version of job data."""


def describe_job(graph: Graph, put: Callable[[np.ndarray], Any], *, contents: bool = False) -> dict[str, Any]:
    """Describe the graph as plain data: dicts, lists, None, bools, ints, text and bytes, and what `put` gives.

    Args:
        graph: the merged graph of the roots as users made it, before any rewriting.
        put: keeps an array (C order, native byte order) beside the description, and gives plain data that stands for it
            there. Equal content gives equal data.
        contents: whether digests of the contents of files are kept, for those that are touched later.

    Raises:
        CheckpointError: for an element that cannot be kept, or a file that cannot be read.
    """
    inner = partial(_described_graph, describing=Describing(put, contents=contents))
    return _described_graph(graph, Describing(put, contents=contents, graph=inner))


def _described_graph(graph: Graph, describing: Describing) -> dict[str, Any]:
    calls: dict[int, UserCall] = {id(one.element.call): one.element.call for one in graph.nodes if one.element.call}
    numbers = {key: number for number, key in enumerate(calls)}
    nodes = [_described(node, describing, numbers) for node in graph.nodes]
    return {
        "format": FORMAT,
        "order": ORDER_VERSION,
        "python": PYTHON,
        "nodes": nodes,
        "roots": list(graph.roots),
        **({"calls": [_described_call(call) for call in calls.values()]} if calls else {}),
        "kernels": describe_functions(describing.kernels),
    }


def _described_call(call: UserCall) -> dict[str, Any]:
    arguments = None if call.of_operands else shown(call.arguments)[:LONGEST_TEXT]
    return {"name": call.name, "arguments": arguments, "site": _line(call.site)}


def _line(site: Site | None) -> list[Any] | None:
    return None if site is None else [shown(site.file), site.line]


def _described(node: Node, describing: Describing, calls: dict[int, int]) -> dict[str, Any]:
    element, spec = node.element, node.spec
    try:
        part = part_of(element)
        own = part.describe(element, describing)
    except CheckpointError as error:
        error.element, error.site = error.element or node.name, error.site or element.site
        raise
    return {
        "tag": part.tag,
        "name": str(node.name),
        "given": element.name is not None,
        "site": _line(element.site),
        **({} if element.call is None else {"call": calls[id(element.call)], "step": element.is_step}),
        **({"again": True} if node.again else {}),
        "inputs": list(node.inputs),
        "dtype": spec.dtype.name,
        "shape": [int(size) for size in spec.shape],
        "stream": spec.is_stream,
        "length": None if spec.length is None else int(spec.length),
        **own,
    }
