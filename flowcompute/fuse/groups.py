"""Regions under construction: their nodes, their operands and their dependencies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from flowcompute.elements import Constant, Kind
from flowcompute.fuse.region import Access, Layout, Region
from flowcompute.graph import Graph


@dataclass
class Group:
    """A region under construction.

    See `Region` for its attributes.
    """

    id: int
    stream: bool
    level: int
    domain: tuple[int, ...]
    reduced: frozenset[int] = frozenset()
    nodes: list[int] = field(default_factory=list)
    layouts: dict[int, Layout] = field(default_factory=dict)
    reads: dict[int, tuple[int | Access, ...]] = field(default_factory=dict)
    folds: list[int] = field(default_factory=list)
    anchor: int | None = None

    @property
    def trivial(self) -> bool:
        """Flag that every value is one number per item, so that any domain fits."""
        return math.prod(self.domain) == 1 and not self.reduced and not self.folds and self.anchor is None


class Groups:
    """The regions under construction, and the nodes between them that no kernel computes."""

    def __init__(self, graph: Graph, levels: Sequence[int]) -> None:
        self.graph = graph
        self.levels = levels
        self.groups: dict[int, Group] = {}
        self.group_of: dict[int, int] = {}
        self.host_folds: list[int] = []

    def pointer_arguments(self, values: Iterable[int]) -> set[int]:
        """Return the values that a kernel reads through a pointer. Scalar constants are passed by value."""
        nodes = self.graph.nodes
        return {i for i in values if not (isinstance(nodes[i].element, Constant) and not nodes[i].spec.shape)}

    def external(self, group: Group) -> list[int]:
        """Return the operands of the region's nodes that other regions or steps compute."""
        return [
            operand.value for operands in group.reads.values() for operand in operands if isinstance(operand, Access)
        ]

    def reaches(self, groups: list[int], values: Iterable[int], targets: set[int]) -> bool:
        """Check whether these values depend on a result of the target regions."""
        seen_groups: set[int] = set()
        seen_values: set[int] = set()
        todo = list(values)
        pending = list(groups)
        while todo or pending:
            if pending:
                group = pending.pop()
                if group in seen_groups:
                    continue
                seen_groups.add(group)
                todo.extend(self.external(self.groups[group]))
                continue
            value = todo.pop()
            if value in seen_values:
                continue
            seen_values.add(value)
            owner = self.group_of.get(value)
            if owner is None:
                # The result of a fold comes from an earlier pass, which computed its own operands.
                if self.graph.nodes[value].kind is not Kind.FOLD:
                    todo.extend(self.graph.nodes[value].inputs)
            elif owner in targets:
                return True
            else:
                pending.append(owner)
        return False

    def unite(self, target: Group, groups: list[Group], domain: tuple[int, ...]) -> None:
        """Merge all these regions into `target`, on a domain that fits all."""
        if target.domain != domain:
            target.layouts = {i: (None,) * len(layout) for i, layout in target.layouts.items()}
            target.reads = {i: _flattened(operands) for i, operands in target.reads.items()}
            target.domain = domain
        for other in groups:
            if other is target:
                continue
            if other.domain != domain:
                other.layouts = {i: (None,) * len(layout) for i, layout in other.layouts.items()}
                other.reads = {i: _flattened(operands) for i, operands in other.reads.items()}
            target.reduced |= other.reduced
            target.nodes = sorted(target.nodes + other.nodes)
            target.folds = sorted(target.folds + other.folds)
            target.anchor = other.anchor if target.anchor is None else target.anchor
            target.layouts |= other.layouts
            target.reads |= other.reads
            for i in other.nodes + other.folds:
                self.group_of[i] = target.id
            del self.groups[other.id]

    def relink(self, group: Group) -> None:
        """Replace accesses to values that the merged region now computes."""
        inside = set(group.nodes)
        group.reads = {
            i: tuple(o.value if isinstance(o, Access) and o.value in inside else o for o in operands)
            for i, operands in group.reads.items()
        }

    def title(self, group: Group) -> str:
        """Return the name of the region, which is that of its last node."""
        return self.graph.nodes[max(group.nodes + group.folds)].name

    # -- result -----------------------------------------------------------------------------

    def regions(self, wanted: set[int]) -> list[Region]:
        """Return the finished regions. `wanted` are values that sinks and other steps read."""
        used = set(wanted)
        for group in self.groups.values():
            used.update(self.external(group))
        for fold in self.host_folds:
            used.update(self.graph.nodes[fold].inputs)
        return [
            Region(
                name=self.title(group),
                stream=group.stream,
                level=group.level,
                domain=group.domain,
                reduced=group.reduced,
                nodes=tuple(sorted(group.nodes)) + tuple(sorted(group.folds)),
                layouts=group.layouts,
                reads=group.reads,
                outputs=tuple(i for i in sorted(group.nodes) if i in used),
                folds=tuple(sorted(group.folds)),
                anchor=group.anchor,
            )
            for group in sorted(self.groups.values(), key=lambda g: min(g.nodes + g.folds))
        ]


def _flattened(operands: tuple[int | Access, ...]) -> tuple[int | Access, ...]:
    return tuple(
        Access(operand.value, (None,) * len(operand.layout)) if isinstance(operand, Access) else operand
        for operand in operands
    )
