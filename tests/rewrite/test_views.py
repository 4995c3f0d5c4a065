"""Views that move through element-wise operations: the same numbers, and nothing stored to be looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from tests.elements.drawn_views import item_shapes, views

RECORDS = 3


def rows(*item: int) -> Element:
    return fc.source(np.arange(RECORDS * int(np.prod(item)), dtype=np.float32).reshape(RECORDS, *item))


@given(st.data())
def test_random_graphs_keep_their_numbers(data: st.DataObject) -> None:
    shape = data.draw(item_shapes(), label="item")
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, (RECORDS, *shape)).astype(np.int32) for _ in range(2)]
    values: list[tuple[Any, np.ndarray]] = [(fc.source(array), array) for array in arrays]
    for _ in range(data.draw(st.integers(1, 8), label="steps")):
        values.append(data.draw(_step(values), label="step"))
    roots = [values[-1], *data.draw(st.lists(st.sampled_from(values), max_size=2), label="roots")]
    results = fc.resolve(*(element for element, _ in roots), device="numpy", progress=False)
    for result, (element, wanted) in zip(results if len(roots) > 1 else (results,), roots, strict=True):
        assert element.shape == wanted.shape
        np.testing.assert_array_equal(result, wanted)


@st.composite
def _step(draw: st.DrawFn, values: list[tuple[Any, np.ndarray]]) -> tuple[Any, np.ndarray]:
    """A view of a late value, or an operation of two values or of a value and a constant, with broadcasting."""
    element, array = draw(st.sampled_from(values[-3:]))
    if draw(st.booleans()):
        view = draw(views(array.shape[1:]))
        return view.of(element), view.of(array)
    fitting = [(e, a) for e, a in values if a.ndim == array.ndim and _broadcast(a.shape, array.shape)]
    other = draw(st.sampled_from([*fitting, None]))
    if other is None:
        trailing = array.shape[1:][draw(st.integers(0, array.ndim - 1)) :]
        own = tuple(1 if draw(st.booleans()) else size for size in trailing)
        constant = np.arange(int(np.prod(own)), dtype=np.int32).reshape(own)
        return element + fc.constant(constant), array + constant
    op = draw(st.sampled_from([np.add, np.multiply]))
    return op(element, other[0]), op(array, other[1])


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(one == two or 1 in (one, two) for one, two in zip(a, b, strict=True))


ONE_KERNEL: dict[str, Callable[[], Element]] = {
    "an index": lambda: (rows(4, 6) * 2 + 1)[:, 0],
    "broadcast operands": lambda: ((rows(4, 6) * fc.constant(np.ones((4, 1), "f4")) + np.ones(6, "f4")) * 2)[
        :, 1, ::-2
    ],
    "a permutation": lambda: fc.permute_dims(rows(4, 6) + np.ones((6,), "f4"), (0, 2, 1)) * 3,
    "a reshape": lambda: fc.reshape(rows(4, 6) * 2 + 1, (-1, 24))[:, ::3],
    "a view between": lambda: ((rows(4, 6)[:, :2] * 2)[:, 0] * 3)[:, None, 1:3],
    "several parts of one value": lambda: (lambda y: y[:, 0] * y[:, 1] + y[:, 3])(rows(4, 6) * 2),
    "windows": lambda: (fc.window(rows(), 2) * np.arange(2, dtype="f4"))[:, 1],
    "a fold": lambda: fc.sqrt(rows(4, 6))[:, 0].sum(axis=0),
}


@pytest.mark.parametrize("case", ONE_KERNEL)
def test_a_view_of_a_map_is_computed_where_it_is_seen(case: str) -> None:
    element = ONE_KERNEL[case]()
    plan = element.plan(device="cpu")
    assert len(plan.kernels) == 1, plan
    np.testing.assert_array_equal(element.resolve(device="cpu"), element.resolve(device="numpy"))


STAYS: dict[str, Callable[[Element], Element | tuple[Element, ...]]] = {
    "what is also needed whole": lambda x: (lambda y: (y[:, 0], y))(x * 2),
    "overlapping parts": lambda x: (lambda y: y[:, :3] * y[:, 1:])(x * 2),
    "what a reduction makes": lambda x: (x - x.sum(axis=1, keepdims=True))[:, 0],
    "a reshape of a broadcast": lambda x: fc.reshape(x * np.ones(6, "f4"), (-1, 24)),
    "generated numbers": lambda x: (fc.random.uniform(RECORDS, shape=(4, 6), seed=1) * 2)[:, 0] + x[:, 0],
}


@pytest.mark.parametrize("case", STAYS)
def test_a_view_stays_where_more_than_it_is_computed_anyway(case: str) -> None:
    made = STAYS[case](rows(4, 6))
    roots = made if isinstance(made, tuple) else (made,)
    plan = fc.plan(*roots, device="cpu")
    kinds = [node.op.name for node in plan.graph.nodes if node.op is not None and node.kind is not None]
    # The view comes after the operation that it is a view of.
    assert any(
        plan.graph.nodes[node.inputs[0]].op is not None
        for node in plan.graph.nodes
        if node.op is not None and node.op.name in ("index", "reshape")
    ), kinds
    for got, wanted in zip(fc.run(*roots, device="cpu").values, fc.run(*roots, device="numpy").values, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_names_stay_with_their_operations() -> None:
    doubled = fc.multiply(rows(4), 2)
    plan = (doubled[:, 0] + doubled[:, 1]).plan(device="cpu")
    names = [node.name for node in plan.graph.nodes]
    assert len(set(names)) == len(names)
    assert {"multiply", "add", "index"} <= set(names)


def test_long_chains_move() -> None:
    """Deep graphs are walked without recursion."""
    x = rows(4, 6)
    y = x
    for _ in range(500):
        y = y + 1
    views = [
        node for node in y[:, 0].plan(device="numpy").graph.nodes if node.op is not None and node.op.name == "index"
    ]
    assert [node.inputs for node in views] == [(0,)]
    np.testing.assert_array_equal(y[:, 0].resolve(device="numpy"), (x + 500)[:, 0].resolve(device="numpy"))
