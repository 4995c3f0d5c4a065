"""Values that readers make again: the kernels of a norm and of its gradient, and their bits."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

import flowcompute as fc
from flowcompute import Strategy
from flowcompute.fuse import builder
from flowcompute.schedule import RegionStep
from tests.gpu.shapes import plan_for_gpu, resolve_on_gpu

WIDTH = 64


def gradients(dtype: str) -> list[Any]:
    """Gradients of a norm between two products, whose results are rounded to `dtype`."""
    rng = np.random.default_rng(0)
    x = fc.source(rng.standard_normal((3, 4, WIDTH), np.float32))
    a, b = (fc.parameter(rng.standard_normal((WIDTH, WIDTH), np.float32) / 8, name=name) for name in "ab")

    def times(one: Any, weights: Any) -> Any:
        return (one.astype(dtype) @ weights.astype(dtype)).astype(dtype)

    h = x + times(x, a)
    loss = fc.mean(fc.sum(fc.square(times(fc.nn.layer_norm(h), b)).astype("float32"), axis=(1, 2)))
    return [*fc.grad(loss, [a, b])]


def wide_values(dtype: str) -> list[str]:
    """The dtypes of the results that are as large as the rows."""
    plan = plan_for_gpu(*gradients(dtype))
    steps = [step for one in plan.passes for step in one.steps if isinstance(step, RegionStep)]
    specs = [plan.graph.nodes[i].spec for step in steps for i in step.region.outputs]
    return [str(spec.dtype) for spec in specs if spec.shape == (4, WIDTH)]


def made_again(dtype: str, **options: Any) -> list[str]:
    return [str(one) for one in plan_for_gpu(*gradients(dtype), **options).reasons if "is made again" in str(one)]


def test_norms_store_what_is_normed_and_one_quotient_for_their_gradient() -> None:
    assert wide_values("float16").count("float32") == 2
    assert len(made_again("float16")) == 3


def test_quotients_of_a_product_in_float32_are_stored() -> None:
    # To store the product itself, too, saves fewer bytes than a division is worth.
    assert len(made_again("float32")) == 1


@pytest.mark.compiles
def test_values_made_again_have_the_same_bits() -> None:
    roots = gradients("float16")
    made = resolve_on_gpu(*roots)
    # Of another batch size, so that no plan is found again.
    apart = Strategy(batch_bytes=1 << 10)
    with mock.patch.object(builder, "make_again", return_value=[]):
        assert not any("made again" in str(one) for one in plan_for_gpu(*roots, strategy=apart).reasons)
        stored = resolve_on_gpu(*roots, strategy=apart)
    for one, other in zip(made, stored, strict=True):
        np.testing.assert_array_equal(one, other)


def test_contracted_additions_make_nothing_again() -> None:
    assert not made_again("float16", precision="fast")
