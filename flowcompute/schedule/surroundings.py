"""Checks of what does not follow from a graph: they are made for each run, also of a plan that is known."""

from __future__ import annotations

import os

import numpy as np

from flowcompute.elements import Constant
from flowcompute.errors import PlanError
from flowcompute.files import shown
from flowcompute.graph import Graph, Node
from flowcompute.schedule.error_policies import check_dead_letters
from flowcompute.sinks import MemorySink, NumbersSink, StoredSink, UploadSink, ZarrObjectsSink
from flowcompute.sources import MemorySource


def check_surroundings(graph: Graph) -> None:
    """Check what does not follow from the structure: files, and the memory of arrays."""
    check_dead_letters(graph)
    _check_targets(graph)
    _check_outs(graph)


def _check_targets(graph: Graph) -> None:
    """Check that no two results go to the same file, where one would be lost."""
    targets: dict[str, Node] = {}
    for node in graph.ends():
        sink = node.element.inner if isinstance(node.element, NumbersSink) else node.element
        if isinstance(sink, StoredSink | UploadSink | ZarrObjectsSink):
            target = os.path.realpath(sink.target) if isinstance(sink, StoredSink) else sink.path
            first = targets.setdefault(target, node)
            if first is not node:
                raise PlanError(
                    f"cannot write to the same file as {first.name}",
                    element=node.name,
                    site=sink.site,
                    expected="a file of its own for each result",
                    got=shown(sink.path),
                )


def _check_outs(graph: Graph) -> None:
    """Check that no result in memory overlaps an input of the job or another result."""
    taken = [(node, node.element.array) for node in graph.ends() if isinstance(node.element, MemorySource)]
    taken += [(node, node.element.value) for node in graph.ends() if isinstance(node.element, Constant)]
    for node in graph.ends():
        sink = node.element
        if isinstance(sink, MemorySink) and sink.out is not None:
            for other, array in taken:
                if np.may_share_memory(sink.out, array):
                    raise PlanError(
                        f"cannot write to out=: it overlaps the memory of {other.name}",
                        element=node.name,
                        site=sink.site,
                        expected="memory that the job has no other use for",
                        hint="give it an array of its own: out=np.empty_like(...)",
                    )
            taken.append((node, sink.out))
