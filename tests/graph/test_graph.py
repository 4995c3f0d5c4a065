"""The graph found by walking back: what is merged, what it is called, and what its hash tells apart."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.errors import SpecError
from flowcompute.graph.graph import Graph, build_graph, structural_hash
from flowcompute.spec import parse_dtype

ARRAY = np.arange(12.0).reshape(4, 3)


def source(array: np.ndarray = ARRAY, name: str | None = None) -> Element:
    return fc.source(array, name=name)


def graph_of(*roots: Element) -> Graph:
    return build_graph(roots)


def names_of(*roots: Element) -> list[str]:
    return [node.name for node in graph_of(*roots).nodes]


# -- merging ----------------------------------------------------------------------------------------


def test_operands_come_before_their_users() -> None:
    x = source()
    y = fc.exp(x) + x
    graph = graph_of(y * y, y.sum())
    for node in graph.nodes:
        assert all(operand < node.id for operand in node.inputs)
    assert [graph.nodes[root].name for root in graph.roots] == ["multiply", "sum"]


def test_equal_expressions_are_one_node() -> None:
    x = source()
    graph = graph_of(fc.exp(x) + 1, fc.exp(x) + 1)
    assert graph.roots[0] == graph.roots[1]
    assert len(graph.nodes) == 4


def test_an_array_read_twice_is_one_source() -> None:
    assert len(graph_of(source() + source()).nodes) == 2
    assert len(graph_of(source() + source(ARRAY.copy())).nodes) == 3
    assert len(graph_of(source() + source(ARRAY[::-1])).nodes) == 3


def test_commuting_operands_are_merged_in_either_order() -> None:
    x, y = source(), source(ARRAY.copy())
    assert len(graph_of(x + y, y + x).nodes) == 3
    assert len(graph_of(fc.maximum(x, y), fc.maximum(y, x)).nodes) == 3
    assert len(graph_of(x - y, y - x).nodes) == 4
    assert len(graph_of(x < y, y > x).nodes) == 4


def test_constants_are_merged_by_value_bits_and_dtype() -> None:
    x = source()
    assert len(graph_of(x + 2.5, x * 2.5).nodes) == 4
    assert len(graph_of(x * 0.0, x * -0.0).nodes) == 5
    assert len(graph_of(x * np.float64(2), source(ARRAY.astype("f4")) * 2).nodes) == 6
    assert len(graph_of(x * np.nan, x + np.nan).nodes) == 4
    row = np.ones(3)
    assert len(graph_of(x + fc.constant(row), x * fc.constant(row.copy())).nodes) == 4
    assert len(graph_of(x + fc.constant(np.ones((1, 3))), x * fc.constant(row)).nodes) == 4


def test_large_constants_are_merged_only_with_themselves() -> None:
    large = np.zeros(1 << 18)
    x = fc.source(np.zeros((2, 1 << 18)))
    a, b = fc.constant(large), fc.constant(large)
    assert len(graph_of(x + a, x * b).nodes) == 5
    assert len(graph_of(x + a, x * a).nodes) == 4


def test_attributes_and_dtypes_keep_nodes_apart() -> None:
    x = source()
    made = [x.sum(axis=0), x.sum(axis=1), x.sum(axis=1, keepdims=True), x.var(axis=0), x.var(axis=0, correction=1)]
    made += [x.astype("f4"), x.astype("f2"), x.max(axis=0), x.min(axis=0)]
    assert len(graph_of(*made).nodes) == len(made) + 1


def test_what_has_effects_is_never_merged() -> None:
    x = source()

    def twice(array: np.ndarray) -> np.ndarray:
        return array * 2

    assert len(graph_of(fc.host(twice, x), fc.host(twice, x)).nodes) == 3
    steps = fc.scan(np.add, x, init=np.zeros(3)), fc.scan(np.subtract, x, init=np.zeros(3))
    assert len(graph_of(*steps).nodes) == 3
    assert len(graph_of(x >> fc.to_array(), x >> fc.to_array()).nodes) == 3
    assert len(graph_of(x >> fc.discard(), x >> fc.discard()).nodes) == 3


# -- names ----------------------------------------------------------------------------------------


def test_names_are_unique_and_counted() -> None:
    x = source()
    assert names_of((x + 1) + 2) == ["source", "1.0", "add", "2.0", "add_2"]


def test_a_given_name_wins_over_counted_ones() -> None:
    x = source(name="add")
    assert names_of(x + 1) == ["add", "1.0", "add_2"]
    assert names_of(fc.source(ARRAY, name="add_2") + 1 + 2) == ["add_2", "1.0", "add", "2.0", "add_3"]


def test_of_merged_elements_the_named_one_is_kept() -> None:
    unnamed, named = source(), source(name="temperature")
    assert "temperature" in names_of(unnamed + named)


def test_a_name_given_twice_is_refused_with_both_lines() -> None:
    x = source(name="x")
    y = source(ARRAY.copy(), name="x")
    with pytest.raises(SpecError, match="two elements the name 'x'") as caught:
        graph_of(x + y)
    assert str(caught.value).count("test_graph.py:") == 2


def test_a_destination_without_input_is_refused() -> None:
    with pytest.raises(SpecError, match="cannot run without an input") as caught:
        graph_of(fc.to_array())
    assert "x >> destination" in str(caught.value)
    made = fc.save("x.npy")
    assert str(made) == repr(made) == "<NpySink save: no input yet>"
    assert made._repr_html_() is None


# -- hash -----------------------------------------------------------------------------------------


def model(array: np.ndarray = ARRAY, scale: float = 3.5, name: str | None = None) -> Element:
    x = fc.source(array, name=name)
    return fc.tanh(x * scale + 1).sum(axis=1)


def test_equal_graphs_hash_equally_whatever_they_read() -> None:
    assert model().hash == model().hash
    assert model().hash == model(np.ones((999, 3))).hash
    assert model().hash == model(scale=-7.25).hash
    assert model().hash == model(name="named").hash
    stream = fc.iterate([ARRAY], shape=3, dtype="f8")
    other = fc.iterate([ARRAY], shape=3, dtype="f8")
    assert fc.exp(stream).hash == fc.exp(other).hash


DIFFERENT: dict[str, Callable[[Element, Element], Element]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "itself": lambda x, _: x + x,
    "row sum": lambda x, _: x.sum(axis=1),
    "kept row sum": lambda x, _: x.sum(axis=1, keepdims=True),
    "fold": lambda x, _: x.sum(axis=0),
    "correction": lambda x, _: x.var(axis=0, correction=1),
    "variance": lambda x, _: x.var(axis=0),
    "half": lambda x, _: x.astype("f2"),
    "bfloat16": lambda x, _: x.astype("bfloat16"),
    "scalar": lambda x, _: x * 5.5,
    "zero": lambda x, _: x * 0,
    "minus zero": lambda x, _: x * -0.0,
    "one": lambda x, _: x * 1,
    "minus one": lambda x, _: x * -1,
    "two": lambda x, _: x * 2,
    "row": lambda x, _: x * fc.constant(np.ones(3)),
    "number": lambda x, _: x * fc.constant(np.ones(1)),
    "wider": lambda _, __: fc.source(np.ones((4, 5))) + 2.5,
    "single": lambda _, __: fc.source(np.ones((4, 3), "f4")) * 5.5,
    "resident": lambda _, __: fc.constant(np.ones((4, 3))) * 5.5,
    "host": lambda x, _: fc.host(np.sort, x),
    "other host": lambda x, _: fc.host(np.square, x),
    "scan": lambda x, _: fc.scan(np.sort, x, init=np.zeros(3)),
    "other scan": lambda x, _: fc.scan(np.square, x, init=np.zeros(3)),
}


def test_different_graphs_hash_differently() -> None:
    x, y = source(), source(ARRAY.copy())
    hashes = {name: build(x, y).hash for name, build in DIFFERENT.items()}
    # Minus zero is no literal: it is a scalar like any other.
    assert hashes.pop("minus zero") == hashes["scalar"]
    assert len(set(hashes.values())) == len(hashes)


def test_a_leaf_counts_by_identity() -> None:
    x, y = source(), source(ARRAY.copy())
    assert (x * x).hash != (x * y).hash
    assert (x * y).hash == (y * x).hash == (source(ARRAY + 1) * source(ARRAY + 2)).hash
    assert (x - y).hash == (y - x).hash  # which of two sources comes first is a matter of names
    assert (x - y + x).hash != (x - y + y).hash


def test_roots_and_their_order_count() -> None:
    x = source()
    a, b = fc.exp(x), fc.sin(x)
    assert structural_hash(graph_of(a, b)) != structural_hash(graph_of(a))
    assert structural_hash(graph_of(a, a)) != structural_hash(graph_of(a))


@given(st.floats(allow_nan=True), st.floats(allow_nan=True))
def test_scalars_are_arguments_except_four(a: float, b: float) -> None:
    x = source()
    # Minus zero is a scalar like any other.
    kinds = [
        value if value in (0.0, 1.0, -1.0, 2.0) and not (value == 0 and np.signbit(value)) else None for value in (a, b)
    ]
    assert ((x + a).hash == (x + b).hash) == (kinds[0] == kinds[1])


@pytest.mark.slow
def test_the_hash_is_the_same_in_every_process() -> None:
    program = (
        "import numpy as np, flowcompute as fc; x = fc.source(np.arange(12.0).reshape(4, 3));"
        "print(fc.tanh(x * 3.5 + 1).sum(axis=1).hash)"
    )
    found = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        found.add(run.stdout.strip())
    assert found == {model().hash}


# -- deep and wide --------------------------------------------------------------------------------


def test_ten_thousand_operations_one_after_the_other() -> None:
    x = source()
    y = x
    for step in range(10_000):
        y = y + 1.5 if step % 2 else y * x
    graph = graph_of(y)
    assert len(graph.nodes) == 10_002
    assert len(structural_hash(graph)) == 32
    users = graph.users()
    assert len(users[0]) == 5001 - 1 + 1
    assert users[graph.roots[0]] == []


def test_sharing_does_not_multiply() -> None:
    """Each level uses the one below twice: 2^60 paths, 60 nodes."""
    y = source()
    for _ in range(60):
        y = y - fc.abs(y)
    assert len(graph_of(y).nodes) == 121


def test_dtypes_are_those_of_the_machine_whatever_byte_order_they_name() -> None:
    """One that names its own order is equal to one that does not, and would stand for it in what is kept by dtype."""
    named = np.dtype("f4").newbyteorder("<" if sys.byteorder == "little" else ">")
    x = fc.source(np.zeros(3, named))
    assert repr((fc.constant(np.ones(3, named)) + 1).spec.dtype) == "dtype('float32')"
    assert repr(fc.where(x > 0, x, -x).spec.dtype) == repr(parse_dtype(named)) == "dtype('float32')"
