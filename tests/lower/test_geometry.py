"""Work of a launch is divided without a gap, and evenly where PoCL's threads take work-groups by halves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowcompute.ir.launches import STRIP_PARTS, dealt, even_rows


@given(st.integers(1, 5000), st.integers(1, 130), st.sampled_from([1, 2, 4, 8]))
def test_blocks_of_rows_are_even(rows: int, most: int, together: int) -> None:
    """The last one has what is left, and no block more than a tile less than it could have."""
    blocks = -(-rows // most)
    each = even_rows(rows, blocks, most, together)
    assert isinstance(each, int)
    assert -(-rows // blocks) <= each <= most
    assert each * (blocks - 1) < rows <= each * blocks
    assert each < -(-rows // blocks) + together
    assert each % together == 0 or each == most


@given(st.integers(1, 200))
def test_each_work_group_is_dealt_once(groups: int) -> None:
    assert sorted(dealt(place, groups) for place in range(groups)) == [*range(groups)]


def test_half_of_the_places_have_half_of_each_part() -> None:
    """Queries, keys and values take 4, 2 and 2 of 8 work-groups; PoCL gives the first 4 places to one thread."""
    half = [dealt(place, 2 * STRIP_PARTS) for place in range(STRIP_PARTS)]
    assert [sum(begin <= group < end for group in half) for begin, end in ((0, 4), (4, 6), (6, 8))] == [2, 1, 1]
