"""Products by repeated matrices read each matrix once, with the bits of a product by the repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements import Kind
from flowcompute.elements.axes import BROADCAST
from flowcompute.graph import Graph, build_graph
from flowcompute.rewrite import share_repeated_matrices

rng = np.random.default_rng(5)
BATCH, GROUPS, TIMES, KEYS, SIZE = 3, 2, 4, 5, 8


def repeated(x: Any, times: int = TIMES) -> Any:
    """Repeat each matrix of items `(groups, k, n)`, as exported models do."""
    groups, rows, columns = x.spec.shape
    wide = fc.broadcast_to(fc.reshape(x, (-1, groups, 1, rows, columns)), (-1, groups, times, rows, columns))
    return fc.reshape(wide, (-1, groups * times, rows, columns))


def rewritten(*elements: Any) -> Graph:
    return share_repeated_matrices(build_graph([fc.to_array().bind(one) for one in elements]))


def largest(graph: Graph) -> int:
    return max(node.spec.item_numbers for node in graph.nodes if node.kind is Kind.ELEMENTWISE)


@pytest.mark.parametrize("rows", [1, 3])
def test_bits_of_grouped_attention_are_those_of_repeats(rows: int) -> None:
    """Keys are transposed and values masked behind the repeats; queries may be a view of heads and rows."""
    queries = rng.standard_normal((BATCH, rows, GROUPS * TIMES, SIZE)).astype(np.float32) / 8
    keys, values = rng.standard_normal((2, BATCH, GROUPS, KEYS, SIZE)).astype(np.float32)
    values[:, :, -1] = np.nan
    known = np.arange(KEYS)[:, None] < KEYS - 1
    heads = fc.permute_dims(fc.source(queries), (0, 2, 1, 3))
    k, v = fc.source(keys), fc.source(values)
    scores = fc.matmul(heads, fc.permute_dims(repeated(k), (0, 1, 3, 2)))
    made = fc.matmul(fc.exp(scores), fc.where(known, repeated(v), np.float32(0)))
    graph = rewritten(made)
    assert not any(node.op is BROADCAST for node in graph.nodes)
    assert largest(graph) == max(GROUPS * KEYS * SIZE, GROUPS * TIMES * rows * KEYS)
    # Sources of repeats, which no rewrite sees.
    many = [np.repeat(one, TIMES, axis=1) for one in (keys, values)]
    wanted = fc.matmul(
        fc.exp(fc.matmul(heads, fc.permute_dims(fc.source(many[0]), (0, 1, 3, 2)))),
        fc.where(known, fc.source(many[1]), np.float32(0)),
    )
    got = made.resolve(device="cpu", progress=False)
    np.testing.assert_array_equal(got, wanted.resolve(device="cpu", progress=False))
    weights = np.exp(np.moveaxis(queries, 1, 2) @ np.moveaxis(many[0], 2, 3))
    np.testing.assert_allclose(got, weights @ np.where(known, many[1], 0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_one_matrix_serves_all_heads(dtype: str) -> None:
    a = rng.integers(-9, 9, (BATCH, TIMES, 2, SIZE)).astype(dtype)
    b = rng.integers(-9, 9, (BATCH, 1, SIZE, 3)).astype(dtype)
    made = fc.matmul(fc.source(a), repeated(fc.source(b)))
    assert not any(node.op is BROADCAST for node in rewritten(made).nodes)
    np.testing.assert_array_equal(made.resolve(device="cpu", progress=False), a @ b)


def test_what_needs_repeats_has_them() -> None:
    a = fc.source(rng.standard_normal((BATCH, GROUPS * TIMES, 1, SIZE)))
    b = fc.source(rng.standard_normal((BATCH, GROUPS, SIZE, 3)))
    bias = fc.source(rng.standard_normal((BATCH, GROUPS * TIMES, SIZE, 3)))
    many = repeated(b)
    for made in (
        (fc.matmul(a, many), many),  # a result
        (fc.matmul(a, many + bias),),  # an operand of its own for each head
        (fc.matmul(a, many), fc.sum(many, axis=1)),  # another reader
        (fc.matmul(many, fc.source(rng.standard_normal((BATCH, GROUPS * TIMES, 3, 2)))),),  # the left factor
        (fc.matmul(a, repeated(b) * fc.concat([many, many], axis=1)[:, : GROUPS * TIMES]),),
    ):
        asked = build_graph([fc.to_array().bind(one) for one in made])
        assert share_repeated_matrices(asked) is asked


def test_names_stay() -> None:
    a = fc.source(rng.standard_normal((BATCH, GROUPS * TIMES, 1, SIZE)))
    b = fc.source(rng.standard_normal((BATCH, GROUPS, SIZE, 3)))
    graph = rewritten(fc.matmul(a, repeated(b)))
    names = [node.name for node in graph.nodes]
    assert len(names) == len(set(names))
    assert graph.nodes[graph.nodes[graph.roots[0]].inputs[0]].name == "matmul"
