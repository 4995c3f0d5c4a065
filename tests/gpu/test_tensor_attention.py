"""Attention of half formats by tensor cores: emulated everywhere, and on such a device where there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowcompute as fc
from flowcompute.elements.element import Element
from flowcompute.lower.attention.tensor_attention import TENSOR_ATTENTION
from flowcompute.lower.form import LoweringTask
from flowcompute.lower.kernel_knobs import KernelStyle
from flowcompute.schedule.steps import RegionStep
from flowcompute.strategy.knobs import KernelKnobs
from tests.golden.test_golden import NVIDIA
from tests.gpu.tensor_devices import compiles_without_assembly, emulated, plan_on_paper, real_device
from tests.gpu.test_attention import defined

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INF, NAN = math.inf, math.nan


@dataclass(frozen=True)
class Case:
    """One item of attention."""

    queries: int
    keys: int
    size: int
    columns: int
    heads: int = 1
    kv_heads: int = 1
    dtype: Any = "f2"
    causal: bool = False
    window: int | None = None
    masked: bool = False
    odd: bool = False

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Queries, keys, values."""
        rng = np.random.default_rng([self.queries, self.keys, self.size])
        shapes = (
            (self.heads, self.queries, self.size),
            (self.kv_heads, self.keys, self.size),
            (self.kv_heads, self.keys, self.columns),
        )
        q, k, v = (rng.standard_normal((2, *shape)).astype(self.dtype) for shape in shapes)
        if self.odd:
            v[:, 0, self.keys - 3, 0], v[:, 0, self.keys // 2, -1], k[:, 0, self.keys - 2] = INF, NAN, NAN
        return q, k, v

    def mask(self) -> np.ndarray | int:
        """What is added to scores."""
        if not self.masked:
            return 0
        mask = np.random.default_rng(3).standard_normal((self.queries, self.keys)).astype("f4")
        mask[:, 1], mask[2] = -INF, -INF
        return mask

    def root(self) -> Element:
        q, k, v = (fc.source(array, name=name) for array, name in zip(self.arrays(), "qkv", strict=True))
        mask = self.mask() if self.masked else None
        return fc.nn.attention(q, k, v, causal=self.causal, window=self.window, mask=mask)

    def check(self, made: np.ndarray) -> None:
        q, k, v = self.arrays()
        with np.errstate(all="ignore"):
            wanted = defined(q, k, v, self.mask(), self.causal, self.window)
        tolerance = 2e-3 if made.dtype == np.float16 else 2e-2
        np.testing.assert_allclose(made.astype("f8"), wanted, rtol=tolerance, atol=tolerance)


CASES = {
    "one tile": Case(16, 64, 16, 16),
    "few of everything": Case(1, 1, 1, 1),
    "ragged": Case(37, 70, 24, 40),
    "that lies badly": Case(21, 33, 7, 5),
    "several blocks": Case(150, 70, 16, 16),
    "heads that share keys": Case(20, 70, 32, 16, heads=4, kv_heads=2),
    "bfloat16": Case(20, 130, 16, 16, dtype=BFLOAT16),
    "a mask": Case(20, 70, 16, 16, masked=True),
    "causal": Case(140, 140, 16, 16, causal=True),
    "causal, fewer keys": Case(70, 40, 16, 16, causal=True),
    "a window": Case(70, 200, 16, 16, causal=True, window=20),
    "a window and a mask": Case(40, 40, 16, 16, causal=True, window=9, masked=True),
    "few queries": Case(5, 200, 16, 24, heads=2, kv_heads=1),
    "few queries, and a mask": Case(4, 70, 16, 16, masked=True),
    "few queries, causal": Case(7, 90, 4, 8, causal=True, odd=True),
    "few queries and keys": Case(7, 3, 16, 16, causal=True),
    "no finite numbers": Case(20, 40, 16, 16, odd=True),
    "none where it is unseen": Case(66, 80, 2, 5, causal=True, odd=True),
    "none outside of windows": Case(30, 90, 3, 4, causal=True, window=30, odd=True, masked=True),
}
LARGE = {
    "wide": Case(70, 130, 256, 256),
    "long": Case(1000, 1100, 128, 128, causal=True),
    "two sizes": Case(300, 300, 64, 128),
}


@pytest.mark.parametrize("name", CASES)
def test_attention_has_its_definition(name: str) -> None:
    case = CASES[name]
    made = emulated(case.root(), dict(zip("qkv", case.arrays(), strict=True)))
    case.check(made)


PARTS = {
    "ragged": Case(37, 70, 24, 40, dtype="f4"),
    "of several blocks": Case(150, 70, 16, 16, dtype="f4", causal=True),
    "few queries": Case(5, 140, 9, 7, dtype="f4", masked=True),
}


ALONE = {
    "ragged": Case(37, 70, 7, 5, dtype="f4"),
    "causal": Case(20, 70, 5, 3, dtype="f4", causal=True, odd=True),
}


@pytest.mark.parametrize(("name", "block"), [("ragged", 64), ("causal", 128)])
def test_what_is_not_for_tensor_cores_has_its_definition(name: str, block: int) -> None:
    case = ALONE[name]
    q, k, v = case.arrays()
    strategy = fc.Strategy(work_group=128, block_rows=block)
    made = emulated(case.root(), {"q": q, "k": k, "v": v}, strategy=strategy)
    with np.errstate(all="ignore"):
        wanted = defined(q, k, v, case.mask(), case.causal)
    np.testing.assert_allclose(made, wanted, rtol=0, atol=3e-6)


@pytest.mark.parametrize("name", PARTS)
def test_float32_is_multiplied_in_parts(name: str) -> None:
    case = PARTS[name]
    q, k, v = case.arrays()
    made = emulated(case.root(), {"q": q, "k": k, "v": v}, precision="tf32x3")
    wanted = defined(q, k, v, case.mask(), case.causal)
    np.testing.assert_allclose(made, wanted, rtol=0, atol=3e-6)


@pytest.mark.parametrize(
    ("case", "precision", "applied"),
    [
        (Case(70, 140, 16, 16), "exact", {(128, 64), (128, 128), (256, 128)}),
        (Case(20, 70, 16, 9, dtype="f4"), "tf32x3", {(128, 64), (256, 128)}),
        # Blocks of other sizes would take other tiles of which a query sees nothing.
        (Case(150, 150, 16, 9, dtype="f4", causal=True), "tf32x3", {(None, None)}),
    ],
)
def test_results_of_queries_depend_on_no_block(
    case: Case, precision: Any, applied: set[tuple[int | None, int | None]]
) -> None:
    streams = dict(zip("qkv", case.arrays(), strict=True))
    made = emulated(case.root(), streams, precision=precision)
    found = set()
    for group, rows in ((128, 64), (128, 128), (256, 64), (256, 128)):
        strategy = fc.Strategy(work_group=group, block_rows=rows)
        (kernel,) = plan_on_paper(case.root(), strategy=strategy, precision=precision).kernels
        knobs = (kernel.ir.knobs.work_group, kernel.ir.knobs.block_rows)
        if knobs not in found:
            assert np.array_equal(made, emulated(case.root(), streams, strategy=strategy, precision=precision))
        found.add(knobs)
    assert found == applied


def test_a_block_that_is_too_large_for_local_memory_is_not_applied() -> None:
    """Tiles of plain numbers, in its place, would add in another order."""
    plan = plan_on_paper(Case(40, 70, 64, 64).root())
    (step,) = (step for step in plan.steps if isinstance(step, RegionStep))
    small = replace(NVIDIA, local_bytes=45 << 10)
    usual, wanted = (
        LoweringTask(plan.graph, step.region, KernelStyle(small, KernelKnobs(block_rows=rows)), {}, "k0")
        for rows in (64, 128)
    )
    assert TENSOR_ATTENTION.accepts(usual) is None
    assert TENSOR_ATTENTION.accepts(wanted) is None
    assert TENSOR_ATTENTION.lower(wanted) == TENSOR_ATTENTION.lower(usual)


def test_what_follows_is_computed_in_the_kernel() -> None:
    case = Case(20, 70, 16, 18)
    bias = np.arange(18, dtype="f4")
    made = emulated(fc.tanh(case.root() * 2 + bias), dict(zip("qkv", case.arrays(), strict=True)))
    q, k, v = case.arrays()
    np.testing.assert_allclose(made, np.tanh(defined(q, k, v) * 2 + bias), atol=4e-3)


@pytest.mark.parametrize(
    "root",
    [
        Case(20, 20, 16, 16, dtype="f4").root(),
        fc.nn.attention(*(fc.source(array) for array in Case(20, 20, 16, 16).arrays()), scale=-1.0),
        fc.nn.attention(*(fc.source(array)[..., ::2] for array in Case(20, 20, 16, 16).arrays())),
    ],
    ids=["float32", "of the least score", "no neighbours"],
)
def test_other_attention_has_tiles_of_plain_numbers(root: Element) -> None:
    (kernel,) = plan_on_paper(root).kernels
    assert "fc_multiply" not in kernel.source


def test_what_is_too_large_for_local_memory_has_tiles_of_plain_numbers() -> None:
    for size, fits in ((64, True), (256, False)):
        plan = plan_on_paper(Case(20, 20, size, size).root())
        (step,) = (step for step in plan.steps if isinstance(step, RegionStep))
        small = replace(NVIDIA, local_bytes=48 << 10)
        task = LoweringTask(plan.graph, step.region, KernelStyle(small), {}, "k0")
        assert (TENSOR_ATTENTION.accepts(task) is None) == fits


@pytest.mark.parametrize("name", CASES | LARGE)
def test_attention_on_a_device(name: str) -> None:
    device = real_device()
    case = (CASES | LARGE)[name]
    made = np.asarray(fc.resolve(case.root(), device=device))
    case.check(made)
    single = fc.Strategy(batch_bytes=1)
    assert np.array_equal(made, np.asarray(fc.resolve(case.root(), device=device, strategy=single)), equal_nan=True)


@pytest.mark.parametrize(
    "case",
    [
        Case(7, 90, 24, 5, causal=True, window=9, masked=True),
        Case(20, 70, 16, 18, dtype="f4", masked=True),
    ],
    ids=str,
)
def test_texts_are_opencl_but_for_their_assembly(case: Case) -> None:
    (kernel,) = plan_on_paper(fc.tanh(case.root()) * 2, precision="tf32x3").kernels
    assert compiles_without_assembly(kernel.source)


@pytest.mark.parametrize("name", PARTS)
def test_float32_in_parts_on_a_device(name: str) -> None:
    device, case = real_device(), PARTS[name]
    made = np.asarray(fc.resolve(case.root(), device=device, precision="tf32x3"))
    np.testing.assert_allclose(made, defined(*case.arrays(), case.mask(), case.causal), rtol=0, atol=3e-6)
