"""The smallest cut of small networks, against all cuts there are."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from flowcompute.schedule.placement.min_cut import FlowNetwork

PLACES = 6


@given(
    st.lists(
        st.tuples(st.integers(0, PLACES - 1), st.integers(0, PLACES - 1), st.integers(1, 9) | st.just(math.inf)),
        max_size=14,
    )
)
def test_the_cut_is_the_smallest(edges: list[tuple[int, int, float]]) -> None:
    network = FlowNetwork()
    for _ in range(PLACES - 2):
        network.add_vertex()
    # An infinite way from source to sink would have no cut.
    edges = [
        (tail, head, size) for tail, head, size in edges if size < math.inf or FlowNetwork.SOURCE not in (tail, head)
    ]
    for edge in edges:
        network.add_edge(*edge)

    def cost(side: set[int]) -> float:
        return sum(size for tail, head, size in edges if tail in side and head not in side)

    inner = range(2, PLACES)
    sides = [{0, *chosen} for count in range(PLACES - 1) for chosen in itertools.combinations(inner, count)]
    least = min(map(cost, sides))
    found = network.source_side()
    assert FlowNetwork.SOURCE in found
    assert FlowNetwork.SINK not in found
    assert cost(found) == least
    assert all(found <= side for side in sides if cost(side) == least), "another smallest cut is nearer the source"
