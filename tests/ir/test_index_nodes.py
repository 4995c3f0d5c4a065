"""Integer expressions: C computes of the printed text what NumPy computes of the nodes."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyopencl as cl
import pytest
from hypothesis import given, settings

from flowcompute import ir
from flowcompute.ir.index_nodes import (
    ArrayNumber,
    Comparison,
    Index,
    IndexLike,
    all_of,
    any_of,
    arithmetic,
    in_lane,
)
from flowcompute.ir.index_printing import factor_text, index_text
from tests.support.index_values import index_value

WIDE, NARROW = ir.Name("wide"), ir.Name("narrow", narrow=True)
NUMBERS = st.integers(0, 9)
ARRAYS = {"longs": [5, -3, 1 << 40, 0, 7, 2, -1, 9], "ints": [4, 0, -8, 1, 6, 3, -2, 5]}
LEAVES = st.one_of(NUMBERS, st.sampled_from([WIDE, NARROW, ir.LANE]))


def joined(inner: st.SearchStrategy[IndexLike]) -> st.SearchStrategy[IndexLike]:
    """One more operator; factors are small, since C does not say what overflows."""
    conditions = st.builds(Comparison, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner, inner)
    both = st.builds(all_of, conditions, conditions) | st.builds(any_of, conditions, conditions) | conditions
    return st.one_of(
        st.builds(arithmetic, st.sampled_from(["+", "-", "&", "^", "min", "max"]), inner, inner),
        st.builds(arithmetic, st.just("*"), inner, NUMBERS),
        st.builds(arithmetic, st.sampled_from(["/", "%"]), inner, st.integers(1, 9)),
        st.builds(arithmetic, st.just(">>"), inner, st.integers(0, 3)),
        st.builds(ir.to_long, inner),
        st.builds(ir.to_int, inner),
        st.builds(ir.choose, both, inner, inner),
        st.builds(lambda inner: ArrayNumber("longs", inner & 7), inner),
        st.builds(lambda inner: ArrayNumber("ints", inner & 7, narrow=True), inner),
    )


EXPRESSIONS = st.recursive(LEAVES, joined, max_leaves=8)
COUNT = 16


def names_of(wide: int, narrow: int) -> dict[str, Any]:
    """The values of names and arrays."""
    return {"wide": np.int64(wide), "narrow": np.int64(narrow), **{name: np.array(ARRAYS[name]) for name in ARRAYS}}


@pytest.mark.compiles
@settings(max_examples=4, deadline=None)
@given(st.lists(EXPRESSIONS, min_size=COUNT, max_size=COUNT), st.integers(-99, 99), st.integers(-99, 99))
def test_c_computes_what_numpy_does(expressions: list[IndexLike], wide: int, narrow: int) -> None:
    lines = [f"out[{place}] = {index_text(one, place % 4)};" for place, one in enumerate(expressions)]
    arrays = [f"{name[:-1]} {name}[8] = {{{', '.join(map(str, ARRAYS[name]))}}};" for name in ARRAYS]
    text = "__kernel void k(__global long *out, const long wide, const int narrow) {\n"
    text += "\n".join([*arrays, *lines]) + "\n}"
    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    out = np.zeros(COUNT, "i8")
    buffer = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, out.nbytes)
    queue = cl.CommandQueue(context)
    kernel = cl.Program(context, text).build(options=["-w"]).k
    kernel(queue, (1,), None, buffer, np.int64(wide), np.int32(narrow))
    cl.enqueue_copy(queue, out, buffer)
    names = names_of(wide, narrow)
    for place, one in enumerate(expressions):
        assert out[place] == index_value(in_lane(one, place % 4), names), index_text(one, place % 4)


@given(EXPRESSIONS, st.integers(-99, 99), st.integers(-99, 99))
def test_operators_simplify_without_changing_a_value(expression: IndexLike, wide: int, narrow: int) -> None:
    names = names_of(wide, narrow)
    value = index_value(in_lane(expression, 2), names)
    for other in (expression + 0, 0 + expression, expression * 1, 1 * expression, expression - 0):
        assert index_value(in_lane(other, 2), names) == value
    assert expression * 0 == 0
    if isinstance(expression, Index):
        assert expression // 1 == expression
        assert expression % 1 == 0


def test_brackets_stand_where_c_needs_them_and_nowhere_else() -> None:
    a, b, c = map(ir.Name, "abc")
    assert index_text(a + b * c) == "a + b * c"
    assert index_text((a + b) * c) == "(a + b) * c"
    assert index_text(a - (b - c)) == "a - (b - c)"
    assert index_text(a - b - c) == "a - b - c"
    assert index_text(a // 4 % 3 * 2) == "a / 4 % 3 * 2"
    assert index_text(a * (b // c)) == "a * (b / c)"
    assert index_text(ir.all_of(a < b, ir.any_of(b < c, ir.equal(a, 0)))) == "a < b && (b < c || a == 0)"
    assert index_text(ir.choose(a < b, a, b) + 1) == "(a < b ? a : b) + 1"
    assert index_text(a - -3) == "a - (-3)"
    assert factor_text(a + 1) == "(a + 1)"
    assert factor_text(ir.index_min(a, b)) == "min(a, b)"


def test_operands_of_min_and_max_have_one_type() -> None:
    assert index_text(ir.index_min(WIDE, 5)) == "min(wide, 5L)"
    assert index_text(ir.index_max(0, NARROW)) == "max(0, narrow)"
    assert index_text(ir.index_min(NARROW, WIDE)) == "min((long)narrow, wide)"


def test_conditions_that_are_known_go() -> None:
    a, b = map(ir.Name, "ab")
    assert ir.all_of(True, a < b) == (a < b)
    assert ir.all_of(a < b, False) is False
    assert ir.any_of(a < b, True) is True
    assert ir.any_of() is False
    assert ir.all_of() is True
    assert ir.equal(3, 3) is True
    assert ir.choose(False, a, b) == b


@given(EXPRESSIONS)
def test_lanes_are_filled_in_everywhere(expression: IndexLike) -> None:
    assert "lane" not in index_text(expression, 3)


def test_a_condition_is_no_truth() -> None:
    with pytest.raises(TypeError, match="known in the kernel only"):
        bool(WIDE < 3)
