"""Rows that GPUs move in vectors of four, in the order of sums of single numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.gpu import OpenCLBackend
from tests.gpu.shapes import gpu_shaped, plan_for_gpu, resolve_on_gpu
from tests.gpu.tensor_devices import emulated, plan_on_paper

ROWS = 7
"""More than two for each of the emulated work-groups."""
WEIGHTS = np.linspace(0.5, 2.5, 1024)


def numbers(columns: int, dtype: Any = "f4") -> np.ndarray:
    made = np.random.default_rng(columns).standard_normal((ROWS, columns)).astype(dtype)
    made[3, columns - 1] = 40
    made[5, columns // 2] = np.nan
    return made


def computed(make: Callable[[], Element], *, in_place: bool) -> bytes:
    """Compute a value by code for GPUs. In the host's memory vectors may begin anywhere, so numbers move one by one."""
    with mock.patch.object(OpenCLBackend, "select", return_value=gpu_shaped(in_place=in_place)):
        return np.asarray(fc.resolve(make(), device="gpu", progress=False)).tobytes()


def softmax(x: Element) -> Element:
    return fc.nn.softmax(x, axis=1) * 3


def normed(x: Element) -> Element:
    return fc.nn.layer_norm(x, weight=WEIGHTS[: x.spec.shape[0]].astype(x.dtype))


def largest(x: Element) -> Element:
    return x * (x.argmax(axis=1, keepdims=True) + 1)


def dropped(x: Element) -> Element:
    return normed(fc.nn.dropout(x, 0.25, seed=3))


def flagged(x: Element) -> Element:
    return (x > x.mean(axis=1, keepdims=True)) & (x < x.max(axis=1, keepdims=True))


FORMULAS = [softmax, normed, flagged]
COLUMNS = [64, 128, 256, 768, 1024]


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("formula", FORMULAS, ids=lambda one: one.__name__)
def test_bits_are_those_of_the_reference(formula: Callable[[Element], Element], columns: int) -> None:
    given = numbers(columns)
    x = fc.source(given, name="x")
    (kernel,) = plan_on_paper(formula(x)).kernels
    assert "float4" in kernel.source
    got = emulated(formula(x), {"x": given})
    np.testing.assert_array_equal(got, fc.resolve(formula(x), device="numpy", progress=False))


@pytest.mark.compiles
@pytest.mark.parametrize("dtype", ["f4", "f8", ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("formula", [normed, largest, dropped], ids=lambda one: one.__name__)
def test_kernels_have_the_bits_of_single_numbers(formula: Callable[[Element], Element], dtype: Any) -> None:
    given = numbers(256, dtype)
    together, alone = (computed(lambda: formula(fc.source(given)), in_place=one) for one in (False, True))
    assert together == alone


@pytest.mark.parametrize(
    "seen",
    [
        lambda x: x[:, 2:130],
        lambda x: x[:, ::2],
        lambda x: x[:, :130],
        lambda x: x[:, :32],
        lambda x: fc.permute_dims(fc.reshape(x, (-1, 2, 128)), (0, 2, 1)),
    ],
    ids=["begins elsewhere", "jumps", "no whole vectors", "short", "turned"],
)
def test_rows_that_are_no_vectors_are_moved_one_by_one(seen: Callable[[Any], Any]) -> None:
    (kernel, *_) = plan_on_paper(fc.nn.softmax(seen(fc.source(numbers(256))), axis=1)).kernels
    assert "float4" not in kernel.source


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("dtype", "last", "vector"),
    [("f4", 16, "float4"), (ml_dtypes.bfloat16, 16, "ushort8"), (ml_dtypes.bfloat16, 12, "ushort4"), ("f4", 6, None)],
    ids=str,
)
def test_long_views_are_moved_in_vectors_of_their_last_axis(dtype: Any, last: int, vector: str | None) -> None:
    given = np.random.default_rng(last).integers(-99, 99, (3, 24, 32, last)).astype(dtype)
    turned = fc.permute_dims(fc.source(given), (0, 2, 1, 3)) * np.array(2, dtype)
    (kernel,) = plan_for_gpu(turned).kernels
    assert kernel.ir.form == "rows"
    assert any(one in kernel.source for one in ("float4", "ushort8", "ushort4")) == (vector is not None)
    assert vector is None or vector in kernel.source
    (made,) = resolve_on_gpu(turned)
    np.testing.assert_array_equal(made, given.transpose(0, 2, 1, 3) * 2)
