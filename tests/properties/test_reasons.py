"""Boundaries between kernels: each that a value crosses has a reason.

A **boundary** is a value that one step of a clock stores and a kernel of the same clock reads. The step is a kernel, or
a node that the host computes or copies. A kernel that reads a view of a value reads that value. Resident values that
are computed before the first batch, or after the last one, have boundaries as those of a clock have. A resident value
that is cut along the stream is stored by nobody, and folds are known at the end of a pass only.

A reason belongs to a boundary if it is a cut that names the stored value, the operation that reads it, or the operation
whose kernel it is read in. One that says "NAME is stored" is about this value only.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements import Kind
from flowcompute.elements.element import Element
from flowcompute.fuse import Access, Reason
from flowcompute.ir import is_copied
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.steps import RegionStep, Step
from tests.gpu.shapes import plan_for_gpu
from tests.properties.cases import cases
from tests.properties.layers import LAYERS, layered
from tests.properties.programs import programs
from tests.properties.streams import stream_programs
from tests.properties.values import Program


@dataclass(frozen=True)
class Boundary:
    """Names of a stored value and of what reads it: the operation, and the anchor of its kernel."""

    stored: str
    reading: str
    anchor: str

    def is_told_by(self, reason: Reason) -> bool:
        named = re.match(r"(\S+) is stored: ", reason.text)
        about = (self.stored, self.reading, self.anchor)
        return reason.kind == "cut" and reason.element in about and (named is None or named[1] == self.stored)


def boundaries(plan: Plan, steps: Sequence[Step]) -> Iterator[Boundary]:
    """The boundaries between the steps of a clock."""
    nodes = plan.graph.nodes
    made: dict[int, Step] = {}
    for step in steps:
        if isinstance(step, RegionStep):
            made |= dict.fromkeys(step.region.outputs, step)
        elif step.node.kind not in (Kind.FOLD, Kind.ALONG) and not is_seen(plan, step.node.id):
            made[step.node.id] = step
    for step in steps:
        if not isinstance(step, RegionStep):
            continue
        for node, operands in step.region.reads.items():
            for value in (operand.value for operand in operands if isinstance(operand, Access)):
                while value not in made and nodes[value].kind is Kind.VIEW:
                    value = nodes[value].inputs[0]
                if made.get(value, step) is not step:
                    anchor = node if step.region.anchor is None else step.region.anchor
                    yield Boundary(*(nodes[i].name for i in (value, node, anchor)))


def is_seen(plan: Plan, node: int) -> bool:
    """Whether a node is a view of memory, which no step fills."""
    one = plan.graph.nodes[node]
    return one.kind is Kind.VIEW and not (one.spec.is_stream and is_copied(plan.graph, node))


def without_reason(plan: Plan) -> list[Boundary]:
    """The boundaries of a plan that no reason belongs to."""
    parts = [steps for one in plan.passes for steps in (one.before, one.after, *(clock.steps for clock in one.clocks))]
    found = dict.fromkeys(boundary for steps in parts for boundary in boundaries(plan, steps))
    return [boundary for boundary in found if not any(map(boundary.is_told_by, plan.reasons))]


def check(roots: Sequence[Element]) -> None:
    for plan in (fc.plan(*roots, device="cpu"), plan_for_gpu(*roots), fc.plan(*roots, device="numpy")):
        assert without_reason(plan) == [], plan


@pytest.mark.parametrize("first", LAYERS)
@cases(5)
@given(st.data())
def test_boundaries_beside_each_layer_have_reasons(first: str, data: st.DataObject) -> None:
    check(data.draw(layered(steps=3, first=first)))


@cases(100)
@given(layered(steps=8))
def test_boundaries_between_layers_have_reasons(roots: list[Element]) -> None:
    check(roots)


@cases(50)
@given(programs(steps=10))
def test_boundaries_of_random_programs_have_reasons(program: Program) -> None:
    check([root.element for root in program.roots])


@cases(50)
@given(st.data())
def test_boundaries_of_random_programs_over_streams_have_reasons(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = data.draw(stream_programs(Path(folder), steps=8))
        check([root.element for root in program.roots])
