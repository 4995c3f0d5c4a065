"""Results of kernels that their readers compute again on GPUs: fewer bytes, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.fuse import builder
from flowcompute.schedule.explain.plan_view import Plan
from flowcompute.schedule.planner import PLANS
from flowcompute.schedule.steps import RegionStep
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu
from tests.gpu.tensor_devices import plan_on_paper

RNG = np.random.default_rng(8)
ITEMS = RNG.standard_normal((6, 4, 32), dtype=np.float32)
WEIGHTS = RNG.standard_normal((32, 32), dtype=np.float32)


def items(dtype: Any = "f4") -> Element:
    made = ITEMS.astype(dtype)
    made[1, 2, 3], made[2, 0, 1], made[3, 1, 5] = np.nan, np.inf, -0.0
    return fc.source(made, name="x")


def stored(plan: Plan) -> list[tuple[str, str]]:
    """The names and dtypes of streams of whole items that kernels store, in the order of steps."""
    found = [i for step in plan.steps if isinstance(step, RegionStep) for i in step.region.outputs]
    nodes = [plan.graph.nodes[i] for i in found if plan.graph.nodes[i].spec.item_numbers > 4]
    return [(node.name, str(node.spec.dtype)) for node in nodes]


def again(plan: Plan) -> list[str]:
    return [one.element for one in plan.reasons if one.kind == "again"]


def as_before() -> Any:
    """A time in which kernels store whatever others read."""
    PLANS.clear()
    return mock.patch.object(builder, "recompute_outputs", lambda _, regions, __: ([*regions], []))


def normed_slopes(dtype: Any = ml_dtypes.bfloat16) -> list[Element]:
    """The slopes of a norm before a product of half formats."""
    x = items()
    made = (fc.nn.layer_norm(x).astype(dtype) @ fc.constant(WEIGHTS.astype(dtype))).astype("float32")
    return [fc.grad(fc.sum(fc.vecdot(fc.vecdot(made, made), np.ones(4, "f4"))), x)]


def two_axes(make: Callable[[Element], Element] = lambda x: x * 2 + 1) -> list[Element]:
    """A value of which two kernels reduce different axes."""
    made = make(items())
    return [made / made.sum(axis=2, keepdims=True), made.max(axis=1)]


def folded() -> list[Element]:
    """Rows, and columns of what they are divided by their sums from."""
    x = items("f2")
    made = fc.abs(x.astype("f4")) * 3
    return [made / (made.sum(axis=2, keepdims=True) + 1), fc.sum(made, axis=0)]


def scattered(make: Callable[[Element], Element]) -> list[Element]:
    """A value that rows read, and something else that reads it otherwise."""
    made = items() * 2 + 1
    return [made / made.sum(axis=2, keepdims=True), made.max(axis=1), make(made)]


def test_slopes_of_a_norm_read_its_rows() -> None:
    """Neither distances nor quotients are stored. Slopes of a product are stored as they are rounded."""
    plan = plan_on_paper(*normed_slopes())
    with as_before():
        before = plan_on_paper(*normed_slopes())
    floats, floats_before = ([name for name, dtype in stored(one) if dtype == "float32"] for one in (plan, before))
    assert {*floats_before} - {*floats} == {*again(plan)}
    assert {*floats} < {*floats_before}
    assert len(again(plan)) == 4


def test_kernels_without_results_are_gone() -> None:
    """What two kernels compute again needs none of its own."""
    x = items()
    made = x * 2
    readers = [made.max(axis=1), made.min(axis=2)]
    plan = plan_on_paper(*readers)
    assert len(plan.kernels) == 2
    with as_before():
        assert len(plan_on_paper(*readers).kernels) >= 2
    assert stored(plan) == [("max", "float32")]


@pytest.mark.compiles
@pytest.mark.parametrize("make", [normed_slopes, lambda: normed_slopes("f2"), two_axes, folded])
def test_bits_are_those_of_what_was_stored(make: Callable[[], list[Element]]) -> None:
    """Of NaN, infinity and -0, too."""
    got = resolve_on_gpu(*make())
    assert again(plan_for_gpu(*make()))
    with as_before():
        before = resolve_on_gpu(*make())
    PLANS.clear()
    assert [one.tobytes() for one in got] == [one.tobytes() for one in before]


@pytest.mark.parametrize(
    "make",
    [
        lambda made: made,
        lambda made: made @ fc.constant(WEIGHTS),
        lambda made: fc.permute_dims(made, (0, 2, 1)).sum(axis=1),
        lambda made: fc.cumulative_sum(made, axis=0),
    ],
    ids=["root", "product", "view", "scan"],
)
def test_what_others_read_is_stored(make: Callable[[Element], Element]) -> None:
    assert not again(plan_on_paper(*scattered(make)))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: fc.nn.dropout(x, 0.5, seed=1),
        lambda x: fc.sinh(fc.exp(x)) ** 1.5,
        lambda x: x * np.ones(ITEMS.shape[1:], "f4") + fc.source(ITEMS, name="y"),
    ],
    ids=["random numbers", "long", "more to read"],
)
def test_long_and_wide_ones_are_stored(make: Callable[[Element], Element]) -> None:
    assert not again(plan_on_paper(*two_axes(make)))


def test_what_is_narrower_is_stored() -> None:
    plan = plan_on_paper(*two_axes(lambda x: (x > 0).astype("f4") * 3))
    assert [dtype for _, dtype in stored(plan)] == ["bool", "float32", "float32"]


def test_cpus_store_results() -> None:
    assert not again(fc.plan(*two_axes(), device="cpu"))
