"""Equal blocks of deep graphs are found, drawn once, and only where one may stand for all."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowcompute as fc
from flowcompute.graph import build_graph, draw_svg
from flowcompute.graph.repeats import Block, find_blocks, fold_repeats

WEIGHTS = np.random.default_rng(7).random((64, 8, 8)).astype(np.float32)


def network(depth: int, *, skip: int | None = None) -> Any:
    x = fc.source(np.ones((100, 8), np.float32), name="x")
    kept = None
    for layer in range(depth):
        x = fc.nn.gelu(fc.nn.layer_norm(x) @ WEIGHTS[layer]) + x
        kept = x if layer == skip else kept
    return x if kept is None else x * kept


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_a_deep_network_is_as_large_as_a_shallow_one() -> None:
    sizes = [len(fold_repeats(build_graph([network(depth)]), {})[0].nodes) for depth in (8, 20, 60)]
    assert sizes[0] == sizes[1] == sizes[2] < 30
    folded, _, counts = fold_repeats(build_graph([network(60)]), {})
    assert set(counts.values()) <= {59, 60}
    assert all(operand < node.id for node in folded.nodes for operand in node.inputs)
    shown = [text.partition(",") for text in texts(draw_svg(build_graph([network(60)])))]
    assert {name.partition("_")[0] for name, _, times in shown if times in (" 59 times", " 60 times")} == {
        "layer",
        "constant",
        "matmul",
        "gelu",
        "add",
    }


def test_a_plan_of_a_deep_network_tells_how_often_a_kernel_is() -> None:
    plan = network(30).plan(device="cpu")
    shown = texts(plan.svg())
    assert len(plan.kernels) > 50
    assert sum(text.startswith("k") for text in shown) < 12
    assert any(re.fullmatch(r"k\d+: .*gelu.*, 2\d times", text) for text in shown)


def test_what_is_used_elsewhere_does_not_stand_for_another() -> None:
    graph = build_graph([network(20, skip=10)])
    folded, _, counts = fold_repeats(graph, {})
    (root,) = folded.roots
    assert len(folded.nodes[root].inputs) == 2
    assert len(set(folded.nodes[root].inputs)) == 2
    assert counts


def test_two_equal_layers_are_drawn_as_they_are() -> None:
    graph = build_graph([network(2)])
    folded, _, counts = fold_repeats(graph, {})
    assert (len(folded.nodes), counts) == (len(graph.nodes), {})


@pytest.mark.parametrize("other", [lambda x: x * 2, lambda x: fc.nn.softmax(x, axis=1), lambda x: x.astype("float64")])
def test_blocks_that_differ_are_not_folded(other: Any) -> None:
    x = fc.source(np.ones((100, 8), np.float32), name="x")
    for _ in range(3):
        x = other(fc.tanh(x)) if _ == 1 else fc.exp(fc.tanh(x))
    assert fold_repeats(build_graph([x]), {})[2] == {}


@given(st.lists(st.integers(0, 2), max_size=24))
def test_blocks_are_apart_and_equal(keys: list[int]) -> None:
    reads = [((unit - 1, 0),) if unit else () for unit in range(len(keys))]
    blocks = find_blocks(keys, reads)
    end = 0
    for block in blocks:
        assert block.start >= end
        assert block.count >= 3
        end = block.start + block.units * block.count
        runs = [keys[block.start + i * block.units :][: block.units] for i in range(block.count)]
        assert all(run == runs[0] for run in runs)
    assert end <= len(keys)


def test_a_chain_of_equal_units_is_one_block() -> None:
    reads = [((unit - 1, 0),) if unit else () for unit in range(10)]
    assert find_blocks(["x", *"ababab", *"ccc"], reads) == [Block(1, 2, 3), Block(7, 1, 3)]
    assert find_blocks("aaaa", [(), (), (), ()]) == [Block(0, 1, 4)]
