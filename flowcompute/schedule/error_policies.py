"""The error policies of a graph: whose they are, and the dead-letter files that they name."""

from __future__ import annotations

import os
from collections.abc import Iterator

from flowcompute.elements import Element, HostFunction
from flowcompute.elements.policies import DeadLetters, ErrorPolicy
from flowcompute.errors import PlanError
from flowcompute.files import shown
from flowcompute.graph import Graph, Node
from flowcompute.sinks import StoredSink
from flowcompute.sources import IterateSource, SeveralSource, SourceView, StoredSource


def policies(graph: Graph) -> dict[ErrorPolicy, str]:
    """The policies of elements that may drop records, and the elements' names.

    An element of which a rewrite made several nodes has the name of the first.
    """
    return {policy: node.name for policy, node in _nodes_by_policy(graph).items()}


def find_dead_letters(graph: Graph) -> dict[ErrorPolicy, DeadLetters]:
    """The dead-letter files of a graph, not yet begun."""
    return {
        policy: DeadLetters(policy, node.name, node.element.site)
        for policy, node in _nodes_by_policy(graph).items()
        if policy.path is not None
    }


def check_dead_letters(graph: Graph) -> None:
    """Refuse a dead-letter file that something else of the job reads or writes.

    Raises:
        PlanError: naming both.
    """
    taken = {path: (node, does) for node in graph.nodes for path, does in files_of(node.element)}
    for node, path in letter_paths(graph):
        other, does = taken.setdefault(path, (node, "writes"))
        if other is not node:
            raise PlanError(
                "its dead-letter file is also a file of another element",
                element=node.name,
                site=node.element.site,
                expected="a file of its own",
                got=f"{shown(path)}, which {other.name} {does}",
                hint="choose another name for dead_letter=",
            )


def letter_paths(graph: Graph) -> list[tuple[Node, str]]:
    """The real paths of dead-letter files, each with the first node whose records go there."""
    return [(node, os.path.realpath(one.path)) for one, node in _nodes_by_policy(graph).items() if one.path is not None]


def _nodes_by_policy(graph: Graph) -> dict[ErrorPolicy, Node]:
    found: dict[ErrorPolicy, Node] = {}
    for node in graph.nodes:
        if isinstance(node.element, HostFunction | IterateSource) and node.element.policy.drops:
            found.setdefault(node.element.policy, node)
    return found


def files_of(element: Element) -> Iterator[tuple[str, str]]:
    """The files that an element reads or writes, by their real paths, and which of the two it does."""
    if isinstance(element, StoredSink):
        yield os.path.realpath(element.target), "writes"
    elif isinstance(element, StoredSource):
        yield os.path.realpath(element.path), "reads"
    elif isinstance(element, SeveralSource):
        for part in element.sources:
            yield from files_of(part)
    elif isinstance(element, SourceView):
        yield from files_of(element.inner)
