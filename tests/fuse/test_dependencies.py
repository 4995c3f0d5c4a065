"""The order of steps under construction: answers are those of a search through everything."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.fuse.dependencies import Dependencies
from flowcompute.graph.graph import Graph, build_graph
from tests.properties.cases import cases


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    values: list[Element] = [fc.source(np.ones((3, 2))), fc.source(np.zeros((3, 2)))]
    for i in range(draw(st.integers(2, 25))):
        one, other = (values[draw(st.integers(0, len(values) - 1))] for _ in range(2))
        values.append(one * (i + 2) - other)
    return build_graph(values)


def depends(members: dict[int, set[int]], graph: Graph, starts: set[int], targets: set[int]) -> bool:
    """Search through all that values depend on, where all nodes of a step depend on what one of them reads."""
    todo, seen = list(starts), set[int]()
    while todo:
        i = todo.pop()
        if i in targets:
            return True
        if i not in seen:
            step = members.get(i, {i})
            seen |= step
            todo += [o for one in step for o in graph.nodes[one].inputs if o not in step]
    return False


@cases(150)
@given(graphs(), st.data())
def test_reaches_what_a_whole_search_reaches(graph: Graph, data: st.DataObject) -> None:
    dependencies = Dependencies(graph)
    members: dict[int, set[int]] = {}
    for node in (node for node in graph.nodes if node.inputs):
        action = data.draw(st.sampled_from(["alone", "start", "join", "merge"]))
        if action == "alone":
            continue
        near = [members[i] for i in node.inputs if i in members]
        near = near[: 1 if action == "join" else 2]
        wanted = set[int]().union(*near)
        cyclic = len(near) == 2 and near[0] is not near[1] and depends(members, graph, _read(graph, near), wanted)
        cyclic = cyclic or depends(members, graph, set(node.inputs) - wanted, wanted)
        if near and action != "start":
            values = set(node.inputs) - wanted
            if len(near) == 2 and near[0] is not near[1]:
                values = values.union(*(dependencies.operands(min(step)) for step in near))
            assert dependencies.reaches(values, [min(step) for step in near]) == cyclic
            if not cyclic:
                if near[0] is not near[-1]:
                    dependencies.merge(min(near[0]), min(near[-1]))
                dependencies.join(min(near[0]), node.id)
                dependencies.read(node.id, node.inputs)
                joined = wanted | {node.id}
                members.update(dict.fromkeys(joined, joined))
                continue
        dependencies.add(node.id)
        dependencies.read(node.id, node.inputs)
        members[node.id] = {node.id}


def _read(graph: Graph, steps: list[set[int]]) -> set[int]:
    """Return the values that steps read of others."""
    return {o for step in steps for i in step for o in graph.nodes[i].inputs if o not in step}
