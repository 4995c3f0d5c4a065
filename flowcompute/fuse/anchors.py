"""Names of anchors, and the scans that share a kernel."""

from __future__ import annotations

from flowcompute.elements import Kind
from flowcompute.elements.nn import ATTENTION, ATTENTION_PART, SELF_ATTENTION
from flowcompute.elements.streams import KernelScan
from flowcompute.graph import Node

ATTENDING = (ATTENTION, ATTENTION_PART)
"""Attention over items, and parts of its gradient: contractions that are no product of two matrices."""


def has_own_nest(node: Node) -> bool:
    """Check whether a node starts a region, in which it reads whole operands in a loop nest of its own."""
    return node.kind is Kind.CONTRACT or node.op is SELF_ATTENTION


def anchor_name(node: Node) -> str:
    """Return the name of an anchor in reasons."""
    if node.op is SELF_ATTENTION:
        return "attention"
    if node.kind is Kind.SCAN:
        return "a scan"
    if node.kind is Kind.VIEW:
        return node.name
    if node.kind is Kind.ELEMENTWISE:
        return "a stencil"
    return "attention" if node.op in ATTENDING else "a matrix product"


def share_carry(node: Node, other: Node) -> bool:
    """Check whether two nodes are components of one carry: the same step, initial values and operands."""
    one, two = node.element, other.element
    if not isinstance(one, KernelScan) or not isinstance(two, KernelScan) or node.inputs != other.inputs:
        return False
    if one.step.function != two.step.function or one.associative or one.attrs["axis"] != two.attrs["axis"]:
        return False
    return all(a.tobytes() == b.tobytes() for a, b in zip(one.inits, two.inits, strict=True))
