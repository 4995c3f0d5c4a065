"""Products of bytes less a zero point have the bits of products of int32, and are made of the bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.graph import Graph, build_graph
from flowcompute.jobs import job_planner
from flowcompute.lower.matmul import WARP_GROUP_MATMUL
from flowcompute.rewrite import multiply_bytes
from flowcompute.schedule.steps import RegionStep
from tests.golden.test_golden import HOPPER
from tests.gpu.tensor_devices import plan_on_paper

rng = np.random.default_rng(3)
ROOM = 1 << 40
ROWS, ITEMS = rng.integers(0, 256, (300, 144)).astype("u1"), rng.integers(-128, 128, (3, 50, 144)).astype("i1")
WEIGHTS, ZEROS = rng.integers(-128, 128, (144, 136)).astype("i1"), rng.integers(-99, 99, 136).astype("i1")


def less(x: Any, zero: Any) -> fc.Element:
    return fc.astype(x, "int32") - fc.astype(fc.constant(zero), "int32")


def product(x: Any, w: Any) -> fc.Element:
    return fc.matmul(x, w, dtype="int32")


PRODUCTS: dict[str, Callable[[], fc.Element]] = {
    "left": lambda: product(less(fc.source(ROWS), np.uint8(117)), fc.constant(WEIGHTS)),
    "right": lambda: product(fc.source(ROWS), less(fc.constant(WEIGHTS), np.int8(-7))),
    "both": lambda: product(less(fc.source(ROWS), np.uint8(117)), less(fc.constant(WEIGHTS), np.int8(5))),
    "a zero point a column": lambda: product(
        less(fc.source(ROWS), np.array([117], "u1")), less(fc.constant(WEIGHTS), ZEROS)
    ),
    "items": lambda: product(less(fc.source(ITEMS), np.int8(3)), less(fc.constant(WEIGHTS), ZEROS)),
    "a zero point a row": lambda: product(less(fc.source(ITEMS), ZEROS[:50, None]), fc.constant(WEIGHTS)),
    "more behind it": lambda: fc.maximum(
        fc.astype(PRODUCTS["both"](), "float32") * 0.01, fc.source(ROWS[:, :1].astype("f4"))
    ),
}
OTHERS: dict[str, Callable[[], fc.Element]] = {
    "a zero point for each number of k": lambda: product(
        less(fc.source(ROWS), np.resize(ZEROS, 144)), fc.constant(WEIGHTS)
    ),
    "few columns": lambda: product(less(fc.source(ROWS), np.uint8(9)), fc.constant(WEIGHTS[:, :120])),
    "wide numbers": lambda: product(less(fc.source(ROWS.astype("u2")), np.uint16(9)), fc.constant(WEIGHTS)),
    "a sum": lambda: product(fc.astype(fc.source(ROWS), "int32") + 9, fc.constant(WEIGHTS)),
    "int64": lambda: fc.matmul(less(fc.source(ROWS), np.uint8(9)), fc.constant(WEIGHTS), dtype="int64"),
}


def rewritten(element: fc.Element) -> Graph:
    return multiply_bytes(build_graph([fc.to_array().bind(element)]), HOPPER, ROOM)


def factors(graph: Graph) -> set[str]:
    (node,) = (node for node in graph.nodes if node.op is not None and node.op.name == "matmul")
    return {graph.nodes[i].spec.dtype.name for i in node.inputs}


@pytest.mark.parametrize("name", PRODUCTS)
def test_bytes_are_multiplied_with_the_bits_of_int32(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As jobs on Hopper are planned, but for the device."""
    element = PRODUCTS[name]()
    assert factors(rewritten(element)) <= {"int8", "uint8"}
    known = fc.resolve(element, device="numpy", progress=False)
    monkeypatch.setattr(job_planner, "multiply_bytes", lambda graph, *_: multiply_bytes(graph, HOPPER, ROOM))
    for device in ("numpy", "cpu"):
        assert np.array_equal(fc.resolve(element, device=device, progress=False), known)
    small = fc.resolve(element, device="numpy", progress=False, strategy=fc.Strategy(batch_bytes=1 << 12))
    assert np.array_equal(small, known)


@pytest.mark.parametrize("name", OTHERS)
def test_other_products_stay(name: str) -> None:
    assert not factors(rewritten(OTHERS[name]())) <= {"int8", "uint8"}


@pytest.mark.parametrize("name", ["left", "both", "a zero point a column", "items"])
def test_groups_of_sub_groups_make_them_on_hopper(name: str) -> None:
    plan = plan_on_paper(PRODUCTS[name](), capabilities=HOPPER)
    (step,) = (step for step in plan.steps if isinstance(step, RegionStep) and step.region.anchor is not None)
    assert step.kernel is not None
    assert step.kernel.form == WARP_GROUP_MATMUL.name
    made = {getattr(plan.graph.nodes[i].op, "name", None) for i in step.region.nodes}
    assert {"matmul", "subtract"} <= made <= {"matmul", "subtract", "multiply"}, "it subtracts the zero points, too"
