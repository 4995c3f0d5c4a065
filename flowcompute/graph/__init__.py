"""The graph of a computation: built from its roots, merged, hashed and drawn."""

from flowcompute.graph.changing import changing_values
from flowcompute.graph.draw import draw_dot, draw_lines, draw_tree, elided, names_of
from flowcompute.graph.exact_keys import TheVeryObject, UnknownError, exact, operation_key
from flowcompute.graph.folding import fold_steps
from flowcompute.graph.graph import Graph, Node, build_graph, hash_of_elements, is_literal, is_number, structural_hash
from flowcompute.graph.picture import draw_svg
from flowcompute.graph.record_formulas import Made, Placeholder, per_record
from flowcompute.graph.traversal import postorder

__all__ = [
    "Graph",
    "Made",
    "Node",
    "Placeholder",
    "TheVeryObject",
    "UnknownError",
    "build_graph",
    "changing_values",
    "draw_dot",
    "draw_lines",
    "draw_svg",
    "draw_tree",
    "elided",
    "exact",
    "fold_steps",
    "hash_of_elements",
    "is_literal",
    "is_number",
    "names_of",
    "operation_key",
    "per_record",
    "postorder",
    "structural_hash",
]
