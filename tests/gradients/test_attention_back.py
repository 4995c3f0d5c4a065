"""Attention goes back by kernels that store no weights: the slopes of products, in memory that grows with the length."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flowcompute as fc
from flowcompute.engine.split_backend import _joined
from flowcompute.gradients import attention_rules
from flowcompute.schedule.planner import make_plan
from flowcompute.schedule.steps import NodeStep
from flowcompute.strategy.config import Config
from tests.golden.test_golden import CPU, NVIDIA, graph_of, on_paper
from tests.gpu.shapes import resolve_on_gpu
from tests.support.slow import compiled_but

RNG = np.random.default_rng(9)
HIDDEN = np.where(RNG.random((70, 33)) > 0.4, 0.5, -np.inf)
HIDDEN[3] = -np.inf

CASES: dict[str, tuple[tuple[int, int, int, int, int, int], dict[str, Any]]] = {
    # Queries, keys, heads, heads of keys, numbers of a key and of a value.
    "all keys": ((70, 33, 3, 3, 8, 5), {}),
    "causal": ((70, 70, 4, 2, 9, 7), {"causal": True}),
    "window": ((133, 133, 2, 1, 4, 3), {"causal": True, "window": 9}),
    "mask": ((70, 33, 4, 2, 8, 5), {"mask": HIDDEN}),
    "scale": ((5, 1, 2, 2, 1, 1), {"scale": 2.0}),
}


def leaves(name: str, dtype: Any) -> tuple[Any, ...]:
    (queries, keys, heads, kv_heads, size, columns), _ = CASES[name]
    rng = np.random.default_rng(1)
    shapes = (heads, queries, size), (kv_heads, keys, size), (kv_heads, keys, columns)
    return tuple(fc.source(rng.standard_normal((3, *shape)).astype(dtype)) for shape in shapes)


def loss(name: str, operands: tuple[Any, ...]) -> Any:
    made = fc.nn.attention(*operands, **CASES[name][1])
    return (made * np.random.default_rng(2).standard_normal((3, *made.spec.shape))).sum()


def by_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_rules, "_STORED_BYTES", 1)


@pytest.mark.parametrize(("name", "dtype"), compiled_but([("mask", "f8")], itertools.product(CASES, ["f8", "f4"])))
def test_slopes_are_those_of_products(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operands = leaves(name, "f8")
    expected = fc.resolve(*fc.grad(loss(name, operands), operands), device="numpy", progress=False)
    by_kernels(monkeypatch)
    operands = leaves(name, dtype)
    gradients = fc.grad(loss(name, operands), operands)
    assert "attention" in str(fc.plan(*gradients, device="cpu"))
    tolerance = 1e-11 if dtype == "f8" else 1e-5
    single = fc.Strategy(batch_bytes=1)
    for device in ("numpy", "cpu"):
        found = fc.resolve(*gradients, device=device, progress=False)
        again = fc.resolve(*gradients, device=device, progress=False, strategy=single)
        for one, other, exact in zip(found, again, expected, strict=True):
            assert one.tobytes() == other.tobytes()
            np.testing.assert_allclose(one, exact, rtol=tolerance, atol=tolerance * np.abs(exact).max())


@pytest.mark.parametrize("name", compiled_but(["causal"], ["causal", "mask"]))
def test_code_for_gpus_gives_them_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernels(monkeypatch)
    operands = leaves(name, "f4")
    gradients = fc.grad(loss(name, operands), operands)
    expected = fc.resolve(*gradients, device="numpy", progress=False)
    found, again = (resolve_on_gpu(*gradients, **given) for given in ({}, {"strategy": fc.Strategy(batch_bytes=1)}))
    for one, other, exact in zip(found, again, expected, strict=True):
        assert one.tobytes() == other.tobytes()
        np.testing.assert_allclose(one, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("dtype", compiled_but(["float16"], ["float16", "bfloat16"]))
def test_half_formats_are_computed_in_float32(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernels(monkeypatch)
    operands = tuple(one.astype(dtype) for one in leaves("causal", "f4"))
    wide = tuple(one.astype("float32") for one in operands)
    halves = fc.grad(loss("causal", operands), operands)
    assert [str(one.dtype) for one in halves] == [dtype] * 3
    found = fc.resolve(*(one.astype("float32") for one in halves), device="cpu", progress=False)
    # The result is rounded once before its cotangent meets it.
    for one, exact in zip(found, fc.resolve(*fc.grad(loss("causal", wide), wide), progress=False), strict=True):
        np.testing.assert_allclose(one, exact, rtol=0.02, atol=0.02 * np.abs(exact).max())


@pytest.mark.parametrize("name", compiled_but(["mask"], ["window", "mask"]))
def test_halves_have_the_bits_of_float32_without_tensor_cores(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernels(monkeypatch)
    operands = tuple(one.astype("float16") for one in leaves(name, "f4"))
    parts = fc.grad(loss(name, operands), operands)
    monkeypatch.setattr(attention_rules, "_are_parts", lambda *_: False)
    for device in ("numpy", "cpu"):
        found = fc.resolve(*parts, device=device, progress=False)
        for one, other in zip(found, fc.resolve(*fc.grad(loss(name, operands), operands), device=device), strict=True):
            assert one.tobytes() == other.tobytes()


def test_kernels_read_views_of_masks_and_cotangents_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernels(monkeypatch)
    packed, mask = fc.source(np.zeros((2, 70, 3, 16), np.float32)), fc.source(np.zeros((2, 1, 70), np.float32))
    q, k, v = ((packed * 2).astype("float16")[:, :, i] for i in range(3))
    added = fc.permute_dims(mask + 1, (0, 2, 1)).astype("float32")
    made = fc.permute_dims(fc.nn.attention(q, k, v, mask=added), (0, 2, 1)).astype("float32")
    gradient = fc.grad((made * fc.cumulative_sum(made, axis=2)).sum(), packed)
    plan = make_plan(graph_of([gradient], NVIDIA), Config(1 << 32), fc.Strategy(), on_paper(NVIDIA))
    assert [step.name for one in plan.passes for step in one.steps if isinstance(step, NodeStep)] == []


@pytest.mark.parametrize("device", compiled_but(["numpy"], ["numpy", "cpu"]))
def test_halves_are_trained_where_no_tensor_cores_multiply_them(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernels(monkeypatch)
    q, k, v = leaves("causal", "f4")
    scale = fc.parameter(np.float32(2), name="scale")
    made = fc.nn.attention(*((one * scale).astype("float16") for one in (q, k, v)), causal=True)
    total = (made.astype("float32") ** 2).sum()
    expected = fc.resolve(fc.grad(total, scale), device="numpy", progress=False)
    with fc.train.Trainer([scale], fc.train.sgd(1.0), device=device) as trainer:
        trainer.step(total)
        np.testing.assert_allclose(2 - trainer.values["scale"], expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("size", "capabilities", "parts"),
    [
        (-16, NVIDIA, 0),
        (16, NVIDIA, 3),
        (128, NVIDIA, 3),
        (128, replace(NVIDIA, local_bytes=48 << 10), 0),
        (130, NVIDIA, 0),
        (16, replace(NVIDIA, tensor_cores=False), 0),
        (16, _joined([on_paper(NVIDIA), on_paper(CPU)], {}).capabilities, 0),
    ],
)
def test_tensor_cores_multiply_halves_that_fit(
    size: int, capabilities: Any, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_kernels(monkeypatch)
    q, k, v = (fc.source(np.zeros((2, 70, abs(size)), np.float16), name=name) for name in "qkv")
    made = fc.nn.attention(q, k, v, causal=True, scale=1 / size).astype("float32")
    gradients = fc.grad((made * np.zeros((2, 70, abs(size)), np.float32)).sum(), [q, k, v])
    plan = make_plan(graph_of(gradients, capabilities), Config(1 << 32), fc.Strategy(), on_paper(capabilities))
    assert sum(kernel.ir.form == "attention parts" for kernel in plan.kernels) == parts


def test_second_derivatives_of_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernels(monkeypatch)
    found = []
    for dtype in ("float16", "float32"):
        operands = tuple(one.astype("float16").astype(dtype) for one in leaves("all keys", "f4"))
        total = sum((one.astype("float32") ** 2).sum() for one in fc.grad(loss("all keys", operands), operands))
        found.append(fc.resolve(*fc.grad(total, operands), device="numpy", progress=False))
    for one, exact in zip(*found, strict=True):
        np.testing.assert_allclose(one.astype("f4"), exact, rtol=0.05, atol=0.02 * np.abs(exact).max())


@pytest.mark.parametrize("name", ["all keys", "causal", "mask"])
def test_second_derivatives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_kernels(monkeypatch)

    def first(operands: tuple[Any, ...]) -> Any:
        gradients = fc.grad(loss(name, operands), operands)
        rng = np.random.default_rng(4)
        parts = [(one * rng.standard_normal(one.spec.shape)).sum() for one in gradients]
        return parts[0] + parts[1] + parts[2]

    operands = leaves(name, "f8")
    found = fc.resolve(*fc.grad(first(operands), operands), device="numpy", progress=False)
    steps = [1e-6 * RNG.standard_normal(one.shape) for one in found]
    ends = [first(tuple(one + sign * step for one, step in zip(operands, steps, strict=True))) for sign in (1, -1)]
    ahead, behind = fc.resolve(*ends, device="numpy", progress=False)
    told = sum((one * step).sum() for one, step in zip(found, steps, strict=True))
    np.testing.assert_allclose(told, (ahead - behind) / 2, rtol=1e-5)


def test_a_mask_that_is_learnt_has_its_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = leaves("all keys", "f8")
    mask = fc.parameter(np.random.default_rng(6).standard_normal((70, 33)), name="mask")
    total = fc.nn.attention(q, k, v, mask=mask).sum()
    expected = fc.grad((fc.nn.attention(q, k, v, mask=mask) * 1.5).sum(), mask)
    by_kernels(monkeypatch)
    found = fc.grad((total * 1.5), mask)
    one, other = fc.resolve(found, expected, device="numpy", progress=False)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def bytes_of(length: int) -> int:
    x = fc.source(np.zeros((1, 4, length, 16), np.float32))
    gradient = fc.grad(fc.nn.attention(x, fc.sin(x), x * 0.5, causal=True).sum(), x)
    return fc.plan(gradient, memory="1GiB").memory.host_bytes


def test_memory_is_linear_in_the_length() -> None:
    assert bytes_of(8192) < 2.01 * bytes_of(4096) < 5 * bytes_of(2048)
    # A matrix of scores of one head of 8192 would be larger than all of it.
    assert bytes_of(8192) < 8192 * 8192 * 4
