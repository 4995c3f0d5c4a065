"""Rows of several blocks that work-groups of NVIDIA GPUs walk, in registers and half in local memory, emulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.compute import Constant
from flowcompute.elements.element import Element
from flowcompute.ir import For, If, Store
from flowcompute.ir.kernel import Kernel
from flowcompute.lower.following_rows import FollowingRows
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.schedule.explain.plan_view import KernelPlan
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy.strategy import Strategy
from tests.golden.test_golden import NVIDIA
from tests.gpu.emulator import emulate
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, plan_on_paper

ROWS = 7
"""More than two for each of the emulated work-groups."""


def numbers(columns: int, dtype: str = "f4") -> np.ndarray:
    made = np.random.default_rng(columns).standard_normal((ROWS, columns)).astype(dtype)
    made[3, columns - 1] = 40
    made[5, columns // 2] = np.nan
    return made


def normed(x: Element) -> Element:
    away = x - x.mean(axis=1, keepdims=True)
    return away / fc.sqrt((away * away).sum(axis=1, keepdims=True))


def softmax(x: Element) -> Element:
    return fc.nn.softmax(x, axis=1) * 3


def centred(x: Element) -> Element:
    return x - x.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("formula", "columns", "dtype", "blocks"),
    [
        (softmax, 2500, "f4", 1),
        (softmax, 2500, "f4", 2),
        (centred, 4096, "f4", 2),
        (normed, 5000, "f8", 2),
        (normed, 34000, "f4", None),
    ],
)
def test_bits_are_those_of_the_reference(
    formula: Callable[[Element], Element], columns: int, dtype: str, blocks: int | None
) -> None:
    given = numbers(columns, dtype)
    x = fc.source(given, name="x")
    got = emulated(formula(x), {"x": given}, strategy=Strategy(team_blocks=blocks))
    expected = fc.resolve(formula(x), device="numpy", progress=False)
    np.testing.assert_array_equal(got, expected)


def test_two_rows_that_fill_a_compute_unit_lie_half_in_local_memory() -> None:
    def kernel(columns: int, dtype: str = "f4", **knobs: int) -> KernelPlan:
        x = fc.source(np.zeros((ROWS, columns), dtype))
        return plan_on_paper(fc.nn.softmax(x, axis=1), strategy=Strategy(**knobs)).kernels[0]

    assert kernel(32768).ir.work_group == 512
    assert kernel(32768, team_blocks=1).ir.work_group == 1024
    assert kernel(16384).ir.work_group == 512
    assert kernel(10000).ir.work_group == 160
    assert kernel(65536).ir.work_group == 1024
    # Half formats cannot be copied one by one.
    assert kernel(32768, "f2", team_blocks=2).ir.work_group == 1024
    assert kernel(70000).ir.family == "rows"
    assert compiles_without_assembly(kernel(32768).source)


@pytest.mark.parametrize("columns", [4096, 3900, 3000])
def test_rows_that_follow_a_product_are_read_at_once_where_they_fill_its_work_groups(columns: int) -> None:
    given = numbers(columns)
    x = fc.source(given, name="x")
    made = x / fc.sqrt((x * x).mean(axis=1, keepdims=True)) * np.linspace(-2, 2, columns, dtype="f4")
    plan = plan_on_paper(made)
    region = next(step.region for step in plan.steps if isinstance(step, RegionStep) and step.region.stream)
    style, leader = KernelStyle(NVIDIA), Kernel("leader", "leader", (), (), work="matmul", work_group=128)
    rows = FollowingRows(plan.graph, region, style, leader)
    arrays = {}
    for one in rows.arguments:
        element = plan.graph.nodes[one.value].element
        arrays[one.value] = element.value if isinstance(element, Constant) else given
    (got,) = emulate(replace(leader, arguments=rows.arguments, body=rows.body), arrays, ROWS, 3).values()
    np.testing.assert_array_equal(got.reshape(ROWS, columns), fc.resolve(made, device="numpy", progress=False))
    # All numbers of a row are read before the first is stored.
    (loop,) = (one for one in rows.body if isinstance(one, For))
    assert isinstance(loop.body[-1], Store | If) == (columns > 3 * 1024)
