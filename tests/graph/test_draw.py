"""Drawings: complete, sound in their language, and the same every time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.graph.draw import MOST_LEVELS, MOST_LINES, draw_dot, draw_tree
from flowcompute.graph.graph import build_graph
from flowcompute.graph.picture import draw_svg


def model() -> Element:
    x = fc.source(np.ones((4, 3), np.float32), name='in "quotes" & <tags>')
    e = fc.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) * 2.5


def test_text_draws_shared_parts_once() -> None:
    text = draw_tree(build_graph([model()]), note="unresolved")
    lines = text.splitlines()
    assert re.fullmatch(r"multiply: float32\(4, 3\) stream  test_draw.py:\d+  unresolved", lines[0])
    assert sum("exp: " in line for line in lines) == 2
    assert sum("(see above)" in line for line in lines) == 1
    assert any(line.endswith("2.5") for line in lines)
    assert all(re.match(r"^(│  |   )*(├─ |└─ )", line) for line in lines[1:])
    assert "axis=1 keepdims=True" in text


def test_text_of_an_element_is_its_drawing() -> None:
    made = model()
    assert str(made) == draw_tree(build_graph([made]), note="unresolved")


def test_every_root_is_drawn() -> None:
    made = model()
    text = draw_tree(build_graph([made, made.sum(axis=0)]))
    drawn = [line.partition("  ")[0] for line in text.splitlines() if not line.startswith((" ", "├", "└", "│"))]
    assert drawn == ["multiply: float32(4, 3) stream", "sum_2 axis=0: float32(3,)"]


def test_dot_has_every_node_and_edge() -> None:
    graph = build_graph([model()])
    groups = {"a kernel": tuple(node.id for node in graph.nodes if node.inputs)}
    dot = draw_dot(graph, groups)
    assert dot.count("{") == dot.count("}") == 2
    for node in graph.nodes:
        assert len(re.findall(rf"^ +n{node.id} \[label=", dot, re.M)) == 1
        for operand in node.inputs:
            assert f"n{operand} -> n{node.id};" in dot
    assert r"in \"quotes\" & <tags>" in dot


def test_svg_is_sound_xml_with_boxes_that_do_not_overlap() -> None:
    graph = build_graph([model()])
    svg = draw_svg(graph)
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    boxes = [
        tuple(float(box.attrib[key]) for key in ("x", "y", "width", "height")) for box in root.iter(f"{space}rect")
    ]
    assert len(boxes) == len(graph.nodes)
    assert len(list(root.iter(f"{space}path"))) == sum(len(node.inputs) for node in graph.nodes)
    texts = [text.text or "" for text in root.iter(f"{space}text")]
    assert any('in "quotes" & <tags>' in text for text in texts)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for i, (x, y, w, h) in enumerate(boxes):
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
        for other_x, other_y, other_w, _ in boxes[i + 1 :]:
            assert y != other_y or x + w <= other_x or other_x + other_w <= x


def test_drawings_are_the_same_every_time() -> None:
    first, second = build_graph([model()]), build_graph([model()])
    for draw in (draw_tree, draw_dot, draw_svg):
        assert draw(first) == draw(second)


def test_unknown_lengths_are_drawn_as_such() -> None:
    text = str(fc.iterate([np.ones((2, 3))], shape=3, dtype="f8") + 1)
    assert "add: float64(?, 3) stream" in text


def test_a_deep_graph_is_drawn_without_recursion() -> None:
    y: Element = fc.source(np.ones(3))
    for _ in range(3000):
        y = fc.abs(y) + 1
    graph = build_graph([y])
    assert draw_dot(graph).count("->") == sum(len(node.inputs) for node in graph.nodes)
    assert draw_svg(graph).count(", 3000 times</text>") == 2
    lines = draw_tree(graph).splitlines()
    assert len(lines) < MOST_LINES
    assert all(len(line) < 4 * MOST_LEVELS + 80 for line in lines)
    drawn = len({line.lstrip("├└│─ ") for line in lines if not line.endswith("...")}) - 1
    assert (
        lines[-1]
        == f"... {6002 - drawn:,} of 6,002 elements are left out, the first of them source: float64(3,) stream"
    )


def test_the_longest_line_and_the_number_of_lines_are_bounded() -> None:
    x = fc.source(np.ones(3))
    wide = fc.concat([x * i for i in range(2000)])
    diamonds: Element = x
    for _ in range(2000):
        diamonds = diamonds + diamonds
    for root in (wide, diamonds):
        text = str(root)
        assert text.count("\n") <= MOST_LINES
        assert len(text) < MOST_LINES * (4 * MOST_LEVELS + 80)
        assert "elements are left out" in text


def test_plans_name_the_first_and_the_last_of_many() -> None:
    y: Element = fc.source(np.ones((8, 3)))
    for i in range(5000):
        y = y + i
    plan = y.plan(device="numpy")
    assert len(plan.text) < 20_000
    assert "add_2 add_3" in plan.text
    assert "add_4999 add_5000" in plan.text
    assert "260 more" in plan.text
    assert len([reason for reason in plan.reasons if "more than 300 operations" in reason.text]) == 16


@fc.kernel
def doubled(v: float) -> float:
    return v * 2


def test_functions_of_users_are_drawn_by_name_and_without_digests() -> None:
    x = fc.source(np.zeros(5, np.float32), name="x")
    square = fc.opencl("float square(float v) { return v * v; }", x)
    for element, name in ((doubled(x), "doubled"), (square, "square")):
        assert draw_tree(build_graph((element,))).startswith(f"{name}: float32(5,) stream")
