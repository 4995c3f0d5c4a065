"""Error policies of a graph: the elements that have them, and the dead-letter files that they name."""

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
from flowcompute.tokens import FileTokens


def policies(graph: Graph) -> dict[ErrorPolicy, str]:
    """Return the policies of elements that may drop records, each with the name of its element.

    Where a rewrite split an element into several nodes, the name is that of the first node.
    """
    return {policy: node.name for policy, node in _nodes_by_policy(graph).items()}


def find_dead_letters(graph: Graph) -> dict[ErrorPolicy, DeadLetters]:
    """Return the dead-letter files of a graph by policy. None of them is open yet."""
    return {
        policy: DeadLetters(policy, node.name, node.element.site)
        for policy, node in _nodes_by_policy(graph).items()
        if policy.path is not None
    }


def check_dead_letters(graph: Graph) -> None:
    """Check that nothing else in the job reads or writes a dead-letter file.

    Raises:
        PlanError: if something does; the error names both elements.
    """
    taken = {path: (node, does) for node in graph.ends() for path, does in files_of(node.element)}
    for node, path in letter_paths(graph):
        other, does = taken.setdefault(path, (node, "writes"))
        if other is not node:
            raise PlanError(
                "cannot use a dead-letter file that another element reads or writes",
                element=node.name,
                site=node.element.site,
                expected="a file of its own",
                got=f"{shown(path)}, which {other.name} {does}",
                hint="choose another name for dead_letter=",
            )


def letter_paths(graph: Graph) -> list[tuple[Node, str]]:
    """Return the real paths of the dead-letter files, each with the first node whose records go there."""
    return [(node, os.path.realpath(one.path)) for one, node in _nodes_by_policy(graph).items() if one.path is not None]


def _nodes_by_policy(graph: Graph) -> dict[ErrorPolicy, Node]:
    found: dict[ErrorPolicy, Node] = {}
    for node in graph.nodes:
        if isinstance(node.element, HostFunction | IterateSource) and node.element.policy.drops:
            found.setdefault(node.element.policy, node)
    return found


def files_of(element: Element) -> Iterator[tuple[str, str]]:
    """Yield the real path of each file of an element, and "reads" or "writes"."""
    if isinstance(element, StoredSink):
        yield os.path.realpath(element.target), "writes"
    elif isinstance(element, StoredSource):
        yield os.path.realpath(element.path), "reads"
    elif isinstance(element, FileTokens):
        yield os.path.realpath(element.texts.path), "reads"
    elif isinstance(element, SeveralSource):
        for part in element.sources:
            yield from files_of(part)
    elif isinstance(element, SourceView):
        yield from files_of(element.inner)
