"""The graph for people: text, DOT and SVG."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from flowcompute.elements import Compute, Constant, Destination
from flowcompute.graph.graph import Graph, Node

_BOX_HEIGHT, _ROW, _COLUMN, _CHAR = 40, 64, 40, 7


def title(node: Node) -> str:
    """A node's name, with its operation where the name does not say it."""
    element = node.element
    if isinstance(element, Constant) and element.value.ndim == 0:
        return str(element.value[()])
    if isinstance(element, Compute) and element.op.name not in node.name:
        return f"{node.name} ({element.op.name})"
    return node.name


def details(node: Node) -> str:
    """Attributes worth reading."""
    attrs = {key: value for key, value in node.attrs.items() if value not in (None, False) and key != "correction"}
    return "".join(f" {key}={value}" for key, value in attrs.items())


def draw_tree(graph: Graph, note: str = "", notes: Mapping[int, str] | None = None) -> str:
    """The graph as an indented tree from each root; what is shared is drawn once and then referred to.

    Args:
        note: said of every computed node.
        notes: said of single nodes instead.
    """
    lines: list[str] = []
    drawn: set[int] = set()
    for root in graph.roots:
        stack = [(root, "", "")]
        while stack:
            position, lead, below = stack.pop()
            node = graph.nodes[position]
            said = (notes or {}).get(position, note if isinstance(node.element, Compute | Destination) else "")
            again = position in drawn and bool(node.inputs)
            suffix = "  (see above)" if again else f"  {said}" if said else ""
            spec = "" if isinstance(node.element, Constant) and not node.spec.shape else f": {node.spec}"
            lines.append(f"{lead}{title(node)}{details(node)}{spec}{suffix}")
            if again:
                continue
            drawn.add(position)
            last = len(node.inputs) - 1
            for index in range(last, -1, -1):
                branch, rest = ("└─ ", "   ") if index == last else ("├─ ", "│  ")
                stack.append((node.inputs[index], below + branch, below + rest))
    return "\n".join(lines)


def draw_dot(graph: Graph, groups: Mapping[str, tuple[int, ...]] | None = None) -> str:
    """The graph in Graphviz's language; `groups` (kernel name -> nodes) are framed."""
    lines = ["digraph flowcompute {", "  rankdir=TB;", '  node [shape=box, fontname="sans-serif"];']
    grouped: set[int] = set()
    for number, (name, nodes) in enumerate((groups or {}).items()):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted(name)}; style=rounded;")
        lines += [f"    n{i} [label={_quoted(_label(graph.nodes[i]))}];" for i in nodes]
        lines.append("  }")
        grouped.update(nodes)
    lines += [f"  n{n.id} [label={_quoted(_label(n))}];" for n in graph.nodes if n.id not in grouped]
    lines += [f"  n{source} -> n{node.id};" for node in graph.nodes for source in node.inputs]
    return "\n".join([*lines, "}"]) + "\n"


def _label(node: Node) -> str:
    return f"{title(node)}{details(node)}\n{node.spec}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def draw_svg(graph: Graph, groups: Mapping[str, tuple[int, ...]] | None = None) -> str:
    """The graph as a self-contained SVG: operands above their users, nodes of one kernel in one colour."""
    colours = {i: number for number, nodes in enumerate((groups or {}).values()) for i in nodes}
    places, width, height = _layout(graph)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
        )
    ]
    for node in graph.nodes:
        x, y, box = places[node.id]
        for source in node.inputs:
            sx, sy, sbox = places[source]
            start, end = (sx + sbox / 2, sy + _BOX_HEIGHT), (x + box / 2, y)
            half = (start[1] + end[1]) / 2
            parts.append(
                f'<path d="M{start[0]:.0f},{start[1]} C{start[0]:.0f},{half:.0f} {end[0]:.0f},{half:.0f} '
                f'{end[0]:.0f},{end[1]}" fill="none" stroke="#888"/>'
            )
    for node in graph.nodes:
        x, y, box = places[node.id]
        fill = f"hsl({colours[node.id] * 67 % 360},60%,88%)" if node.id in colours else "#fff"
        middle = f"{x + box / 2:.0f}"
        parts.append(
            f'<rect x="{x}" y="{y}" width="{box}" height="{_BOX_HEIGHT}" rx="6" fill="{fill}" stroke="#444"/>'
            f'<text x="{middle}" y="{y + 17}" text-anchor="middle">{escape(title(node) + details(node))}</text>'
            f'<text x="{middle}" y="{y + 32}" text-anchor="middle" fill="#666">{escape(str(node.spec))}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _layout(graph: Graph) -> tuple[list[tuple[int, int, int]], int, int]:
    """(x, y, width) of each node's box, by depth from the sources, and the size of the whole."""
    depths: list[int] = []
    for node in graph.nodes:
        depths.append(max((depths[i] + 1 for i in node.inputs), default=0))
    reach = [_COLUMN] * (max(depths, default=0) + 1)
    places = []
    for node, depth in zip(graph.nodes, depths, strict=True):
        box = 24 + _CHAR * max(len(title(node) + details(node)), len(str(node.spec)))
        places.append((reach[depth], 20 + depth * (_BOX_HEIGHT + _ROW), box))
        reach[depth] += box + _COLUMN
    return places, max(reach), 40 + len(reach) * (_BOX_HEIGHT + _ROW)
