"""Rows of several blocks that work-groups of NVIDIA GPUs walk, in registers and half in local memory, emulated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.schedule.explain.plan_view import KernelPlan
from flowcompute.strategy.strategy import Strategy
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
