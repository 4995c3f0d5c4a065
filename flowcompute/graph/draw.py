"""Drawings of the graph as text and in Graphviz's language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flowcompute.elements import Compute, Constant, Destination
from flowcompute.graph.graph import Graph, Node

MOST_LINES = 500
MOST_LEVELS = 64
"""Lines and levels of a drawn tree. The indentation of a long chain takes memory with the square of its length."""


def title(node: Node) -> str:
    """Return a node's name, with its operation unless the name includes it."""
    element = node.element
    if isinstance(element, Constant) and element.value.ndim == 0:
        return str(element.value[()])
    if isinstance(element, Compute) and element.op.name not in node.name:
        return f"{node.name} ({element.op.name})"
    return node.name


def details(node: Node) -> str:
    """Return the attributes of a node that differ from the usual ones, as text."""
    attrs = {key: value for key, value in node.attrs.items() if value not in (None, False) and key != "correction"}
    return "".join(f" {key}={value}" for key, value in attrs.items())


def draw_tree(graph: Graph, note: str = "", notes: Mapping[int, str] | None = None) -> str:
    """Draw the graph as an indented tree from each root. Shared nodes are drawn once and then referred to.

    Args:
        graph: the graph.
        note: text at every computed node.
        notes: texts at single nodes, by id, in place of `note`.
    """

    def told(position: int) -> tuple[str, str]:
        node = graph.nodes[position]
        said = (notes or {}).get(position, note if isinstance(node.element, Compute | Destination) else "")
        spec = "" if isinstance(node.element, Constant) and not node.spec.shape else f": {node.spec}"
        return f"{title(node)}{details(node)}{spec}", said

    return draw_lines(graph.roots, [node.inputs for node in graph.nodes], told)


def draw_lines(roots: Sequence[int], inputs: Sequence[Sequence[int]], told: Callable[[int], tuple[str, str]]) -> str:
    """Draw nodes as an indented tree from each root. Shared nodes are drawn once and then referred to.

    At most `MOST_LINES` lines and `MOST_LEVELS` levels are drawn. A last line counts what is left out.

    Args:
        roots: positions of the roots.
        inputs: positions of the operands of each node, all smaller than its own.
        told: returns the text of a node, and a note for its first appearance.
    """
    lines: list[str] = []
    drawn: set[int] = set()
    for root in roots:
        stack = [(root, "", "")]
        while stack and len(lines) < MOST_LINES:
            position, lead, below = stack.pop()
            if len(below) > 3 * MOST_LEVELS and position not in drawn:
                lines.append(f"{lead}...")
                continue
            what, said = told(position)
            again = position in drawn and bool(inputs[position])
            suffix = "  (see above)" if again else f"  {said}" if said else ""
            lines.append(f"{lead}{what}{suffix}")
            if again:
                continue
            drawn.add(position)
            last = len(inputs[position]) - 1
            for index in range(last, -1, -1):
                branch, rest = ("└─ ", "   ") if index == last else ("├─ ", "│  ")
                stack.append((inputs[position][index], below + branch, below + rest))
    if left := len(inputs) - len(drawn):
        first = next(i for i in range(len(inputs)) if i not in drawn)
        lines.append(f"... {left:,} of {len(inputs):,} elements are left out, the first of them {told(first)[0]}")
    return "\n".join(lines)


def elided(texts: Sequence[str], most: int) -> list[str]:
    """Return texts of which those in the middle are replaced by their count, if there are more than `most`."""
    if len(texts) <= most:
        return [*texts]
    half = most // 2
    return [*texts[:half], f"... {len(texts) - 2 * half:,} more ...", *texts[-half:]]


def draw_dot(graph: Graph, groups: Mapping[str, tuple[int, ...]] | None = None) -> str:
    """Draw the graph in Graphviz's language, with a frame around each of `groups` (kernel name -> nodes)."""
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
