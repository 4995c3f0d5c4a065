"""Where numbers of views and windows lie, against the strides that NumPy gives the same views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.graph.graph import Graph, build_graph
from flowcompute.ir.access import Storage, c_strides, contiguous, is_dense, is_view, short_axes, storage, view_array
from tests.elements.drawn_views import item_shapes, views

RECORDS = 4


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    """Records in which every number says where it lies."""
    return np.arange(RECORDS * int(np.prod(shape)), dtype=np.int64).reshape(RECORDS, *shape)


def graph_of(element: Element) -> tuple[Graph, int]:
    graph = build_graph([element])
    return graph, graph.roots[0]


def places(where: Storage, shape: Sequence[int]) -> np.ndarray:
    """The place of each number of the first records."""
    grid = np.indices((RECORDS, *shape))
    strides = (where.record, *where.strides)
    return np.asarray(where.offset + sum(stride * axis for stride, axis in zip(strides, grid, strict=True)))


def arrays_of(graph: Graph, array: np.ndarray) -> dict[int, np.ndarray]:
    """The arrays of all values of a graph of views on one source, as the executor makes them."""
    arrays = {0: array}
    for node in graph.nodes[1:]:
        arrays[node.id] = view_array(node, [arrays[i] for i in node.inputs], stream=True)
    return arrays


@given(st.data())
def test_views_of_views_lie_where_numpy_says(data: st.DataObject) -> None:
    shape = data.draw(item_shapes(), label="item")
    array = numbered(shape)
    element, wanted = fc.source(array), array
    for _ in range(data.draw(st.integers(1, 4), label="views")):
        view = data.draw(views(wanted.shape[1:]), label="view")
        element, wanted = view.of(element), view.of(wanted)
    graph, value = graph_of(element)
    arrays = arrays_of(graph, array)
    np.testing.assert_array_equal(arrays[value], wanted)
    where = storage(graph, value)
    base = arrays[where.base]
    assert np.array_equal(base.reshape(-1)[places(where, wanted.shape[1:])], wanted) or not wanted.size
    # Memory of its own is only for what has no strides in NumPy either.
    for node in graph.nodes[1:]:
        if not is_view(graph, node.id) and arrays[node.id].size:
            assert not np.shares_memory(arrays[node.id], arrays[node.inputs[0]])


@given(st.data())
def test_only_runs_of_numbers_in_order_are_dense(data: st.DataObject) -> None:
    shape = data.draw(item_shapes(), label="item")
    view = data.draw(views(shape), label="view")
    array = numbered(shape)
    graph, value = graph_of(view.of(fc.source(array)))
    if 0 in view.shape or not is_view(graph, value):
        return
    assert is_dense(graph, value) == np.array_equal(view.of(array).reshape(-1), array.reshape(-1))


@pytest.mark.parametrize("item", [(), (3,), (2, 3)])
@pytest.mark.parametrize(("size", "step"), [(1, 1), (3, 1), (2, 2), (3, 5)])
def test_windows_lie_over_one_another(item: tuple[int, ...], size: int, step: int) -> None:
    records = (RECORDS - 1) * step + size
    array = np.arange(records * int(np.prod(item)), dtype=np.int64).reshape(records, *item)
    graph, value = graph_of(fc.window(fc.source(array), size, step))
    where = storage(graph, value)
    assert (where.base, where.offset) == (value, 0), "a window's base is the records that it overlaps in"
    wanted = np.moveaxis(sliding_window_view(array, size, axis=0), -1, 1)[::step]
    np.testing.assert_array_equal(array.reshape(-1)[places(where, (size, *item))], wanted)


def test_a_view_of_a_window_is_seen_in_what_the_window_overlaps() -> None:
    array = np.arange(10, dtype=np.int64)
    graph, value = graph_of(fc.window(fc.source(array), 4)[:, ::-2])
    where = storage(graph, value)
    assert where == Storage(graph.nodes[value].inputs[0], 3, 1, (-2,))
    assert not is_dense(graph, value)


def test_resident_values_and_joined_ones_have_memory_of_their_own() -> None:
    x = fc.source(np.zeros((5, 4), np.float32))
    for element in (fc.stack([x, x], axis=1), fc.concat([x, x], axis=1), fc.take(x, [0, 1], axis=1), x.sum(axis=0)[1:]):
        graph, value = graph_of(element)
        spec = graph.nodes[value].spec
        own = spec.item_numbers if spec.is_stream else 0
        assert storage(graph, value) == Storage(value, 0, own, c_strides(spec.shape))


def test_a_view_without_numbers_has_memory_of_its_own() -> None:
    graph, value = graph_of(fc.source(np.zeros((5, 4), np.float32))[:, 4:])
    assert not is_view(graph, value)


def test_storage_agrees_with_strided_arrays() -> None:
    """The same numbers through NumPy's own strides, so that the oracle above is no copy of the code."""
    array = numbered((3, 4))
    graph, value = graph_of(fc.permute_dims(fc.source(array)[:, ::-1, 1:3], (0, 2, 1)))
    where = storage(graph, value)
    bytes_each = array.itemsize
    strides = [bytes_each * stride for stride in (where.record, *where.strides)]
    seen = as_strided(array.reshape(-1)[where.offset :], (RECORDS, 2, 3), strides)
    np.testing.assert_array_equal(seen, array[:, ::-1, 1:3].transpose(0, 2, 1))


@given(
    shape=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    order=st.permutations(range(5)),
    steps=st.lists(st.sampled_from([1, 2, -1, -3]), min_size=5, max_size=5),
    dtype=st.sampled_from(["u1", "f2", "f4", "i8"]),
)
def test_copies_of_strided_arrays_are_numpys(shape: list[int], order: list[int], steps: list[int], dtype: str) -> None:
    axes = [axis for axis in order if axis < len(shape)]
    array = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    view = array.transpose(axes)[tuple(slice(None, None, step) for step in steps[: len(shape)])]
    made = contiguous(view)
    assert made.flags.c_contiguous
    assert not np.shares_memory(made, array)
    np.testing.assert_array_equal(made, view)


@pytest.mark.parametrize(
    ("shape", "order", "outside"),
    [
        ((128, 8, 14, 2, 14, 2), (0, 1, 2, 4, 3, 5), 2),  # windows of 2 x 2
        ((1000, 4, 4, 50), (0, 3, 1, 2), 0),  # axes that are one to NumPy
        ((50, 2), (0, 1), 0),
        ((50, 12), (1, 0), 0),
        ((100, 5, 50, 5), (0, 2, 1, 3), 1),  # 25 walks are too many
    ],
)
def test_short_last_axes_are_walked_outside(shape: tuple[int, ...], order: tuple[int, ...], outside: int) -> None:
    view = np.zeros(shape, "f4").transpose(order)
    assert short_axes(view) == outside
