"""Random programs as data and back: the same description, structure and results, whatever they are made of."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.flow import structural_hash_of
from tests.checkpoint.kept import graph_of, round_trip
from tests.properties.cases import cases
from tests.properties.programs import programs
from tests.properties.streams import stream_programs
from tests.properties.values import Program


def check(program: Program) -> None:
    """Equal description and structure, and the same bits of every result."""
    roots = [root.element for root in program.roots]
    again = round_trip(*roots)
    assert structural_hash_of(*again) == structural_hash_of(*(node_element(root) for root in roots))
    with np.errstate(all="ignore"):
        expected, got = (fc.resolve(*one, device="numpy", progress=False) for one in (roots, again))
    pairs = zip(expected, got, strict=True) if len(roots) > 1 else [(expected, got)]
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert np.shape(one) == np.shape(other)
        assert one.tobytes() == other.tobytes()


def node_element(root: Element) -> Element:
    return graph_of(root).nodes[-1].element


@cases(30)
@given(programs(steps=9))
def test_programs_on_items(program: Program) -> None:
    check(program)


@cases(30)
@given(st.data())
def test_programs_along_streams(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(data.draw(stream_programs(Path(folder))))
