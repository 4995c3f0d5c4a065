"""Drawings of the graph as text and in Graphviz's language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flowcompute.elements import Compute, Constant, Destination, Kind
from flowcompute.graph.folding import fold_calls, fold_groups
from flowcompute.graph.graph import Graph, Node

MOST_LINES = 500
MOST_LEVELS = 64
"""Lines and levels of a drawn tree. The indentation of a long chain takes memory with the square of its length."""
_UNTOLD = ("correction", "inner", "function", "source")
"""Attributes that say nothing to a user."""


def title(node: Node) -> str:
    """Return a node's name, with the function or operation that computes it unless the name includes it."""
    element = node.element
    if isinstance(element, Constant) and element.value.ndim == 0:
        return str(element.value[()])
    if isinstance(element, Compute):
        called = element.call.name if element.call is not None and node.returned else element.op.name
        if called not in node.name:
            return f"{node.name} ({called})"
    return node.name


def details(node: Node) -> str:
    """Return the arguments that the user gave, or else the attributes that differ from the usual ones, as text."""
    call = node.element.call
    if node.element.origin:
        return f" {node.element.origin}"
    if call is not None and node.returned:
        return f" {call.arguments}" if call.arguments else ""
    attrs = {key: value for key, value in node.attrs.items() if value not in (None, False) and key not in _UNTOLD}
    if node.kind is Kind.REDUCE and "axes" in attrs:
        # Users count the stream as axis 0.
        axes = tuple(axis + node.spec.is_stream for axis in attrs.pop("axes"))
        attrs = {"axis": axes[0] if len(axes) == 1 else axes, **attrs}
    return "".join(f" {key}={value}" for key, value in attrs.items())


def place(node: Node) -> str:
    """Return the user's line of a node, "script.py:7"; empty for a number and where it is not known."""
    if isinstance(node.element, Constant) and not node.spec.shape:
        return ""
    return "" if node.element.site is None else node.element.site.short


def names_of(nodes: Sequence[Node]) -> list[str]:
    """Return the names of nodes that are computed together: of a call of several primitives what it returned.

    Where a call returns something elsewhere its last step here stands for it: "softmax.exp".
    """
    last = {id(node.element.call): node.id for node in nodes if node.element.is_step}
    whole = {id(node.element.call) for node in nodes if node.returned}

    def told(node: Node) -> bool:
        if not node.element.is_step:
            return True
        call = id(node.element.call)
        return call not in whole and last[call] == node.id

    return [node.name for node in nodes if told(node)]


def draw_tree(graph: Graph, note: str = "", notes: Mapping[str, str] | None = None) -> str:
    """Draw the graph as an indented tree from each root. Shared nodes are drawn once and then referred to.

    A call of a public function is one node, whatever it is made of, with the arguments and the line of the user.

    Args:
        graph: the graph.
        note: text at every computed node.
        notes: texts at single nodes, by name, in place of `note`.
    """
    folded, _ = fold_calls(graph)

    def told(position: int) -> tuple[str, str]:
        node = folded.nodes[position]
        said = (notes or {}).get(node.name, note if isinstance(node.element, Compute | Destination) else "")
        spec = "" if isinstance(node.element, Constant) and not node.spec.shape else f": {node.spec}"
        return f"{title(node)}{details(node)}{spec}", "  ".join(text for text in (place(node), said) if text)

    return draw_lines(folded.roots, [node.inputs for node in folded.nodes], told)


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
    graph, groups = fold_groups(graph, groups or {})
    lines = ["digraph flowcompute {", "  rankdir=TB;", '  node [shape=box, fontname="sans-serif"];']
    grouped: set[int] = set()
    for number, (name, nodes) in enumerate(groups.items()):
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
