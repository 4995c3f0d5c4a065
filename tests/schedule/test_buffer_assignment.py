"""Buffers taken at steps: the answers of the tree are those of a set for each step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowcompute.schedule.memory.buffer_assignment import _TakenBuffers
from tests.properties.cases import cases

SPANS = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda ends: (min(ends), max(ends)))


@cases(200)
@given(st.lists(st.tuples(SPANS, SPANS), max_size=12), st.integers(13, 20))
def test_taken_buffers(spans: list[tuple[tuple[int, int], tuple[int, int]]], steps: int) -> None:
    tree, taken = _TakenBuffers(steps), [0] * steps
    for number, (taking, asked) in enumerate(spans):
        tree.take(1 << number, *taking)
        for step in range(taking[0], taking[1] + 1):
            taken[step] |= 1 << number
        wanted = 0
        for step in range(asked[0], asked[1] + 1):
            wanted |= taken[step]
        assert tree.within(*asked) == wanted
