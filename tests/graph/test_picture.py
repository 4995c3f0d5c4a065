"""Pictures of plans: every kernel in a frame of its own, nothing over anything else."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.graph import build_graph, draw_svg
from flowcompute.graph.drawing_layout import DrawnEdge, place
from flowcompute.graph.folding import fold_groups
from flowcompute.schedule.explain.explain_plan import kernel_groups
from tests.properties.cases import cases

SPACE = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


def rows(name: str = "x") -> Element:
    return fc.source(np.ones((300, 7), np.float32), name=name)


def softmax() -> list[Element]:
    e = fc.exp((x := rows() * 0.5) - x.max(axis=1, keepdims=True))
    return [e / e.sum(axis=1, keepdims=True)]


def layer() -> list[Element]:
    x = rows()
    h = fc.nn.relu(fc.nn.softmax(x) @ np.ones((7, 7), np.float32) + 0.25) + x
    return [h, (h * h).sum(axis=1)]


def two_passes() -> list[Element]:
    y = rows() * rows("other")
    z = (y - y.mean(axis=0)) / y.std(axis=0)
    return [z, fc.host(np.cumsum, z[:, 0])]


JOBS: dict[str, Callable[[], list[Element]]] = {"softmax": softmax, "layer": layer, "two passes": two_passes}


def boxes(svg: str) -> tuple[list[Box], list[Box]]:
    """Frames and boxes of nodes."""
    found: dict[str, list[Box]] = {"10": [], "6": []}
    for rect in ElementTree.fromstring(svg).iter(f"{SPACE}rect"):
        x, y, w, h = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        found[rect.attrib["rx"]].append((x, y, x + w, y + h))
    return found["10"], found["6"]


def apart(a: Box, b: Box) -> bool:
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def inside(a: Box, b: Box) -> bool:
    return b[0] < a[0] and b[1] < a[1] and a[2] < b[2] and a[3] < b[3]


@pytest.mark.parametrize("job", JOBS)
def test_kernels_have_frames_with_their_nodes_in_them(job: str) -> None:
    plan = fc.plan(*JOBS[job](), device="cpu")
    frames, nodes = boxes(plan.svg())
    groups = kernel_groups(plan)
    assert len(frames) == len(groups) == len(plan.kernels)
    for kind in (frames, nodes):
        assert all(apart(a, b) for i, a in enumerate(kind) for b in kind[i + 1 :])
    assert all(apart(node, frame) or inside(node, frame) for node in nodes for frame in frames)
    folded, held = fold_groups(plan.graph, groups)
    numbers = {i for i, node in enumerate(folded.nodes) if not node.spec.shape and node.op is None}
    for frame, members in zip(frames, held.values(), strict=True):
        used = {i for member in members for i in folded.nodes[member].inputs if i in numbers}
        used -= {i for i in used if folded.nodes[i].spec.is_stream}
        assert sum(inside(node, frame) for node in nodes) == len(members) + len(used)


def test_what_two_passes_compute_is_drawn_in_both() -> None:
    plan = fc.plan(*two_passes(), device="cpu")
    texts = [text.text for text in ElementTree.fromstring(plan.svg()).iter(f"{SPACE}text")]
    twice = [i for i in range(len(plan.graph.nodes)) if sum(i in nodes for nodes in kernel_groups(plan).values()) == 2]
    assert [plan.graph.nodes[i].name for i in twice] == ["multiply"]
    assert texts.count("multiply") == 2
    assert texts.count("x") == texts.count("other") == 1
    assert sum("before pass 2" in text for text in texts if text) == 1


def test_a_kernel_has_its_values_from_kernels_before_it() -> None:
    y = rows() * rows("other")
    centred = y - (y @ np.ones((7, 7), np.float32)).mean(axis=0)
    plan = fc.plan(centred, device="cpu")
    made = [[plan.graph.nodes[i].name for i in nodes] for nodes in kernel_groups(plan).values()]
    assert made == [["multiply"], ["matmul"], ["mean"], ["multiply", "subtract"]]
    tops = [frame[1] for frame in boxes(plan.svg())[0]]
    assert tops == sorted(set(tops))


def test_reasons_are_written_where_the_cut_is() -> None:
    plan = fc.plan(*layer(), device="cpu")
    said = " ".join(text.text or "" for text in ElementTree.fromstring(plan.svg()).iter(f"{SPACE}text"))
    boundaries = [str(reason) for reason in plan.reasons if reason.kind == "cut"]
    assert len(boundaries) == 2
    assert all(cut in said for cut in boundaries)


def test_lines_that_cross_a_frame_are_thick() -> None:
    svg = fc.plan(*softmax(), device="cpu").svg()
    thick = re.findall(r'<path d="M[^"]*" fill="none" stroke="#333" stroke-width="2"/>', svg)
    # From the source to the frame, on to its port, and the same for the destination.
    assert len(thick) == 4


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[DrawnEdge]]:
    count = draw(st.integers(0, 12))
    size = st.tuples(st.sampled_from([10.0, 35.0, 120.0]), st.sampled_from([0.0, 24.0, 40.0]))
    sizes = [draw(size) for _ in range(count)]
    edges = []
    for target in range(1, count):
        for source in draw(st.sets(st.integers(0, target - 1), max_size=3)):
            leaves = sizes[source][0] * draw(st.sampled_from([0.25, 0.5]))
            edges.append(DrawnEdge(source, leaves, target, sizes[target][0] / 2))
    # Numbers of boxes say nothing about their order.
    names = draw(st.permutations(range(count)))
    return [sizes[names.index(i)] for i in range(count)], [
        DrawnEdge(names[e.source], e.leaves, names[e.target], e.enters) for e in edges
    ]


def check_route(route: Sequence[tuple[float, float]], others: list[Box]) -> None:
    for (ax, ay), (bx, by) in itertools.pairwise(route):
        assert ay <= by
        for left, top, right, bottom in others:
            # A curve stays between its ends; beside boxes lines are straight.
            assert bottom <= ay or by <= top or max(ax, bx) <= left or right <= min(ax, bx)


@cases(60)
@given(graphs())
def test_boxes_and_lines_keep_apart(graph: tuple[list[tuple[float, float]], list[DrawnEdge]]) -> None:
    sizes, edges = graph
    found = place(sizes, edges, (20, 30))
    placed = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(found.corners, sizes, strict=True)]
    assert all(x >= 0 and y >= 0 and right <= found.width + 1e-6 and low <= found.height for x, y, right, low in placed)
    for i, a in enumerate(placed):
        for b in placed[i + 1 :]:
            assert a[1] != b[1] or a[2] + 20 <= b[0] + 1e-6 or b[2] + 20 <= a[0] + 1e-6
    reached: dict[tuple[int, float], list[Sequence[tuple[float, float]]]] = {}
    for edge in sorted(edges, key=lambda edge: placed[edge.target][1]):
        route = found.routes[edges.index(edge)]
        assert route[-1] == pytest.approx((placed[edge.target][0] + edge.enters, placed[edge.target][1]))
        before = reached.setdefault((edge.source, edge.leaves), [])
        start = (placed[edge.source][0] + edge.leaves, placed[edge.source][3])
        assert any(route[0] in other for other in before) or route[0] == pytest.approx(start)
        before.append(route)
        check_route(route, [box for i, box in enumerate(placed) if i not in (edge.source, edge.target)])


def luminance(colour: str) -> float:
    """Relative luminance of "#rgb" or "#rrggbb" (WCAG 2.2, section 1.4.3)."""
    text = colour.lstrip("#")
    text = "".join(2 * one for one in text) if len(text) == 3 else text
    channels = [int(text[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_texts_can_be_read_on_any_share_of_the_time(share: float) -> None:
    graph = build_graph([rows() * 2])
    svg = draw_svg(graph, shares=dict.fromkeys((node.name for node in graph.nodes), share))
    fill = seen = 0.0
    for one in ElementTree.fromstring(svg).iter():
        if one.tag == f"{SPACE}rect":
            fill = luminance(one.get("fill", "#fff"))
        elif one.tag == f"{SPACE}text":
            text, seen = luminance(one.get("fill", "#000")), seen + 1
            assert (max(fill, text) + 0.05) / (min(fill, text) + 0.05) >= 4.5
    assert seen >= 4
